"""FMUs that lose something when they are set back, where every repeated step gives the same bits."""

import json
import warnings

import numpy as np
import pytest
from tests.fmu.zoo.members import animal
from tests.fmu.zoo.pairs import pair, part
from typer.testing import CliRunner

import cosolve as cs
from cosolve.accuracy import rollback as rollback_of_runs
from cosolve.cli import app
from cosolve.fmu.findings import facts
from cosolve.result.notes import verdict

VERSIONS = pytest.mark.parametrize("fmi", [2, 3])
RUNS = {
    "semi-implicit": {"method": cs.SemiImplicit(1), "step": 0.02},
    "implicit": {"method": cs.Implicit(1), "step": 0.02},
    "iqn": {"method": cs.Implicit(1, corrector=cs.IqnIls()), "step": 0.02},
    "adaptive": {"method": cs.Jacobi(1), "step": cs.Adaptive(rtol=1e-4)},
}
#: quasi-Newton methods run in the Python engine
ENGINES = pytest.mark.parametrize(
    ("run", "compiled"), [(run, compiled) for run in RUNS for compiled in (False, True) if run != "iqn" or not compiled]
)


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch):
    """What one test learns of an FMU must not reach another."""
    monkeypatch.setattr(facts, "_known", {})
    monkeypatch.setattr(facts, "_back", {})


def rollback(result):
    return [note for note in result.notes if note.kind == "rollback"]


@VERSIONS
@ENGINES
def test_an_event_that_is_lost_is_told(fmi, run, compiled):
    """A clutch closes at t = 0.4, and never does after one restore: the run is smooth and wrong."""
    with pytest.warns(cs.errors.AccuracyWarning, match="'a' loses something when it is set back") as caught:
        result = cs.simulate(pair(part("engages", fmi), fmi), t_end=1.0, compiled=compiled, **RUNS[run])
    (note,) = rollback(result)
    assert note.level == "error"
    assert verdict(result).level == "bad"
    assert note.subsystem == "a"
    assert 0.4 - 1e-9 <= note.time <= 0.43
    assert "%" in note.text
    assert len(note.sentence) < 300
    assert sum("loses something" in str(one.message) for one in caught) == 1
    facts._known.clear()
    right = cs.simulate(pair(part("engages", fmi), fmi), t_end=1.0, method=cs.Jacobi(1), step=0.01)
    assert abs(right["a.y"][-1] - result["a.y"][-1]) > 0.5  # it is wrong indeed
    assert not rollback(right)


@VERSIONS
def test_a_bar_is_not_given_for_it(fmi):
    with pytest.warns(cs.errors.AccuracyWarning, match="loses something"):
        result = cs.simulate(pair(part("engages", fmi), fmi), t_end=1.0, error_bar=True, **RUNS["semi-implicit"])
    assert not result.error_bar.bar
    assert "loses something when it is set back" in result.error_bar.reason
    system = pair(part("plain", fmi), fmi)
    assert cs.simulate(system, t_end=1.0, error_bar=True, **RUNS["semi-implicit"]).error_bar.bar


@pytest.mark.sample(6)
@VERSIONS
@ENGINES
@pytest.mark.parametrize("name", ["plain", "black", "hidden"])
def test_sound_ones_are_not_blamed(fmi, run, compiled, name):
    """Their states come back, so there is nothing to say, and the run is the run."""
    result = cs.simulate(pair(part(name, fmi), fmi), t_end=1.0, compiled=compiled, **RUNS[run])
    assert not rollback(result)
    assert (
        result.stats.calls
        == cs.simulate(pair(part(name, fmi), fmi), t_end=1.0, compiled=compiled, **RUNS[run]).stats.calls
    )


@VERSIONS
def test_a_small_loss_is_a_remark(fmi):
    """States that come back up to 1e-6 are what solvers with a tolerance have."""
    result = cs.simulate(pair(part("rounds", fmi), fmi), t_end=1.0, **RUNS["implicit"])
    (note,) = rollback(result)
    assert note.level == "info"
    assert "comes back to its saved states up to" in note.text


@VERSIONS
def test_one_in_a_process_of_its_own_is_proven_too(fmi):
    with pytest.warns(cs.errors.AccuracyWarning, match="'a' loses something"):
        result = cs.simulate(pair(part("engages", fmi, isolated=True), fmi), t_end=1.0, **RUNS["semi-implicit"])
    assert rollback(result)[0].level == "error"


@VERSIONS
def test_driven_inputs_and_changes_are_repeated_as_they_were(fmi):
    system = cs.System({"a": part("plain", fmi), "b": cs.load_fmu(animal("plain", fmi))})
    system.set("a.u", cs.Table([0.0, 0.13, 0.37, 1.0], [0.0, 2.0, -1.0, 0.5]))
    system.connect("a.y", "b.u")
    system.at(0.5, {"b.gain": 0.3})
    result = cs.simulate(system, t_end=1.0, **RUNS["semi-implicit"])
    assert not rollback(result)
    adaptive = cs.simulate(system, t_end=1.0, **RUNS["adaptive"])
    assert not rollback(adaptive)


