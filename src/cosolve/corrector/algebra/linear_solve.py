"""Solving with the interface Jacobian: dense when small, sparse when large, and a sentence when it is singular."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from cosolve.basics.arrays import Vector, all_finite
from cosolve.basics.lu import RCOND, largest, lu_factor, lu_solve, splu
from cosolve.basics.wording import listed
from cosolve.errors import SingularInterfaceError

#: Interface sizes from which the Jacobian is held and factorised sparse.
SPARSE_FROM = 100

InterfaceMatrix: TypeAlias = Any  # a dense array, or a scipy sparse CSC array

#: Up to this size a singular sparse Jacobian is looked at again as a dense one, to name the variables.
_NAMED_UP_TO = 3000


class Factorised:
    """LU factors of an interface Jacobian, scaled row- and column-wise first because its units are mixed.

    >>> import numpy as np
    >>> Factorised(np.array([[1e9, 0.0], [0.0, 1e-9]]), ["force", "angle"]).solve(np.array([1e9, 1e-9]))
    array([1., 1.])
    """

    def __init__(self, G: InterfaceMatrix, labels: Sequence[str]) -> None:
        self.labels = labels
        self._sparse = not isinstance(G, np.ndarray)
        if not all_finite(G.data if self._sparse else G.reshape(-1)):
            raise self._singular(f"it holds a NaN or an infinity {self._first_bad(G)}")
        size = abs(G)
        rows, columns = largest(size, 1), largest(size, 0)
        if 0.0 in rows.tolist():
            raise self._singular(
                f"the equation of '{labels[int(np.argmin(rows))]}' does not react to any coupling variable"
            )
        if 0.0 in columns.tolist():
            raise self._singular(f"no equation reacts to the coupling variable '{labels[int(np.argmin(columns))]}'")
        if self._sparse:
            self._factor_sparse(G, rows)
        else:
            self._factor_dense(G, size, columns)

    def __deepcopy__(self, memo: dict[int, Any]) -> Factorised:
        return self  # never changes; and LAPACK and SuperLU objects cannot be copied

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "_splu"}
        scaled = state.pop("_scaled", None)
        if self._sparse:
            state["csc"] = (scaled.data, scaled.indices, scaled.indptr, scaled.shape)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        csc = state.pop("csc", None)
        vars(self).update(state)
        if csc is not None:
            from scipy.sparse import csc_array

            self._scaled = csc_array(csc[:3], shape=csc[3])
            self._splu = splu(self._scaled)  # the same matrix has the same factors

    def _factor_dense(self, G: Any, size: Any, columns: Any) -> None:
        rows = largest(size / columns, 1)  # equilibration(G)
        scaled = G / rows[:, np.newaxis] / columns
        self._lu, self._pivots, rcond = lu_factor(scaled)
        if not rcond > RCOND:
            null = np.abs(np.linalg.svd(scaled)[2][-1]) if np.isfinite(scaled).all() else np.ones(len(rows))
            involved = [self.labels[m] for m in np.argsort(-null) if null[m] > 0.1 * null.max()][:4]
            raise self._singular(f"the equations do not determine {listed(involved)} (rcond {rcond:.1e})")
        self._rows, self._columns = rows, columns

    def _factor_sparse(self, G: Any, rows: Vector) -> None:
        from scipy.sparse import diags_array

        scaled = self._scaled = (diags_array(1.0 / rows) @ G).tocsc()
        self._rows, self._columns = rows, np.ones(len(rows))
        self._splu = splu(scaled)
        if self._splu is None and len(rows) > _NAMED_UP_TO:
            raise self._singular(self._undetermined(scaled))
        if self._splu is None:
            self._sparse = False
            dense = G.toarray()
            size = np.abs(dense)
            self._factor_dense(dense, size, size.max(axis=0))  # names what is not determined, or finds that all is well

    def _undetermined(self, G: Any) -> str:
        """What is wrong with a large sparse matrix: rows for which no pivot is left, or a direction it maps to zero."""
        from scipy.sparse import eye_array
        from scipy.sparse.csgraph import maximum_bipartite_matching
        from scipy.sparse.linalg import splu as any_factors

        pattern = G.tocsr()
        pattern.eliminate_zeros()
        unmatched = np.flatnonzero(maximum_bipartite_matching(pattern, perm_type="column") < 0)
        if len(unmatched):
            named = listed((self.labels[int(m)] for m in unmatched), 4)
            return (
                f"{len(unmatched)} of {len(self.labels)} equations have no coupling variable of their own left "
                f"(structural rank {len(self.labels) - len(unmatched)}), among them those of {named}"
            )
        null = np.ones(G.shape[0])
        nearby = any_factors((G + 1e-9 * eye_array(G.shape[0])).tocsc())
        for _ in range(3):
            null = nearby.solve(null)
            null /= np.abs(null).max()
        involved = np.argsort(-np.abs(null))[:4]
        named = ", ".join(repr(self.labels[m]) for m in involved if abs(null[m]) > 0.1)
        return f"the equations do not determine {named}"

    def _first_bad(self, G: Any) -> str:
        whole = G.tocoo() if self._sparse else G
        if self._sparse:
            k = int(np.flatnonzero(~np.isfinite(whole.data))[0])
            row, column = int(whole.row[k]), int(whole.col[k])
        else:
            row, column = (int(k) for k in np.argwhere(~np.isfinite(whole))[0])
        return f"in the equation of '{self.labels[row]}' by '{self.labels[column]}'"

    def solve(self, r: Vector) -> Vector:
        """`G^-1 r`."""
        scaled = r / self._rows
        x: Vector = self._splu.solve(scaled) if self._sparse else lu_solve(self._lu, self._pivots, scaled)
        x = x / self._columns
        if not all_finite(x):
            raise self._singular(
                f"the correction of '{self.labels[int(np.flatnonzero(~np.isfinite(x))[0])]}' is not finite"
            )
        return x

    @staticmethod
    def _singular(why: str) -> SingularInterfaceError:
        return SingularInterfaceError(
            f"the interface Jacobian is singular: {why}; remove redundant equations, or check that every unknown "
            "acts on something its equation measures"
        )
