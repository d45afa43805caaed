"""Aitken's dynamic relaxation (Sicklinger (2014), 2.2.2, Algorithm 2.1): the factor follows from two residuals.

The secant through the last two iterates gives the next factor: exact after two evaluations for a linear scalar problem,
a linear rate in general. The vector form has one factor for all and therefore wants a residual of one physical kind; it
shines in serial sweeps with one field that lags.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import nonzero
from cosolve.corrector.base import Corrector, InterfaceProblem
from cosolve.errors import SetupError

#: Differences of residuals below this fraction of the residual itself say nothing about the slope.
_VANISHING = 1e-13


class Aitken(Corrector):
    """Aitken's dynamic relaxation.

    Parameters
    ----------
    initial : float, default 0.1
        Relaxation factor at the start of a macro step; not 0.
    vector : bool, default True
        One factor for all coupling variables, which should then be of one physical kind. False gives every coupling
        variable its own.
    carry : bool or "smaller", default False
        Which factor a macro step starts with. False: `initial`. True: the last one of the step before. "smaller": the
        last one of the step before, unless `initial` is smaller in magnitude (its sign is kept).

    Notes
    -----
    Formula::

        z <- z - alpha r,      alpha <- alpha r_old^T (r_old - r) / |r_old - r|^2

    A factor that the residuals do not determine keeps its value. Linear scalar problems converge after two evaluations.

    References
    ----------
    .. [1] B. M. Irons, R. C. Tuck, A version of the Aitken accelerator for computer iteration, International Journal
       for Numerical Methods in Engineering 1(3), 1969.
    .. [2] S. A. Sicklinger, Stabilized co-simulation of coupled problems including fields and signals, dissertation,
       Technical University of Munich, 2014, Algorithm 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> aitken = Aitken(initial=0.5)
    >>> aitken.start_run(["z"]); aitken.start_step()
    >>> z = np.array([2.0])
    >>> for _ in range(3):                              # r(z) = 4 z - 4
    ...     r = 4.0 * z - 4.0
    ...     print(float(r[0]))
    ...     z = aitken.correct(z, r, None)
    4.0
    -4.0
    0.0
    """

    def __init__(self, initial: float = 0.1, vector: bool = True, carry: bool | Literal["smaller"] = False) -> None:
        if carry not in (True, False, "smaller"):
            raise SetupError(f"Aitken: carry is True, False or 'smaller', not {carry!r}")
        self.initial, self.vector, self.carry = nonzero("Aitken", "initial", initial), vector, carry
        self._factor: Vector = np.array([self.initial])
        self._r: Vector | None = None

    def __repr__(self) -> str:
        return f"Aitken(initial={self.initial:g}, vector={self.vector}, carry={self.carry!r})"

    def start_run(self, labels: Sequence[str]) -> None:
        self._factor, self._r = np.full(1 if self.vector else len(labels), self.initial), None

    def start_step(self) -> None:
        self._r = None
        if not self.carry:
            self._factor = np.full_like(self._factor, self.initial)
        elif self.carry == "smaller":
            self._factor = np.copysign(np.minimum(abs(self.initial), np.abs(self._factor)), self._factor)

    @property
    def factor(self) -> Vector:
        """The factor used last: one number, or one per coupling variable."""
        return self._factor

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        if self._r is not None:
            self._factor = self._improved(self._r, r)
        self._r = r.copy()
        return z - self._factor * r

    def _improved(self, old: Vector, r: Vector) -> Vector:
        """The factor by which the last one would have been right."""
        change = old - r
        _, power = np.frexp(max(np.abs(old).max(initial=0.0), np.abs(change).max(initial=0.0)))
        old, change = np.ldexp(old, -power), np.ldexp(change, -power)  # so that no square leaves the range of numbers
        if self.vector:
            above, below = np.array([old @ change]), np.array([change @ change])
            size = np.array([old @ old])
        else:
            above, below, size = old * change, change * change, old * old
        known = (below > _VANISHING**2 * size) & (above != 0)
        ratio = np.divide(above, below, out=np.ones_like(above), where=known)
        factor: Vector = self._factor * ratio
        return factor