@VERSIONS
def test_what_a_run_found_is_known_to_the_next_process(fmi, tmp_path, monkeypatch):
    monkeypatch.setenv("COSOLVE_FINDINGS", str(tmp_path / "findings"))
    with pytest.warns(cs.errors.AccuracyWarning, match="loses something"):
        cs.simulate(pair(part("engages", fmi), fmi), t_end=1.0, **RUNS["semi-implicit"])
    monkeypatch.setattr(facts, "_known", {})  # as in another process
    with pytest.warns(cs.errors.FmuWarning, match=r"does|did not claim that it saves its state: in a run this fails"):
        known = cs.load_fmu(animal("engages", fmi))
    with pytest.raises(cs.errors.CapabilityError, match="SemiImplicit needs rollback"):
        cs.simulate(pair(known, fmi), t_end=0.1, **RUNS["semi-implicit"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cs.load_fmu(animal("plain", fmi))  # another FMU
    kept = [json.loads(file.read_text())["findings"] for file in (tmp_path / "findings").iterdir()]
    assert [finding["claim"] for findings in kept for finding in findings] == ["saves its state"]


@VERSIONS
@pytest.mark.parametrize("compiled", [False, True])
def test_one_that_came_back_is_not_asked_again(fmi, compiled, tmp_path, monkeypatch):
    """Proof after a run costs a part of it: once for an FMU, its values and times, and wherever a bar is wanted."""
    monkeypatch.setenv("COSOLVE_FINDINGS", str(tmp_path / "findings"))
    asked = []

    def replayed(caller, i, done=rollback_of_runs.replayed):
        asked.append(caller.plan.names[i])
        return done(caller, i)

    monkeypatch.setattr(rollback_of_runs, "replayed", replayed)

    def simulate(t_end=1.0, rate=None, **more):
        asked.clear()
        cs.simulate(pair(part("plain", fmi, rate), fmi), t_end=t_end, compiled=compiled, **RUNS["implicit"], **more)
        return list(asked)

    assert simulate() == ["a", "b"]
    assert simulate() == []
    assert simulate(t_end=0.5) == []
    assert simulate(error_bar=True) == ["a", "b"]
    monkeypatch.setattr(facts, "_known", {})  # as in another process
    monkeypatch.setattr(facts, "_back", {})
    assert simulate() == []
    assert simulate(t_end=1.5) == ["a", "b"]
    # of other values the second, fourth, eighth ... are looked at; `a` and `b` are the same FMU with two sets of them
    found = [simulate(rate=1.0 + k) for k in (0, 1, 3, 4, 5, 6)]
    assert found == [[], ["a"], [], [], [], ["a"]]


@VERSIONS
def test_the_trial_goes_through_the_whole_default_experiment(fmi):
    trial = cs.fmi.try_fmu(animal("engages", fmi), instances=0)
    assert trial["saves its state"].verdict == "fails"
    assert "going back in every step of its default experiment" in trial["saves its state"].text
    assert cs.fmi.try_fmu(animal("plain", fmi), instances=0)["saves its state"].verdict == "holds"
    out = CliRunner().invoke(app, ["inspect", "--try", str(animal("engages", fmi))])
    assert "default experiment" in " ".join(out.output.split())


KINDS = ("engages", "fades", "rounds", "lags", "plain")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
@pytest.mark.parametrize("name", KINDS)
def test_random_runs_are_refused_told_or_right(name, seed):
    """Never a wrong result silently, and never a word about a sound one."""
    rng = np.random.default_rng([seed, KINDS.index(name)])
    fmi, run = int(rng.integers(2, 4)), list(RUNS)[int(rng.integers(len(RUNS)))]
    options = dict(RUNS[run]) if run == "adaptive" else {**RUNS[run], "step": float(rng.uniform(0.005, 0.05))}
    compiled = False if run == "iqn" else bool(rng.integers(2))

    def build(which):
        facts._known.clear()
        chosen = np.random.default_rng(seed + 10_000)
        gains = chosen.uniform(-0.4, 0.4, size=2)
        given = {"rate": float(chosen.uniform(1, 6)), "gain": float(gains[0])}
        a = cs.load_fmu(animal(which, fmi), parameters=given, start={"x": float(chosen.normal())})
        b = cs.load_fmu(animal("plain", fmi), parameters={"gain": float(gains[1]), "rate": float(chosen.uniform(1, 4))})
        return pair(a, fmi, b)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = cs.simulate(build(name), t_end=1.0, method=cs.Jacobi(2), step=0.001)
        try:
            result = cs.simulate(build(name), t_end=1.0, compiled=compiled, **options)
        except cs.CosolveError as error:
            assert name != "plain"
            assert "does not come back" in str(error) or "did not converge" in str(error)  # noqa: PT017
            return
    size = np.abs(want["a.y"]).max()
    found = np.interp(result.t, want.t, want["a.y"])
    told = any(note.level == "error" for note in rollback(result))
    assert told or np.abs(result["a.y"] - found).max() < 0.02 * size
    assert not (told and name == "plain")
