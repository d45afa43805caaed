"""Runs that are watched: what is seen, what one may do to them, and that they give the same bits nevertheless."""

import json
import threading
from time import monotonic

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.viewer.conftest import make_masses

import cosolve as cs
from cosolve.viewer.server import application
from cosolve.viewer.viewer_session import ViewerSession

METHOD = cs.SemiImplicit(degree=1)


class Quiet(cs.Live):
    """Without a server: what the page does is done here."""

    def serve(self):
        return self


class Ordered(Quiet):
    """Gives its orders in the thread of the run, each when it has taken so many steps."""

    def __init__(self, *orders, **more):
        super().__init__(**more)
        self.wanted, self.allowed = list(orders), []

    def limit(self, run):
        while self.wanted and self.wanted[0][0] <= self._steps:
            self.order(self.wanted.pop(0)[1])
        self.allowed.append(super().limit(run))
        return self.allowed[-1]


def dialled(value=0.0):
    tank = cs.Ode(lambda t, x, u: u - x, lambda t, x, u: x, x0=[1.0], inputs=["q"], outputs=["h"])
    system = cs.System({"tank": tank})
    system.set("tank.q", cs.TunableInput(value, low=-5.0, high=5.0))
    return system


def connected():
    """All of it can be compiled."""

    def part(x):
        return cs.Linear([[0, 1], [-4, -0.1]], [[0], [1]], np.eye(2), x0=[x, 0], inputs=["f"], outputs=["x", "v"])

    system = cs.System({"one": part(0.0), "two": part(1.0)})
    system.connect("one.x", "two.f")
    system.connect("two.x", "one.f")
    return system


