"""Method and step from a tolerance: a quick part of the study in docs/validation/auto.md, and everything around it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm
from tests.accuracy.auto_study import ONE_WAY, PRICED, SEEDS, TOLERANCES, automatic, prices
from tests.accuracy.zoo import CASES, random_networks, tanks
from tests.analysis.hidden import hide
from typer.testing import CliRunner

import cosolve as cs
from cosolve.accuracy.auto.automatic import Compared
from cosolve.accuracy.auto.candidates import Candidates
from cosolve.accuracy.auto.choice import Search
from cosolve.accuracy.auto.pilot_comparison import EXPLAINED
from cosolve.accuracy.auto.pilots import Pilots
from cosolve.accuracy.auto.trial import LEAST_RTOL, Trial
from cosolve.cli import app
from cosolve.options import RunOptions
from cosolve.run.simulate import run_given


def test_a_tolerance_is_enough():
    result = cs.simulate(tanks(), t_end=5.0, rtol=1e-4)
    assert 0.0 < CASES["tanks"].error(result) <= 1e-4
    assert result.meta["choice"].startswith("GaussSeidel(3), Adaptive(rtol=")
    assert "a pilot of" in result.meta["choice"]
    assert f"chosen: {result.meta['choice']}" in str(result)
    assert result.stats.note("tolerance") == ""
    again = cs.simulate(tanks(), t_end=5.0, method=result.choice.method, step=result.choice.step)
    assert np.array_equal(again["one.h"], result["one.h"])  # what was chosen is all there is to it


@pytest.mark.covers("TR-11")
@pytest.mark.parametrize("name", ["lu_FD", pytest.param("rc_chain", marks=pytest.mark.slow)])  # smooth, and stiff
def test_the_tolerance_is_met(name):
    ratio, _, chosen = automatic(CASES[name], CASES[name].build(), 1e-4)
    assert ratio <= 1.0, chosen


@pytest.mark.covers("TR-11")
def test_a_run_with_fewer_steps_than_its_pilot_calls_for_is_measured():
    """A stiff joint: at small tolerances the error is 15 times what the pilot says; missed 2.9 times, in silence."""
    system, case = CASES["pendulum_FD"].build(), CASES["pendulum_FD"]
    result = cs.simulate(system, t_end=case.t_end, rtol=1e-3)
    assert case.error(result) <= 1e-3
    assert "its run had a coupling error of" in result.meta["choice"]
    assert result.choice.checks > 0


def test_the_order_says_what_so_many_steps_are_worth():
    told = Trial(cs.SemiImplicit(2), cs.Adaptive(rtol=1e-2), 170, 1.8e-2, 0.5)
    assert told.expected(1700) == pytest.approx(1.8e-5)
    assert np.isnan(replace(told, power=0.2).expected(1700))  # no shadow told its error


@pytest.mark.covers("TR-11")
def test_what_a_shadow_misses_itself_counts():
    """A rotor at 1e-5: a shadow of 0.93 tol whose signals are resolved badly (R = 0.6) stood for an error of 1.23."""
    case = CASES["rotor"]
    result = cs.simulate(case.build(), t_end=case.t_end, rtol=1e-5)
    assert case.error(result) <= 1e-5


@pytest.mark.covers("TR-11")
def test_networks_that_nothing_was_tuned_on():
    case = random_networks(SEEDS[0], 1)[0]
    ratio, _, chosen = automatic(case, case.build(), 1e-3)
    assert ratio <= 1.0, chosen


@pytest.mark.covers("TR-11")
@pytest.mark.slow
def test_the_tolerance_is_met_on_the_zoo():
    left_out = ("lorenz_long", "van_der_pol")  # no reference; very long at 1e-5
    names = [name for name in CASES if name not in left_out]
    ratios = [automatic(CASES[name], CASES[name].build(), rtol)[0] for name in names for rtol in TOLERANCES]
    assert max(ratios) <= 1.0


@pytest.mark.covers("TR-11")
@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_the_tolerance_is_met_on_networks(seed):
    ratios = [automatic(case, case.build(), rtol)[0] for case in random_networks(seed, 12) for rtol in (1e-3, 1e-5)]
    assert sum(ratio <= 1.0 for ratio in ratios) >= len(ratios) - 1


@pytest.mark.covers("TR-12")
@pytest.mark.slow
def test_it_costs_little_more_than_the_best_fixed_step():
    """Pilots and shadows included, against brute force that knows the error; at 1e-3 the pilot is half of it.

    The shadow that measures the run itself, in 6 of 36 runs, counts: the medians were 1.8 and 1.5 without it.
    """
    ratios = prices(PRICED)
    assert [np.median(ratios[rtol]) <= most for rtol, most in zip(TOLERANCES, (2.5, 1.9, 1.6), strict=True)] == [
        True
    ] * 3
    assert max(map(max, ratios.values())) <= 8.0


@pytest.mark.covers("TR-12")
def test_it_costs_little_more_than_the_best_fixed_step_of_one_system():
    """The longest step limited its pilot, so that a shadow of the run itself counts: 3.0 and 2.0 without it."""
    ratios = prices(["tanks"])
    assert max(ratios[1e-3]) <= 4.0
    assert max(ratios[1e-5]) <= 2.6


@pytest.mark.covers("TR-13")
@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_WAY)
def test_without_rollback(name):
    for rtol in (1e-3, 1e-4):
        ratio, _, chosen = automatic(CASES[name], hide(CASES[name].build(), rollback=False), rtol)
        assert ratio <= 1.0, chosen


@pytest.mark.covers("TR-13")
def test_without_rollback_the_method_is_explicit():  # and the sentence says why
    result = cs.simulate(hide(tanks(), rollback=False), t_end=5.0, rtol=1e-3)
    assert CASES["tanks"].error(result) <= 1e-3
    assert result.method == cs.GaussSeidel(3)
    assert "needs rollback" in result.meta["choice"]


@pytest.mark.covers("TR-04")
def test_a_missed_impact_is_in_doubt():
    """Macro steps of 0.4 s jump over an impact: no trace of it in the signals, but the pilot has seen it."""
    method, system = cs.SemiImplicit(2), CASES["contact"].build()
    pilots = Pilots(system, 0.0, 4.0)
    pilot = pilots.pilot(method, cs.Adaptive(rtol=1e-2, first_step=4e-3, max_step=4.0 / 30), 1000)
    allowed = EXPLAINED * pilot.error + 1e-3
    assert allowed < 0.05
    long = cs.Adaptive(rtol=8.9e-5, max_step=0.4)
    assert pilots.pilot(method, long, 1000).error < 1e-4  # its own shadow knows nothing
    judge = Compared(pilot.t, pilot.y, pilot.size, allowed)
    blind = run_given(system, RunOptions(t_end=4.0, method=method, step=long), tolerance_check=judge)
    assert judge.moved == pytest.approx(0.71, abs=0.01)
    assert blind.stats.note("tolerance").startswith("in doubt: the run differs by 7.1e-01 from the one before it")
    assert f"WARNING: {blind.stats.note('tolerance')}" in str(blind)
    assert blind.error_bar is None  # and its error is at least 0.7 less that of the pilot


class Euler(cs.Subsystem):
    """One explicit Euler step per macro step: all its error is its own, and the exchange has none."""

    inputs, outputs = ["u"], ["x"]

    def start(self, t0):
        self.x = 1.0
        return self.x

    def advance(self, t0, t1, u):
        self.x += (t1 - t0) * (u(t0)[0] - 3.0 * self.x)
        return self.x

    def save(self):
        return self.x

    def restore(self, state):
        self.x = state


def _euler() -> cs.System:
    system = cs.System({"euler": Euler(), "tank": tanks().subsystems["two"]})
    system.connect("euler.x", "tank.q")
    system.connect("tank.h", "euler.u")
    return system


def test_one_step_per_macro_step_is_in_doubt():
    """Its shadow says 1e-3, and every tighter run moves it by more: no tolerance is claimed."""
    with pytest.warns(cs.errors.AccuracyWarning, match="no estimate of the coupling error"):
        result = cs.simulate(_euler(), t_end=4.0, rtol=1e-4)
    assert "the last two runs differ by" in result.stats.note("tolerance")
    assert "WARNING: no estimate" in str(result)
    assert "in doubt" in result.meta["choice"]


def test_units_do_not_matter():
    def scaled(factor: float) -> cs.Result:
        tank = lambda h: cs.Linear([[-1]], [[1]], [[1]], x0=[factor * h], inputs=["q"], outputs=["h"])  # noqa: E731
        system = cs.System({"one": tank(1.0), "two": tank(0.0)})
        system.connect("one.h", "two.q")
        system.connect("two.h", "one.q")
        return cs.simulate(system, t_end=5.0, rtol=1e-4)

    small = scaled(1e-7)
    true = 1e-7 * (1 + np.exp(-2 * small.t)) / 2
    assert np.abs(small["one.h"] - true).max() <= 1e-4 * true.max()
    assert small.stats.steps < 1.5 * scaled(1.0).stats.steps


def test_what_is_given_is_kept():
    given = cs.simulate(tanks(), t_end=5.0, method="semi-implicit:1", rtol=1e-3)
    assert given.method == cs.SemiImplicit(1)
    assert CASES["tanks"].error(given) <= 1e-3
    assert "the method was given" in given.meta["choice"]
    stepped = cs.simulate(tanks(), t_end=5.0, step=0.1, rtol=1e-3)
    assert np.allclose(stepped.H, 0.1)
    assert CASES["tanks"].error(stepped) <= 1e-3
    with pytest.warns(cs.errors.AccuracyWarning, match="out of reach"):
        coarse = cs.simulate(tanks(), t_end=5.0, method="auto", step=0.5, rtol=1e-6)
    assert "out of reach" in coarse.stats.note("tolerance")


def test_joints_and_equations_are_corrected():
    result = cs.simulate(CASES["two_mass_rigid"].build(), t_end=0.5, rtol=1e-3)
    assert result.method == cs.SemiImplicit(2)
    assert CASES["two_mass_rigid"].error(result) <= 1e-3
    assert "GaussSeidel is explicit and cannot solve" in result.meta["choice"]


def test_algebraic_loops_are_corrected():
    """Two parts that give out what they are given at once; an explicit method would lag, and says so."""
    one = cs.Linear([[-1]], [[1]], [[1]], [[0.4]], x0=[1.0], inputs=["u"], outputs=["y"])
    two = cs.Linear([[-2]], [[1]], [[1]], [[0.4]], x0=[0.0], inputs=["u"], outputs=["y"])
    system = cs.System({"one": one, "two": two})
    system.connect("one.y", "two.u")
    system.connect("two.y", "one.u")
    choice = cs.choose(system, t_end=2.0, rtol=1e-3)
    assert choice.method == cs.SemiImplicit(2)
    assert "algebraic loop" in choice.sentence


def test_nothing_to_exchange():
    result = cs.simulate(cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])}), t_end=1.0, rtol=0.1)
    assert "nothing is exchanged" in result.meta["choice"]
    assert result["clock.t"][-1] == 1.0


def test_threads_ask_for_a_parallel_sweep():
    assert cs.choose(tanks(), t_end=5.0, rtol=1e-3, workers=2).method == cs.Jacobi(3)


def test_engines_choose_alike():
    readable, compiled = (cs.choose(tanks(), t_end=5.0, rtol=1e-5, compiled=engine) for engine in (False, None))
    assert readable == compiled
    assert readable.spent == compiled.spent > 0


# -- prices, with trials made up ------------------------------------------------------------------------------------


class Told:
    """Pilots whose outcome is known: an explicit one, and a corrected one with few subsystem steps of the slow part."""

    def __init__(self, seconds: float) -> None:
        self._seconds = {"quick": 1e-6, "slow": seconds}

    def pilot(self, method, step, max_steps, *, shadow=True):
        if method.explicit:  # for 1e-9 (1.8 * 2e-2 / 1e-9)^(1/4) = 77 times as many steps
            return Trial(method, step, 100, 2e-2, 0.6, {"quick": 100, "slow": 100}, seconds=self._seconds)
        # (1.8 * 5e-3 / 1e-9)^(1/3) = 208 times as many
        return Trial(method, step, 50, 5e-3, 0.6, {"quick": 2000, "slow": 5}, seconds=self._seconds)


def _chosen(seconds: float, costs=None) -> cs.Choice:
    found = Candidates(cs.GaussSeidel(3), cs.SemiImplicit(2))
    return Search(Told(seconds), found, 1e-9, 1.0, True, costs).choice()


def test_subsystem_steps_are_counted_unless_times_say_clearly_otherwise():
    """Steps: 77 * 200 against 208 * 2005; a slow subsystem makes that 7.8e6 against 1.5e6 ms."""
    assert _chosen(1e-6).method.explicit
    assert "SemiImplicit(2) would take about 27 times as many subsystem steps" in _chosen(1e-6).sentence
    assert _chosen(0.4).method.explicit  # 3.7 times slower is not enough to overrule the count
    slow = _chosen(1.0)
    assert slow.method == cs.SemiImplicit(2)
    assert "a subsystem step of 'slow' was measured to take 1.0e+00 s" in slow.sentence


def test_costs_that_are_given_decide():
    assert _chosen(1.0, {"slow": 3.0}).method.explicit  # whatever was measured
    assert _chosen(1e-6, {"slow": 1000.0}).method == cs.SemiImplicit(2)


# -- what can go wrong -----------------------------------------------------------------------------------------------


class Fragile(Euler):
    """Fails beyond a state, or from its second start on."""

    starts, most, only_once = 0, 1e300, False

    def start(self, t0):
        self.starts += 1
        if self.only_once and self.starts > 1:
            raise RuntimeError("the licence is used up")
        return super().start(t0)

    def advance(self, t0, t1, u):
        if t1 > self.most:
            raise RuntimeError("the mesh is torn")
        return super().advance(t0, t1, u)


def _fragile(**options) -> cs.System:
    part = Fragile()
    vars(part).update(options)
    system = cs.System({"part": part, "tank": tanks().subsystems["two"]})
    system.connect("part.x", "tank.q")
    system.connect("tank.h", "part.u")
    return system


def test_a_subsystem_that_fails_in_every_pilot_is_named():
    with pytest.raises(cs.errors.SimulationError) as caught:
        cs.simulate(_fragile(most=1.0), t_end=4.0, rtol=1e-3)
    said = str(caught.value)
    assert "no method and step were found for rtol = 0.001" in said
    assert "'part' failed while advancing" in said
    assert "the mesh is torn" in said
    assert "GaussSeidel(3) came to t = 0.9" in said  # how far it came
    assert len(said) < 300
    assert "SemiImplicit(2)" in caught.value.__notes__[0]


def test_a_subsystem_that_starts_only_once_is_named():
    with pytest.raises(cs.errors.SimulationError, match="the licence is used up"):
        cs.simulate(_fragile(only_once=True), t_end=4.0, rtol=1e-3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rtol": 0.5}, "rtol must be a number from 1e-09 to 0.1, not 0.5"),
        ({"rtol": "fine"}, "rtol must be a number"),
        ({"rtol": float("nan")}, "rtol must be a number"),
        ({}, "nothing says how to run it: give a tolerance"),
        ({"step": 0.1}, "nothing says how to run it"),
        ({"rtol": 1e-3, "method": "jacobi", "step": 0.1}, "rtol has nothing to choose"),
        ({"rtol": 1e-3, "method": cs.LeaderFollower(1, leader="one")}, "chooses its steps itself"),
        ({"rtol": 1e-3, "resume": "state.bin"}, "resume goes with a given method and step"),
        ({"rtol": 1e-3, "pace": 1.0}, "pace goes with a given method and step"),
        ({"rtol": 1e-3, "costs": {"three": 2.0}}, "there is no subsystem 'three'"),
        ({"rtol": 1e-3, "costs": {"one": 0.0}}, "costs a positive number"),
        ({"rtol": 1e-3, "costs": 3.0}, "costs is a dict"),
        ({"method": "jacobi"}, "needs a macro step"),
    ],
)
def test_bad_input(options, said):
    with pytest.raises(cs.errors.SetupError, match=said):
        cs.simulate(tanks(), t_end=5.0, **options)


# -- files -----------------------------------------------------------------------------------------------------------

_FILE = """
[subsystems.one]
kind = "linear"
A = [[-1.0]]
B = [[1.0]]
C = [[1.0]]
x0 = [1.0]
inputs = ["q"]
outputs = ["h"]
[subsystems.two]
kind = "linear"
A = [[-1.0]]
B = [[1.0]]
C = [[1.0]]
x0 = [0.0]
inputs = ["q"]
outputs = ["h"]
[[connections]]
from = "one.h"
to = "two.q"
[[connections]]
from = "two.h"
to = "one.q"
[simulation]
t_end = 5.0
"""


def test_only_the_run_itself_is_in_the_file(tmp_path):
    path = tmp_path / "run.h5"
    result = cs.simulate(tanks(), t_end=5.0, rtol=1e-3, save=path, every=5, record=["one.h"])
    read = cs.load_result(path)
    assert read.meta["choice"] == result.meta["choice"]
    assert len(read.t) < result.stats.steps / 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.h5"]


@pytest.mark.parametrize("given", ["rtol = 1e-3", 'method = "auto"', 'method = "semi-implicit"\nrtol = 1e-3'])
def test_system_files_may_leave_it_open(tmp_path, given):
    file = tmp_path / "tanks.toml"
    file.write_text(_FILE + given)
    result = cs.load_system(file).run()
    assert CASES["tanks"].error(result) <= 1e-3
    assert "choice" in result.meta


def test_a_system_file_that_says_nothing_is_refused(tmp_path):
    file = tmp_path / "tanks.toml"
    file.write_text(_FILE)
    with pytest.raises(cs.errors.SetupError, match="nothing says how to run it"):
        cs.load_system(file)


def test_the_command_line(tmp_path):
    file = tmp_path / "tanks.toml"
    file.write_text(_FILE + 'method = "jacobi"\nstep = 0.1')
    out, page = tmp_path / "r.h5", tmp_path / "r.html"
    done = CliRunner().invoke(app, ["run", str(file), "--rtol", "1e-3", "--out", str(out), "--report", str(page)])
    assert done.exit_code == 0, done.output
    assert "GaussSeidel(3) finished" in done.output
    assert "chosen  GaussSeidel(3), Adaptive(rtol=" in done.output
    assert "a pilot of" in page.read_text()
    assert "a pilot of" in cs.load_result(out).meta["choice"]
    wrong = CliRunner().invoke(app, ["run", str(file), "--rtol", "7"])
    assert wrong.exit_code == 2
    assert "rtol must be" in wrong.stderr
    assert "Traceback" not in wrong.output


def test_a_limit_of_steps_is_no_fault_of_a_method(tmp_path):
    """The run ends at the limit with what it has, in its file too, and can be resumed; nothing else is tried."""
    file = tmp_path / "r.h5"
    options = {"t_end": 5.0, "rtol": 1e-4, "save": file, "state_every": 5, "max_steps": 12, "error_bar": True}
    with pytest.raises(cs.errors.StepSizeError, match="max_steps = 12") as caught:
        cs.simulate(tanks(), **options)
    assert len(caught.value.result.t) == len(cs.load_result(file).t) == 13
    whole = cs.simulate(tanks(), t_end=5.0, rtol=1e-4, error_bar=True)
    resumed = cs.resume(file, tanks(), max_steps=10_000)
    assert np.array_equal(resumed["one.h"], whole["one.h"])
    assert resumed.stats.note("tolerance") == ""
    assert np.array_equal(resumed.error_bar.bar["one.h"], whole.error_bar.bar["one.h"])


def test_a_resumed_run_is_compared_with_its_pilot(tmp_path, monkeypatch):
    """The pilot of the run is in its state: one that the run moves too far leaves it in doubt, without a bar."""
    file = tmp_path / "r.h5"
    monkeypatch.setattr("cosolve.accuracy.auto.automatic.EXPLAINED", 0.01)
    with pytest.raises(cs.errors.StepSizeError):
        cs.simulate(tanks(), t_end=5.0, rtol=1e-4, save=file, state_every=5, max_steps=12, error_bar=True)
    with pytest.warns(cs.errors.AccuracyWarning, match="the last two runs differ by"):
        resumed = cs.resume(file, tanks(), max_steps=10_000)
    assert resumed.error_bar.reason == resumed.stats.note("tolerance") != ""
    assert not resumed.error_bar.bar


def test_pilots_are_quiet():
    """Explicit coupling of a stiff system warns of growing values; in a pilot that is no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        choice = cs.choose(CASES["lu_stiff"].build(), t_end=0.02, rtol=1e-2)
    assert choice.trials


