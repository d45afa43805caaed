"""Differential equations with events: where they happen, what they do, and what they cost the coupling."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cosolve as cs

GRAVITY = 9.81


def alone(subsystem: cs.Subsystem, t_end: float, step: float, **options) -> cs.Result:
    options.setdefault("method", cs.Jacobi())
    return cs.simulate(cs.System({"it": subsystem}), t_end=t_end, step=step, **options)


def ball(height: float = 1.0, restitution: float = 0.8, **options) -> cs.HybridOde:
    return cs.HybridOde(
        lambda t, x, u: [x[1], -GRAVITY],
        lambda t, x, u: x,
        x0=[height, 0.0],
        inputs=[],
        outputs=["x", "v"],
        indicators=lambda t, x, u: x[0],
        jump=lambda t, x, u, changed: [0.0, -restitution * x[1]] if changed[0] < 0 else x,
        **options,
    )


def bounces(height: float, restitution: float, t_end: float) -> tuple[list[float], list[float]]:
    """Times of the bounces and the speeds after them, in closed form."""
    t, v = np.sqrt(2 * height / GRAVITY), restitution * np.sqrt(2 * height * GRAVITY)
    times, speeds = [], []
    while t < t_end:
        times.append(t)
        speeds.append(v)
        t, v = t + 2 * v / GRAVITY, restitution * v
    return times, speeds


def flight(t: np.ndarray, height: float, restitution: float) -> np.ndarray:
    times, speeds = bounces(height, restitution, t[-1])
    x = height - GRAVITY / 2 * t**2
    for begin, speed in zip(times, speeds, strict=True):
        since = t - begin
        x = np.where(since >= 0, speed * since - GRAVITY / 2 * since**2, x)
    return x


@pytest.mark.parametrize("stop_at_events", [False, True])
@pytest.mark.parametrize(
    "integrator", [{}, {"integrator": "ode4", "internal_step": 0.01}, {"integrator": "Radau"}, {"integrator": "DOP853"}]
)
def test_bounces_as_the_closed_form_has_them(integrator: dict, stop_at_events: bool) -> None:
    """Parabolas are exact for all these integrators: what remains is where the bounces were found, six of them."""
    body = ball(**integrator)
    run = alone(body, 3.0, 0.07, stop_at_events=stop_at_events)
    assert body.events == len(bounces(1.0, 0.8, 3.0)[0]) == 6
    assert run["it.x"] == pytest.approx(flight(run.t, 1.0, 0.8), abs=1e-8)
    assert run["it.x"].min() > -1e-12


def test_macro_steps_end_at_the_bounces_and_nowhere_twice() -> None:
    """An indicator is a rounding error away from zero there, and must not fall again at the start of the next step."""
    run = alone(ball(), 3.0, 0.07, stop_at_events=True)
    times, speeds = bounces(1.0, 0.8, 3.0)
    at = [int(np.abs(run.t - t).argmin()) for t in times]
    assert run.t[at] == pytest.approx(times, abs=1e-9)
    assert run["it.v"][at] == pytest.approx(speeds, abs=1e-8)  # recorded after the event
    assert run.stats.events == 6


def test_modes_are_states_that_jump() -> None:
    """A thermostat between 19 and 21 degrees: heating towards 30 and cooling towards 10, with closed-form periods."""
    room = cs.HybridOde(
        lambda t, x, u: [(30.0 if x[1] else 10.0) - x[0], 0.0],
        lambda t, x, u: x,
        x0=[20.0, 1.0],
        inputs=[],
        outputs=["T", "heating"],
        indicators=lambda t, x, u: [x[0] - 19.0, 21.0 - x[0]],
        jump=lambda t, x, u, changed: [x[0], 1.0 if changed[0] < 0 else 0.0 if changed[1] < 0 else x[1]],
        rtol=1e-10,
        atol=1e-12,
    )
    up, down, first = np.log(11 / 9), np.log(11 / 9), np.log(10 / 9)
    run = alone(room, first + 4 * (up + down) + 1e-6, 0.05, stop_at_events=True)
    switched = run.t[1:][np.diff(run["it.heating"]) != 0]
    assert switched == pytest.approx(first + up * np.arange(9), abs=1e-8)
    assert run["it.T"].min() > 19 - 1e-9
    assert run["it.T"].max() < 21 + 1e-9


def test_a_jump_that_makes_others_change_is_followed_by_theirs() -> None:
    """Three tipping buckets, each filling the next: when the first tips, all do, at the same time and once each."""
    seen = []

    def jump(t, x, u, changed):
        seen.append((t, *changed))
        x = x.copy()
        for k in np.flatnonzero(changed < 0):
            x[k] = 0.0
            if k < 2:
                x[k + 1] += 2.0
        return x

    buckets = cs.HybridOde(
        lambda t, x, u: [1.0, 0.0, 0.0],
        lambda t, x, u: x,
        x0=[0.0, 0.0, 0.0],
        inputs=[],
        outputs=["a", "b", "c"],
        indicators=lambda t, x, u: 1.5 - x,
        jump=jump,
    )
    run = alone(buckets, 2.0, 0.4)
    assert [one[1:] for one in seen] == [(-1, 0, 0), (0, -1, 0), (0, 0, -1)]
    assert [one[0] for one in seen] == pytest.approx([1.5] * 3, abs=1e-9)
    assert [run[f"it.{name}"][-1] for name in "abc"] == pytest.approx([0.5, 0.0, 0.0], abs=1e-9)


def test_a_kink_needs_no_jump() -> None:
    """A mass against a one-sided spring: half a period in it, free flight before and after."""
    mass = cs.HybridOde(
        lambda t, x, u: [x[1], -max(x[0], 0.0) * 100.0],
        lambda t, x, u: x,
        x0=[-0.5, 1.0],
        inputs=[],
        outputs=["x", "v"],
        indicators=lambda t, x, u: x[0],
        integrator="ode5",
        internal_step=0.002,
    )
    run = alone(mass, 1.5, 0.1)
    left_at = 0.5 + np.pi / 10
    assert run["it.x"][-1] == pytest.approx(left_at - 1.5, abs=1e-11)
    assert run["it.v"][-1] == pytest.approx(-1.0, abs=1e-11)
    assert mass.events == 2


def test_an_indicator_at_zero_at_the_start_is_in_the_domain_it_goes_to() -> None:
    thrown = ball(height=0.0)
    thrown.x0 = np.array([0.0, 2.0])
    run = alone(thrown, 0.6, 0.05)
    since = 0.6 - 4.0 / GRAVITY
    assert run["it.x"][-1] == pytest.approx(1.6 * since - GRAVITY / 2 * since**2, abs=1e-9)


def test_inputs_that_jump_at_a_macro_point_cause_events_there() -> None:
    """A relay that reads a staircase: it switches at the points where the stairs pass one half."""
    relay = cs.HybridOde(
        lambda t, x, u: [0.0],
        lambda t, x, u: x,
        x0=[0.0],
        inputs=["u"],
        outputs=["on"],
        indicators=lambda t, x, u: u[0] - 0.5,
        jump=lambda t, x, u, changed: [float(changed[0] > 0)],
    )
    system = cs.System({"relay": relay})
    system.set("relay.u", cs.Table([0.0, 0.4, 0.4, 0.8, 0.8, 1.2], [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]))
    run = cs.simulate(system, t_end=1.2, method=cs.Jacobi(), step=0.1)
    on = run.t[run["relay.on"] > 0.5]
    assert (on.min(), on.max()) == pytest.approx((0.5, 0.8))  # the step that begins with the new value shows it


# -- coupled: a ball on a spring and a damper under an oscillator, that hits the ground three times ---

STIFFNESS, DAMPING, RESTITUTION, T_END = 40.0, 0.5, 0.7, 0.9


def coupled() -> cs.System:
    accurate = {"rtol": 1e-11, "atol": 1e-12}
    hit = cs.HybridOde(
        lambda t, x, u: [x[1], u[0] - GRAVITY],
        lambda t, x, u: x,
        x0=[0.3, 0.0],
        inputs=["f"],
        outputs=["x", "v"],
        indicators=lambda t, x, u: x[0],
        jump=lambda t, x, u, changed: [0.0, -RESTITUTION * x[1]] if changed[0] < 0 else x,
        **accurate,
    )
    mass = cs.Ode(
        lambda t, x, u: [x[1], -30 * x[0] - STIFFNESS * (x[0] - u[0]) - DAMPING * (x[1] - u[1])],
        lambda t, x, u: STIFFNESS * (x[0] - u[0]) + DAMPING * (x[1] - u[1]),
        x0=[0.4, 0.0],
        inputs=["x", "v"],
        outputs=["f"],
        **accurate,
    )
    system = cs.System({"ball": hit, "mass": mass})
    for source, target in (("ball.x", "mass.x"), ("ball.v", "mass.v"), ("mass.f", "ball.f")):
        system.connect(source, target)
    return system


@cache
def undivided() -> tuple[np.ndarray, int]:
    """The whole in one piece, by SciPy and its own event search."""

    def rhs(t, s):
        f = STIFFNESS * (s[2] - s[0]) + DAMPING * (s[3] - s[1])
        return [s[1], f - GRAVITY, s[3], -30 * s[2] - f]

    def ground(t, s):
        return s[0]

    ground.terminal, ground.direction = True, -1
    t, s, hits = 0.0, np.array([0.3, 0.0, 0.4, 0.0]), 0
    while t < T_END:
        found = solve_ivp(rhs, (t, T_END), s, "DOP853", rtol=1e-13, atol=1e-13, events=ground)
        t, s = found.t[-1], found.y[:, -1].copy()
        if found.status == 1:
            s[:2], hits = (0.0, -RESTITUTION * s[1]), hits + 1
    return s, hits


def coupled_error(method: cs.Method, count: int, stop_at_events: bool) -> float:
    run = cs.simulate(coupled(), t_end=T_END, method=method, step=T_END / count, stop_at_events=stop_at_events)
    end, _ = undivided()
    return max(abs(run["ball.x"][-1] - end[0]), abs(run["ball.v"][-1] - end[1]) / 10)


@pytest.mark.parametrize(
    ("method", "order"),
    [(cs.Jacobi(2), 2.5), (cs.Jacobi(3), 3.5), (cs.SemiImplicit(1), 1.8), (cs.Implicit(2, tol=1e-12), 2.7)],
    ids=["Jacobi2", "Jacobi3", "SemiImplicit1", "Implicit2"],
)
def test_early_return_at_events_keeps_the_order(method: cs.Method, order: float) -> None:
    """Three hits: order one whatever the degree without stops, degree + 1 with them."""
    assert undivided()[1] == 3
    stopped = [coupled_error(method, count, True) for count in (45, 180)]
    across = coupled_error(method, 180, False)
    assert np.log2(stopped[0] / stopped[1]) / 2 > order - 0.3
    assert stopped[1] < across / 50


def test_both_engines_give_the_same_bits() -> None:
    def pair() -> cs.System:
        """The ball, and a mass that is never at its only event, so that compiled loops can call both."""
        system = coupled()
        mass = cs.HybridOde(
            lambda t, x, u: [x[1], -30 * x[0] - u[0]],
            lambda t, x, u: -STIFFNESS * (u[0] - x[0]),
            x0=[0.4, 0.0],
            inputs=["x"],
            outputs=["f"],
            indicators=lambda t, x, u: 1.0,
        )
        system = cs.System({"ball": system.subsystems["ball"], "mass": mass})
        system.connect("ball.x", "mass.x")
        system.connect("mass.f", "ball.f")
        return system

    runs = [cs.simulate(pair(), t_end=0.5, method=cs.Jacobi(), step=0.01, compiled=flag) for flag in (False, True)]
    assert np.array_equal(runs[0].column("y"), runs[1].column("y"))


def test_rollback_and_saved_states(tmp_path) -> None:
    """Back to before a bounce and on again with the same bits, in memory and through a file."""
    report = cs.check(coupled(), cs.SemiImplicit(1), step=0.01)
    assert not [finding for finding in report.findings if finding.level == "error"]
    taken = {"method": cs.SemiImplicit(1), "step": 1 / 128}
    whole = cs.simulate(coupled(), t_end=0.5, **taken)
    state = tmp_path / "state.bin"
    cs.simulate(coupled(), t_end=0.25, save_state=state, **taken)
    rest = cs.simulate(coupled(), t_end=0.5, resume=state, **taken)
    assert np.array_equal(rest["ball.x"], whole["ball.x"][-len(rest.t) :])


def test_system_files_can_ask_for_stops(tmp_path) -> None:
    (tmp_path / "balls.py").write_text("from tests.subsystem.test_hybrid_ode import ball\n")
    (tmp_path / "fall.toml").write_text(
        '[subsystems.it]\nfactory = "balls:ball"\n'
        '[simulation]\nt_end = 1.0\nmethod = "jacobi"\nstep = 0.07\nstop_at_events = true\n'
    )
    assert cs.load_system(tmp_path / "fall.toml").run().stats.events == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"indicators": lambda t, x: x[0]}, r"HybridOde: indicators .*t, x, u"),
        ({"jump": lambda t, x, u: x}, r"HybridOde: jump .*changed"),
        ({"jump": 3}, r"HybridOde.*jump"),
        ({"integrator": "rodas4"}, r"HybridOde: unknown integrator 'rodas4'; it takes one of auto, dopri5"),
        ({"integrator": "ode4"}, r"HybridOde: integrator 'ode4' takes fixed steps and needs internal_step"),
        ({"max_events": 0.5}, r"HybridOde.*max_events"),
    ],
)
def test_bad_arguments(options: dict, words: str) -> None:
    given = {"indicators": lambda t, x, u: x[0], "x0": [1.0], "inputs": [], "outputs": ["x"], **options}
    with pytest.raises(cs.errors.SetupError, match=words):
        cs.HybridOde(lambda t, x, u: [-1.0], lambda t, x, u: x, **given)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"jump": lambda t, x, u, changed: None}, r"jump returned None, expected 2 real numbers, the states after"),
        ({"jump": lambda t, x, u, changed: [0.0]}, r"jump returned 1 numbers, expected 2"),
        ({"indicators": lambda t, x, u: np.nan}, r"indicators returned \[nan\] at t = 0"),
        ({"indicators": lambda t, x, u: x[: 1 + (t > 0.2)]}, r"indicators returned 2 numbers, expected 1, as many as"),
        (
            {"indicators": lambda t, x, u: np.sin(1e5 * t) - 0.5, "max_events": 50},
            r"more than 50 state events .*chat",
        ),
    ],
)
def test_bad_functions_end_the_run_with_a_sentence(options: dict, words: str) -> None:
    given = {
        "indicators": lambda t, x, u: x[0],
        "jump": lambda t, x, u, changed: x,
        "integrator": "ode4",
        "internal_step": 1e-5 if "max_events" in options else 1e-2,
        **options,
    }
    falling = cs.HybridOde(
        lambda t, x, u: [x[1], -GRAVITY], lambda t, x, u: x[0], x0=[1.0, 0.0], inputs=[], outputs=["x"], **given
    )
    with pytest.raises(cs.errors.SubsystemError, match=words) as caught:
        alone(falling, 1.0, 0.1)
    assert caught.value.subsystem == "it"


def test_bounces_that_accumulate_are_said_to() -> None:
    with pytest.raises(cs.errors.SubsystemError, match=r"events between .* accumulate there \(Zeno"):
        alone(ball(height=0.1, restitution=0.3), 1.0, 0.1)
