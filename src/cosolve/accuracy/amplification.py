"""One macro step as a linear map on states and stored coupling variables, found by subsystem step it from unit states.

The method's own code takes the step, so what is analysed is what runs. Linear steps are exact up to rounding; nonlinear
ones are differenced at a given state (docs/theory.md, "Stability"). Every subsystem must show its state.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cosolve.accuracy.budget import Budget
from cosolve.basics.arrays import Matrix, Vector
from cosolve.engine.python.executor import bind
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.errors import CosolveError
from cosolve.method import Method, Window
from cosolve.subsystem.base import has_capability

#: Radii up to this far above 1 count as 1: rounding, and neutral modes of undamped systems.
RADIUS_TOLERANCE = 1e-9
NEUTRAL = 1e-6


@dataclass(frozen=True)
class AmplificationMatrix:
    """One macro step as a linear map, from `amplification_matrix`.

    Parameters
    ----------
    matrix : ndarray
        Maps states and the coupling variables of the last macro points, (x, z_N, ..., z_{N-degree}), one step on.
    n_states : int
        Number of states.
    linear : bool
        True if the step itself is linear, so that the matrix holds everywhere.
    """

    matrix: Matrix
    n_states: int
    linear: bool

    @cached_property
    def eigenvalues(self) -> npt.NDArray[np.complex128]:
        """Eigenvalues of the map."""
        return np.linalg.eigvals(self.matrix).astype(np.complex128)

    @property
    def radius(self) -> float:
        """Largest absolute value of the eigenvalues."""
        return float(np.abs(self.eigenvalues).max(initial=0.0))

    @property
    def unstable(self) -> bool:
        """True if a disturbance grows; eigenvalues at 1 do not count."""
        return self.grows(self.neutral)

    @cached_property
    def neutral(self) -> int:
        """Number of eigenvalues at 1: rigid-body motions and integrators."""
        return int((np.abs(self.eigenvalues - 1.0) < NEUTRAL).sum())

    def grows(self, neutral: int) -> bool:
        """Return whether an eigenvalue lies outside the unit circle.

        Parameters
        ----------
        neutral : int
            Number of eigenvalues nearest to 1 that do not count.

        Returns
        -------
        bool
            Whether one does.
        """
        return self.excess(neutral) > 0.0

    def excess(self, neutral: int) -> float:
        """Compute how far the largest eigenvalue lies outside the unit circle.

        Parameters
        ----------
        neutral : int
            Number of eigenvalues nearest to 1 that do not count.

        Returns
        -------
        float
            The distance; not positive if none lies outside.
        """
        mu = self.eigenvalues
        mu = mu[np.argsort(np.abs(mu - 1.0))[neutral:]]
        return float(np.abs(mu).max(initial=0.0)) - (1.0 + RADIUS_TOLERANCE)

    @cached_property
    def groups(self) -> list[tuple[list[int], npt.NDArray[np.bool_]]]:
        """Columns in groups of which no two have an entry in the same row, and where those entries are."""
        filled = self.matrix != 0.0
        return [(group, filled[:, group]) for group in _groups(filled)]


class StepFunction:
    """One macro step from `t` as a function on the flat vector (states, z_N, ..., z_{N-degree}).

    The subsystems of the caller stand at the point of interest, with the coupling variables `z`.
    """

    def __init__(
        self, caller: SubsystemCaller, method: Method, H: float, t: float, z: Vector, budget: Budget | None = None
    ) -> None:
        plan = caller.plan
        self.budget = Budget() if budget is None else budget
        self.plan, self.caller, self.H, self.t, self.depth = plan, caller, H, t, method.degree
        self.saved = self.caller.save() if all(has_capability(s, "rollback") for s in plan.subsystems) else None
        self.sizes = [len(s.get_state()) for s in plan.subsystems]
        self.n_states = sum(self.sizes)
        self.method = method.for_linearisation()
        self.step = bind(self.method, self.caller)
        self.noise = max((s.noise for s in plan.subsystems), default=0.0)
        states = np.concatenate([s.get_state() for s in plan.subsystems])
        self.point = np.concatenate([states, np.tile(z, self.depth + 1)])

    def __call__(self, vector: Vector) -> Vector:
        plan = self.plan
        self.budget.take()
        if self.saved is not None:
            self.caller.restore(self.saved)  # step-size memories and counters start alike
        ends = np.cumsum([0, *self.sizes])
        for subsystem, (a, b) in zip(plan.subsystems, pairwise(ends), strict=True):
            subsystem.set_state(vector[a:b])
        past = vector[self.n_states :].reshape(self.depth + 1, plan.n_z)
        history = self.method.history(past[0]).past(list(past), self.H)
        outcome = self.step(history, Window(self.t, self.t + self.H, self.H))
        states = [subsystem.get_state() for subsystem in plan.subsystems]
        return np.concatenate([*states, outcome.remembered, past[: self.depth].ravel()])


def linearise(
    step: StepFunction, sample: AmplificationMatrix | None = None, affine: bool | None = None
) -> AmplificationMatrix:
    """The map at the point where the subsystems stand; a `sample` says which entries may differ from zero.

    Whether the step is `affine` is tried where it is not said.
    """
    point = step.point
    scale = np.maximum(np.abs(point), 1.0)
    linear = _is_affine(step, point, scale) if affine is None else affine
    if linear:
        base = step(np.zeros_like(point))
        matrix = None if sample is None else _from_groups(step, base, sample)
        if matrix is None:
            units = np.eye(len(point))
            matrix = np.array([step(unit) - base for unit in units]).T.reshape(units.shape)
        return AmplificationMatrix(matrix, step.n_states, True)
    relative = max(1e-5, step.noise**0.5)
    columns = []
    for j in range(len(point)):
        plus, minus = point.copy(), point.copy()
        plus[j] += relative * scale[j]
        minus[j] -= relative * scale[j]
        columns.append((step(plus) - step(minus)) / (plus[j] - minus[j]))
    return AmplificationMatrix(np.array(columns).T.reshape(len(point), len(point)), step.n_states, False)


def _from_groups(step: StepFunction, base: Vector, sample: AmplificationMatrix) -> Matrix | None:
    """The matrix from one step per group of columns without a common row (Curtis, Powell and Reid, 1974).

    None where too few columns can share a step, or where the matrix does not predict the step from a random vector:
    an entry that was zero in the sample is not zero here.
    """
    if 2 * len(sample.groups) > len(base):
        return None
    matrix = np.zeros(sample.matrix.shape)
    for group, filled in sample.groups:
        unit = np.zeros(len(base))
        unit[group] = 1.0
        matrix[:, group] = np.where(filled, (step(unit) - base)[:, np.newaxis], 0.0)
    vector = np.random.default_rng(0).uniform(0.5, 1.5, len(base))
    size = np.abs(matrix) @ vector + np.abs(base)
    gap = np.abs(step(vector) - base - matrix @ vector)
    return matrix if bool((gap <= 1e-9 * size + 1e-15 * size.max(initial=0.0)).all()) else None


def _groups(filled: npt.NDArray[np.bool_]) -> list[list[int]]:
    """Columns in groups of which no two have an entry in the same row."""
    groups: list[list[int]] = []
    rows: list[npt.NDArray[np.bool_]] = []
    for j, column in enumerate(filled.T):
        for group, taken in zip(groups, rows, strict=True):
            if not (taken & column).any():
                group.append(j)
                taken |= column
                break
        else:
            groups.append([j])
            rows.append(column.copy())
    return groups


def _is_affine(step: StepFunction, point: Vector, scale: Vector) -> bool:
    """Superposition holds in random directions, also at the origin (to the accuracy of the subsystems)."""
    random = np.random.default_rng(0)
    try:
        base, origin = step(point), step(np.zeros_like(point))
        for _ in range(2):
            v = random.standard_normal(len(point)) * scale
            plus, minus, twice = step(point + v), step(point - v), step(2.0 * v)
            change = np.abs(plus - base)
            bend = np.maximum(np.abs(plus + minus - 2 * base), np.abs(twice - origin - 2 * (plus - base)))
            size = change.max(initial=0.0) + np.abs(base).max(initial=0.0)
            if bend.max(initial=0.0) > (1e-7 + 1e3 * step.noise) * size:
                return False
    except (CosolveError, ArithmeticError, ValueError):
        return False
    return True
