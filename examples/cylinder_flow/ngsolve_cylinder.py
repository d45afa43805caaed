"""A cylinder in a cross flow by finite elements: Taylor-Hood triangles in the frame of the cylinder (NGSolve).

Velocities are those of the frame at rest, seen from the cylinder (lengths in diameters, velocities in those of the
flow; `w` is the velocity of the cylinder):

    du/dt + (u - w e_y) . grad u = -grad p + 1/Re lap u,   u = w e_y on the cylinder,   u = e_x at the inlet and sides

and the natural condition at the outlet. No acceleration enters, and nothing has to be subtracted far away. In time it
is BDF2, with convection in two parts: by a steady flow (Oseen's, a linear problem) implicit, by what differs from it
extrapolated from two steps (`2 u_n - u_n-1`). So the matrix is the same in every step and factorised once for a run,
and only the difference to the steady flow limits the step. The result of a step is affine in `w` at its end: a part
that depends on the past, found once, and a column times `w`, found once for a run. Advancing over a step again costs
almost nothing, and `jacobian` is exact.

Forces are the momentum that is missing on the cylinder's nodes (minus the residual there, summed): the consistent ones,
of higher order than what a stress at the wall would give.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import splu

import cosolve as cs
from examples.cylinder_flow.cross_flow import CrossFlow, CylinderFlow, positive


def ngsolve() -> Any:
    """The package, or a sentence that says how to get it."""
    try:
        return import_module("ngsolve")
    except ImportError as error:
        raise cs.errors.SetupError(
            f"a flow by finite elements needs ngsolve, which cannot be imported ({error}); run: "
            "pip install 'cosolve[ngsolve]'"
        ) from None


class _Mesh(NamedTuple):
    """Where the domain ends (diameters from the axis), and how long edges are."""

    upstream: float
    downstream: float
    side: float
    wall: float  # edges on the cylinder
    near: float  # up to one radius from it
    wake: float
    far: float


class _Past(NamedTuple):
    """What a step makes of two states and an extrapolated velocity, but for the velocity at its end."""

    now: np.ndarray
    before: np.ndarray
    w: float
    rest: np.ndarray
    force: np.ndarray


class FiniteElementCylinder(CylinderFlow):
    """The flow around a cylinder by finite elements.

    Parameters
    ----------
    flow : CrossFlow
        The flow.
    step : float
        Time step in seconds; about `0.02 D / V` is stable.
    refinement : float, default 1.0
        Divides all lengths of edges.
    upstream : float, default 12.0
        Length of the mesh upstream of the axis, in diameters.
    downstream : float, default 28.0
        Length downstream of the axis, in diameters.
    side : float, default 12.0
        Length to each side of the axis, in diameters.

    Notes
    -----
    Ports: `v` in, the transverse velocity of the cylinder in m/s; `lift` (along `v`) and `drag` (along the flow) out,
    in N. The macro step must be a whole number of steps.

    Needs NGSolve, `pip install cosolve[ngsolve]`.

    Examples
    --------
    >>> water = CrossFlow(velocity=0.0625, diameter=1.6e-3, viscosity=1e-6)
    >>> fluid = FiniteElementCylinder(water, step=4e-4, refinement=0.5)
    >>> round(fluid.flow.Re), [port.name for port in fluid.outputs]
    (100, ['lift', 'drag'])
    """

    def __init__(
        self,
        flow: CrossFlow,
        step: float,
        *,
        refinement: float = 1.0,
        upstream: float = 12.0,
        downstream: float = 28.0,
        side: float = 12.0,
    ) -> None:
        super().__init__(flow, step)
        owner = type(self).__name__
        finer = positive(owner, "refinement", refinement)
        for name, value in (("upstream", upstream), ("downstream", downstream), ("side", side)):
            if positive(owner, name, value) < 3.0:
                raise cs.errors.SetupError(f"{owner}: {name} must be at least 3 diameters, not {value:g}")
        edges = [length / finer for length in (0.064, 0.136, 0.32, 1.6)]
        self._mesh = _Mesh(upstream, downstream, side, *edges)
        self._dt = self.h / flow.unit_time
        self._space: _Space | None = None
        self._before: np.ndarray = np.zeros(0)
        self._now: np.ndarray = np.zeros(0)
        self._w_before = self._w = 0.0
        self._past: _Past | None = None

    @property
    def n_unknowns(self) -> int:
        """Velocities and pressures."""
        return self._built().n

    def at_start(self, v: float) -> None:
        space = self._built()
        w = v / self.flow.velocity
        self._now = space.steady + w * space.column
        self._before = self._now.copy()
        self._w_before = self._w = w
        self._force = self.flow.unit_force * 2.0 * np.array([0.0, space.steady_drag])

    def march(self, v: np.ndarray, t0: float) -> tuple[float, float]:
        space = self._built()
        for w in v / self.flow.velocity:
            rest, force = self._by_past()
            after = rest + w * space.column
            force = force + w * space.column_force
            self._before, self._now = self._now, after
            self._w_before, self._w = self._w, float(w)
        unit = 2.0 * self.flow.unit_force
        return unit * float(force[1]), unit * float(force[0])

    def jacobian(self, t0: float, t1: float, u: cs.InputSignal, weight: np.ndarray) -> np.ndarray:
        """Exact where the macro step is one step of the solver; else a central difference of a nearly affine law."""
        v, flow = self._velocities(u), self.flow
        if len(v) == 1:
            by_w = 2.0 * flow.unit_force / flow.velocity * self._built().column_force
            by_v: np.ndarray = by_w[::-1].reshape(2, 1) * weight.sum()
            return by_v
        s = np.arange(1, len(v) + 1) / len(v)
        shape = s * weight[0] if u.degree == 0 else np.polynomial.polynomial.polyval(s, weight)
        here, eps = self.fields(), 0.01 * flow.velocity
        up = np.array(self.march(v + eps * shape, t0))
        self.set_fields(here)
        down = np.array(self.march(v - eps * shape, t0))
        self.set_fields(here)
        difference: np.ndarray = ((up - down) / (2.0 * eps)).reshape(2, 1)
        return difference

    def fields(self) -> tuple[np.ndarray, np.ndarray, float, float]:
        return self._before.copy(), self._now.copy(), self._w_before, self._w

    def set_fields(self, fields: Any) -> None:
        before, now, self._w_before, self._w = fields
        self._before, self._now = np.array(before), np.array(now)

    def snapshot(self) -> cs.fields.FieldSnapshot:
        """Velocity (m/s, of the frame at rest), pressure (Pa) and vorticity (1/s) at the corners of the triangles."""
        space, flow = self._built(), self.flow
        points = space.corners * flow.diameter
        points[:, 1] += self.displacement
        velocity, pressure, vorticity = space.at_corners(self._now)
        return cs.fields.FieldSnapshot(
            points,
            {"triangle": space.triangles},
            point_data={
                "velocity": velocity * flow.velocity,
                "pressure": pressure * flow.density * flow.velocity**2,
                "vorticity": vorticity / flow.unit_time,
            },
        )

    def _by_past(self) -> tuple[np.ndarray, np.ndarray]:
        """State and force after a step that ends with the cylinder at rest: all that depends on the past.

        A step that is advanced again begins where the last subsystem step did, so what was found last is often what is
        asked for; it is taken only where every number of the state is the same.
        """
        known, w = self._past, 2.0 * self._w - self._w_before
        if known is None or known.w != w or not _same(known.now, self._now) or not _same(known.before, self._before):
            known = _Past(self._now, self._before, w, *self._built().advanced(self._now, self._before, w))
            self._past = known
        return known.rest, known.force

    def _built(self) -> _Space:
        if self._space is None:
            self._space = _Space(self._mesh, self.flow.Re, self._dt)
        return self._space


class _Space:
    """Mesh, matrices and their factors: what stays the same through a run."""

    def __init__(self, mesh: _Mesh, Re: float, dt: float) -> None:
        ng = ngsolve()
        self._dt = dt
        self._mesh = _triangles(mesh)
        velocities = ng.VectorH1(self._mesh, order=2, dirichlet="far|cylinder")
        X = velocities * ng.H1(self._mesh, order=1)
        self.n, self._flow = int(X.ndof), ng.GridFunction(X)
        self._free = np.flatnonzero(np.array(list(X.FreeDofs())))
        self._far = self._boundary("far", (1.0, 0.0))
        self._across, self._along = self._boundary("cylinder", (0.0, 1.0)), self._boundary("cylinder", (1.0, 0.0))
        (u, p), (v, q) = X.TnT()
        stokes = ng.InnerProduct(ng.Grad(u), ng.Grad(v)) / Re - p * ng.div(v) - q * ng.div(u)
        wind = ng.GridFunction(X)
        oseen = self._matrix(X, (stokes + (ng.Grad(u) * ng.CF((1.0, 0.0))) * v) * ng.dx)
        self.steady = self._solved(self._factors(oseen), oseen, np.zeros(self.n), self._far)
        wind.vec.FV().NumPy()[:] = self.steady
        w0 = wind.components[0]
        self._mass = self._matrix(X, u * v * ng.dx)
        self._A = self._matrix(X, (1.5 / dt * u * v + stokes + (ng.Grad(u) * w0) * v) * ng.dx(bonus_intorder=1))
        self._LU = self._factors(self._A)
        self._frame = ng.Parameter(0.0)
        moving = u - w0 - ng.CF((0.0, self._frame))
        self._convection = ng.BilinearForm(X, nonassemble=True)
        self._convection += ((ng.Grad(u) * moving) * v) * ng.dx(bonus_intorder=1)
        self._in, self._out = self._flow.vec.CreateVector(), self._flow.vec.CreateVector()
        nothing = np.zeros(self.n)
        self.column = self._solved(self._LU, self._A, nothing, self._across)
        self.column_force = self._missing(nothing, self.column)
        self.steady_drag = float(self._along @ -(oseen @ self.steady))
        self.corners = np.array([vertex.point for vertex in self._mesh.vertices])
        self.triangles = np.array([[v.nr for v in e.vertices] for e in self._mesh.Elements(ng.VOL)], dtype=np.int64)

    def advanced(self, now: np.ndarray, before: np.ndarray, w: float) -> tuple[np.ndarray, np.ndarray]:
        """State and force (x, y) after a step, with the cylinder at rest at its end; `w` its velocity extrapolated."""
        self._frame.Set(w)
        self._in.FV().NumPy()[:] = 2.0 * now - before
        self._convection.Apply(self._in, self._out)
        right = self._mass @ ((4.0 * now - before) / (2.0 * self._dt)) - self._out.FV().NumPy()
        after = self._solved(self._LU, self._A, right, self._far)
        return after, self._missing(right, after)

    def at_corners(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Velocity, pressure and vorticity at the corners of the triangles."""
        ng = ngsolve()
        self._flow.vec.FV().NumPy()[:] = x
        u, p = self._flow.components
        n = len(self.corners)
        turning = ng.GridFunction(ng.H1(self._mesh, order=1))
        turning.Set(ng.Grad(u)[1, 0] - ng.Grad(u)[0, 1])
        values = u.vec.FV().NumPy()
        half = len(values) // 2  # the components one after the other, vertices first
        velocity = np.column_stack([values[:n], values[half : half + n]])
        return velocity, p.vec.FV().NumPy()[:n].copy(), turning.vec.FV().NumPy()[:n].copy()

    def _boundary(self, where: str, value: tuple[float, float]) -> np.ndarray:
        self._flow.vec[:] = 0.0
        self._flow.components[0].Set(ngsolve().CF(value), definedon=self._mesh.Boundaries(where))
        return np.array(self._flow.vec.FV().NumPy())

    def _matrix(self, X: Any, form: Any) -> csr_array:
        assembled = ngsolve().BilinearForm(X)
        assembled += form
        assembled.Assemble()
        rows, columns, values = (np.array(part) for part in assembled.mat.COO())
        return csr_array((values, (rows, columns)), shape=(self.n, self.n))

    def _factors(self, A: csr_array) -> Any:
        inner = A[self._free][:, self._free].tocsc()
        return splu(inner, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.01, options={"SymmetricMode": True})

    def _solved(self, LU: Any, A: csr_array, right: np.ndarray, given: np.ndarray) -> np.ndarray:
        """The solution that has the values `given` on the boundaries."""
        x = given.copy()
        x[self._free] += LU.solve((right - A @ given)[self._free])
        return x

    def _missing(self, right: np.ndarray, x: np.ndarray) -> np.ndarray:
        """What the equations of the cylinder's nodes lack, along and across: the force on the cylinder."""
        rest = right - self._A @ x
        return np.array([self._along @ rest, self._across @ rest])


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a is b or np.array_equal(a, b)


