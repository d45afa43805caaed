"""The Reynolds equation of a journal bearing on its unwrapped gap: pressure, forces and exact derivatives.

Dimensionless, after Schmoll (2015), Eqs. 5.4-5.14: with the gap `H = 1 + e_x cos(theta) +
e_y sin(theta)`

    d/dtheta (H^3 dp/dtheta) + (R/B)^2 d/dz (H^3 dp/dz) = s sin(theta) + c cos(theta),   p = 0 at z = -1/2, 1/2.

In the frame of the line of centres `e_x = eps`, `e_y = 0`, `s = eps (2 delta' - 1)`, `c = 2 eps'`. In a frame at rest
`s = 2 e_y' - omega e_x`, `c = 2 e_x' + omega e_y`, which is regular at the centre and at zero speed.

Cell-centred finite volumes of second order: periodic in theta, half the width in z. The gap depends on theta alone, so
a cosine transform in z splits the system into one periodic tridiagonal system per axial mode; all right-hand sides
(pressure and its derivatives) share the factorisation. Uses numpy and numba; knows nothing of subsystems.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import njit

import cosolve as cs

Array: TypeAlias = npt.NDArray[np.float64]

#: What happens where the linear solution is negative: nothing, or the pressure is cut to zero after the linear solve
#: (Guembel, Eq. 5.12): between the cells, where the pressure passes through zero, or cell by cell.
CAVITATION = ("none", "guembel", "guembel-cells")


@dataclass(frozen=True)
class Film:
    """One solved film.

    `pressure` (n_theta, n_z): half the width, from the middle (z = 0) to the edge. `force`: the integrals of
    `p cos(theta)` and `p sin(theta)`. `derivative`: of the force, by the arguments of the call that made it.
    """

    pressure: Array
    force: Array
    derivative: Array


@dataclass(frozen=True)
class PolarFilm:
    """One solved film in the frame of the line of centres: `F_r, F_delta` and (2, 3) by `eps, eps', delta'`."""

    pressure: Array
    force: Array
    derivative: Array


class Reynolds:
    """Solver for bearings of one shape. `width` is B/R; the grid has `n_theta` x `n_z` cells on half the width.

    `cavitation="guembel"` integrates the positive part of the pressure up to its zero between two cells, so the forces
    are continuously differentiable in all arguments. `"guembel-cells"` counts whole cells: the forces have a
    kink wherever a cell changes sign (docs/validation/schmoll.md). `"none"` keeps negative pressure.

    >>> film = Reynolds(width=1.0, n_theta=128, n_z=32).polar(eps=0.5)
    >>> F_r, F_delta = film.force                                      # an independent code: -0.0519, 0.0840
    >>> bool(abs(F_r + 0.0519) < 1e-4 and abs(F_delta - 0.0840) < 1e-4)
    True
    >>> float(film.pressure.min())
    0.0
    """

    def __init__(self, width: float, n_theta: int = 64, n_z: int = 16, cavitation: str = "guembel") -> None:
        self.width = positive("Reynolds", "width (B/R)", width)
        for name, count, least in (("n_theta", n_theta, 8), ("n_z", n_z, 2)):
            if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < least:
                raise cs.errors.SetupError(
                    f"Reynolds: {name} must be a whole number of at least {least}, not {count!r}"
                )
        if cavitation not in CAVITATION:
            raise cs.errors.SetupError(
                f"Reynolds: cavitation must be one of {', '.join(CAVITATION)}, not {cavitation!r}"
            )
        self.n_theta, self.n_z, self.cavitation = int(n_theta), int(n_z), cavitation
        self.d_theta, self.d_z = 2 * np.pi / n_theta, 0.5 / n_z
        self.theta: Array = (np.arange(n_theta, dtype=np.float64) + 0.5) * self.d_theta
        self.z: Array = (np.arange(n_z, dtype=np.float64) + 0.5) * self.d_z
        faces = (np.arange(n_theta) + 1.0) * self.d_theta  # the right-hand face of each cell
        self._cos = np.stack([np.cos(faces), np.cos(self.theta)])
        self._sin = np.stack([np.sin(faces), np.sin(self.theta)])
        half = self.z / self.d_z * np.pi / n_z
        self._modes: Array = np.sqrt(2 / n_z) * np.cos(np.outer(self.z / self.d_z, half))  # (cells, modes)
        self._rates: Array = (2 - 2 * np.cos(half)) / (self.width * self.d_z) ** 2

    def polar(self, eps: float, deps: float = 0.0, ddelta: float = 0.0) -> PolarFilm:
        """The film for eccentricity `eps`, radial rate `eps'` and whirl rate `delta'` (Eqs. 5.4, 5.13, 5.14).

        At `delta' = 1/2` the wedge and the whirl cancel: no pressure, no force.

        >>> Reynolds(width=1.0).polar(0.6, deps=0.0, ddelta=0.5).force.tolist()
        [0.0, 0.0]
        """
        whirl = 2 * ddelta - 1
        film = self.solve((eps, 0.0), eps * whirl, 2 * deps)
        by_ex, _, by_s, by_c = film.derivative.T
        return PolarFilm(film.pressure, film.force, np.stack([by_ex + whirl * by_s, 2 * by_c, 2 * eps * by_s], axis=1))

    def at_rest(self, e: tuple[float, float], rate: tuple[float, float], omega: float) -> Film:
        """The film in a frame at rest, its derivatives by `e_x, e_y, e_x', e_y', omega`.

        >>> Reynolds(width=1.0).at_rest((0.0, 0.0), (0.0, 0.0), omega=0.0).force.tolist()      # centre, standstill
        [0.0, 0.0]
        """
        film = self.solve(e, 2 * rate[1] - omega * e[0], 2 * rate[0] + omega * e[1])
        by_ex, by_ey, by_s, by_c = film.derivative.T
        by_omega = e[1] * by_c - e[0] * by_s
        columns = [by_ex - omega * by_s, by_ey + omega * by_c, 2 * by_c, 2 * by_s, by_omega]
        return Film(film.pressure, film.force, np.stack(columns, axis=1))

    def solve(self, e: tuple[float, float], s: float, c: float) -> Film:
        """The film for the gap `1 + e_x cos(theta) + e_y sin(theta)` and the load `s sin(theta) + c cos(theta)`.

        The derivatives, by `e_x, e_y, s, c`, are those of the discrete equations: exact up to rounding.

        >>> film = Reynolds(width=0.5).solve((0.3, 0.4), s=-1.0, c=0.2)
        >>> film.pressure.shape, film.derivative.shape
        ((64, 16), (2, 4))
        """
        refuse_contact(float(np.hypot(*e)))
        if not np.isfinite(s) or not np.isfinite(c):
            raise cs.errors.SubsystemError(f"Reynolds: the load (s, c) = ({s}, {c}) of the film is not finite")
        modes = _solve_modes(e[0], e[1], s, c, self._cos, self._sin, self._rates, self._modes.sum(axis=0))
        fields = modes @ self._modes.T  # (5, n_theta, n_z): p, dp/de_x, dp/de_y, dp/ds, dp/dc
        fields = np.ascontiguousarray(fields)
        weight = self.d_theta * self.d_z  # half a cell, twice the half width
        if self.cavitation == "guembel":
            forces = weight * _positive_part(fields, self._cos[1], self._sin[1])
            return Film(np.maximum(fields[0], 0.0), forces[:, 0], forces[:, 1:])
        if self.cavitation == "guembel-cells":
            fields = np.where(fields[0] > 0, fields, 0.0)
        columns = 2 * weight * fields.sum(axis=2)
        forces = np.stack([columns @ self._cos[1], columns @ self._sin[1]])
        return Film(fields[0], forces[:, 0], forces[:, 1:])


def positive(owner: str, name: str, value: Any) -> float:
    """`value` as a float when it is a positive finite number; else a sentence that says who wants it.

    >>> positive("Bearing", "viscosity", 0.004)
    0.004
    """
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or value <= 0:
        raise cs.errors.SetupError(f"{owner}: {name} must be a positive number, not {value!r}")
    return float(value)


def refuse_contact(eps: float) -> None:
    """Raise when the gap is closed somewhere, for there the Reynolds equation ends.

    >>> refuse_contact(0.9)
    """
    if not eps < 1:
        raise cs.errors.SubsystemError(
            f"the journal touches the bush: eccentricity {eps:.6g}, and the film model ends at 1; "
            "look for too large a load, too low a speed or too long a time step"
        )


@njit(cache=True)
def _solve_modes(ex, ey, s, c, cos, sin, rates, ones):  # type: ignore[no-untyped-def]
    """Pressure and its derivatives by `e_x, e_y, s, c`, as axial modes: shape (5, n_theta, modes).

    Row 0 of `cos`, `sin` belongs to the faces (face i between cells i and i+1), row 1 to the cells. The last cell is
    the border of an otherwise tridiagonal symmetric positive definite matrix.
    """
    n, m = cos.shape[1], rates.size
    d = 2 * np.pi / n
    load = 2 * np.sin(d / 2)
    gap = 1 + ex * cos + ey * sin
    cube, slope = gap**3, 3 * gap**2
    result = np.empty((5, n, m))
    pivot, border, x, f = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for k in range(m):
        storage = rates[k] * d
        # factorise: diagonal a_i + storage, off-diagonal -face_i
        for i in range(n):
            pivot[i] = (cube[0, i - 1] + cube[0, i]) / d + storage * cube[1, i]
            border[i] = 0.0
        border[0] = -cube[0, n - 1] / d
        border[n - 2] += -cube[0, n - 2] / d
        pivot[0] = 1 / pivot[0]
        for i in range(1, n - 1):
            off = cube[0, i - 1] / d
            pivot[i] = 1 / (pivot[i] - off * off * pivot[i - 1])
        left, right = border[0], border[n - 2]
        _tridiagonal(cube, d, pivot, border)
        last = 1 / (pivot[n - 1] - left * border[0] - right * border[n - 2])
        for which in (3, 4, 0, 1, 2):
            if which == 0:  # linear in s and c
                for i in range(n):
                    result[0, i, k] = s * result[3, i, k] + c * result[4, i, k]
                continue
            wave = sin if which == 3 or which == 2 else cos
            for i in range(n):
                if which > 2:
                    f[i] = -load * wave[1, i] * ones[k]
                else:  # minus the differentiated matrix times the pressure
                    j = i + 1 if i < n - 1 else 0
                    p = result[0, i, k]
                    into = slope[0, i] * wave[0, i] * (result[0, j, k] - p)
                    out = slope[0, i - 1] * wave[0, i - 1] * (p - result[0, i - 1, k])
                    f[i] = (into - out) / d - storage * slope[1, i] * wave[1, i] * p
            x[:] = f
            _tridiagonal(cube, d, pivot, x)
            end = (f[n - 1] - left * x[0] - right * x[n - 2]) * last
            for i in range(n - 1):
                result[which, i, k] = x[i] - border[i] * end
            result[which, n - 1, k] = end
    return result


@njit(cache=True)
def _tridiagonal(cube, d, pivot, x):  # type: ignore[no-untyped-def]
    """Solve for all cells but the last, in place, with the pivots of the factorisation."""
    n = x.size
    x[0] *= pivot[0]
    for i in range(1, n - 1):
        x[i] = (x[i] + cube[0, i - 1] / d * x[i - 1]) * pivot[i]
    for i in range(n - 3, -1, -1):
        x[i] += cube[0, i] / d * pivot[i] * x[i + 1]


@njit(cache=True)
def _positive_part(fields, cos, sin):  # type: ignore[no-untyped-def]
    """Integrals of the positive part of the pressure with cos and sin, and their derivatives: shape (2, 5).

    The pressure is linear in theta between cell centres. Between `p > 0` and `q < 0` the area is `p^2 / (2 (p - q))`
    times the distance, counted at the place of `p`: continuously differentiable in both.
    """
    count, n, m = fields.shape
    result = np.zeros((2, count))
    for i in range(n):
        for j in range(m):
            p = fields[0, i, j]
            if p <= 0:
                continue
            for k in (i - 1, i + 1 if i < n - 1 else 0):
                q = fields[0, k, j]
                share = p / (p - q) if q < 0 else 1.0
                by_p, by_q = share * (2 - share), share**2 if q < 0 else 0.0
                for column in range(count):
                    if column == 0:
                        value = share * p
                    else:
                        value = by_p * fields[column, i, j] + by_q * fields[column, k, j]
                    result[0, column] += cos[i] * value
                    result[1, column] += sin[i] * value
    return result
