"""The turbine with rigid blades: aerodynamics, drive train and control unit as three subsystems.

Run-up from a slow rotor with pitched blades, no load but the damping of the generator; the rotor becomes too fast, the
control unit pitches into stall, and a parking brake holds the rotor in the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import cosolve as cs
from examples.wind_turbine.aerodynamics import Rotor, aerodynamics
from examples.wind_turbine.control import Schedule, control
from examples.wind_turbine.drive import Train, drive

#: The order of a serial sweep: the control unit, which needs nothing new, and the rotor before its inertia.
ORDER = ("control", "aero", "drive")

#: Every step is solved until the speed is right to 1e-12 rad/s, with a secant for what the speed makes of itself.
BY_SECANT = cs.Implicit(1, tol=1e-12, absolute=True, sweep="gauss-seidel", order=ORDER, corrector=cs.Secant())


@dataclass(frozen=True)
class Turbine:
    """Rotor, drive train, control unit, and the speed to begin with in rad/s."""

    rotor: Rotor = field(default_factory=Rotor)
    train: Train = field(default_factory=Train)
    schedule: Schedule = field(default_factory=Schedule)
    speed: float = 0.5


def by_jacobian(step: float, train: Train | None = None) -> cs.Implicit:
    """The same accuracy by the exact sensitivities of rotor and drive train, both at the same time.

    Here the torque is an unknown as well; it is wanted as exactly as moves the speed by 1e-12 rad/s.

    >>> by_jacobian(1e-3).atol
    {'aero.torque': 1.7e-07}
    """
    train = Train() if train is None else train
    moves = 1.5 * train.inertia / step + train.damping
    return cs.Implicit(1, tol=1e-12, absolute=True, atol={"aero.torque": float(f"{1e-12 * moves:.1e}")})


def split(turbine: Turbine | None = None) -> cs.System:
    """Three subsystems: speed and pitch one way, torque and brake the other.

    >>> [str(name) for name in split().plan().names]
    ['control', 'aero', 'drive']
    """
    t = Turbine() if turbine is None else turbine
    system = cs.System(
        {
            "control": control(t.schedule, t.speed),
            "aero": aerodynamics(t.rotor, t.speed, t.schedule.pitch),
            "drive": drive(t.train, t.speed),
        }
    )
    system.connect("drive.speed", "aero.speed", "control.speed")
    system.connect("control.pitch", "aero.pitch")
    system.connect("control.pitch_rate", "aero.pitch_rate")
    system.connect("control.brake", "drive.brake")
    system.connect("aero.torque", "drive.torque")
    return system
