"""A macro step that ends at an event of one subsystem, so that the others see it: order, grid, rollback, refusals."""

import numpy as np
import pytest
from tests.run.stepper.bounce import Ball, GoingBack, coupled, exact, tank

import cosolve as cs

STEPS = [0.1, 0.05, 0.025, 0.0125]
T_END = 1.6  # after three bounces


def error(ball, method, step, **options):
    end = exact(T_END)[1]
    result = cs.simulate(coupled(ball), t_end=T_END, method=method, step=step, **options)
    return max(abs(result["tank.h"][-1] - end[2]), abs(result["ball.v"][-1] - end[1]))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "method",
    [cs.Jacobi(1), cs.GaussSeidel(1), cs.SemiImplicit(1), cs.Implicit(1)],
    ids=lambda m: m.label,
)
def test_stopping_at_bounces_restores_the_order(method):
    """Second order where steps end at the bounces; where they do not, the error of a jump inside a step is O(H)."""
    seen = [error(GoingBack(), method, H, stop_at_events=True) for H in STEPS]
    unseen = error(GoingBack(), method, STEPS[-1])
    slope = np.polyfit(np.log(STEPS), np.log(seen), 1)[0]
    assert slope > 1.6
    assert unseen > 8 * seen[-1]
    assert seen[-1] < 2e-3


def test_implicit_of_degree_two_is_of_third_order_between_events():
    seen = [error(GoingBack(), cs.Implicit(2), H, stop_at_events=True) for H in STEPS]
    assert np.polyfit(np.log(STEPS), np.log(seen), 1)[0] > 2.6


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.Implicit(1)], ids=lambda m: m.label)
def test_the_grid_stays_and_the_bounces_are_points_of_it(method):
    result = cs.simulate(coupled(GoingBack()), t_end=T_END, method=method, step=0.1, stop_at_events=True)
    plain = cs.simulate(coupled(GoingBack()), t_end=T_END, method=method, step=0.1)
    assert set(plain.t) <= set(result.t)  # to the bit
    assert result.stats.events == 3
    assert "3 macro steps ended at events" in str(result.stats)
    bounces = 1 + np.flatnonzero((result["ball.v"][1:] > 0) & (result["ball.v"][:-1] < 0))
    assert np.allclose(result["ball.x"][bounces], 0.0, atol=1e-8)  # values are those after the event
    assert (result["tank.v"][bounces] > 0).all()
    assert np.allclose(result.t[bounces], exact(T_END)[0], atol=0.02)
    assert not set(result.t[bounces]) & set(plain.t)


def test_before_the_first_event_nothing_changes_by_a_bit():
    runs = [
        cs.simulate(coupled(GoingBack()), t_end=T_END, method=cs.SemiImplicit(2), step=0.1, stop_at_events=stop)
        for stop in (True, False)
    ]
    assert np.array_equal(runs[0].column("y")[:5], runs[1].column("y")[:5])


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.GaussSeidel(1), cs.GaussSeidel(1, order=["ball"])])
def test_explicit_methods_need_no_rollback_of_the_one_that_stops(method):
    """The ball keeps its subsystem step; the tank advances up to the bounce only, or goes back."""
    with_rollback = error(GoingBack(), method, 0.05, stop_at_events=True)
    assert error(Ball(), method, 0.05, stop_at_events=True) == with_rollback


class OneWay(cs.Subsystem):
    """A tank that cannot go back."""

    inputs, outputs = ["v"], ["h"]

    def start(self, t0):
        self.inner = tank()
        return self.inner.start(t0)

    def advance(self, t0, t1, u):
        return self.inner.advance(t0, t1, u)


def test_who_has_passed_the_event_and_cannot_go_back_is_named():
    system = coupled(Ball(), OneWay())
    assert cs.simulate(system, t_end=T_END, method=cs.Jacobi(1), step=0.1, stop_at_events=True).stats.events == 3
    first = cs.GaussSeidel(1, order=["ball"])
    assert cs.simulate(system, t_end=T_END, method=first, step=0.1, stop_at_events=True).stats.events == 3
    with pytest.raises(
        cs.errors.SubsystemError, match=r"'tank' has already taken .*GaussSeidel\(order=\['ball'\]\)"
    ) as stop:
        cs.simulate(system, t_end=T_END, method=cs.GaussSeidel(1), step=0.1, stop_at_events=True)
    assert stop.value.time == pytest.approx(0.4)
    assert stop.value.result.t[-1] == pytest.approx(0.4)


