"""Do an FMU's claims hold? Looked at before a run relies on them, once per FMU and process.

A method that repeats steps asks first whether the FMU comes back: from a saved state the same step is made twice, and
the outputs must be the same. Where the FMU gives derivatives, the Jacobian over that step is compared with difference
quotients; one that is wrong is not used any more, and a warning says so. Both cost a few steps at the start of the
first run. `cosolve inspect --try` looks much closer; what a run makes of its findings stands in `findings.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import EndOfSimulation, FmuWarning, SubsystemError, warn
from cosolve.signal.polynomial import Polynomial, perturbed

if TYPE_CHECKING:
    from cosolve.fmu.co_simulation import CoSimulationFmu
    from cosolve.signal.polynomial import InputSignal

_DIFFERENT = 1e-3  # of what the step changes: solvers inside FMUs may forget their step size, not their state
_WRONG = 0.05  # of the largest entry, for derivatives
_INCREMENT = 1e-4  # of an input's size, for difference quotients

_proven: set[Path] = set()  # unpacked FMUs that came back
_distrusted: set[Path] = set()  # ... whose derivatives are wrong


def prove_rollback(fmu: CoSimulationFmu, t0: float, H: float, u: Vector) -> None:
    """Raise when the FMU does not come back from a saved state; notice when its derivatives are wrong."""
    folder = fmu._instance.folder
    if folder in _proven:
        return
    state = fmu._save()
    signal = Polynomial(t0, H, u[np.newaxis, :].copy())
    try:
        before = fmu._outputs.read(fmu.component)
        first, again = _twice(fmu, signal, t0, t0 + H)
    except (SubsystemError, EndOfSimulation):
        return  # a step that fails is the run's to tell
    finally:
        fmu._restore(state)
    worst = int(np.argmax(np.abs(again - first))) if len(first) else 0
    if len(first) and _differ(first, again, before):
        name = fmu._outputs.labels[worst]
        raise SubsystemError(
            f"the FMU '{fmu.file.name}' does not come back to a saved state, although it says that it can "
            f"(canGetAndSetFMUState): the same step from t = {t0:.9g} gave '{name}' = {first[worst]:.9g} and then "
            f"{again[worst]:.9g}; use Jacobi or GaussSeidel, which repeat no steps, and tell its maker"
        )
    _proven.add(folder)
    floats = all(v.is_float for v in fmu._communication.inputs.variables)
    if hasattr(fmu, "jacobian") and floats and folder not in _distrusted:
        _prove_derivatives(fmu, signal, t0, t0 + H)
        fmu.forget_derivatives()


def _twice(fmu: CoSimulationFmu, signal: InputSignal, t0: float, t1: float) -> tuple[Vector, Vector]:
    """The outputs after the same step made twice."""
    state = fmu._save()
    first = fmu.advance(t0, t1, signal)
    fmu._restore(state)
    return first, fmu.advance(t0, t1, signal)


def _differ(first: Vector, again: Vector, before: Vector) -> bool:
    allowed = _DIFFERENT * np.abs(first - before) + 1e-9 * (1e-3 + np.abs(first))
    return bool((~(np.abs(again - first) <= allowed)).any())


def _prove_derivatives(fmu: CoSimulationFmu, signal: InputSignal, t0: float, t1: float) -> None:
    state, weight = fmu._save(), np.ones(1)
    try:
        given = fmu.jacobian(t0, t1, signal, weight)
        fmu._restore(state)
        ahead, behind = _differences(fmu, t0, t1, signal, weight)
    except (SubsystemError, EndOfSimulation):
        return
    finally:
        fmu._restore(state)
    found, size = (ahead + behind) / 2, max(np.abs(ahead).max(initial=0.0), np.abs(behind).max(initial=0.0))
    smooth = np.abs(ahead - behind) <= _WRONG * size  # at a kink neither is right
    wrong = np.where(smooth, np.abs(given - found), 0.0)
    if wrong.max(initial=0.0) > _WRONG * size + 1e-9:
        distrust(fmu)
        i, j = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        warn(
            f"the derivatives that the FMU '{fmu.file.name}' gives are wrong: '{fmu._outputs.labels[i]}' by "
            f"'{fmu._communication.inputs.labels[j]}' over the step from t = {t0:.9g} is {given[i, j]:.6g} by them and "
            f"{found[i, j]:.6g} by difference quotients, which are used instead",
            FmuWarning,
        )


def distrust(fmu: CoSimulationFmu) -> None:
    """Use difference quotients for this FMU from now on."""
    _distrusted.add(fmu._instance.folder)


def distrusted(fmu: CoSimulationFmu) -> bool:
    """True when its derivatives were found wrong."""
    return fmu._instance.folder in _distrusted


def differenced(fmu: CoSimulationFmu, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
    """The Jacobian over the step by central differences; the FMU stands anywhere afterwards."""
    ahead, behind = _differences(fmu, t0, t1, u, weight)
    return (ahead + behind) / 2


def _differences(fmu: CoSimulationFmu, t0: float, t1: float, u: InputSignal, weight: Vector) -> tuple[Matrix, Matrix]:
    """Difference quotients to both sides."""
    state, quotients = fmu._save(), np.zeros((2, fmu._outputs.length, u.coefficients.shape[1]))
    here = fmu.advance(t0, t1, u)
    for k in range(u.coefficients.shape[1]):
        increment = max(fmu.noise ** (1 / 3), _INCREMENT) * max(fmu.nominal_inputs[k], abs(float(u.end[k])))
        for side, sign in enumerate((1.0, -1.0)):
            fmu._restore(state)
            there = fmu.advance(t0, t1, perturbed(u, k, sign * increment * weight))
            quotients[side, :, k] = (there - here) / (sign * increment)
    return quotients[0], quotients[1]
