"""Equations at one instant: the unknowns that they determine at once, states held.

Unknowns of `system.equations` are coupling variables like any other: a polynomial of degree 1 or more begins at their
value at the start of the run, and a wrong one there costs all orders but the first. So they are solved for, by Newton
with differences and a line search, where the Jacobian `dr/dz` of the instant is regular. What it says is judged after
scaling, and by what stands out of rounding:

- An entry counts when the change it is made of exceeds `_NOISE` roundings of its row. A row in which nothing counts
  says nothing about the unknowns at this instant (a condition on velocities, say, whose multiplier is a force).
- A set of unknowns is determined when each column of the scaled Jacobian has at least `_INDEPENDENT` of its length
  outside the span of the others.

Where not all are determined, some keep their initial value and the others are solved for with these. Kept are, as far
as there is a choice, unknowns whose own row says nothing, then those to which the user gave an initial value: the
value of a multiplier is kept and what depends on it follows, not the other way round. Unknowns in rows that contradict
each other keep their value too, with all that hang together with them. A row with a residual that reacts, but with
slope zero at the initial value (`z**2 - 4` at 0), has not been solved: that is a failure like any other of Newton's
method, not a value to be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Index, Matrix, Vector
from cosolve.basics.lu import equilibration
from cosolve.errors import CosolveError
from cosolve.interface.plan import LAW_INCREMENT, Block

#: Equations with more unknowns than this are not solved at the start unasked: each costs evaluations of everything.
MOST = 256

_INDEPENDENT = 1e-6
_NOISE = 100.0

#: Residuals within so many roundings are as good as zero.
_ROUNDINGS = 16.0

#: Where a difference drowns in rounding, wider ones are tried: nominal values may be far off.
_WIDER = (1.0, 1e3, 1e6)

_ITERATIONS, _HALVINGS = 50, 30

#: After a relative change of the unknowns by less than this the Jacobian is as good as its differences.
_NEARBY = 1e-4

#: A residual that cannot be made smaller is good when such a relative change of the unknowns would account for it.
_GOOD = 1e-10

Booleans = npt.NDArray[np.bool_]

#: residual, outputs and coupling variables for values of the unknowns
Evaluate = Callable[[Vector], tuple[Vector, Vector, Vector]]


@dataclass(frozen=True)
class Instant:
    """What is to be solved: unknowns with their sizes, and the equations as a function of them.

    `rounding(r, y, z)` is one rounding error (and solver noise) of each equation; `relative` the increment of the
    differences; equations and unknowns correspond one to one.
    """

    evaluate: Evaluate
    rounding: Callable[[Vector, Vector, Vector], Vector]
    nominal: Vector
    given: Booleans  # values that the user chose
    relative: float = LAW_INCREMENT


@dataclass(frozen=True)
class Solved:
    """Unknowns with outputs and coupling variables that belong to them; `kept` marks those that were not solved for.

    `failed` marks rows that determine their unknowns, but Newton found no solution, or had slope zero to begin with;
    then all were kept. `residual` belongs to the values.
    """

    values: Vector
    y: Vector
    z: Vector
    residual: Vector
    kept: Booleans
    failed: Booleans


def solve(problem: Instant, values: Vector) -> Solved:
    """Newton from `values`, on the unknowns that are determined there.

    Differences at points where a function fails are left out, and steps to such points are shortened; only at `values`
    themselves everything must be defined.

    >>> import numpy as np
    >>> def square(v):
    ...     return v**2 - 4.0, v, v
    >>> square = Instant(square, lambda r, y, z: 1e-15 * (4.0 + z**2), nominal=np.ones(1), given=np.array([True]))
    >>> [float(solve(square, np.array([near])).values[0].round(12)) for near in (1.0, -1.0)]
    [2.0, -2.0]
    >>> solve(square, np.array([0.0])).failed
    array([ True])
    """
    r, y, z = problem.evaluate(values)
    floor, none = _floor(problem, r, y, z), np.zeros(len(values), dtype=bool)
    if (np.abs(r) <= floor).all():
        return Solved(values, y, z, r, none, none)
    G, bent = jacobian(problem, values, r, floor)
    kept, rows = undetermined(G, problem.given)
    v, failed = values, bent & ~rows & (np.abs(r) > floor)
    if not failed.any():
        v, bad = _newton(problem, values, G, ~kept, rows)
        if bad.any():
            failed = np.array([row and _square(G, kept, k) for k, row in enumerate(bad)])
            kept |= entangled(G, bad)
            if not failed.any():  # all that is left unsolved contradicts itself
                v, failed = _newton(problem, values, G, ~kept, rows & ~(G[:, kept] != 0.0).any(axis=1))
    if failed.any():
        return Solved(values, *_once_more(problem, values), ~none, failed)
    return Solved(v, *_once_more(problem, v), kept, none)


def _newton(problem: Instant, v: Vector, G: Matrix, free: Booleans, rows: Booleans) -> tuple[Vector, Booleans]:
    """Solve these rows for the unknowns that are free, `G` the Jacobian at `v`; also the rows that were not solved."""
    r, y, z = problem.evaluate(v)
    floor = _floor(problem, r, y, z)
    bad, moved = rows & (np.abs(r) > floor), 0.0
    for _ in range(_ITERATIONS if free.any() else 0):
        if not bad.any():
            break
        if moved > _NEARBY:
            G = jacobian(problem, v, r, floor)[0]
        size = np.maximum(problem.nominal, np.abs(v))
        weight = (np.abs(G[rows][:, free]) * size[free]).max(axis=1)
        if not weight.all():
            break
        step = np.zeros(len(v))
        step[free] = -_scaled_solution(G[rows][:, free], r[rows], weight, size[free])
        found = _shortened(problem, v, step, r, rows, weight)
        if found is None:
            bad[rows] = np.abs(r[rows]) > np.maximum(floor[rows], _GOOD * weight)
            break
        moved = float((np.abs(found[0] - v) / size).max())
        v, r, y, z = found
        floor = _floor(problem, r, y, z)
        bad = rows & (np.abs(r) > floor)
    return v, bad


def entangled(G: Matrix, rows: Booleans) -> Booleans:
    """The unknowns that hang together with these rows, directly or through others."""
    pattern = G != 0.0
    columns: Booleans = pattern[rows].any(axis=0)
    while True:
        more: Booleans = pattern[pattern[:, columns].any(axis=1)].any(axis=0)
        if np.array_equal(more, columns):
            return columns
        columns = more


def _square(G: Matrix, kept: Booleans, row: int) -> bool:
    """True when the rows that hang together with this one are no more than the unknowns that they are solved for."""
    columns = entangled(G, np.arange(len(G)) == row)
    return bool((G[:, columns] != 0.0).any(axis=1).sum() <= (columns & ~kept).sum())


def _once_more(problem: Instant, v: Vector) -> tuple[Vector, Vector, Vector]:
    """Outputs, coupling variables and residual at `v`: the last call of all, so that warm starts belong to it."""
    r, y, z = problem.evaluate(v)
    return y, z, r


def _floor(problem: Instant, r: Vector, y: Vector, z: Vector) -> Vector:
    """Residuals that are as good as zero."""
    return _ROUNDINGS * problem.rounding(r, y, z)


def _scaled_solution(G: Matrix, r: Vector, rows: Vector, columns: Vector) -> Vector:
    """The solution (least squares where there are more rows) of `G x = r`, with rows and columns of like size."""
    scaled = np.linalg.lstsq(G * columns / rows[:, np.newaxis], r / rows, rcond=None)[0]
    return np.asarray(scaled * columns)


def _shortened(
    problem: Instant, v: Vector, step: Vector, r: Vector, rows: Booleans, weight: Vector
) -> tuple[Vector, Vector, Vector, Vector] | None:
    """The longest of the step, its half, its quarter ... that makes the residual smaller; None when none does."""
    before, part = float((np.abs(r[rows]) / weight).max()), 1.0
    if not np.isfinite(step).all():
        return None
    for _ in range(_HALVINGS):
        there = v + part * step
        if np.array_equal(there, v):
            return None
        found = _tried(problem, there)
        if found is not None and float((np.abs(found[0][rows]) / weight).max()) <= (1.0 - 1e-4 * part) * before:
            return there, *found
        part *= 0.5
    return None


def _tried(problem: Instant, v: Vector) -> tuple[Vector, Vector, Vector] | None:
    try:
        with np.errstate(all="ignore"):
            found = problem.evaluate(v)
    except CosolveError:
        return None
    return found if np.isfinite(found[0]).all() else None


def jacobian(problem: Instant, v: Vector, r: Vector, floor: Vector) -> tuple[Matrix, Booleans]:
    """Derivatives of the equations by the unknowns, zero where they do not stand out of rounding.

    Also the rows that react to an unknown whose derivative is zero everywhere: the same to both sides.
    """
    G, bent = np.zeros((len(r), len(v))), np.zeros(len(r), dtype=bool)
    least = _NOISE / _ROUNDINGS * floor
    for j in range(len(v)):
        for wider in _WIDER:
            d = wider * problem.relative * max(float(problem.nominal[j]), abs(float(v[j])))
            ends = []
            for shift in (d, -d):
                there = v.copy()
                there[j] += shift
                found = _tried(problem, there)
                if found is not None:
                    ends.append((there[j], found[0]))
            if not ends:
                break
            if len(ends) == 1:  # the function fails on one side
                ends.append((v[j], r))
            change = ends[0][1] - ends[1][1]
            seen = np.abs(change) > least
            if seen.any():
                G[:, j] = np.where(seen, change / (ends[0][0] - ends[1][0]), 0.0)
                break
            bent |= np.abs(ends[0][1] - r) > least
    return G, bent


def left_open(problem: Instant, values: Vector) -> Booleans:
    """The unknowns that would keep whatever value they have here, or were kept because rows contradict each other."""
    r, y, z = problem.evaluate(values)
    floor = _floor(problem, r, y, z)
    G = jacobian(problem, values, r, floor)[0]
    kept, rows = undetermined(G, problem.given)
    size = np.maximum(problem.nominal, np.abs(values))
    unsolved = rows & (np.abs(r) > np.maximum(floor, 1e3 * _GOOD * (np.abs(G) * size).max(axis=1, initial=0.0)))
    return kept | entangled(G, unsolved)


def undetermined(G: Matrix, given: Booleans) -> tuple[Booleans, Booleans]:
    """The unknowns that keep their value, and the rows that say something, for a Jacobian of the instant.

    >>> import numpy as np
    >>> G = np.array([[0.0, 0.0], [-5.0, 1.0]])      # the first equation says nothing: its unknown is kept
    >>> [flags.tolist() for flags in undetermined(G, np.zeros(2, dtype=bool))]
    [[True, False], [False, True]]
    """
    rows, columns = (np.asarray((G != 0.0).any(axis=k)) for k in (1, 0))
    kept = np.ones(G.shape[1], dtype=bool)
    if not rows.any():
        return kept, rows
    part = np.flatnonzero(columns)
    by_row, by_column = equilibration(G[rows][:, part])
    left = G[rows][:, part] / by_row[:, np.newaxis] / by_column
    left = left / np.linalg.norm(left, axis=0)
    last = np.where(rows[part], 0, 2) + given[part]  # who is kept where there is a choice
    waiting = np.ones(len(part), dtype=bool)
    for group in range(4):
        while (waiting & (last == group)).any():
            length = np.where(waiting & (last == group), np.linalg.norm(left, axis=0), 0.0)
            best = int(np.argmax(length))
            if length[best] < _INDEPENDENT:
                break
            direction = left[:, best] / length[best]
            for _ in range(2):  # once more for the rounding of the first time
                left = left - np.outer(direction, direction @ left)
            waiting[best] = False
    kept[part[~waiting]] = False
    return kept, rows


def roundings(block: Block, r: Vector, z_rows: Vector, y_read: Vector, y_noise: Vector) -> Vector:
    """One rounding error of each row of a set of equations, with what the noise of the outputs read adds to it."""
    eps = float(np.finfo(np.float64).eps)
    y_unsure = (eps + y_noise) * np.abs(y_read)
    size = eps * np.abs(r)
    if len(y_read) <= MOST:
        try:
            with np.errstate(all="ignore"):
                by_z, by_y = block.partials(z_rows, y_read)
        except CosolveError:  # at the edge of where it is defined
            pass
        else:
            return np.asarray(size + np.abs(by_y) @ y_unsure + eps * np.abs(by_z) @ np.abs(z_rows))
    return size + float(y_unsure.max(initial=0.0)) + eps * np.abs(z_rows)


def equations_of(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The equations to be solved at the start among the blocks of a plan; constraints have a start of their own."""
    return tuple(block for block in blocks if block.implicit and block.levels is None and block.solve_start)


def rows_of(blocks: Iterable[Block]) -> Index:
    """Coupling variables that belong to these blocks, in their order."""
    return np.concatenate([np.zeros(0, dtype=np.intp), *(block.rows for block in blocks)])