class High(GoingBack):
    """Dropped from twice the height."""

    def start(self, t0):
        super().start(t0)
        self.x = 2.0
        return [self.x, self.v]


class HighOneWay(High):
    save = restore = None


def test_of_two_events_in_a_step_the_first_one_ends_it():
    def pair(high):
        system = cs.System({"high": high, "low": GoingBack()})
        for name in ("high", "low"):
            system.set(f"{name}.push", 0.0)
        return system

    g = 9.81
    run = {"t_end": 1.0, "step": 0.7, "stop_at_events": True}
    for method in (cs.Jacobi(0), cs.GaussSeidel(0), cs.SemiImplicit(0)):
        result = cs.simulate(pair(High()), method=method, **run)
        assert np.allclose(result.t, [0.0, np.sqrt(2 / g), np.sqrt(4 / g), 0.7, 1.0], atol=1e-8)
    with pytest.raises(
        cs.errors.SubsystemError, match=r"'low' has an event at t = 0\.45.*, but 'high' has already taken"
    ):
        cs.simulate(pair(HighOneWay()), method=cs.Jacobi(0), **run)


class Lamp(cs.Subsystem):
    """On while the speed is positive: reacts to an event of another subsystem in the same instant."""

    inputs, outputs = ["v"], ["on"]

    def start(self, t0):
        self.on = 0.0
        return self.on

    def advance(self, t0, t1, u):
        return self.on

    def advance_to_event(self, t0, t1, u):
        return t1, self.on, False

    def handle_event(self, t, u):
        self.on = float(u[0] > 0)
        return self.on


def test_an_event_reaches_others_in_the_same_instant():
    system = cs.System({"ball": Ball(), "lamp": Lamp()})
    system.connect("ball.v", "lamp.v")
    system.set("ball.push", 0.0)
    result = cs.simulate(system, t_end=0.6, method=cs.Jacobi(0), step=0.1, stop_at_events=True)
    assert np.array_equal(result["lamp.on"], (result["ball.v"] > 0).astype(float))
    assert result["lamp.on"][5] == 1.0  # at the bounce itself


class Contrary(Lamp):
    """Wants the opposite of its input, and has an event at t = 0.25."""

    def advance_to_event(self, t0, t1, u):
        return (0.25, self.on, True) if t0 < 0.25 < t1 else (t1, self.on, False)

    def handle_event(self, t, u):
        self.on = 1.0 - u[0]
        return self.on


def test_events_that_cause_each_other_without_end_are_refused():
    system = cs.System({"a": Contrary(), "b": Lamp()})
    system.connect("a.on", "b.v")
    system.connect("b.on", "a.v")
    with pytest.raises(cs.errors.SimulationError, match=r"at t = 0\.25 cause each other without end"):
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.1, stop_at_events=True)


def test_events_without_end_are_refused():
    class Chatter(Lamp):
        def advance_to_event(self, t0, t1, u):
            return min(t0 + 1e-5, t1), self.on, True

    system = cs.System({"a": Chatter()})
    system.set("a.v", 0.0)
    with pytest.raises(
        cs.errors.SimulationError, match="more than 1000 events since t = 1e-05, less than a macro step ago"
    ):
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.1, stop_at_events=True)


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.SemiImplicit(1)], ids=lambda m: m.label)
def test_adaptive_steps_stop_too(method):
    control = cs.Adaptive(rtol=1e-3, first_step=1e-2)
    seen = error(GoingBack(), method, control, stop_at_events=True)
    assert seen < 2e-2
    result = cs.simulate(coupled(GoingBack()), t_end=T_END, method=method, step=control, stop_at_events=True)
    assert result.stats.events == 3


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.Implicit(1)], ids=lambda m: m.label)
def test_a_stepper_stops_and_a_state_saved_between_two_grid_points_continues_there(method):
    run = {"t_end": T_END, "method": method, "step": 0.1, "stop_at_events": True}
    whole = cs.simulate(coupled(GoingBack()), **run)
    with cs.Stepper(coupled(GoingBack()), **run, record=True) as stepper:
        while stepper["ball.v"] <= 0:
            stepper.step()
        assert stepper["ball.x"] == pytest.approx(0.0, abs=1e-8)
        here = stepper.save()
        stepper.run_until(T_END)
        assert np.array_equal(stepper.result().column("y"), whole.column("y"))
        stepper.restore(here)
        assert stepper.step() == 0.5
        stepper.run_until(T_END)
        assert np.array_equal(stepper.result().column("y"), whole.column("y"))


