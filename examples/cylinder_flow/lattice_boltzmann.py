"""A cylinder in a cross flow by the lattice-Boltzmann method: nothing to install, and fast on one core.

D2Q9 with two relaxation times (the product of their distances to one half is 3/16), walls where they are by linear
interpolation (Bouzidi et al. (2001)), forces by exchange of momentum, double precision. Along the
flow sound is taken out over three diameters at the inlet and the outlet by a sponge, which moves the density of the
equilibrium towards one and makes the fluid viscous; without it standing waves spoil the lift.

The frame moves with the cylinder: the whole fluid is accelerated against it, and the inflow turns. A cylinder that
moved over the lattice would cover and uncover nodes, whose populations must be invented, and each of these is a blow in
the force; here the links between fluid and wall are the same for a run. With periodic sides a uniform acceleration is
the change of frame exactly. Sides without friction would move with the cylinder, so they are for one that is held.

Inside, lengths are in nodes and times in steps; `f` holds the populations after collision. Their velocity is that half
a step later, and so is the force that they exert in the next exchange: as the frame's velocity at `t` is set there,
both stand for `t`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

import cosolve as cs
from examples.cylinder_flow import lattice_kernels as kernels
from examples.cylinder_flow.cross_flow import CrossFlow, CylinderFlow, positive

if TYPE_CHECKING:
    pass

Populations = npt.NDArray[np.float64]

#: Nodes per step of the fastest flow (0.26 of the speed of sound): errors of compressibility are some percent there.
_FASTEST = 0.15
#: Least relaxation time of the stress; below, waves of two nodes are hardly damped.
_LEAST_TAU = 0.505
#: Length of the sponges in diameters, and how much of the density's error it takes in a step at its end.
_SPONGE, _STRENGTH = 3.0, 0.1
#: `(tau+ - 1/2)(tau- - 1/2)`: walls half way between nodes are exact in a plane channel, at any viscosity.
_MAGIC = 3.0 / 16.0


class LatticeBoltzmannCylinder(CylinderFlow):
    """The flow around a cylinder by the lattice-Boltzmann method.

    Parameters
    ----------
    flow : CrossFlow
        The flow.
    step : float
        Lattice step in seconds.
    cells : int, default 16
        Number of nodes along a diameter. With `step` it gives the velocity on the lattice, `lattice_velocity`; 0.05 to
        0.1 nodes per step are good.
    upstream : float, default 10.0
        Length of the lattice upstream of the axis, in diameters.
    downstream : float, default 20.0
        Length downstream of the axis, in diameters.
    width : float, default 20.0
        Width of the lattice in diameters.
    sides : {"periodic", "slip"}, default "periodic"
        Condition at the sides.
    threads : int, default 1
        Number of threads. The bits do not depend on it.

    Notes
    -----
    Ports: `v` in, the transverse velocity of the cylinder in m/s; `lift` (along `v`) and `drag` (along the flow) out,
    in N. The macro step must be a whole number of steps.

    References
    ----------
    .. [1] M. Bouzidi, M. Firdaouss, P. Lallemand, Momentum transfer of a Boltzmann-lattice fluid with boundaries,
       Physics of Fluids 13(11), 2001.
    .. [2] I. Ginzburg, F. Verhaeghe, D. d'Humières, Two-relaxation-time lattice Boltzmann scheme, Communications in
       Computational Physics 3(2), 2008.

    Examples
    --------
    >>> water = CrossFlow(velocity=0.0625, diameter=1.6e-3, viscosity=1e-6)
    >>> fluid = LatticeBoltzmannCylinder(water, step=1.25e-4, cells=16)
    >>> fluid.lattice_velocity, fluid.shape
    (0.078125, (480, 320))
    """

    def __init__(
        self,
        flow: CrossFlow,
        step: float,
        *,
        cells: int = 16,
        upstream: float = 10.0,
        downstream: float = 20.0,
        width: float = 20.0,
        sides: Literal["periodic", "slip"] = "periodic",
        threads: int = 1,
    ) -> None:
        super().__init__(flow, step)
        owner = type(self).__name__
        for name, number, least in (("cells", cells, 4), ("threads", threads, 1)):
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise cs.errors.SetupError(
                    f"{owner}: {name} must be a whole number of at least {least}, not {number!r}"
                )
        self.cells, self.threads = cells, threads
        if sides not in ("periodic", "slip"):
            raise cs.errors.SetupError(f"{owner}: sides must be 'periodic' or 'slip', not {sides!r}")
        self.sides: Literal["periodic", "slip"] = sides
        for name, length in (("upstream", upstream), ("downstream", downstream), ("width", width)):
            least = 2.0 if name == "width" else _SPONGE + 0.75
            if positive(owner, name, length) < least:
                raise cs.errors.SetupError(f"{owner}: {name} must be at least {least:g} diameters, not {length:g}")
        self._dx = flow.diameter / self.cells
        self.lattice_velocity = flow.velocity * self.h / self._dx
        self.shape = round((upstream + downstream) * self.cells), round(width * self.cells)
        self._centre = upstream * self.cells, 0.5 * self.shape[1]
        self._refuse_stiff()
        self._refuse_fast(0.0, "")
        self._f: Populations = np.zeros((9, 0, 0))
        self._g: Populations = np.zeros((9, 0, 0))
        self._body: _Body | None = None
        self._pool: ThreadPoolExecutor | None = None

    @property
    def tau(self) -> float:
        """Relaxation time of the stress in steps."""
        return 0.5 + 3.0 * self.flow.viscosity * self.h / self._dx**2

    # -- what a solver defines -------------------------------------------------------------------------------

    def at_start(self, v: float) -> None:
        """Start with a uniform flow around the cylinder.

        Parameters
        ----------
        v : float
            Transverse velocity of the cylinder in m/s.
        """
        if self._body is None:
            self._body = _Body(self._centre, 0.5 * self.cells)
        w = self._on_lattice(v)
        nx, ny = self.shape
        self._f = np.empty((9, nx + 2, ny + 2))
        self._f[:] = equilibrium(1.0, self.lattice_velocity, -w)[:, None, None]
        kernels.set_to_rest(self._f, self._body.inside)
        self._g = self._f.copy()
        self._force = np.array(self._measured(w))

    def march(self, v: np.ndarray, t0: float) -> tuple[float, float]:
        self._refuse_fast(float(np.abs(v).max()), f" at t = {t0:.9g}")
        if self.sides == "slip" and v.any():
            raise cs.errors.SubsystemError(
                "the cylinder moves, but its lattice has slip sides, which would move with it; take sides='periodic'"
            )
        w = np.concatenate([[self._v], v]) * self.h / self._dx
        acceleration = np.zeros((len(v), 2))
        acceleration[:, 1] = w[:-1] - w[1:]
        self._take_steps(-w[:-1], acceleration)
        return self._measured(float(w[-1]))

    def fields(self) -> Populations:
        return self._f.copy()

    def set_fields(self, fields: Any) -> None:
        self._f[:] = fields

    def snapshot(self) -> cs.fields.FieldSnapshot:
        """Velocity (m/s, of the frame at rest), pressure (Pa) and vorticity (1/s) at the nodes, with cells between."""
        assert self._body is not None
        (nx, ny), flow = self.shape, self.flow
        density, ux, uy = (np.empty(self.shape) for _ in range(3))
        kernels.moments(self._f, density, ux, uy)
        speed = self._dx / self.h
        velocity = np.stack([ux * speed, uy * speed + self._v], axis=-1)
        pressure = (density - 1.0) / 3.0 * flow.density * speed**2
        inside = tuple((self._body.inside - 1).T)
        velocity[inside], pressure[inside] = (0.0, self._v), 0.0
        x, y = ((np.arange(n) + 0.5 - c) * self._dx for n, c in zip(self.shape, self._centre, strict=True))
        vorticity = np.gradient(velocity[..., 1], x, axis=0) - np.gradient(velocity[..., 0], y, axis=1)
        vorticity[inside] = 0.0
        points = np.stack(np.meshgrid(x, y + self.displacement, indexing="ij"), axis=-1).reshape(-1, 2)
        corner = (np.arange(nx - 1)[:, None] * ny + np.arange(ny - 1)).ravel()
        return cs.fields.FieldSnapshot(
            points,
            {"quad": np.column_stack([corner, corner + ny, corner + ny + 1, corner + 1])},
            point_data={
                "velocity": velocity.reshape(-1, 2),
                "pressure": pressure.ravel(),
                "vorticity": vorticity.ravel(),
            },
        )

    # -- the lattice -----------------------------------------------------------------------------------------

    def _columns(self) -> np.ndarray:
        """For each column of the lattice: how much of the density's error the sponge takes, and the two rates.

        Towards the ends the fluid becomes more viscous: at the inlet a slow relaxation of the odd populations would be
        unstable, at the outlet vortices are to leave without a sound.
        """
        x, length = np.arange(self.shape[0] + 2) - 0.5, _SPONGE * self.cells
        inlet, outlet = (length - x) / length, (x - (self.shape[0] - length)) / length
        ramp = np.clip(np.maximum(inlet, outlet), 0.0, 1.0) ** 2
        tau = self.tau + ramp * max(1.0 - self.tau, 0.0)
        return np.array([_STRENGTH * ramp, 1.0 / tau, 1.0 / (0.5 + _MAGIC / (tau - 0.5))])

    def _refuse_stiff(self) -> None:
        if self.tau < _LEAST_TAU:
            raise cs.errors.SetupError(
                f"{type(self).__name__}: the relaxation time {self.tau:.4f} is too near 1/2 to be stable (at least "
                f"{_LEAST_TAU} is asked for): with Re = {self.flow.Re:.3g} take more than {self.cells} cells per "
                f"diameter, or a longer step than {self.h:g} s"
            )

    def _refuse_fast(self, v: float, when: str) -> None:
        fastest = float(np.hypot(self.lattice_velocity, self._on_lattice(v)))
        if fastest > _FASTEST:
            raise (cs.errors.SubsystemError if when else cs.errors.SetupError)(
                f"{type(self).__name__}: the flow moves {fastest:.3g} nodes per step{when}, a lattice Mach number of "
                f"{fastest * 3.0**0.5:.2g}, where {_FASTEST} nodes per step are the most; take a step of "
                f"{0.08 / fastest * self.h:.2g} s"
            )

    def _on_lattice(self, v: float) -> float:
        return v * self.h / self._dx

    def _take_steps(self, velocities: np.ndarray, accelerations: np.ndarray) -> None:
        assert self._body is not None
        body, force = self._body, np.zeros(2)
        side = kernels.PERIODIC if self.sides == "periodic" else kernels.SLIP
        columns = self._columns()
        walls = np.zeros((len(body.shares), 2))
        if self.threads == 1:
            kernels.lattice_steps(
                self._f,
                self._g,
                kernels.OPEN,
                side,
                self.lattice_velocity,
                velocities,
                accelerations,
                columns,
                body.links,
                body.shares,
                walls,
                body.inside,
                force,
            )
            if len(velocities) % 2:
                self._f, self._g = self._g, self._f
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads)
        ends = np.linspace(1, self.shape[0] + 1, self.threads + 1).astype(int).tolist()
        for velocity, (ax, ay) in zip(velocities, accelerations, strict=True):
            kernels.rim_filled(self._f, kernels.OPEN, side, self.lattice_velocity, velocity)
            kernels.sent_back(self._f, body.links, body.shares, walls, force)
            parts = [
                self._pool.submit(kernels.pulled_and_collided, self._f, self._g, first, last, columns, ax, ay)
                for first, last in pairwise(ends)
            ]
            for one in parts:
                one.result()
            kernels.set_to_rest(self._g, body.inside)
            self._f, self._g = self._g, self._f

    def _measured(self, w: float) -> tuple[float, float]:
        """Lift and drag of the populations as they are; what it writes behind the wall, the next step writes again."""
        assert self._body is not None
        body, force = self._body, np.zeros(2)
        kernels.sent_back(self._f, body.links, body.shares, np.zeros((len(body.shares), 2)), force)
        unit = self.flow.density * self._dx**3 / self.h**2 * self.flow.span
        return unit * float(force[1]), unit * float(force[0])


class _Body:
    """A disc on the lattice: its links from the fluid into the wall, where the wall cuts them, and nodes inside.

    Nodes have whole numbers from 1 on (0 is the rim) and lie half a node before these.
    """

    def __init__(self, centre: tuple[float, float], radius: float) -> None:
        self.links, self.shares, self.inside = disc_links(centre, radius)


def disc_links(
    centre: tuple[float, float], radius: float
) -> tuple[npt.NDArray[np.int64], np.ndarray, npt.NDArray[np.int64]]:
    """Links (direction, x, y) from nodes outside a disc into it, where they are cut, and the nodes inside.

    >>> links, shares, inside = disc_links((3.5, 3.5), 1.75)
    >>> len(inside), links[shares.argmin()].tolist(), float(shares.min())
    (9, [1, 2, 4], 0.25)
    """
    around = [np.arange(int(np.floor(c - radius)) - 1, int(np.ceil(c + radius)) + 3) for c in centre]
    x, y = (grid.ravel() for grid in np.meshgrid(*around, indexing="ij"))
    rx, ry = x - 0.5 - centre[0], y - 0.5 - centre[1]
    outside = rx**2 + ry**2 > radius**2
    links, shares = [], []
    for i in range(1, 9):
        cx, cy = int(kernels.CX[i]), int(kernels.CY[i])
        cut = outside & ((rx + cx) ** 2 + (ry + cy) ** 2 <= radius**2)
        a, b, c = cx**2 + cy**2, (rx * cx + ry * cy)[cut], (rx**2 + ry**2 - radius**2)[cut]
        links.append(np.column_stack([np.full(int(cut.sum()), i), x[cut], y[cut]]))
        shares.append((-b - np.sqrt(b**2 - a * c)) / a)
    inside = np.column_stack([x[~outside], y[~outside]])
    return np.concatenate(links).astype(np.int64), np.concatenate(shares), inside.astype(np.int64)


def equilibrium(density: float, ux: float, uy: float) -> np.ndarray:
    """Populations of a uniform flow.

    >>> f = equilibrium(1.0, 0.1, 0.0)
    >>> round(float(f.sum()), 15), round(float(f[[1, 5, 8]].sum() - f[[3, 6, 7]].sum()), 15)
    (1.0, 0.1)
    """
    c = kernels.CX * ux + kernels.CY * uy
    return np.asarray(density * kernels.WEIGHTS * (1.0 + 3.0 * c + 4.5 * c**2 - 1.5 * (ux**2 + uy**2)))
