"""The turbine with rigid blades in one program: a reference that shares nothing with the coupled one but its data.

In every step all equations are solved together: the induced velocities of all stations by a plain fixed point, the
speed by quasi-Newton steps around it. `loose` is the same program with two parts that only exchange extrapolated
values, for comparison: the control unit, which acts on the last speed, goes first, then rotor and drive train at the
same time or one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import acos, atan2, cos, cosh, exp, pi, sin, tan, tanh

import numpy as np
from numba import njit

import cosolve as cs
from examples import elements
from examples.wind_turbine.aerodynamics import steady
from examples.wind_turbine.rigid import Turbine

polar_values = elements.polar_values

_jitted = njit(cache=True, error_model="numpy")

TOGETHER, JACOBI, GAUSS_SEIDEL = 0, 1, 2


@_jitted
def _torque(speed, pitch, rate, wind, density, blades, tip, stations, polars, before, c, after):
    """Torque at the end of a step; `before` and `after` hold (w, y, w_t, y_t, V) of the stations, two steps of them.

    Also whether all fixed points have settled.
    """
    angles, lift, drag = polars
    torque, settled = 0.0, True
    for i in range(len(stations)):
        r, length, chord, twist = stations[i]
        beta = twist + pitch
        now, last = before[0, :, i], before[1, :, i]
        w, y, wt, yt = now[0], now[1], now[2], now[3]
        change = 1.0
        for _ in range(400):
            vn, vt = wind - w, speed * r + wt
            phi = atan2(vn, vt)
            alpha = phi - beta
            if alpha > pi:
                alpha -= 2 * pi
            elif alpha < -pi:
                alpha += 2 * pi
            cl, cd, _, _ = polar_values(alpha, angles, lift[i], drag[i])
            L = 0.5 * density * (vn * vn + vt * vt) * chord * cl
            D = 0.5 * density * (vn * vn + vt * vt) * chord * cd
            s = max(abs(sin(phi)), 1e-3)
            F = max(2 / pi * acos(exp(-0.5 * blades * (tip - r) / (r * s))), 0.02)
            a = w / wind
            fg = 1.0 if a <= 1 / 3 else 0.25 * (5 - 3 * a)
            wq = blades * L * cos(phi) / (4 * pi * density * r * F * max(abs(wind - fg * w), 0.05 * wind))
            wtq = wq * tan(phi)
            t1 = 1.1 / (1 - 1.3 * min(max(a, 0.0), 0.5)) * tip / wind
            t2 = (0.39 - 0.26 * (r / tip) ** 2) * t1
            y = (0.4 * wq - t1 * (c[1] * now[1] + c[2] * last[1])) / (1 + c[0] * t1)
            yt = (0.4 * wtq - t1 * (c[1] * now[3] + c[2] * last[3])) / (1 + c[0] * t1)
            new = (y + 0.6 * wq - t2 * (c[1] * now[0] + c[2] * last[0])) / (1 + c[0] * t2)
            newt = (yt + 0.6 * wtq - t2 * (c[1] * now[2] + c[2] * last[2])) / (1 + c[0] * t2)
            step = abs(new - w) + abs(newt - wt)
            w, wt = new, newt
            if step < 1e-13 * wind and step >= change:  # only rounding moves it
                break
            change = step
        settled = settled and change < 1e-12 * wind
        vn, vt = wind - w, speed * r + wt
        across = vn * cos(beta) - vt * sin(beta) - 0.2 * chord * rate
        pushed = density * pi * chord**2 / 4 * (c[0] * across + c[1] * now[4] + c[2] * last[4])
        torque += blades * (L * sin(phi) - D * cos(phi) + pushed * sin(beta)) * r * length
        after[0, 0, i], after[0, 1, i], after[0, 2, i], after[0, 3, i], after[0, 4, i] = w, y, wt, yt, across
    after[1] = before[0]
    return torque, settled


@_jitted
def _driven(given, speed, parking, stiffness, past):
    """The speed under a torque that is known."""
    low, high = (given - past - parking) / stiffness, (given - past + parking) / stiffness
    w = 0.5 * (low + high) if parking == 0.0 else min(max(speed, low), high)
    for _ in range(200):
        r = stiffness * w + past + parking * tanh(w / 0.05) - given
        low, high = (low, min(high, w)) if r > 0 else (max(low, w), high)
        new = w - r / (stiffness + parking / 0.05 / cosh(w / 0.05) ** 2)
        if not low <= new <= high:
            new = 0.5 * (low + high)
        if abs(new - w) < 1e-16:
            return new
        w = new
    return w


@_jitted
def _march(mode, degree, h, count, data, air, stations, polars, flow, first_torque):
    """Rows of speed, torque, pitch, rate and braking; ends early where a value runs away, with the number of rows."""
    inertia, damping, holding, slow, start, begin, running, limit, trigger, braked, brake_limit = data
    wind, density, blades, tip = air
    rows = np.zeros((count + 1, 5))
    rows[0, 0], rows[0, 1], rows[0, 2] = start, first_torque, begin
    after, trial = flow.copy(), flow.copy()
    for n in range(count):
        w, q, pitch, rate, braking = rows[n]
        if w > trigger:
            braking = 1.0
        target, fastest = (braked, brake_limit) if braking else (running, limit)
        new_rate = rate + (1 - exp(-h / 0.1)) * (min(max(5 * (target - pitch), -fastest), fastest) - rate)
        pitch, rate = pitch + 0.5 * h * (rate + new_rate), new_rate
        c = (1 / h, -1 / h, 0.0) if n == 0 else (1.5 / h, -2 / h, 0.5 / h)
        past = inertia * (c[1] * w + c[2] * (rows[n - 1, 0] if n else w))
        parking = holding if braking and abs(w) < slow else 0.0
        stiffness = inertia * c[0] + damping
        ahead = 1.0 if degree > 0 and n > 0 else 0.0
        guess = w + ahead * (w - rows[n - 1, 0]) if n else w
        torque_guess = q + ahead * (q - rows[n - 1, 1]) if n else q
        if mode == TOGETHER:
            speed, settled = w + (w - rows[n - 1, 0] if n else 0.0), False
            torque, _ = _torque(speed, pitch, rate, wind, density, blades, tip, stations, polars, flow, c, after)
            shifted, _ = _torque(
                speed + 1e-6, pitch, rate, wind, density, blades, tip, stations, polars, flow, c, trial
            )
            slope, least = (shifted - torque) / 1e-6, 1e300
            for _ in range(60):
                torque, settled = _torque(
                    speed, pitch, rate, wind, density, blades, tip, stations, polars, flow, c, after
                )
                r = stiffness * speed + past + parking * tanh(speed / 0.05) - torque
                move = r / (stiffness + parking / 0.05 / cosh(speed / 0.05) ** 2 - slope)
                if abs(move) >= least and least < 1e-13:  # only rounding moves it
                    break
                least = min(least, abs(move))
                speed -= move
            if not (settled and least < 1e-12):
                return rows[: n + 1]
        elif mode == JACOBI:
            torque, _ = _torque(guess, pitch, rate, wind, density, blades, tip, stations, polars, flow, c, after)
            speed = _driven(torque_guess, w, parking, stiffness, past)
        else:
            torque, _ = _torque(guess, pitch, rate, wind, density, blades, tip, stations, polars, flow, c, after)
            speed = _driven(torque, w, parking, stiffness, past)
        if not (abs(speed) < 1e4 and abs(torque) < 1e7):
            return rows[: n + 1]
        flow, after = after, flow
        rows[n + 1] = (speed, torque, pitch, rate, braking)
    return rows


@dataclass(frozen=True)
class Course:
    """The turbine over time: speed in rad/s, torque in Nm, pitch and its rate in rad and rad/s, 1 while braking."""

    t: np.ndarray
    speed: np.ndarray
    torque: np.ndarray
    pitch: np.ndarray
    pitch_rate: np.ndarray
    brake: np.ndarray


def undivided(turbine: Turbine | None = None, t_end: float = 8.0, step: float = 1e-3) -> Course:
    """All equations of every step solved together.

    >>> undivided(t_end=0.01).speed.round(4).tolist()[:3]
    [0.5, 0.502, 0.5041]
    """
    turbine = Turbine() if turbine is None else turbine
    found = _course(turbine, t_end, step, TOGETHER, 1)
    if len(found.t) <= round(t_end / step):
        raise cs.errors.SimulationError(f"the reference was not solved at t = {found.t[-1]:g} s: take shorter steps")
    return found


def loose(
    turbine: Turbine | None = None, t_end: float = 8.0, step: float = 1e-3, *, serial: bool, degree: int
) -> Course:
    """Rotor and drive train with extrapolated values; `serial`, the drive train gets the rotor's new torque.

    A course that runs away ends where it does.
    """
    turbine = Turbine() if turbine is None else turbine
    return _course(turbine, t_end, step, GAUSS_SEIDEL if serial else JACOBI, degree)


def _course(turbine: Turbine, t_end: float, step: float, mode: int, degree: int) -> Course:
    rotor, train, s = turbine.rotor, turbine.train, turbine.schedule
    if train.motor_torque != 0.0 or s.command < t_end:
        raise cs.errors.SetupError(
            "the reference in one program knows no motor and no brake on command: leave both out"
        )
    begin = steady(rotor, turbine.speed, s.pitch)
    beta = rotor.stations[:, 3] + s.pitch
    across = (rotor.wind - begin.w) * np.cos(beta) - (turbine.speed * begin.r + begin.swirl) * np.sin(beta)
    one = np.array([begin.w, 0.4 * begin.w, begin.swirl, 0.4 * begin.swirl, across])
    data = (
        train.inertia, train.damping, train.parking_torque, train.parking_speed, turbine.speed,
        s.pitch, s.running, s.rate, s.trigger, s.braked, s.brake_rate,
    )  # fmt: skip
    air = (rotor.wind, rotor.density, float(rotor.blades), rotor.tip)
    rows = _march(
        mode, degree, step, round(t_end / step), data, air, rotor.stations, rotor.profiles,
        np.array([one, one]), begin.torque,
    )  # fmt: skip
    return Course(step * np.arange(len(rows)), *rows.T)