def test_in_threads_and_in_a_process_of_its_own_the_bits_are_the_same():
    run = {"t_end": T_END, "step": 0.1, "stop_at_events": True}
    for method in (cs.Jacobi(1), cs.Implicit(1, jacobian="difference")):
        whole = cs.simulate(coupled(GoingBack()), method=method, **run).column("y")
        assert np.array_equal(cs.simulate(coupled(GoingBack()), method=method, workers=2, **run).column("y"), whole)
        apart = cs.remote.Isolated(GoingBack())
        assert np.array_equal(cs.simulate(coupled(apart), method=method, **run).column("y"), whole)
        apart.close()


def test_refusals():
    run = {"t_end": 1.0, "step": 0.1, "stop_at_events": True}
    with pytest.raises(cs.errors.SetupError, match="none of the subsystems can end a step at an event"):
        cs.simulate(cs.System({"a": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])}), method=cs.Jacobi(), **run)
    with pytest.raises(
        cs.errors.SetupError, match="compiled=True: macro steps that end at events are advanced by the Python engine"
    ):
        cs.simulate(coupled(GoingBack()), method=cs.Jacobi(), compiled=True, **run)
    follower = cs.Ode(lambda t, x, u: u, lambda t, x, u: x, x0=[0.0], inputs=["v"], outputs=["h"])
    with pytest.raises(cs.errors.CapabilityError, match="LeaderFollower does not end its macro steps at events"):
        cs.simulate(coupled(Ball(), follower), method=cs.LeaderFollower(leader="tank"), **run)

    class Wrong(Lamp):
        def advance_to_event(self, t0, t1, u):
            return t0, self.on, True

    system = cs.System({"a": Wrong()})
    system.set("a.v", 0.0)
    with pytest.raises(
        cs.errors.SubsystemError, match=r"'a' failed .* expected \(t, outputs, event\) with 0 < t <= 0\.1"
    ):
        cs.simulate(system, method=cs.Jacobi(), **run)


def test_the_end_of_a_run_is_found_inside_a_step():
    """With saved states at hand an explicit run, too, ends where it was asked for."""
    from tests.run.stepper.test_end import Countdown

    system = cs.System({"tank": Countdown("inside"), "ball": Ball()})
    system.connect("ball.v", "tank.u")
    system.set("ball.push", 0.0)
    result = cs.simulate(system, t_end=2.0, method=cs.Jacobi(1), step=0.1, stop_at_events=True)
    assert result.ended == "ended at t = 0.6 because 'tank' asked for it at t = 0.65: almost empty"  # the ball is ahead
    system = cs.System({"tank": Countdown("inside"), "ball": GoingBack()})
    system.connect("ball.v", "tank.u")
    system.set("ball.push", 0.0)
    result = cs.simulate(system, t_end=2.0, method=cs.Jacobi(1), step=0.1, stop_at_events=True)
    assert result.ended == "ended at t = 0.65 because 'tank' asked for it: almost empty"
    assert result.t[-1] == 0.65


@pytest.mark.parametrize(
    ("ball", "method"), [(Ball, cs.Jacobi(0)), (GoingBack, cs.Jacobi(0)), (GoingBack, cs.SemiImplicit(0))]
)
def test_a_driven_input_with_a_jump_before_the_event(ball, method):
    """Without push until 0.3, then with 5: the step to 0.5 is advanced in parts, and ends at the bounce."""
    system = cs.System({"ball": ball(), "lamp": Lamp() if ball is Ball else LampBack()})
    system.connect("ball.v", "lamp.v")
    system.set("ball.push", cs.Table([0.0, 0.3, 1.0], [0.0, 5.0, 5.0], kind="step"))
    result = cs.simulate(system, t_end=0.6, method=method, step=0.5, stop_at_events=True)
    x, v = 1.0 - 0.5 * 9.81 * 0.3**2, -9.81 * 0.3
    a = 5.0 - 9.81
    bounce = 0.3 + (-v - np.sqrt(v * v - 2 * a * x)) / a
    assert np.allclose(result.t, [0.0, bounce, 0.5, 0.6], atol=1e-9)
    assert result.stats.events == 1


class LampBack(Lamp):
    def save(self):
        return self.on

    def restore(self, state):
        self.on = state
