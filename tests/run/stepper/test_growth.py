"""Runs that grow because of the coupling say so, once; runs that grow because of the model do not."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from examples.two_mass.model import force_displacement, split
from tests.accuracy import zoo
from tests.analysis.hidden import counted, hide
from tests.run.stepper.growth_study import growing, unstable
from typer.testing import CliRunner

import cosolve as cs
from cosolve.accuracy.budget import Budget
from cosolve.accuracy.growth import GrowthMonitor
from cosolve.cli import app
from cosolve.report import write_report
from cosolve.result.notes import verdict


def run(system, method, H, steps, **options):
    """The result and the sentences of all warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = cs.simulate(system, method=method, step=H, t_end=steps * H, **options)
        except cs.errors.SimulationError as error:
            result = error.result
    return result, [str(w.message) for w in caught if issubclass(w.category, cs.errors.StabilityWarning)]


# -- beyond the critical step ------------------------------------------------------------------------------


def _two_tanks():
    tank = lambda: cs.Linear([[-1]], [[1]], [[1]], x0=[1], inputs=["q"], outputs=["h"])  # noqa: E731
    system = cs.System({"one": tank(), "two": tank()})
    system.law("two.q", lambda h: -3.0 * h, of="one.h")
    system.connect("two.h", "one.q")
    return system


def _undamped():
    """Without damping every lag of the coupling is too much: held inputs grow however small the step."""
    mass = lambda x: cs.Linear([[0, 1], [-1, 0]], [[0], [1]], [[1, 0]], x0=[x, 0], inputs=["f"], outputs=["x"])  # noqa: E731
    system = cs.System({"one": mass(10.0), "two": mass(-10.0)})
    system.law({"one.f": 1, "two.f": -1}, lambda a, b: 9.0 * (b - a), of=["one.x", "two.x"])
    return system


def _loop(gain):
    def build():
        one = cs.Linear([[-1]], [[1]], [[1]], D=[[gain]], x0=[1], inputs=["u"], outputs=["y"])
        two = cs.Linear([[-1]], [[1]], [[1]], D=[[-1.0]], x0=[0], inputs=["u"], outputs=["y"])
        system = cs.System({"one": one, "two": two})
        system.connect("one.y", "two.u")
        system.connect("two.y", "one.u")
        return system

    return build


#: system, method, critical step, factors of it to run at (below, beyond), macro steps
TABLE = [
    ("two masses F/F", lambda: split("F/F"), cs.Jacobi(0), 0.03322, 1.15, 600),
    ("two masses F/F", lambda: split("F/F"), cs.Jacobi(1), 0.03354, 1.1, 600),
    ("two masses F/F", lambda: split("F/F"), cs.Jacobi(2), 0.03296, 1.1, 600),
    ("two masses F/F", lambda: split("F/F"), cs.GaussSeidel(1), 0.03354, 1.1, 600),
    ("two masses F/D", lambda: split("F/D"), cs.Jacobi(0), 0.03642, 1.15, 600),
    ("two masses F/D", lambda: split("F/D"), cs.GaussSeidel(1), 0.04066, 1.15, 600),
    ("two masses D/D", lambda: split("D/D"), cs.Jacobi(1), 0.0603, 1.1, 600),
    ("two masses D/D", lambda: split("D/D"), cs.Jacobi(2), 0.04442, 1.15, 600),
    ("two masses D/D", lambda: split("D/D"), cs.SemiImplicit(0), 0.02591, 1.25, 1200),
    ("spring with feed-through", force_displacement, cs.Jacobi(2), 0.0005665, 1.1, 600),
    ("spring with feed-through", force_displacement, cs.GaussSeidel(1), 0.0003708, 1.3, 2500),
    ("spring with feed-through", force_displacement, cs.SemiImplicit(1), 0.002345, 1.1, 600),
    ("two tanks", _two_tanks, cs.Jacobi(0), None, 1.2, 600),
    ("two tanks", _two_tanks, cs.GaussSeidel(0), None, 1.2, 600),
    ("hidden two masses", lambda: hide(split("F/F")), cs.Jacobi(1), 0.03354, 1.1, 600),
    ("black boxes without rollback", lambda: hide(split("F/F"), False), cs.Jacobi(1), 0.03354, 1.1, 600),
    ("black boxes without rollback", lambda: hide(split("F/D"), False), cs.GaussSeidel(1), 0.04066, 1.15, 600),
]
QUICK = {1, 6, 12, 15}
CASES = [
    pytest.param(*case[1:], id=f"{case[0]} {case[2].label}", marks=() if k in QUICK else pytest.mark.slow)
    for k, case in enumerate(TABLE)
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("build", "method", "limit", "beyond", "steps"), CASES)
def test_alarm_beyond_the_critical_step_and_silence_below(build, method, limit, beyond, steps):
    limit = limit or cs.analysis.critical_step(build(), method)
    result, said = run(build(), method, 0.9 * limit, steps)
    assert not said
    assert result.stats.note("growth") == ""
    result, said = run(build(), method, beyond * limit, steps)
    assert len(said) == 1
    assert said[0] == result.stats.note("growth")
    assert "values grow without bound" in said[0]
    assert f"{method.label} is unstable here" in said[0]


