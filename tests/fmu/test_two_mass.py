"""The two-mass oscillator as two FMUs: the numbers, the limits and the calls of the native subsystems."""

from functools import cache

import numpy as np
import pytest
from examples.two_mass.model import force_displacement, lu, split, spring
from tests.fmu.build import fmu
from tests.fmu.oscillator import KINDS, fmu_force_displacement, fmu_split, mass_from

import cosolve as cs

METHODS = (cs.Jacobi, cs.GaussSeidel, cs.SemiImplicit, cs.Implicit)


def distance(one: cs.Result, two: cs.Result, names: tuple[str, ...] = ("one.x", "one.v", "two.x", "two.v")) -> float:
    """Largest difference over time, relative to the largest value."""
    return max(float(np.abs(one[n] - two[n]).max() / np.abs(one[n]).max()) for n in names)


@pytest.mark.sample(12)
@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_numbers_of_the_native_subsystems(fmi, kind, method, degree):
    """The FMUs propagate exactly for polynomial inputs, so every method gives what it gives with `Linear`."""
    options = {"t_end": 0.05, "method": method(degree=degree), "step": 1e-3}
    assert distance(cs.simulate(split(kind), **options), cs.simulate(fmu_split(kind, fmi), **options)) < 1e-12


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.__name__)
def test_direct_feed_through(fmi, method):
    """The spring force reacts at once to its inputs: consistent at the start and at each macro point."""
    options = {"t_end": 0.01, "method": method(degree=1), "step": 1e-4}
    native, ours = cs.simulate(force_displacement(), **options), cs.simulate(fmu_force_displacement(fmi), **options)
    assert native["two.F"][0] == pytest.approx(1e6, rel=1e-12)  # ck (x2 - x1) with the start values
    assert distance(native, ours, ("one.x", "one.v", "two.F", "two.x", "two.v")) < 1e-12


@cache
def native_limit(kind: str, method: cs.Method) -> float:
    limit = cs.analysis.critical_step(split(kind), method, step_range=(0.02, 0.09))
    assert 0.02 < limit < 0.09
    return limit


LIMITS = [
    *(("F/F", cs.Jacobi(k)) for k in (0, 1, 2)),
    *(("F/D", cs.GaussSeidel(k)) for k in (0, 1, 2)),
    *((kind, cs.SemiImplicit(k)) for kind, k in (("F/F", 1), ("F/F", 2), ("F/D", 0), ("F/D", 2), ("D/D", 0))),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize(("kind", "method"), LIMITS, ids=lambda v: getattr(v, "label", v))
def test_limits_from_the_amplification_matrix_are_those_of_the_native_subsystems(fmi, kind, method):
    """States are set by initialising anew, so the stability analysis works on FMUs before a run."""
    limit = native_limit(kind, method)
    found = cs.analysis.critical_step(fmu_split(kind, fmi), method, step_range=(0.97 * limit, 1.03 * limit))
    assert found == pytest.approx(limit, rel=1e-6)


@pytest.mark.sample(3)
@pytest.mark.filterwarnings(
    "ignore:values grow without bound:cosolve.errors.StabilityWarning"
)  # beyond the limit on purpose
@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize(
    ("kind", "method"),
    [("F/F", cs.Jacobi(1)), ("D/D", cs.SemiImplicit(0)), ("F/D", cs.GaussSeidel(1))],
    ids=lambda v: getattr(v, "label", v),
)
def test_runs_on_both_sides_of_the_limit(fmi, kind, method):
    """3 % below the limit of the native amplification matrix the FMUs' run decays, 3 % above it grows."""
    limit = native_limit(kind, method)
    growth = []
    for H in (0.97 * limit, 1.03 * limit):
        x = cs.simulate(fmu_split(kind, fmi), t_end=400 * H, method=method, step=H)["one.x"]
        growth.append(np.abs(x[-60:]).max() / np.abs(x[200:260]).max())
    assert growth[0] < 1.0 < growth[1]


@pytest.mark.parametrize("fmi", [2, 3])
def test_calls_fall_to_those_of_the_exact_jacobian(fmi):
    """With derivatives a corrected step advances twice; differences advance once more per input."""
    counts = {}
    for name in ("mass_force", "mass_no_derivatives"):
        p = lu()
        masses = {
            "one": mass_from(fmu(name, fmi), p.m1, p.c1, p.d1, p, p.x1, p.v1),
            "two": mass_from(fmu(name, fmi), p.m2, p.c2, p.d2, p, p.x2, p.v2),
        }
        system = cs.System(masses)
        system.law({"one.f": 1, "two.f": -1}, spring(p.ck, p.dk), of=["one.x", "one.v", "two.x", "two.v"])
        run = cs.simulate(system, t_end=0.1, method=cs.SemiImplicit(degree=1), step=1e-3)
        counts[name] = run.stats.calls["one"] / 100
        again = masses["one"].steps - run.stats.calls["one"]
        assert again in (0, 100)  # once more where no run before has proven that going back loses nothing
    assert counts == {"mass_force": 2.0, "mass_no_derivatives": 3.0}


@pytest.mark.parametrize("fmi", [2, 3])
def test_one_fmu_several_times(fmi):
    """Instances of one file share the unpacked library but no state."""
    a, b = (mass_from(fmu("mass_force", fmi), 1, 1e3, 0, lu(), x, 0.0) for x in (1.0, -2.0))
    assert a.functions == b.functions
    assert a.component != b.component
    system = cs.System({"a": a, "b": b})
    system.set("a.f", 0.0)
    system.set("b.f", 0.0)
    result = cs.simulate(system, t_end=0.1, method=cs.Jacobi(0), step=1e-2)
    exact = np.cos(np.sqrt(1e3) * result.t)
    assert np.abs(result["a.x"] - exact).max() < 1e-13
    assert np.abs(result["b.x"] + 2 * exact).max() < 1e-13


@pytest.mark.parametrize("fmi", [2, 3])
def test_held_inputs_are_right_to_second_order(fmi):
    """Without input derivatives the input is held at its value in the middle of each piece: error O((H/n)^2)."""

    def error(H: float, substeps: int) -> float:
        push = cs.Static(lambda t, u: np.sin(3 * t), inputs=[], outputs=["f"])
        m = cs.load_fmu(fmu("mass_held", fmi), parameters={"c": 4.0, "d": 0.0}, substeps=substeps)
        system = cs.System({"push": push, "mass": m})
        system.connect("push.f", "mass.f")
        past = cs.KnownHistory(lambda t: {"push.f": np.sin(3 * t)})
        method = cs.GaussSeidel(degree=4, order=["push", "mass"])
        result = cs.simulate(system, t_end=2.0, method=method, step=H, startup=past)
        exact = 0.3 * np.sin(2 * result.t) - 0.2 * np.sin(3 * result.t)  # x'' + 4 x = sin 3 t
        return float(np.abs(result["mass.x"] - exact).max())

    steps = (0.1, 0.05, 0.025)
    errors = [error(H, 1) for H in steps]
    assert cs.analysis.convergence_order(steps, errors) == pytest.approx(2.0, abs=0.1)
    assert errors[0] / error(0.1, 4) == pytest.approx(16, rel=0.1)
