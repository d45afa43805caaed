"""Mass-conserving cavitation of a journal bearing: the p-theta model of Elrod and Adams, as a complementarity problem.

Where the film is whole, its pressure is positive and the gap is full (`fill = 1`). Where it is broken, the pressure is
zero and streamers fill only a part of the gap. With the gap `H` and its rate of change as in `reynolds.py`

    d/dtheta (H^3 dp/dtheta) + (R/B)^2 d/dz (H^3 dp/dz) = u d/dtheta (fill H) + 2 fill (e_x' cos + e_y' sin),
    p >= 0,   1 - fill >= 0,   p (1 - fill) = 0

holds everywhere (Jakobsson and Floberg (1957), Olsson (1965)), and with it the balance of oil; the places of rupture
and reformation come out of the solution. `u` is the speed of the journal surface (`omega` in the frame at rest, `1 - 2
delta'` in that of the line of centres). The fill is taken as quasi-steady in the frame used, which keeps the model free
of memory. Oil that leaves at the edges must come in somewhere: an axial groove feeds the film.

Finite volumes as in `reynolds.py`, the transport upwind; the complementarity is solved by an active-set (semi-smooth
Newton) iteration with a sparse direct solver. Elrod and Adams (1975), Elrod (1981).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array
from scipy.sparse.linalg import SuperLU, splu

import cosolve as cs
from examples.rotor_bearing.reynolds import Array, Film, Reynolds, refuse_contact

Index: TypeAlias = npt.NDArray[np.int64]

_MAX_SWEEPS = 100


@dataclass(frozen=True)
class Groove:
    """Axial supply groove at the angle `theta`, over the share `length` of the width, at the pressure `pressure`.

    The pressure has the units of the film's pressure, above ambient.

    >>> Groove(theta=0.0, length=0.8)
    Groove(theta=0.0, length=0.8, pressure=0.0)
    """

    theta: float = 0.0
    length: float = 1.0
    pressure: float = 0.0

    def __post_init__(self) -> None:
        if not np.isfinite(self.theta):
            raise cs.errors.SetupError(f"Groove: theta must be an angle in radians, not {self.theta!r}")
        if not 0 < self.length <= 1:
            raise cs.errors.SetupError(f"Groove: length is a share of the width between 0 and 1, not {self.length!r}")
        if not (np.isfinite(self.pressure) and self.pressure >= 0):
            raise cs.errors.SetupError(f"Groove: pressure must not be below ambient (0), got {self.pressure!r}")


@dataclass(frozen=True)
class CavitatedFilm(Film):
    """A film with its oil: `fill` (n_theta, n_z), and the balance `supplied = leaked + stored` over the whole width.

    `derivative` (2, 5) is by `e_x, e_y, e_x', e_y'` and the speed; `defect` is the largest imbalance of a cell outside
    the groove.
    """

    fill: Array
    supplied: float
    leaked: float
    stored: float
    defect: float


@dataclass(frozen=True)
class _Stencil:
    """A sparse matrix as triplets."""

    rows: Index
    columns: Index
    values: Array


class Elrod:
    """Mass-conserving solver on the grid of `Reynolds`, fed by a groove.

    >>> film = Elrod(width=1.0, groove=Groove(theta=0.0)).solve((0.6, 0.0), speed=1.0)
    >>> bool(film.pressure.min() >= 0 and 0 < film.fill.min() < film.fill.max() == 1.0)
    True
    >>> bool(abs(film.supplied - film.leaked - film.stored) < 1e-10)
    True
    """

    def __init__(self, width: float, n_theta: int = 64, n_z: int = 16, groove: Groove | None = None) -> None:
        grid = self.grid = Reynolds(width, n_theta, n_z)
        self.groove = groove or Groove()
        self.n_theta, self.n_z = grid.n_theta, grid.n_z
        column = int(np.argmin(np.abs(np.angle(np.exp(1j * (grid.theta - self.groove.theta))))))
        wet = np.zeros((n_theta, n_z), dtype=bool)
        wet[column, : max(1, round(self.groove.length * n_z))] = True
        self._wet = wet.reshape(-1)
        cell = np.arange(n_theta * n_z).reshape(n_theta, n_z)
        self._ahead, self._behind = (np.roll(cell, -turn, axis=0).reshape(-1) for turn in (1, -1))
        self._faces = np.exp(1j * (np.arange(n_theta) + 1.0) * grid.d_theta)
        self._cells = np.exp(1j * grid.theta)

    def solve(self, e: tuple[float, float], speed: float, rate: tuple[float, float] = (0.0, 0.0)) -> CavitatedFilm:
        """The film for the gap `1 + e_x cos + e_y sin` that changes at `rate` under a surface of the given speed.

        The speed must not be zero: the quasi-steady fill is what the moving surface brings along.

        >>> film = Elrod(width=1.0).solve((0.6, 0.0), speed=1.0, rate=(0.02, 0.0))
        >>> film.fill.shape, film.derivative.shape
        ((64, 16), (2, 5))
        """
        refuse_contact(float(np.hypot(*e)))
        if speed == 0 or not np.isfinite([speed, *rate]).all():
            raise cs.errors.SubsystemError(
                f"Elrod: needs a moving surface and a finite rate, got speed {speed:g} and rate ({rate[0]:g}, "
                f"{rate[1]:g}); at standstill the quasi-steady fill does not exist, use the Guembel condition there"
            )
        parameters = np.array([*e, *rate, speed])
        p, gas, solve = self._active_set(*self._matrices(parameters), parameters)
        # differentiate the discrete balance at the final active set; it is analytic, so a complex step is exact
        slopes = np.empty((5, p.size))
        for j in range(5):
            shifted = parameters.astype(complex)
            shifted[j] += 1e-30j
            slopes[j] = self._balance(p, gas, shifted).imag / 1e-30
        slopes[:, self._wet] = 0.0
        changes = -solve(slopes.T).T
        changes[:, (gas > 0) | ((p == 0) & ~self._wet)] = 0.0  # there the fill changes, not the pressure
        forces = self._forces(np.concatenate([p[np.newaxis], changes]))
        balance = self._balance(p, gas, parameters)
        area = 2 * self.grid.d_z
        return CavitatedFilm(
            p.reshape(self.n_theta, self.n_z),
            forces[:, 0],
            forces[:, 1:],
            (1 - gas).reshape(self.n_theta, self.n_z),
            supplied=area * float(balance[self._wet].sum()),
            leaked=area * float(self._leakage(p, parameters)),
            stored=area * float((self._opening(parameters) * (1 - gas)).sum()),
            defect=float(np.abs(balance[~self._wet]).max()),
        )

    def at_rest(self, e: tuple[float, float], rate: tuple[float, float], omega: float) -> CavitatedFilm:
        """The film in the frame at rest, where the surface moves with `omega`."""
        return self.solve(e, omega, rate)

    # -- the discrete balance of oil -------------------------------------------------------------------------

    def _cubes(self, parameters: Any) -> tuple[Any, Any, Any]:
        """Gap on the faces ahead, its cube there over the cell length, and its cube in the cells times the length."""
        ex, ey = parameters[:2]
        d = self.grid.d_theta
        faces = np.repeat(1 + ex * self._faces.real + ey * self._faces.imag, self.n_z)
        cells = np.repeat(1 + ex * self._cells.real + ey * self._cells.imag, self.n_z)
        return faces, faces**3 / d, cells**3 * d

    def _opening(self, parameters: Any) -> Any:
        """Rate at which the gap of a cell takes up oil."""
        cos, sin = self._cells.real, self._cells.imag
        return np.repeat(4 * np.sin(self.grid.d_theta / 2) * (parameters[2] * cos + parameters[3] * sin), self.n_z)

    def _leakage(self, p: Array, parameters: Any) -> Any:
        """Flow over the edge."""
        _, _, cells = self._cubes(parameters)
        edge = slice(self.n_z - 1, None, self.n_z)
        return (2 * cells[edge] * p[edge]).sum() / (self.grid.width * self.grid.d_z) ** 2

    def _balance(self, p: Array, gas: Array, parameters: Any) -> Any:
        """Outflow minus inflow plus storage of every cell."""
        faces, conduct, cells = self._cubes(parameters)
        fill, speed = 1 - gas, parameters[4]
        carried = speed * faces * (fill if speed.real > 0 else fill[self._ahead])
        flow = carried - conduct * (p[self._ahead] - p)
        grid = p.reshape(self.n_theta, self.n_z)
        inner = np.diff(grid, axis=1, prepend=grid[:, :1], append=-grid[:, -1:])
        axial = -np.diff(inner, axis=1).reshape(-1) * cells / (self.grid.width * self.grid.d_z) ** 2
        return flow - flow[self._behind] + axial + self._opening(parameters) * fill

    def _matrices(self, parameters: Array) -> tuple[_Stencil, _Stencil]:
        """`L` and `T` of the balance `L p - T gas + T 1 = 0`."""
        faces, conduct, cells = self._cubes(parameters)
        k = np.arange(faces.size)
        axial = cells / (self.grid.width * self.grid.d_z) ** 2
        j = k % self.n_z
        inward, outward = j > 0, j < self.n_z - 1
        diagonal = conduct + conduct[self._behind] + axial * (inward + np.where(outward, 1.0, 2.0))
        L = _Stencil(
            rows=np.concatenate([k, k, k, k[inward], k[outward]]),
            columns=np.concatenate([k, self._ahead, self._behind, k[inward] - 1, k[outward] + 1]),
            values=np.concatenate([diagonal, -conduct, -conduct[self._behind], -axial[inward], -axial[outward]]),
        )
        speed, opening = parameters[4], self._opening(parameters)
        out, into = speed * faces, speed * faces[self._behind]
        if speed > 0:
            T = _Stencil(np.tile(k, 2), np.concatenate([k, self._behind]), np.concatenate([out + opening, -into]))
        else:
            T = _Stencil(np.tile(k, 2), np.concatenate([k, self._ahead]), np.concatenate([opening - into, out]))
        return L, T

    def _active_set(self, L: _Stencil, T: _Stencil, parameters: Array) -> tuple[Array, Array, Any]:
        """Pressure, gas share `1 - fill`, and the factorised matrix of the final active set."""
        n = self._wet.size
        ex, ey, rx, ry, speed = parameters.tolist()
        guess = self.grid.at_rest((ex, ey), (rx, ry), speed).pressure.reshape(-1)
        broken = (guess <= 0) & ~self._wet
        load = -np.bincount(T.rows, T.values, n)
        load[self._wet] = self.groove.pressure
        for _ in range(_MAX_SWEEPS):
            solve = self._factorised(L, T, broken)
            x = solve(load)
            floor = 1e-13 * np.abs(x).max(initial=0.0)
            wrong = (x < -floor) & ~self._wet
            if not wrong.any():
                p, gas = np.where(broken, 0.0, np.maximum(x, 0.0)), np.where(broken, np.maximum(x, 0.0), 0.0)
                if gas.max() < 1 + 1e-9:
                    return p, np.minimum(gas, 1.0), solve
                break
            broken = broken ^ wrong
        raise cs.errors.SubsystemError(
            f"Elrod: no quasi-steady film at e = ({ex:.6g}, {ey:.6g}), speed {speed:.6g}, rate = ({rx:.6g}, {ry:.6g}): "
            f"the gap changes too fast for the oil that the surface brings; use the Guembel condition"
        )

    def _factorised(self, L: _Stencil, T: _Stencil, broken: Any) -> Any:
        """Solver with a pressure as unknown of a whole cell and a gas share as unknown of a broken one."""
        n = self._wet.size
        whole_part = ~broken[L.columns] & ~self._wet[L.rows]
        broken_part = broken[T.columns] & ~self._wet[T.rows]
        fixed = np.flatnonzero(self._wet)
        rows = np.concatenate([L.rows[whole_part], T.rows[broken_part], fixed])
        columns = np.concatenate([L.columns[whole_part], T.columns[broken_part], fixed])
        values = np.concatenate([L.values[whole_part], -T.values[broken_part], np.ones(fixed.size)])
        factors: SuperLU = splu(csc_array((values, (rows, columns)), shape=(n, n)))
        return factors.solve

    def _forces(self, fields: Array) -> Array:
        columns = 2 * self.grid.d_theta * self.grid.d_z * fields.reshape(-1, self.n_theta, self.n_z).sum(axis=2)
        return np.stack([columns @ self._cells.real, columns @ self._cells.imag])
