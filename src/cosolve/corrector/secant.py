"""Secant entries of the interface Jacobian (Sicklinger (2014), Algorithm 4.5): slopes from the last two iterates.

Without `pairs` every row is taken to depend on its own variable only: `J_mm = dr_m / dz_m`. A pair `(row, column)` says
that the equation of the variable `row` reads `row - f(column)`, as for two codes that exchange a signal each way; then

    dr_row/dz_row = 1,      dr_row/dz_column = (d r_row - d z_row) / d z_column.

Entries that are known beforehand (of a linear code, say) are given as numbers, `known`, and are taken off first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_number
from cosolve.basics.wording import listed
from cosolve.corrector.algebra.labels import variables_of
from cosolve.corrector.algebra.linear_solve import SPARSE_FROM, Factorised, InterfaceMatrix
from cosolve.corrector.base import Corrector, InterfaceProblem
from cosolve.errors import SetupError

Index = npt.NDArray[np.intp]

#: A variable that moved by less than this fraction of its size says nothing about a slope. A slope that lets it move by
#: no more, though the first one would, came from what other variables did, and is given up.
_FLOOR = 1e-13


class Secant(Corrector):
    """Quasi-Newton method with one secant slope per equation.

    Parameters
    ----------
    pairs : sequence of (str, str), optional
        `(row, column)`: the equation of the coupling variable `row` reads `row - f(column)`. Without pairs every row
        depends on its own variable only. A name stands for a whole field too, entry by entry.
    initial : float, default 1.0
        First slope: of a row by its own variable, or by the variable it is paired with. With pairs, 0 makes the first
        correction a fixed-point iteration.
    carry : bool, default True
        Keep the slopes for the next macro step.
    known : sequence of (str, str, float), optional
        Constant entries `(row, column, value)` of the Jacobian, of a linear subsystem for example.

    Notes
    -----
    Without pairs `J_mm = dr_m / dz_m`. With pairs::

        dr_row/dz_row = 1,      dr_row/dz_column = (d r_row - d z_row) / d z_column,

    with the differences between the last two iterates.

    References
    ----------
    .. [1] S. A. Sicklinger, Stabilized co-simulation of coupled problems including fields and signals, dissertation,
       Technical University of Munich, 2014, Algorithm 4.5.

    Examples
    --------
    >>> import numpy as np
    >>> secant = Secant(initial=1.0)                    # r(z) = z^2 - 2
    >>> secant.start_run(["z"]); secant.start_step()
    >>> z = np.array([1.0])
    >>> for _ in range(7):
    ...     z = secant.correct(z, z**2 - 2.0, None)
    >>> bool(abs(z[0] - 2**0.5) < 1e-12)
    True
    >>> Secant(pairs=[("force", "displacement"), ("displacement", "force")], initial=0.0)
    Secant(pairs=[('force', 'displacement'), ('displacement', 'force')], initial=0)
    """

    def __init__(
        self,
        pairs: Sequence[Sequence[str]] = (),
        initial: float = 1.0,
        carry: bool = True,
        known: Sequence[Sequence[Any]] = (),
    ) -> None:
        self.pairs, self.known = [_pair(given) for given in pairs], [_entry(given) for given in known]
        if not is_number(initial) or (initial == 0 and not (self.pairs or self.known)):
            raise SetupError(f"Secant: initial must be a finite number (other than 0 without pairs), not {initial!r}")
        self.initial, self.carry = float(initial), carry
        self._labels: Sequence[str] = ()

    def __repr__(self) -> str:
        known = f", known={self.known}" if self.known else ""
        return f"Secant(pairs={self.pairs}, initial={self.initial:g}{known})" if self.pairs or known else "Secant()"

    def start_run(self, labels: Sequence[str]) -> None:
        self._labels = labels
        self._rows = self._columns = np.arange(len(labels), dtype=np.intp)
        self._at = np.zeros((2, 0), dtype=np.intp)
        self._given = np.zeros(0)
        if self.pairs or self.known:
            self._rows, self._columns = self._resolved(labels, self.pairs)
            if len(set(self._rows.tolist())) < len(self._rows):
                raise SetupError("Secant: a coupling variable is the first of two pairs; one secant gives one slope")
            self._place_known(labels)
        self._slope = np.full(len(self._rows), self.initial)
        self._last: tuple[Vector, Vector] | None = None

    def start_step(self) -> None:
        self._last = None
        if not self.carry:
            self._slope = np.full(len(self._rows), self.initial)

    def correct(self, z: Vector, r: Vector, problem: InterfaceProblem) -> Vector:
        self._learn(z, r)
        if not (self.pairs or self.known):
            diagonal: Vector = z - r / self._slope
            return diagonal
        return z - Factorised(self._matrix(len(z)), self._labels).solve(r)

    def accept(self, z: Vector, r: Vector) -> None:
        self._learn(z, r)

    def _learn(self, z: Vector, r: Vector) -> None:
        last, self._last = self._last, (z.copy(), r.copy())
        if last is None:
            return
        dz, dr = z - last[0], r - last[1]
        paired = bool(self.pairs or self.known)
        if len(self._given):
            np.subtract.at(dr, self._at[0], self._given * dz[self._at[1]])
        above = (dr - dz)[self._rows] if paired else dr
        below = dz[self._columns]
        known = np.abs(below) > _FLOOR * np.maximum(np.abs(z), np.abs(last[0]))[self._columns]
        slope = np.divide(above, below, out=self._slope.copy(), where=known)
        if not paired:
            stuck = ~known & (np.abs(r / self.initial) > _FLOOR * np.abs(z))
            slope = np.where(stuck, self.initial, np.where(slope == 0, self._slope, slope))
        self._slope = np.where(np.isfinite(slope), slope, self._slope)

    def _matrix(self, n: int) -> InterfaceMatrix:
        if n < SPARSE_FROM:
            J = np.eye(n)
            J[self._rows, self._columns] += self._slope
            np.add.at(J, (self._at[0], self._at[1]), self._given)
            return J
        from scipy.sparse import coo_array, eye_array

        slopes = coo_array((self._slope, (self._rows, self._columns)), shape=(n, n))
        return (eye_array(n) + slopes + coo_array((self._given, (self._at[0], self._at[1])), shape=(n, n))).tocsc()

    def _place_known(self, labels: Sequence[str]) -> None:
        rows, columns, values = list[int](), list[int](), list[float]()
        for row, column, value in self.known:
            some = self._resolved(labels, [(row, column)])
            rows += some[0].tolist()
            columns += some[1].tolist()
            values += [value] * len(some[0])
        found = zip(self._rows.tolist(), self._columns.tolist(), strict=True) if self.pairs else ()
        both = set(found) & set(zip(rows, columns, strict=True))
        if both:
            i, j = both.pop()
            raise SetupError(f"Secant: ('{labels[i]}', '{labels[j]}') is a pair and known; leave one of them out")
        self._at, self._given = np.array([rows, columns], dtype=np.intp), np.array(values)

    def _resolved(self, labels: Sequence[str], pairs: Sequence[tuple[str, str]]) -> tuple[Index, Index]:
        place: dict[str, list[int]] = {}
        for m, (name, label) in enumerate(zip(variables_of(labels), labels, strict=True)):
            place.setdefault(name, []).append(m)
            if label != name:
                place[label] = [m]
        rows: list[int] = []
        columns: list[int] = []
        for pair in pairs:
            for name in pair:
                if name not in place:
                    raise SetupError(f"Secant: pairs name '{name}', but the coupling variables are {listed(place)}")
            row, column = place[pair[0]], place[pair[1]]
            if len(row) != len(column):
                raise SetupError(
                    f"Secant: '{pair[0]}' holds {len(row)} numbers but '{pair[1]}' {len(column)}; pairs are taken "
                    "entry by entry"
                )
            rows += row
            columns += column
        return np.array(rows, dtype=np.intp), np.array(columns, dtype=np.intp)


def _pair(given: object) -> tuple[str, str]:
    if isinstance(given, (tuple, list)) and len(given) == 2 and all(isinstance(name, str) for name in given):
        return given[0], given[1]
    raise SetupError(f"Secant: a pair is (variable of the row, variable it depends on), not {given!r}")


def _entry(given: object) -> tuple[str, str, float]:
    entries = list(given) if isinstance(given, (tuple, list)) else []
    if len(entries) == 3 and is_number(entries[2]):
        return (*_pair(entries[:2]), float(entries[2]))
    raise SetupError(f"Secant: a known entry is (variable of the row, variable it depends on, number), not {given!r}")
