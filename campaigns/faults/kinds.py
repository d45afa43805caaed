"""The systems that are disturbed: a mass that is always the same, coupled to one of each kind of subsystem.

A kind says which functions of a user it calls (its places); `build(kind, place, deed)` puts the deed in front of one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from tests.fmu.build import fmu

import cosolve as cs
from campaigns.faults.deeds import Deed

H, T_END = 0.02, 0.4
_A, _B = [[0.0, 1.0], [-40.0, -2.0]], [[0.0], [1.0]]


def good(x: float = 1.0) -> cs.Linear:
    """A damped mass on a spring."""
    return cs.Linear(_A, _B, np.eye(2), x0=[x, 0.0], inputs=["f"], outputs=["x", "v"])


def spring(a: float, va: float, b: float, vb: float) -> float:
    """The force on the first of two masses."""
    return 20.0 * (b - a) + 1.0 * (vb - va)


def _joined(bad: cs.Subsystem, law: Callable[..., Any] = spring) -> cs.System:
    system = cs.System({"good": good(), "bad": bad})
    system.law({"good.f": 1, "bad.f": -1}, law, of=["good.x", "good.v", "bad.x", "bad.v"])
    return system


class Mass(cs.Subsystem):
    """A mass by Heun's method, in plain Python, with every capability that a deed can stand in front of."""

    inputs, outputs = ("f",), ("x", "v")

    def __init__(self, place: str, deed: Deed, steps: bool = False) -> None:
        self.place, self.deed = place, deed
        if place == "jacobian":
            self.jacobian = self._jacobian
        if place in ("step", "time") or steps:
            self.step = self._step
        if place == "get_state":
            self.get_state = partial(self._through, "get_state", lambda: self.state)
            self.set_state = self.restore
        if place == "output":
            self.output = lambda t, u: self._done("output", self.state)

    def _through(self, place: str, value: Callable[[], Any]) -> Any:
        return self._done(place, value())

    def _done(self, place: str, value: Any) -> Any:
        return self.deed(value) if place == self.place else value

    def start(self, t0: float) -> Any:
        self.state = np.array([-1.0, 0.0])
        return self._done("start", self.state.copy())

    def advance(self, t0: float, t1: float, u: Any) -> Any:
        A, b, h = np.array(_A), np.array(_B)[:, 0], t1 - t0
        first = A @ self.state + b * u(t0)[0]
        second = A @ (self.state + h * first) + b * u(t1)[0]
        self.state = self.state + 0.5 * h * (first + second)
        return self._done("advance", self.state.copy())

    def save(self) -> Any:
        return self._done("save", self.state)

    def restore(self, state: Any) -> None:
        if self.place == "restore":
            self.deed(0.0)
        self.state = state

    def _jacobian(self, t0: float, t1: float, u: Any, weight: Any) -> Any:
        h, A, b = t1 - t0, np.array(_A), np.array(_B)[:, 0]
        w0, w1 = weight[0], weight.sum()
        J = 0.5 * h * (b * w0 + A @ (h * b * w0) + b * w1)
        return self._done("jacobian", J.reshape(2, 1))

    def _step(self, t0: float, t_max: float, u: Any) -> Any:
        t1 = min(t0 + 0.4 * H, t_max)
        return self._done("time", t1), self._done("step", self.advance(t0, t1, u))


def _python(place: str, deed: Deed) -> cs.System:
    return _joined(Mass(place, deed))


class Called(Mass):
    """The same, called back by the compiled loop."""

    native = cs.Subsystem.by_callback


def _callback(place: str, deed: Deed) -> cs.System:
    return _joined(Called(place, deed), _jitted_spring)


def _isolated(place: str, deed: Deed) -> cs.System:
    return _joined(cs.remote.Isolated(partial(Called, place, deed), timeout=3.0), _jitted_spring)


def _ode(place: str, deed: Deed, integrator: str = "auto") -> cs.System:
    def rhs(t: float, x: Any, u: Any) -> Any:
        value = np.array([x[1], -40.0 * x[0] - 2.0 * x[1] + u[0]])
        return deed(value) if place == "rhs" else value

    def output(t: float, x: Any, u: Any) -> Any:
        return deed(x) if place == "output" else x

    h = 0.25 * H if integrator.startswith("ode") else None
    return _joined(
        cs.Ode(
            *(rhs, output),
            x0=[-1.0, 0.0],
            inputs=["f"],
            outputs=["x", "v"],
            integrator=integrator,
            internal_step=h,
        )
    )


def _dae(place: str, deed: Deed) -> cs.System:
    def rhs(t: float, x: Any, u: Any) -> Any:
        value = np.array([x[1], x[2] + u[0], -40.0 * x[0] - 2.0 * x[1] - x[2]])
        return deed(value) if place == "rhs" else value

    def output(t: float, x: Any, u: Any) -> Any:
        return deed(x[:2]) if place == "output" else x[:2]

    E = np.diag([1.0, 1.0, 0.0])
    return _joined(cs.Dae(rhs, output, E=E, x0=[-1.0, 0.0, 40.0], inputs=["f"], outputs=["x", "v"]))


