"""What every mapping is in the end: one linear operator `L` between the points of two meshes, built once.

`consistent` applies `u_target = L u_source` (displacements, temperatures, tractions), `conservative` its transpose
`f_source = L^T f_target` (nodal forces). The pair keeps virtual work, `f . (L u) = (L^T f) . u`, and, as rows of `L`
sum to one, the total force. A mortar operator `L = S M^-1 C` has a full inverse, so it is kept as the sparse `C`, the
factorised mass matrix `M` and the row scale `S`; every other operator is one sparse matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array, eye_array, kron
from scipy.sparse.linalg import SuperLU, splu

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import NonFiniteError, SetupError

Kind = Literal["consistent", "conservative"]

#: A dense Jacobian or a full mortar matrix beyond this many entries (400 MB) is refused.
_LARGEST_DENSE = 50_000_000


class LawArguments(TypedDict):
    """What `System.law` takes besides the ports."""

    function: Callable[[Vector], Vector]
    jacobian: Callable[[Vector], csr_array]


@dataclass(frozen=True)
class MappingReport:
    """How good a mapping is.

    Parameters
    ----------
    method : str
        Name of the method.
    n_source : int
        Number of source points.
    n_target : int
        Number of target points.
    entries : int
        Number of entries of the sparse matrix.
    row_sums : tuple of (float, float)
        Smallest and largest row sum of `L`; 1 keeps constants and total force.
    coverage : float
        Smallest share of a target cell that the source covers; 1 for methods without overlaps.
    distance : float
        Largest distance of a target point from the source; NaN if the method does not measure it.
    unused : int
        Number of source points that reach no target point.

    Examples
    --------
    >>> import cosolve.mapping as cm
    >>> cm.nearest_neighbour(cm.Mesh([[0.0], [1.0]]), cm.Mesh([[0.25]])).report().unused
    1
    """

    method: str
    n_source: int
    n_target: int
    entries: int
    row_sums: tuple[float, float]
    coverage: float
    distance: float
    unused: int

    def __str__(self) -> str:
        lines = [
            f"{self.method}: {self.n_source} source points -> {self.n_target} target points, {self.entries} entries",
            f"  row sums {self.row_sums[0]:.15g} to {self.row_sums[1]:.15g} (1: constants and total force are kept)",
        ]
        if self.coverage < 1.0 - 1e-9:
            lines.append(f"  covered: {100 * self.coverage:.4g} % of the worst target cell")
        if np.isfinite(self.distance):
            lines.append(f"  largest distance of a target point from the source {self.distance:.3g}")
        if self.unused:
            lines.append(f"  {self.unused} source points influence no target point")
        return "\n".join(lines)


class FieldMapping:
    """A linear operator `L` between the points of a source mesh and those of a target mesh.

    Mappings are made by functions such as `barycentric`. A field is an array of shape (n,) or (n, components), or a
    flat array of n * components numbers, point by point (x0, y0, z0, x1, ...), as vector ports carry it. What is
    returned has the same form.

    Parameters
    ----------
    method : str
        Name of the method.
    matrix : csr_array
        `L`, shape (targets, sources); the coupling matrix `C` of a mortar mapping.
    mass : csc_array or None, default None
        Mass matrix `M` of a mortar mapping, `L = M^-1 C`.
    scale : ndarray or None, default None
        Factors of the rows of `L`.
    coverage : float, default 1.0
        See `MappingReport`.
    distance : float, default nan
        See `MappingReport`.

    Attributes
    ----------
    n_source, n_target : int
        Numbers of points.

    Notes
    -----
    `consistent` applies `L`, `conservative` its transpose. Together they keep virtual work, `f^T (L u) = (L^T f)^T u`.

    Examples
    --------
    >>> import cosolve.mapping as cm
    >>> mapping = cm.barycentric(cm.Mesh.line([0.0, 1.0, 2.0]), cm.Mesh.line([0.0, 0.5, 1.5, 2.0]))
    >>> mapping.consistent([0.0, 10.0, 20.0])
    array([ 0.,  5., 15., 20.])
    >>> mapping.conservative([1.0, 1.0, 1.0, 1.0])
    array([1.5, 1. , 1.5])
    >>> mapping.consistent([0.0, 7.0, 10.0, 7.0, 20.0, 7.0])  # two components per point
    array([ 0., 7., 5., 7., 15., 7., 20., 7.])
    """

    def __init__(
        self,
        method: str,
        matrix: csr_array,
        *,
        mass: csc_array | None = None,
        scale: Vector | None = None,
        coverage: float = 1.0,
        distance: float = float("nan"),
    ) -> None:
        self.method = method
        # `L` itself, or `C` of a mortar operator: shape (targets, sources).
        self.matrix = matrix
        # `M` of a mortar operator, None otherwise.
        self.mass = mass
        self.n_target, self.n_source = (int(n) for n in matrix.shape)
        self._transposed = matrix.T  # shares its arrays
        # Factors of the rows of `L` ("enforce consistency"), None where there are none.
        self.scale = scale
        self.coverage, self.distance = coverage, distance

    @cached_property
    def _factor(self) -> SuperLU | None:
        if self.mass is None:
            return None
        # symmetric positive definite: no pivoting, ordering of the symmetric pattern
        return splu(self.mass, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    def consistent(self, field: npt.ArrayLike) -> Vector:
        """Map a field from the source to the target, `L u`: displacements, temperatures, tractions.

        Parameters
        ----------
        field : array_like
            Values at the source points.

        Returns
        -------
        ndarray
            Values at the target points. Constants are kept.
        """
        given, rows = self._rows(field, self.n_source, "consistent", "source")
        values = self.matrix @ rows
        if self._factor is not None:
            values = self._factor.solve(values)
        if self.scale is not None:
            values = (values.T * self.scale).T
        return _like(given, values)

    def conservative(self, load: npt.ArrayLike) -> Vector:
        """Map nodal loads from the target back to the source, `L^T f`.

        Parameters
        ----------
        load : array_like
            Values at the target points.

        Returns
        -------
        ndarray
            Values at the source points. Total force and virtual work are kept.
        """
        given, rows = self._rows(load, self.n_target, "conservative", "target")
        if self.scale is not None:
            rows = (rows.T * self.scale).T
        if self._factor is not None:
            rows = self._factor.solve(np.ascontiguousarray(rows))
        return _like(given, self._transposed @ rows)

    def as_law(self, kind: Kind = "consistent") -> LawArguments:
        """Return the mapping as arguments of `System.law`.

        Parameters
        ----------
        kind : {"consistent", "conservative"}, default "consistent"
            Which of the two.

        Returns
        -------
        dict
            `function` and `jacobian`.

        Examples
        --------
        >>> import cosolve as cs, cosolve.mapping as cm
        >>> wing, air = cm.Mesh.line([0.0, 1.0, 2.0]), cm.Mesh.line([0.0, 0.5, 1.5, 2.0])
        >>> mapping = cm.barycentric(wing, air)
        >>> structure = cs.Static(lambda t, f: -f, inputs=[("f", 3)], outputs=[("u", 3)])
        >>> fluid = cs.Static(lambda t, u: 1 + 0.1 * u, inputs=[("u", 4)], outputs=[("f", 4)])
        >>> system = cs.System({"structure": structure, "fluid": fluid})
        >>> system.law("fluid.u", of="structure.u", **mapping.as_law())
        >>> system.law("structure.f", of="fluid.f", **mapping.as_law("conservative"))
        """
        if kind not in ("consistent", "conservative"):
            raise SetupError(f"as_law: kind is 'consistent' or 'conservative', not {kind!r}")
        function = self.consistent if kind == "consistent" else self.conservative
        points = self.n_source if kind == "consistent" else self.n_target

        def jacobian(values: Vector) -> csr_array:
            L = self.operator(max(1, np.size(values) // points))
            return L if kind == "consistent" else csr_array(L.T)

        return {"function": function, "jacobian": jacobian}

    def operator(self, components: int = 1) -> csr_array:
        """Return `L` as one sparse matrix.

        Parameters
        ----------
        components : int, default 1
            Number of components of the flat fields that it is applied to.

        Returns
        -------
        csr_array
            Shape (targets * components, sources * components). Of a mortar mapping it is a full matrix, for small
            meshes.

        Examples
        --------
        >>> import cosolve.mapping as cm
        >>> cm.nearest_neighbour(cm.Mesh([[0.0], [1.0]]), cm.Mesh([[0.2]])).operator(2).toarray()
        array([[1., 0., 0., 0.], [0., 1., 0., 0.]])
        """
        L = self._full
        return L if components == 1 else csr_array(kron(L, eye_array(components), format="csr"))

    @cached_property
    def _full(self) -> csr_array:
        L: Any = self.matrix
        if self._factor is not None:
            self._refuse_dense(1, "the full matrix of a mortar mapping")
            L = self._factor.solve(self.matrix.toarray())
        if self.scale is not None:
            L = csr_array(L).multiply(self.scale[:, np.newaxis])
        return csr_array(L)

    def _refuse_dense(self, components: int, what: str) -> None:
        rows, columns = components * self.n_target, components * self.n_source
        if rows * columns > _LARGEST_DENSE:
            raise SetupError(
                f"{self.method}: {what} would hold {rows} x {columns} numbers; use a corrector that needs no Jacobian, "
                "or a sparse method (dual_mortar, barycentric) and its operator()"
            )

    def restricted(self, *, source: npt.ArrayLike | None = None, target: npt.ArrayLike | None = None) -> FieldMapping:
        """Return the mapping between some of the points only.

        Parameters
        ----------
        source : array_like or None, default None
            Mask or numbers of the source points to keep; the others count as zero. None keeps all.
        target : array_like or None, default None
            Mask or numbers of the target points to keep. None keeps all.

        Returns
        -------
        FieldMapping
            The mapping. A mortar mapping is `M_II^-1 C_II` then, not a part of `L`. Rows that lose entries do not sum
            to one.

        Examples
        --------
        >>> import cosolve.mapping as cm
        >>> string, fluid = cm.Mesh.line([0.0, 0.5, 1.0]), cm.Mesh.line([0.0, 0.3, 0.6, 1.0])
        >>> cm.mortar(string, fluid).restricted(source=[1], target=[1, 2]).operator().shape
        (2, 1)
        """
        columns = self._selection(source, self.n_source, "source")
        rows = self._selection(target, self.n_target, "target")
        return FieldMapping(
            self.method,
            csr_array(self.matrix[rows][:, columns]),
            mass=None if self.mass is None else csc_array(self.mass[rows][:, rows]),
            scale=None if self.scale is None else self.scale[rows],
            coverage=self.coverage,
            distance=self.distance,
        )

    def _selection(self, chosen: npt.ArrayLike | None, count: int, which: str) -> npt.NDArray[np.intp]:
        points = np.arange(count) if chosen is None else np.asarray(chosen)
        if points.dtype == np.bool_ and points.shape == (count,):
            return np.flatnonzero(points)
        whole = points.ndim == 1 and points.dtype.kind in "iu" and points.size > 0
        if not whole or points.min() < 0 or points.max() >= count or len(np.unique(points)) != len(points):
            raise SetupError(
                f"restricted: {which} must be different point numbers from 0 to {count - 1}, or {count} Booleans"
            )
        return points.astype(np.intp)

    def report(self) -> MappingReport:
        """Measure row sums, coverage, distances and unused source points.

        Returns
        -------
        MappingReport
            The measures.

        Examples
        --------
        >>> import cosolve.mapping as cm
        >>> print(cm.nearest_neighbour(cm.Mesh([[0.0], [1.0], [5.0]]), cm.Mesh([[0.25], [1.0]])).report())
        nearest neighbour: 3 source points -> 2 target points, 2 entries
          row sums 1 to 1 (1: constants and total force are kept)
          largest distance of a target point from the source 0.25
          1 source points influence no target point
        """
        sums = self.consistent(np.ones(self.n_source))
        used = np.zeros(self.n_source, dtype=np.bool_)
        used[self.matrix.indices[self.matrix.data != 0]] = True
        return MappingReport(
            method=self.method,
            n_source=self.n_source,
            n_target=self.n_target,
            entries=int(self.matrix.nnz),
            row_sums=(float(sums.min()), float(sums.max())),
            coverage=self.coverage,
            distance=self.distance,
            unused=int(np.count_nonzero(~used)),
        )

    def _rows(self, field: npt.ArrayLike, points: int, where: str, mesh: str) -> tuple[Vector, Matrix]:
        """The field as given, and with one row per point."""
        try:
            given = np.asarray(field, dtype=np.float64)
        except (TypeError, ValueError):
            raise SetupError(f"{where}: a field is an array of real numbers") from None
        if given.ndim == 2 and len(given) == points:
            rows = given
        elif given.ndim == 1 and given.size and given.size % points == 0:
            rows = given if given.size == points else given.reshape(points, -1)
        else:
            raise SetupError(
                f"{where}: the {mesh} mesh has {points} points, so the field must have the shape ({points},), "
                f"({points}, components) or {points} * components numbers, not {given.shape}"
            )
        if not np.isfinite(given).all():
            table = given.reshape(points, -1)
            point, component = (int(i) for i in np.argwhere(~np.isfinite(table))[0])
            raise NonFiniteError(
                f"{where}: the field is {table[point, component]} at point {point}, component {component} of the "
                f"{mesh} mesh"
            )
        return given, rows

    def __str__(self) -> str:
        return f"{self.method}: {self.n_source} source points -> {self.n_target} target points"


def _like(given: Vector, values: Matrix) -> Vector:
    """One row per point, in the form of the field that was given."""
    return values.reshape(-1) if given.ndim == 1 else values
