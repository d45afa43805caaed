"""Calls of the public functions with one or two odd arguments each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import cosolve as cs

ODD: tuple[Callable[[], Any], ...] = (
    *(lambda v=v: v for v in (None, True, -1, 0, 1, 2, 1.5, -0.0, 1e-320, 1e308, 10**30, 2**63, float("nan"))),
    *(lambda v=v: v for v in (float("inf"), -float("inf"), 1j, "", "x", "x.y", "1.0", "\0", "a" * 5000, "é中", b"x")),
    *(list, dict, tuple, set, object, lambda: [None], lambda: [[1.0], [1.0, 2.0]], lambda: [[1.0]], lambda: {"x": 1}),
    *(lambda: np.zeros(0), lambda: np.full((1, 1), np.nan), lambda: np.array("a"), lambda: np.zeros((2, 2, 2))),
    *(lambda: np.float32(2.0), lambda: np.int8(3), lambda: range(3), lambda: iter([1.0]), lambda: lambda: None),
    *(lambda: lambda *a: None, lambda: lambda *a: "x", lambda: Path("/nonexistent/x"), lambda: cs, lambda: int),
    *(lambda: np.ma.masked_array([1.0], mask=True), lambda: np.array([1 + 1j]), lambda: ["x", "x"], lambda: [1, "x"]),
)


def _ode(t: float, x: Any, u: Any) -> Any:
    return u - x


def _state(t: float, x: Any, u: Any) -> Any:
    return x


def _tank() -> cs.Ode:
    return cs.Ode(_ode, _state, x0=[1.0], inputs=["u"], outputs=["y"])


def _pair() -> cs.System:
    system = cs.System({"a": _tank(), "b": _tank()})
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    return system


def _model() -> cs.multibody.MultibodyModel:
    model = cs.multibody.MultibodyModel()
    model.body("one", 1.0, [0.1, 0.1, 0.1])
    model.body("two", 1.0, [0.1, 0.1, 0.1], position=[1.0, 0.0, 0.0])
    model.marker("end", "one", [0.5, 0.0, 0.0])
    return model


def _free() -> cs.System:
    return cs.System({"a": _tank(), "b": _tank()})


def _line() -> cs.mapping.Mesh:
    return cs.mapping.Mesh.line([0.0, 0.5, 1.0])


PORTS = {"inputs": ["u"], "outputs": ["y"]}
#: a good call each: what is called (made anew every time), and its arguments
CALLS: tuple[tuple[str, Callable[[], Callable[..., Any]], dict[str, Any]], ...] = (
    ("Linear", lambda: cs.Linear, {"A": [[-1.0]], "B": [[1.0]], "C": [[1.0]], "D": [[0.0]], "x0": [1.0], **PORTS}),
    ("Ode", lambda: cs.Ode, {"rhs": _ode, "output": _state, "x0": [1.0], **PORTS, "integrator": "auto", "rtol": 1e-6}),
    (
        "Ode",
        lambda: cs.Ode,
        {"rhs": _ode, "output": _state, "x0": [1.0], **PORTS, "integrator": "ode4", "internal_step": 0.1},
    ),
    (
        "Dae",
        lambda: cs.Dae,
        {"rhs": _ode, "output": _state, "E": [[1.0]], "x0": [1.0], **PORTS, "rtol": 1e-6, "atol": 1e-8},
    ),
    ("Static", lambda: cs.Static, {"function": lambda t, u: u, **PORTS}),
    (
        "StaticResidual",
        lambda: cs.StaticResidual,
        {"residual": lambda t, x, u: x - u, "output": _state, "x0": [0.0], **PORTS, "tol": 1e-8, "max_iterations": 9},
    ),
    ("Port", lambda: cs.Port, {"name": "x", "size": 2, "unit": "m", "nominal": 2.0}),
    ("Adaptive", lambda: cs.Adaptive, {"rtol": 1e-4, "atol": 1e-6, "min_step": 1e-6, "max_step": 1.0}),
    ("Jacobi", lambda: cs.Jacobi, {"degree": 1}),
    ("GaussSeidel", lambda: cs.GaussSeidel, {"degree": 1}),
    ("SemiImplicit", lambda: cs.SemiImplicit, {"degree": 1}),
    ("Implicit", lambda: cs.Implicit, {"degree": 1, "tol": 1e-8, "corrector": cs.Newton()}),
    ("LeaderFollower", lambda: cs.LeaderFollower, {"leader": "a"}),
    ("DynamicStatic", lambda: cs.DynamicStatic, {"variant": "A", "rtol": 1e-5, "order": 2}),
    ("Relaxation", lambda: cs.Relaxation, {"alpha": 0.5}),
    ("Aitken", lambda: cs.Aitken, {"initial": 0.1, "vector": True, "carry": False}),
    ("Anderson", lambda: cs.Anderson, {"depth": 3, "mixing": 1.0, "initial": 0.1, "reuse": 0, "filter_tol": 1e-9}),
    ("IqnIls", lambda: cs.IqnIls, {"reuse": 3, "initial": 0.1, "filter_tol": 1e-9, "columns": 9}),
    ("IqnImvj", lambda: cs.IqnImvj, {"initial": 0.1, "filter_tol": 1e-9, "columns": 9, "rank": 9}),
    ("Broyden", lambda: cs.Broyden, {"initial": 1.0, "carry": True, "form": "inverse", "rank": 9}),
    ("Newton", lambda: cs.Newton, {"refresh": "iteration"}),
    ("LineSearch", lambda: cs.LineSearch, {"corrector": cs.Newton(), "halvings": 3}),
    ("System", lambda: cs.System, {"subsystems": {"a": _tank()}}),
    ("connect", lambda: _free().connect, {"source": "a.y"}),
    ("law", lambda: _free().law, {"inputs": "a.u", "function": lambda y: y, "of": ["b.y"]}),
    (
        "equations",
        lambda: _free().equations,
        {"unknowns": {"z": "a.u"}, "residual": lambda z, y: z - y, "of": ["b.y"], "initial": {"z": 0.0}},
    ),
    (
        "constraint",
        lambda: _free().constraint,
        {"multipliers": {"z": "a.u"}, "levels": lambda y: (y, y), "of": ["b.y"]},
    ),
    ("set", lambda: _free().set, {"target": "a.u", "value": 1.0}),
    ("at", lambda: _pair().at, {"t": 0.5, "values": {"a.u": 1.0}}),
    ("Table", lambda: cs.Table, {"times": [0.0, 1.0], "values": [1.0, 2.0], "kind": "linear"}),
    (
        "simulate",
        lambda: cs.simulate,
        {
            "system": _pair(),
            "t_end": 0.2,
            "method": "jacobi:1",
            "step": 0.1,
            "t_start": 0.0,
            "startup": None,
            "workers": 1,
            "every": 1,
            "record": ["a.y"],
            "max_steps": 9,
        },
    ),
    (
        "simulate",
        lambda: cs.simulate,
        {
            "system": _pair(),
            "t_end": 0.2,
            "method": {"name": "implicit", "tol": 1e-6},
            "step": 0.1,
            "max_steps": 50,
            "stop_at_events": False,
            "progress": None,
            "compiled": False,
            "resume": None,
        },
    ),
    ("Stepper", lambda: cs.Stepper, {"system": _pair(), "method": "jacobi:1", "step": 0.1, "t_end": 0.2}),
    ("check", lambda: cs.check, {"system": _pair(), "method": cs.SemiImplicit(1), "step": 0.1}),
    (
        "spectral_radius",
        lambda: cs.analysis.spectral_radius,
        {"system": _pair(), "method": cs.SemiImplicit(1), "step": 0.1, "t": 0.0},
    ),
    (
        "Structure",
        lambda: cs.structures.Structure,
        {"M": [1.0, 2.0], "K": [[3.0, -1.0], [-1.0, 1.0]], "D": [0.1, 0.1], "load": [0.0, 1.0], "labels": ["a", "b"]},
    ),
    (
        "At",
        lambda: cs.structures.DofPort,
        {"name": "f", "dofs": 0, "what": "force", "factor": 1.0, "unit": "N", "nominal": 1.0},
    ),
    (
        "SecondOrder",
        lambda: cs.structures.SecondOrder,
        {
            "structure": cs.structures.Structure([1.0], K=[[1.0]]),
            "integrator": "trapezoidal",
            "q0": [1.0],
            "v0": [0.0],
            "inputs": [cs.structures.DofPort("f", 0, "force")],
            "outputs": [cs.structures.DofPort("x", 0)],
        },
    ),
    (
        "body",
        lambda: _model().body,
        {"name": "three", "mass": 1.0, "inertia": [0.1, 0.1, 0.1], "position": [0.0, 0.0, 1.0]},
    ),
    ("marker", lambda: _model().marker, {"name": "tip", "body": "one", "point": [0.0, 0.0, 1.0]}),
    ("joint", lambda: _model().joint, {"name": "pin", "kind": "revolute", "first": "end", "second": "two"}),
    (
        "spring_damper",
        lambda: _model().spring_damper,
        {"name": "s", "first": "end", "second": "two", "stiffness": 1.0, "damping": 1.0, "length": 1.0},
    ),
    (
        "bushing",
        lambda: _model().bushing,
        {"name": "s", "first": "end", "second": "two", "stiffness": [1.0, 1.0, 1.0], "damping": 1.0},
    ),
    ("load", lambda: _model().load, {"target": "end", "force": [0.0, 0.0, 1.0], "torque": None, "frame": "body"}),
    (
        "MultibodySubsystem",
        lambda: cs.multibody.MultibodySubsystem,
        {"model": _model(), "ports": [("end", ["force"])], "form": "projection", "integrator": "dopri5"},
    ),
    ("Mesh.line", lambda: cs.mapping.Mesh.line, {"points": [0.0, 1.0], "closed": False}),
    ("barycentric", lambda: cs.mapping.barycentric, {"source": _line(), "target": _line()}),
    ("nearest_neighbour", lambda: cs.mapping.nearest_neighbour, {"source": _line(), "target": _line()}),
    ("radial_basis", lambda: cs.mapping.radial_basis, {"source": _line(), "target": _line()}),
    ("Pace", lambda: cs.Pace, {"rate": 1.0}),
    ("load_result", lambda: cs.load_result, {"path": "nowhere.h5"}),
    ("load_system", lambda: cs.load_system, {"path": "nowhere.toml"}),
    ("load_fmu", lambda: cs.load_fmu, {"file": "nowhere.fmu", "kind": None, "timeout": 1.0}),
    ("inspect_fmu", lambda: cs.fmi.inspect_fmu, {"file": "nowhere.fmu"}),
    ("read_ssp", lambda: cs.fmi.read_ssp, {"path": "nowhere.ssp"}),
    ("Isolated", lambda: cs.remote.Isolated, {"subsystem": "nonsense", "transport": "pipe", "timeout": 1.0}),
    ("Remote", lambda: cs.remote.Remote, {"address": "nowhere", "timeout": 0.1}),
    ("StaticProgram", lambda: cs.remote.StaticProgram, {"command": ["true"], **PORTS, "timeout": 1.0, "keep": True}),
    (
        "order_estimate",
        lambda: cs.analysis.order_estimate,
        {"system": _pair(), "method": "jacobi:1", "step": 0.1, "t_end": 0.4, "names": ["a.y"], "ratio": 2},
    ),
    ("slope", lambda: cs.analysis.convergence_order, {"steps": [0.1, 0.05], "errors": [0.1, 0.05]}),
    ("nrmse", lambda: cs.analysis.nrmse, {"values": [1.0, 2.0], "reference": [1.0, 2.1]}),
    ("Pid", lambda: cs.Pid, {"K_P": 1.0, "K_I": 1.0, "K_D": 0.1, **PORTS, "setpoint": 1.0}),
    ("GradedStart", lambda: cs.GradedStart, {"ratio": 64}),
    ("export_fmu", lambda: cs.fmi.export_fmu, {"source": _pair(), "path": "/nonexistent/x.fmu", "version": "2.0"}),
)


def odd_call(home: Path) -> Callable[[int, Path], None]:
    """A target of the fuzz campaign."""

    def call(n: int, home: Path) -> None:
        random = Random(f"call {n}")
        _, function, arguments = CALLS[n % len(CALLS)]
        given = dict(arguments)
        for key in random.sample(sorted(given), min(len(given), random.choice((1, 1, 2)))):
            given[key] = random.choice(ODD)()
        function()(**given)

    return call
