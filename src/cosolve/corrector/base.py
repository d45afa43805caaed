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
    """The interface equations `r(z) = 0` of one macro step, as a corrector sees them.

    Notes
    -----
    Both methods cost subsystem steps.

    Examples
    --------
    >>> import numpy as np
    >>> class Toy:                                          # what a test hands to a corrector
    ...     def residual(self, z):
    ...         return 2.0 * z - 2.0
    ...     def jacobian(self):
    ...         return np.array([[2.0]])
    >>> problem: InterfaceProblem = Toy()
    """

    def residual(self, z: Vector) -> Vector:
        """Evaluate the residual; all subsystems advance over the step once more.

        Parameters
        ----------
        z : ndarray
            Coupling variables at the end of the step.

        Returns
        -------
        ndarray
            `r(z)`, one entry per coupling variable.
        """

    def jacobian(self) -> InterfaceMatrix:
        """Compute the interface Jacobian `dr/dz` at the values whose residual was evaluated last.

        Returns
        -------
        ndarray or sparse matrix
            Shape (n, n) for n coupling variables.
        """


class Corrector:
    """Base class of the solvers of the interface equations `r(z) = 0`.

    Attributes
    ----------
    uses_jacobian : bool
        True if `correct` asks for the Jacobian, which only parallel (Jacobi) sweeps have.
    step_function : callable or None
        `correct` in the operations of `cosolve.operations`, `step_function(m, z, r)`. Without it the method runs in the
        Python engine.
    refresh : str
        How long a Jacobian is used, see `Newton`.

    Notes
    -----
    1. `start_run` is called once per run, `start_step` once per macro step.
    2. `correct` is called once per iteration, with the residual of the newest coupling variables.
    3. `accept` is called with the converged pair.
    4. `correct` may ask the problem for the Jacobian or for residuals elsewhere; both cost subsystem steps.

    Examples
    --------
    >>> import numpy as np
    >>> import cosolve as cs
    >>> class Half(cs.Corrector):
    ...     def correct(self, z, r, problem):
    ...         return z - 0.5 * r
    >>> float(Half().correct(np.array([3.0]), np.array([4.0]), None)[0])
    1.0
    """

    # True when `correct` asks for the Jacobian, which only parallel (Jacobi) sweeps have
    uses_jacobian: bool = False
    # `correct` in the operations of `operations.py`, `step_function(m, z, r)`, where it can be said so; compiled
    # engines need it
    step_function: Callable[..., Any] | None = None
    # how long a Jacobian is used, see `Newton`
    refresh: str = "iteration"

    def start_run(self, labels: Sequence[str]) -> None:
        """Forget everything at the start of a run.

        Parameters
        ----------
        labels : sequence of str
            Names of the coupling variables, one per entry of `z`.
        """

    def start_step(self) -> None:
        """Prepare for a new macro step."""

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        """Return better coupling variables.

        Parameters
        ----------
        z : ndarray
            The newest coupling variables.
        r : ndarray
            Their residual.
        problem : InterfaceProblem
            The interface equations, to evaluate elsewhere.

        Returns
        -------
        ndarray
            Coupling variables for the next iteration.
        """
        raise NotImplementedError

    def accept(self, z: Vector, r: Vector) -> None:
        """Learn from the converged pair.

        Parameters
        ----------
        z : ndarray
            Accepted coupling variables.
        r : ndarray
            Their residual.
        """
