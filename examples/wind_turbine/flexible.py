"""The turbine with blades that bend: aerodynamics, rotor, generator and control unit as four subsystems.

A motor starts the rotor, the wind takes over, and at 4 s the control unit pitches the blades into stall and brakes.
Loads of the air are forces per length at its stations, the rotor takes forces at the nodes of a blade: what a blade
does at its nodes goes to the stations by interpolation, and the forces come back by the transpose, so that their work,
their sum and their moment about the axis are kept to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import inf, radians

import numpy as np

import cosolve as cs
from examples.wind_turbine.aerodynamics import Rotor, aerodynamic_step
from examples.wind_turbine.blade import Blade, blade
from examples.wind_turbine.control import Schedule, control
from examples.wind_turbine.drive import Train
from examples.wind_turbine.flexible_monolithic import Air, Machine, air
from examples.wind_turbine.generator import FLEXIBLE, generator
from examples.wind_turbine.rotor import Rule, hub, one_blade, rotor

BRAKE = Schedule(0.0, 0.0, radians(30.0), inf, 4.0, radians(-45.0), radians(30.0))


@dataclass(frozen=True)
class Turbine:
    """Air, blade, generator and control unit; the speed at the start in rad/s, and the rule of the time steps.

    With `shaft_on_rotor` the inertia of the generator is in the subsystem of the rotor, and the generator has its
    torques only: the same machine, cut where a serial iteration converges.
    """

    air: Rotor = field(default_factory=Rotor)
    blade: Blade = field(default_factory=blade)
    train: Train = FLEXIBLE
    schedule: Schedule = BRAKE
    hub_inertia: float = 0.0
    speed: float = 0.0
    rule: Rule = "bdf2"
    shaft_on_rotor: bool = False

    @property
    def at_hub(self) -> float:
        """Inertia at the hub besides the blades, as the rotor has it."""
        return self.hub_inertia + (self.train.inertia if self.shaft_on_rotor else 0.0)

    @property
    def inertia(self) -> float:
        """Of the stiff rotor about its axis, as its subsystem has it."""
        return self.at_hub + self.air.blades * self.blade.inertia

    @property
    def generator(self) -> Train:
        """The generator as its subsystem has it."""
        return self.train._replace(inertia=0.0) if self.shaft_on_rotor else self.train

    @cached_property
    def to_stations(self) -> cs.mapping.FieldMapping:
        """From the nodes of a blade, with its clamped root in front, to the stations of the air."""
        root = max(0.0, 2 * self.blade.nodes[0] - self.blade.nodes[1]) if len(self.blade.nodes) > 1 else 0.0
        nodes = cs.mapping.Mesh.line(np.concatenate([[root], self.blade.nodes]), name="nodes of the blade")
        stations = cs.mapping.Mesh(self.air.stations[:, 0], name="stations of the air")
        return cs.mapping.barycentric(nodes, stations).restricted(source=np.arange(1, len(self.blade.nodes) + 1))

    @cached_property
    def motion(self) -> np.ndarray:
        """Rates at the stations by rates at the nodes."""
        return self.to_stations.operator().toarray()

    @cached_property
    def loading(self) -> np.ndarray:
        """Forces at the nodes by forces per length at the stations: the transpose, times the lengths."""
        return np.ascontiguousarray((self.motion * self.air.stations[:, 1:2]).T)


def _field(system: cs.System, turbine: Turbine, air: str, blade: str, mark: str = "", own: str = "") -> None:
    """Motion of a blade to the air and loads back: ports of the air end in `mark`, those of the blade in `own`."""
    motion, loading = turbine.motion, turbine.loading
    for way in ("flap", "edge"):
        system.law(
            f"{air}.{way}_rate{mark}", lambda v: motion @ v, of=f"{blade}.{way}_rate{own}", jacobian=lambda v: motion
        )
        system.law(
            f"{blade}.{way}_load{own}", lambda f: loading @ f, of=f"{air}.{way}_load{mark}", jacobian=lambda f: loading
        )


def _air(rotor: Rotor, speed: float, pitch: float, separate: bool = False) -> cs.OneStep:
    """Aerodynamics that take the motion of their stations.

    The fields are too wide for compiled loops, so the step is called from Python: its machine code is on disk then, and
    need not be made anew for every rotor.
    """
    found = aerodynamic_step(rotor, speed, pitch, separate=separate, fields=True)
    plain = {name: getattr(getattr(found, name), "py_func", getattr(found, name)) for name in ("step", "jacobian")}
    return cs.OneStep(**{**found._asdict(), **plain}, noise=1e-15)


def _by_secants(air: cs.OneStep) -> cs.SecantJacobian:
    """Aerodynamics as those of a flow solver that knows no derivatives: loads depend on the motion of their station."""
    columns = [name for port in air.inputs for name in _elements(port)]
    rows = [name for port in air.outputs for name in _elements(port)]
    own = [[not column[1] or not row[1] or (row[1:] == column[1:]) for column in columns] for row in rows]
    return cs.SecantJacobian(cs.OneStep(
        air.step_function, x0=air.x0, y0=air.y0, inputs=air.inputs, outputs=air.outputs, noise=air.noise
    ), own)  # fmt: skip


def _elements(port: cs.Port) -> list[tuple[str, str]]:
    """Name, and for a field its station and the mark of its blade."""
    mark = port.name.rstrip("0123456789")
    return [(port.name, "" if port.size is None else f"{k} {port.name[len(mark) :]}") for k in range(port.length)]


def split(turbine: Turbine | None = None, *, alike: bool = True, secant: bool = False) -> cs.System:
    """Four subsystems; with `alike` one blade stands for all, otherwise each has loads and motion of its own.

    With `secant` the aerodynamics give no exact sensitivities, as most flow solvers, and secants stand for them.

    >>> print(split())                                                              # doctest: +ELLIPSIS
    System with 4 subsystems
      air (OneStep): speed, pitch, pitch_rate, flap_rate, edge_rate -> torque, thrust, flap_load, edge_load
      rotor (OneStep): flap_load, edge_load, generator, pitch -> speed, flap_rate, edge_rate, tip
      generator (OneStep): speed, brake -> torque
      control (OneStep): speed -> pitch, pitch_rate, brake
    ...
    """
    p = Turbine() if turbine is None else turbine
    start = p.schedule.pitch
    flow = _air(p.air, p.speed, start, not alike)
    system = cs.System(
        {
            "air": _by_secants(flow) if secant else flow,
            "rotor": rotor(
                p.blade, blades=p.air.blades, alike=alike, hub_inertia=p.at_hub, speed=p.speed, pitch=start,
                rule=p.rule,
            ),
            "generator": generator(p.generator, speed=p.speed, rule=p.rule),
            "control": control(p.schedule, p.speed),
        }
    )  # fmt: skip
    system.connect("rotor.speed", "air.speed", "generator.speed", "control.speed")
    system.connect("control.pitch", "air.pitch", "rotor.pitch")
    system.connect("control.pitch_rate", "air.pitch_rate")
    system.connect("control.brake", "generator.brake")
    system.connect("generator.torque", "rotor.generator")
    for mark in [""] if alike else [str(k + 1) for k in range(p.air.blades)]:
        _field(system, p, "air", "rotor", mark, mark)
    return system


def apart(turbine: Turbine | None = None) -> cs.System:
    """Every blade a subsystem of its own, and the hub another: air, hub, blade1, blade2, ..., generator, control."""
    p = Turbine() if turbine is None else turbine
    start, names = p.schedule.pitch, [f"blade{k + 1}" for k in range(p.air.blades)]
    system = cs.System(
        {
            "air": _air(p.air, p.speed, start, True),
            "hub": hub(p.inertia, blades=p.air.blades, speed=p.speed, rule=p.rule),
            **{
                name: one_blade(p.blade, speed=p.speed, pitch=start, rule=p.rule, name=name[5:]) for name in names
            },
            "generator": generator(p.generator, speed=p.speed, rule=p.rule),
            "control": control(p.schedule, p.speed),
        }
    )  # fmt: skip
    system.connect("hub.speed", "air.speed", "generator.speed", "control.speed", *(f"{name}.speed" for name in names))
    system.connect("control.pitch", "air.pitch", *(f"{name}.pitch" for name in names))
    system.connect("control.pitch_rate", "air.pitch_rate")
    system.connect("control.brake", "generator.brake")
    system.connect("generator.torque", "hub.generator")
    for k, name in enumerate(names):
        system.connect(f"{name}.torque", f"hub.torque{k + 1}")
        _field(system, p, "air", name, str(k + 1))
    return system


def driven(turbine: Turbine | None = None, speed: float = radians(432.0)) -> cs.System:
    """Air and one blade at a prescribed speed (rad/s), which bends as the wind blows from the first step on."""
    p = Turbine() if turbine is None else turbine
    start = p.schedule.running
    system = cs.System(
        {"air": _air(p.air, speed, start), "blade": one_blade(p.blade, speed=speed, pitch=start, rule=p.rule)}
    )
    for target, value in (("air.speed", speed), ("air.pitch", start), ("air.pitch_rate", 0.0)):
        system.set(target, value)
    system.set("blade.speed", speed)
    system.set("blade.pitch", start)
    _field(system, p, "air", "blade")
    return system


def reference(turbine: Turbine | None = None) -> tuple[Air, Machine]:
    """The same turbine for `flexible_monolithic.run`: numbers only, for modes of a blade."""
    p = Turbine() if turbine is None else turbine
    b, n, nodes = p.blade, len(p.blade.pull) // 2, len(p.blade.nodes)
    rates = np.ascontiguousarray(p.motion @ b.shapes[:nodes, :n])
    near = (slice(0, n), slice(0, n))
    far = (slice(n, None), slice(n, None))
    machine = Machine(
        rates, np.ascontiguousarray(rates.T), b.tip[0, :n].copy(),
        b.stiffness[0][near].copy(), b.stiffness[0][far].copy(), b.damping[0][near].copy(), b.damping[0][far].copy(),
        b.tightening[near].copy(), b.pull[n:].copy(), p.inertia, p.generator.inertia, p.train.damping,
        p.train.motor_torque, p.train.motor_until, p.schedule.command, p.schedule.braked, p.schedule.brake_rate,
        p.train.parking_torque, p.train.parking_speed,
    )  # fmt: skip
    return air(p.air.elements, p.air.wind, p.air.density, p.air.blades), machine
