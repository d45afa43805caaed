"""Whose fault is a correction that corrects nothing? Rollback and Jacobians of the subsystems, tried out in one step.

One Newton step takes away nearly all of the residual where subsystems come back to their saved states and say right
derivatives. Where it leaves a good part of it (a kink does that too), every subsystem crosses the step once more: from
its saved state, with inputs as before, it must give the same outputs, and its own Jacobian must agree with differences.
These crossings are not counted, and afterwards everybody stands where they were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.errors import SubsystemError
from cosolve.subsystem.base import has_capability

if TYPE_CHECKING:
    from cosolve.engine.readable.trial import Trial

#: The share of the residual that a correction may leave, and the size below which nothing is looked at.
LEFT, LEAST = 0.1, 1e-6

#: Outputs of repeated crossings differ by this, relatively, and Jacobians by that, before anything is said.
_SAME, _CLOSE = 1e-6, 0.02
#: Differences are taken with a second increment, so many times larger: what they disagree by is their uncertainty.
_LARGER = 3.0


class NoWayBack(SubsystemError):
    """A subsystem crossed the same step twice and gave different outputs."""


def examine(trial: Trial, z: Vector, y: Vector) -> str:
    """Try every subsystem after a crossing that ended in `z` with outputs `y`.

    Raises when one does not come back to its saved state; a sentence about Jacobians that are wrong, or nothing.
    """
    crew, plan = trial.crew, trial.crew.plan
    calls, jacobians = crew.calls.copy(), crew.jacobians.copy()
    ends = [crew.save_one(i) for i in range(plan.n_subsystems)]
    try:
        for i in range(plan.n_subsystems):
            _refuse_other_outputs(trial, i, z, y)
        wrong = [plan.names[i] for i in range(plan.n_subsystems) if _jacobian_is_wrong(trial, i, z, y)]
    finally:
        crew.calls[:], crew.jacobians[:] = calls, jacobians
    crew.restore(ends)
    if not wrong:
        return ""
    names = ", ".join(f"'{name}'" for name in wrong)
    return (
        f"corrections in the step from t = {trial.window.t0:.9g} took away little of the residual, and the jacobian of "
        f"{names} does not agree with differences; check_jacobians names the entries, and jacobian='difference' does "
        "without"
    )


def _refuse_other_outputs(trial: Trial, i: int, z: Vector, y: Vector) -> None:
    crew, window = trial.crew, trial.window
    first = y[crew.plan.y_slices[i]]
    trial.rewind_one(i)
    again = crew.advance(i, window, trial.coefficients(z))
    allowed = max(_SAME, 10.0 * crew.plan.subsystems[i].noise) * np.maximum(np.abs(first), np.abs(again))
    off = np.abs(again - first) - allowed
    if (off > 0.0).any():
        name, k = crew.plan.names[i], int(np.argmax(off))
        label = crew.plan.output_ports[i].labels()[k]
        raise NoWayBack(
            f"'{name}' does not come back to its saved state: the step from t = {window.t0:.9g} gave {first[k]:.9g} "
            f"for '{label}', then {again[k]:.9g} with the same inputs; save() must return a copy of everything that "
            "advance() changes, and restore() must take all of it back",
            time=window.t0,
            subsystem=name,
        )


def _jacobian_is_wrong(trial: Trial, i: int, z: Vector, y: Vector) -> bool:
    if trial.source != "auto" or not has_capability(trial.crew.plan.subsystems[i], "jacobian"):
        return False
    given = trial.response(i, z, y, "auto")
    differenced = trial.response(i, z, y, "difference")
    if not differenced.size:
        return False
    unsure = np.abs(trial.response(i, z, y, "difference", _LARGER * trial.increment) - differenced)
    allowed = 10.0 * unsure + _CLOSE * np.abs(differenced).max()
    return bool((np.abs(given - differenced) > allowed).any())