def _triangles(mesh: _Mesh) -> Any:
    """A curved mesh around the cylinder, fine at the wall and in the wake."""
    occ = import_module("netgen.occ")
    ng = ngsolve()

    def box(x0: float, x1: float, y: float) -> Any:
        return occ.MoveTo(x0, -y).Rectangle(x1 - x0, 2.0 * y).Face()

    def disc(r: float) -> Any:
        return occ.WorkPlane().Circle(0.0, 0.0, r).Face()

    behind = min(12.0, mesh.downstream - 1.0)
    outer, wake, near, cylinder = (
        box(-mesh.upstream, mesh.downstream, mesh.side),
        box(-1.5, behind, 2.0),
        disc(1.1),
        disc(0.5),
    )
    outer.edges.name = "far"
    outer.edges.Max(occ.X).name = "outlet"
    cylinder.edges.name = "cylinder"
    cylinder.edges.maxh = mesh.wall
    faces = [outer - wake, wake - near, near - cylinder]
    for face, length in zip(faces, (mesh.far, mesh.wake, mesh.near), strict=True):
        face.faces.maxh = length
    found = ng.Mesh(occ.OCCGeometry(occ.Glue(faces), dim=2).GenerateMesh(maxh=mesh.far, grading=0.25))
    found.Curve(2)
    return found
