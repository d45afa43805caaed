"""Numeric limits of public arguments, from both sides: just inside is accepted, just outside gets a sentence.

The checks of `basics/checks.py` are found in the sources, so that a new one without a row here fails.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import inf, nextafter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from tests.fields.fake_solvers import write_box, write_triangle
from tests.fmu.build import fmu
from tests.test_bad_input import decay, line, one_sentence, ring, run

import cosolve as cs
from cosolve.corrector.algebra.secants import SMALLEST_FILTER
from cosolve.integrator.bdf_control import BdfControl
from cosolve.mapping import Mesh, global_radial_basis, nearest_neighbour, partition_of_unity, radial_basis
from cosolve.method.semi_implicit import SemiImplicit
from cosolve.run.pace import Pace
from cosolve.structures import Bar, Beam, SecondOrder, Structure, StructureIntegrator

SOURCES = Path(cs.__file__).parent
CHECKS = ("positive", "not_negative", "nonzero", "whole")
SMALL = 1e-300


@dataclass(frozen=True)
class Limit:
    """Values just inside and just outside, and the call that takes one."""

    inside: tuple[Any, ...]
    outside: tuple[Any, ...]
    call: Callable[[Any], object]


def positive(call: Callable[[Any], object], inside: float = SMALL) -> Limit:
    return Limit((inside,), (0.0, -SMALL, inf), call)


def from_zero(call: Callable[[Any], object]) -> Limit:
    return Limit((0.0,), (-SMALL, inf), call)


def whole(call: Callable[[Any], object], least: int = 1) -> Limit:
    return Limit((least, np.int64(least)), (least - 1, least + 0.5, True), call)


def nonzero(call: Callable[[Any], object]) -> Limit:
    return Limit((SMALL, -SMALL), (0.0, inf), call)


def closed(low: float, high: float, call: Callable[[Any], object]) -> Limit:
    return Limit((low, high), (nextafter(low, -inf), nextafter(high, inf)), call)


def between(low: float, high: float, call: Callable[[Any], object]) -> Limit:
    return Limit((nextafter(low, inf), nextafter(high, -inf)), (low, high), call)


def up_to(low: float, high: float, call: Callable[[Any], object]) -> Limit:
    return Limit((nextafter(low, inf), high), (low, nextafter(high, inf)), call)


def option(kind: Callable[..., object], name: str, /, *given: object, **others: object) -> Callable[[Any], object]:
    return lambda value: kind(*given, **{name: value}, **others)


def bar(**options: Any) -> Bar:
    return Bar(**{"elements": 1, "length": 1.0, "E": 1.0, "rho": 1.0, **options})


def spring(**options: Any) -> SecondOrder:
    return SecondOrder(
        Structure([1.0], K=[[1.0]]),
        "trapezoidal",
        **{"inputs": [], "outputs": [cs.structures.DofPort("x", 0)]} | options,
    )


def ode(**options: Any) -> cs.Ode:
    return decay(**options)


def hybrid(**options: Any) -> cs.HybridOde:
    given = {"x0": [1.0], "inputs": ["u"], "outputs": ["y"], "indicators": lambda t, x, u: x}
    return cs.HybridOde(lambda t, x, u: -x, lambda t, x, u: x, **given | options)


def residual(**options: Any) -> cs.StaticResidual:
    return cs.StaticResidual(lambda t, x, u: x - u, lambda t, x, u: x, x0=[0.0], inputs=["u"], outputs=["y"], **options)


def jax_ode(**options: Any) -> cs.JaxOde:
    pytest.importorskip("jax")
    return cs.JaxOde(lambda t, x, u: -x, lambda t, x, u: x, x0=[1.0], inputs=["u"], outputs=["y"], **options)


def pendulum(**options: Any) -> cs.multibody.MultibodySubsystem:
    model = cs.multibody.MultibodyModel()
    model.body("rod", mass=1.0, inertia=[1.0, 1.0, 1.0])
    return cs.multibody.MultibodySubsystem(model, **options)


def joint(**options: Any) -> cs.multibody.Joint:
    return cs.multibody.Joint("spherical", "a.tip", "b.tip", **options)


def two_masses() -> cs.System:
    return ring(line(), line())


@cache
def finished() -> cs.Result:
    return run(two_masses(), step=0.1, t_end=0.5)


def shifted(mapping: Callable[..., object], **options: Any) -> object:
    x = np.linspace(0.0, 1.0, 12)
    return mapping(Mesh.line(x), Mesh.line(0.01 + 0.98 * x), **options)


def adaptive(**options: float) -> cs.Adaptive:
    return cs.Adaptive(**options)


def co_simulation(**options: Any) -> object:
    return cs.load_fmu(fmu("mass_force", 2), kind="co-simulation", **options)


def calculix(**options: Any) -> cs.fields.CalculiX:
    with TemporaryDirectory() as folder:
        return cs.fields.CalculiX(write_triangle(Path(folder) / "one.inp"), "EDGE", program=sys.executable, **options)


def open_foam(**options: Any) -> cs.fields.OpenFoam:
    with TemporaryDirectory() as folder:
        case = write_box(Path(folder) / "case")
        return cs.fields.OpenFoam(case, "wall", application=sys.executable, **{"density": 1.0, **options})


LEAST_SQUARES = [cs.IqnIls, cs.IqnImvj, cs.Anderson]
MAPPINGS = [nearest_neighbour, radial_basis, partition_of_unity]
BDF_LIKE = [BdfControl, cs.DynamicStatic]

LIMITS: dict[str, Limit] = {
    # run
    "simulate: step": positive(lambda v: run(step=v, t_end=1e-200), 1e-200),
    "simulate: every": whole(lambda v: run(every=v)),
    "simulate: workers": whole(lambda v: run(workers=v)),
    "simulate: max_steps": whole(lambda v: run(max_steps=v, t_end=0.1)),
    "Stepper: workers": whole(lambda v: cs.Stepper(two_masses(), method=cs.Jacobi(), step=0.1, workers=v).close()),
    "pace": positive(Pace),
    "Nested: workers": whole(lambda v: cs.Nested(two_masses(), method=cs.Jacobi(), outputs={"y": "a.y"}, workers=v)),
    "Nested: substeps": whole(lambda v: cs.Nested(two_masses(), method=cs.Jacobi(), outputs={"y": "a.y"}, substeps=v)),
    "choose: workers": whole(lambda v: cs.choose(two_masses(), t_end=0.1, method=cs.Jacobi(0), workers=v)),
    "GradedStart: ratio": Limit((2, 4), (1, 0, 3), lambda v: cs.GradedStart(ratio=v)),
    "KnownRates: spacing": positive(lambda v: run(startup=cs.KnownRates({"a.y": -1.0, "b.y": -1.0}, spacing=v)), 1e-9),
    "error_bar: safety": positive(lambda v: cs.error_bar(two_masses(), finished(), safety=v)),
    "sweep: every": whole(
        lambda v: cs.sweep(
            lambda k: two_masses(),
            {"k": [1.0]},
            methods=cs.Jacobi(),
            steps=0.1,
            t_end=0.1,
            reduce="trajectory",
            every=v,
            executor="serial",
        )
    ),
    "sweep: workers": whole(
        lambda v: cs.sweep(
            lambda k: two_masses(),
            {"k": [1.0]},
            methods=cs.Jacobi(),
            steps=0.1,
            t_end=0.1,
            workers=v,
            executor="serial",
        )
    ),
    # step sizes
    "Adaptive: rtol": positive(option(adaptive, "rtol")),
    "Adaptive: atol": from_zero(option(adaptive, "atol")),
    "Adaptive: first_step": positive(option(adaptive, "first_step")),
    "Adaptive: max_step": Limit((SMALL, inf), (0.0, -inf), option(adaptive, "max_step")),
    "Adaptive: min_step": Limit((0.0, 1.0), (-SMALL, nextafter(1.0, 2.0)), option(adaptive, "min_step", max_step=1.0)),
    "Adaptive: q": up_to(0.0, 1.0, option(adaptive, "q")),
    "Adaptive: q_min": between(0.0, 1.0, option(adaptive, "q_min")),
    "Adaptive: q_max": Limit((nextafter(1.0, 2.0),), (1.0, inf), option(adaptive, "q_max")),
    # methods
    **{
        f"{kind.__name__}: degree": Limit((0, 1), (-1, 0.5, True), option(kind, "degree"))
        for kind in (cs.Jacobi, cs.GaussSeidel, cs.SemiImplicit, cs.Implicit)
    },
    "SemiImplicit: increment": positive(option(SemiImplicit, "increment")),
    "Implicit: increment": positive(option(cs.Implicit, "increment")),
    "Implicit: tol": positive(option(cs.Implicit, "tol")),
    "Implicit: atol": from_zero(option(cs.Implicit, "atol")),
    "Implicit: max_iterations": whole(option(cs.Implicit, "max_iterations")),
    "DynamicStatic: increment": between(0.0, 1.0, option(cs.DynamicStatic, "increment")),
    "Baumgarte: beta": from_zero(option(cs.Baumgarte, "beta")),
    "Baumgarte: gamma": from_zero(option(cs.Baumgarte, "gamma")),
    "WeightedMultipliers: a": from_zero(option(cs.WeightedMultipliers, "a")),
    "WeightedMultipliers: b": from_zero(option(cs.WeightedMultipliers, "b")),
    "StabilisedIndex2: relaxation": up_to(0.0, 1.0, option(cs.StabilisedIndex2, "relaxation")),
    # correctors
    "Relaxation: alpha": nonzero(option(cs.Relaxation, "alpha")),
    "Aitken: initial": nonzero(option(cs.Aitken, "initial")),
    "Anderson: depth": whole(option(cs.Anderson, "depth")),
    "Anderson: mixing": nonzero(option(cs.Anderson, "mixing")),
    "Anderson: reuse": whole(option(cs.Anderson, "reuse"), 0),
    "IqnIls: reuse": whole(option(cs.IqnIls, "reuse"), 0),
    "IqnIls: columns": whole(option(cs.IqnIls, "columns")),
    "IqnImvj: columns": whole(option(cs.IqnImvj, "columns")),
    "IqnImvj: rank": whole(option(cs.IqnImvj, "rank")),
    **{f"{kind.__name__}: initial": nonzero(option(kind, "initial")) for kind in LEAST_SQUARES},
    **{
        f"{kind.__name__}: filter_tol": Limit(
            (SMALLEST_FILTER, nextafter(1.0, 0.0)), (nextafter(SMALLEST_FILTER, 0.0), 1.0), option(kind, "filter_tol")
        )
        for kind in LEAST_SQUARES
    },
    "Broyden: initial": nonzero(option(cs.Broyden, "initial")),
    "Broyden: rank": whole(option(cs.Broyden, "rank")),
    "Secant: initial": nonzero(option(cs.Secant, "initial")),
    "NewtonKrylov: rtol": between(0.0, 1.0, option(cs.NewtonKrylov, "rtol")),
    "NewtonKrylov: vectors": whole(option(cs.NewtonKrylov, "vectors")),
    "NewtonKrylov: increment": positive(option(cs.NewtonKrylov, "increment")),
    "LineSearch: halvings": whole(option(cs.LineSearch, "halvings", cs.Newton())),
    # integrators
    **{
        f"{kind.__name__}: {name}": positive(option(kind, name))
        for kind in BDF_LIKE
        for name in ("rtol", "atol", "newton", "safety", "step", "first_step")
    },
    **{f"{kind.__name__}: order": Limit((1, 5), (0, 6, 1.5, True), option(kind, "order")) for kind in BDF_LIKE},
    **{
        f"{kind.__name__}: min_step": Limit(
            (0.0, 1.0), (-SMALL, nextafter(1.0, 2.0)), option(kind, "min_step", max_step=1.0)
        )
        for kind in BDF_LIKE
    },
    # subsystems
    "port 'f': nominal": positive(option(cs.Port, "nominal", "f")),
    "port 'f': size": whole(option(cs.Port, "size", "f")),
    "Ode: rtol": positive(option(ode, "rtol")),
    "Ode: atol": positive(option(ode, "atol")),
    "Ode: internal_step": positive(option(ode, "internal_step", integrator="ode4")),
    "HybridOde: rtol": positive(option(hybrid, "rtol")),
    "HybridOde: atol": positive(option(hybrid, "atol")),
    "HybridOde: internal_step": positive(option(hybrid, "internal_step", integrator="ode4")),
    "HybridOde: max_events": whole(option(hybrid, "max_events")),
    "JaxOde: rtol": positive(option(jax_ode, "rtol")),
    "JaxOde: atol": positive(option(jax_ode, "atol")),
    "JaxOde: internal_step": positive(option(jax_ode, "internal_step", integrator="ode4")),
    "StaticResidual: tol": between(0.0, 1.0, option(residual, "tol")),
    "StaticResidual: max_iterations": whole(option(residual, "max_iterations")),
    "Sampled: period": positive(option(cs.Sampled, "period", decay())),
    "relaxed_prediction: beta": up_to(0.0, 1.0, cs.relaxed_prediction),
    "TunableInput: value": closed(-2.0, 3.0, option(cs.TunableInput, "value", low=-2.0, high=3.0)),
    "a number": closed(-2.0, 3.0, lambda v: cs.TunableInput(0.0, low=-2.0, high=3.0).set(1.0, v)),
    "FMU: max_events": whole(lambda v: cs.load_fmu(fmu("mass_me", 2), kind="model-exchange", max_events=v)),
    "FMU: substeps": whole(option(co_simulation, "substeps")),
    "FMU: noise": from_zero(option(co_simulation, "noise")),
    "FMU: tolerance": positive(option(co_simulation, "tolerance")),
    # other processes
    "Isolated: timeout": positive(option(cs.remote.Isolated, "timeout", decay)),
    "StaticProgram: timeout": positive(
        option(cs.remote.StaticProgram, "timeout", ["true"], inputs=["u"], outputs=["y"])
    ),
    "Remote: timeout": Limit((), (0.0, -SMALL, inf), option(cs.remote.Remote, "timeout", "localhost:5555", key="k")),
    "subsystem_costs: steps": whole(lambda v: cs.remote.subsystem_costs(two_masses(), step=0.1, steps=v)),
    "on_ranks: timeout": positive(option(cs.remote.on_ranks, "timeout", {"a": decay})),
    # structures and multibody systems
    "SecondOrder: substeps": whole(option(spring, "substeps")),
    "SecondOrder: max_iterations": whole(option(spring, "max_iterations")),
    "SecondOrder: tol": positive(option(spring, "tol")),
    "Bar: elements": whole(option(bar, "elements")),
    **{f"Bar: {name}": positive(option(bar, name)) for name in ("length", "E", "area")},
    "Bar: rho": from_zero(option(bar, "rho")),
    "Beam.modes: count": Limit((1, 4), (0, 5), Beam(np.linspace(0.0, 1.0, 3), mass=1.0, stiffness=1.0).modes),
    "generalised_alpha: rho_inf": closed(0.0, 1.0, lambda v: StructureIntegrator.generalised_alpha(rho_inf=v)),
    "hht: alpha": closed(0.0, 1 / 3, lambda v: StructureIntegrator.hht(v)),
    "MultibodySubsystem: rtol": positive(option(pendulum, "rtol")),
    "MultibodySubsystem: atol": positive(option(pendulum, "atol")),
    "MultibodySubsystem: internal_step": positive(option(pendulum, "internal_step", integrator="rk4")),
    "MultibodySubsystem: alpha": from_zero(option(pendulum, "alpha", form="baumgarte")),
    "MultibodySubsystem: beta": from_zero(option(pendulum, "beta", form="baumgarte")),
    "MultibodySubsystem: stages": Limit((2, 3), (1, 4), option(pendulum, "stages", form="ggl", internal_step=0.1)),
    "joint: stiffness": from_zero(option(joint, "stiffness")),
    "joint: damping": from_zero(option(joint, "damping", stiffness=1.0)),
    # mappings
    "mapping: workers": whole(lambda v: shifted(radial_basis, workers=v)),
    **{f"{kind.__name__}: max_distance": positive(option(shifted, "max_distance", kind), 1.0) for kind in MAPPINGS},
    "partition_of_unity: overlap": up_to(0.0, 2.0, lambda v: shifted(partition_of_unity, overlap=v)),
    "partition_of_unity: per_cluster": whole(lambda v: shifted(partition_of_unity, per_cluster=v), 5),
    "radial_basis: neighbours": whole(lambda v: shifted(radial_basis, neighbours=v), 2),
    "global_radial_basis: support": positive(lambda v: shifted(global_radial_basis, support=v), 0.5),
    # analysis
    "spectral_radius: step": positive(lambda v: cs.analysis.spectral_radius(two_masses(), cs.Jacobi(), v), 1e-9),
    "order_estimate: step": positive(
        lambda v: cs.analysis.order_estimate(two_masses(), cs.Jacobi(), step=v, t_end=8 * v, names=["a.y"]), 1e-3
    ),
    "order_estimate: ratio": whole(
        lambda v: cs.analysis.order_estimate(two_masses(), cs.Jacobi(), step=0.1, t_end=0.8, names=["a.y"], ratio=v),
        2,
    ),
    "check: seconds": positive(lambda v: cs.check(two_masses(), step=0.1, seconds=v)),
    "check_jacobians: rtol": positive(lambda v: cs.analysis.check_jacobians(two_masses(), 0.1, rtol=v)),
    "check_jacobians: after": whole(lambda v: cs.analysis.check_jacobians(two_masses(), 0.1, after=v), 0),
    "CalculiX: timeout": positive(option(calculix, "timeout")),
    "OpenFoam: timeout": positive(option(open_foam, "timeout")),
    "OpenFoam: density": positive(option(open_foam, "density")),
    "FieldFile: every": whole(option(cs.fields.FieldFile, "every", "fields.vtkhdf", of="a")),
}


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.filterwarnings("ignore")  # what is accepted may be unwise
def test_just_inside_is_accepted_and_just_outside_refused(name: str) -> None:
    limit = LIMITS[name]
    for value in limit.inside:
        limit.call(value)
    for value in limit.outside:
        with pytest.raises(cs.errors.SetupError) as caught:
            limit.call(value)
        text = one_sentence(caught.value)
        assert name.split(": ")[-1] in text or repr(value) in text


def test_every_checked_argument_has_its_limits_here() -> None:
    """Calls such as `positive("Ode", "rtol", rtol)` anywhere in the package, where both names stand in the source."""
    call = re.compile(rf'(?<!>>> )\b(?:{"|".join(CHECKS)})\(\s*"([^"]+)",\s*"([^"]+)"')
    texts = (source.read_text(encoding="utf-8") for source in SOURCES.rglob("*.py"))
    found = {": ".join(names) for text in texts for names in call.findall(text)}
    assert found - set(LIMITS) == set()
    assert len(found) > 40
