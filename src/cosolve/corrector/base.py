"""The corrector contract: how an interface equation solver finds better coupling variables.

A corrector sees only vectors: the coupling variables `z`, their residual `r`, and, if it asks for it, the interface
Jacobian (which may cost subsystem runs). Methods call, per run, `start_run`; per macro step, `start_step`; then
`correct` once per iteration; and `accept` with the converged pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cosolve.corrector.linear_solve import InterfaceMatrix
from cosolve.subsystem.port import Vector


class Corrector:
    """Base of the interface equation solvers."""

    def start_run(self, labels: Sequence[str]) -> None:
        """Forget everything; `labels` name the coupling variables."""

    def start_step(self) -> None:
        """A new macro step begins."""

    def correct(self, z: Vector, r: Vector, jacobian: Callable[[], InterfaceMatrix]) -> Vector:
        """Better coupling variables, given the residual `r` at `z`."""
        raise NotImplementedError

    def accept(self, z: Vector, r: Vector) -> None:
        """The step was accepted at `z` (accelerators learn from the converged pair too)."""
