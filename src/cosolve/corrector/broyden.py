"""Broyden's "good" update (Sicklinger (2014), Eq. 2.67, Algorithm 2.3), direct and inverse.

Direct, with `dz`, `dr` between the last two iterates:      J <- J + (dr - J dz) dz^T / |dz|^2
Inverse (Sherman-Morrison; the old inverse everywhere):     J^-1 <- J^-1 + (dz - J^-1 dr) dz^T J^-1 / (dz^T J^-1 dr)

The inverse is kept as `(I + U V^T) J0^-1` with few columns, so it serves fields as well as signals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import choice, is_number, whole
from cosolve.basics.scale import to_unit
from cosolve.corrector.algebra.linear_solve import Factorised
from cosolve.corrector.algebra.low_rank import LowRank
from cosolve.corrector.base import Corrector, InterfaceProblem
from cosolve.errors import SetupError

#: The direct form holds a dense matrix; more coupling variables than this go to the inverse form.
_DIRECT_UP_TO = 2000

#: Updates with a denominator below this fraction of what it could be would make the matrix singular.
_VANISHING = 1e-12


class Broyden(Corrector):
    """Broyden's "good" method.

    Parameters
    ----------
    initial : float or "exact", default 1.0
        The first Jacobian is `I / initial`, or the interface Jacobian of the problem with "exact".
    carry : bool, default True
        Keep the Jacobian for the next macro step; otherwise each step starts from `initial`.
    form : {"inverse", "direct"}, default "inverse"
        "inverse" updates the inverse with few columns and serves fields as well; "direct" updates a dense Jacobian, for
        at most 2000 coupling variables.
    rank : int, default 100
        Largest number of columns of the "inverse" form; those with the largest singular values are kept.

    Notes
    -----
    With the differences `dz`, `dr` between the last two iterates::

        J <- J + (dr - J dz) dz^T / |dz|^2.

    References
    ----------
    .. [1] C. G. Broyden, A class of methods for solving nonlinear simultaneous equations, Mathematics of Computation
       19(92), 1965.
    .. [2] S. A. Sicklinger, Stabilized co-simulation of coupled problems including fields and signals, dissertation,
       Technical University of Munich, 2014, Algorithm 2.3.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[2.0, 1.0], [0.0, 1.0]])          # r(z) = A z - (1, 1)
    >>> broyden = Broyden()
    >>> broyden.start_run(["a", "b"]); broyden.start_step()
    >>> z = np.zeros(2)
    >>> for _ in range(5):
    ...     z = broyden.correct(z, A @ z - 1.0, None)
    >>> bool(np.allclose(A @ z, 1.0))
    True
    """

    def __init__(
        self,
        initial: float | Literal["exact"] = 1.0,
        carry: bool = True,
        form: Literal["inverse", "direct"] = "inverse",
        rank: int = 100,
    ) -> None:
        exact = isinstance(initial, str) and initial == "exact"
        if not exact and not (is_number(initial) and initial != 0):
            raise SetupError(
                f"Broyden: initial must be 'exact' or a finite number other than 0 (J = I / initial), not {initial!r}"
            )
        choice("Broyden", "form", form, ("inverse", "direct"))
        rank = whole("Broyden", "rank", rank)
        self.initial, self.carry, self.form, self.rank = initial, carry, form, int(rank)
        self.uses_jacobian = initial == "exact"
        self._begin(())

    def __repr__(self) -> str:
        return f"Broyden(initial={self.initial!r}, carry={self.carry}, form={self.form!r})"

    def _begin(self, labels: Sequence[str]) -> None:
        self._labels = labels
        self._known = False
        self._last: tuple[Vector, Vector] | None = None

    def start_run(self, labels: Sequence[str]) -> None:
        if self.form == "direct" and len(labels) > _DIRECT_UP_TO:
            raise SetupError(
                f"Broyden: form='direct' holds a dense {len(labels)} x {len(labels)} matrix; use form='inverse' from "
                f"{_DIRECT_UP_TO} coupling variables on"
            )
        self._begin(labels)

    def start_step(self) -> None:
        self._last = None
        if not self.carry:
            self._known = False

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        if not self._known:
            self._initialise(problem)
        self._learn(z, r)
        if self.form == "direct":
            return z - Factorised(self._J, self._labels).solve(r)
        return z - self._solve(r)

    def accept(self, z: Vector, r: Vector) -> None:
        if self._known:
            self._learn(z, r)

    def _initialise(self, problem: InterfaceProblem) -> None:
        n = len(self._labels)
        exact = problem.jacobian() if self.initial == "exact" else None
        if self.form == "direct":
            self._J: Matrix = np.eye(n) / float(self.initial) if exact is None else _dense(exact)
        else:
            self._J0 = None if exact is None else Factorised(exact, self._labels)
            self._update = LowRank(n, self.rank)
        self._known = True

    def _solve(self, r: Vector) -> Vector:
        """`J^-1 r` of the inverse form."""
        start = float(self.initial) * r if self._J0 is None else self._J0.solve(r)
        return start + self._update @ start

    def _learn(self, z: Vector, r: Vector) -> None:
        last, self._last = self._last, (z.copy(), r.copy())
        if last is None:
            return
        dz, dr = z - last[0], r - last[1]
        unit = to_unit(dz)
        dz, dr = dz * unit, dr * unit
        square = float(dz @ dz)
        if not square > 0 or not np.isfinite(dr).all():
            return
        if self.form == "direct":
            self._J = self._J + np.outer(dr - self._J @ dz, dz) / square
            return
        s = self._solve(dr)
        below = float(dz @ s)
        if abs(below) > _VANISHING * square:
            self._update.add((dz - s) / below, dz + self._update.transposed(dz))


def _dense(G: Matrix) -> Matrix:
    return G.copy() if isinstance(G, np.ndarray) else np.asarray(G.todense())
