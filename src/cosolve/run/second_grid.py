"""A run once more with steps twice as long: the two must be as far apart as their shadows say.

A shadow knows the signals only at the macro points. What begins and ends between two of them, such as an impact, leaves
no trace there, and a second grid is the only way to see it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosolve.basics.arrays import Index, Matrix, Vector
from cosolve.errors import SetupError
from cosolve.interface import Plan
from cosolve.method import GaussSeidel, LeaderFollower, Method
from cosolve.run.core import Core
from cosolve.run.shadow import Counts, Track, distance
from cosolve.run.startup import Startup
from cosolve.stepsize.sequence import Given, Uniform, Windows

#: A prediction that is further off than this does not hold.
_FACTOR = 1.5


@dataclass(frozen=True)
class SecondGrid:
    """A run with steps twice as long, at the macro points `at` of the first one.

    `moved` is how far the outputs of the two runs are apart there, `predicted` how far they would be if both shadows
    were right. `spent` is what it took to find out.
    """

    at: Index
    moved: Matrix
    predicted: Matrix
    spent: Counts


def second_grid(plan: Plan, method: Method, startup: Startup, track: Track, gap: Matrix) -> SecondGrid:
    """Run with twice the steps of `track`, and the shadow of that; `gap` leads from `track` to its own shadow."""
    at = np.append(np.arange(0, len(track.t) - 1, 2), len(track.t) - 1)
    coarse, spent = _run(plan, method, startup, _doubled(track, at), uniform=track.uniform)
    if len(coarse.t) != len(at):
        raise SetupError("the steps of the run cannot be taken two by two")
    other, more = distance(plan, method, startup, coarse)
    return SecondGrid(at, np.abs(track.y[at] - coarse.y), np.abs(other - gap[at]), spent + more)


def _doubled(track: Track, at: Index) -> Windows:
    """Steps twice as long; error-controlled ones are taken together two by two."""
    t = track.t[at]
    if track.uniform:
        return Uniform(float(t[0]), float(t[-1]), 2.0 * float(track.steps[0]))
    return Given(t.tolist(), np.add.reduceat(track.steps, at[:-1]).tolist())


def _run(plan: Plan, method: Method, startup: Startup, windows: Windows, *, uniform: bool) -> tuple[Track, Counts]:
    if isinstance(method, LeaderFollower):  # the leader does not choose these steps
        method = GaussSeidel(method.degree, method.outputs, (method.leader, *method.order))
    core = Core(plan, method, startup, windows)
    t, steps, z, y = [windows.t], [], [], []
    try:
        core.start(windows.t)
        z.append(core.z)
        y.append(core.y)
        while not core.done:
            outcome = core.cross()
            t.append(core.t)
            steps.append(t[-1] - t[-2] if outcome.H is None else outcome.H)
            z.append(outcome.z)
            y.append(outcome.y)
    finally:
        core.crew.close()
    spent = np.array([core.crew.calls, core.crew.jacobians])
    return Track(np.array(t), np.array(steps), np.array(z), np.array(y), uniform), spent


def agrees(moved: Vector, predicted: Vector, floor: float) -> bool:
    """Whether the prediction holds, within a factor of 1.5 where there is something to see.

    >>> import numpy as np
    >>> agrees(np.array([0.0, 1e-3]), np.array([0.0, 9e-4]), 1e-9)
    True
    >>> agrees(np.array([0.0, 0.7]), np.array([0.0, 2e-5]), 1e-9)
    False
    """
    far, foreseen = float(moved.max(initial=0.0)), float(predicted.max(initial=0.0))
    return max(far, foreseen) <= floor or foreseen / _FACTOR < far < _FACTOR * foreseen


def doubt(name: str, moved: Vector, predicted: Vector) -> str:
    """What to say where it does not."""
    far, foreseen = float(moved.max()), float(predicted.max())
    if not np.isfinite(far + foreseen):
        return "the run is in doubt: with steps twice as long it diverges"
    return f"the run is in doubt: steps twice as long move '{name}' by {far:.1e} where {foreseen:.1e} was predicted"
