"""Drive train and generator of the turbine: one inertia with damping, a motor for the start, and a parking brake.

`J w' + D w + T_p tanh(w / 0.05) = torque + motor` by BDF2 (BDF1 in the first step). The parking brake acts while the
control unit brakes and the rotor is slow; without it a stalled rotor would turn backwards, which ends a run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import cosh, inf, tanh
from typing import NamedTuple

from numba import njit

import cosolve as cs
from examples.wind_turbine.aerodynamics import bdf

_jitted = njit(cache=True, error_model="numpy")

SOFT = 0.05  # rad/s: the speed over which the parking brake changes its sign
BACKWARDS, NO_SPEED = 1, 2


class Train(NamedTuple):
    """SI units. The motor drives up to and including `motor_until`; the parking brake grips below `parking_speed`."""

    inertia: float = 111.0
    damping: float = 10.62
    parking_torque: float = 1500.0
    parking_speed: float = 0.6
    motor_torque: float = 0.0
    motor_until: float = -inf


@_jitted
def drive_step(t, H, x, torque, brake, p):
    """Speed at the end of a step, its slope over the torque, and whether it was found.

    `x` holds the speeds at the beginning of this step and of the last, and 1 over the length of the last.
    """
    c = bdf(H, x[2])
    past = p.inertia * (c[1] * x[0] + c[2] * x[1])
    given = torque + (p.motor_torque if t + H <= p.motor_until + 1e-9 * H else 0.0)
    parking = p.parking_torque if brake > 0.5 and abs(x[0]) < p.parking_speed else 0.0
    stiffness = p.inertia * c[0] + p.damping
    w = (given - past) / stiffness
    slope = 1.0 / stiffness
    if parking == 0.0:
        return w, slope, True
    # monotonous, so the solution lies between those with the brake fully on either way
    low, high = (given - past - parking) / stiffness, (given - past + parking) / stiffness
    w = min(max(x[0], low), high)
    for _ in range(100):
        r = stiffness * w + past - given + parking * tanh(w / SOFT)
        if r > 0:
            high = w
        else:
            low = w
        slope = 1.0 / (stiffness + parking / (SOFT * cosh(w / SOFT) ** 2))
        new = w - r * slope
        if not low <= new <= high:
            new = 0.5 * (low + high)
        if abs(new - w) <= 2e-16 * max(abs(new), SOFT):
            return new, slope, True
        w = new
    return w, slope, abs(r) * slope < 1e-12


@cache
def _laws(p: Train) -> tuple[Callable, Callable]:
    """Step and sensitivities, compiled once."""

    @njit
    def step(t, H, x, u, new, y):
        w, _, found = drive_step(t, H, x, u[0], u[1], p)
        new[0], new[1], new[2] = w, x[0], 1.0 / H
        y[0] = w
        if not found:
            return NO_SPEED
        return BACKWARDS if w < -4.0 * SOFT and w < x[0] else 0

    @njit
    def jacobian(t, H, x, u, D):
        D[0, 0], D[0, 1] = drive_step(t, H, x, u[0], u[1], p)[1], 0.0

    return step, jacobian


def drive(train: Train | None = None, speed: float = 0.5) -> cs.OneStep:
    """Torque of the rotor and 1 while braking in, speed out.

    >>> import numpy as np
    >>> train, slope = drive(), np.empty((1, 2))
    >>> train.jacobian_function(0.0, 1e-3, np.array([0.5, 0.5, 1e3]), np.zeros(2), slope)
    >>> f"{slope[0, 0]:.6e}"                        # 2 h / (3 J + 2 h D)
    '6.005623e-06'
    """
    p = Train() if train is None else train
    for name in ("inertia", "parking_speed"):
        if not getattr(p, name) > 0:
            raise cs.errors.SetupError(f"the {name} of the drive train must be positive, not {getattr(p, name)!r}")
    for name in ("damping", "parking_torque"):
        if not getattr(p, name) >= 0:
            raise cs.errors.SetupError(
                f"the {name} of the drive train acts against the motion and cannot be negative: {getattr(p, name)!r}"
            )

    step, jacobian = _laws(p)

    def failure(status: int, t: float, H: float, x, u) -> str:
        if status == NO_SPEED:
            return f"the speed with the parking brake is not found at a torque of {u[0]:g} Nm: take shorter steps"
        return (
            f"the rotor turns backwards, {drive_step(t, H, x, u[0], u[1], p)[0]:.2g} rad/s, under an aerodynamic "
            f"torque of {u[0]:.0f} Nm, and the parking brake ({p.parking_torque:g} Nm below {p.parking_speed:g} rad/s) "
            "does not hold it: give it more, unless it is the coupling that runs away"
        )

    return cs.OneStep(
        step,
        x0=[speed, speed, 0.0],
        y0=[speed],
        inputs=[cs.Port("torque", unit="N.m"), cs.Port("brake")],
        outputs=[cs.Port("speed", unit="rad/s")],
        jacobian=jacobian,
        failure=failure,
    )
