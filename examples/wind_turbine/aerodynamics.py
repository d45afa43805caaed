"""Aerodynamics of a turbine rotor: blade elements with dynamic inflow and apparent mass, as a solver's own time step.

Steady and unsteady. The unsteady rotor has four states at every station, induced velocities through and in the plane
of rotation with their filters, and the speed of the flow across the chord, whose rate of change moves apparent mass.
All derivatives are BDF2 on the grid of the steps (BDF1 in the first), and the step is implicit: every station has two
equations for its induced velocities, Newton's method solves them, and the same derivatives give the exact sensitivity
of all outputs to all inputs.

Everything is data: a blade with any tables of radius, chord, twist and profile, and any number of blades. A subsystem
may carry all blades, or some: what a blade feels of the others is the share that they have in its annulus, as if they
moved like itself. With structural motion, speeds of the stations come in as fields and forces per length go out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import cos, pi, sin
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

import cosolve as cs
from examples import elements
from examples.wind_turbine.data import BLADE, DEEP_STALL, OHIO_STATE, PITCH_OFFSET

Polar = elements.Polar
closed_polar = elements.closed_polar
element_flow = elements.element_flow
filtered_inflow = elements.filtered_inflow
inflow_times = elements.inflow_times
polar = elements.polar
stall_delay = elements.stall_delay
steady_element = elements.steady_element

_jitted = njit(cache=True, error_model="numpy")

#: Rows of the state of a blade: filters and velocities, those a step before, the flow across the chord, a step before.
Y, W, Y_T, W_T, ACROSS = 0, 1, 2, 3, 8
ROWS = 10

#: What a step can fail of.
NO_INFLOW, OUTSIDE = 0, 1

PITCH_AXIS = 0.2  # of the chord, from the pitch axis at 30 % to the middle


def s809() -> Polar:
    """Measured by Ohio State, continued to all angles.

    >>> len(s809().angles)
    59
    """
    return closed_polar(OHIO_STATE, DEEP_STALL)


@dataclass(frozen=True)
class Rotor:
    """Blades, wind and air; SI units, angles of the tables in degrees.

    `table` has rows of radius, chord and twist, from the first profile to the tip; `elements` of equal length are laid
    over it, with their values in their middles. `pitch_offset` is added to the twist. With `stall_delay` the polar of
    every station is corrected for rotation (`elements.stall_delay`). With `hub`, the radius at which the blades begin,
    the flow around their roots is lost like that around their tips.

    >>> Rotor(table=[[1.0, 0.7, 20.0], [5.0, -0.3, 0.0]])
    Traceback (most recent call last):
        ...
    cosolve.errors.SetupError: a chord must be positive, and row 1 of the blade has -0.3 m at 5 m
    """

    table: npt.ArrayLike = field(default_factory=lambda: BLADE)
    profile: Polar = field(default_factory=s809)
    blades: int = 2
    pitch_offset: float = PITCH_OFFSET
    wind: float = 7.0
    density: float = 1.23
    elements: int = 20
    stall_delay: bool = False
    hub: float = 0.0

    def __post_init__(self) -> None:
        table = np.array(self.table, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != 3 or len(table) < 2 or not np.isfinite(table).all():
            raise cs.errors.SetupError("a blade is given as rows of radius, chord and twist, at least two of them")
        r, chord = table[:, 0], table[:, 1]
        if r[0] <= 0 or (np.diff(r) <= 0).any():
            k = 0 if r[0] <= 0 else int(np.argmax(np.diff(r) <= 0)) + 1
            before = f" after {r[k - 1]:g} m" if k else ""
            raise cs.errors.SetupError(
                f"the radii of a blade must be positive and grow, and row {k} has {r[k]:g} m{before}"
            )
        if (chord <= 0).any():
            k = int(np.argmax(chord <= 0))
            raise cs.errors.SetupError(
                f"a chord must be positive, and row {k} of the blade has {chord[k]:g} m at {r[k]:g} m"
            )
        for name in ("wind", "density"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise cs.errors.SetupError(f"the {name} of a rotor must be positive, not {getattr(self, name)!r}")
        if not 0 <= self.hub < r[0]:
            raise cs.errors.SetupError(
                f"the blades begin at {r[0]:g} m, so the radius of the hub is from 0 to there: {self.hub!r}"
            )
        for name in ("blades", "elements"):
            if not isinstance(getattr(self, name), int | np.integer) or getattr(self, name) < 1:
                raise cs.errors.SetupError(
                    f"the {name} of a rotor are a whole number of at least 1: {getattr(self, name)!r}"
                )

    @property
    def tip(self) -> float:
        """Its radius."""
        return float(np.array(self.table)[-1, 0])

    @cached_property
    def stations(self) -> np.ndarray:
        """Rows of radius, length, chord, and twist with its offset in radians."""
        table = np.array(self.table, dtype=np.float64)
        ends = np.linspace(table[0, 0], table[-1, 0], self.elements + 1)
        r = 0.5 * (ends[1:] + ends[:-1])
        twist = np.radians(np.interp(r, table[:, 0], table[:, 2]) + self.pitch_offset)
        return np.column_stack([r, np.diff(ends), np.interp(r, table[:, 0], table[:, 1]), twist])

    @cached_property
    def profiles(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Angles of the polar, and its cubics at every station."""
        found = [self.profile] * self.elements
        if self.stall_delay:
            rows = self.profile.rows
            found = [polar(stall_delay(rows, chord / r)) for r, _, chord, _ in self.stations]
        return self.profile.angles, np.array([one.lift for one in found]), np.array([one.drag for one in found])

    @property
    def air(self) -> Air:
        """What compiled steps take."""
        return Air(self.tip, float(self.blades), self.density, self.wind, float(self.hub))

    def apparent_inertia(self, pitch: float) -> float:
        """Of all blades about the axis, at a pitch in radians: the inertia of the air that they push.

        >>> [round(Rotor().apparent_inertia(np.radians(pitch)), 4) for pitch in (-45, 0, 45)]
        [7.3773, 0.3504, 11.7326]
        """
        r, length, chord, twist = self.stations.T
        mass = self.density * pi * chord**2 / 4 * length
        return float(self.blades * np.sum(mass * (r * np.sin(twist + pitch)) ** 2))