@pytest.mark.parametrize("options", [{"every": 7, "compiled": False}, {"record": ["two.x"]}, {"compiled": True}])
def test_a_watched_run_gives_the_same_bits(options, tmp_path):
    system = connected()
    alone = cs.simulate(system, t_end=5.0, method=METHOD, step=0.01, **options)
    for save in (None, tmp_path / "run.h5"):
        live = Quiet()
        watched = cs.simulate(system, t_end=5.0, method=METHOD, step=0.01, observers=[live], save=save, **options)
        np.testing.assert_array_equal(watched.column("y"), alone.column("y"))
        np.testing.assert_array_equal(watched.column("z"), alone.column("z"))
        state = live.state()
        assert (state["steps"], state["rows"], state["running"], state["ended"]) == (500, 501, False, "finished")
        growing = live.growing
        x = growing.signals.by_name["two.x"].id
        seen = growing.window([x], 0.0, 5.0, 5000)  # all macro points, also those that are not recorded
        assert seen.slots.raw
        every = options.get("every", 1)
        np.testing.assert_array_equal(seen.slots.low[::every].ravel(), alone["two.x"][: 1 + 500 // every])


def test_steps_are_seen_as_they_are_recorded(masses):
    live = Quiet()
    result = cs.simulate(masses, t_end=1.0, method=cs.Implicit(degree=1), step=cs.Adaptive(rtol=1e-4), observers=[live])
    ids = {s.name: s.id for s in live.growing.signals.all if s.group == "steps"}
    live.state()
    for name, column in (("macro step H", "H"), ("residual left", "residual"), ("rejected attempts", "rejected")):
        seen = live.growing.window([ids[name]], 0.0, 1.0, 10_000).slots.low.ravel()
        np.testing.assert_array_equal(seen[1:], result.column(column)[1:])


def test_stop_keeps_the_result(masses, tmp_path):
    live = Ordered((30, {"do": "stop"}))
    result = cs.simulate(
        masses, t_end=50.0, method=METHOD, step=0.01, observers=[live], save=tmp_path / "run.h5", compiled=False
    )
    assert result.finished
    assert 30 <= result.stats.steps < 5000
    assert result.ended == f"ended at t = {result.t[-1]:.9g} because it was stopped by hand"
    assert cs.load_result(tmp_path / "run.h5").ended == result.ended
    assert live.state()["ended"] == result.ended


def test_a_stopped_run_that_keeps_states_can_be_resumed(masses, tmp_path):
    """`state_every` leaves a state behind for a run that was stopped, as for one that was killed."""
    path, other = tmp_path / "run.h5", make_masses()
    options = {"t_end": 3.0, "method": METHOD, "step": 0.01, "compiled": False}
    cs.simulate(masses, **options, observers=[Ordered((100, {"do": "stop"}))], save=path, state_every=10)
    assert path.with_name("run.h5.state").exists()
    whole = cs.simulate(other, **options)
    resumed = cs.resume(path, make_masses())
    np.testing.assert_array_equal(resumed["two.x"], whole["two.x"])


def test_pause_single_steps_and_go(masses):
    """Paused after ten steps; three single ones; then to the end."""
    orders = [(10, {"do": "step"}), (11, {"do": "step"}), (12, {"do": "step"}), (13, {"do": "go"})]
    live = Ordered(*orders, paused=True)
    live.wanted.insert(0, (0, {"do": "go"}))
    live.wanted.insert(1, (1, {"do": "pause"}))
    live.wanted[2:2] = [(k, {"do": "step"}) for k in range(1, 10)]
    result = cs.simulate(masses, t_end=1.0, method=METHOD, step=0.01, observers=[live], pace=cs.Pace(1e9))
    assert result.stats.steps == 100
    assert live.allowed.count(1) == 12  # one at a time, where it was asked for


def test_a_paused_run_goes_on_when_the_last_page_is_closed(masses, monkeypatch):
    monkeypatch.setattr("cosolve.viewer.live._UNUSED", 0.0)
    live = Quiet(paused=True)
    live.arrived()
    live.left()
    assert len(cs.simulate(masses, t_end=0.1, method=METHOD, step=0.01, observers=[live]).t) == 11
    assert live.state()["news"] == ["the last page was closed, so the run goes on"]


def test_a_dial_is_turned_at_a_macro_point_and_written_down():
    live = Ordered((50, {"do": "set", "name": "tank.q", "value": 2.0}))
    system = dialled()
    result = cs.simulate(system, t_end=1.0, method=cs.Jacobi(), step=0.01, observers=[live], pace=cs.Pace(1e9))
    ((t, name, value),) = result.stats.changed
    assert (t, name, value) == (0.5, "tank.q", 2.0)
    assert "changed at t = 0.5: tank.q = 2.0" in str(result.stats)
    np.testing.assert_array_equal(result["tank.q"], np.where(result.t > 0.5, 2.0, 0.0))
    exact = np.where(result.t < 0.5, np.exp(-result.t), 2 + (np.exp(-0.5) - 2) * np.exp(0.5 - result.t))
    np.testing.assert_allclose(result["tank.h"], exact, atol=1e-6)
    again = cs.simulate(system, t_end=1.0, method=cs.Jacobi(), step=0.01, observers=[Quiet()])
    assert not again["tank.q"].any()  # the next run begins with the first value


def test_the_change_is_in_the_file(tmp_path):
    live = Ordered((50, {"do": "set", "name": "tank.q", "value": 2.0}))
    run = {"t_end": 1.0, "method": cs.Jacobi(), "step": 0.01, "pace": cs.Pace(1e9)}
    cs.simulate(dialled(), **run, observers=[live], save=tmp_path / "run.h5")
    assert cs.load_result(tmp_path / "run.h5").stats.changed == [[0.5, "tank.q", 2.0]]


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ({"do": "set", "name": "tank.q", "value": 9.0}, "between -5 and 5 is expected, not 9.0"),
        ({"do": "set", "name": "tank.q", "value": "2"}, "a number is expected, not '2'"),
        ({"do": "set", "name": "tank.q", "value": float("nan")}, "between -5 and 5"),
        ({"do": "set", "name": "tank.h", "value": 1.0}, "no input held by a TunableInput and no tunable parameter"),
        ({"do": "set", "name": "__class__", "value": 1.0}, "no input held by a TunableInput"),
        ({"do": "save", "path": "/etc/passwd"}, "saved to"),
        ({"do": "exec"}, "unknown command"),
        ({}, "unknown command"),
    ],
)
def test_orders_that_make_no_sense_do_nothing_to_the_run(order, said, tmp_path):
    live = Ordered((0, order), states=tmp_path)
    result = cs.simulate(dialled(), t_end=0.1, method=cs.Jacobi(), step=0.01, observers=[live])
    assert len(result.t) == 11
    assert not result.stats.changed
    assert said in live.state()["news"][-1]


