"""What elastic solids in plane strain have in common, however forces are computed: ports, steps and states.

Nodal forces on a surface come in, its displacement goes out. Displacement `d` and velocity `v` are differenced by the
same formula, BDF2, so that the velocity of the surface is what a flow with BDF2 sees of its displacement:

    v = D d,   rho D v + div-terms of P(d) = rho g + forces,      P = F S,  S = lambda tr(E) I + 2 mu E.

A solid of this kind has a mass matrix, a weight, and a method that solves `inertia M d + K(d) = load`. It remembers
nothing but the fields of two points of time: that is its state, and a step that is repeated has the same bits.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import positive, whole
from cosolve.errors import SetupError
from cosolve.fields.bdf2 import difference_weights
from cosolve.fields.field_subsystem import FieldSnapshot, FieldSubsystem
from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Mesh
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.port import Port

#: displacement and velocity, now and one step ago, and the length of that step (None: there was none)
State = tuple[Vector, Vector, Vector, Vector, float | None]

#: Values now, and one step ago.
Pair = tuple[npt.ArrayLike, npt.ArrayLike]


class MovingSolid(FieldSubsystem):
    """A St. Venant-Kirchhoff solid of quadratic triangles in time: what is left to say is how it is solved.

    Fields are vectors of unknowns in an order that is the solver's own affair; `_nodal` and `_unknowns` go to values at
    points and back.
    """

    #: at rest: vertices, then middles of edges
    _points: Matrix
    #: corners and middles of the edges 01, 12, 20 of each triangle
    _triangles: npt.NDArray[np.int64]
    #: numbers of the points on the surface, in the order of its ports
    _nodes: npt.NDArray[np.int64]
    _mass: csr_array
    _weight: Vector
    #: which unknowns are not clamped
    _free: npt.NDArray[np.bool_]

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
        for name, value in (("young", young), ("density", density), ("tol", tol)):
            positive(who, name, value)
        if not -1.0 < poisson < 0.5:
            raise SetupError(f"{who}: poisson must lie between -1 and 0.5, not {poisson!r}")
        acceleration = np.asarray(gravity, dtype=np.float64)
        if acceleration.shape != (2,) or not np.isfinite(acceleration).all():
            raise SetupError(f"{who}: gravity must be two numbers, not {gravity!r}")
        self.tol, self.most = tol, whole(who, "most", most)
        #: lambda and mu
        self._lame = young * poisson / ((1 + poisson) * (1 - 2 * poisson)), young / (2 * (1 + poisson))
        self._set_up(mesh, clamped, surface, density)
        everywhere = np.broadcast_to(acceleration, self._points.shape)
        self._weight = self._mass @ self._unknowns(everywhere)
        self._probes = [self._probe(name, point) for name, point in (probes or {}).items()]
        count = 2 * len(self._nodes)
        self.inputs, self.outputs = [Port("force", count, "N/m")], [Port("displacement", count, "m")]
        for name in probes or {}:
            self.outputs += [Port(f"{name}_x", unit="m"), Port(f"{name}_y", unit="m")]
        zero = np.zeros(len(self._weight))
        self._first: State = (zero, zero, zero, zero, None)
        self.start(0.0)

    # -- what a solver says ------------------------------------------------------------------------------------------

    @abstractmethod
    def _set_up(self, mesh: Any, clamped: str, surface: str, density: float) -> None:
        """Check the mesh; say points, triangles, nodes and `meshes` of the surface, mass, and who is free."""

    @abstractmethod
    def _probe(self, name: str, point: Sequence[float]) -> Callable[[Vector], Vector]:
        """How the displacement of a point follows from a field."""

    @abstractmethod
    def _nodal(self, field: Vector) -> Matrix:
        """Values of a field at the points, (n, 2)."""

    @abstractmethod
    def _unknowns(self, nodal: Matrix) -> Vector:
        """The field with these values (n, 2) at the points."""

    @abstractmethod
    def _at_surface(self, field: Vector) -> Vector:
        """Values of a field at the points of the surface, as the port carries them."""

    @abstractmethod
    def _surface_loads(self, force: Vector) -> Vector:
        """What nodal forces on the surface do to the unknowns: `_at_surface` transposed."""

    @abstractmethod
    def _solve(self, guess: Vector, load: Vector, inertia: float, t: float) -> Vector:
        """`inertia M d + K(d) = load` from a guess; the same bits for the same arguments."""

    @abstractmethod
    def trace_to(self, target: Mesh) -> FieldMapping:
        """Make the mapping of displacements to another mesh of the surface, by the solid's own quadratic functions.

        Parameters
        ----------
        target : Mesh
            The other mesh.

        Returns
        -------
        FieldMapping
            The mapping. Its transpose maps forces back: `system.map("fluid.force", "solid.force", mapping,
            "conservative")`.
        """

    # -- the contract ------------------------------------------------------------------------------------------------

    def start(self, t0: float) -> Vector:
        self._state = self._first
        return self._outputs()

    def save(self) -> State:
        return self._state

    def restore(self, state: State) -> None:
        self._state = state

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        h = t1 - t0
        d, v, d_old, v_old, before = self._state
        a, b, c = difference_weights(h, before)
        # rho D v = rho (a (a d + b d_n + c d_o) + b v_n + c v_o)
        past = b * d + c * d_old
        load = self._weight + self._surface_loads(u.end) - self._mass @ (a * past + b * v + c * v_old)
        found = self._solve(d + h * v, load, a * a, t0)
        self._state = found, a * found + past, d, v, h
        return self._outputs()

    def snapshot(self) -> FieldSnapshot:
        """Points where they are now, with displacement and velocity."""
        d, v, *_ = self._state
        moved, speed = self._nodal(d), self._nodal(v)
        return FieldSnapshot(
            self._points + moved,
            {"triangle6": self._triangles},
            point_data={"displacement": moved.copy(), "velocity": speed.copy()},
        )

    def _outputs(self) -> Vector:
        d = self._state[0]
        return np.concatenate([self._at_surface(d), *(probe(d) for probe in self._probes)])

    # -- more than the contract --------------------------------------------------------------------------------------

    def static(self, force: Vector | None = None, steps: int = 1) -> dict[str, Any]:
        """Solve for the rest position under the weight and a force on the surface.

        A run that starts afterwards does not start from there.

        Parameters
        ----------
        force : ndarray or None, default None
            Values of the port `force`. None: none.
        steps : int, default 1
            Number of steps in which the load is applied.

        Returns
        -------
        dict
            Outputs by name.
        """
        load = self._weight.copy()
        if force is not None:
            load += self._surface_loads(np.asarray(force, dtype=np.float64))
        found = np.zeros_like(load)
        for k in range(1, steps + 1):
            found = self._solve(found, load * (k / steps), 0.0, 0.0)
        self._state = found, np.zeros_like(found), found, np.zeros_like(found), None
        values = self._outputs()
        count = 2 * len(self._nodes)
        names = [port.name for port in self.outputs[1:] if isinstance(port, Port)]
        return {"displacement": values[:count], **{n: float(x) for n, x in zip(names, values[count:], strict=True)}}

    def set_start(self, h: float, displacement: Pair, velocity: Pair) -> None:
        """Let runs start from a motion instead of rest.

        Parameters
        ----------
        h : float
            Length of the step before the start in seconds.
        displacement : tuple of array_like
            Displacements now and one step before, shape (n, 2) at `points_at_rest`.
        velocity : tuple of array_like
            Velocities now and one step before, likewise.
        """
        positive(self._who, "h", h)
        found = []
        for values in (displacement[0], velocity[0], displacement[1], velocity[1]):
            nodal = np.asarray(values, dtype=np.float64)
            if nodal.shape != self._points.shape or not np.isfinite(nodal).all():
                raise SetupError(
                    f"{self._who}: set_start takes finite values of the shape {self._points.shape}, not {nodal.shape}"
                )
            found.append(self._unknowns(nodal) * self._free)
        self._first = (found[0], found[1], found[2], found[3], h)

    def motion(self) -> dict[str, Any]:
        """Return the present motion, as `set_start` takes it.

        Returns
        -------
        dict
            `h`, `displacement` and `velocity`, after at least one step.
        """
        d, v, d_old, v_old, h = self._state
        if h is None:
            raise SetupError(f"{self._who}: there is no motion before the first step")
        d, v, d_old, v_old = (self._nodal(field).copy() for field in (d, v, d_old, v_old))
        return {"h": h, "displacement": (d, d_old), "velocity": (v, v_old)}

    @property
    def points_at_rest(self) -> Matrix:
        """Where the points of snapshots are at rest, (n, 2): vertices, then middles of edges."""
        return self._points

    def at_surface(self, values: npt.ArrayLike) -> Vector:
        """Take the values of a field at the coupled surface.

        Parameters
        ----------
        values : array_like
            Shape (n, 2), at all points.

        Returns
        -------
        ndarray
            Flat, as the ports carry it.
        """
        return np.asarray(values, dtype=np.float64)[self._nodes].ravel()