class Air(NamedTuple):
    """Numbers that all stations share: radius of the tip, number of blades, density, wind, radius of the hub."""

    tip: float
    blades: float
    density: float
    wind: float
    hub: float


# -- steady --------------------------------------------------------------------------------------------------------


class Steady(NamedTuple):
    """A rotor at constant speed and pitch: torque and thrust of all blades, and rows over the stations.

    `flap_load` and `edge_load` are forces per length of a blade, out of and in the plane of rotation; `across` and
    `along` the coefficients normal to the chord and along it towards the nose, by the local dynamic pressure.
    """

    torque: float
    thrust: float
    r: np.ndarray
    w: np.ndarray
    swirl: np.ndarray
    alpha: np.ndarray
    flap_load: np.ndarray
    edge_load: np.ndarray
    across: np.ndarray
    along: np.ndarray


@_jitted
def _steady(stations, angles, lift, drag, air, speed, pitch):
    """Rows of w, wt, alpha, normal and tangential force, Vn, Vt; and the first station without a solution, or -1."""
    found, bad = np.zeros((7, len(stations))), -1
    for k in range(len(stations)):
        r, _, chord, twist = stations[k]
        fits, w, wt = steady_element(
            air.wind, speed * r, twist + pitch, chord, r, air.tip, air.blades, air.density, air.wind,
            angles, lift[k], drag[k], air.hub,
        )  # fmt: skip
        if not fits and bad < 0:
            bad = k
        Vn, Vt = air.wind - w, speed * r + wt
        f = element_flow(
            Vn,
            Vt,
            twist + pitch,
            w,
            chord,
            r,
            air.tip,
            air.blades,
            air.density,
            air.wind,
            angles,
            lift[k],
            drag[k],
            air.hub,
        )
        found[:, k] = (w, wt, f.alpha, f.normal, f.tangential, Vn, Vt)
    return bad, found