@pytest.mark.slow
def test_slow_growth_of_resolved_oscillations_is_tried_out():
    """A growth of 1.007 per step, with 36 steps per period: only a trial with other steps tells it from flutter."""
    _, said = run(_undamped(), cs.Jacobi(0), 0.04, 2000)
    assert len(said) == 1
    assert "Jacobi(0) is unstable here" in said[0]
    assert not run(_undamped(), cs.SemiImplicit(1), 0.04, 1000)[1]


def test_without_rollback_smooth_growth_is_reported_when_it_is_absurd():
    """Nothing can be tried out: the sentence leaves open whose growth it is, and comes a million times later."""
    system = hide(_undamped(), rollback=False)
    assert not run(system, cs.Jacobi(0), 0.02, 1000)[1]
    _, said = run(system, cs.Jacobi(0), 0.05, 2000)
    assert len(said) == 1
    assert "or the model's own growth: run it again with half the step" in said[0]
    assert "need rollback, which 'one' lacks" in said[0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_compiled_runs_are_watched():
    """Fast growth ends in an error within the first chunks, slower growth is seen at their ends."""
    with pytest.raises(cs.errors.NonFiniteError) as caught:
        cs.simulate(split("D/D"), t_end=3000 * 0.07, method=cs.Jacobi(1), step=0.07, compiled=True)
    assert "Jacobi(1) is unstable here" in caught.value.__notes__[0]
    assert caught.value.result.stats.note("growth") == caught.value.__notes__[0]
    result, said = run(split("D/D"), cs.SemiImplicit(0), 1.15 * 0.02591, 3000, compiled=True)
    assert result.stats.compiled_steps
    assert said == [result.stats.note("growth")]
    assert "SemiImplicit(0) is unstable here" in said[0]


@pytest.mark.parametrize("compiled", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize(("method", "limit"), [(cs.Jacobi(1), 2.463e-4), (cs.GaussSeidel(1), 3.708e-4)])
def test_slow_growth_over_tens_of_thousands_of_steps(method, limit, compiled):
    """3 % above the limit: times 1.0004 per step, eight decades in 12 s, which no short stretch shows."""
    step = 1.03 * limit
    result, said = run(force_displacement(), method, step, round(12.0 / step), compiled=compiled)
    assert np.abs(result["one.x"]).max() > 1e7
    assert len(said) == 1
    assert f"{method.label} is unstable here" in said[0]


def test_trials_leave_the_run_as_it_was():
    """The state is put back after a trial: the values are those of a run without the monitor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cosolve.accuracy.growth.GrowthMonitor._look", lambda *_, **__: None)
        plain, said = run(split("D/D"), cs.SemiImplicit(0), 1.2 * 0.02591, 900)
    assert not said
    watched, said = run(split("D/D"), cs.SemiImplicit(0), 1.2 * 0.02591, 900)
    assert len(said) == 1
    assert "is unstable here: take a step of about 0.0155 (tried), or try another degree" in said[0]
    assert np.array_equal(watched.column("y"), plain.column("y"))
    assert watched.stats.calls == plain.stats.calls


def test_a_warning_made_an_error_stops_the_run():
    with warnings.catch_warnings():
        warnings.simplefilter("error", cs.errors.StabilityWarning)
        with pytest.raises(cs.errors.StabilityWarning, match="'lam' has reached"):
            cs.simulate(split("F/F"), method=cs.Jacobi(1), step=0.04, t_end=40.0)


def test_it_is_in_the_report_and_in_the_file(tmp_path):
    result, said = run(split("F/F"), cs.Jacobi(1), 0.04, 300, save=tmp_path / "run.h5")
    assert "but the result cannot be trusted" in write_report(result, tmp_path / "report.html").read_text(
        encoding="utf-8"
    )
    assert f"ERROR: {said[0]}" in str(result.stats)
    assert cs.load_result(tmp_path / "run.h5").stats.note("growth") == said[0]


GROWS = """
import cosolve as cs
def plain():
    return cs.Linear([[-1]], [[1]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
def turned():
    return cs.Linear([[-1]], [[-3]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
"""
SYSTEM = """
[subsystems.one]
factory = "tanks:plain"
[subsystems.two]
factory = "tanks:turned"
[[connections]]
from = "one.h"
to = "two.q"
[[connections]]
from = "two.h"
to = "one.q"
[simulation]
t_end = 400.0
method = { name = "jacobi", degree = 0 }
step = 0.9
"""


@pytest.mark.parametrize("quiet", [True, False])
def test_the_command_line_says_it_too(tmp_path, monkeypatch, quiet):
    """Also under --quiet: something is wrong. One sentence, not Python's two lines with a file name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tanks.py").write_text(GROWS)
    (tmp_path / "system.toml").write_text(SYSTEM)
    done = CliRunner().invoke(app, ["run", "system.toml", *(["--quiet"] if quiet else [])])
    assert done.exit_code == 4, done.output  # finished, and not to be trusted
    assert done.stderr.count("cosolve: warning: values grow without bound") == 1
    assert "StabilityWarning" not in done.output
    assert ("ERROR: values grow" in done.stdout) is not quiet


# -- growth that belongs to the model ----------------------------------------------------------------------


def _ring(rate, phi):
    """phi' = w, w' = rate(phi), each in a subsystem of its own."""
    one = cs.Ode(lambda t, x, u: [rate(u[0])], lambda t, x, u: x, x0=[0.0], inputs=["phi"], outputs=["w"])
    two = cs.Ode(lambda t, x, u: [u[0]], lambda t, x, u: x, x0=[phi], inputs=["w"], outputs=["phi"])
    system = cs.System({"one": one, "two": two})
    system.connect("one.w", "two.w")
    system.connect("two.phi", "one.phi")
    return system


def _driven(f):
    body = cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[0.0], inputs=["u"], outputs=["y"])
    system = cs.System({"source": cs.Static(lambda t, u: f(t), inputs=[], outputs=["y"]), "body": body})
    system.connect("source.y", "body.u")
    return system


def _oscillator(force, x):
    """A mass on a spring with a force by a law of its motion and of time."""
    body = cs.Linear([[0, 1], [-1, 0]], [[0], [1]], [[1, 0], [0, 1]], x0=[x, 0], inputs=["f"], outputs=["x", "v"])
    part = cs.Static(lambda t, u: force(t, *u), inputs=["x", "v"], outputs=["f"])
    system = cs.System({"body": body, "force": part})
    system.connect("body.x", "force.x")
    system.connect("body.v", "force.v")
    system.connect("force.f", "body.f")
    return system


PHYSICS = {
    "pendulum falls over": (lambda: _ring(lambda phi: 9.81 * np.sin(phi), 1e-8), cs.Jacobi(1), 0.02, 500),
    "linear pendulum": (lambda: _ring(lambda phi: 9.81 * phi, 1e-2), cs.GaussSeidel(2), 0.02, 400),
    "linear pendulum, implicit": (lambda: _ring(lambda phi: 9.81 * phi, 1e-2), cs.SemiImplicit(1), 0.05, 160),
    "without rollback": (lambda: hide(_ring(lambda phi: 9.81 * phi, 1e-2), False), cs.Jacobi(2), 0.02, 200),
    "free fall": (lambda: _ring(lambda phi: -9.81, 0.0), cs.Jacobi(1), 0.01, 1000),
    "limit cycle": (lambda: _oscillator(lambda t, x, v: (1 - x * x) * v, 1e-5), cs.GaussSeidel(1), 0.02, 1200),
    "flutter": (lambda: _oscillator(lambda t, x, v: 0.5 * v, 1e-2), cs.Jacobi(2), 0.02, 2500),
    "resonance": (lambda: _oscillator(lambda t, x, v: 1e3 * np.sin(t), 0.0), cs.Jacobi(1), 0.02, 1500),
    "ramp": (lambda: _driven(lambda t: 1e5 * t), cs.Jacobi(1), 0.02, 500),
    "growing chirp": (lambda: _driven(lambda t: 1e3 * t * np.sin(t * t)), cs.Jacobi(1), 0.02, 1000),
    "pulse": (lambda: _driven(lambda t: 1e3 * np.exp(-((t - 20.0) ** 2))), cs.Jacobi(1), 0.05, 800),
    "eighth power": (lambda: _driven(lambda t: t**8), cs.Jacobi(1), 0.05, 1000),
    "late jump": (lambda: _driven(lambda t: 1e6 * (t > 5)), cs.Jacobi(1), 0.05, 300),
    "square wave": (lambda: _driven(lambda t: 1e5 * t * np.sign(np.sin(40.0 * t))), cs.Jacobi(1), 0.05, 600),
}
LONG = ("linear pendulum, implicit", "flutter", "limit cycle", "resonance", "pendulum falls over")


@pytest.mark.sample(4)
@pytest.mark.filterwarnings("ignore:.*lags one macro step in an algebraic loop:cosolve.errors.StabilityWarning")
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in LONG else ()) for n in PHYSICS])
def test_the_models_own_growth_is_silent(name):
    build, method, H, steps = PHYSICS[name]
    result, said = run(build(), method, H, steps)
    assert not said
    assert result.stats.note("growth") == ""


def test_what_cannot_be_tried_is_told_beyond_a_million_times_the_start():
    """Of 0.01 at the start come 4e3 in 200 steps (see above) and 1e5 in 250; black boxes do not tell the cause."""
    build, method, H, steps = PHYSICS["without rollback"]
    result, said = run(build(), method, H, steps + 50)
    assert np.abs(result["one.w"][steps]) < 1e4 < np.abs(result["one.w"][-1])
    assert len(said) == 1
    assert "unstable coupling by Jacobi(2) or the model's own growth" in said[0]


# -- what is kept of a long run ----------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("steps", [64, 65, 66, 129, 130, 131, 1000])
def test_marks_cover_every_step_once(steps, rows):
    """Each step has a coupling variable of its own that is 1 in it: so often is it in the largest values of marks."""
    n = steps * rows
    plan = SimpleNamespace(n_z=n, z_nominal=np.full(n, 2.0), z_open=np.zeros(n, dtype=bool))  # nothing is large enough
    monitor = GrowthMonitor(SimpleNamespace(plan=plan, z=np.zeros(n), t=0.0))
    for block in np.split(np.eye(n), steps):
        monitor.note(block)
        monitor.look()
    ends = [step for step, _ in monitor._marks]
    assert ends == sorted(set(ends))
    assert ends[-1] == n
    assert len(ends) <= 64
    assert (sum(level for _, level in monitor._marks) == 1.0).all()
    for (before, _), (end, level) in zip([(0, None), *monitor._marks], monitor._marks, strict=False):
        assert np.flatnonzero(level).tolist() == list(range(before, end))


def test_little_is_copied_of_compiled_steps():
    """A look needs 256 rows of a chunk that is let pass: copies were 4 % of a run with 90 coupling variables."""
    plan = SimpleNamespace(n_z=3, z_nominal=np.full(3, 2.0), z_open=np.zeros(3, dtype=bool))
    monitor = GrowthMonitor(SimpleNamespace(plan=plan, z=np.zeros(3), t=0.0))
    for _ in range(20):
        assert not monitor.note(np.ones((1000, 3)), compiled=True)
    assert [len(block) for block in monitor._passed] == 20 * [256]


# -- algebraic loops ---------------------------------------------------------------------------------------


def test_explicit_methods_warn_of_algebraic_loops():
    result, said = run(_loop(0.5)(), cs.Jacobi(1), 0.1, 10)
    assert said == [result.stats.note("algebraic-loop")]
    assert "Jacobi(1) lags one macro step in an algebraic loop (" in said[0]
    assert "two.u -> two.y -> one.u -> one.y" in said[0]
    assert f"WARNING: {said[0]}" in str(result.stats)


@pytest.mark.parametrize("method", [cs.SemiImplicit(1), cs.Implicit(1), cs.Jacobi(1, outputs="exchanged")])
def test_methods_that_solve_loops_say_nothing(method):
    assert not run(_loop(0.5)(), method, 0.1, 10)[1]


def test_feed_through_that_closes_no_loop_is_fine():
    assert not run(_loop(0.0)(), cs.Jacobi(1), 0.1, 10)[1]


def test_wide_fields_are_watched_in_places():
    """10000 equal pairs of tanks in one field, unstable: some of its entries are enough to notice."""

    class Field(cs.Subsystem):
        inputs, outputs = [("q", 10_000)], [("h", 10_000)]

        def __init__(self, gain):
            self.gain = gain

        def start(self, t0):
            self.h = np.ones(10_000)
            return self.h.copy()

        def advance(self, t0, t1, u):
            self.h = 0.4 * self.h + 0.6 * self.gain * u(t0)
            return self.h.copy()

    system = cs.System({"one": Field(1.0), "two": Field(-3.0)})
    system.connect("one.h", "two.q")
    system.connect("two.h", "one.q")
    _, said = run(system, cs.Jacobi(0), 1.0, 150)
    assert len(said) == 1


# -- runs that are stepped by hand ---------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_a_run_stepped_by_hand_is_watched_too(factor):
    """Beyond the critical step it says the same as `simulate`, once; below it says nothing."""
    H, said = factor * 0.03354, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with cs.Stepper(split("F/F"), method=cs.Jacobi(1), step=H, record=True) as stepper:
            stepper.run_until(600 * H)
            said = stepper.result().stats.note("growth")
    texts = [str(w.message) for w in caught if issubclass(w.category, cs.errors.StabilityWarning)]
    assert texts == ([] if factor < 1 else [said])
    assert ("values grow without bound" in said) == (factor > 1)


@pytest.mark.parametrize("steps", [5, 8])
@pytest.mark.parametrize("gain", [30.0, 1e3, 1e10])
def test_a_ring_that_explodes_within_some_steps_is_not_called_finished(gain, steps):
    """Ten- to 1e10-fold in every step, to 1e78: the report said "Finished" in green for runs shorter than 16 steps."""
    lags = {f"p{k}": cs.Linear([[-1]], [[-gain]], [[1]], x0=[1], inputs=["u"], outputs=["y"]) for k in range(3)}
    system = cs.System(lags)
    for k in range(3):
        system.connect(f"p{k}.y", f"p{(k + 1) % 3}.u")
    result, warned = run(system, cs.Jacobi(1), 0.5, steps)
    assert np.abs(result["p0.y"]).max() > 1e6
    assert len(warned) == 1
    assert verdict(result).level == "bad"


def test_a_step_of_a_load_in_a_short_run_is_no_growth():
    """From nothing to 1e9 within some steps, and no further: large, but not growing."""
    system = cs.System(
        {n: cs.Linear([[-5]], [[5]], [[1]], x0=[0], inputs=["q"], outputs=["h"]) for n in ("one", "two")}
    )
    system.connect("one.h", "two.q")
    system.set("one.q", 1e9)
    result, warned = run(system, cs.Jacobi(1), 0.1, 10)
    assert np.abs(result["two.h"]).max() > 1e8
    assert not warned


# -- short runs, slow growth -----------------------------------------------------------------------------------------


def _close_masses():
    """Two masses joined by a stiff spring: Jacobi(1) multiplies by 1.27 in every step of 0.05 s."""
    mass = lambda x: cs.Linear(  # noqa: E731
        [[0, 1], [-100, -0.5]], [[0], [1]], np.eye(2), x0=[x, 0], inputs=["f"], outputs=["x", "v"]
    )
    system = cs.System({"a": mass(1.0), "b": mass(-0.5)})
    of = ["a.x", "a.v", "b.x", "b.v"]
    system.law({"a.f": 1, "b.f": -1}, lambda x, v, y, w: 400 * (y - x) + 4 * (w - v), of=of)
    return system


@pytest.mark.parametrize("steps", [20, 40])
def test_a_blow_up_in_a_short_run_is_said(steps):
    result, said = run(_close_masses(), cs.Jacobi(1), 0.05, steps)
    assert np.abs(result["a.x"]).max() > 50
    assert len(said) == 1
    assert f"Jacobi(1) is unstable here: try a much smaller step than {0.05}, or SemiImplicit or Implicit" in said[0]
    assert "about times 1." in said[0]
    assert result.stats.calls == {"a": steps, "b": steps}  # nothing is tried that would cost more than the run
    assert not run(_close_masses(), cs.SemiImplicit(1), 0.05, steps)[1]


@pytest.mark.parametrize("steps", [8, 10, 12])
def test_growth_in_few_steps_is_said(steps):
    """Up to fivefold, and silent before."""
    result, said = run(_close_masses(), cs.Jacobi(1), 0.05, steps)
    assert len(said) == 1
    assert "Jacobi(1) is unstable here: take a step of about 0.0" in said[0]
    assert result.stats.calls == {"a": steps, "b": steps}  # trials are none of the run
    assert not run(_close_masses(), cs.SemiImplicit(1), 0.05, steps)[1]


def test_few_steps_of_a_model_that_grows_are_not_blamed():
    part = lambda: cs.Linear([[0, 1], [25, 0]], [[0], [1]], [[1, 0]], x0=[1, 0], inputs=["u"], outputs=["x"])  # noqa: E731
    system = cs.System({"a": part(), "b": part()})
    system.connect("a.x", "b.u")
    system.connect("b.x", "a.u")
    result, said = run(system, cs.Jacobi(1), 0.05, 10)
    assert result["a.x"][-1] > 5.0
    assert not said


def test_few_steps_of_a_slow_part_are_not_tried_out(monkeypatch):
    """Trials would take longer than the run."""
    monkeypatch.setattr("cosolve.accuracy.growth._QUICK", 0.0)
    assert not run(_close_masses(), cs.Jacobi(1), 0.05, 10)[1]


def test_growth_of_less_than_a_per_mille_in_every_step_is_said():
    """1 % above the limit: 5600 times the start after 12000 steps, and never tenfold from quarter to quarter."""
    method = cs.SemiImplicit(0)
    step = 1.01 * cs.analysis.critical_step(split("D/D"), method)
    result, said = run(split("D/D"), method, step, 12000, compiled=True)
    assert 3e3 < np.abs(result["one.x"]).max() / np.abs(result["one.x"][:200]).max() < 1e4
    assert len(said) == 1
    assert "SemiImplicit(0) is unstable here" in said[0]


def test_values_that_rise_while_steps_become_longer_are_not_the_couplings_growth():
    """From rest, in steps of 0.1 to 10 ms: only the newest are at the limit of stability, where step control stays."""
    case = zoo.CASES["quarter_car"]
    control = cs.Adaptive(rtol=1e-3, first_step=2e-3, max_step=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error", cs.errors.StabilityWarning)
        result = cs.simulate(case.build(), t_end=case.t_end, method=cs.GaussSeidel(3), step=control)
    assert not result.stats.note("growth")
    assert case.error(result) < 5e-3
    assert result.H.max() > 50 * result.H.min()


def test_trials_of_a_growing_model_are_few():
    """Maps of the macro step where states are shown: a run of 400 steps pays less than a quarter of itself."""

    def use(kind):
        mass = lambda x: kind([[0, 1], [0.5, 0]], [[0], [1]], [[1, 0]], x0=[x, 0], inputs=["f"], outputs=["x"])  # noqa: E731
        system = cs.System({"a": mass(1.0), "b": mass(1.0)})
        system.law({"a.f": 1, "b.f": -1}, lambda x, y: y - x, of=["a.x", "b.x"])
        return run(system, cs.Jacobi(1), 0.05, 400, compiled=False)

    (result, said), calls = counted(use)
    assert np.abs(result["a.x"]).max() > 1e5
    assert not said
    assert calls < 1.25 * 800


def test_trials_of_black_boxes_cost_half_a_run_at_most(monkeypatch):
    """126 columns that grow with the model: trials of some thousand steps would be asked for, and wide fits."""
    sizes, svd = [0.0], np.linalg.svd
    monkeypatch.setattr("numpy.linalg.svd", lambda a, **how: sizes.append(a.size * min(a.shape)) or svd(a, **how))
    n, parts, steps = 20, 6, 1000
    A = np.diag(-0.1 * np.arange(1, n + 1)) + np.diag(2.0 * np.ones(n - 1), 1) - np.diag(2.0 * np.ones(n - 1), -1)

    def use(kind):
        rng, outputs = np.random.default_rng(0), [f"y{i}" for i in range(n)]
        part = lambda: kind(A, np.ones((n, 1)), np.eye(n), x0=rng.normal(size=n), inputs=["u"], outputs=outputs)  # noqa: E731
        system = cs.System({f"part{k}": part() for k in range(parts)})
        for k in range(parts):
            system.connect(f"part{k}.y0", f"part{(k + 1) % parts}.u")
        return run(hide(system), cs.SemiImplicit(1), 0.01, steps)

    (result, _), calls = counted(use)
    assert np.abs(result["part0.y0"]).max() > 30
    own = sum(result.stats.calls.values())
    assert 1.2 * own < calls < 1.6 * own
    assert max(sizes) < 1e8  # multiplications of a fit, as many as some ten macro steps


def test_a_compiled_run_pays_for_few_steps_of_trials():
    """300 000 compiled steps cost as much as some hundred of those that trials take."""
    taken = []
    with pytest.MonkeyPatch.context() as patch:
        take = Budget.take
        patch.setattr(Budget, "take", lambda self, steps=1: taken.append(steps) or take(self, steps))
        A, B = [[0, 1], [-4, 0.03]], [[0], [0.1]]
        parts = {f"p{k}": cs.Linear(A, B, np.eye(2), x0=[1, 0], inputs=["u"], outputs=["x", "v"]) for k in range(12)}
        system = cs.System(parts)
        for k in range(12):
            system.connect(f"p{k}.x", f"p{(k + 1) % 12}.u")
        result, said = run(system, cs.SemiImplicit(1), 0.01, 60_000, compiled=True)
    assert not said
    assert np.abs(result["p0.x"]).max() > 1e3
    assert 100 < len(taken) < 0.5 * (640 + 60_000 / 512)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12])
def test_random_unstable_runs_are_told_and_random_growing_models_are_not_blamed(seed):
    told = [one for one, _ in unstable(seed, 100)]
    assert sum(told) >= 0.9 * len(told)
    blamed = [one for one, _ in growing(seed, 100)]
    assert sum(blamed) <= 0.02 * len(blamed)