#: deeds of jitted functions, chosen by a state that does not change, so that one compilation serves all of them
JITTED = {"nothing": 0, "raises": 1, "nan": 2, "inf": 3, "huge": 4, "too short": 5, "too long": 6, "empty": 7}
PLACES_JITTED = {"rhs": 0, "output": 10}


@njit
def _spoilt(code, value):
    if code == 1:
        raise ZeroDivisionError("no flow left")
    if code == 2:
        return value * np.nan
    if code == 3:
        return value + np.inf
    if code == 4:
        return value * 1e300
    if code == 5:
        return value[:-1].copy()
    if code == 6:
        return np.append(value, 0.0)
    if code == 7:
        return np.zeros(0)
    return value


@njit
def _jitted_rhs(t, x, u):
    value = np.array([x[1], -40.0 * x[0] - 2.0 * x[1] + u[0], 0.0])
    return _spoilt(x[2], value) if 0 < x[2] < 10 and t > 0.2 else value


@njit
def _jitted_output(t, x, u):
    value = x[:2].copy()
    return _spoilt(x[2] - 10, value) if x[2] > 10 and t > 0.2 else value


@njit
def _jitted_spring(a, va, b, vb):
    return 20.0 * (b - a) + 1.0 * (vb - va)


def _jitted(place: str, deed: Deed, integrator: str = "ode4") -> cs.System:
    code = float(JITTED[deed.name])
    h = 0.25 * H if integrator.startswith("ode") else None
    ode = cs.Ode(
        *(_jitted_rhs, _jitted_output),
        x0=[-1.0, 0.0, code + PLACES_JITTED[place] if code else 0.0],
        inputs=["f"],
        outputs=["x", "v"],
        integrator=integrator,
        internal_step=h,
    )
    return _joined(ode, _jitted_spring)


def _law(place: str, deed: Deed) -> cs.System:
    system = cs.System({"good": good(), "bad": good(-1.0)})
    of = ["good.x", "good.v", "bad.x", "bad.v"]
    if place == "law":
        system.law({"good.f": 1, "bad.f": -1}, lambda *y: deed(spring(*y)), of=of)
    elif place == "law jacobian":
        exact = np.array([[-20.0, -1.0, 20.0, 1.0]])
        system.law({"good.f": 1, "bad.f": -1}, spring, of=of, jacobian=lambda *y: deed(exact.copy()))
    elif place == "residual":
        forces = {"force": {"good.f": 1, "bad.f": -1}}
        system.equations(forces, lambda z, *y: deed(z - spring(*y)), of=of)
    else:
        system.law("good.f", lambda *y: spring(*y), of=of)
        system.set("bad.f", lambda t: deed(np.sin(t)))
    return system


def _static(place: str, deed: Deed) -> cs.System:
    system = cs.System({"good": good(), "bad": cs.Static(lambda t, u: deed(-5.0 * u[:1]), inputs=["x"], outputs=["f"])})
    system.connect("good.x", "bad.x")
    system.connect("bad.f", "good.f")
    return system


def _residual(place: str, deed: Deed) -> cs.System:
    def residual(t: float, x: Any, u: Any) -> Any:
        value = x + 0.1 * x**3 + 5.0 * u
        return deed(value) if place == "residual" else value

    def output(t: float, x: Any, u: Any) -> Any:
        return deed(x) if place == "output" else x

    system = cs.System(
        {"good": good(), "bad": cs.StaticResidual(residual, output, x0=[0.0], inputs=["x"], outputs=["f"])}
    )
    system.connect("good.x", "bad.x")
    system.connect("bad.f", "good.f")
    return system


def _dynamic_static(place: str, deed: Deed) -> cs.System:
    """A dynamic subsystem that gives its equations, and a static one, for `DynamicStatic`."""

    def rhs(t: float, x: Any, u: Any) -> Any:
        value = np.array([x[1], -40.0 * x[0] - 2.0 * x[1] + u[0]])
        return deed(value) if place == "rhs" else value

    def film(t: float, u: Any) -> Any:
        return deed(-5.0 * u[:1] ** 3) if place == "function" else -5.0 * u[:1] ** 3

    ode = cs.Ode(rhs, lambda t, x, u: x, x0=[1.0, 0.0], inputs=["f"], outputs=["x", "v"])
    system = cs.System({"good": ode, "bad": cs.Static(film, inputs=["x"], outputs=["f"])})
    system.connect("good.x", "bad.x")
    system.connect("bad.f", "good.f")
    return system


def _multibody(place: str, deed: Deed) -> cs.System:
    model = cs.multibody.MultibodyModel(gravity=(0.0, 0.0, 0.0))
    model.body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1], position=[-1.0, 0.0, 0.0])
    model.spring_damper("cord", "ball", "ground", stiffness=40.0, damping=2.0, length=0.5)
    model.load("ball", force=lambda t: deed(np.array([0.1 * np.sin(t), 0.0, 0.0])))
    system = cs.System({"good": good(), "bad": cs.multibody.MultibodySubsystem(model, ports=[("ball", ["force"])])})
    of = ["good.x", "good.v", "bad.ball_position", "bad.ball_velocity"]
    system.law("good.f", lambda a, va, r, v: spring(a, va, r[0], v[0]), of=of)
    system.law("bad.ball_force", lambda a, va, r, v: [-spring(a, va, r[0], v[0]), 0.0, 0.0], of=of)
    return system