def steady(rotor: Rotor, speed: float, pitch: float = 0.0) -> Steady:
    """At `speed` in rad/s and `pitch` in radians.

    >>> at = steady(Rotor(), np.radians(432.0))
    >>> round(at.torque, 1), round(at.thrust, 1)
    (778.9, 1147.9)
    """
    bad, (w, swirl, alpha, normal, tangential, Vn, Vt) = _steady(
        rotor.stations, *rotor.profiles, rotor.air, float(speed), float(pitch)
    )
    r, length, chord, twist = rotor.stations.T
    if bad >= 0:
        raise cs.errors.SetupError(
            f"no steady inflow at station {bad} (r = {r[bad]:.3f} m) at {speed:g} rad/s and a pitch of "
            f"{np.degrees(pitch):g} degrees: begin from another speed or pitch"
        )
    _inside(rotor, alpha)
    beta = twist + pitch
    pressure = 0.5 * rotor.density * chord * (Vn**2 + Vt**2)
    return Steady(
        float(rotor.blades * np.sum(tangential * r * length)),
        float(rotor.blades * np.sum(normal * length)),
        r, w, swirl, alpha, normal, tangential,
        (normal * np.cos(beta) + tangential * np.sin(beta)) / pressure,
        (tangential * np.cos(beta) - normal * np.sin(beta)) / pressure,
    )  # fmt: skip


def _inside(rotor: Rotor, alpha: np.ndarray) -> None:
    """Raise where an angle of attack is none of the polar's."""
    degrees, ends = np.degrees(alpha), rotor.profile.angles[[0, -1]]
    outside = (degrees < ends[0]) | (degrees > ends[1])
    if outside.any():
        k = int(np.argmax(outside))
        raise cs.errors.SetupError(_outside(rotor, 0, k, degrees[k]))


def _outside(rotor: Rotor, blade: int, k: int, degrees: float) -> str:
    first, last = rotor.profile.angles[[0, -1]]
    return (
        f"the angle of attack is {degrees:.1f} degrees at station {k} (r = {rotor.stations[k, 0]:.3f} m) of blade "
        f"{blade + 1}, and the polar goes from {first:g} to {last:g} degrees: continue it with elements.closed_polar"
    )


# -- a time step ---------------------------------------------------------------------------------------------------


@_jitted
def bdf(H, past):
    """A derivative by factors of the value at the end of a step, at its beginning and at the beginning of the last one.

    `past` is 1 over the length of the last step, 0 where there was none: BDF2 for steps of any two lengths, and BDF1
    after an infinitely long one.
    """
    ratio = H * past
    return (1.0 + 2.0 * ratio) / (1.0 + ratio) / H, -(1.0 + ratio) / H, ratio * ratio / (1.0 + ratio) / H


@_jitted
def _inflow(Vn, Vt, beta, w, wt, r, chord, air, angles, lift, drag, rate, past):
    """What the filters make of the induced velocities `w`, `wt`: (y, w, y_t, w_t) and a matrix of partials of (w, w_t).

    Partials by w and w_t themselves, and by what comes in: Vn and Vt without induction, beta. `past` has the parts of
    the derivatives that are known: of y, w, y_t, w_t.
    """
    f = element_flow(
        Vn - w, Vt + wt, beta, w, chord, r, air.tip, air.blades, air.density, air.wind, angles, lift, drag, air.hub
    )
    first, second, first_by_w = inflow_times(w, air.wind, r, air.tip)
    y, new = filtered_inflow(f.axial, first, second, rate, past[0], past[1])
    y_t, new_t = filtered_inflow(f.swirl, first, second, rate, past[2], past[3])
    gain = (0.4 / (1.0 + first * rate) + 0.6) / (1.0 + second * rate)
    share = second / first
    # the filters slow down with the induction
    slower = (-(past[0] + rate * y) / (1.0 + first * rate) - share * (past[1] + rate * new)) * first_by_w
    slower_t = (-(past[2] + rate * y_t) / (1.0 + first * rate) - share * (past[3] + rate * new_t)) * first_by_w
    slower, slower_t = slower / (1.0 + second * rate), slower_t / (1.0 + second * rate)
    a, s = f.axial_by, f.swirl_by
    by_self = (
        gain * (f.axial_by_w - a[0]) + slower,
        gain * a[1],
        gain * (f.swirl_by_w - s[0]) + slower_t,
        gain * s[1],
    )
    return f, (y, new, y_t, new_t), by_self, gain


