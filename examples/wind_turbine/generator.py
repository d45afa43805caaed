"""Generator of the turbine with its motor and its parking brake, in both causalities.

`J w' + D w + T_p tanh(w / 0.05) = b + motor`, where `b` is the torque that the rotor gives. `generator` takes the speed
and gives `b`, as a shaft that is part of the rotor wants it; `drive.drive` takes the torque and gives the speed. With
BDF2 the sensitivities are `db/dw = 3 J/(2 h) + D` and its inverse. The rule `"energy"` takes the mean speed of a step
and gives the torque there: what the shaft takes is then what inertia and losses get, to rounding.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit

import cosolve as cs
from examples.wind_turbine.drive import SOFT, Train

_jitted = njit(cache="." in __name__)

#: The flexible machine: generator and gears as heavy as measured, a motor for the start.
FLEXIBLE = Train(161.0, 100.1, 3000.0, 0.8, 5000.0, 1.2)


@_jitted
def _generator_step(t, H, x, speed, brake, p, energy, new):
    """Torque taken from the rotor at the end of a step (or its mean), and its derivative by the speed.

    `x` holds the speeds at the beginning of this step and of the last, and the length of the last.
    """
    if energy:
        end, lead = 2 * speed - x[0], 2 / H
        change = (end - x[0]) / H
    else:
        end, ratio = speed, H / x[2] if x[2] > 0 else 0.0
        lead = (1 + 2 * ratio) / (1 + ratio) / H
        change = lead * speed - (1 + ratio) / H * x[0] + ratio * ratio / (1 + ratio) / H * x[1]
    motor = p.motor_torque if t + H <= p.motor_until + 1e-9 * H else 0.0
    parking = p.parking_torque if brake > 0.5 and abs(x[0]) < p.parking_speed else 0.0
    held = parking * np.tanh(speed / SOFT)
    new[0], new[1], new[2] = end, x[0], H
    torque = p.inertia * change + p.damping * speed + held - motor
    return torque, p.inertia * lead + p.damping + parking / (SOFT * np.cosh(min(abs(speed) / SOFT, 300.0)) ** 2)


def generator(
    train: Train = FLEXIBLE, *, speed: float = 0.0, rule: str = "bdf2", unit: str = "rad/s", before: float = 0.0
) -> cs.OneStep:
    """Speed of the shaft and 1 while braking in, `torque` taken from the rotor out.

    `unit` is that of the speed that comes in, rad/s or deg/s, which connections convert; the start `speed` is in rad/s.
    With `before` (s) it had that speed a step of this length before the start, and BDF2 begins at once.

    >>> one = generator()
    >>> D = np.empty((1, 2))
    >>> one.jacobian_function(0.0, 1e-3, np.array([1.0, 1.0, 1e-3]), np.array([1.0, 0.0]), D)
    >>> round(float(D[0, 0]), 6)                           # 3 J/(2 h) + D
    241600.1
    """
    p, energy = train, rule == "energy"
    if rule not in ("bdf2", "energy"):
        raise cs.errors.SetupError(f"the rule of a generator is 'bdf2' or 'energy', not {rule!r}")
    if not p.parking_speed > 0:
        raise cs.errors.SetupError(f"the parking_speed of a generator must be positive, not {p.parking_speed!r}")
    for name in ("inertia", "damping", "parking_torque"):
        if not getattr(p, name) >= 0:
            raise cs.errors.SetupError(f"the {name} of a generator cannot be negative: {getattr(p, name)!r}")
    if unit not in ("rad/s", "deg/s"):
        raise cs.errors.SetupError(f"a generator takes its speed in rad/s or deg/s, not in {unit!r}")
    scale = 1.0 if unit == "rad/s" else np.pi / 180

    def step(t, H, x, u, new, y):
        y[0] = _generator_step(t, H, x, scale * u[0], u[1], p, energy, new)[0]

    def jacobian(t, H, x, u, D):
        D[0, 0], D[0, 1] = scale * _generator_step(t, H, x, scale * u[0], u[1], p, energy, np.empty(3))[1], 0.0

    return cs.OneStep(
        step,
        x0=[speed, speed, before],
        y0=[0.0],
        inputs=[cs.Port("speed", unit=unit), cs.Port("brake")],
        outputs=[cs.Port("torque", unit="N.m", nominal=1000.0)],
        jacobian=jacobian,
    )
