"""The interface equations as a corrector sees them: the coupling variables that can have a residual, nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cosolve.basics.arrays import Index, Vector
from cosolve.corrector.algebra.linear_solve import InterfaceMatrix
from cosolve.method.explicit import serial_sweep

if TYPE_CHECKING:
    from cosolve.engine.python.executor import StepExecutor


class InterfaceEquations:
    """The subsystem steps in one macro step, seen through the `active` coupling variables (all of them: None).

    In a serial sweep only the lagging variables have a residual; the others would only blur the norms and differences
    that correctors work with.
    """

    def __init__(self, executor: StepExecutor, active: Index | None) -> None:
        self.executor, self.active = executor, active

    def of(self, full: Vector) -> Vector:
        """The active entries of a full vector."""
        return full if self.active is None else full[self.active]

    def of_labels(self, labels: Sequence[str]) -> Sequence[str]:
        """The labels of the active entries."""
        return labels if self.active is None else [labels[m] for m in self.active]

    def whole(self, z: Vector) -> Vector:
        """A full vector with these active entries; the others are what they were in the last subsystem step."""
        if self.active is None:
            return z
        full = self.executor.z.copy()
        full[self.active] = z
        return full

    def residual(self, z: Vector) -> Vector:
        """`r(z)`: all subsystems advance over the step once more, the way they did before."""
        m, full = self.executor, self.whole(z)
        if not m.already_evaluated(full):
            m.rollback()
            if self.active is None:
                m.sweep(m.ending_in(full))
            else:
                serial_sweep(m, m.ending_in(full))
                full = m.end_values(full)
            m.keep_end()
        return self.of(m.residual(m.z))

    def jacobian(self) -> InterfaceMatrix:
        """`dr/dz` at the values whose residual was evaluated last; subsystems do not stay where they were."""
        return self.executor.jacobian()