def _structure(place: str, deed: Deed) -> cs.System:
    def force(q: Any) -> Any:
        value = 40.0 * np.asarray(q) + np.asarray(q) ** 3
        return deed(value) if place == "internal force" else value

    def tangent(q: Any) -> Any:
        value = np.array([[40.0 + 3.0 * q[0] ** 2]])
        return deed(value) if place == "tangent" else value

    def load(t: float) -> Any:
        value = np.array([np.sin(t)])
        return deed(value) if place == "load" else value

    structure = cs.structures.Structure([1.0], D=[2.0], internal_force=force, tangent=tangent, load=load)
    outputs = [cs.structures.DofPort("x", 0), cs.structures.DofPort("v", 0, "velocity")]
    return _joined(
        cs.structures.SecondOrder(
            structure, "generalised-alpha", q0=[-1.0], inputs=[cs.structures.DofPort("f", 0, "force")], outputs=outputs
        )
    )


def _free_running(place: str, deed: Deed) -> cs.System:
    return _joined(cs.InterpolatedOutputs(Mass(place, deed, steps=True)))


def _self_driven(place: str, deed: Deed) -> cs.System:
    def tool(exchange: Any) -> None:
        t, x = 0.0, np.array([-1.0, 0.0])
        while True:
            u = exchange(t, deed(x.copy()) if place == "outputs" else x)
            h = 0.4 * H
            x = x + h * np.array([x[1], -40.0 * x[0] - 2.0 * x[1] + u[0]])
            t += deed(h) if place == "time" else h

    return _joined(cs.CallbackSubsystem(tool, inputs=["f"], outputs=["x", "v"], timeout=5.0))


#: what the FMUs of the tests can do on purpose, by number
FMU_FAILURES = {
    "nothing": 0,
    "discards": 1,
    "reports an error": 2,
    "reports a fatal error": 3,
    "crashes": 4,
    "never returns": 5,
    "warns": 6,
    "nan": 7,
    "asks for the end": 8,
    "needs short steps": 9,
    "stops inside": 10,
}


def _fmu(place: str, deed: Deed, fmi: int = 2, kind: str = "co-simulation", isolated: bool = False) -> cs.System:
    chosen = {"failure": FMU_FAILURES[deed.name], "fail_at": 0.21} if deed.name != "nothing" else {}
    apart = {"isolated": True, "timeout": 3.0} if isolated else {}
    file = fmu("mass_both", fmi=fmi)
    given = {"m": 1.0, "c": 40.0, "d": 2.0, **chosen}
    bad = cs.load_fmu(file, kind=kind, parameters=given, start={"x": -1.0}, outputs=["x", "v"], **apart)
    return _joined(bad, _jitted_spring)


BUILDERS: dict[str, Callable[[str, Deed], cs.System]] = {
    "python": _python,
    "callback": _callback,
    "isolated": _isolated,
    "ode": _ode,
    **{f"ode {name}": partial(_ode, integrator=name) for name in ("ode4", "rodas4", "Radau", "BDF", "LSODA", "cvode")},
    "dae": _dae,
    "jitted": _jitted,
    "jitted dopri5": partial(_jitted, integrator="dopri5"),
    "join": _law,
    "static": _static,
    "static residual": _residual,
    "dynamic-static": _dynamic_static,
    "multibody": _multibody,
    "structure": _structure,
    "free running": _free_running,
    "self-driven": _self_driven,
    **{f"fmu {fmi}.0": partial(_fmu, fmi=fmi) for fmi in (2, 3)},
    **{f"fmu {fmi}.0 model exchange": partial(_fmu, fmi=fmi, kind="model-exchange") for fmi in (2, 3)},
    **{f"fmu {fmi}.0 isolated": partial(_fmu, fmi=fmi, isolated=True) for fmi in (2, 3)},
}
PLACES = {
    "python": ("advance", "start", "save", "restore", "jacobian", "output", "step", "time", "get_state"),
    "callback": ("advance", "start", "save", "restore"),
    "isolated": ("advance", "start", "save", "restore", "jacobian"),
    **{name: ("rhs", "output") for name in BUILDERS if name.startswith(("ode", "dae"))},
    "jitted": ("rhs", "output"),
    "jitted dopri5": ("rhs", "output"),
    "join": ("law", "law jacobian", "residual", "driven input"),
    "static": ("function",),
    "static residual": ("residual", "output"),
    "dynamic-static": ("rhs", "function"),
    "multibody": ("load",),
    "structure": ("internal force", "tangent", "load"),
    "free running": ("step", "time", "save", "restore", "start"),
    "self-driven": ("outputs", "time"),
    **{name: ("failure",) for name in BUILDERS if name.startswith("fmu")},
}


def build(kind: str, place: str, deed: Deed) -> cs.System:
    """The system in which `deed` happens at this place."""
    return BUILDERS[kind](place, deed)