def _pulse_at_rest() -> cs.System:
    """Two oscillators at rest; a pulse of 10 ms, which the integrator of the first one steps over in long steps."""

    def force(t):
        return 100.0 if 1.003 < t < 1.013 else 0.0

    one = cs.Ode(
        lambda t, s, u: [s[1], -30 * s[0] - 0.5 * s[1] + u[0] + force(t)],
        lambda t, s, u: s[:1],
        x0=[0.0, 0.0],
        inputs=["f"],
        outputs=["x"],
    )
    two = cs.Linear([[0, 1], [-30, -0.5]], [[0], [1]], [[1, 0]], x0=[0, 0], inputs=["f"], outputs=["x"])
    system = cs.System({"one": one, "two": two})
    system.law({"one.f": 1, "two.f": -1}, lambda x, y: 10 * (y - x), of=["one.x", "two.x"])
    return system


def test_a_pulse_that_only_some_runs_meet_is_said():
    """The pilot sees nothing, the next run the pulse, the one after it nothing again: none of them can be believed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = cs.simulate(_pulse_at_rest(), t_end=4.0, rtol=1e-3)
    matrix = np.array([[0, 1, 0, 0], [-40, -0.5, 10, 0], [0, 0, 0, 1], [10, 0, -40, -0.5]])
    driven = np.zeros((5, 5))
    driven[:4, :4], driven[1, 4] = matrix, 100.0
    after = (expm(0.01 * driven) @ np.eye(5)[4])[:4]
    exact = np.array([(expm((t - 1.013) * matrix) @ after)[0] if t > 1.013 else 0.0 for t in result.t])
    error = np.abs(result["one.x"] - exact).max() / exact.max()
    said = [str(one.message) for one in caught if issubclass(one.category, cs.errors.AccuracyWarning)]
    assert error <= 1e-3 or said
    assert "no estimate of the coupling error" in said[0]
    assert len(said[0]) < 300


def test_a_run_below_half_of_an_earlier_one_is_in_doubt_although_it_agrees_with_the_last():
    t = np.linspace(0.0, 1.0, 21)
    pulse, nothing = np.exp(-(((t - 0.5) / 0.1) ** 2))[:, np.newaxis], np.zeros((21, 1))
    compared = Compared(t, nothing, np.abs(pulse).max(axis=0), allowed=1e-3)
    compared.see(t, nothing)
    assert "stepped over a pulse" in compared.doubt()
    assert len(compared.doubt()) < 300
    compared = Compared(t, pulse, np.zeros(1), allowed=1e-3)
    compared.see(t, 1.0005 * pulse)
    assert compared.doubt() == ""


def test_no_tolerance_of_a_control_lies_below_rounding():
    pilot = Trial(cs.GaussSeidel(3), cs.Adaptive(rtol=1e-2), error=0.01, level=0.6)
    assert pilot.rtol(1e-4) > LEAST_RTOL
    assert pilot.rtol(1e-30) == LEAST_RTOL


def test_a_run_whose_control_had_nothing_to_measure_is_repeated_on_other_steps():
    """Estimates of 0 say nothing about a tolerance: none follows from them, and runs on one grid would always agree."""
    pilot = Trial(cs.SemiImplicit(2), cs.Adaptive(rtol=1e-2, max_step=0.1), steps=34, error=0.0, level=0.0)
    assert pilot.rtol(1e-3) == 0.25e-2
    assert pilot.factor == 0.0
    search = Search(None, Candidates(), 1e-3, 3.0, True)
    first = cs.Choice(pilot.method, cs.Adaptive(rtol=1e-3, max_step=0.075), "", pilot=pilot)
    again = search.repeated(first, pilot, 4.0, 0.3)
    assert again.step.rtol == 2.5e-4
    assert again.step.max_step < 0.7 * first.step.max_step


@pytest.mark.parametrize("error_bar", [False, True])
def test_growth_from_small_values_meets_the_tolerance(error_bar):
    """x'' = 9 x from 1e-3: early errors are amplified, and the pilot's steps say little about them."""
    one = cs.Ode(lambda t, x, u: [u[0]], lambda t, x, u: x, x0=[1e-3], inputs=["y"], outputs=["x"], rtol=1e-10)
    two = cs.Ode(lambda t, x, u: [9 * u[0]], lambda t, x, u: x, x0=[0.0], inputs=["x"], outputs=["y"], rtol=1e-10)
    system = cs.System({"one": one, "two": two})
    system.connect("one.x", "two.x")
    system.connect("two.y", "one.y")
    result = cs.simulate(system, t_end=3.0, rtol=1e-4, error_bar=error_bar)
    exact = 1e-3 * np.cosh(3.0 * result.t)
    assert np.abs(result["one.x"] - exact).max() < 1e-4 * exact.max()
    if error_bar:
        assert result.error_bar.worst < 2e-4


