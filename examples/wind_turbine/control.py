"""The control unit of the turbine: runs the pitch up, and brakes by pitching when the rotor is too fast or on command.

A sampled controller: in every step it acts on the speed at the end of the last one, so that nothing of its input feeds
through to its outputs. The pitch drive follows its command with a time constant; the pitch angle is its rate,
integrated by the trapezoidal rule.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import exp, inf, radians
from typing import NamedTuple

import numpy as np
from numba import njit

import cosolve as cs

_jitted = njit(cache=True, error_model="numpy")


class Schedule(NamedTuple):
    """What the control unit does: angles in radians, rates and speeds in rad/s; positive pitch is towards feather.

    From `pitch` to `running` at up to `rate`; as soon as the rotor is faster than `trigger`, or from `command` on, to
    `braked` at up to `brake_rate`. The rate of the pitch drive follows its command with the time constant `lag` in s;
    the command is `gain` in 1/s times the missing angle.
    """

    pitch: float = radians(45.0)
    running: float = 0.0
    rate: float = radians(15.0)
    trigger: float = radians(500.0)
    command: float = inf
    braked: float = radians(-45.0)
    brake_rate: float = radians(30.0)
    lag: float = 0.1
    gain: float = 5.0


@_jitted
def control_step(t, H, x, new, y, s):
    """Pitch and its rate at the end of a step, from (pitch, rate, speed, braking) at its beginning."""
    braking = x[3] != 0.0 or x[2] > s.trigger or t >= s.command - 1e-9 * H
    target, limit = (s.braked, s.brake_rate) if braking else (s.running, s.rate)
    command = min(max(s.gain * (target - x[0]), -limit), limit)
    rate = x[1] + (1.0 - exp(-H / s.lag)) * (command - x[1])
    new[0] = x[0] + 0.5 * H * (x[1] + rate)
    new[1] = rate
    new[3] = 1.0 if braking else 0.0
    y[0], y[1], y[2] = new[0], rate, new[3]


@cache
def _laws(s: Schedule) -> tuple[Callable, Callable]:
    """Step and sensitivities, compiled once."""

    @njit
    def step(t, H, x, u, new, y):
        control_step(t, H, x, new, y, s)
        new[2] = u[0]
        return 0

    @njit
    def jacobian(t, H, x, u, D):
        D[:, :] = 0.0

    return step, jacobian


def control(schedule: Schedule | None = None, speed: float = 0.5) -> cs.OneStep:
    """Speed of the rotor in; pitch, its rate, and 1 while braking out. `speed` is that at the start.

    >>> [port.name for port in control().outputs]
    ['pitch', 'pitch_rate', 'brake']
    """
    s = Schedule() if schedule is None else schedule
    for name in ("rate", "brake_rate", "trigger", "lag", "gain"):
        if not getattr(s, name) > 0:
            raise cs.errors.SetupError(f"the {name} of the control unit must be positive, not {getattr(s, name)!r}")

    step, jacobian = _laws(s)
    return cs.OneStep(
        step,
        x0=[s.pitch, 0.0, speed, 0.0],
        y0=[s.pitch, 0.0, 0.0],
        inputs=[cs.Port("speed", unit="rad/s")],
        outputs=[cs.Port("pitch", unit="rad"), cs.Port("pitch_rate", unit="rad/s"), cs.Port("brake")],
        jacobian=jacobian,
    )


def braking_from(t: np.ndarray, brake: np.ndarray) -> float:
    """The time at which the decision fell: the step before the first one that is braked; infinity where there is none.

    >>> braking_from(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 0.0, 1.0, 1.0]))
    1.0
    """
    on = np.flatnonzero(np.asarray(brake) > 0.5)
    return float(t[max(on[0] - 1, 0)]) if len(on) else inf
