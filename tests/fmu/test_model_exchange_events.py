"""State, time and step events of model-exchange FMUs against closed forms."""

from functools import partial

import numpy as np
import pytest
from tests.fmu.build import fmu
from tests.fmu.model_exchange_models import event_fmu

import cosolve as cs
from cosolve.fmu.model_exchange import ModelExchangeFmu
from cosolve.signal import Polynomial

VERSIONS = pytest.mark.parametrize("fmi", [2, 3])
SOLVERS = pytest.mark.parametrize(
    "options",
    [
        {"integrator": "dopri5"},
        {"integrator": "ode4", "internal_step": 0.03},
        {"integrator": "Radau", "rtol": 1e-10, "atol": 1e-12},
    ],
    ids=["dopri5", "ode4", "Radau"],
)
G, E = 9.81, 0.7


def _bounces(count, height=1.0):
    """Times, and speeds just after, of the bounces of a ball dropped from `height`."""
    v = np.sqrt(2 * G * height)
    t, times, speeds = v / G, [], []
    for _ in range(count):
        times.append(t)
        v *= E
        speeds.append(v)
        t += 2 * v / G
    return np.array(times), np.array(speeds)


def _ball(t):
    """Height, speed and number of bounces at time `t` (after an event at `t`)."""
    times, speeds = _bounces(60)
    n = int(np.searchsorted(times, t, side="right"))
    if n == 0:
        return 1.0 - 0.5 * G * t * t, -G * t, 0
    s = t - times[n - 1]
    return speeds[n - 1] * s - 0.5 * G * s * s, speeds[n - 1] - G * s, n


def _run(subsystem, t_end, step, **values):
    system = cs.System({"it": subsystem})
    for name, value in values.items():
        system.set(f"it.{name}", value)
    return cs.simulate(system, t_end=t_end, method=cs.Jacobi(degree=0), step=step)


@VERSIONS
@SOLVERS
@pytest.mark.parametrize("step", [0.05, 0.7])
def test_a_bouncing_ball_follows_the_closed_form(fmi, options, step):
    """Five bounces until 2.1 s, several of them inside one macro step of 0.7 s: heights and speeds to 1e-9."""
    ball = ModelExchangeFmu(fmu("ball_me", fmi), **options)
    result = _run(ball, 2.1, step, push=0.0)
    for t, x, v, n in zip(result.t, result["it.x"], result["it.v"], result["it.bounces"], strict=True):
        exact = _ball(t)
        assert x == pytest.approx(exact[0], abs=1e-9)
        assert v == pytest.approx(exact[1], abs=1e-9)
        assert n == exact[2]
    assert ball.events == _ball(2.1)[2] == 5


@VERSIONS
@SOLVERS
def test_states_reset_before_the_last_event_iteration_are_read_back(fmi, options):
    """The FMU resets its states in the first iteration of an event and asks for a second that changes nothing."""
    balls = [ModelExchangeFmu(fmu(name, fmi), **options) for name in ("ball_me", "ball_iterates")]
    one, two = (_run(ball, 2.1, 0.7, push=0.0) for ball in balls)
    assert two["it.bounces"][-1] == 5
    assert np.array_equal(two["it.x"], one["it.x"])
    assert np.array_equal(two["it.v"], one["it.v"])


@VERSIONS
def test_times_of_the_bounces(fmi):
    """Own steps end at events: the times at which the speed jumps, to 1e-12."""
    ball = ModelExchangeFmu(fmu("ball_me", fmi), integrator="dopri5")
    ball.start(0.0)
    u = Polynomial(0.0, 2.0, np.zeros((1, 1)))
    t, found = 0.0, []
    while t < 2.0:
        before = ball.events
        t, _ = ball.step(t, 2.0, u)
        if ball.events > before:
            found.append(t)
    assert np.abs(np.array(found) - _bounces(5)[0][: len(found)]).max() < 1e-12
    assert len(found) == 4


