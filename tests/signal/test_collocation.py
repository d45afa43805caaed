"""Coupling equations at two points of the step: factors, orders and errors; stiff springs.

Numbers without another source come from a reference code in numpy and scipy that advances subsystems by expm.
"""

import numpy as np
import pytest
from tests.signal.models import capacity, driven, network, scalar, two_bars, two_capacities, two_masses

import cosolve as cs

INNER, RADAU = cs.SemiImplicit(1, signal="collocation"), cs.SemiImplicit(1, signal="radau")
BOTH = pytest.mark.parametrize("method", [INNER, RADAU], ids=lambda m: m.label)
POINT = {"collocation": 0.8, "radau": 1 / 3}


def spring(w):
    """A mass of 1 on a spring law, `F = -w^2 x`."""
    mass = cs.Linear([[0, 1], [0, 0]], [[0], [1]], np.eye(2), x0=[1, 0], inputs=["f"], outputs=["x", "v"])
    system = cs.System({"mass": mass})
    system.law({"mass.f": 1}, lambda x: -(w**2) * x, of=["mass.x"], name="f")
    return system


@pytest.mark.covers("ST-17")
@BOTH
@pytest.mark.parametrize("x", [-0.3, -2.0, -10.0, -1e2])
def test_rational_function_of_stability(method, x):
    c = POINT[method.signal]
    R = ((1 - c) * x + 2) / (c * x**2 - (1 + c) * x + 2)
    mu = cs.analysis.amplification_matrix(scalar(-x), method, 1.0).eigenvalues
    assert mu[np.argmax(np.abs(mu))].real == pytest.approx(R, abs=2e-5)
    if x == -10.0:
        assert R == pytest.approx({"collocation": 0.0, "radau": -0.0959}[method.signal], abs=5e-5)


@pytest.mark.covers("ST-18")
def test_radius_on_a_stiff_spring():
    assert cs.analysis.spectral_radius(spring(1e3), INNER, 1.0) == pytest.approx(0.250, abs=1e-3)
    assert cs.analysis.spectral_radius(spring(1e3), RADAU, 1.0) == pytest.approx(2.0, abs=1e-2)
    for w in np.geomspace(0.05, 1e3, 25):
        assert cs.analysis.spectral_radius(spring(w), INNER, 1.0) < 1 + 1e-6


@pytest.mark.covers("ST-19")
def test_two_masses_with_a_stiff_spring_law():
    case = two_masses(1e6, 0.0)
    assert case.error(INNER) / 0.1 == pytest.approx(7.6e-6, rel=0.03)
    assert cs.analysis.spectral_radius(case.system, cs.SemiImplicit(1, signal="bdf"), 0.02) == pytest.approx(
        1.693, abs=1e-3
    )


@pytest.mark.covers("ST-19", "ST-20")
def test_check_names_it_where_backward_differences_grow():
    advice = cs.check(two_masses(1e6, 0.0).system, cs.SemiImplicit(1, signal="bdf"), step=0.02)
    assert not advice.ok
    (said,) = (finding.text for finding in advice.findings if finding.code == "alternatives")
    assert "SemiImplicit(collocation)" in said
    assert cs.check(two_masses(1e6, 0.0).system, INNER, step=0.02).ok


@pytest.mark.parametrize(
    ("method", "wanted"),
    [(INNER, [1.1e-2, 2.9e-3, 7.3e-4, 1.8e-4]), (RADAU, [3.6e-2, 9.5e-3, 2.4e-3, 6.1e-4])],
    ids=["collocation", "radau"],
)
def test_order_of_the_flux_where_stiff(method, wanted):
    errors = [driven(1e4).errors(method, H)[1] for H in (0.1, 0.05, 0.025, 0.0125)]
    np.testing.assert_allclose(errors, wanted, rtol=0.05)


@pytest.mark.parametrize(("method", "order"), [(INNER, 2), (RADAU, 3)], ids=["collocation", "radau"])
def test_order_of_the_states_where_nothing_is_stiff(method, order):
    errors = [driven(1.0).error(method, H) for H in (0.04, 0.02, 0.01)]
    assert np.log2(errors[-2] / errors[-1]) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize(("method", "worst"), [(INNER, 1.8e-3), (RADAU, 1.6e-4)], ids=["collocation", "radau"])
def test_networks(method, worst):
    """A fifth better than the reference code, whose first step had held pieces and then a whole one."""
    errors = [network(seed).error(method, after=0.1) for seed in range(12)]
    assert 0.7 * worst < max(errors) < worst


