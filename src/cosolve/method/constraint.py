"""How multipliers of rigid joints are found from the levels of their constraint (Lu (2015), 3.1 and 3.2.3).

`Baumgarte` (method 1) solves `g + beta g' + gamma g'' = 0`, `WeightedMultipliers` (method 2) averages the corrections
of the three levels, `StabilisedIndex2` (method 3) solves `g = 0` and `g' = 0` with a second multiplier `mu` in the
position equations. A treatment is handed to `SemiImplicit` or `Implicit`.

Held against a free double integrator, a treatment leaves a linear recurrence for the error of the constraint, whatever
the subsystems are, as the step goes to zero (docs/theory.md, "Constraints"). `limit_radius` gives its spectral radius;
a combination that grows there is refused before the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import choice, is_number
from cosolve.errors import SetupError, StabilityWarning, warn
from cosolve.interface.constraint import Combination
from cosolve.interface.plan import Plan
from cosolve.signal.polynomial import lagrange_weights

#: Radii this close to 1 count as marginal.
_MARGIN = 1e-6


@dataclass(frozen=True)
class ConstraintTreatment:
    """Base of the treatments: weighted combinations of levels, and relaxation towards the last accepted values.

    `allow_unstable` runs combinations of index and degree that are known to grow (to see them do so).
    """

    allow_unstable: bool = field(default=False, kw_only=True, repr=False)

    #: a share of the last accepted values that stays: 1 keeps nothing
    relaxation: ClassVar[float] = 1.0
    relaxed: ClassVar[str] = "all"

    def combinations(self, H: float) -> list[tuple[float, Combination]]:
        """The interface problems whose solutions are averaged, with their weights (which add up to 1)."""
        raise NotImplementedError

    def relax(self, plan: Plan, z: Vector, last: Vector) -> Vector:
        """`z` moved back towards the last accepted values (Eq. 186)."""
        if self.relaxation == 1.0:
            return z
        blended = self.relaxation * z + (1.0 - self.relaxation) * last
        if self.relaxed == "all":
            return blended
        rows = np.concatenate([block.rows for block in plan.constraints])
        z = z.copy()
        z[rows] = blended[rows]
        return z

    def limit_radius(self, degree: int, step: float = 1.0) -> float:
        """Factor by which an error of the constraint grows per macro step as the step goes to zero.

        Only ratios such as `beta / H` matter, so they are taken at the given `step` (docs/theory.md, "Constraints").

        >>> import cosolve as cs
        >>> round(cs.Baumgarte(beta=0.4, gamma=0).limit_radius(degree=1), 4)
        1.8669
        >>> round(cs.StabilisedIndex2(relaxation=0.9).limit_radius(degree=0), 4)
        0.3162
        """
        return _limit_radius(self, degree, step)

    def refuse_unstable(self, degree: int, H: float) -> None:
        """Refuse what grows as the step goes to zero; warn of what is marginal."""
        if self.allow_unstable:
            return
        radius = self.limit_radius(degree, H)
        if radius < 1.0 - _MARGIN:
            return
        better = [k for k in range(4) if self.limit_radius(k, H) < 1.0 - _MARGIN]
        advice = f"use degree {' or '.join(map(str, better))}, or " if better else "use "
        sentence = (
            f"{self} with degree {degree} and H = {H:.3g}: errors of the constraint are multiplied by {radius:.4g} in "
            f"every step however small the step is; {advice}{self._instead()} (allow_unstable=True runs it all the "
            "same)"
        )
        if radius > 1.0 + _MARGIN:
            raise SetupError(sentence)
        warn(sentence, StabilityWarning)

    def _instead(self) -> str:
        return "Baumgarte() with its default parameters"


def _refuse_negative(treatment: ConstraintTreatment, **numbers: float | None) -> None:
    for name, value in numbers.items():
        if value is not None and not (is_number(value) and value >= 0):
            raise SetupError(f"{type(treatment).__name__}: {name} must be a number of at least 0, not {value!r}")


@dataclass(frozen=True)
class Baumgarte(ConstraintTreatment):
    """Method 1: `g + beta g' + gamma g'' = 0` at the end of every macro step (Eqs. 103, 174).

    `beta` in seconds, `gamma` in seconds squared. Index 3: both 0; index 2: `gamma=0`; index 1: both positive. By
    default `beta = 2 H` and `gamma = H**2`, critically damped and stable for degrees 0 to 3. Large parameters cost
    accuracy, with degree 0 an order.

    >>> import cosolve as cs
    >>> cs.SemiImplicit(degree=1, constraints=cs.Baumgarte(beta=2e-3, gamma=1e-6)).constraints.beta
    0.002
    """

    beta: float | None = None
    gamma: float | None = None

    def __post_init__(self) -> None:
        _refuse_negative(self, beta=self.beta, gamma=self.gamma)

    def combinations(self, H: float) -> list[tuple[float, Combination]]:
        beta = 2.0 * H if self.beta is None else self.beta
        gamma = (0.0 if self.beta is not None else H**2) if self.gamma is None else self.gamma
        return [(1.0, Combination(1.0, beta, gamma))]


@dataclass(frozen=True)
class WeightedMultipliers(ConstraintTreatment):
    """Method 2: corrections for each level by itself, then their mean with weights 1, `a`, `b` (Eqs. 177 to 182).

    Index 3: `a = b = 0`; index 2: `b = 0`; index 1: both positive.

    >>> import cosolve as cs
    >>> [weight for weight, _ in cs.WeightedMultipliers(a=1, b=2).combinations(H=1e-3)]
    [0.25, 0.25, 0.5]
    """

    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        _refuse_negative(self, a=self.a, b=self.b)

    def combinations(self, H: float) -> list[tuple[float, Combination]]:
        total = 1.0 + self.a + self.b
        levels = [(1.0, Combination(1.0, 0.0, 0.0)), (self.a, Combination(0.0, 1.0, 0.0))]
        levels.append((self.b, Combination(0.0, 0.0, 1.0)))
        return [(weight / total, level) for weight, level in levels if weight > 0]

    def _instead(self) -> str:
        return "a larger b, or Baumgarte() with its default parameters"


@dataclass(frozen=True)
class StabilisedIndex2(ConstraintTreatment):
    """Method 3: `g = 0` and `g' = 0` together, with a correction `mu` of the positions (Eqs. 184 to 186).

    `relaxation` below 1 mixes in the last accepted values, which damps degrees above 0; `relaxed="multipliers"` leaves
    copies of states out of the mixing (they would limit the order to 1).

    >>> import cosolve as cs
    >>> cs.SemiImplicit(degree=1, constraints=cs.StabilisedIndex2(relaxation=0.9)).constraints.relaxation
    0.9
    """

    relaxation: float = 1.0  # type: ignore[misc]
    relaxed: Literal["all", "multipliers"] = "all"  # type: ignore[misc]

    def __post_init__(self) -> None:
        if not (is_number(self.relaxation) and 0 < self.relaxation <= 1):
            raise SetupError(f"StabilisedIndex2: relaxation must lie in (0, 1], not {self.relaxation!r}")
        choice("StabilisedIndex2", "relaxed", self.relaxed, ("all", "multipliers"))

    def combinations(self, H: float) -> list[tuple[float, Combination]]:
        return [(1.0, Combination(position=1.0, corrected=True))]

    def _instead(self) -> str:
        return "a smaller relaxation such as 0.8"


def _limit_radius(treatment: ConstraintTreatment, degree: int, H: float) -> float:
    nodes = (1.0, *(-float(j) for j in range(degree)))
    powers = np.arange(degree + 1)
    basis = lagrange_weights(nodes)  # basis[j, l]: coefficient of s**j in the polynomial of node l
    by_velocity = (1.0 / (powers + 1)) @ basis  # integral of the input over the step
    by_position = (1.0 / (powers + 1) - 1.0 / (powers + 2)) @ basis  # and of (1 - s) times the input
    # state: position y, velocity w (times H), then past inputs (acceleration, correction) of the newest `degree` nodes
    corrected = treatment.combinations(H)[0][1].corrected
    unknowns = 2 if corrected else 1
    past = max(degree, 1)  # relaxation looks one back even for degree 0
    size = 2 + past * unknowns

    def cross(state: Vector, new: Vector) -> Vector:
        older = state[2:].reshape(past, unknowns)[:degree]
        inputs = np.vstack([new, older]) if degree else new[np.newaxis]
        y = state[0] + state[1] + by_position @ inputs[:, 0]
        if corrected:
            y += by_velocity @ inputs[:, 1]
        w = state[1] + by_velocity @ inputs[:, 0]
        return np.array([y, w, new[0]])  # levels: position, velocity (times H), acceleration (times H**2)

    def rows(combination: Combination, levels: Vector) -> Vector:
        own = combination.weights @ (levels / np.array([1.0, H, H**2]))
        return np.array([own, levels[1]]) if combination.corrected else np.array([own])

    matrix: Matrix = np.zeros((size, size))
    for column in range(size):
        state = np.zeros(size)
        state[column] = 1.0
        new = np.zeros(unknowns)
        for weight, combination in treatment.combinations(H):
            zero = rows(combination, cross(state, np.zeros(unknowns)))
            units = np.eye(unknowns)
            slope = np.array([rows(combination, cross(state, unit)) - zero for unit in units]).T
            new -= weight * np.linalg.solve(slope, zero)
        new = treatment.relaxation * new + (1.0 - treatment.relaxation) * state[2 : 2 + unknowns]
        y, w, _ = cross(state, new)
        matrix[:, column] = np.concatenate([[y, w], new, state[2:-unknowns]])
    return float(np.abs(np.linalg.eigvals(matrix)).max())


def treatment_for(plan: Plan, chosen: ConstraintTreatment | None) -> ConstraintTreatment | None:
    """The treatment a run uses: None without constraints, `Baumgarte()` unless another was chosen."""
    if not plan.constraints:
        return None
    return Baumgarte() if chosen is None else chosen


def variants(plan: Plan, treatment: ConstraintTreatment | None, H: float) -> Sequence[tuple[float, Plan]]:
    """The plans that are solved, with their weights: the plan itself when it has no constraints."""
    if treatment is None:
        return [(1.0, plan)]
    return [(weight, plan.combined(combination)) for weight, combination in treatment.combinations(H)]


def weighted_mean(parts: Sequence[tuple[float, Plan]], solutions: Sequence[Vector]) -> Vector:
    """The mean of the solutions of several interface problems, copies of states included (Eq. 182)."""
    mean = np.zeros_like(solutions[0])
    for (weight, _), z in zip(parts, solutions, strict=True):
        mean += weight * z
    return mean


def refuse_no_treatment(name: str, given: object) -> None:
    """Check the argument `constraints` of a method."""
    if given is not None and not isinstance(given, ConstraintTreatment):
        raise SetupError(
            f"{name}: constraints must be Baumgarte(...), WeightedMultipliers(...) or StabilisedIndex2(...), "
            f"not {given!r}"
        )