@VERSIONS
@SOLVERS
def test_an_event_exactly_at_a_macro_point(fmi, options):
    """The first bounce is the end of the first macro step: it happens there once, and values are those after it."""
    impact = float(np.sqrt(2 / G))
    for nudge in (0.0, 1e-15, -1e-15, 1e-13, -1e-13):  # roundings on either side
        ball = ModelExchangeFmu(fmu("ball_me", fmi), **options)
        ball.start(0.0)
        t1 = impact * (1 + nudge)
        first = ball.advance(0.0, t1, Polynomial(0.0, t1, np.zeros((1, 1))))
        second = ball.advance(t1, t1 + 0.3, Polynomial(t1, 0.3, np.zeros((1, 1))))
        assert first[2] in (0, 1)
        if nudge >= 1e-13:
            assert first[2] == 1
        assert (first[1] > 0) == (first[2] == 1)  # the speed is that after the bounce, if it was
        assert second[2] == ball.events == 1
        assert second[0] == pytest.approx(_ball(impact + 0.3)[0], abs=1e-9)


@VERSIONS
def test_rollback_over_events(fmi):
    """A step with a bounce in it, repeated with other inputs and then with the first again: same bits."""
    ball = ModelExchangeFmu(fmu("ball_me", fmi))
    ball.start(0.0)
    still, pushed = (Polynomial(0.0, 0.8, np.full((1, 1), push)) for push in (0.0, 3.0))
    state = ball.save()
    first = ball.advance(0.0, 0.8, still)
    ball.restore(state)
    other = ball.advance(0.0, 0.8, pushed)
    ball.restore(state)
    assert np.array_equal(ball.advance(0.0, 0.8, still), first)
    assert ball.events == 1
    assert not np.array_equal(other, first)


@VERSIONS
def test_jacobian_over_a_step_with_an_event_is_differenced(fmi):
    """A relay: x' = -s + u with s = +-1; u moves the switching time. Closed form of dx(H)/du by hand.

    With u held: x = (u - 1) t until x = -eps at t* = eps / (1 - u); then x = -eps + (1 + u)(t - t*).
    """
    relay = ModelExchangeFmu(event_fmu("relay", fmi))
    relay.start(0.0)
    u, eps, H = 0.1, 0.25, 0.5

    def end(u):
        t = eps / (1 - u)
        return -eps + (1 + u) * (H - t)

    signal = Polynomial(0.0, H, np.array([[u]]))
    J = relay.jacobian(0.0, H, signal, np.ones(1))
    slope = H - 2 * eps / (1 - u) ** 2
    increment = 1e-8 ** (1 / 3)  # cube root of rtol: the error of the central difference is increment^2 / 6 times
    third = -12 * eps / (1 - u) ** 4  # the third derivative
    assert slope == pytest.approx((end(u + 1e-6) - end(u - 1e-6)) / 2e-6, abs=1e-9)
    assert J[0, 0] == pytest.approx(slope + increment**2 * third / 6, abs=1e-8)
    relay.start(0.0)
    assert relay.advance(0.0, H, signal)[0] == pytest.approx(end(u), abs=1e-12)


@pytest.mark.sample(8)
@VERSIONS
@SOLVERS
@pytest.mark.parametrize("step", [0.1, 0.04, 0.25], ids=["on the samples", "between", "several per step"])
def test_a_sampled_controller_follows_the_exact_recursion(fmi, options, step):
    """`x' = -x + d`, `d = K (u - x)` at every sample: x_{k+1} = e x_k + (1 - e) d_k with e = exp(-TS)."""
    options = (
        {**options, "rtol": 1e-11, "atol": 1e-13}
        if "internal_step" not in options
        else {**options, "internal_step": 0.005}
    )
    result = _run(ModelExchangeFmu(event_fmu("sampled", fmi), **options), 1.0, step, u=0.5)
    e = np.exp(-0.1)
    x, held = [1.0], []
    for _ in range(11):
        held.append(2.0 * (0.5 - x[-1]))
        x.append(e * x[-1] + (1 - e) * held[-1])
    x, held = np.array(x), np.array(held)
    for t, found, d in zip(result.t, result["it.x"], result["it.held"], strict=True):
        k = int(np.floor(t / 0.1 + 1e-9))
        s = np.exp(-(t - 0.1 * k))
        assert found == pytest.approx(s * x[k] + (1 - s) * held[k], abs=1e-9)
        assert d == pytest.approx(held[k], abs=1e-9)  # at a sample: the value after it


