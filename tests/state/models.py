"""Runs that are killed and resumed, by name, so that another process builds the same ones."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.run.stepper.models import chain, two_mass

import cosolve as cs


def linear_pair() -> cs.System:
    """Two masses in compiled code, with constant Jacobians."""
    from tests.process.isolated.compiled_models import linear

    return _joined(linear(0.3), linear(-0.1))


def jitted_pair() -> cs.System:
    """A pendulum with fixed inner steps and a linear mass, in compiled code."""
    from tests.process.isolated.compiled_models import jitted, linear

    return _joined(jitted(), linear())


def controlled_pair() -> cs.System:
    """Two pendulums with inner step control, in compiled code with steps of any length."""
    from tests.process.isolated.compiled_models import jitted

    return _joined(jitted(solver="dopri5"), jitted(solver="dopri5", x=0.2))


def _joined(one: cs.Subsystem, two: cs.Subsystem) -> cs.System:
    """Each pushes the other: connections only, because every new law is compiled anew."""
    system = cs.System({"one": one, "two": two})
    system.connect("one.x", "two.f")
    system.connect("two.x", "one.f")
    return system


def isolated_pair(inside: str = "pendulum") -> cs.System:
    """The same with a part in a process of its own."""
    from tests.process.isolated import models

    system = cs.System({"far": cs.remote.Isolated(partial(models.pendulum, "ode4", 0.01)), "near": models.pendulum()})
    system.law(
        {"far.torque": 1, "near.torque": -1}, lambda a, b: 3.0 * (b - a), of=["far.angle", "near.angle"], name="rod"
    )
    return system


def isolated_compiled() -> cs.System:
    """Compiled code here and in another process."""
    from tests.process.isolated.compiled_models import jitted, linear

    return _joined(cs.remote.Isolated(jitted), linear())


def fmus(fmi: int = 2, apart: bool = False) -> cs.System:
    """Two FMUs with a spring between them."""
    from tests.fmu.build import fmu

    soft = {"c": 1.0, "d": 0.1}
    one = cs.load_fmu(fmu("mass_force", fmi), parameters=soft, start={"x": 1.0}, isolated=apart)
    two = cs.load_fmu(fmu("mass_force", fmi), parameters=soft, start={"v": 0.5})
    system = cs.System({"one": one, "two": two})
    system.law({"one.f": 1, "two.f": -1}, lambda a, b: 5.0 * (b - a), of=["one.x", "two.x"], name="spring")
    return system


def connected_fmus() -> cs.System:
    """Two FMUs in compiled code."""
    from tests.fmu.oscillator import fmu_split

    return fmu_split("D/D", 2)


_control = cs.Adaptive(rtol=1e-3, first_step=0.01)
_imvj = cs.Implicit(degree=1, tol=1e-8, corrector=cs.IqnImvj())

#: name -> (system, what `simulate` takes besides, about as many macro steps as it has)
RUNS: dict[str, tuple[Any, dict[str, Any]]] = {
    "readable": (two_mass, {"method": cs.Jacobi(2), "step": 0.01, "compiled": False}),
    "implicit": (chain, {"method": _imvj, "step": 0.02, "compiled": False}),
    "adaptive": (two_mass, {"method": cs.SemiImplicit(1), "step": _control, "compiled": False}),
    "compiled": (linear_pair, {"method": cs.SemiImplicit(1), "step": 1e-3, "compiled": True}),
    "compiled jitted": (jitted_pair, {"method": cs.Jacobi(2), "step": 1e-3, "compiled": True}),
    "compiled implicit": (
        jitted_pair,
        {"method": cs.Implicit(1, corrector=cs.Newton("step")), "step": 1e-3, "compiled": True},
    ),
    "compiled adaptive": (controlled_pair, {"method": cs.Jacobi(1), "step": cs.Adaptive(rtol=1e-6), "compiled": True}),
    "isolated": (isolated_pair, {"method": cs.SemiImplicit(1), "step": 0.02, "compiled": False}),
    "isolated compiled": (
        isolated_compiled,
        {"method": cs.SemiImplicit(1, jacobian="difference"), "step": 1e-3, "compiled": True},
    ),
    "fmu": (fmus, {"method": cs.Implicit(2, corrector=cs.IqnIls(initial=0.5, reuse=2)), "step": 0.01}),
    "fmu isolated": (partial(fmus, 3, True), {"method": cs.SemiImplicit(1), "step": 0.01}),
    "fmu compiled": (connected_fmus, {"method": cs.Jacobi(2), "step": 1e-3, "compiled": True}),
}


def simulate(name: str, t_end: float, save: Path, **more: Any) -> cs.Result:
    """A run from its beginning."""
    build, options = RUNS[name]
    return cs.simulate(build(), t_end=t_end, save=save, **(options | more))


def resume(name: str, file: Path, **more: Any) -> cs.Result:
    """What was left behind, to its end."""
    return cs.resume(file, RUNS[name][0](), **more)