def test_a_run_that_knows_that_it_missed_its_tolerance_is_made_again(monkeypatch):
    """The first bar says five times the tolerance: a second run follows, with a tolerance nine times smaller."""
    made = []

    def bar(system, result, **options):
        made.append(result.choice.step.rtol)
        return cs.ErrorBar(result.t, {}, worst=1e-3 if len(made) == 1 else 1e-5)

    monkeypatch.setattr("cosolve.accuracy.auto.automatic.estimated", bar)
    result = cs.simulate(tanks(), t_end=5.0, rtol=1e-4, error_bar=True)
    assert len(made) == 2
    assert made[1] == pytest.approx(made[0] / 9.0, rel=0.05)
    assert "its run had a coupling error of 5.0e-04" in result.meta["choice"]
    assert not result.stats.note("tolerance")


PERIOD = 0.013


def _sampled(period=PERIOD, **own) -> cs.System:
    """An oscillator and a proportional controller that samples it."""
    plant = cs.Linear([[0, 1], [-5, -0.4]], [[0], [1]], [[1, 0]], x0=[1.0, 0.0], inputs=["u"], outputs=["x"])
    control = cs.Sampled(cs.Static(lambda t, u: -20 * u, inputs=["x"], outputs=["u"]), period)
    system = cs.System({"plant": plant, "control": control})
    system.connect("plant.x", "control.x")
    system.connect("control.u", "plant.u")
    return system


