"""An elastic solid in plane strain by NGSolve: St. Venant-Kirchhoff, quadratic triangles, BDF2 (extra `ngsolve`).

Nodal forces on a surface come in, its displacement goes out. Displacement `d` and velocity `v` are differenced by the
same formula, so that the velocity of the surface is what a flow with BDF2 sees of its displacement:

    v = D d,   rho D v + div-terms of P(d) = rho g + forces,      P = F S,  S = lambda tr(E) I + 2 mu E.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import SuperLU

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import positive
from cosolve.errors import NonFiniteError, SetupError, SubsystemError
from cosolve.fields.field_subsystem import FieldSnapshot, FieldSubsystem
from cosolve.fields.ngsolve_space import (
    FreePart,
    QuadraticSpace,
    Trace,
    boundary_names,
    checked_mesh,
    difference_weights,
    factorised,
    ngsolve,
    whole,
)
from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Mesh
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.port import Port

#: displacement and velocity, now and one step ago, and the length of that step (None: there was none)
State = tuple[Vector, Vector, Vector, Vector, float | None]

#: Values now, and one step ago.
Pair = tuple[npt.ArrayLike, npt.ArrayLike]


#: A correction that is larger than this part of the one before is made again with a new matrix.
_SLOW = 0.1


class NgsSolid(FieldSubsystem):
    """A solid on an NGSolve mesh of triangles: `force` on the boundary `surface` in, its `displacement` out.

    `young` (Pa) and `poisson` describe the material, `density` (kg/m3) its mass, `gravity` (m/s2) the load on the
    volume. The boundary `clamped` does not move. `probes` names points whose displacement is an output by itself:
    `{"tip": (0.6, 0.2)}` gives `tip_x` and `tip_y`. Forces are newtons per metre of depth, at the points of
    `meshes["force"]`. `tol` is the relative accuracy of the Newton iteration of a step.

    >>> from netgen.occ import OCCGeometry, Rectangle
    >>> face = Rectangle(1.0, 0.1).Face()
    >>> for edge in face.edges:
    ...     edge.name = "left" if edge.center.x < 1e-6 else "outside"
    >>> mesh = OCCGeometry(face, dim=2).GenerateMesh(maxh=0.1)
    >>> beam = NgsSolid(mesh, clamped="left", surface="outside", young=1e9, poisson=0.3, density=1000.0,
    ...                 gravity=(0.0, -10.0), probes={"tip": (1.0, 0.05)})
    >>> round(1e3 * beam.static()["tip_y"], 2)             # a slender beam: -1.5 rho g L^4 / (E' h^2) = -1.365
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
        ng = ngsolve()
        ng.SetNumThreads(1)
        who = type(self).__name__
        for name, value in (("young", young), ("density", density), ("tol", tol)):
            positive(who, name, value)
        if not -1.0 < poisson < 0.5:
            raise SetupError(f"{who}: poisson must lie between -1 and 0.5, not {poisson!r}")
        self.mesh = checked_mesh(who, mesh)
        self.tol, self.most = tol, most
        names = boundary_names(who, "surface", self.mesh, surface)
        held = boundary_names(who, "clamped", self.mesh, clamped)
        if not names or not held:
            raise SetupError(f"{who}: surface and clamped must each name a boundary of the mesh")
        self.space = QuadraticSpace(self.mesh)
        self.surface = Trace(who, self.space, names)
        self.meshes = dict.fromkeys(("force", "displacement"), self.surface.mesh)
        count = 2 * self.surface.n_points
        self.inputs = [Port("force", count, "N/m")]
        self.outputs = [Port("displacement", count, "m")]
        self._probes = [self._probe(who, name, point) for name, point in (probes or {}).items()]
        for name in probes or {}:
            self.outputs += [Port(f"{name}_x", unit="m"), Port(f"{name}_y", unit="m")]
        self._assemble(ng, clamped, young, poisson, density, gravity)
        zero = np.zeros(2 * self.space.n)
        self._first: State = (zero, zero, zero, zero, None)
        self.start(0.0)

    def _probe(self, who: str, name: str, point: Sequence[float]) -> Callable[[Matrix], Vector]:
        """How the displacement of a point follows from coefficients."""
        ng = ngsolve()
        try:
            x, y = (float(value) for value in point)
            place = self.mesh(x, y)
            inside = place.nr >= 0
        except Exception:
            inside = False
        if not inside:
            raise SetupError(f"{who}: the probe '{name}' at {tuple(point)!r} lies outside of the mesh")
        scalar = ng.H1(self.mesh, order=2)
        field = ng.GridFunction(scalar)
        element = ng.ElementId(ng.VOL, place.nr)
        numbers = np.array(scalar.GetDofNrs(element), dtype=np.int64)
        weights = np.zeros(len(numbers))
        for k, number in enumerate(numbers):
            field.vec[:] = 0.0
            field.vec[int(number)] = 1.0
            weights[k] = field(place)
        return lambda coefficients: coefficients[:, numbers] @ weights

    def _assemble(self, ng: Any, clamped: str, young: float, poisson: float, density: float, gravity: Any) -> None:
        mu, lam = young / (2 * (1 + poisson)), young * poisson / ((1 + poisson) * (1 - 2 * poisson))
        V = ng.VectorH1(self.mesh, order=2, dirichlet=clamped)
        self._V, self._field = V, ng.GridFunction(V)
        d, test = V.TnT()
        F = ng.Id(2) + ng.Grad(d)
        E = 0.5 * (F.trans * F - ng.Id(2))
        energy = mu * ng.InnerProduct(E, E) + 0.5 * lam * ng.Trace(E) ** 2
        self._stiff = ng.BilinearForm(V, symmetric=False)
        self._stiff += ng.Variation(energy.Compile() * ng.dx)
        mass = ng.BilinearForm(density * ng.InnerProduct(d, test) * ng.dx).Assemble()
        self._mass = whole(mass.mat)
        acceleration = np.asarray(gravity, dtype=np.float64)
        if acceleration.shape != (2,) or not np.isfinite(acceleration).all():
            raise SetupError(f"{type(self).__name__}: gravity must be two numbers, not {gravity!r}")
        everywhere = np.zeros((2, self.space.n))  # a constant field is one at all vertices
        everywhere[:, : self.space.n_vertices] = acceleration[:, np.newaxis]
        self._weight = self._mass @ everywhere.ravel()
        self._free = np.array(list(V.FreeDofs()), dtype=np.bool_)
        self._stiff.AssembleLinearization(self._field.vec)
        self._free_part = FreePart(self._stiff.mat, self._free)
        same = FreePart(mass.mat, self._free).of(mass.mat)
        self._mass_values = same.data  # the same pattern: two components that meet in every entry
        # elastic forces of tiny strains are rounded like those of the unit matrix in F
        lengths = np.linalg.norm(np.diff(self.space.points[self.space.edges], axis=1), axis=2)
        stiffest = float(np.abs(self._free_part.of(self._stiff.mat).data).max())
        self._rounding = 64 * float(np.finfo(np.float64).eps) * stiffest * float(lengths.max())
        self._residual = self._field.vec.CreateVector()

    # -- the contract ------------------------------------------------------------------------------------------------

    def start(self, t0: float) -> Vector:
        self._state = self._first
        return self._outputs()

    def set_start(self, h: float, displacement: Pair, velocity: Pair) -> None:
        """Let runs start from this motion instead of rest: fields now, and a step of length `h` before.

        Both are (n, 2) at `points_at_rest`.
        """
        positive(type(self).__name__, "h", h)
        found = []
        for values in (displacement[0], velocity[0], displacement[1], velocity[1]):
            nodal = np.asarray(values, dtype=np.float64)
            if nodal.shape != (self.space.n, 2) or not np.isfinite(nodal).all():
                raise SetupError(
                    f"{type(self).__name__}: set_start takes finite values of the shape ({self.space.n}, 2), not "
                    f"{nodal.shape}"
                )
            found.append(self.space.coefficients(nodal.T).ravel() * self._free)
        self._first = (found[0], found[1], found[2], found[3], h)

    def motion(self) -> dict[str, Any]:
        """The fields now and one step before, as `set_start` takes them (of a solid that has crossed a step)."""
        d, v, d_old, v_old, h = self._state
        if h is None:
            raise SetupError(f"{type(self).__name__}: there is no motion before the first step")
        d, v, d_old, v_old = (self.space.nodal(field.reshape(2, -1)).T.copy() for field in (d, v, d_old, v_old))
        return {"h": h, "displacement": (d, d_old), "velocity": (v, v_old)}

    def save(self) -> State:
        return self._state

    def restore(self, state: State) -> None:
        self._state = state

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        h = t1 - t0
        d, v, d_old, v_old, before = self._state
        a, b, c = difference_weights(h, before)
        load = self._weight + self.surface.loads(u.end).ravel()
        # rho D v = rho (a (a d + b d_n + c d_o) + b v_n + c v_o)
        past_v = b * d + c * d_old
        inertia = self._mass @ (a * past_v + b * v + c * v_old)
        found = self._solve(d + h * v, load - inertia, a * a, t0)
        self._state = found, a * found + past_v, d, v, h
        return self._outputs()

    def static(self, force: Vector | None = None, steps: int = 1) -> dict[str, Any]:
        """Where the solid rests under its weight and a `force` on its surface, applied in `steps`; outputs by name.

        A run that begins afterwards does not start from there: this is a solver of its own.
        """
        load = self._weight.copy()
        if force is not None:
            load += self.surface.loads(force).ravel()
        found = np.zeros(2 * self.space.n)
        for k in range(1, steps + 1):
            found = self._solve(found, load * (k / steps), 0.0, 0.0)
        self._state = found, np.zeros_like(found), found, np.zeros_like(found), None
        values = self._outputs()
        count = 2 * self.surface.n_points
        names = [port.name for port in self.outputs[1:] if isinstance(port, Port)]
        return {"displacement": values[:count], **{n: float(x) for n, x in zip(names, values[count:], strict=True)}}

    def trace_to(self, target: Mesh) -> FieldMapping:
        """The mapping of displacements to another mesh of the surface, by the solid's own quadratic functions.

        Its transpose takes forces back: `system.map("fluid.force", "solid.force", mapping, "conservative")`.
        """
        return self.surface.mapping(target)

    @property
    def points_at_rest(self) -> Matrix:
        """Where the points of snapshots are at rest, (n, 2): vertices, then middles of edges."""
        return self.space.points

    def at_surface(self, values: npt.ArrayLike) -> Vector:
        """A field (n, 2) at all points as its port on the surface carries it."""
        return np.asarray(values, dtype=np.float64)[self.surface.nodes].ravel()

    def snapshot(self) -> FieldSnapshot:
        """Points where they are now, with displacement and velocity."""
        d, v, *_ = self._state
        moved, speed = (self.space.nodal(field.reshape(2, -1)).T for field in (d, v))
        return FieldSnapshot(
            self.space.points + moved,
            {"triangle6": self.space.triangles},
            point_data={"displacement": moved.copy(), "velocity": speed.copy()},
        )

    # -- one step ----------------------------------------------------------------------------------------------------

    def _outputs(self) -> Vector:
        d = self._state[0].reshape(2, -1)
        return np.concatenate([self.surface.read(d), *(probe(d) for probe in self._probes)])

    def _solve(self, guess: Vector, load: Vector, inertia: float, t: float) -> Vector:
        """`inertia M d + K(d) = load` from a guess, by Newton with one matrix as long as that is fast."""
        field = self._field.vec.FV().NumPy()
        free, residual = self._free, self._residual.FV().NumPy()
        d = guess.copy()
        d[~free] = 0.0
        lu: SuperLU | None = None
        last = np.inf
        scale = tiny = float(np.finfo(np.float64).tiny)
        for _ in range(self.most):
            field[:] = d
            self._stiff.Apply(self._field.vec, self._residual)
            inner = residual + inertia * (self._mass @ d)
            r = (inner - load)[free]
            if not np.isfinite(r).all():
                raise NonFiniteError("its elastic forces are not finite; the loads are too large for one step")
            scale = max(scale, float(np.abs(load).max()), float(np.abs(inner).max()), tiny)
            step = None if lu is None else lu.solve(r)
            if lu is None or step is None or float(np.abs(step).max(initial=0.0)) > _SLOW * last:
                self._stiff.AssembleLinearization(self._field.vec)
                matrix = self._free_part.of(self._stiff.mat)
                matrix.data += inertia * self._mass_values
                lu = factorised(matrix)
                step = lu.solve(r)
            d[free] -= step
            last = size = float(np.abs(step).max(initial=0.0))
            whole_size = float(np.abs(d).max())
            if size <= self.tol * whole_size + tiny or np.abs(r).max(initial=0.0) <= self._rounding:
                if self.space.smallest_area_ratio(d.reshape(2, -1)) <= 0.0:
                    raise SubsystemError("a triangle of the solid is turned inside out; the loads are too large")
                return d
        raise SubsystemError(
            f"the Newton iteration of the solid did not converge in {self.most} iterations from t = {t:.6g} (last "
            f"residual {np.abs(r).max():.3g} N/m of {scale:.3g}); a smaller step, or a load in steps, may do"
        )
