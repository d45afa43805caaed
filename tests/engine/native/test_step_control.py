"""Error-controlled steps in compiled code: the same steps, rejections and bits as in the Python engine."""

from dataclasses import replace

import numba
import numpy as np
import pytest
from tests.engine.native.test_same_bits import pendulums, same
from tests.fmu.oscillator import fmu_split

import cosolve as cs
from cosolve.engine.native import chunks

METHODS = [
    cs.Jacobi(0),
    cs.Jacobi(2),
    cs.GaussSeidel(1),
    cs.SemiImplicit(0),
    cs.SemiImplicit(2),
    cs.SemiImplicit(2, predictor=1),
    cs.SemiImplicit(1, signal="bdf"),
    cs.SemiImplicit(2, signal="bdf", predictor=1),
    cs.Implicit(2, signal="bdf"),
    cs.SemiImplicit(1, signal="collocation"),
    cs.Implicit(1, signal="radau"),
    cs.Implicit(1),
    cs.Implicit(2, corrector=cs.Newton("iteration")),
]
CONTROLS = {
    "PI": cs.Adaptive(rtol=3e-2, first_step=5e-3, min_step=2e-4),
    "I, short steps": cs.Adaptive(rtol=1e-3, atol=1e-2, first_step=1e-3, max_step=4e-3, min_step=5e-4, controller="I"),
    "never repeated": cs.Adaptive(rtol=1e-2, first_step=1e-2, min_step=5e-4, reject=False),
    "at least": cs.Adaptive(rtol=1e-7, first_step=4e-3, min_step=2e-3),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m.label} {getattr(m, 'predictor', '')}")
def test_same_steps_and_bits(method, control) -> None:
    run = {"method": method, "step": CONTROLS[control], "t_end": 0.3}
    readable = cs.simulate(pendulums("ode4", 1e-3), **run, compiled=False)
    compiled = cs.simulate(pendulums("ode4", 1e-3), **run, compiled=True)
    assert compiled.stats.compiled_steps >= 0.5 * readable.stats.steps
    same(compiled, readable)
    np.testing.assert_array_equal(compiled.column("error"), readable.column("error"))
    for name in ("rejected", "over_tolerance"):
        assert getattr(compiled.stats, name) == getattr(readable.stats, name)


SOLVERS = ["ode4", pytest.param("auto", marks=pytest.mark.slow)]  # compiles for long


@pytest.mark.parametrize("solver", SOLVERS)
def test_some_of_these_runs_reject_steps(solver) -> None:
    """Otherwise the comparison above would not see a rejection."""
    run = {"method": cs.SemiImplicit(2), "step": cs.Adaptive(rtol=1e-4, first_step=2e-2), "t_end": 0.5}
    h = 1e-3 if solver == "ode4" else None
    readable = cs.simulate(pendulums(solver, h), **run, compiled=False)
    compiled = cs.simulate(pendulums(solver, h), **run, compiled=True, every=3)
    assert readable.stats.rejected > 0
    assert compiled.stats.rejected == readable.stats.rejected
    assert compiled.column("rejected").sum() == readable.column("rejected").sum()
    np.testing.assert_array_equal(compiled["one.x"][:-1], readable["one.x"][::3][: len(compiled.t) - 1])


@pytest.mark.parametrize("solver", SOLVERS)
def test_chunks_follow_one_another(solver, monkeypatch) -> None:
    monkeypatch.setattr(chunks, "_ROWS", 7)
    run = {"method": cs.Jacobi(2), "step": cs.Adaptive(rtol=1e-5, first_step=1e-3), "t_end": 0.5}
    h = 1e-3 if solver == "ode4" else None
    readable = cs.simulate(pendulums(solver, h), **run, compiled=False)
    same(cs.simulate(pendulums(solver, h), **run, compiled=True), readable)


