"""Model-exchange FMUs without events: the numbers of a native subsystem with the same integrator."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from examples.two_mass.model import SCHMOLL, force_displacement
from tests.fmu.build import build, fmu
from tests.fmu.catalogue import ALL, MODELS
from tests.fmu.model_exchange_models import event_fmu

import cosolve as cs
from cosolve.fmu.model_exchange import ModelExchangeFmu
from cosolve.integrator import trajectory
from cosolve.signal import Polynomial

VERSIONS = pytest.mark.parametrize("fmi", [2, 3])


def _mass(x, v, **options):
    p = SCHMOLL
    return cs.Ode(
        lambda t, s, u: [s[1], (-p.c1 / p.m1) * s[0] + (-p.d1 / p.m1) * s[1] + 1.0 / p.m1 * u[0]],
        lambda t, s, u: s,
        x0=[x, v],
        inputs=["f"],
        outputs=["x", "v"],
        **options,
    )


def _mass_with_spring(**options):
    p = SCHMOLL

    def rhs(t, s, u):
        a, b = -(p.c2 + p.ck) / p.m2, -(p.d2 + p.dk) / p.m2
        return [s[1], a * s[0] + b * s[1] + p.ck / p.m2 * u[0] + p.dk / p.m2 * u[1]]

    return cs.Ode(
        rhs,
        lambda t, s, u: [p.ck * (s[0] - u[0]) + p.dk * (s[1] - u[1]), s[0], s[1]],
        x0=[p.x2, p.v2],
        inputs=["x1", "v1"],
        outputs=["F", "x", "v"],
        **options,
    )


def _coupled(one, two):
    system = cs.System({"one": one, "two": two})
    system.connect("one.x", "two.x1")
    system.connect("one.v", "two.v1")
    system.connect("two.F", "one.f")
    return system


def _fmus(fmi, **options):
    p = SCHMOLL
    one = ModelExchangeFmu(fmu("mass_me", fmi), parameters={"c": p.c1, "d": p.d1}, start={"x": p.x1}, **options)
    spring = {"c": p.c2, "d": p.d2, "ck": p.ck, "dk": p.dk}
    two = ModelExchangeFmu(event_fmu("spring_me", fmi), parameters=spring, start={"x": p.x2}, **options)
    return _coupled(one, two)


METHODS = {
    "Jacobi": cs.Jacobi(degree=2),
    "Gauss-Seidel": cs.GaussSeidel(degree=1),
    "semi-implicit": cs.SemiImplicit(degree=2),
    "implicit": cs.Implicit(degree=2),
}


@pytest.mark.sample(4)
@VERSIONS
@pytest.mark.parametrize(
    "solver",
    [{"integrator": "dopri5"}, {"integrator": "ode4", "internal_step": 1e-5}, {"integrator": "Radau"}],
    ids=["dopri5", "ode4", "Radau"],
)
@pytest.mark.parametrize("method", METHODS)
def test_two_masses_give_the_numbers_of_native_subsystems(fmi, solver, method):
    """Same equations, same integrator, same step sizes: differences are roundings, far below the macro-step error.

    The FMU gives exact Jacobians where the native subsystem is differenced, hence the wider bound there; both are also
    held against the exact solution.
    """
    options = {"rtol": 1e-9, "atol": 1e-12, **solver} if "internal_step" not in solver else solver
    native = _coupled(_mass(SCHMOLL.x1, 0.0, **options), _mass_with_spring(**options))
    t_end = 5e-4 if solver["integrator"] == "Radau" else 2e-3
    run = partial(cs.simulate, t_end=t_end, method=METHODS[method], step=5e-5)
    expected, found = run(native), run(_fmus(fmi, **options))
    bound = 1e-12 if method in ("Jacobi", "Gauss-Seidel") else 1e-7
    for channel in ("one.x", "one.v", "two.x", "two.v"):
        size = np.abs(expected[channel]).max()
        assert np.abs(found[channel] - expected[channel]).max() < bound * size, channel
    exact = SCHMOLL.exact(found.t)
    assert np.abs(found["one.x"] - exact[:, 0]).max() < 2e-3
    assert np.abs(expected["one.x"] - exact[:, 0]).max() < 2e-3


@VERSIONS
def test_semi_implicit_run_equals_the_linear_one(fmi):
    """With tight tolerances the run is that of the exactly propagated subsystems, Jacobians included."""
    run = partial(cs.simulate, t_end=2e-3, method=cs.SemiImplicit(degree=2), step=5e-5)
    expected, found = run(force_displacement(SCHMOLL)), run(_fmus(fmi, integrator="dopri5", rtol=1e-13, atol=1e-15))
    for channel in ("one.x", "one.v", "two.x", "two.v"):
        size = np.abs(expected[channel]).max()
        assert np.abs(found[channel] - expected[channel]).max() < 1e-10 * size
    assert found.stats.calls == expected.stats.calls


@pytest.mark.sample(4)
@VERSIONS
@pytest.mark.parametrize(
    ("options", "bound"),
    [
        ({"integrator": "dopri5"}, 1e-7),
        ({"integrator": "ode4", "internal_step": 0.01}, 1e-7),
        ({"integrator": "ode1", "internal_step": 0.01}, 1e-7),
        ({"integrator": "auto", "rtol": 1e-10}, 1e-7),
        ({"integrator": "Radau", "rtol": 1e-10, "atol": 1e-12}, 1e-7),
    ],
    ids=["dopri5", "ode4", "ode1", "auto", "Radau"],
)
def test_jacobian_over_the_step_agrees_with_central_differences(fmi, options, bound):
    """A pendulum: the partials change along the step; outputs with and without feed-through; weights of degree 2."""
    pendulum = ModelExchangeFmu(fmu("pendulum_me", fmi), **options)
    weight = np.array([0.3, -1.0, 2.0])
    coefficients = np.array([[1.0], [0.5], [-2.0]])
    t0, H = 0.25, 0.4
    pendulum.start(t0)
    state = pendulum.save()
    J = pendulum.jacobian(t0, t0 + H, Polynomial(t0, H, coefficients), weight)
    advance = pendulum.replay if "replay" in cs.capabilities(pendulum) else pendulum.advance
    pendulum.restore(state)
    pendulum.advance(t0, t0 + H, Polynomial(t0, H, coefficients))
    ends = []
    increment = 1e-4
    for sign in (1, -1):
        pendulum.restore(state)
        ends.append(advance(t0, t0 + H, Polynomial(t0, H, coefficients + sign * increment * weight[:, None])))
    differenced = (ends[0] - ends[1]) / (2 * increment)
    assert J.shape == (2, 1)
    assert np.abs(J[:, 0] - differenced).max() < bound * np.abs(differenced).max()
    assert abs(J[0, 0] - J[1, 0] - 0.1 * weight.sum()) < 1e-12  # y = x + 0.1 u


@VERSIONS
def test_exact_jacobians_bring_the_steps_down(fmi):
    """One call per subsystem and subsystem step, as with subsystems that know their Jacobian; differences cost more."""
    run = partial(cs.simulate, t_end=1e-3, step=5e-5)
    system = _fmus(fmi, integrator="dopri5")
    exact = run(system, method=cs.SemiImplicit(degree=2))
    differenced = run(system, method=cs.SemiImplicit(degree=2, jacobian="difference"))
    native = run(force_displacement(SCHMOLL), method=cs.SemiImplicit(degree=2))
    assert exact.stats.calls == native.stats.calls
    assert sum(differenced.stats.calls.values()) > sum(exact.stats.calls.values())
    assert np.abs(exact["one.x"] - differenced["one.x"]).max() < 1e-6


@VERSIONS
@pytest.mark.parametrize("integrator", ["dopri5", "ode1", "ode4", "Radau"])
def test_outputs_of_a_step_are_those_of_its_end(fmi, integrator):
    """The solver evaluates the FMU elsewhere last, and one that is not told of steps has not seen their end."""
    step = {"internal_step": 0.05} if integrator.startswith("ode") else {}
    silent = {2: {"completedIntegratorStepNotNeeded": "true"}, 3: {"needsCompletedIntegratorStep": "false"}}[fmi]
    file = build("pendulum_me", replace(MODELS["pendulum_me"], flags={**ALL, **silent}), fmi)
    part = ModelExchangeFmu(file, integrator=integrator, **step)
    part.start(0.0)
    for k in range(2):
        u = Polynomial(0.1 * k, 0.1, np.array([[0.8], [0.5], [-0.4]]))
        found = part.advance(0.1 * k, 0.1 * (k + 1), u)
        assert found.tolist() == part.output(0.1 * (k + 1), u.end).tolist()
    part.advance(0.2, 0.3, Polynomial(0.2, 0.1, np.array([[0.0], [1.0]])))
    t, found, due = part.advance_to_event(0.3, 0.4, Polynomial(0.3, 0.1, np.array([[1.0], [-1.0]])))
    assert (t, due) == (0.4, False)
    assert found.tolist() == part.output(0.4, np.array([0.0])).tolist()


@VERSIONS
def test_rollback_is_exact_to_the_bit(fmi):
    pendulum = ModelExchangeFmu(fmu("pendulum_me", fmi))
    pendulum.start(0.0)
    u = Polynomial(0.0, 0.5, np.array([[1.0], [2.0]]))
    pendulum.advance(0.0, 0.5, u)
    state = pendulum.save()
    first = [pendulum.advance(0.5, 1.0, u), pendulum.advance(1.0, 1.5, u)]
    pendulum.restore(state)
    second = [pendulum.advance(0.5, 1.0, u), pendulum.advance(1.0, 1.5, u)]
    assert np.array_equal(first, second)
    pendulum.start(0.0)
    pendulum.advance(0.0, 0.5, u)
    third = [pendulum.advance(0.5, 1.0, u), pendulum.advance(1.0, 1.5, u)]
    assert np.array_equal(first, third)


@pytest.mark.sample(2)
@VERSIONS
@pytest.mark.parametrize("name", ["pendulum_me", "ball_me"])
def test_serialised_state_continues_identically_in_another_process(fmi, name):
    here = ModelExchangeFmu(fmu(name, fmi))
    here.start(0.0)
    u = Polynomial(0.0, 0.5, np.array([[0.5]]))
    here.advance(0.0, 0.5, u)
    data = here.serialise()
    there = cs.remote.Isolated(partial(ModelExchangeFmu, fmu(name, fmi)), timeout=60.0)
    there.start(0.0)
    there.deserialise(data)
    for n in range(3):
        t = 0.5 * (n + 1)
        assert np.array_equal(here.advance(t, t + 0.5, u), there.advance(t, t + 0.5, u))
    with pytest.raises(cs.errors.SubsystemError, match="3 bytes are not a saved state"):
        here.deserialise(b"abc")


@VERSIONS
def test_state_and_equations(fmi):
    """The analysis sees the same linearisation as of a native subsystem."""
    mass = ModelExchangeFmu(fmu("mass_me", fmi), start={"x": 0.5})
    mass.start(0.0)
    assert mass.get_state().tolist() == [0.5, 0.0]
    mass.set_state(np.array([1.0, 2.0]))
    assert mass.output(0.0, np.zeros(1)).tolist() == [1.0, 2.0]
    rhs, output, E = mass.equations()
    assert E is None
    assert rhs(0.0, np.array([1.0, 2.0]), np.array([3.0])).tolist() == [2.0, -1e4 - 4.0 + 3.0]
    assert output(0.0, np.array([1.0, 2.0]), np.array([3.0])).tolist() == [1.0, 2.0]
    radius = cs.analysis.spectral_radius(_fmus(fmi, integrator="dopri5"), cs.Jacobi(degree=1), 1e-5)
    expected = cs.analysis.spectral_radius(force_displacement(SCHMOLL), cs.Jacobi(degree=1), 1e-5)
    assert radius == pytest.approx(expected, abs=1e-6)


@VERSIONS
def test_feed_through_follows_the_description(fmi):
    """Unknown inputs (NaN) never reach the FMU; outputs that depend on them are unknown."""
    two = ModelExchangeFmu(event_fmu("spring_me", fmi))
    two.start(0.0)
    assert two.feedthrough().tolist() == [[True, True], [False, False], [False, False]]
    y = two.output(0.0, np.array([np.nan, 0.0]))
    assert np.isnan(y).tolist() == [True, False, False]


@VERSIONS
def test_without_fmu_states_smooth_models_roll_back_by_their_continuous_states(fmi):
    """Same bits as the FMU that saves its state."""
    results = []
    for file in (fmu("mass_me", fmi), event_fmu("mass_me_no_rollback", fmi)):
        p = SCHMOLL
        one = ModelExchangeFmu(file, parameters={"c": p.c1, "d": p.d1}, start={"x": p.x1})
        assert "rollback" in cs.capabilities(one)
        system = _coupled(one, ModelExchangeFmu(event_fmu("spring_me", fmi), start={"x": p.x2}))
        results.append(cs.simulate(system, t_end=1e-3, method=cs.SemiImplicit(degree=2), step=5e-5))
    for channel in results[0].names:
        assert np.array_equal(results[0][channel], results[1][channel])


@VERSIONS
def test_stiff_models_change_the_solver(fmi, monkeypatch):
    """A spring of 1e12 N/m with critical damping over a step of 1 s: 1000 explicit steps are not enough."""
    stiff = {"c": 1e12, "d": 2e6, "m": 1.0}
    mass = ModelExchangeFmu(fmu("mass_me", fmi), parameters=stiff, start={"x": 0.0}, integrator="auto", rtol=1e-6)
    mass.start(0.0)
    x, v = mass.advance(0.0, 1.0, Polynomial(0.0, 1.0, np.array([[1e12]])))
    assert x == pytest.approx(1.0, abs=1e-6)
    assert abs(v) < 1e-3
    assert mass._path.stiff
    hard = ModelExchangeFmu(fmu("mass_me", fmi), parameters=stiff, start={"x": 0.0}, integrator="dopri5")
    hard.start(0.0)
    monkeypatch.setattr(trajectory, "MAX_STEPS", 1500)  # instead of 10 000, to save time
    with pytest.raises(RuntimeError, match=r"more than 1500 steps .* integrator='Radau'"):
        hard.advance(0.0, 1.0, Polynomial(0.0, 1.0, np.array([[1e12]])))


@VERSIONS
def test_not_a_number_is_refused(fmi):
    mass = ModelExchangeFmu(fmu("mass_me", fmi), parameters={"m": 1e-320}, integrator="ode4", internal_step=0.1)
    mass.start(0.0)
    with pytest.raises(cs.errors.NonFiniteError, match=r"state \d became"):
        mass.advance(0.0, 1.0, Polynomial(0.0, 1.0, np.ones((1, 1))))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"integrator": "magic"}, "unknown integrator 'magic'; it takes one of auto, dopri5"),
        ({"integrator": "ode4"}, "needs internal_step"),
        ({"internal_step": 0.1}, "chooses its own"),
        ({"rtol": -1.0}, "rtol must be a positive number"),
        ({"max_events": 0}, "max_events must be a whole number"),
        ({"parameters": {"stiffness": 1.0}}, "has no variable 'stiffness'"),
        ({"parameters": {"x": 1.0}}, "not a parameter"),
        ({"inputs": ["x"]}, "not an input"),
    ],
)
def test_bad_options_are_refused(options, expected):
    with pytest.raises(cs.errors.SetupError, match=expected):
        ModelExchangeFmu(fmu("mass_me", 2), **options)


def test_a_co_simulation_fmu_is_refused():
    with pytest.raises(cs.errors.SetupError, match="is not made for model exchange, only for co-simulation"):
        ModelExchangeFmu(fmu("mass_force", 2))


def test_arrays_of_states():
    """FMI 3.0: three states in one variable; exact solutions of x' = -k x + a + b s over one step."""
    it = ModelExchangeFmu(event_fmu("vector", 3), integrator="dopri5", rtol=1e-12, atol=1e-14)
    assert [(port.name, port.size) for port in (*it.inputs, *it.outputs)] == [("u", 3), ("x", 3), ("y", 3)]
    it.start(0.0)
    a, b, k = np.array([0.5, 1.0, -1.0]), np.array([1.0, 0.0, 2.0]), np.array([1.0, 2.0, 3.0])
    u = Polynomial(0.0, 1.0, np.array([a, b]))
    state = it.save()
    J = it.jacobian(0.0, 1.0, u, np.array([0.0, 1.0]))
    it.restore(state)
    y = it.advance(0.0, 1.0, u)
    offset = a / k - b / k**2  # particular solution offset + b s / k
    x = offset + b / k + (1.0 - offset) * np.exp(-k)
    assert np.abs(y[:3] - x).max() < 1e-10
    assert np.abs(y[3:] - (a + b + np.roll(x, -1))).max() < 1e-10
    ramp = 1 / k - (1 - np.exp(-k)) / k**2  # response to u = s
    assert np.abs(J[:3] - np.diag(ramp)).max() < 1e-10
    assert np.abs(J[3:] - (np.eye(3) + np.roll(np.diag(ramp), -1, axis=0))).max() < 1e-10
    assert it.feedthrough().sum() == 9  # dependencies are told per variable