@_jitted
def _solved(Vn, Vt, beta, start, start_t, r, chord, air, angles, lift, drag, rate, past):
    """Induced velocities that the filters leave as they are, how far from that they still are, and what `_inflow` says.

    Newton's method; where that leads nowhere, again after relaxed fixed points. `_inflow` is called in one place only:
    it is long, and compilers copy it to every call.
    """
    best, w, wt = 1e300, start, start_t
    last, attempt, count, final = 1e300, 0, 0, False
    v, vt = start, start_t
    while True:
        f, found, J, gain = _inflow(Vn, Vt, beta, v, vt, r, chord, air, angles, lift, drag, rate, past)
        if final:
            return w, wt, best, f, found, J, gain
        d, dt = found[1] - v, found[3] - vt
        size = abs(d) + abs(dt)
        if size < best:
            best, w, wt = size, v, vt
        count += 1
        if count <= 100 * attempt:
            relaxation = 0.5 if attempt == 1 else 0.1
            v, vt = v + relaxation * d, vt + relaxation * dt
        elif size < last and count < 100 * attempt + 20:
            last = size
            determinant = (1.0 - J[0]) * (1.0 - J[3]) - J[1] * J[2]
            v, vt = (
                v + ((1.0 - J[3]) * d + J[1] * dt) / determinant,
                vt + ((1.0 - J[0]) * dt + J[2] * d) / determinant,
            )
        elif best < 1e-11 * air.wind or attempt == 2:  # rounding, or nowhere
            v, vt, final = w, wt, True
        else:
            v, vt, last, count, attempt = start, start_t, 1e300, 0, attempt + 1


@_jitted
def _forces_by(k, n, t, b, f, M, gain, inertia, pushed, cosine, sine, turned):
    """Partials of the normal and the tangential force by the `k`-th of Vn, Vt, beta, which change by `n`, `t`, `b`.

    The induced velocities follow: `M` is the matrix of their two equations (implicit function theorem).
    """
    axial, swirl = gain * f.axial_by[k], gain * f.swirl_by[k]
    determinant = M[0] * M[3] - M[1] * M[2]
    n -= (M[3] * axial - M[1] * swirl) / determinant
    t += (M[0] * swirl - M[2] * axial) / determinant
    air = inertia * (cosine * n - sine * t + turned * b)
    N, T = f.normal_by, f.tangential_by
    return (
        N[0] * n + N[1] * t + N[2] * b + air * cosine - pushed * sine * b,
        T[0] * n + T[1] * t + T[2] * b + air * sine + pushed * cosine * b,
    )


@_jitted
def _station(Vn, Vt, beta, pitch_rate, r, chord, air, angles, lift, drag, c, now, before):
    """A step at a station: whether it worked, the new states, forces per length and their partials.

    `Vn` and `Vt` are without induction. `now` and `before` are (y, w, y_t, w_t, across) at the beginning of this step
    and of the last; partials by Vn, Vt, beta and pitch_rate, of the normal force first.
    """
    past = (
        c[1] * now[0] + c[2] * before[0],
        c[1] * now[1] + c[2] * before[1],
        c[1] * now[2] + c[2] * before[2],
        c[1] * now[3] + c[2] * before[3],
    )
    w, wt, left, f, found, J, gain = _solved(
        Vn, Vt, beta, now[1], now[3], r, chord, air, angles, lift, drag, c[0], past
    )
    cosine, sine = cos(beta), sin(beta)
    flow_n, flow_t = Vn - w, Vt + wt
    across = flow_n * cosine - flow_t * sine - PITCH_AXIS * chord * pitch_rate
    mass = air.density * pi * chord * chord / 4.0
    pushed = mass * (c[0] * across + c[1] * now[4] + c[2] * before[4])
    normal, tangential = f.normal + pushed * cosine, f.tangential + pushed * sine

    M, turned = (1.0 - J[0], -J[1], -J[2], 1.0 - J[3]), -flow_n * sine - flow_t * cosine
    inertia = mass * c[0]
    by_n = _forces_by(0, 1.0, 0.0, 0.0, f, M, gain, inertia, pushed, cosine, sine, turned)
    by_t = _forces_by(1, 0.0, 1.0, 0.0, f, M, gain, inertia, pushed, cosine, sine, turned)
    by_beta = _forces_by(2, 0.0, 0.0, 1.0, f, M, gain, inertia, pushed, cosine, sine, turned)
    by_rate = (-inertia * PITCH_AXIS * chord * cosine, -inertia * PITCH_AXIS * chord * sine)
    S = (by_n[0], by_t[0], by_beta[0], by_rate[0], by_n[1], by_t[1], by_beta[1], by_rate[1])
    return left, f.alpha, (found[0], w, found[2], wt, across), normal, tangential, S


