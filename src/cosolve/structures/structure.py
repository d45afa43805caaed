"""The structure behind a second-order subsystem: mass, damping, stiffness or internal force, known load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import as_list
from cosolve.basics.lu import factorised
from cosolve.errors import NonFiniteError, SetupError, SubsystemError

AnyMatrix: TypeAlias = Any  # a dense array, or a scipy sparse CSR array

#: Lumped masses of more degrees of freedom than this make the structure sparse.
_SPARSE_FROM = 200
#: Up to this size the degree of freedom behind a singular matrix is looked for.
_NAMED_UP_TO = 2000


class Structure:
    """A mechanical structure `M q'' + D q' + p(q) = f(t)`, for `SecondOrder`.

    Parameters
    ----------
    M : array_like or sparse matrix
        Mass matrix; a 1-D array is a diagonal.
    K : array_like, sparse matrix or None, default None
        Stiffness matrix, `p(q) = K q`. Give it, or `internal_force` and `tangent`.
    D : array_like, sparse matrix or None, default None
        Damping matrix. None: no damping.
    internal_force : callable or None, default None
        `internal_force(q)` returns `p(q)`.
    tangent : callable or None, default None
        `tangent(q)` returns `dp/dq`.
    load : callable, array_like or None, default None
        Known load: `load(t)` or a constant vector.
    labels : list of str or None, default None
        Names of the degrees of freedom, for messages.

    Attributes
    ----------
    n : int
        Number of degrees of freedom.
    linear : bool
        True if `K` is given.
    sparse : bool
        True if the matrices are sparse: if one of them is, or the mass is a 1-D array of more than 200 entries.

    Examples
    --------
    >>> two_masses = Structure([1.0, 2.0], K=[[3.0, -1.0], [-1.0, 1.0]])
    >>> two_masses.n, two_masses.linear
    (2, True)
    >>> two_masses.internal_force([1.0, 0.0])
    array([ 3., -1.])
    """

    way_to_subsystem = "instead: SecondOrder(structure, ...)"

    def __init__(
        self,
        M: Any,
        *,
        K: Any = None,
        D: Any = None,
        internal_force: Callable[[Vector], Any] | None = None,
        tangent: Callable[[Vector], Any] | None = None,
        load: Callable[[float], Any] | npt.ArrayLike | None = None,
        labels: list[str] | None = None,
    ) -> None:
        self.n = _size(M)
        lumped_and_large = not _is_sparse(M) and np.ndim(M) == 1 and self.n > _SPARSE_FROM
        self.sparse = lumped_and_large or any(_is_sparse(A) for A in (M, K, D))
        self.M = self._matrix("M", M)
        self.D = None if D is None else self._matrix("D", D)
        if (K is None) == (internal_force is None):
            raise SetupError("Structure: give either K, or internal_force with its tangent")
        if (internal_force is None) != (tangent is None):
            raise SetupError("Structure: internal_force and tangent belong together; give both")
        self.linear = K is not None
        self.K = None if K is None else self._matrix("K", K)
        self._force, self._tangent = internal_force, tangent
        self._load = load if callable(load) else None
        self._constant = np.zeros(self.n) if load is None or callable(load) else self._vector("load", load)
        self.labels = (
            [f"degree of freedom {i}" for i in range(self.n)]
            if labels is None
            else as_list("Structure", "labels", labels)
        )
        if len(self.labels) != self.n:
            raise SetupError(f"Structure: {len(self.labels)} labels for {self.n} degrees of freedom")

    def internal_force(self, q: Any) -> Vector:
        """Compute the internal force `p(q)`.

        Parameters
        ----------
        q : array_like
            Displacements.

        Returns
        -------
        ndarray
            One force per degree of freedom.
        """
        if self.K is not None:
            p: Vector = self.K @ np.asarray(q, dtype=np.float64)
            return p
        assert self._force is not None
        p = self._vector("internal_force(q)", self._force(q), running=True)
        if not np.isfinite(p).all():
            raise NonFiniteError(f"the internal force at {self.labels[int(np.argmin(np.isfinite(p)))]} is not finite")
        return p

    def tangent(self, q: Vector) -> AnyMatrix:
        """Compute the stiffness `dp/dq`.

        Parameters
        ----------
        q : ndarray
            Displacements.

        Returns
        -------
        ndarray or csr_array
            `K` if it was given.
        """
        if self.K is not None:
            return self.K
        assert self._tangent is not None
        K = self._tangent(q)
        K = K if _is_sparse(K) else np.asarray(K, dtype=np.float64)
        if K.shape != (self.n, self.n):
            raise SubsystemError(f"tangent(q) has shape {K.shape}, expected ({self.n}, {self.n})")
        if self.sparse:
            return sparse.csr_array(K)
        return K if isinstance(K, np.ndarray) else K.toarray()

    def load(self, t: float) -> Vector:
        """Compute the known load.

        Parameters
        ----------
        t : float
            Time in seconds.

        Returns
        -------
        ndarray
            One force per degree of freedom.
        """
        if self._load is None:
            return self._constant
        return self._vector("load(t)", self._load(t), running=True)

    def without_mass(self, dofs: npt.NDArray[np.intp]) -> AnyMatrix:
        """Return the mass matrix without the mass at some degrees of freedom.

        Parameters
        ----------
        dofs : ndarray of int
            The degrees of freedom.

        Returns
        -------
        ndarray or csr_array
            `M` with these rows and columns set to zero.

        Raises
        ------
        SetupError
            If the mass is not lumped there.
        """
        kept = np.ones(self.n)
        kept[dofs] = 0.0
        M = sparse.coo_array(self.M)
        rows, columns = M.coords
        coupled = rows[(M.data != 0) & (rows != columns) & (kept[rows] * kept[columns] == 0.0)]
        if len(coupled):
            raise SetupError(
                f"Structure: the mass at {self.labels[int(coupled[0])]} is coupled to other degrees of freedom, so an "
                "acceleration cannot be left out there; use a lumped (diagonal) mass matrix"
            )
        M = sparse.coo_array((M.data * kept[rows], M.coords), shape=M.shape)
        return sparse.csr_array(M) if self.sparse else M.toarray()

    def diagonal_mass(self) -> bool:
        """Return whether the mass matrix is diagonal.

        Returns
        -------
        bool
            True for a lumped mass.
        """
        M = sparse.coo_array(self.M)
        return not M.data[M.coords[0] != M.coords[1]].any()

    def _matrix(self, name: str, A: Any) -> AnyMatrix:
        B: AnyMatrix
        if _is_sparse(A):
            B = sparse.csr_array(A).astype(np.float64)
            values = B.data
        else:
            try:
                B = np.array(A, dtype=np.float64)
            except (TypeError, ValueError):
                raise SetupError(f"Structure: {name} is not a matrix of numbers") from None
            values = B
            if B.ndim == 1 and len(B) == self.n:
                B = sparse.diags_array(B, format="csr") if self.sparse else np.diag(B)
        if B.shape != (self.n, self.n):
            raise SetupError(
                f"Structure: {name} has shape {B.shape}, expected ({self.n}, {self.n}) like the mass matrix"
            )
        if not np.isfinite(values).all():
            raise SetupError(f"Structure: {name} holds a NaN or an infinity")
        return sparse.csr_array(B) if self.sparse else B

    def _vector(self, name: str, value: Any, *, running: bool = False) -> Vector:
        error = SubsystemError if running else SetupError
        try:
            v = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise error(f"Structure: {name} is not a list of numbers") from None
        if v.shape != (self.n,):
            raise error(f"Structure: {name} has shape {v.shape}, expected ({self.n},)")
        return v


def _is_sparse(A: Any) -> bool:
    return bool(sparse.issparse(A))


def _size(M: Any) -> int:
    shape = M.shape if _is_sparse(M) else np.shape(M)
    if len(shape) not in (1, 2) or shape[0] == 0:
        raise SetupError(f"Structure: M must be a square matrix, or the masses of a lumped one, not of shape {shape}")
    return int(shape[0])


def factorise(A: AnyMatrix, labels: list[str]) -> Callable[[Any], Any]:
    """A function that solves with `A` (vectors or columns); a singular one is refused with the culprit named.

    >>> import numpy as np
    >>> factorise(np.array([[2.0, 0.0], [0.0, 4.0]]), ["x", "y"])(np.array([2.0, 2.0]))
    array([1. , 0.5])
    """
    solve = factorised(A)
    if solve is None:
        raise _singular(A, labels)
    return solve


def _singular(A: AnyMatrix, labels: list[str]) -> SubsystemError:
    if not np.isfinite(A if isinstance(A, np.ndarray) else A.data).all():
        return SubsystemError("the matrix of the step holds a NaN or an infinity; check the tangent")
    if len(labels) > _NAMED_UP_TO:
        return SubsystemError("the matrix of the step is singular: parts of the structure have no mass and no hold")
    null = np.abs(np.linalg.svd(A if isinstance(A, np.ndarray) else A.toarray())[2][-1])
    return SubsystemError(
        f"the matrix of the step is singular: nothing determines {labels[int(np.argmax(null))]}; give it mass, damping "
        "or stiffness, or prescribe its motion"
    )
