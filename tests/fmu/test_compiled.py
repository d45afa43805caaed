"""FMUs in the compiled macro loop: their C functions called by address, with the bits of the Python engine."""

import numba
import numpy as np
import pytest
from examples.two_mass.model import lu
from tests.fmu.build import fmu
from tests.fmu.oscillator import fmu_force_displacement, fmu_split, mass_from

import cosolve as cs
from cosolve.engine.native import effort

COLUMNS = ("t", "y", "z", "H", "iterations", "residual", "calls", "norms_end", "norms")


def both(build, **run) -> tuple[cs.Result, cs.Result]:
    readable = cs.simulate(build(), **run, compiled=False)
    compiled = cs.simulate(build(), **run, compiled=True)
    assert compiled.stats.compiled_steps >= readable.stats.steps - 4
    return readable, compiled


@pytest.mark.filterwarnings(
    "ignore:values grow without bound:cosolve.errors.StabilityWarning"
)  # beyond the limit on purpose
@pytest.mark.parametrize("build", [lambda: fmu_split("D/D", 2), lambda: fmu_force_displacement(2)], ids=["D/D", "F/D"])
@pytest.mark.parametrize(
    "method",
    [
        *(cs.Jacobi(0), cs.Jacobi(2), cs.GaussSeidel(1), cs.SemiImplicit(0), cs.SemiImplicit(2)),
        *(cs.SemiImplicit(1, jacobian="difference"), cs.Implicit(1), cs.Implicit(2, jacobian="difference")),
    ],
    ids=lambda m: f"{m.label} {getattr(m, 'jacobian', '')}",
)
def test_same_bits(method, build) -> None:
    readable, compiled = both(build, method=method, step=1e-3, t_end=0.02)
    for name in COLUMNS:
        np.testing.assert_array_equal(readable.column(name), compiled.column(name), err_msg=name)
    assert readable.stats.calls == compiled.stats.calls
    assert readable.stats.jacobians == compiled.stats.jacobians


@pytest.mark.parametrize("fmi", [2, 3])
def test_held_inputs(fmi) -> None:
    """FMUs without input derivatives, and FMI 3.0: held at the middle of the step."""
    readable, compiled = both(
        lambda: fmu_split("D/D", fmi, interpolate=False), method=cs.Jacobi(1), step=1e-3, t_end=0.03
    )
    np.testing.assert_array_equal(readable["one.x"], compiled["one.x"])


def test_fmus_and_native_subsystems_together() -> None:
    @numba.njit
    def force(x1, v1, x2, v2):
        return 1e3 * (x2 - x1) + 10.0 * (v2 - v1)

    def build() -> cs.System:
        p = lu()
        mass = cs.Linear([[0, 1], [-500, -5]], [[0], [0.5]], np.eye(2), x0=[0, -100], inputs=["f"], outputs=["x", "v"])
        one = mass_from(fmu("mass_force", 2), p.m1, p.c1, p.d1, p, p.x1, p.v1)
        system = cs.System({"one": one, "two": mass})
        system.law({"one.f": 1, "two.f": -1}, force, of=["one.x", "one.v", "two.x", "two.v"], name="lam")
        return system

    readable, compiled = both(build, method=cs.SemiImplicit(1, jacobian="difference"), step=1e-3, t_end=0.05)
    for name in ("one.x", "two.v", "lam"):
        np.testing.assert_array_equal(readable[name], compiled[name])


@pytest.mark.parametrize("name", ["mass_error", "mass_discard", "mass_nan"])
@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.SemiImplicit(1, jacobian="difference")], ids=lambda m: m.label)
def test_an_fmu_that_fails_ends_the_run_with_its_words_and_the_result(name, method) -> None:
    def build() -> cs.System:
        p = lu()
        one = mass_from(fmu(name, 2), p.m1, p.c1, p.d1, p, p.x1, p.v1)
        system = cs.System({"one": one})
        system.law("one.f", numba.njit(lambda x, v: -10.0 * x), of=["one.x", "one.v"])
        return system

    ends = []
    for compiled in (False, True):
        with pytest.raises(cs.errors.SimulationError, match="'one'") as failure:
            cs.simulate(build(), method=method, step=1e-3, t_end=0.2, compiled=compiled)
        ends.append(failure.value)
    readable, compiled = ends
    assert readable.result.t[-1] == compiled.result.t[-1] == pytest.approx(0.05, abs=1.5e-3)
    np.testing.assert_array_equal(readable.result["one.x"], compiled.result["one.x"])
    assert readable.time == compiled.time
    if name == "mass_error":
        assert "returned 'error'" in str(compiled)


def test_fmus_with_events_are_left_to_the_readable_engine() -> None:
    system = fmu_split("D/D", 3)
    why = cs.analysis.why_not_compiled(system, cs.Jacobi(1), 1e-3)
    assert why == "'one' cannot be advanced from compiled code: it has events or asks for its inputs inside the step"


def test_running_on_after_compiled_steps() -> None:
    """The FMU stands where the compiled loop left it: a stepper goes on from a saved state of either engine."""
    system, run = fmu_split("D/D", 2), {"method": cs.Jacobi(1), "step": 1e-3}
    whole = cs.simulate(system, **run, t_end=0.1, compiled=False)
    again = cs.simulate(system, **run, t_end=0.1, compiled=True)
    once_more = cs.simulate(system, **run, t_end=0.1, compiled=False)
    np.testing.assert_array_equal(whole["one.x"], again["one.x"])
    np.testing.assert_array_equal(whole["one.x"], once_more["one.x"])


@numba.njit
def turns_stiff(t, x, u):
    rate = 1.0 if t < 0.01 else 1e9
    slope = np.empty(2)
    slope[0] = x[1]
    slope[1] = -rate * (x[1] - np.cos(t)) + 1e-3 * u[0]
    return slope


@numba.njit
def motion(t, x, u):
    return x


@pytest.mark.slow
def test_a_neighbour_that_turns_stiff_goes_on_in_the_readable_engine(monkeypatch) -> None:
    """An explicit step with an FMU is undone where another subsystem may hand it back."""

    def build() -> cs.System:
        p = lu()
        one = mass_from(fmu("mass_force", 2), p.m1, p.c1, p.d1, p, p.x1, p.v1)
        two = cs.Ode(turns_stiff, motion, x0=[0.0, 1.0], inputs=["f"], outputs=["x", "v"])
        system = cs.System({"one": one, "two": two})
        system.connect("one.x", "two.f")
        system.connect("two.x", "one.f")
        return system

    monkeypatch.setattr(effort, "RUNNING", 1e-4)
    monkeypatch.setattr(effort, "LOADING", 1e-4)
    monkeypatch.setattr(effort, "COMPILING", 0.0)
    run = {"method": cs.Jacobi(1), "step": 1e-3, "t_end": 0.03}
    readable, chosen = cs.simulate(build(), **run, compiled=False), cs.simulate(build(), **run)
    assert 5 < chosen.stats.compiled_steps < 15
    for name in COLUMNS:
        np.testing.assert_array_equal(readable.column(name), chosen.column(name), err_msg=name)
