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
from cosolve.basics.checks import choice, is_number, not_negative
from cosolve.errors import SetupError, StabilityWarning, warn
from cosolve.interface.constraint import Combination
from cosolve.interface.plan import Plan
from cosolve.signal.polynomial import lagrange_weights

#: Radii this close to 1 count as marginal.
_MARGIN = 1e-6


@dataclass(frozen=True)
class ConstraintTreatment:
    """Base class of the treatments of algebraic constraints.

    Parameters
    ----------
    allow_unstable : bool, default False
        Run combinations of treatment and degree whose constraint errors are known to grow. Otherwise they are refused.

    Attributes
    ----------
    relaxation : float
        Weight of the new coupling variables when they are mixed with those of the last macro point; 1 is no mixing.
    relaxed : {"all", "multipliers"}
        Which coupling variables are mixed.

    Notes
    -----
    Applied to a free double integrator, a treatment gives a linear recurrence for the error of the constraint, whatever
    the subsystems are, as the step goes to zero. `limit_radius` is its spectral radius.

    Examples
    --------
    >>> import cosolve as cs
    >>> isinstance(cs.Baumgarte(), cs.ConstraintTreatment)
    True
    """

    allow_unstable: bool = field(default=False, kw_only=True, repr=False)

    # a share of the last accepted values that stays: 1 keeps nothing
    relaxation: ClassVar[float] = 1.0
    relaxed: ClassVar[str] = "all"

    def combinations(self, H: float) -> list[tuple[float, Combination]]:
        """Return the interface problems whose solutions are averaged.

        Parameters
        ----------
        H : float
            Length of the macro step in seconds.

        Returns
        -------
        list of (float, Combination)
            Weights, which add up to 1, and combinations of the levels `g`, `g'` and `g''` of the constraint.
        """
        raise NotImplementedError

    def relax(self, plan: Plan, z: Vector, last: Vector) -> Vector:
        """Mix coupling variables with those of the last macro point.

        Parameters
        ----------
        plan : Plan
            The compiled system.
        z : ndarray
            Corrected coupling variables.
        last : ndarray
            Accepted coupling variables of the last macro point.

        Returns
        -------
        ndarray
            `relaxation * z + (1 - relaxation) * last` for the entries that are mixed (Lu (2015), Eq. 186).
        """
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
        """Compute the factor by which a constraint error grows per macro step as the step goes to zero.

        Parameters
        ----------
        degree : int
            Degree of the coupling variables.
        step : float, default 1.0
            Length of the macro step in seconds. Only ratios such as `beta / step` matter.

        Returns
        -------
        float
            The spectral radius; below 1 errors decay.

        Examples
        --------
        >>> import cosolve as cs
        >>> round(cs.Baumgarte(beta=0.4, gamma=0).limit_radius(degree=1), 4)
        1.8669
        >>> round(cs.StabilisedIndex2(relaxation=0.9).limit_radius(degree=0), 4)
        0.3162
        """
        return _limit_radius(self, degree, step)

    def refuse_unstable(self, degree: int, H: float) -> None:
        """Raise an error if constraint errors grow as the step goes to zero; warn if they neither grow nor decay.

        Parameters
        ----------
        degree : int
            Degree of the coupling variables.
        H : float
            Length of the macro step in seconds.

        Raises
        ------
        SetupError
            If they grow, unless `allow_unstable`.
        """
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
        if value is not None:
            not_negative(type(treatment).__name__, name, value)


@dataclass(frozen=True)
class Baumgarte(ConstraintTreatment):
    """Baumgarte stabilisation: `g + beta g' + gamma g'' = 0` at the end of every macro step.

    Parameters
    ----------
    beta : float or None, default None
        Weight of the constraint at velocity level, in seconds. None is `2 H` with the macro step `H`.
    gamma : float or None, default None
        Weight at acceleration level, in seconds squared. None is `H**2` if `beta` is None too, else 0.
    allow_unstable : bool, default False
        See `ConstraintTreatment`.

    Notes
    -----
    Index 3: both 0. Index 2: `gamma=0`. Index 1: both positive. The defaults are critically damped and stable for
    degrees 0 to 3. Large values cost accuracy, with degree 0 an order.

    References
    ----------
    .. [1] D. Lu, Semi-implizite Co-Simulationsverfahren, dissertation, Technical University of Darmstadt, 2015, Eqs.
       103 and 174 (method 1).
    .. [2] J. Baumgarte, Stabilization of constraints and integrals of motion in dynamical systems, Computer Methods in
       Applied Mechanics and Engineering 1(1), 1972.

    Examples
    --------
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
    """Weighted multipliers: one correction for each level of the constraint, then their weighted mean.

    Parameters
    ----------
    a : float, default 1.0
        Weight of the correction from `g' = 0`, relative to that from `g = 0`.
    b : float, default 1.0
        Weight of the correction from `g'' = 0`, relative to that from `g = 0`.
    allow_unstable : bool, default False
        See `ConstraintTreatment`.

    Notes
    -----
    Index 3: `a = b = 0`. Index 2: `b = 0`. Index 1: both positive.

    References
    ----------
    .. [1] D. Lu, Semi-implizite Co-Simulationsverfahren, dissertation, Technical University of Darmstadt, 2015, Eqs.
       177 to 182 (method 2).

    Examples
    --------
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
    """Stabilised index 2: `g = 0` and `g' = 0` together, with a second multiplier in the position equations.

    Parameters
    ----------
    relaxation : float, default 1.0
        Weight of the new values, in (0, 1]. Below 1 the values of the last macro point are mixed in, which damps
        degrees above 0.
    relaxed : {"all", "multipliers"}, default "all"
        Which coupling variables are mixed. Mixing copies of states limits the order to 1; "multipliers" leaves them
        out.
    allow_unstable : bool, default False
        See `ConstraintTreatment`.

    References
    ----------
    .. [1] D. Lu, Semi-implizite Co-Simulationsverfahren, dissertation, Technical University of Darmstadt, 2015, Eqs.
       184 to 186 (method 3).
    .. [2] C. W. Gear, G. K. Gupta, B. Leimkuhler, Automatic integration of Euler-Lagrange equations with constraints,
       Journal of Computational and Applied Mathematics 12-13, 1985.

    Examples
    --------
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

    def advance(state: Vector, new: Vector) -> Vector:
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
            zero = rows(combination, advance(state, np.zeros(unknowns)))
            units = np.eye(unknowns)
            slope = np.array([rows(combination, advance(state, unit)) - zero for unit in units]).T
            new -= weight * np.linalg.solve(slope, zero)
        new = treatment.relaxation * new + (1.0 - treatment.relaxation) * state[2 : 2 + unknowns]
        y, w, _ = advance(state, new)
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
