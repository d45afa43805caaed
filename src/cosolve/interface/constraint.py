"""Constraints between subsystems: conditions on positions with multipliers, and their time derivatives.

A constraint is known at three levels, `g = 0`, `g' = 0` and `g'' = 0`. Which of them, or which sum of them, determines
the multipliers is the business of the method (`method/constraint.py`); here is what every choice has in common
(Lu (2015), 3.1, 3.2.3): rows of the multipliers are `position g + velocity g' + acceleration g''`, rows of the
corrections `mu` are `g'` (stabilised index-2) or `mu = 0` (all others).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.wording import counted, shortened
from cosolve.errors import SetupError

LEVELS = ("position", "velocity", "acceleration")


@dataclass(frozen=True)
class Combination:
    """How the levels of a constraint make up its rows."""

    position: float = 0.0
    velocity: float = 0.0
    acceleration: float = 0.0
    corrected: bool = False  # rows of mu: the velocity level instead of mu = 0

    @property
    def weights(self) -> Vector:
        """Factors of `g`, `g'` and `g''`."""
        return np.array([self.position, self.velocity, self.acceleration])

    @property
    def depth(self) -> int:
        """How many levels it needs."""
        return max(3 * (self.acceleration != 0), 2 * (self.velocity != 0 or self.corrected), 1)


@dataclass(frozen=True)
class Levels:
    """The user's constraint: `function(*outputs) -> (g, g')` or `(g, g', g'')`, each `count` numbers."""

    function: Callable[..., Any]
    jacobian: Callable[..., Any] | None
    count: int
    corrections: int  # 0, or `count` when there are inputs for mu
    name: str

    def values(self, *arguments: Any) -> Matrix:
        """The levels as rows."""
        given = self.function(*arguments)
        try:
            rows = np.array([np.asarray(level, dtype=np.float64).reshape(-1) for level in given])
        except (TypeError, ValueError):
            rows = np.zeros((0, 0))
        if rows.ndim != 2 or rows.shape[0] not in (2, 3) or rows.shape[1] != self.count:
            raise SetupError(
                f"it must return (g, g') or (g, g', g''), each {counted(self.count, 'number')}, not {shortened(given)}"
            )
        return rows

    def rows(self, combination: Combination, mu: Vector, *arguments: Any) -> Vector:
        """The residual rows: multipliers first, then corrections."""
        levels = self._deep_enough(combination, self.values(*arguments))
        own = combination.weights[: len(levels)] @ levels
        return np.concatenate([own, levels[1] if combination.corrected else mu]) if self.corrections else own

    def _deep_enough(self, combination: Combination, levels: Matrix) -> Matrix:
        if len(levels) < combination.depth:
            raise SetupError(
                f"the method asks for the {LEVELS[combination.depth - 1]} level of the constraint '{self.name}', which "
                "is not given; return (g, g', g'') with accelerations among the outputs, or use "
                "Baumgarte(beta=..., gamma=0) or StabilisedIndex2"
            )
        if combination.corrected and not self.corrections:
            raise SetupError(
                f"the constraint '{self.name}' has no correction inputs, which StabilisedIndex2 needs; give "
                "correction={'mu': inputs of the position equations}, or use Baumgarte or WeightedMultipliers"
            )
        return levels

    def row_jacobian(self, combination: Combination, size: int, *arguments: Any) -> Matrix | None:
        """Derivatives of the rows by the arguments (`size` numbers), or None when they must be differenced."""
        if self.jacobian is None:
            return None
        given = np.asarray(self.jacobian(*arguments), dtype=np.float64)
        if given.ndim == 2:
            given = given.reshape(-1, self.count, size)
        if given.shape not in ((2, self.count, size), (3, self.count, size)):
            raise SetupError(
                f"the Jacobian of the constraint '{self.name}' has shape {given.shape}; expected "
                f"(levels, {self.count}, {size})"
            )
        own = np.tensordot(combination.weights[: len(given)], given, axes=1)
        if not self.corrections:
            return np.asarray(own)
        return np.concatenate([own, given[1] if combination.corrected else np.zeros_like(own)])
