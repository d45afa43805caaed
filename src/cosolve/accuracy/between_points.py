"""Whether polynomials through the macro points describe the signals between them, too.

A shadow takes that for granted, and other grids do not tell: a part that turns many times within a macro step looks
slow at the points of each of them. So all subsystems advance once more over the steps of the shadow, by themselves and
along its recorded inputs, each step in two pieces that meet at a place inside. The places change from step to step, so
that no frequency is slow at all of them.
"""

from __future__ import annotations

from dataclasses import replace
from math import nan

import numpy as np

from cosolve.accuracy.recorded_run import Path
from cosolve.accuracy.resolution import between, settled
from cosolve.basics.arrays import Matrix, Vector
from cosolve.engine.python.replay_check import in_pieces
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.errors import CosolveError, EndOfSimulation
from cosolve.interface import Plan
from cosolve.method import Method
from cosolve.signal.polynomial import horner

#: Parts of a step at which its two pieces meet, in turn: few, since a subsystem may prepare for lengths of steps.
PLACES = (0.38, 0.71, 0.53, 0.29, 0.62)

_MOTION = 10.0  # times what the pieces themselves change: beyond, an output moves within a step
_OWN = 10.0  # times the noise of a subsystem: so far its own errors may move an output within a step


def between_points(caller: SubsystemCaller, method: Method, path: Path, start: Vector) -> tuple[float, Vector]:
    """The ratio `resolution.between` of a shadow whose subsystems kept what they advanced over.

    Beside it, how far each output is from smooth curves within a step: those of two degrees more than the shadow's, so
    that much is left of what turns there and little of what does not; 0 where the two pieces alone lead elsewhere, by
    the subsystem's own steps. NaN where a subsystem cannot repeat that, or takes steps of one length only. `start` are
    the outputs at the start.
    """
    plan, count = caller.plan, len(path.steps)
    places = np.resize(PLACES, count)
    inside, ends, whole = np.empty((3, count, plan.n_y))
    for i, part in enumerate(plan.y_slices):
        try:
            found = None if plan.subsystems[i].fixed_step is not None else in_pieces(caller, i, places)
        except (CosolveError, EndOfSimulation):
            return nan, np.full(plan.n_y, nan)
        if found is None:
            return nan, np.full(plan.n_y, nan)
        inside[:, part], ends[:, part] = found
        past = caller.past[i]
        assert past is not None
        whole[:, part] = np.vstack([past.outputs(rows) for rows in past.blocks()])
        caller.calls[i] += 2 * count
    seen = replace(path, z=np.vstack([path.z[:1], _evaluated(plan, ends, path.z[1:])]))
    outputs = replace(path, z=np.vstack([start, ends]))
    within = np.abs(inside - _at(outputs, places, method.degree + 3))
    smooth = _at(seen, places, method.degree + 1)
    missed = np.abs(_evaluated(plan, inside, smooth) - smooth)
    noise = _noise(caller, ends, seen.z)
    first = settled(method, count)
    hidden, own = (values.max(axis=0, initial=0.0) for values in (within[first:], np.abs(ends - whole)))
    return between(method, missed, seen.z, np.asarray(path.steps), noise), np.where(hidden > _MOTION * own, hidden, 0.0)


def _at(path: Path, places: Vector, degree: int) -> Matrix:
    """Values of the polynomials around each step at its place."""
    coefficients = path.around(np.arange(len(places)), degree)
    values: Matrix = horner(coefficients.transpose(1, 0, 2), places[:, np.newaxis])
    return values


def _evaluated(plan: Plan, y: Matrix, z: Matrix) -> Matrix:
    """The coupling variables that the outputs ask for, row by row."""
    new = z.copy()
    new[:, plan.copy_rows] = y[:, plan.copy_from]
    for block in plan.blocks:
        if not block.implicit:
            rows = zip(z[:, block.rows], y[:, block.y_index], strict=True)
            new[:, block.rows] = [block.call(known, arguments) for known, arguments in rows]
    return new


def _noise(caller: SubsystemCaller, y: Matrix, z: Matrix) -> Vector:
    """How far the accuracy of the subsystems may move each coupling variable."""
    plan, eps = caller.plan, np.finfo(np.float64).eps
    relative = np.array([float(subsystem.noise) for subsystem in plan.subsystems])
    terms = _OWN * np.maximum(relative[plan.y_owner] / eps, 1.0) * np.abs(y).max(axis=0)
    rows = [plan.rounding(z[n + 1], y[n], terms) for n in (0, len(y) // 2, len(y) - 1)]
    found: Vector = np.max(rows, axis=0)
    return found
