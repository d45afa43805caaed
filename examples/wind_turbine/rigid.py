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

#: Strong coupling of the turbine, solved to the last digits of the speed: secants for the torque by the speed and back.
SECANT = cs.Secant(pairs=[("aero.torque", "drive.speed"), ("drive.speed", "aero.torque")], initial=0.0)


@dataclass(frozen=True)
class Turbine:
    """Rotor, drive train, control unit, and the speed to begin with in rad/s."""

    rotor: Rotor = field(default_factory=Rotor)
    train: Train = field(default_factory=Train)
    schedule: Schedule = field(default_factory=Schedule)
    speed: float = 0.5


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