def _sampled_exactly(times):
    """The oscillator between samples, by the exponential of its matrix."""
    matrix, found = np.array([[0, 1.0, 0], [-5, -0.4, 1], [0, 0, 0]]), []
    state, n, u, begun = np.array([1.0, 0.0]), 0, 0.0, 0.0
    for t in times:
        while n * PERIOD <= t + 1e-12:
            state = (expm(matrix * (n * PERIOD - begun)) @ np.append(state, u))[:2]
            begun, u, n = n * PERIOD, -20 * state[0], n + 1
        found.append((expm(matrix * (t - begun)) @ np.append(state, u))[0])
    return np.array(found)


def test_sampled_parts_get_steps_of_their_period():
    """Held outputs are exact then; on other steps it is another system: nothing can be measured, which is said."""
    with pytest.warns(cs.errors.AccuracyWarning, match="'control' works in steps of 0.013") as caught:
        result = cs.simulate(_sampled(), t_end=2.0, rtol=1e-4)
    assert len(str(caught[0].message)) < 300
    assert "stop_at_events=True" in str(caught[0].message)
    assert np.abs(result["plant.x"] - _sampled_exactly(result.t)).max() < 1e-12


def test_sampled_parts_whose_events_are_seen_are_proven():
    result = cs.simulate(_sampled(), t_end=2.0, rtol=1e-4, stop_at_events=True, error_bar=True)
    assert result.stats.steps <= 160
    assert result.error_bar.reason is None
    assert np.abs(result["plant.x"] - _sampled_exactly(result.t)).max() < 1e-12


