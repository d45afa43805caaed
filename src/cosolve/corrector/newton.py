"""Newton's method on the interface residual: `G dz = -r` (Schweizer and Lu (2014), Eq. 85; Sicklinger (2014), 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from cosolve.basics.arrays import Vector
from cosolve.corrector.algebra.linear_solve import Factorised
from cosolve.corrector.base import Corrector, InterfaceProblem
from cosolve.errors import SetupError

Refresh = Literal["iteration", "step", "run"]


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

    def __init__(self, refresh: Refresh = "iteration") -> None:
        if refresh not in ("iteration", "step", "run"):
            raise SetupError(f"Newton: refresh must be 'iteration', 'step' or 'run', not {refresh!r}")
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

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        if self._factors is None or self.refresh == "iteration":
            self._factors = Factorised(problem.jacobian(), self._labels)
        return z - self._factors.solve(r)
