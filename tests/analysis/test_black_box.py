"""Stability without looking into subsystems: estimates from disturbed macro steps against the exact map."""

import numpy as np
import pytest
from examples.two_mass.model import force_displacement, split
from tests.analysis.hidden import Hidden, hide
from tests.fmu.oscillator import fmu_split

import cosolve as cs
from cosolve.accuracy import disturbed

#: critical steps of the exact maps, as in the tests of explicit and semi-implicit methods
LIMITS = [
    ("F/F", cs.Jacobi(0), 0.03322),
    ("F/F", cs.Jacobi(1), 0.03354),
    ("F/D", cs.GaussSeidel(1), 0.04066),
    ("D/D", cs.Jacobi(2), 0.04442),
    ("D/D", cs.SemiImplicit(0), 0.02591),
]


@pytest.mark.parametrize(
    ("kind", "method", "limit", "rollback"),
    [(*row, rollback) for row in LIMITS for rollback in (True, False) if rollback or not row[1].needs],
    ids=lambda value: getattr(value, "label", None) or {True: "rollback", False: "only started anew"}.get(value),
)
def test_both_sides_of_the_limit(kind, method, limit, rollback):
    """Linear systems, hidden: eight digits of the spectral radius, and the right verdict 5 % beside the limit."""
    for H, verdict in ((0.95 * limit, "stable"), (1.05 * limit, "unstable")):
        exact = cs.analysis.spectral_radius(split(kind), method, H)
        found = cs.analysis.estimate_stability(hide(split(kind), rollback), method, H)
        assert found.verdict == verdict
        assert abs(found.radius - exact) < 1e-7
        assert found.accuracy < 1e-5
        assert found.macro_steps <= 528  # five runs of 96, and 16 of the beginning and of one push to either side


def test_growth_of_a_millionth_per_step_is_seen():
    """Outputs with feed-through and a lag of half a step: the radius is 1.0000032 a tenth beyond the limit."""
    for H, verdict in ((1.292e-5, "stable"), (1.579e-5, "unstable")):
        exact = cs.analysis.spectral_radius(force_displacement(), cs.Jacobi(0), H)
        found = cs.analysis.estimate_stability(hide(force_displacement()), cs.Jacobi(0), H)
        assert found.verdict == verdict
        assert abs(found.radius - exact) < min(1e-6, 2 * found.accuracy)


def test_the_runs_start_when_they_are_told_to_and_else_at_zero():
    """A feedback that is stronger from t = 1 s on, and 300 steps that last a third of a second."""

    def tank(feedback):
        return cs.Ode(
            lambda t, x, u: feedback(t) * u - x, lambda t, x, u: x, x0=[1.0], inputs=["q"], outputs=["h"]
        )  # fmt: skip

    system = cs.System({"one": tank(lambda t: -3.0 if t < 1.0 else -3000.0), "two": tank(lambda t: 1.0)})
    system.connect("one.h", "two.q")
    system.connect("two.h", "one.q")
    early, late = (cs.analysis.estimate_stability(hide(system), cs.Jacobi(0), 1e-3, t=t) for t in (0.0, 1.0))
    assert (early.verdict, late.verdict) == ("stable", "unstable")
    assert cs.analysis.estimate_stability(hide(system), cs.Jacobi(0), 1e-3) == early


def test_one_black_box_among_others():
    exact = cs.analysis.spectral_radius(split("F/F"), cs.GaussSeidel(1), 0.03)
    assert (
        abs(cs.analysis.spectral_radius(hide(split("F/F"), False, only=("one",)), cs.GaussSeidel(1), 0.03) - exact)
        < 1e-7
    )


def test_limit_to_one_per_cent():
    found = cs.analysis.critical_step(hide(split("F/F")), cs.Jacobi(1), step_range=(0.01, 0.1))
    assert 0.03354 <= found <= 1.011 * 0.03354


@pytest.mark.slow
def test_limit_without_a_hint():
    for method, limit in ((cs.Jacobi(1), 0.03354), (cs.SemiImplicit(1), 0.07747)):
        assert abs(cs.analysis.critical_step(hide(split("F/F")), method) / limit - 1) < 0.011
    assert cs.analysis.critical_step(hide(split("F/F")), cs.SemiImplicit(0), step_range=(0.01, 1.0)) == np.inf