@_jitted
def rotor_step(stations, angles, lift, drag, air, sets, count, fields, H, x, u, new, y, D):
    """All stations of all `sets` of blades, each of which stands for `count` blades; 0, or what failed and where.

    Inputs are speed, pitch and its rate, and with `fields` the flap and edge speeds of the stations of each set;
    outputs are torque and thrust, and the forces per length. `D`, unless None, gets their partials by the inputs.
    """
    n = len(stations)
    speed, pitch, pitch_rate = u[0], u[1], u[2]
    c = bdf(H, x[-1])
    y[0], y[1] = 0.0, 0.0
    if D is not None:
        D[:, :] = 0.0
    first, last = angles[0] * pi / 180.0 - 1e-12, angles[-1] * pi / 180.0 + 1e-12
    for b in range(sets):
        flap = 3 + 2 * n * b
        edge, loads = flap + n, flap - 1
        for k in range(n):
            r, length, chord, twist = stations[k]
            Vn, Vt = air.wind, speed * r
            if fields:
                Vn, Vt = Vn - u[flap + k], Vt + u[edge + k]
            at = b * ROWS * n + k
            now = (x[at], x[at + n], x[at + 2 * n], x[at + 3 * n], x[at + 8 * n])
            before = (x[at + 4 * n], x[at + 5 * n], x[at + 6 * n], x[at + 7 * n], x[at + 9 * n])
            left, alpha, end, normal, tangential, S = _station(
                Vn, Vt, twist + pitch, pitch_rate, r, chord, air, angles, lift[k], drag[k], c, now, before
            )
            if not left < 1e-11 * air.wind:
                return 1 + k + n * (b + sets * NO_INFLOW)
            if not first <= alpha <= last:
                return 1 + k + n * (b + sets * OUTSIDE)
            for i in range(4):
                new[at + i * n], new[at + (4 + i) * n] = end[i], now[i]
            new[at + 8 * n], new[at + 9 * n] = end[4], now[4]
            y[0] += count * tangential * r * length
            y[1] += count * normal * length
            if fields:
                y[loads + k], y[loads + n + k] = normal, tangential
            if D is not None:
                turning, push = count * r * length, count * length
                D[0, 0] += turning * r * S[5]
                D[1, 0] += push * r * S[1]
                for i in range(2):
                    D[0, 1 + i] += turning * S[6 + i]
                    D[1, 1 + i] += push * S[2 + i]
                if fields:
                    D[0, flap + k], D[0, edge + k] = -turning * S[4], turning * S[5]
                    D[1, flap + k], D[1, edge + k] = -push * S[0], push * S[1]
                    for i in range(2):
                        row = loads + i * n + k
                        D[row, 0], D[row, 1], D[row, 2] = r * S[4 * i + 1], S[4 * i + 2], S[4 * i + 3]
                        D[row, flap + k], D[row, edge + k] = -S[4 * i], S[4 * i + 1]
    new[-1] = 1.0 / H
    return 0


class Step(NamedTuple):
    """A time step with all that belongs to it: what `cs.OneStep` takes."""

    step: Callable[..., int]
    jacobian: Callable[..., int]
    failure: Callable[..., str]
    x0: np.ndarray
    y0: np.ndarray
    inputs: list[cs.Port]
    outputs: list[cs.Port]


#: Step and sensitivities of rotors with the same numbers, compiled once.
_LAWS: dict[object, tuple[Callable, Callable]] = {}


def _laws(rotor: Rotor, sets: int, count: float, fields: bool) -> tuple[Callable, Callable]:
    stations, (angles, lift, drag), air = rotor.stations, rotor.profiles, rotor.air
    key = (*(table.tobytes() for table in (stations, angles, lift, drag)), air, sets, count, fields)
    if key not in _LAWS:

        @njit
        def step(t, H, x, u, new, y):
            return rotor_step(stations, angles, lift, drag, air, sets, count, fields, H, x, u, new, y, None)

        @njit
        def jacobian(t, H, x, u, D):
            new, y = np.empty(len(x)), np.empty(len(D))
            return rotor_step(stations, angles, lift, drag, air, sets, count, fields, H, x, u, new, y, D)

        _LAWS[key] = step, jacobian
    return _LAWS[key]