@pytest.mark.parametrize("name", ["mass_force", "mass_me"])  # co-simulation and model exchange
def test_a_tunable_parameter_of_an_fmu_is_changed_from_the_page(name):
    """A constant force moves 1 kg until t = 0.05 and 2 kg after it; the next run begins with 1 kg again."""
    from tests.fmu.build import fmu

    system = cs.System({"m": cs.load_fmu(fmu(name, 2), parameters={"m": 1.0, "c": 0.0, "d": 0.0})})
    system.set("m.f", 1.0)
    settings = {"t_end": 0.1, "method": cs.Jacobi(0), "step": 0.01, "pace": cs.Pace(1e9)}  # one step at a time
    live = Ordered((5, {"do": "set", "name": "m.m", "value": 2.0}))
    run = cs.simulate(system, **settings, observers=[live])
    assert run["m.v"][[5, -1]] == pytest.approx([0.05, 0.075], rel=1e-9)
    assert run.stats.changed == [[pytest.approx(0.05), "m.m", 2.0]]
    assert {"name": "m.m", "value": 2.0} in [{k: one[k] for k in ("name", "value")} for one in live.state()["tunable"]]
    assert cs.simulate(system, **settings)["m.v"][-1] == pytest.approx(0.1, rel=1e-9)


def test_a_saved_state_is_gone_on_from(masses, tmp_path):
    live = Ordered((40, {"do": "save"}), states=tmp_path)
    run = {"t_end": 1.0, "method": METHOD, "step": 0.01}
    whole = cs.simulate(masses, **run, observers=[live], pace=cs.Pace(1e9))
    (state,) = tmp_path.glob("run-40.state")
    rest = cs.simulate(make_masses(), **run, resume=state)
    assert rest.t[0] == 0.4
    np.testing.assert_array_equal(rest["two.x"], whole["two.x"][40:])


def test_a_failure_ends_the_watching_with_its_sentence():
    def grow(t, x, u):
        if t > 0.5:
            raise ValueError("the tank burst")
        return np.ones(1)

    system = cs.System({"tank": cs.Ode(grow, lambda t, x, u: x, x0=[1.0], inputs=[], outputs=["h"])})
    live = Quiet()
    with pytest.raises(cs.errors.SimulationError, match="the tank burst"):
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(), step=0.1, observers=[live])
    assert "the tank burst" in live.state()["ended"]
    assert live.about()["verdict"]["level"] == "bad"


def test_two_watchers_over_the_socket(masses):
    """Both see the run; one pauses it, the other lets it go on; both closed in the middle do no harm."""
    live = Quiet(paused=True)
    app = application(ViewerSession(live=live), "secret", None)
    page, origin = TestClient(app, base_url="http://here"), {"Origin": "http://here"}
    found = {}

    def run():
        found["result"] = cs.simulate(masses, t_end=1.0, method=METHOD, step=0.01, observers=[live])

    def until(socket, wanted):
        end = monotonic() + 30.0
        while monotonic() < end:
            state = json.loads(socket.receive_text())
            if wanted(state):
                return state
        raise AssertionError("never said")

    with page.websocket_connect("ws://here/secret/live", headers=origin) as one:
        with page.websocket_connect("ws://here/secret/live", headers=origin) as other:
            thread = threading.Thread(target=run)
            thread.start()
            assert until(one, lambda state: state["running"] and state["paused"])["steps"] == 0
            one.send_text(json.dumps({"do": "step"}))
            state = until(other, lambda state: state["steps"] == 1)
            assert state["watchers"] == 2
            other.send_text("not json")
            other.send_text(json.dumps([1, 2]))
            other.send_text("9" * 5000)
        about = page.get("/secret/about").json()
        assert about["results"][0]["live"]
        assert page.get("/secret/series?ids=0&t0=0&t1=1").status_code == 200
        one.send_text(json.dumps({"do": "go"}))
        thread.join(30.0)
        state = until(one, lambda state: not state["running"])
    assert len(found["result"].t) == 101
    assert (state["watchers"], state["ended"]) == (1, "finished")
    assert not page.get("/secret/about").json()["results"][0]["live"]  # the whole result now


def test_wait_comes_back_at_once_where_no_page_looked(masses):
    live = Quiet()
    cs.simulate(masses, t_end=0.1, method=METHOD, step=0.01, observers=[live])
    live.wait()
    assert not live.ever_watched


def test_states_travel_as_they_are(masses):
    """A browser offers to pack messages: packing would take time from the run."""
    from websockets.sync.client import connect

    with cs.Live(open_browser=False, told=None) as live:
        address = live.address.replace("http:", "ws:") + "live"
        with connect(address, origin=live.address.rsplit("/", 2)[0], compression="deflate", proxy=None) as line:
            assert line.request.headers["Sec-WebSocket-Extensions"].startswith("permessage-deflate")
            assert line.protocol.extensions == []
            assert "running" in json.loads(line.recv(timeout=30.0))
