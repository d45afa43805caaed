"""Whether a run is compiled follows from what its steps would take in Python, not from their number."""

from types import SimpleNamespace

import numba
import numpy as np
import pytest

import cosolve as cs
from cosolve.engine.native import effort
from cosolve.method.named import as_method


def core(part, method):
    system = cs.System({"one": part(), "two": part()})
    system.connect("one.x", "two.u")
    system.connect("two.x", "one.u")
    return SimpleNamespace(plan=system.plan(), method=as_method(method))


def linear():
    return cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])


def plain(decorate=lambda f: f):
    return cs.Ode(decorate(lambda t, x, u: u - x), decorate(lambda t, x, u: x), x0=[1.0], inputs=["u"], outputs=["x"])


def test_dear_steps_are_compiled_sooner(monkeypatch) -> None:
    """Functions before matrices, corrections before none; jitted functions of a first run wait for the compiler."""
    monkeypatch.setattr(effort, "sys", SimpleNamespace(modules={}))
    seconds = [
        effort.in_python(core(*case))
        for case in ((linear, cs.Jacobi(1)), (plain, cs.Jacobi(1)), (plain, cs.SemiImplicit(1)))
    ]
    assert seconds == sorted(seconds)
    assert seconds[2] > 2.5 * seconds[1] > 10 * seconds[0]
    for case, value in zip(((linear, cs.Jacobi(1)), (plain, cs.Jacobi(1))), seconds, strict=False):
        assert not effort.repays(core(*case), 0.9 / value)
        assert effort.repays(core(*case), 1.1 / value)
    jitted = core(lambda: plain(numba.njit), cs.Jacobi(1))
    assert not effort.repays(jitted, 6.9 / effort.in_python(jitted))
    monkeypatch.setattr(effort, "sys", SimpleNamespace(modules={"cosolve.engine.native.parts": None}))
    assert effort.repays(core(plain, cs.Jacobi(1)), 0.25 / seconds[1])


@pytest.mark.parametrize(("steps", "compiled"), [(100, False), (10_000, True)])
def test_lambdas_are_compiled_by_themselves(steps, compiled) -> None:
    system = cs.System({"one": plain(), "two": plain()})
    system.law("one.u", lambda x: -np.tanh(x), of="two.x")
    system.connect("one.x", "two.u")
    result = cs.simulate(system, t_end=steps * 1e-3, method=cs.Jacobi(1), step=1e-3)
    assert (result.stats.compiled_steps > 0) is compiled
