"""An elastic solid in plane strain by scikit-fem: St. Venant-Kirchhoff, quadratic triangles, BDF2 (extra `fem`).

scikit-fem knows the mesh, the elements and the mass; elastic forces and their tangent are summed here over all
triangles at once, which takes a tenth of the time of its forms. There is no compiler and no large package to install.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.packages import optional
from cosolve.basics.wording import did_you_mean
from cosolve.errors import NonFiniteError, SetupError, SubsystemError
from cosolve.fields.moving_solid import MovingSolid
from cosolve.fields.quadratic_triangle import quadratic_trace
from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Mesh


class ElasticSolid(MovingSolid):
    """An elastic solid on a scikit-fem mesh of triangles.

    Parameters
    ----------
    mesh : skfem.MeshTri
        Mesh with named boundaries (`mesh.with_boundaries`). Needs `cosolve[fem]`.
    clamped : str
        Boundaries that do not move, as in "left|right".
    surface : str
        Boundary that is coupled.
    young : float
        Young's modulus in Pa.
    poisson : float
        Poisson's ratio.
    density : float
        Density in kg/m^3.
    gravity : sequence of float, default (0.0, 0.0)
        Load on the volume in m/s^2.
    probes : mapping of str to point or None, default None
        Points whose displacement is an output of its own: `{"tip": (0.6, 0.2)}` gives `tip_x` and `tip_y`.
    tol : float, default 1e-10
        Relative accuracy of the Newton iteration of a step.
    most : int, default 20
        Largest number of its iterations.

    Notes
    -----
    Ports: `force` in (N per metre of depth, at the points of `meshes["force"]`), `displacement` out (m). St.
    Venant-Kirchhoff material in plane strain, quadratic triangles, backward differences of order 2 in time.

    Examples
    --------
    >>> from skfem import MeshTri
    >>> mesh = MeshTri.init_tensor(np.linspace(0.0, 1.0, 11), np.linspace(0.0, 0.1, 2))
    >>> mesh = mesh.with_boundaries({"left": lambda x: x[0] == 0.0, "outside": lambda x: x[0] > 0.0})
    >>> beam = ElasticSolid(mesh, clamped="left", surface="outside", young=1e9, poisson=0.3, density=1000.0,
    ...                     gravity=(0.0, -10.0), probes={"tip": (1.0, 0.05)})
    >>> round(1e3 * beam.static()["tip_y"], 2)             # -1.5 rho g L^4 / (E' h^2), E' of plane strain: -1.365 mm
    -1.35
    """

    def _set_up(self, mesh: Any, clamped: str, surface: str, density: float) -> None:
        fem = scikit_fem()
        if type(mesh) is not fem.MeshTri:
            raise SetupError(
                f"{self._who}: mesh must be a skfem.MeshTri with straight edges, not a {type(mesh).__name__}"
            )
        self.mesh = mesh
        held, facets = self._facets("clamped", clamped), self._facets("surface", surface)
        self._number(fem, held)
        self._assemble(fem, density)
        self._trace(facets, surface)

    def _facets(self, what: str, pattern: str) -> npt.NDArray[np.int64]:
        """The edges of boundaries such as `top|end`, all of which the mesh must name."""
        known = list(self.mesh.boundaries or {})
        names = [name for name in str(pattern).split("|") if name]
        for name in names or [""]:
            if name not in known:
                raise SetupError(f"{self._who}: {what} names the boundary '{name}'; {did_you_mean(name, known)}")
        return np.unique(np.concatenate([np.asarray(self.mesh.boundaries[name]) for name in names])).astype(np.int64)

    def _number(self, fem: Any, held: npt.NDArray[np.int64]) -> None:
        """Points, triangles, and who is free."""
        self._basis = basis = fem.Basis(self.mesh, fem.ElementTriP2(), intorder=4)
        self._n = int(basis.N)
        self._points = np.ascontiguousarray(basis.doflocs.T)
        # scikit-fem lists the edges 01, 12, 02 of a triangle, snapshots 01, 12, 20: the same
        self._triangles = np.ascontiguousarray(basis.element_dofs.T.astype(np.int64))
        fixed = np.unique(np.concatenate([self._ends(held).ravel(), self.mesh.p.shape[1] + held]))
        free = np.ones(2 * self._n, dtype=np.bool_)
        free[2 * fixed], free[2 * fixed + 1] = False, False
        self._free = free

    def _assemble(self, fem: Any, density: float) -> None:
        """What does not change: gradients of shape functions at all integration points, and the mass."""
        basis = self._basis
        grads = np.array([basis.basis[i][0].grad for i in range(6)])  # 6 x 2 x triangles x points
        self._grads = np.ascontiguousarray(np.moveaxis(grads, (2, 3), (0, 1)))  # triangles x points x 6 x 2
        self._dx = np.asarray(basis.dx)
        scalar = fem.BilinearForm(lambda u, v, _: density * u * v).assemble(basis)
        rows, columns = scalar.nonzero()
        mass = csr_array(scalar)
        both = np.concatenate([2 * rows, 2 * rows + 1]), np.concatenate([2 * columns, 2 * columns + 1])
        values = np.asarray(mass[rows, columns]).ravel()
        self._mass = csr_array((np.concatenate([values, values]), both), shape=(2 * self._n, 2 * self._n))
        self._pattern()

    def _ends(self, facets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.asarray(self.mesh.facets[:, facets].T, dtype=np.int64)

    def _pattern(self) -> None:
        """Where the entries of all triangles go in the matrix of the free unknowns."""
        dofs = (2 * self._triangles[:, :, np.newaxis] + np.arange(2)).reshape(len(self._triangles), 12)
        self._dofs = dofs
        number = np.full(2 * self._n, -1, dtype=np.int64)
        m = int(np.count_nonzero(self._free))
        number[self._free] = np.arange(m)
        rows, columns = np.repeat(number[dofs], 12, axis=1).ravel(), np.tile(number[dofs], (1, 12)).ravel()
        used = (rows >= 0) & (columns >= 0)
        keys, places = np.unique(columns[used] * m + rows[used], return_inverse=True)
        self._used, self._places = used, places
        starts = np.searchsorted(keys // m, np.arange(m + 1))
        self._layout = (keys % m).astype(np.int32), starts.astype(np.int32), m
        part = csc_array(self._mass)[self._free][:, self._free]
        self._mass_values = np.asarray(csc_array(part)[keys % m, keys // m]).ravel()

    def _trace(self, facets: npt.NDArray[np.int64], surface: str) -> None:
        """Points of the surface: its vertices, then the middles of its edges."""
        ends = self._ends(facets)
        vertices = np.unique(ends)
        #: numbers of the nodes on the surface
        self._nodes = np.concatenate([vertices, self.mesh.p.shape[1] + facets])
        middles = len(vertices) + np.arange(len(facets))
        #: first end, other end and middle of each edge, as numbers of points of the surface
        self._edges = np.column_stack([np.searchsorted(vertices, ends), middles])
        halves = np.concatenate([self._edges[:, [0, 2]], self._edges[:, [2, 1]]])
        mesh = Mesh(self._points[self._nodes], lines=halves, name=f"{self._who} on {surface}")
        self.meshes = dict.fromkeys(("force", "displacement"), mesh)

    def _probe(self, name: str, point: Sequence[float]) -> Callable[[Vector], Vector]:
        try:
            x, y = (float(value) for value in point)
            found: csr_array = csr_array(self._basis.probes(np.array([[x], [y]])))
        except Exception:
            raise SetupError(f"{self._who}: the probe '{name}' at {tuple(point)!r} is no point of the mesh") from None
        return partial(_value_at, found)

    def trace_to(self, target: Mesh) -> FieldMapping:
        return quadratic_trace(self.meshes["force"], self._edges, target)

    # -- fields go point by point ------------------------------------------------------------------------------------

    def _nodal(self, field: Vector) -> Matrix:
        return field.reshape(-1, 2)

    def _unknowns(self, nodal: Matrix) -> Vector:
        return nodal.ravel()

    def _at_surface(self, field: Vector) -> Vector:
        return field.reshape(-1, 2)[self._nodes].reshape(-1)

    def _surface_loads(self, force: Vector) -> Vector:
        if not np.isfinite(force).all():
            raise NonFiniteError("the forces on its surface are not all finite")
        load = np.zeros((self._n, 2))
        load[self._nodes] = force.reshape(-1, 2)
        return load.reshape(-1)

    # -- one step ----------------------------------------------------------------------------------------------------

    def _elastic(self, d: Vector) -> tuple[Vector, npt.NDArray[np.float64], float]:
        """Elastic forces, the tangent of each triangle (12 x 12), and the smallest ratio of volumes."""
        lam, mu = self._lame
        G, dx = self._grads, self._dx
        local = d.reshape(-1, 2)[self._triangles]  # triangles x 6 x 2
        H = np.einsum("eia,eqib->eqab", local, G)
        F = H + np.eye(2)
        # (F^T F - 1) / 2 without its cancellation, so that the smallest loads are solved as accurately as large ones
        E = 0.5 * (H + np.swapaxes(H, 2, 3) + np.einsum("eqca,eqcb->eqab", H, H))
        trace = np.einsum("eqaa->eq", E)
        S = lam * trace[..., np.newaxis, np.newaxis] * np.eye(2) + 2 * mu * E
        P = np.einsum("eqab,eqbc,eq->eqac", F, S, dx)
        forces = np.einsum("eqac,eqic->eia", P, G)
        # dE of a unit displacement of node i in direction a: the symmetric part of F_ab G_ic
        strain = np.einsum("eqab,eqic->eqiabc", F, G)
        strain = 0.5 * (strain + np.swapaxes(strain, 4, 5))
        n, q = len(G), G.shape[1]
        strain = strain.reshape(n, q, 12, 4)
        stress = 2 * mu * strain
        volume = strain[..., 0] + strain[..., 3]
        stress[..., 0] += lam * volume
        stress[..., 3] += lam * volume
        left = (strain * dx[..., np.newaxis, np.newaxis]).transpose(0, 2, 1, 3).reshape(n, 12, 4 * q)
        tangent = left @ stress.transpose(0, 1, 3, 2).reshape(n, 4 * q, 12)
        geometric = np.einsum("eqib,eqbc,eqjc,eq->eij", G, S, G, dx, optimize=True)
        tangent = tangent.reshape(n, 6, 2, 6, 2)
        for a in range(2):
            tangent[:, :, a, :, a] += geometric
        total: Any = np.bincount(self._dofs.ravel(), weights=forces.reshape(-1), minlength=2 * self._n)
        return total, tangent.reshape(n, 144), float(np.linalg.det(F).min())

    def _solve(self, guess: Vector, load: Vector, inertia: float, t: float) -> Vector:
        """`inertia M d + K(d) = load` by Newton from a guess."""
        free, (indices, starts, m) = self._free, self._layout
        d = np.where(free, guess, 0.0)
        tiny = float(np.finfo(np.float64).tiny)
        for _ in range(self.most):
            forces, tangent, ratio = self._elastic(d)
            r = (forces + inertia * (self._mass @ d) - load)[free]
            if not np.isfinite(r).all():
                raise NonFiniteError("its elastic forces are not finite; the loads are too large for one step")
            values = np.bincount(self._places, weights=tangent.ravel()[self._used], minlength=len(indices))
            matrix = csc_array((values + inertia * self._mass_values, indices, starts), shape=(m, m))
            try:
                step = splu(matrix).solve(r)
            except RuntimeError:
                raise SubsystemError(
                    f"the solid has lost its stiffness at t = {t:.6g}; the loads are too large"
                ) from None
            d[free] -= step
            if np.abs(step).max(initial=0.0) <= self.tol * np.abs(d).max() + tiny:
                if ratio <= 0.0:
                    raise SubsystemError("a triangle of the solid is turned inside out; the loads are too large")
                return d
        raise SubsystemError(
            f"the Newton iteration of the solid did not converge in {self.most} iterations from t = {t:.6g} (last "
            f"residual {np.abs(r).max():.3g} N/m); a smaller step, or a load in steps, may do"
        )


def scikit_fem() -> Any:
    """The package, or a sentence that says how to get it."""
    return optional("skfem", "fem", "an elastic solid by finite elements")


def _value_at(weights: csr_array, field: Vector) -> Vector:
    """A field that goes point by point, where these weights are those of its points."""
    return np.asarray(weights @ field.reshape(-1, 2)).ravel()