@pytest.mark.sample(1)
@pytest.mark.parametrize("fmi", [2, 3])
def test_fmus_that_hide_their_states(fmi):
    exact = cs.analysis.spectral_radius(fmu_split("F/F", fmi), cs.Jacobi(1), 0.03)
    system = fmu_split("F/F", fmi)
    for fmu in system.subsystems.values():
        del fmu.get_state, fmu.set_state
    assert abs(cs.analysis.spectral_radius(system, cs.Jacobi(1), 0.03) - exact) < 1e-7
    for fmu in system.subsystems.values():
        del fmu.save, fmu.restore
    assert abs(cs.analysis.spectral_radius(system, cs.Jacobi(1), 0.03) - exact) < 1e-7
    assert "unstable" in cs.check(system, cs.Jacobi(1), 0.04).codes()
    with pytest.raises(cs.errors.CapabilityError, match="have the FMU exported with canGetAndSetFMUState"):
        cs.simulate(system, method=cs.SemiImplicit(1), step=0.03, t_end=1.0)


def _pendulum(gain: float, phi: float) -> cs.System:
    """A pendulum held by a spring that gives way, with a lag."""
    arm = cs.Ode(
        lambda t, x, u: [x[1], -9.81 * np.sin(x[0]) - 0.5 * x[1] + u[0]],
        lambda t, x, u: x,
        x0=[phi, 0.0],
        inputs=["torque"],
        outputs=["phi", "rate"],
        integrator="ode4",
        internal_step=0.01,
    )
    spring = cs.Ode(
        lambda t, x, u: [50 * (-gain * np.tanh(u[0]) - x[0])],
        lambda t, x, u: x,
        x0=[0.0],
        inputs=["phi"],
        outputs=["torque"],
        integrator="ode4",
        internal_step=0.01,
    )
    system = cs.System({"arm": arm, "spring": spring})
    system.connect("arm.phi", "spring.phi")
    system.connect("spring.torque", "arm.torque")
    return system


@pytest.mark.parametrize(("gain", "verdict"), [(1.0, "stable"), (30.0, "unstable"), (100.0, "unstable")])
def test_nonlinear_at_rest(gain, verdict):
    """The map linearised there is met, although the spring gives way under what a large push becomes."""
    exact = cs.analysis.spectral_radius(_pendulum(gain, 0.0), cs.Jacobi(1), 0.05)
    found = cs.analysis.estimate_stability(hide(_pendulum(gain, 0.0)), cs.Jacobi(1), 0.05)
    assert found.verdict == verdict
    assert abs(found.radius - exact) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("gain", "wrong"), [(1.0, "unstable"), (30.0, "stable"), (100.0, "stable")])
def test_nonlinear_and_moving(gain, wrong):
    """A run that bends a disturbance, and ends in a limit cycle, may leave the question open: no wrong answer."""
    assert cs.analysis.estimate_stability(hide(_pendulum(gain, 0.3)), cs.Jacobi(1), 0.05).verdict != wrong


class _Sampled(cs.Subsystem):
    """A proportional controller that looks every third macro step."""

    inputs, outputs = ["y"], ["u"]

    def __init__(self, gain):
        self.gain = gain

    def start(self, t0):
        self.n, self.u = 0, 0.0
        return self.u

    def advance(self, t0, t1, u):
        if self.n % 3 == 0:
            self.u = -self.gain * u(t0)[0]
        self.n += 1
        return self.u


@pytest.mark.parametrize(("gain", "verdict"), [(11.0, "stable"), (13.0, "unstable")])
def test_sampled_parts(gain, verdict):
    """Three steps are one period: the factors per step are the cube roots of those of a period."""
    plant = cs.Ode(lambda t, x, u: u - x, lambda t, x, u: x, x0=[1.0], inputs=["u"], outputs=["y"])
    system = cs.System({"plant": Hidden(plant, False), "control": _Sampled(gain)})
    system.connect("plant.y", "control.y")
    system.connect("control.u", "plant.u")
    assert cs.analysis.estimate_stability(system, cs.Jacobi(0), 0.1).verdict == verdict