@VERSIONS
def test_samples_at_macro_points_stay_in_step_for_long(fmi):
    """4000 samples of 1e-3 s at macro points of 1e-3 s: never twice, never left out, whatever the roundings."""
    sampled = ModelExchangeFmu(
        event_fmu("sampled", fmi), parameters={"ts": 1e-3}, integrator="ode1", internal_step=1e-3
    )
    sampled.start(0.0)
    for n in range(4000):
        sampled.advance(n * 1e-3, (n + 1) * 1e-3, Polynomial(n * 1e-3, 1e-3, np.zeros((1, 1))))
        assert sampled.events == n + 1


@VERSIONS
@SOLVERS
def test_step_events_are_handled(fmi, options):
    """A phase that is brought back by a turn after the internal step in which it passes pi."""
    result = _run(ModelExchangeFmu(event_fmu("phase", fmi), **options), 10.0, 0.25, u=2.0)
    turns = 2.0 * result.t / (2 * np.pi)
    assert np.abs(result["it.x"] + 2 * np.pi * result["it.turns"] - 2.0 * result.t).max() < 1e-9
    assert np.abs(result["it.x"]).max() < np.pi + 2.0 * 0.25
    assert result["it.turns"][-1] in (np.floor(turns[-1]), np.ceil(turns[-1]))


@VERSIONS
def test_a_relay_switches_at_the_exact_times(fmi):
    """A triangular wave of amplitude 0.25: zero at t = 0, -0.25 at 0.25, +0.25 at 0.75, ..."""
    result = _run(ModelExchangeFmu(event_fmu("relay", fmi)), 3.0, 0.1, u=0.0)
    phase = np.mod(result.t + 0.25, 1.0)
    exact = np.where(phase < 0.5, 0.25 - phase, phase - 0.75)
    assert np.abs(result["it.x"] - exact).max() < 1e-12


@VERSIONS
def test_a_new_input_can_cause_an_event_at_the_start_of_a_step(fmi):
    """Nothing passes zero inside the step: the indicator is on its other side as soon as the state is set."""
    relay = ModelExchangeFmu(event_fmu("relay", fmi))
    relay.start(0.0)
    relay.advance(0.0, 0.1, Polynomial(0.0, 0.1, np.zeros((1, 1))))
    assert relay.events == 0
    state = relay.get_state()
    relay._path.x = state - 1.0
    relay.advance(0.1, 0.2, Polynomial(0.1, 0.1, np.zeros((1, 1))))
    assert relay.events == 1


@VERSIONS
def test_zeno_behaviour_is_refused(fmi):
    """The bounces of the ball accumulate at t = (1 + E) / (1 - E) sqrt(2 h / g); the run stops just before."""
    limit = (1 + E) / (1 - E) * np.sqrt(2 / G)
    ball = ModelExchangeFmu(fmu("ball_me", fmi))
    with pytest.raises(
        cs.errors.SubsystemError, match=r"'it' failed .* they accumulate there \(Zeno behaviour"
    ) as caught:
        _run(ball, 4.0, 0.1, push=0.0)
    assert caught.value.result.t[-1] == pytest.approx(np.floor(limit * 10) / 10)
    assert ball._path.t == pytest.approx(limit, abs=1e-6)


@VERSIONS
def test_a_relay_without_hysteresis_is_refused(fmi):
    relay = ModelExchangeFmu(event_fmu("relay", fmi), parameters={"eps": 0.0}, start={"x": 0.05})
    with pytest.raises(cs.errors.SubsystemError, match=r"20 events between t = .* accumulate"):
        _run(relay, 1.0, 0.1, u=0.0)


@VERSIONS
def test_chattering_has_a_limit(fmi):
    """A hysteresis of 4e-4 switches 125 times in 0.1 s: allowed by the limit of 1000, refused by one of 100."""
    fine = ModelExchangeFmu(event_fmu("relay", fmi), parameters={"eps": 4e-4})
    _run(fine, 0.1, 0.1, u=0.0)
    assert fine.events == 125
    tight = ModelExchangeFmu(event_fmu("relay", fmi), parameters={"eps": 4e-4}, max_events=100)
    with pytest.raises(cs.errors.SubsystemError, match=r"more than 100 state events since t = 0.*chattering"):
        _run(tight, 0.1, 0.1, u=0.0)


