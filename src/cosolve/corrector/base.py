"""The corrector contract: how an interface equation solver finds better coupling variables.

A corrector sees only vectors: the coupling variables `z`, their residual `r`, and the interface problem, which it may
ask for the Jacobian or for the residual at other values (both cost subsystem runs). Methods call, per run, `start_run`;
per macro step, `start_step`; then `correct` once per iteration; and `accept` with the converged pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from cosolve.basics.arrays import Vector
from cosolve.corrector.algebra.linear_solve import InterfaceMatrix


class InterfaceProblem(Protocol):
    """The interface equations `r(z) = 0` of one macro step, as a corrector sees them."""

    def residual(self, z: Vector) -> Vector:
        """`r(z)`: all subsystems cross the step once more."""
        ...

    def jacobian(self) -> InterfaceMatrix:
        """`dr/dz` at the values whose residual was evaluated last."""
        ...


class Corrector:
    """Base of the interface equation solvers."""

    #: True when `correct` asks for the Jacobian, which only parallel (Jacobi) sweeps have
    uses_jacobian: bool = False
    #: `correct` in the verbs of `verbs.py`, `text(m, z, r)`, where it can be said so; compiled engines need it
    text: Callable[..., Any] | None = None
    #: how long a Jacobian is used, see `Newton`
    refresh: str = "iteration"

    def start_run(self, labels: Sequence[str]) -> None:
        """Forget everything; `labels` name the coupling variables."""

    def start_step(self) -> None:
        """A new macro step begins."""

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        """Better coupling variables, given the residual `r` at `z`."""
        raise NotImplementedError

    def accept(self, z: Vector, r: Vector) -> None:
        """The step was accepted at `z` (accelerators learn from the converged pair too)."""
