"""Newton's method on the interface residual: `G dz = -r` (Schweizer and Lu (2014), Eq. 85; Sicklinger (2014), 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import choice
from cosolve.corrector.algebra.linear_solve import Factorised
from cosolve.corrector.base import Corrector, InterfaceProblem
from cosolve.verbs import minus, solved

Refresh = Literal["iteration", "step", "run"]


def newton(m: Any, z: Any, r: Any) -> Any:
    """One correction, in verbs."""
    return minus(m, z, solved(m, r))


class Newton(Corrector):
    """Newton with a Jacobian renewed every `"iteration"`, every `"step"` (simplified) or once a `"run"`.

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
    text = staticmethod(newton)

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
        """`dz` with `G dz = r`."""
        if self._factors is None or self.refresh == "iteration":
            self._factors = Factorised(problem.jacobian(), self._labels)
        return self._factors.solve(r)

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        return z - self.solve(r, problem)
