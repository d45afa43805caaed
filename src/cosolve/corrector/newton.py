"""Newton's method on the interface residual: `G dz = -r` (Schweizer and Lu (2014), Eq. 85; Sicklinger (2014), 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import choice
from cosolve.corrector.algebra.linear_solve import Factorised
from cosolve.corrector.base import Corrector, InterfaceProblem
from cosolve.operations import minus, newton_step

Refresh = Literal["iteration", "step", "run"]


def newton(m: Any, z: Any, r: Any) -> Any:
    """One correction, in operations."""
    return minus(m, z, newton_step(m, r))


class Newton(Corrector):
    """Newton's method on the interface residual.

    Parameters
    ----------
    refresh : {"iteration", "step", "run"}, default "iteration"
        When a new Jacobian is computed: in every iteration, once per macro step (simplified Newton), or once per run.
        `Implicit` uses "step" by default.

    Raises
    ------
    SingularInterfaceError
        During a run, if the Jacobian is singular.

    Notes
    -----
    `z <- z - dz` with `G dz = r` and the interface Jacobian `G = dr/dz`.

    References
    ----------
    .. [1] B. Schweizer, D. Lu, Semi-implicit co-simulation approach for solver coupling, Archive of Applied Mechanics
       84, 2014, Eq. 85.
    .. [2] S. A. Sicklinger, Stabilized co-simulation of coupled problems including fields and signals, dissertation,
       Technical University of Munich, 2014, 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> class Line:                                     # r(z) = 2 z - 2
    ...     def jacobian(self):
    ...         return np.array([[2.0]])
    >>> newton = Newton()
    >>> newton.start_run(["z"])
    >>> newton.start_step()
    >>> float(newton.correct(np.array([3.0]), np.array([4.0]), Line())[0])
    1.0
    """

    uses_jacobian: bool = True
    step_function = staticmethod(newton)

    def __init__(self, refresh: Refresh = "iteration") -> None:
        choice("Newton", "refresh", refresh, ("iteration", "step", "run"))
        self.refresh = refresh
        self._labels: Sequence[str] = ()
        self._factors: Factorised | None = None

    def __repr__(self) -> str:
        return f"Newton(refresh={self.refresh!r})"

    def start_run(self, labels: Sequence[str]) -> None:
        self._labels, self._factors = labels, None

    def start_step(self) -> None:
        if self.refresh != "run":
            self._factors = None

    def solve(self, r: Vector, problem: InterfaceProblem) -> Vector:
        """Solve with the interface Jacobian.

        Parameters
        ----------
        r : ndarray
            Residual.
        problem : InterfaceProblem
            Gives the Jacobian if a new one is due.

        Returns
        -------
        ndarray
            `dz` with `G dz = r`.
        """
        if self._factors is None or self.refresh == "iteration":
            self._factors = Factorised(problem.jacobian(), self._labels)
        return self._factors.solve(r)

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        return z - self.solve(r, problem)
