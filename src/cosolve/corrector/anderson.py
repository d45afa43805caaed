"""Anderson acceleration (Anderson 1965; type II of Fang and Saad 2009, Eq. 24) of the relaxed fixed-point iteration.

    z <- z - beta r - (dZ - beta dR) c,      c = argmin |r - dR c|
"""

from __future__ import annotations

from collections.abc import Sequence

from cosolve.corrector.base import Corrector, InterfaceProblem
from cosolve.corrector.secants import Balance, Secants, is_count, refuse_bad_options
from cosolve.errors import SetupError
from cosolve.subsystem.port import Vector, is_number


class Anderson(Corrector):
    """Combine the last `depth` differences so that the residual becomes smallest, then relax by `mixing`.

    Every step begins anew with a relaxation by `initial`; `carry=True` keeps the differences of the steps before.
    Columns that depend on newer ones to `filter_tol` are dropped.

    >>> import numpy as np
    >>> A = np.array([[3.0, 1.0], [0.0, 2.0]])          # r(z) = A z - (1, 1)
    >>> anderson = Anderson(depth=2)
    >>> anderson.start_run(["a", "b"]); anderson.start_step()
    >>> z = np.zeros(2)
    >>> for _ in range(4):
    ...     z = anderson.correct(z, A @ z - 1.0, None)
    >>> bool(np.allclose(A @ z, 1.0))
    True
    """

    def __init__(
        self,
        depth: int = 10,
        mixing: float = 1.0,
        initial: float = 0.1,
        carry: bool = False,
        filter_tol: float = 1e-6,
    ) -> None:
        if not is_count(depth, 1):
            raise SetupError(f"Anderson: depth must be a whole number from 1, not {depth!r}")
        if not (is_number(mixing) and mixing != 0):
            raise SetupError(f"Anderson: mixing must be a finite number other than 0, not {mixing!r}")
        refuse_bad_options("Anderson", initial, filter_tol, depth)
        self.depth, self.mixing, self.initial = int(depth), float(mixing), float(initial)
        self.carry, self.filter_tol = carry, filter_tol
        self.start_run(())

    def __repr__(self) -> str:
        return f"Anderson(depth={self.depth}, mixing={self.mixing:g}, initial={self.initial:g}, carry={self.carry})"

    def start_run(self, labels: Sequence[str]) -> None:
        self._secants = Secants(len(labels), self.depth, self.filter_tol)
        self._balance = Balance(labels)
        self._last: tuple[Vector, Vector] | None = None

    def start_step(self) -> None:
        self._last = None
        self._secants.next_step(self.depth if self.carry else 0)

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        self._learn(z, r)
        if not len(self._secants):
            return z - self.initial * r
        c = self._secants.fit(r)
        return z - self._secants.dz(c) - self.mixing * (r - self._secants.dr(c))

    def accept(self, z: Vector, r: Vector) -> None:
        self._learn(z, r)

    def _learn(self, z: Vector, r: Vector) -> None:
        if self._last is None:
            weight = self._balance.new_weight()
            if weight is not None:
                self._secants.weigh(weight)
        else:
            self._secants.add(r - self._last[1], z - self._last[0])
        self._balance.learn(r)
        self._last = z.copy(), r.copy()