def test_steps_of_one_length_that_do_not_fit_are_named():
    system = _sampled()
    other = cs.Sampled(cs.Static(lambda t, u: u, inputs=["x"], outputs=["y"]), 0.02)
    system = cs.System({**system.subsystems, "other": other})
    system.connect("plant.x", "control.x")
    system.connect("control.u", "plant.u")
    system.connect("plant.x", "other.x")
    with pytest.raises(
        cs.errors.SetupError, match=r"'other' works in steps of 0.02, others in steps of 0.013; give step"
    ):
        cs.choose(system, t_end=1.0, rtol=1e-3)
    system = _sampled()
    system.subsystems["plant"].fixed_step = float("nan")
    with pytest.raises(
        cs.errors.SetupError, match="'plant' takes steps of one length only and does not name it; give step"
    ):
        cs.choose(system, t_end=1.0, rtol=1e-3)


@pytest.mark.parametrize(("fault", "times"), [({"hopeless": True}, 1), ({"over": True}, 1), ({}, 4)])
def test_a_method_is_not_tried_again_where_a_smaller_tolerance_is_no_remedy(fault, times):
    made = []

    class Failing:
        def pilot(self, method, step, max_steps, *, shadow=True):
            made.append(method.label)
            return Trial(method, step, why="it fails", **fault)

    with pytest.raises(cs.errors.SimulationError):
        Search(Failing(), Candidates(explicit=cs.GaussSeidel(3)), 1e-3, 1.0, True).choice()
    assert made == ["GaussSeidel(3)"] * times
