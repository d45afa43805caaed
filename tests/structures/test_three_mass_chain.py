"""The three-mass chain cut in two: equal and mixed integrators, three coupling levels (Sicklinger (2014), 3.2)."""

from functools import cache

import numpy as np
import pytest
from examples.three_mass_chain.model import Level, exact, monolithic, run, split

import cosolve as cs

STEPS = (0.0025, 0.00125)
LEVELS: tuple[Level, ...] = ("displacement", "velocity", "acceleration")
#: (domain one, domain two, load interpolated) of Examples 3.4, 3.6 and 3.5
EXAMPLE_3_4, EXAMPLE_3_6, EXAMPLE_3_5 = ("GA", "BDF2", False), ("GA", "BDF2", True), ("BE", "BDF2", False)


@cache
def study(one: str, two: str, interpolated: bool, level: Level) -> tuple[np.ndarray, np.ndarray]:
    """Per step: error at T = 1, and the largest gap between the domains, of displacement, velocity, acceleration."""
    errors, gaps = [], []
    for h in STEPS:
        result = run(one, two, h, level=level, interpolated=interpolated)
        errors.append([abs(result[f"one.{k}"][-1] - x[1]) for k, x in zip(LEVELS, exact(1.0), strict=True)])
        gaps.append([np.abs(result[f"one.{k}"] - result[f"two.{k}"]).max() for k in LEVELS])
    return np.array(errors), np.array(gaps)


def test_exact_solution() -> None:
    q, v, _ = exact(1.0)
    assert q == pytest.approx([0.45803136, -0.11084645, -0.05631247], abs=5e-9)
    assert v == pytest.approx([0.6154777, -0.43837115, -0.62222034], abs=5e-8)


@pytest.mark.sample(1)
@pytest.mark.covers("IJ-14")
@pytest.mark.parametrize("rule", ["BE", "GA", "BDF2"])
@pytest.mark.parametrize("interpolated", [False, True])
def test_equal_integrators_reproduce_the_monolithic_run(rule: str, interpolated: bool) -> None:
    """Examples 3.1-3.3: same displacements and velocities to 1e-11, two evaluations a step."""
    h = 0.00125
    whole = cs.simulate(monolithic(rule, h), t_end=1.0, method=cs.Jacobi(0), step=h)
    parts = run(rule, rule, h, interpolated=interpolated)
    assert np.abs(parts["one.displacement"] - whole["chain.vd"]).max() <= 1e-11
    assert np.abs(parts["one.velocity"] - whole["chain.vv"]).max() <= 1e-11
    assert parts.iterations.max() == 1
    assert parts.stats.calls == {"one": 1600, "two": 1600}


@pytest.mark.covers("IJ-14")
def test_one_correction_is_enough() -> None:
    """The problem is linear: semi-implicit coupling gives the implicit result."""
    h = 0.01
    once = cs.simulate(split("GA", "GA", h), t_end=1.0, method=cs.SemiImplicit(degree=0), step=h)
    many = run("GA", "GA", h, interpolated=False)
    assert np.abs(once["one.displacement"] - many["one.displacement"]).max() < 1e-13


@pytest.mark.sample(1)
@pytest.mark.covers("IJ-15")
@pytest.mark.parametrize(("case", "order"), [(EXAMPLE_3_4, 1.0), (EXAMPLE_3_6, 2.0), (EXAMPLE_3_5, 1.0)])
def test_order_of_mixed_integrators(case: tuple[str, str, bool], order: float) -> None:
    """GA/BDF2 loses an order with the force held at its end value; the interpolated force repairs it."""
    errors, _ = study(*case, "displacement")
    orders = np.log2(errors[-2] / errors[-1])
    assert orders == pytest.approx(order, abs=0.1)


@pytest.mark.sample(2)
@pytest.mark.covers("IJ-16")
@pytest.mark.parametrize("case", [EXAMPLE_3_4, EXAMPLE_3_6, EXAMPLE_3_5])
@pytest.mark.parametrize("level", LEVELS)
def test_only_the_coupled_level_is_continuous(case: tuple[str, str, bool], level: Level) -> None:
    errors, gaps = study(*case, level)
    coupled = LEVELS.index(level)
    assert gaps[:, coupled].max() <= 1e-10
    assert np.delete(gaps, coupled, axis=1).min() > 1e-6
    order = 2.0 if case == EXAMPLE_3_6 else 1.0
    assert np.log2(errors[-2] / errors[-1]) == pytest.approx(order, abs=0.1)


@pytest.mark.covers("IJ-16")
def test_acceleration_coupling_calms_the_acceleration() -> None:
    """Example 3.4: the error of the acceleration falls about tenfold (printed 1.2e-2 -> 1.3e-3)."""
    by_displacement, by_acceleration = (study(*EXAMPLE_3_4, level)[0][-1, 2] for level in ("displacement", LEVELS[2]))
    assert by_displacement == pytest.approx(1.2e-2, rel=0.05)
    assert by_acceleration == pytest.approx(1.3e-3, rel=0.05)
    assert by_displacement / by_acceleration == pytest.approx(10.0, rel=0.1)


@pytest.mark.slow
@pytest.mark.covers("IJ-16")
def test_massless_node_rings_in_generalised_alpha() -> None:
    """BE/GA coupled by displacement: the acceleration of the massless node is spurious (printed gap 6e3 to 1.6e4)."""
    _, held = study("BE", "GA", False, "displacement")
    _, ramped = study("BE", "GA", True, "displacement")
    assert held[-1, 2] == pytest.approx(1.6e4, rel=0.05)
    assert ramped[-1, 2] == pytest.approx(6e3, rel=0.05)