@pytest.mark.parametrize(
    ("method", "wanted"), [(INNER, [2.9e-4, 4.0e-3]), (RADAU, [7.3e-5, 1.1e-3])], ids=["collocation", "radau"]
)
def test_two_bars(method, wanted):
    errors = np.array([two_bars(form).error(method, 0.04, after=0.1) for form in ("conductance", "face")])
    assert (errors < 1.03 * np.array(wanted)).all()
    assert (errors > 0.1 * np.array(wanted)).all()


@BOTH
def test_a_jump_at_the_start(method):
    """The short pieces are advanced by collocation too: with held inputs these are 2.4e-5 and 2.4e-6."""
    assert two_capacities(1e4).error(method, after=0.1) < {"collocation": 2e-6, "radau": 2e-10}[method.signal]


@BOTH
@pytest.mark.parametrize("step", [0.02, cs.Adaptive(rtol=1e-4)], ids=["equal", "adaptive"])
def test_resumed_after_any_step(method, step, tmp_path):
    def fresh():
        return cs.Stepper(driven(1e4).system, method=method, step=step, t_end=1.0)

    def trace(running, last):
        found = []
        for _ in range(last):
            running.step()
            found.append((running.t, running["a.T"], running["b.T"], running["q"]))
        return found

    whole, running = trace(fresh(), 10), fresh()
    for n in range(1, 10):
        running.step()
        running.save_file(tmp_path / "state")
        again = fresh()
        again.restore_file(tmp_path / "state")
        assert trace(again, 10 - n) == whole[n:]


@BOTH
def test_controlled_steps_follow_the_tolerance(method):
    """The flux of a stiff pair with a source: ten times less error for a tolerance a hundred times tighter."""
    errors = []
    for rtol in (1e-2, 1e-4):
        result = cs.simulate(driven(1e4).system, t_end=1.0, method=method, step=cs.Adaptive(rtol=rtol))
        errors.append(driven(1e4).of(result)[1])
        assert result.stats.steps < 3000
    assert errors[1] < 0.1 * errors[0] < 0.01


@BOTH
def test_differenced_jacobians_and_an_iterated_correction_agree(method):
    case = driven(1e4)
    runs = [
        case.run(m)["q"]
        for m in (
            method,
            cs.SemiImplicit(1, signal=method.signal, jacobian="difference"),
            cs.Implicit(1, signal=method.signal),
        )
    ]
    np.testing.assert_allclose(runs[1][-1], runs[0][-1], rtol=1e-6)
    np.testing.assert_allclose(runs[2][-1], runs[0][-1], rtol=1e-9)


def test_conservation():
    system = cs.System({"a": capacity(1.0, 0.0, 1.2), "b": capacity(0.5, 0.0, 0.8)})
    system.law({"a.q": -1, "b.q": 1}, lambda x, y: 2.0 * (x**4 - y**4), of=["a.T", "b.T"], name="q")
    result = cs.simulate(system, t_end=0.4, method=INNER, step=0.02)
    np.testing.assert_allclose(result["a.T"] + 0.5 * result["b.T"], 1.6, rtol=0, atol=2e-15)


def test_constants_that_change_between_steps():
    """A held input acts at both points from the next step on."""
    tank = cs.Linear([[-1.0]], [[1.0, 1.0]], [[1.0]], x0=[0.0], inputs=["q", "r"], outputs=["h"])
    system = cs.System({"tank": tank})
    system.law({"tank.q": 1}, lambda h: -50.0 * h, of=["tank.h"], name="q")
    system.set("tank.r", 1.0)
    running = cs.Stepper(system, method=RADAU, step=0.1)
    for _ in range(20):
        running.step()
    assert running["tank.h"] == pytest.approx(1 / 51, rel=1e-6)
    running.set("tank.r", 3.0)
    for _ in range(20):
        running.step()
    assert running["tank.h"] == pytest.approx(3 / 51, rel=1e-6)


def test_refusals_and_names():
    with pytest.raises(cs.errors.SetupError, match="is a line; give degree=1"):
        cs.SemiImplicit(2, signal="radau")
    case = two_capacities(1.0)
    assert "ok" in str(cs.check(case.system, "semi-implicit:collocation", 0.02))
    with pytest.raises(cs.errors.CapabilityError, match="does not end its macro steps at events"):
        case.run(INNER, stop_at_events=True)
    tank = cs.Linear([[0.0]], [[1.0, 1.0]], [[1.0]], x0=[0.0], inputs=["q", "r"], outputs=["h"])
    system = cs.System({"tank": tank})
    system.law({"tank.q": 1}, lambda h: -h, of=["tank.h"], name="q")
    system.set("tank.r", np.sin)
    with pytest.raises(cs.errors.CapabilityError, match="draws inputs as lines"):
        cs.simulate(system, t_end=1.0, method=INNER, step=0.1)
