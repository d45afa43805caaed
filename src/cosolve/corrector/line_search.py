"""Globalisation: any corrector with a line search that halves its step until the residual decreases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import whole
from cosolve.corrector.base import Corrector, InterfaceProblem
from cosolve.errors import SetupError, SubsystemError

#: The decrease that counts, as a fraction of what a linear problem would give (Armijo's rule).
_ENOUGH = 1e-4


class LineSearch(Corrector):
    """Line search around another corrector: halve its step until the residual norm decreases.

    Parameters
    ----------
    corrector : Corrector
        Gives the direction.
    halvings : int, default 20
        Largest number of halvings. After that the shortest step is taken as it is.

    Notes
    -----
    A step decreases the norm if `|r(z + s dz)| < (1 - 1e-4 s) |r(z)|` (Armijo's rule). Values where a subsystem fails
    count as no decrease. Every trial costs one subsystem step of all subsystems.

    Examples
    --------
    >>> import numpy as np
    >>> class Arctan:                                   # Newton alone diverges from |z| > 1.39
    ...     def residual(self, z):
    ...         self.z = z
    ...         return np.arctan(z)
    ...     def jacobian(self):
    ...         return np.diag(1.0 / (1.0 + self.z**2))
    >>> import cosolve as cs
    >>> problem, solver, z = Arctan(), LineSearch(cs.Newton()), np.array([10.0])
    >>> solver.start_run(["z"])
    >>> for _ in range(13):
    ...     z = solver.correct(z, problem.residual(z), problem)
    >>> abs(float(z[0])) < 1e-12
    True
    """

    def __init__(self, corrector: Corrector, halvings: int = 20) -> None:
        if not isinstance(corrector, Corrector):
            raise SetupError(f"LineSearch: corrector must be a Corrector such as Newton(), not {corrector!r}")
        self.corrector, self.halvings = corrector, whole("LineSearch", "halvings", halvings)
        self.uses_jacobian, self.refresh = corrector.uses_jacobian, corrector.refresh

    def __repr__(self) -> str:
        return f"LineSearch({self.corrector!r}, halvings={self.halvings})"

    def start_run(self, labels: Sequence[str]) -> None:
        self.corrector.start_run(labels)

    def start_step(self) -> None:
        self.corrector.start_step()

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        step = self.corrector.correct(z, r, problem) - z
        now = float(np.linalg.norm(r))
        fraction = 1.0
        for _ in range(self.halvings):
            if _norm_at(z + step, problem) < (1.0 - _ENOUGH * fraction) * now:
                break
            step, fraction = 0.5 * step, 0.5 * fraction
        return z + step

    def accept(self, z: Vector, r: Vector) -> None:
        self.corrector.accept(z, r)


def _norm_at(z: Vector, problem: InterfaceProblem) -> float:
    try:
        return float(np.linalg.norm(problem.residual(z)))
    except SubsystemError:
        return np.inf
