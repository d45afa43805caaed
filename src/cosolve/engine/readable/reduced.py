"""The interface problem as a corrector sees it: the coupling variables that can have a residual, and nothing twice."""

from __future__ import annotations

import numpy as np

from cosolve.basics.arrays import Index, Vector
from cosolve.corrector.algebra.linear_solve import InterfaceMatrix
from cosolve.engine.readable.trial import Trial


class Reduced:
    """The trial crossings of one macro step, seen through the `active` coupling variables (all of them: None).

    In a serial sweep only the lagging variables have a residual; the others would only blur the norms and differences
    that correctors work with. A corrector that has tried its last proposal itself (a line search) does not make the
    method cross the step again.
    """

    def __init__(self, trial: Trial, active: Index | None) -> None:
        self.trial, self.active = trial, active
        self._tried: tuple[Vector, Vector] | None = None  # the last crossing: values and full residual

    def of(self, full: Vector) -> Vector:
        """The active entries of a full vector."""
        return full if self.active is None else full[self.active]

    def full_residual(self, z: Vector) -> Vector:
        """All rows of the residual for the active variables `z`."""
        if self._tried is None or not np.array_equal(self._tried[0], z):
            given = z
            if self.active is not None:
                given = self.trial.z.copy()
                given[self.active] = z
            self._tried = None  # in case the crossing fails
            self._tried = z.copy(), self.trial.residual(given)
        return self._tried[1]

    def residual(self, z: Vector) -> Vector:
        """`r(z)`: all subsystems cross the step once more."""
        return self.of(self.full_residual(z))

    def jacobian(self) -> InterfaceMatrix:
        """`dr/dz` at the values whose residual was evaluated last; subsystems do not stay where they were."""
        self._tried = None
        return self.trial.jacobian()
