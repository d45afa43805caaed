"""Incompressible flow in the plane around a surface that moves, by NGSolve: Taylor-Hood, ALE, BDF2 (extra `ngsolve`).

Displacement of a surface comes in, nodal forces on it go out. On the mesh as it is displaced now,

    rho (D u + (u - w) . grad u) - div sigma = 0,   div u = 0,   sigma = -p I + mu (grad u + grad u^T),   w = D d,

where `D` is the difference formula of the step at points that move with the mesh, and the mesh follows its surface as
an elastic body that is stiff where the surface is near. Forces are minus the residual of the momentum equation at the
nodes of the surface: what the discrete flow really needs to be held there, which is accurate on coarse meshes.

Equations are solved with one factorised matrix for many steps (chord iteration). When the iteration gets slow, the
*next* step begins with a new matrix, made from the end of this one; the data that a matrix is made from are part of the
state, so that a step gives the same bits whenever and wherever it is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import SuperLU

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import positive
from cosolve.errors import NonFiniteError, SetupError, SubsystemError
from cosolve.fields.bdf2 import difference_weights
from cosolve.fields.field_subsystem import FieldSnapshot, FieldSubsystem
from cosolve.fields.flow_residual import flow_residual
from cosolve.fields.ngsolve_mesh_motion import MeshMotion
from cosolve.fields.ngsolve_space import (
    FreePart,
    QuadraticSpace,
    Trace,
    boundary_names,
    checked_mesh,
    factorised,
    ngsolve,
)
from cosolve.fields.quadratic_triangle import seven_points, shapes
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.port import Port

#: What a matrix is made from: velocity and pressure, displacement and velocity of the mesh, weight of the mass matrix.
Base = tuple[Vector, Vector, Vector, float]

#: Velocity and pressure now and one and two steps ago, displacement of the mesh now and one step ago, the lengths of
#: the last two steps (None: there was none), and what the matrix at hand is made from (None: nothing yet).
State = tuple[Vector, Vector, Vector, Vector, Vector, float | None, float | None, Base | None]

#: Values now, and one step ago.
Pair = tuple[npt.ArrayLike, npt.ArrayLike]

#: A chord iteration whose corrections shrink no faster than this asks for a new matrix after the step, and one whose
#: corrections shrink no faster than that gets it at once.
_SLOW, _LOST = 0.4, 0.8

#: Factorised matrices that are kept: the one at hand, and the one of a step that is repeated.
_KEPT = 2


class _Step(NamedTuple):
    """What the equations of a step depend on besides their unknowns, at the nodes."""

    points: Matrix
    mesh_velocity: Matrix
    past: Matrix
    weight: float


class NgsFlow(FieldSubsystem):
    """An incompressible plane flow on an NGSolve mesh of triangles, fixed or moving.

    Parameters
    ----------
    mesh : ngsolve.Mesh
        Plane mesh with named boundaries. Needs `cosolve[ngsolve]`.
    density : float
        Density in kg/m^3.
    viscosity : float
        Dynamic viscosity in Pa s.
    inflow : mapping of str to ngsolve.CF
        Velocity on boundaries, as in `{"inlet": ngsolve.CF((1.5 * y * (1 - y), 0))}`.
    no_slip : str, default ""
        Boundaries at rest, as in "wall|cylinder". Boundaries that are not named are open (zero stress).
    surface : str, default ""
        Boundary that moves with the input `displacement`. Empty: the mesh is fixed and there is no input.
    body : str, default ""
        Boundaries whose total force is given as the outputs `drag` and `lift`.
    ramp : callable or None, default None
        `ramp(t)` multiplies the inflow.
    tol : float, default 1e-6
        Relative accuracy of velocity and pressure in a step.
    most : int, default 40
        Largest number of Newton iterations per step.
    near : float, default 0.01
        Distance in m in the stiffness of the moving mesh, `(near + distance)**-stiffening`.
    stiffening : float, default 1.5
        Exponent in the stiffness of the moving mesh.

    Notes
    -----
    Ports: `displacement` in (m), `force` out (N per metre of depth), and `drag` and `lift`.

    Examples
    --------
    >>> import ngsolve as ng
    >>> from netgen.occ import Circle, OCCGeometry, Rectangle
    >>> face = Rectangle(3.0, 1.0).Face() - Circle((1.5, 0.5), 0.1).Face()
    >>> for edge in face.edges:
    ...     x, y = edge.center.x, edge.center.y
    ...     edge.name = "inlet" if x < 1e-6 else "outlet" if x > 3 - 1e-6 else "wall" if abs(y - 0.5) > 0.4 else "body"
    >>> mesh = OCCGeometry(face, dim=2).GenerateMesh(maxh=0.25, grading=0.3)
    >>> flow = NgsFlow(mesh, density=1e-3, viscosity=0.1, inflow={"inlet": ng.CF((4 * ng.y * (1 - ng.y), 0))},
    ...                no_slip="wall|body", body="body")
    >>> k = 0.2
    >>> faxen = 4 * np.pi * 0.1 / (-np.log(k) - 0.9157 + 1.7244 * k**2 - 1.7302 * k**4 + 2.4056 * k**6)
    >>> bool(abs(flow.steady()["drag"] / faxen - 1) < 0.02)
    True
    """

    def __init__(
        self,
        mesh: Any,
        *,
        density: float,
        viscosity: float,
        inflow: Mapping[str, Any],
        no_slip: str = "",
        surface: str = "",
        body: str = "",
        ramp: Callable[[float], float] | None = None,
        tol: float = 1e-6,
        most: int = 40,
        near: float = 0.01,
        stiffening: float = 1.5,
    ) -> None:
        ng = ngsolve()
        ng.SetNumThreads(1)
        who = type(self).__name__
        for name, value in (("density", density), ("viscosity", viscosity), ("tol", tol), ("near", near)):
            positive(who, name, value)
        self.mesh = checked_mesh(who, mesh)
        self.tol, self.most, self.noise, self._ramp = tol, most, tol, ramp
        self.density, self.viscosity = density, viscosity
        held = boundary_names(who, "no_slip", self.mesh, no_slip)
        moving = boundary_names(who, "surface", self.mesh, surface)
        loaded = boundary_names(who, "body", self.mesh, body)
        for name in inflow:
            boundary_names(who, "inflow", self.mesh, name)
        twice = set(held) & set(moving) | (set(held) | set(moving)) & set(inflow)
        if twice:
            raise SetupError(f"{who}: the boundary '{sorted(twice)[0]}' has two roles; give it one")
        self.mesh.Curve(2)
        self.space = QuadraticSpace(self.mesh)
        n = self._n = self.space.n
        self._equations(ng, "|".join([*inflow, *held, *moving]))
        self._inflow = self._inflow_of(ng, inflow)
        self._moving = Trace(who, self.space, moving) if moving else None
        self._body = Trace(who, self.space, loaded) if loaded else None
        self.inputs, self.outputs = [], []
        if self._moving is not None:
            count = 2 * self._moving.n_points
            self.inputs, self.outputs = [Port("displacement", count, "m")], [Port("force", count, "N/m")]
            self.meshes = dict.fromkeys(("displacement", "force"), self._moving.mesh)
            self._motion = MeshMotion(self.space, self._moving, near, stiffening)
        if self._body is not None:
            self.outputs = [*self.outputs, Port("drag", unit="N/m"), Port("lift", unit="N/m")]
        if not self.outputs:
            raise SetupError(f"{who}: name a surface or a body whose forces are its outputs")
        self._rest = np.zeros(2 * n)
        self._factorised: list[tuple[Base, SuperLU]] = []
        #: how often a matrix was factorised, and corrections in all steps so far
        self.factorisations, self.corrections = 0, 0
        x, d = np.zeros(self._size), self._rest
        at_rest: State = (x, x, x, d, d, None, None, None)
        self._first = at_rest, np.zeros(sum(port.length for port in self.outputs if isinstance(port, Port)))
        self.start(0.0)

    # -- what is made once -------------------------------------------------------------------------------------------

    def _equations(self, ng: Any, dirichlet: str) -> None:
        mesh = self.mesh
        V = ng.VectorH1(mesh, order=2, dirichlet=dirichlet)
        X = ng.FESpace([V, ng.H1(mesh, order=1)])
        (u, p), (v, q) = X.TnT()
        self._x = ng.GridFunction(X)
        self._w, self._d = ng.GridFunction(V), ng.GridFunction(V)
        self._weight = ng.Parameter(0.0)
        rho, mu = self.density, self.viscosity
        # each term with the points that it needs (gradients: on curved triangles)
        terms = (
            (rho * ng.InnerProduct(self._weight * u, v), 4),
            (rho * ng.InnerProduct(ng.Grad(u) * (u - self._w), v), 5),
            (mu * ng.InnerProduct(ng.Grad(u) + ng.Grad(u).trans, ng.Grad(v)) - p * ng.div(v) - q * ng.div(u), 4),
        )
        self._form = ng.BilinearForm(X)
        for term, order in terms:
            self._form += term.Compile() * ng.dx(intrules={ng.TRIG: ng.IntegrationRule(ng.TRIG, order)})
        self._free_part: FreePart | None = None  # known when the first matrix is there
        self._free = np.array(list(X.FreeDofs()), dtype=np.bool_)
        self._size = X.ndof
        places, weights = seven_points()
        self._shapes = (*shapes(places), weights)
        self._momentum, self._continuity = np.zeros((2, self._n)), np.zeros(mesh.nv)

    def _inflow_of(self, ng: Any, inflow: Mapping[str, Any]) -> Vector:
        field = ng.GridFunction(self._d.space)
        values = np.zeros(2 * self._n)
        for name, velocity in inflow.items():
            try:
                field.Set(velocity, definedon=self.mesh.Boundaries(name))
            except Exception as error:
                raise SetupError(f"{type(self).__name__}: the inflow on '{name}' is no velocity ({error})") from None
            values += field.vec.FV().NumPy()
        if not np.isfinite(values).all():
            raise SetupError(f"{type(self).__name__}: the inflow is not finite everywhere")
        return values

    # -- the contract ------------------------------------------------------------------------------------------------

    def start(self, t0: float) -> Vector:
        self._state, self._forces = self._first
        return self._forces

    def set_start(self, h: float, velocity: Pair, pressure: Pair, displacement: Pair | None = None) -> None:
        """Let runs start from a motion instead of rest.

        Parameters
        ----------
        h : float
            Length of the step before the start in seconds.
        velocity : tuple of array_like
            Velocities now and one step before, shape (n, 2) at `points_at_rest`.
        pressure : tuple of array_like
            Pressures now and one step before, one value per point or per vertex.
        displacement : tuple of array_like or None, default None
            Displacements of the surface now and one step before, as its port carries them.
        """
        positive(type(self).__name__, "h", h)
        n, found = self._n, []
        for u, p in zip(velocity, pressure, strict=True):
            nodal, heads = np.array(u, dtype=np.float64), np.array(p, dtype=np.float64)
            heads = heads[: self.space.n_vertices] if heads.shape == (n,) else heads
            if nodal.shape != (n, 2) or heads.shape != (self.space.n_vertices,):
                raise SetupError(
                    f"{type(self).__name__}: set_start takes velocities of the shape ({n}, 2) and pressures of "
                    f"({self.space.n_vertices},), not {nodal.shape} and {heads.shape}"
                )
            found.append(np.concatenate([self.space.coefficients(nodal.T).ravel(), heads]))
        d = d_old = self._rest
        if self._moving is not None and displacement is not None:
            d, d_old = (self._motion.follow(np.asarray(values, dtype=np.float64)) for values in displacement)
        x, x_old = found
        if not (np.isfinite(x).all() and np.isfinite(x_old).all()):
            raise NonFiniteError(f"{type(self).__name__}: set_start was given values that are not finite")
        equations = self._step(d, (d - d_old) / h, -x_old[: 2 * n] / h, 1.0 / h)
        forces = self._read_forces(self._residual(x, equations))
        self._first = (x, x_old, x_old, d, d_old, h, None, None), forces

    def motion(self) -> dict[str, Any]:
        """Return the present motion, as `set_start` takes it.

        Returns
        -------
        dict
            `h`, `velocity`, `pressure` and `displacement`, after at least one step.
        """
        x, x_old, _, d, d_old, h, *_ = self._state
        if h is None:
            raise SetupError(f"{type(self).__name__}: there is no motion before the first step")
        n = self._n
        found = {
            "h": h,
            "velocity": tuple(self.space.nodal(v[: 2 * n].reshape(2, n)).T.copy() for v in (x, x_old)),
            "pressure": (x[2 * n :].copy(), x_old[2 * n :].copy()),
        }
        if self._moving is not None:
            found["displacement"] = tuple(self._moving.read(v.reshape(2, n)) for v in (d, d_old))
        return found

    def save(self) -> tuple[State, Vector]:
        return self._state, self._forces

    def restore(self, state: tuple[State, Vector]) -> None:
        self._state, self._forces = state[0], state[1]

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        h = t1 - t0
        x, x_old, x_older, d, d_old, before, before_that, base = self._state
        weights = difference_weights(h, before)
        d_new = d if self._moving is None else self._motion.follow(u.end)
        w = weights[0] * d_new + weights[1] * d + weights[2] * d_old
        guess = _extrapolated((x, x_old, x_older), h, before, before_that)
        self._prescribe(guess, w, t1)
        past = (weights[1] * x + weights[2] * x_old)[: 2 * self._n]
        if base is None or abs(base[3] - weights[0]) > 0.05 * weights[0]:
            base = (x, d, self._rest, weights[0])  # nothing of this trial: a repeated step takes the same matrix
        x_new, base_after = self._solve(guess, d_new, w, past, weights[0], base, t0)
        self._state = x_new, x, x_old, d_new, d, h, before, base_after
        return self._forces

    def steady(self, t: float = np.inf) -> dict[str, Any]:
        """Solve for the steady flow at rest.

        A run that starts afterwards does not start from there.

        Parameters
        ----------
        t : float, default inf
            Time in seconds whose inflow is taken; inf is the inflow without `ramp`.

        Returns
        -------
        dict
            Outputs by name.

        Raises
        ------
        SubsystemError
            If no steady flow is found.
        """
        ramp, self._ramp = self._ramp, self._ramp if np.isfinite(t) else None
        zero = np.zeros(2 * self._n)
        x = np.zeros(self._size)
        still = self._step(zero, zero, zero, 0.0)
        try:
            self._prescribe(x, zero, t)
            for _ in range(self.most):
                base = (x.copy(), zero, zero, 0.0)
                lu = self._matrix(base)
                step = np.zeros(self._size)
                step[self._free] = lu.solve(self._residual(x, still)[self._free])
                x = x - step
                if self._small(step, x, self.tol):
                    break
            else:
                raise SubsystemError(f"no steady flow was found in {self.most} Newton iterations; is it unsteady?")
            self._forces = self._read_forces(self._residual(x, still))
        finally:
            self._ramp = ramp
        self._state = x, x, x, zero, zero, None, None, None
        found: dict[str, Any] = {}
        at = 0
        for port in self.outputs:
            assert isinstance(port, Port)
            part = self._forces[at : at + port.length]
            found[port.name] = float(part[0]) if port.name in ("drag", "lift") else part
            at += port.length
        return found

    @property
    def points_at_rest(self) -> Matrix:
        """Where the points of snapshots are at rest, (n, 2): vertices, then middles of edges."""
        return self.space.points

    def snapshot(self) -> FieldSnapshot:
        """Points where they are now, with velocity, pressure and displacement of the mesh."""
        space, n = self.space, self._n
        x, moved = self._state[0], space.nodal(self._state[3].reshape(2, -1)).T
        pressure = np.zeros(n)
        pressure[: space.n_vertices] = x[2 * n :]
        pressure[space.n_vertices :] = x[2 * n :][space.edges].mean(axis=1)
        return FieldSnapshot(
            space.points + moved,
            {"triangle6": space.triangles},
            point_data={
                "velocity": space.nodal(x[: 2 * n].reshape(2, -1)).T.copy(),
                "pressure": pressure,
                "displacement": moved.copy(),
            },
        )

    # -- one step ----------------------------------------------------------------------------------------------------

    def _prescribe(self, x: Vector, w: Vector, t: float) -> None:
        """Write the velocities of all boundaries that have one into `x`."""
        n = self._n
        factor = 1.0 if self._ramp is None else float(self._ramp(t))
        held = ~self._free[: 2 * n]
        x[: 2 * n][held] = factor * self._inflow[held]
        if self._moving is not None:
            x[: 2 * n][self._motion.driven] = w[self._motion.driven]

    def _step(self, d: Vector, w: Vector, past: Vector, weight: float) -> _Step:
        d, w, past = (self.space.nodal(field.reshape(2, -1)) for field in (d, w, past))
        return _Step(np.ascontiguousarray(self.space.points + d.T), w, past, weight)

    def _residual(self, x: Vector, step: _Step) -> Vector:
        """What is left of momentum and continuity at `x`, by coefficients."""
        space, n = self.space, self._n
        velocity = space.nodal(x[: 2 * n].reshape(2, n))
        flow_residual(
            step.points,
            space.triangles,
            velocity,
            step.mesh_velocity,
            step.weight * velocity + step.past,
            x[2 * n :],
            self.density,
            self.viscosity,
            *self._shapes,
            self._momentum,
            self._continuity,
        )
        return np.concatenate([space.of_nodal_forces(self._momentum).ravel(), self._continuity])

    def _matrix(self, base: Base) -> SuperLU:
        """The factorised matrix that is made from these data."""
        for known, lu in self._factorised:
            if known[3] == base[3] and all(mine is given for mine, given in zip(known[:3], base[:3], strict=True)):
                return lu
        for field, values in zip((self._x, self._d, self._w), base[:3], strict=True):
            field.vec.FV().NumPy()[:] = values
        self._weight.Set(base[3])
        self.mesh.SetDeformation(self._d)  # for the moment: others may look at the same mesh
        try:
            self._form.AssembleLinearization(self._x.vec)
        finally:
            self.mesh.UnsetDeformation()
        if self._free_part is None:
            self._free_part = FreePart(self._form.mat, self._free)
        A = self._free_part.of(self._form.mat)
        if not np.isfinite(A.data).all():
            raise NonFiniteError("the matrix of the flow is not finite")
        self.factorisations += 1
        lu = factorised(A)
        self._factorised = [(base, lu), *self._factorised[: _KEPT - 1]]
        return lu

    def _solve(
        self, x: Vector, d: Vector, w: Vector, past: Vector, weight: float, base: Base, t: float
    ) -> tuple[Vector, Base]:
        """Velocity and pressure at the end of the step from a guess, and what the next step's matrix is made from."""
        lu, equations = self._matrix(base), self._step(d, w, past, weight)
        last, slow, whole_size = np.zeros(2), False, np.ones(2)
        for k in range(self.most):
            r = self._residual(x, equations)
            if not np.isfinite(r).all():
                raise NonFiniteError(f"velocity or pressure became infinite in the step from t = {t:.6g}")
            step = np.zeros(self._size)
            step[self._free] = lu.solve(r[self._free])
            self.corrections += 1
            size = self._norms(step)
            ratio = float((size / np.maximum(last, np.finfo(np.float64).tiny)).max()) if last.any() else 0.5
            if ratio > _LOST:  # no good: from here on with a matrix of this place
                base = (x, d, w, weight)
                lu, last = self._matrix(base), np.zeros(2)
                continue
            x = x - step
            whole_size = self._norms(x)
            # what is left is a geometric series of corrections
            if (size * min(ratio / (1.0 - ratio), 1.0) <= self.tol * whole_size).all():
                self._forces = self._read_forces(self._residual(x, equations))
                return x, (x, d, w, weight) if slow else base
            slow |= k > 1 and ratio > _SLOW
            last = size
        raise SubsystemError(
            f"the Newton iteration of the flow did not converge in {self.most} iterations in the step from t = {t:.6g} "
            f"(last corrections {size[0] / max(whole_size[0], 1e-300):.1e} of the velocity, "
            f"{size[1] / max(whole_size[1], 1e-300):.1e} of the pressure); a smaller step may do"
        )

    def _norms(self, x: Vector) -> Vector:
        """The norms of velocity and pressure."""
        n = 2 * self._n
        with np.errstate(over="ignore"):  # of what diverges
            found: Vector = np.sqrt(np.array([x[:n] @ x[:n], x[n:] @ x[n:]]))
        return found

    def _small(self, step: Vector, x: Vector, tol: float) -> bool:
        return bool((self._norms(step) <= tol * self._norms(x)).all())

    def _read_forces(self, r: Vector) -> Vector:
        dual = -r[: 2 * self._n].reshape(2, -1)
        parts: list[Matrix | Vector] = []
        if self._moving is not None:
            parts.append(self._moving.forces(dual))
        if self._body is not None:
            parts.append(self._body.forces(dual).reshape(-1, 2).sum(axis=0))
        return np.concatenate(parts)


def _extrapolated(past: tuple[Vector, Vector, Vector], h: float, before: float | None, earlier: float | None) -> Vector:
    """The first guess of a step: the polynomial through the last points."""
    x, x_old, x_older = past
    if before is None:
        return x.copy()
    if earlier is None:
        return x + (h / before) * (x - x_old)
    a, b = before, before + earlier
    at = [(h + a) * (h + b) / (a * b), -h * (h + b) / (a * earlier), h * (h + a) / (b * earlier)]
    found: Vector = at[0] * x + at[1] * x_old + at[2] * x_older
    return found