@pytest.mark.parametrize("step", [cs.Adaptive(rtol=1e-5, first_step=1e-3), 1e-3], ids=["controlled", "equal"])
def test_a_limit_of_steps_is_met_exactly(step) -> None:
    found = []
    for compiled in (False, True):
        with pytest.raises(cs.errors.StepSizeError, match="max_steps = 23 ") as stopped:
            cs.simulate(
                pendulums("ode4", 1e-3), method=cs.Jacobi(2), step=step, t_end=5.0, max_steps=23, compiled=compiled
            )
        found.append(stopped.value.result)
    readable, compiled = found
    assert compiled.stats.steps == 23
    assert compiled.stats.compiled_steps > 0
    same(compiled, readable)


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.SemiImplicit(2, jacobian="difference")], ids=lambda m: m.label)
def test_fmus_with_controlled_steps(method) -> None:
    run = {"method": method, "step": cs.Adaptive(rtol=1e-4, first_step=1e-3), "t_end": 0.2}
    readable = cs.simulate(fmu_split("D/D", 2), **run, compiled=False)
    compiled = cs.simulate(fmu_split("D/D", 2), **run, compiled=True)
    assert compiled.stats.compiled_steps > 10
    same(compiled, readable)


def linear_pair() -> cs.System:
    """A stiff linear filter and a mass, and what one reads of the other."""
    mass = cs.Linear([[0, 1], [-40, -1]], [[0], [1]], np.eye(2), x0=[0.3, 0], inputs=["f"], outputs=["x", "v"])
    tail = cs.Linear([[-300]], [[300]], [[-20]], [[1]], x0=[0.1], inputs=["a"], outputs=["y"])
    system = cs.System({"mass": mass, "tail": tail})
    system.connect("mass.x", "tail.a")
    system.connect("tail.y", "mass.f")
    return system


@pytest.mark.parametrize(
    "method", [cs.Jacobi(2), cs.GaussSeidel(1), cs.SemiImplicit(1, jacobian="difference")], ids=lambda m: m.label
)
def test_linear_subsystems_with_controlled_steps(method) -> None:
    """A propagator per step length, in both engines the same."""
    run = {"method": method, "step": cs.Adaptive(rtol=1e-4, first_step=1e-2, max_step=2e-2), "t_end": 1.0}
    readable = cs.simulate(linear_pair(), **run, compiled=False)
    compiled = cs.simulate(linear_pair(), **run, compiled=True)
    assert compiled.stats.compiled_steps >= 0.9 * readable.stats.steps
    assert readable.stats.rejected > 0
    same(compiled, readable)


def test_a_propagator_that_fails_stops_the_run(monkeypatch) -> None:
    """An interrupt in the middle of compiled code comes out of the run."""
    calls = []

    def interrupted(self, H, degree):
        calls.append(H)
        if len(calls) > 200:
            raise KeyboardInterrupt
        return whole(self, H, degree)

    whole = cs.Linear._propagator
    monkeypatch.setattr(cs.Linear, "_propagator", interrupted)
    run = {"method": cs.Jacobi(2), "step": cs.Adaptive(rtol=1e-6, first_step=1e-3), "t_end": 100.0}
    with pytest.raises(KeyboardInterrupt):
        cs.simulate(linear_pair(), **run, compiled=True)
    assert len(calls) == 201


def test_what_cannot_change_its_step_says_so() -> None:
    tank = cs.Linear([[-1]], [[1]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    whole = tank.native
    tank.native = lambda H, degree: replace(whole(H, degree), any_step=False)
    system = cs.System({"a": tank})
    system.connect("a.h", "a.q")
    why = cs.analysis.why_not_compiled(system, cs.Jacobi(1), cs.Adaptive())
    assert why == "'a' is compiled for one step length only; give a fixed step"
    with pytest.raises(cs.errors.SetupError, match="compiled=True: 'a' is compiled for one step length only"):
        cs.simulate(system, method=cs.Jacobi(1), step=cs.Adaptive(), t_end=1.0, compiled=True)


@numba.njit
def stop(x1, v1, x2, v2):
    return 1e6 if x1 < 0.99 else 0.0


def test_a_jump_has_the_same_words() -> None:
    words = []
    for compiled in (False, True):
        system = pendulums("ode4", 1e-3, stop)
        run = {"method": cs.Jacobi(1), "step": cs.Adaptive(rtol=1e-3, first_step=1e-3), "t_end": 0.5}
        with pytest.raises(cs.errors.StepSizeError, match="a jump or a tolerance") as failure:
            cs.simulate(system, **run, compiled=compiled)
        words.append((str(failure.value), failure.value.result.t[-1]))
    assert words[0] == words[1]
