"""The flexible rotor undivided: aerodynamics, blades, shaft and generator in one implicit step, as the reference.

This file knows nothing of the coupling engine, and nothing of the other files here but tables: its aerodynamics, its
blades and its Newton iteration are its own. Unknown in every step are the modal rates of a blade and the speed of the
shaft; residuals are the equations of motion with the loads of the air at these rates; the Jacobian is taken by
differences and kept while it is good. All rates by backward differences of order two (the first step of order one).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.interpolate import PchipInterpolator

from examples.wind_turbine.data import BLADE, DEEP_STALL, OHIO_STATE, PITCH_OFFSET

_jitted = njit(cache="." in __name__)


class Air(NamedTuple):
    """What the step of the air needs: stations, their chord and pitch at rest, polynomials of the polar, flow."""

    r: np.ndarray
    dr: np.ndarray
    chord: np.ndarray
    twist: np.ndarray
    angles: np.ndarray
    lift: np.ndarray
    drag: np.ndarray
    wind: float
    density: float
    radius: float
    blades: float


class Machine(NamedTuple):
    """Blades in modes (rates at the stations by modal rates), shaft, generator, brake; SI units and radians."""

    at_stations: np.ndarray
    to_modes: np.ndarray  # its transpose
    tip: np.ndarray
    flap: np.ndarray  # stiffness and damping by modes
    edge: np.ndarray
    flap_damping: np.ndarray
    edge_damping: np.ndarray
    tightening: np.ndarray  # G
    inertia_vector: np.ndarray  # m_c
    rotor_inertia: float
    generator_inertia: float
    drag: float
    motor: float
    motor_time: float
    brake_time: float
    brake_pitch: float
    pitch_rate: float
    parking: float
    parking_speed: float


class Course(NamedTuple):
    """What happened, one row per macro point; deflections of the tip in m, energies in J since the start."""

    t: np.ndarray
    speed: np.ndarray
    torque: np.ndarray
    thrust: np.ndarray
    tip: np.ndarray
    pitch: np.ndarray
    generator: np.ndarray


def air(elements: int = 20, wind: float = 7.0, density: float = 1.23, blades: int = 2) -> Air:
    """Stations in the middle of equal elements, and the polar closed to all angles."""
    ends = np.linspace(BLADE[0, 0], BLADE[-1, 0], elements + 1)
    r = 0.5 * (ends[1:] + ends[:-1])
    rows = [*map(tuple, OHIO_STATE), *map(tuple, DEEP_STALL)]
    for a, lift, drag in DEEP_STALL:
        if a < 90:
            rows += [(180 - a, -0.7 * lift, drag), (a - 180, 0.7 * lift, drag)]
        rows.append((-a, -0.7 * lift, drag))
    rows += [(170, -0.4, 0.2), (180, 0, 0.03), (-170, 0.4, 0.2), (-180, 0, 0.03)]
    table = np.array(sorted(rows))
    angles = np.radians(table[:, 0])
    chord, twist = np.interp(r, BLADE[:, 0], BLADE[:, 1]), np.interp(r, BLADE[:, 0], BLADE[:, 2])
    lift, drag = (np.ascontiguousarray(PchipInterpolator(angles, table[:, k]).c.T) for k in (1, 2))
    return Air(r, np.diff(ends), chord, np.radians(twist + PITCH_OFFSET), angles, lift, drag, wind, density,
               float(BLADE[-1, 0]), float(blades))  # fmt: skip


@_jitted
def _times(A, x):
    """`A x`; plain loops, which compile in a tenth of the time of a product of matrices."""
    y = np.zeros(A.shape[0])
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            y[i] += A[i, j] * x[j]
    return y


@_jitted
def _solve(A, b):
    """`A x = b` by elimination with pivots."""
    A, b, n = A.copy(), b.copy(), len(b)
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[p, k]):
                p = i
        for j in range(n):
            A[k, j], A[p, j] = A[p, j], A[k, j]
        b[k], b[p] = b[p], b[k]
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            for j in range(k, n):
                A[i, j] -= factor * A[k, j]
            b[i] -= factor * b[k]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            b[k] -= A[k, j] * b[j]
        b[k] /= A[k, k]
    return b


@_jitted
def _polar(air, alpha):
    alpha = (alpha + np.pi) % (2 * np.pi) - np.pi
    k = min(max(np.searchsorted(air.angles, alpha, side="right") - 1, 0), len(air.angles) - 2)
    x = alpha - air.angles[k]
    lift = ((air.lift[k, 0] * x + air.lift[k, 1]) * x + air.lift[k, 2]) * x + air.lift[k, 3]
    drag = ((air.drag[k, 0] * x + air.drag[k, 1]) * x + air.drag[k, 2]) * x + air.drag[k, 3]
    return lift, drag


@_jitted
def _wanted(air, i, w, wt, speed, flap, edge, pitch):
    """Quasi-steady induced velocities at station `i`, and forces per length without the apparent mass."""
    r = air.r[i]
    vn, vt = air.wind - w - flap, speed * r + wt + edge
    phi = np.arctan2(vn, vt)
    sin, cos = np.sin(phi), np.cos(phi)
    cl, cd = _polar(air, phi - air.twist[i] - pitch)
    head = 0.5 * air.density * (vn * vn + vt * vt) * air.chord[i]
    exponent = 0.5 * air.blades * (air.radius - r) / (r * max(abs(sin), 1e-3))
    loss = max(2 / np.pi * np.arccos(np.exp(-exponent)), 0.02)
    a = w / air.wind
    glauert = 1.0 if a <= 1.0 / 3.0 else 0.25 * (5 - 3 * a)
    through = max(abs(air.wind - glauert * w), 0.05 * air.wind)
    factor = air.blades * head * cl / (4 * np.pi * air.density * r * loss * through)
    return factor * cos, factor * sin, head * (cl * cos + cd * sin), head * (cl * sin - cd * cos)


@_jitted
def _steady(air, speed, pitch):
    """Induced velocities that no longer change."""
    n = len(air.r)
    w, wt = np.zeros(n), np.zeros(n)
    for i in range(n):
        share = 0.2
        for k in range(20000):
            a, b, _, _ = _wanted(air, i, w[i], wt[i], speed, 0.0, 0.0, pitch)
            if abs(a - w[i]) + abs(b - wt[i]) < 1e-13:
                break
            if k % 500 == 499:
                share *= 0.7
            w[i] += share * (a - w[i])
            wt[i] += share * (b - wt[i])
    return w, wt


@_jitted
def _loads(air, h, a, past, flow, speed, flap, edge, pitch, pitch_rate, normal, tangential):
    """Loads at the end of a step; `past` holds minus the weighted past of filters and of the velocity at mid-chord.

    Rows of `past` and `flow`: y and w axial, y and w tangential, velocity normal to the chord.
    """
    k = 0.6
    for i in range(len(air.r)):
        w, wt = flow[1, i], flow[3, i]
        for _ in range(200):
            want, want_t, fn, ft = _wanted(air, i, w, wt, speed, flap[i], edge[i], pitch)
            t1 = 1.1 / (1 - 1.3 * min(max(w / air.wind, 0.0), 0.5)) * air.radius / air.wind
            t2 = (0.39 - 0.26 * (air.r[i] / air.radius) ** 2) * t1
            y = ((1 - k) * want + t1 / h * past[0, i]) / (1 + t1 * a / h)
            yt = ((1 - k) * want_t + t1 / h * past[2, i]) / (1 + t1 * a / h)
            new = (y + k * want + t2 / h * past[1, i]) / (1 + t2 * a / h)
            new_t = (yt + k * want_t + t2 / h * past[3, i]) / (1 + t2 * a / h)
            change = abs(new - w) + abs(new_t - wt)
            w, wt = new, new_t
            if change < 1e-14:
                break
        beta = air.twist[i] + pitch
        _, _, fn, ft = _wanted(air, i, w, wt, speed, flap[i], edge[i], pitch)
        vn, vt = air.wind - w - flap[i], speed * air.r[i] + wt + edge[i]
        across = vn * np.cos(beta) - vt * np.sin(beta) - 0.2 * air.chord[i] * pitch_rate
        apparent = air.density * np.pi * air.chord[i] ** 2 / 4 * (a * across - past[4, i]) / h
        flow[0, i], flow[1, i], flow[2, i], flow[3, i], flow[4, i] = y, w, yt, wt, across
        normal[i] = fn + apparent * np.cos(beta)
        tangential[i] = ft + apparent * np.sin(beta)


@_jitted
def _balance(air, m, h, a, z, back, past, flow, pitch, pitch_rate, motor, parking, normal, tangential, q, keep):
    """Residuals of the equations of motion for modal rates and speed `z`; `back` is the weighted past of the machine.

    `back`: deflections, rates, speed, momentum of the rotor (one row of 2 modes twice, then two numbers).
    """
    n = len(m.flap)
    speed = z[2 * n]
    flap, edge = _times(m.at_stations, z[:n]), _times(m.at_stations, z[n : 2 * n])
    _loads(air, h, a, past, flow, speed, flap, edge, pitch, pitch_rate, normal, tangential)
    acceleration = (a * speed - back[4 * n]) / h
    for k in range(2 * n):
        q[k] = (h * z[k] + back[k]) / a
    w, v = q[:n], q[n : 2 * n]
    cos, sin = np.cos(pitch), np.sin(pitch)
    found = np.empty(2 * n + 1)
    tight_w, tight_v = _times(m.tightening, w), _times(m.tightening, v) - v
    forces = _times(m.to_modes, air.dr * normal), _times(m.to_modes, air.dr * tangential)
    soft, hard = cos * w + sin * v, cos * v - sin * w  # in the axes of the blade
    soft_rate, hard_rate = cos * z[:n] + sin * z[n : 2 * n], cos * z[n : 2 * n] - sin * z[:n]
    along = _times(m.flap, soft) + _times(m.flap_damping, soft_rate)
    across = _times(m.edge, hard) + _times(m.edge_damping, hard_rate)
    momentum = speed * m.rotor_inertia
    for k in range(n):
        rising, pull = (a * z[k] - back[2 * n + k]) / h, m.inertia_vector[k] * acceleration
        found[k] = rising + cos * along[k] - sin * across[k] + speed**2 * tight_w[k] - forces[0][k]
        rising = (a * z[n + k] - back[3 * n + k]) / h
        found[n + k] = rising + sin * along[k] + cos * across[k] + speed**2 * tight_v[k] + pull - forces[1][k]
        momentum += air.blades * (m.inertia_vector[k] * z[n + k] - speed * (w[k] * tight_w[k] + v[k] * tight_v[k]))
    torque = air.blades * (tangential * air.r * air.dr).sum()
    shaft = m.generator_inertia * acceleration + m.drag * speed - motor + parking * np.tanh(speed / 0.05)
    found[2 * n] = (a * momentum - back[4 * n + 1]) / h - torque + shaft
    keep[0], keep[1], keep[2] = momentum, torque, shaft
    return found


@_jitted
def _run(air, m, h, steps, pitch, speed, out):
    n = len(m.flap)
    w, wt = _steady(air, speed, pitch)
    k = 0.6
    stations = len(air.r)
    flow = np.zeros((5, stations))
    flow[0], flow[1], flow[2], flow[3] = (1 - k) * w, w, (1 - k) * wt, wt
    for i in range(stations):
        beta = air.twist[i] + pitch
        flow[4, i] = (air.wind - w[i]) * np.cos(beta) - (speed * air.r[i] + wt[i]) * np.sin(beta)
    old_flow = flow.copy()
    machine = np.zeros(4 * n + 2)
    machine[4 * n], machine[4 * n + 1] = speed, speed * m.rotor_inertia
    old = machine.copy()
    pitch_rate = 0.0
    z = np.zeros(2 * n + 1)
    z[2 * n] = speed
    normal, tangential = np.zeros(stations), np.zeros(stations)
    q, keep = np.zeros(2 * n), np.zeros(3)
    worst = 0.0
    for step in range(steps):
        t, a = step * h, 1.0 if step == 0 else 1.5
        if step == 0:
            past, back = flow.copy(), machine.copy()
        else:
            past, back = 2 * flow - 0.5 * old_flow, 2 * machine - 0.5 * old
        braking = t >= m.brake_time - 1e-9
        target = m.brake_pitch if braking else 0.0
        command = min(max(5 * (target - pitch), -m.pitch_rate), m.pitch_rate)
        new_rate = pitch_rate + (1 - np.exp(-h / 0.1)) * (command - pitch_rate)
        pitch += 0.5 * h * (pitch_rate + new_rate)
        pitch_rate = new_rate
        motor = m.motor if t + h <= m.motor_time + 1e-9 else 0.0
        parking = m.parking if braking and abs(machine[4 * n]) < m.parking_speed else 0.0
        guess = 2 * z - np.append(old[2 * n : 4 * n], old[4 * n]) if step else z.copy()
        trial = flow.copy()
        size = np.inf
        for _ in range(30):
            r = _balance(
                air, m, h, a, guess, back, past, trial, pitch, pitch_rate, motor, parking, normal, tangential, q, keep
            )
            J = np.empty((2 * n + 1, 2 * n + 1))
            for c in range(2 * n + 1):
                moved = guess.copy()
                by = 1e-6 * max(1.0, abs(moved[c]))
                moved[c] += by
                J[:, c] = (
                    _balance(air, m, h, a, moved, back, past, trial.copy(), pitch, pitch_rate, motor, parking,
                             np.empty(stations), np.empty(stations), np.empty(2 * n), np.empty(3)) - r
                ) / by  # fmt: skip
            change = _solve(J, -r)
            guess = guess + change
            size_new = np.abs(change).max()
            if size_new < 1e-13 * max(1.0, abs(guess[2 * n])) or (size_new < 1e-10 and size_new >= 0.5 * size):
                break
            size = size_new
        worst = max(worst, size_new)
        r = _balance(
            air, m, h, a, guess, back, past, trial, pitch, pitch_rate, motor, parking, normal, tangential, q, keep
        )
        old_flow, flow, old = flow, trial, machine
        z = guess
        machine = np.concatenate((q, z, keep[:1]))
        row = out[step + 1]
        row[0], row[1], row[2] = (step + 1) * h, z[2 * n], keep[1]
        row[3] = air.blades * (normal * air.dr).sum()
        row[4], row[5] = (m.tip * q[:n]).sum(), (m.tip * q[n:]).sum()
        row[6], row[7] = pitch, keep[2]
    return worst


def run(air: Air, machine: Machine, h: float, t_end: float, *, speed: float = 0.0, pitch: float = 0.0) -> Course:
    """From the steady flow of `speed` and `pitch`, with the blades straight."""
    steps = round(t_end / h)
    out = np.zeros((steps + 1, 8))
    out[0, 1] = speed
    out[0, 6] = pitch
    worst = _run(air, machine, h, steps, float(pitch), float(speed), out)
    if not worst < 1e-9:
        raise ArithmeticError(f"the undivided rotor did not converge: the last correction was {worst:.1e}")
    return Course(out[:, 0], out[:, 1], out[:, 2], out[:, 3], out[:, 4:6], out[:, 6], out[:, 7])
