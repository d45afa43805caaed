"""An elastic solid in plane strain by scikit-fem: St. Venant-Kirchhoff, quadratic triangles, BDF2 (extra `fem`).

Nodal forces on a surface come in, its displacement goes out. Displacement `d` and velocity `v` are differenced by the
same formula, so that the velocity of the surface is what a flow with BDF2 sees of its displacement:

    v = D d,   rho D v + div-terms of P(d) = rho g + forces,      P = F S,  S = lambda tr(E) I + 2 mu E.

scikit-fem knows the mesh, the elements and the mass; elastic forces and their tangent are summed here over all
triangles at once, which takes a tenth of the time of its forms. There is no compiler and no large package to install.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import positive, whole
from cosolve.basics.wording import did_you_mean
from cosolve.errors import NonFiniteError, SetupError, SubsystemError
from cosolve.fields.field_subsystem import FieldSnapshot, FieldSubsystem
from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Mesh
from cosolve.mapping.neighbours import nearest_cells
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.port import Port

#: displacement and velocity, now and one step ago, and the length of that step (None: there was none)
State = tuple[Vector, Vector, Vector, Vector, float | None]


class ElasticSolid(FieldSubsystem):
    """A solid on a scikit-fem mesh of triangles: `force` on the boundary `surface` in, its `displacement` out.

    `mesh` is a `skfem.MeshTri` with named boundaries (`mesh.with_boundaries`). `young` (Pa) and `poisson` describe the
    material, `density` (kg/m3) its mass, `gravity` (m/s2) the load on the volume. The boundary `clamped` does not move.
    `probes` names points whose displacement is an output by itself: `{"tip": (0.6, 0.2)}` gives `tip_x` and
    `tip_y`. Forces are newtons per metre of depth, at the points of `meshes["force"]`. `tol` is the relative accuracy
    of the Newton iteration of a step.

    >>> from skfem import MeshTri
    >>> mesh = MeshTri.init_tensor(np.linspace(0.0, 1.0, 11), np.linspace(0.0, 0.1, 2))
    >>> mesh = mesh.with_boundaries({"left": lambda x: x[0] == 0.0, "outside": lambda x: x[0] > 0.0})
    >>> beam = ElasticSolid(mesh, clamped="left", surface="outside", young=1e9, poisson=0.3, density=1000.0,
    ...                     gravity=(0.0, -10.0), probes={"tip": (1.0, 0.05)})
    >>> round(1e3 * beam.static()["tip_y"], 2)             # -1.5 rho g L^4 / (E' h^2), E' of plane strain: -1.365 mm
    -1.35
    """

    def __init__(
        self,
        mesh: Any,
        *,
        clamped: str,
        surface: str,
        young: float,
        poisson: float,
        density: float,
        gravity: Sequence[float] = (0.0, 0.0),
        probes: Mapping[str, Sequence[float]] | None = None,
        tol: float = 1e-10,
        most: int = 20,
    ) -> None:
        self._who = who = type(self).__name__
        fem = scikit_fem()
        for name, value in (("young", young), ("density", density), ("tol", tol)):
            positive(who, name, value)
        if not -1.0 < poisson < 0.5:
            raise SetupError(f"{who}: poisson must lie between -1 and 0.5, not {poisson!r}")
        if type(mesh) is not fem.MeshTri:
            raise SetupError(f"{who}: mesh must be a skfem.MeshTri with straight edges, not a {type(mesh).__name__}")
        self.mesh, self.tol, self.most = mesh, tol, whole(who, "most", most)
        self._lame = young * poisson / ((1 + poisson) * (1 - 2 * poisson)), young / (2 * (1 + poisson))
        held, facets = self._facets("clamped", clamped), self._facets("surface", surface)
        self._assemble(fem, held, density, gravity)
        self._trace(facets, surface)
        self._probes = [self._probe(name, point) for name, point in (probes or {}).items()]
        count = 2 * len(self._nodes)
        self.inputs, self.outputs = [Port("force", count, "N/m")], [Port("displacement", count, "m")]
        for name in probes or {}:
            self.outputs += [Port(f"{name}_x", unit="m"), Port(f"{name}_y", unit="m")]
        self.start(0.0)

    def _facets(self, what: str, pattern: str) -> npt.NDArray[np.int64]:
        """The edges of boundaries such as `top|end`, all of which the mesh must name."""
        known = list(self.mesh.boundaries or {})
        names = [name for name in str(pattern).split("|") if name]
        for name in names or [""]:
            if name not in known:
                raise SetupError(f"{self._who}: {what} names the boundary '{name}'; {did_you_mean(name, known)}")
        return np.unique(np.concatenate([np.asarray(self.mesh.boundaries[name]) for name in names])).astype(np.int64)

    def _assemble(self, fem: Any, held: npt.NDArray[np.int64], density: float, gravity: Any) -> None:
        """What does not change: gradients of shape functions at all integration points, mass, weight, who is free."""
        acceleration = np.asarray(gravity, dtype=np.float64)
        if acceleration.shape != (2,) or not np.isfinite(acceleration).all():
            raise SetupError(f"{self._who}: gravity must be two numbers, not {gravity!r}")
        basis = fem.Basis(self.mesh, fem.ElementTriP2(), intorder=4)
        self._basis = basis
        self._n = int(basis.N)
        #: vertices, then the middles of edges; the same numbers as those of the nodes of `_basis`
        self._points: Matrix = np.ascontiguousarray(basis.doflocs.T)
        self._elements = np.ascontiguousarray(basis.element_dofs.T.astype(np.int64))  # triangles x 6
        grads = np.array([basis.basis[i][0].grad for i in range(6)])  # 6 x 2 x triangles x points
        self._grads = np.ascontiguousarray(np.moveaxis(grads, (2, 3), (0, 1)))  # triangles x points x 6 x 2
        self._dx = np.asarray(basis.dx)
        scalar = fem.BilinearForm(lambda u, v, _: density * u * v).assemble(basis)
        rows, columns = scalar.nonzero()
        mass = csr_array(scalar)
        both = np.concatenate([2 * rows, 2 * rows + 1]), np.concatenate([2 * columns, 2 * columns + 1])
        values = np.asarray(mass[rows, columns]).ravel()
        self._mass = csr_array((np.concatenate([values, values]), both), shape=(2 * self._n, 2 * self._n))
        self._weight = self._mass @ np.tile(acceleration, self._n)
        fixed = np.unique(np.concatenate([self._ends(held).ravel(), self.mesh.p.shape[1] + held]))
        free = np.ones(2 * self._n, dtype=np.bool_)
        free[2 * fixed], free[2 * fixed + 1] = False, False
        self._free = free
        self._pattern()

    def _ends(self, facets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.asarray(self.mesh.facets[:, facets].T, dtype=np.int64)

    def _pattern(self) -> None:
        """Where the entries of all triangles go in the matrix of the free unknowns."""
        dofs = (2 * self._elements[:, :, np.newaxis] + np.arange(2)).reshape(len(self._elements), 12)
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

    def _probe(self, name: str, point: Sequence[float]) -> csr_array:
        """How the displacement of a point follows from values at the nodes."""
        try:
            x, y = (float(value) for value in point)
            found: csr_array = csr_array(self._basis.probes(np.array([[x], [y]])))
        except Exception:
            raise SetupError(f"{self._who}: the probe '{name}' at {tuple(point)!r} is no point of the mesh") from None
        return found

    # -- the contract ------------------------------------------------------------------------------------------------

    def start(self, t0: float) -> Vector:
        zero = np.zeros(2 * self._n)
        self._state: State = (zero, zero, zero, zero, None)
        return self._outputs()

    def save(self) -> State:
        return self._state

    def restore(self, state: State) -> None:
        self._state = state

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        h = t1 - t0
        d, v, d_old, v_old, before = self._state
        a, b, c = _difference_weights(h, before)
        # rho D v = rho (a (a d + b d_n + c d_o) + b v_n + c v_o)
        past = b * d + c * d_old
        load = self._loads(u.end) - self._mass @ (a * past + b * v + c * v_old)
        found = self._solve(d + h * v, load, a * a, t0)
        self._state = found, a * found + past, d, v, h
        return self._outputs()

    def static(self, force: Vector | None = None, steps: int = 1) -> dict[str, Any]:
        """Where the solid rests under its weight and a `force` on its surface, applied in `steps`; outputs by name.

        A run that begins afterwards does not start from there: this is a solver of its own.
        """
        count = 2 * len(self._nodes)
        load = self._loads(np.zeros(count) if force is None else np.asarray(force, dtype=np.float64))
        found = np.zeros(2 * self._n)
        for k in range(1, steps + 1):
            found = self._solve(found, load * (k / steps), 0.0, 0.0)
        self._state = found, np.zeros_like(found), found, np.zeros_like(found), None
        values = self._outputs()
        names = [port.name for port in self.outputs[1:] if isinstance(port, Port)]
        return {"displacement": values[:count], **{n: float(x) for n, x in zip(names, values[count:], strict=True)}}

    def trace_to(self, target: Mesh) -> FieldMapping:
        """The mapping of displacements to another mesh of the surface, by the solid's own quadratic functions.

        Its transpose takes forces back: `system.map("fluid.force", "solid.force", mapping, "conservative")`.
        """
        points = self.meshes["force"].points
        straight = Mesh(points, lines=self._edges[:, :2], name=self.meshes["force"].name)
        edges, shares, distances = nearest_cells(straight, target)
        s = shares[:, 1]
        weights = np.column_stack([(1 - s) * (1 - 2 * s), s * (2 * s - 1), 4 * s * (1 - s)])
        starts = 3 * np.arange(target.n_points + 1)
        matrix = csr_array((weights.ravel(), self._edges[edges].ravel(), starts), shape=(target.n_points, len(points)))
        matrix.sort_indices()
        return FieldMapping("quadratic trace", matrix, distance=float(distances.max()))

    def snapshot(self) -> FieldSnapshot:
        """Points where they are now, with displacement and velocity."""
        d, v, *_ = self._state
        moved, speed = d.reshape(-1, 2), v.reshape(-1, 2)
        # scikit-fem lists the edges 01, 12, 02 of a triangle, snapshots 01, 12, 20: the same
        return FieldSnapshot(
            self._points + moved,
            {"triangle6": self._elements},
            point_data={"displacement": moved.copy(), "velocity": speed.copy()},
        )

    # -- one step ----------------------------------------------------------------------------------------------------

    def _loads(self, force: Vector) -> Vector:
        """Weight and nodal forces on the surface."""
        if not np.isfinite(force).all():
            raise NonFiniteError("the forces on its surface are not all finite")
        load = self._weight.copy().reshape(-1, 2)
        load[self._nodes] += force.reshape(-1, 2)
        return load.reshape(-1)

    def _outputs(self) -> Vector:
        d = self._state[0].reshape(-1, 2)
        return np.concatenate([d[self._nodes].reshape(-1), *((probe @ d).ravel() for probe in self._probes)])

    def _elastic(self, d: Vector) -> tuple[Vector, npt.NDArray[np.float64], float]:
        """Elastic forces, the tangent of each triangle (12 x 12), and the smallest ratio of volumes."""
        lam, mu = self._lame
        G, dx = self._grads, self._dx
        local = d.reshape(-1, 2)[self._elements]  # triangles x 6 x 2
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
    try:
        return import_module("skfem")
    except ImportError as error:
        raise SetupError(
            f"elastic solids by finite elements need scikit-fem ({error}): pip install 'cosolve[fem]'"
        ) from error


def _difference_weights(h: float, h_before: float | None) -> tuple[float, float, float]:
    """Weights of the values now, one and two steps ago in a derivative: BDF2, of the first step BDF1.

    >>> _difference_weights(0.5, 0.5), _difference_weights(0.5, None)
    ((3.0, -4.0, 1.0), (2.0, -2.0, 0.0))
    """
    if h_before is None:
        return 1.0 / h, -1.0 / h, 0.0
    r = h / h_before
    return (1.0 + 2.0 * r) / (1.0 + r) / h, -(1.0 + r) / h, r * r / (1.0 + r) / h