def aerodynamic_step(
    rotor: Rotor | None = None,
    speed: float = 0.5,
    pitch: float = 0.0,
    *,
    carried: int | None = None,
    separate: bool = False,
    fields: bool = False,
) -> Step:
    """The step of a rotor that begins steadily at `speed` in rad/s and `pitch` in radians.

    `carried` of the rotor's blades belong to this subsystem (all, unless said), moving alike, or with `separate` each
    with fields of its own: `flap_rate1`, `flap_rate2`, ... Without `fields` blades are rigid.

    >>> rotor = aerodynamic_step(fields=True)
    >>> [(port.name, port.size) for port in rotor.inputs]
    [('speed', None), ('pitch', None), ('pitch_rate', None), ('flap_rate', 20), ('edge_rate', 20)]
    >>> [port.name for port in rotor.outputs]
    ['torque', 'thrust', 'flap_load', 'edge_load']
    """
    rotor = Rotor() if rotor is None else rotor
    carried = rotor.blades if carried is None else carried
    if not 1 <= carried <= rotor.blades:
        raise cs.errors.SetupError(f"a rotor of {rotor.blades} blades cannot carry {carried} of them")
    if separate and not fields:
        raise cs.errors.SetupError("rigid blades move alike: separate blades need fields=True")
    n, sets = rotor.elements, carried if separate else 1
    count = float(carried // sets)
    stations = rotor.stations
    step, jacobian = _laws(rotor, sets, count, fields)

    def failure(status: int, t: float, H: float, x: np.ndarray, u: np.ndarray) -> str:
        kind, place = divmod(status - 1, n * sets)
        b, k = divmod(place, n)
        if kind == OUTSIDE:
            return _outside(rotor, b, k, np.degrees(_angle(rotor, H, x, u, b, k, fields)))
        return (
            f"the induced velocity does not converge at station {k} (r = {stations[k, 0]:.3f} m) of blade {b + 1} at "
            f"{u[0]:.4g} rad/s and a pitch of {np.degrees(u[1]):.4g} degrees: take shorter steps, or look at the polar"
        )

    begin = steady(rotor, speed, pitch)
    beta = stations[:, 3] + pitch
    across = (rotor.wind - begin.w) * np.cos(beta) - (speed * begin.r + begin.swirl) * np.sin(beta)
    inflow = np.array([0.4 * begin.w, begin.w, 0.4 * begin.swirl, begin.swirl])
    blade = np.concatenate([inflow, inflow, [across, across]]).ravel()
    x0 = np.concatenate([np.tile(blade, sets), [0.0]])
    y0 = [begin.torque * carried / rotor.blades, begin.thrust * carried / rotor.blades]
    inputs = [cs.Port("speed", unit="rad/s"), cs.Port("pitch", unit="rad"), cs.Port("pitch_rate", unit="rad/s")]
    outputs = [cs.Port("torque", unit="N.m"), cs.Port("thrust", unit="N")]
    if fields:
        for mark in [str(b + 1) for b in range(sets)] if separate else [""]:
            inputs += [cs.Port(f"{name}_rate{mark}", n, "m/s") for name in ("flap", "edge")]
            outputs += [cs.Port(f"{name}_load{mark}", n, "N/m") for name in ("flap", "edge")]
            y0 += [*begin.flap_load, *begin.edge_load]
    return Step(step, jacobian, failure, x0, np.array(y0), inputs, outputs)


def aerodynamics(
    rotor: Rotor | None = None,
    speed: float = 0.5,
    pitch: float = 0.0,
    *,
    carried: int | None = None,
    separate: bool = False,
    fields: bool = False,
) -> cs.OneStep:
    """The subsystem with that step: see `aerodynamic_step`.

    >>> aerodynamics().noise
    1e-15
    """
    found = aerodynamic_step(rotor, speed, pitch, carried=carried, separate=separate, fields=fields)
    return cs.OneStep(**found._asdict(), noise=1e-15)


def _angle(rotor: Rotor, H: float, x: np.ndarray, u: np.ndarray, b: int, k: int, fields: bool) -> float:
    """Angle of attack at the end of a step, at station `k` of blade `b`."""
    n, (angles, lift, drag) = rotor.elements, rotor.profiles
    r, _, chord, twist = rotor.stations[k]
    own = x[b * ROWS * n : (b + 1) * ROWS * n].reshape(ROWS, n)[:, k]
    flap, edge = (u[3 + n * (2 * b + i) + k] if fields else 0.0 for i in range(2))
    now, before = (*own[:4], own[8]), (*own[4:8], own[9])
    found = _station(
        rotor.wind - flap, u[0] * r + edge, twist + u[1], u[2], r, chord, rotor.air, angles, lift[k], drag[k],
        bdf(H, x[-1]), tuple(map(float, now)), tuple(map(float, before)),
    )  # fmt: skip
    return float(found[1])