@VERSIONS
def test_going_back_across_an_event_needs_the_state_of_the_fmu(fmi):
    """Without it: fine between samples, refused across one."""
    sampled = ModelExchangeFmu(event_fmu("sampled_no_rollback", fmi))
    sampled.start(0.0)
    state = sampled.save()
    u = partial(Polynomial, coefficients=np.zeros((1, 1)))
    first = sampled.advance(0.0, 0.05, u(0.0, 0.05))
    sampled.restore(state)
    assert np.array_equal(sampled.advance(0.0, 0.05, u(0.0, 0.05)), first)
    sampled.advance(0.05, 0.15, u(0.05, 0.1))
    with pytest.raises(cs.errors.SubsystemError, match=r"had an event after t = 0 and cannot go back across it"):
        sampled.restore(state)


@VERSIONS
def test_boolean_and_integer_inputs_change_at_events(fmi):
    """`x' = gain u` while on: whole numbers and Booleans are taken at the start of a macro step."""
    it = ModelExchangeFmu(event_fmu("switched", fmi))
    it.start(0.0)
    it.begin(0.0, np.array([2.0, 1.0, 1.0]))  # ends the initialisation, which counts as a change too
    assert [port.name for port in it.inputs] == ["u", "on", "gain"]
    first = it.get("changes")

    def go(t, u, on, gain):
        coefficients = np.array([[u, on, gain], [1.0, 0.0, 0.0]])  # u rises by 1 over the step
        return it.advance(t, t + 1.0, Polynomial(t, 1.0, coefficients))

    x, y, changes = go(0.0, 2.0, 1.0, 1.0)
    assert (x, y, changes - first) == (pytest.approx(2.5, abs=1e-12), 3.0, 0)
    x, y, changes = go(1.0, 2.0, 1.0, 3.0)
    assert (x, y, changes - first) == (pytest.approx(10.0, abs=1e-12), 9.0, 1)
    state = it.save()
    x, y, changes = go(2.0, 2.0, 0.0, 3.0)
    assert (x, y, changes - first) == (pytest.approx(10.0, abs=1e-12), 9.0, 2)
    it.restore(state)
    x, y, changes = go(2.0, 2.0, 1.0, 3.0)
    assert (x, y, changes - first) == (pytest.approx(17.5, abs=1e-12), 9.0, 1)
    it.restore(state)
    J = it.jacobian(2.0, 3.0, Polynomial(2.0, 1.0, np.array([[2.0, 1.0, 3.0]])), np.ones(1))
    assert np.abs(J - [[3.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]]).max() < 1e-12


@VERSIONS
def test_tunable_parameters_change_between_steps(fmi):
    it = ModelExchangeFmu(event_fmu("switched", fmi))
    it.start(0.0)
    u = Polynomial(0.0, 1.0, np.array([[1.0, 1.0, 1.0]]))
    assert it.advance(0.0, 1.0, u)[0] == pytest.approx(1.0, abs=1e-12)
    it.set_parameters({"scale": 5.0})
    assert it.advance(1.0, 2.0, Polynomial(1.0, 1.0, u.coefficients))[0] == pytest.approx(6.0, abs=1e-12)
    it.start(0.0)
    assert it.advance(0.0, 1.0, u)[0] == pytest.approx(5.0, abs=1e-12)  # stays for later runs
    ball = ModelExchangeFmu(fmu("ball_me", fmi))
    ball.set_parameters({"e": 0.5})
    ball.start(0.0)
    ball.begin(0.0, np.zeros(1))
    with pytest.raises(cs.errors.SetupError, match=r"'e' .* is fixed: it cannot be changed while the FMU runs"):
        ball.set_parameters({"e": 0.9})


@VERSIONS
@pytest.mark.parametrize("solver", ["auto", "Radau"])
def test_models_without_states(fmi, solver):
    """Nothing to integrate, still events and outputs."""
    it = ModelExchangeFmu(event_fmu("passing", fmi), integrator=solver)
    it.start(0.0)
    y, _ = it.advance(0.0, 1.0, Polynomial(0.0, 1.0, np.array([[1.0, 1.0, 2.0], [3.0, 0.0, 0.0]])))
    assert y == 8.0
    assert it.get_state().size == 0
    J = it.jacobian(1.0, 2.0, Polynomial(1.0, 1.0, np.array([[1.0, 1.0, 2.0]])), np.array([0.0, 1.0]))
    assert J[0].tolist() == [2.0, 0.0, 0.0]
