"""Stability without looking into subsystems: estimates from disturbed macro steps against the exact map."""

import numpy as np
import pytest
from examples.two_mass.model import force_displacement, split
from tests.analysis.hidden import Hidden, hide
from tests.fmu.oscillator import fmu_split

import cosolve as cs

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
        exact = cs.spectral_radius(split(kind), method, H)
        found = cs.estimate_stability(hide(split(kind), rollback), method, H)
        assert found.verdict == verdict
        assert abs(found.radius - exact) < 1e-7
        assert found.accuracy < 1e-5
        assert found.macro_steps < 500


def test_growth_of_a_millionth_per_step_is_seen():
    """Outputs with feed-through and a lag of half a step: the radius is 1.0000032 a tenth beyond the limit."""
    for H, verdict in ((1.292e-5, "stable"), (1.579e-5, "unstable")):
        exact = cs.spectral_radius(force_displacement(), cs.Jacobi(0), H)
        found = cs.estimate_stability(hide(force_displacement()), cs.Jacobi(0), H)
        assert found.verdict == verdict
        assert abs(found.radius - exact) < min(1e-6, 2 * found.accuracy)


def test_one_black_box_among_others():
    exact = cs.spectral_radius(split("F/F"), cs.GaussSeidel(1), 0.03)
    assert abs(cs.spectral_radius(hide(split("F/F"), False, only=("one",)), cs.GaussSeidel(1), 0.03) - exact) < 1e-7


def test_limit_to_one_per_cent():
    found = cs.critical_step(hide(split("F/F")), cs.Jacobi(1), step_range=(0.01, 0.1))
    assert 0.03354 <= found <= 1.011 * 0.03354


@pytest.mark.slow
def test_limit_without_a_hint():
    for method, limit in ((cs.Jacobi(1), 0.03354), (cs.SemiImplicit(1), 0.07747)):
        assert abs(cs.critical_step(hide(split("F/F")), method) / limit - 1) < 0.011
    assert cs.critical_step(hide(split("F/F")), cs.SemiImplicit(0), step_range=(0.01, 1.0)) == np.inf


@pytest.mark.sample(1)
@pytest.mark.parametrize("fmi", [2, 3])
def test_fmus_that_hide_their_states(fmi):
    exact = cs.spectral_radius(fmu_split("F/F", fmi), cs.Jacobi(1), 0.03)
    system = fmu_split("F/F", fmi)
    for fmu in system.subsystems.values():
        del fmu.get_state, fmu.set_state
    assert abs(cs.spectral_radius(system, cs.Jacobi(1), 0.03) - exact) < 1e-7
    for fmu in system.subsystems.values():
        del fmu.save, fmu.restore
    assert abs(cs.spectral_radius(system, cs.Jacobi(1), 0.03) - exact) < 1e-7
    assert "unstable" in cs.check(system, cs.Jacobi(1), 0.04).codes()
    with pytest.raises(cs.CapabilityError, match="have the FMU exported with canGetAndSetFMUState"):
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
    exact = cs.spectral_radius(_pendulum(gain, 0.0), cs.Jacobi(1), 0.05)
    found = cs.estimate_stability(hide(_pendulum(gain, 0.0)), cs.Jacobi(1), 0.05)
    assert found.verdict == verdict
    assert abs(found.radius - exact) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("gain", "wrong"), [(1.0, "unstable"), (30.0, "stable"), (100.0, "stable")])
def test_nonlinear_and_moving(gain, wrong):
    """A run that bends a disturbance, and ends in a limit cycle, may leave the question open: no wrong answer."""
    assert cs.estimate_stability(hide(_pendulum(gain, 0.3)), cs.Jacobi(1), 0.05).verdict != wrong


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
    assert cs.estimate_stability(system, cs.Jacobi(0), 0.1).verdict == verdict


def test_noise_is_not_judged():
    class Noisy(Hidden):
        random = np.random.default_rng(1)

        def advance(self, t0, t1, u):
            return np.asarray(super().advance(t0, t1, u)) + 0.1 * self.random.standard_normal(2)

    system = split("F/F")
    system.subsystems["one"] = Noisy(system.subsystems["one"], False)
    found = cs.estimate_stability(system, cs.Jacobi(1), 0.03)
    assert found.verdict == "cannot tell"
    assert "noise" in found.reason
    advice = cs.check(system, cs.Jacobi(1), 0.03)
    assert advice.ok
    assert "not-analysed" in advice.codes()


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
    assert cs.estimate_stability(system, cs.Jacobi(1), 0.05).verdict == "stable"


def test_the_map_itself_needs_states():
    with pytest.raises(cs.SetupError, match="which 'one' does not give; estimate_stability"):
        cs.macro_map(hide(split("F/F")), cs.Jacobi(1), 0.03)