def test_noise_is_not_judged():
    class Noisy(Hidden):
        random = np.random.default_rng(1)

        def advance(self, t0, t1, u):
            return np.asarray(super().advance(t0, t1, u)) + 0.1 * self.random.standard_normal(2)

    system = split("F/F")
    system.subsystems["one"] = Noisy(system.subsystems["one"], False)
    found = cs.analysis.estimate_stability(system, cs.Jacobi(1), 0.03)
    assert found.verdict == "cannot tell"
    assert "noise" in found.reason
    advice = cs.check(system, cs.Jacobi(1), 0.03)
    assert advice.ok
    assert "not-analysed" in advice.codes()


def test_a_push_is_not_made_smaller_where_a_larger_one_stands_out_better():
    """Outputs of six digits: the second push is above the noise, and the third would be below it."""

    class Rounded(Hidden):
        def advance(self, t0, t1, u):
            return np.round(super().advance(t0, t1, u), 6)

    system = split("F/F")
    system.subsystems["one"] = Rounded(system.subsystems["one"])
    trials = disturbed.Trials(system.plan(), cs.Jacobi(0))
    assert disturbed._attempt(trials, 0.02, 96).verdict == "stable"
    assert trials.macro_steps == 96 + 16 + 2 * 2 * 16 + 2 * 96  # two pushes in short, one of them in full


def test_a_push_is_as_large_as_the_inputs_where_smaller_ones_are_lost_in_noise():
    """Outputs of five digits, as of a solver with a tolerance: no verdict with a push of one per cent."""

    class Rounded(Hidden):
        def advance(self, t0, t1, u):
            return np.round(super().advance(t0, t1, u), 5)

    system = split("F/F")
    system.subsystems["one"] = Rounded(system.subsystems["one"])
    found = cs.analysis.estimate_stability(system, cs.Jacobi(1), 0.02)
    assert found.verdict == "stable"
    assert abs(found.radius - cs.analysis.spectral_radius(split("F/F"), cs.Jacobi(1), 0.02)) < found.accuracy


def test_check_says_what_to_do():
    bad = cs.check(hide(split("F/F")), cs.Jacobi(1), 0.036)
    assert not bad.ok
    assert {"unstable", "critical-step", "alternatives"} <= bad.codes()
    assert "macro steps from the start" in str(bad)
    assert "about H = 0.033" in str(bad)
    assert cs.check(hide(split("F/F")), cs.Jacobi(1), 0.032).codes() == {"capability", "stable"}


def test_growing_model_is_not_blamed_on_the_coupling():
    grow = lambda: Hidden(cs.Linear([[0.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"]))  # noqa: E731
    system = cs.System({"a": grow(), "b": grow()})
    system.connect("a.x", "b.u")
    system.connect("b.x", "a.u")
    advice = cs.check(system, cs.SemiImplicit(1), 0.05)
    assert advice.ok
    assert "growing-system" in advice.codes()


def test_rigid_bodies_count_as_stable():
    """Two free masses: the centre drifts (two factors at 1), which is no instability."""
    mass = lambda x: Hidden(  # noqa: E731
        cs.Linear([[0, 1], [0, 0]], [[0], [1]], [[1, 0], [0, 1]], x0=[x, 0.1], inputs=["f"], outputs=["x", "v"])
    )
    system = cs.System({"one": mass(0.0), "two": mass(1.0)})
    law = lambda x1, v1, x2, v2: 10 * (x2 - x1) + 1 * (v2 - v1)  # noqa: E731
    system.law({"one.f": 1, "two.f": -1}, law, of=["one.x", "one.v", "two.x", "two.v"])
    assert cs.analysis.estimate_stability(system, cs.Jacobi(1), 0.05).verdict == "stable"


def test_the_map_itself_needs_states():
    with pytest.raises(cs.errors.SetupError, match="which 'one' does not give; estimate_stability"):
        cs.analysis.amplification_matrix(hide(split("F/F")), cs.Jacobi(1), 0.03)


def test_growth_is_not_called_stable_where_noise_hides_how_far_it_is_from_one():
    """Half a per cent of noise: within its root of 1 (7 %) a factor may be an integrator's, but 1.04 is not stable."""
    n = np.arange(93)
    rows = (1.04**n * np.cos(0.1 * n))[:, np.newaxis]
    noise = 0.005 * np.abs(rows)
    found = disturbed.judge(rows * (1.0 + 0.005 * np.sin(37.0 * n))[:, np.newaxis], noise, 93)
    assert found.verdict != "stable"
    steady = (0.97**n + 1.0)[:, np.newaxis]
    assert disturbed.judge(steady, 1e-9 * steady, 93).verdict == "stable"
