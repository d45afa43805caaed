"""What cannot be kept or resumed is said in one sentence: before the first step, and before a result is touched."""

import json

import numpy as np
import pytest
from campaigns.mutated import repacked
from tests.fmu.build import fmu
from tests.run.stepper.models import two_mass
from tests.run.stepper.test_saved_runs import NoRollback, Opaque
from tests.state import models

import cosolve as cs
from cosolve.state.codec import _digest, from_bytes, to_bytes


@pytest.fixture
def left(tmp_path):
    """A run that was left behind: its result file, and its state."""
    file = tmp_path / "run.h5"
    with pytest.raises(cs.errors.StepSizeError):
        models.simulate("readable", 0.2, file, state_every=4, max_steps=6)
    return file, tmp_path / "run.h5.state"


def refusal(file, *arguments, **options) -> str:
    before = file.read_bytes()
    with pytest.raises((cs.errors.SetupError, cs.errors.OutputFileError)) as refused:
        cs.resume(file, *(arguments or (two_mass(),)), **options)
    assert "\n" not in str(refused.value)
    assert file.read_bytes() == before
    return str(refused.value)


def test_how_often(tmp_path):
    run = {"t_end": 1.0, "method": "jacobi", "step": 0.1}
    for wrong in (0, -1, 2.5, "often", "5 days", "0 s", True, ""):
        with pytest.raises(cs.errors.SetupError, match=r"state_every is a number of macro steps \(1000\) or a time"):
            cs.simulate(two_mass(), **run, save=tmp_path / "run.h5", state_every=wrong)
    with pytest.raises(cs.errors.SetupError, match="give its name as well, save="):
        cs.simulate(two_mass(), **run, state_every=10)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (NoRollback, r"'box' \(NoRollback\) has no save and restore"),
        (Opaque, "the state of 'box' cannot be written to a file: it holds a object"),
        (lambda: cs.load_fmu(fmu("mass_no_rollback", 2)), r"'box' \(CoSimulationFmu\) has no save and restore"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_the_first_step(tmp_path, make, sentence):
    system = cs.System({"box": make()})
    for address in system.unconnected_inputs():
        system.set(address, 0.0)
    with pytest.raises(cs.errors.SetupError, match=sentence):
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(), step=0.1, save=tmp_path / "run.h5", state_every="1 h")
    assert len(cs.load_result(tmp_path / "run.h5").t) == 1


def test_an_fmu_that_keeps_its_state_to_itself(tmp_path):
    box = cs.load_fmu(fmu("mass_force", 2))
    del box.serialise  # as one without canSerializeFMUState
    system = cs.System({"box": box})
    system.set("box.f", 0.0)
    with pytest.raises(cs.errors.SetupError, match="exported with canSerializeFMUState"):
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(), step=0.1, save=tmp_path / "run.h5", state_every=1)


def test_another_system_method_or_step(left):
    file, _ = left
    other = two_mass()
    renamed = cs.System({"one": other.subsystems["one"], "third": other.subsystems["two"]})
    for address in renamed.unconnected_inputs():
        renamed.set(address, 0.0)
    assert "belongs to a system of 'one', 'two', this one has 'one', 'third'" in refusal(file, renamed)
    assert "saved with method Jacobi(degree=2" in refusal(file, two_mass(), method=cs.Jacobi(1))
    assert "was made with step 0.01, here: 0.02" in refusal(file, two_mass(), step=0.02)
    assert "saved with startup GradedStart" in refusal(file, two_mass(), startup=cs.RisingDegree())
    assert "resume takes the file and a cosolve.System" in refusal(file, 3)


def test_a_run_of_a_program_needs_it(left):
    file, _ = left
    with pytest.raises(cs.errors.SetupError, match=r"was made by a Python program.*cosolve.resume\('run.h5', system\)"):
        cs.resume(file)


def test_a_method_of_ones_own_is_given_again(tmp_path):
    past = cs.KnownHistory(lambda t: {"clock.t": t})

    def build():
        clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
        hold = cs.Static(lambda t, u: u, inputs=["u"], outputs=["y"])
        system = cs.System({"clock": clock, "hold": hold})
        system.connect("clock.t", "hold.u")
        return system

    file = tmp_path / "run.h5"
    run = {"t_end": 1.0, "method": cs.Jacobi(1), "step": 0.1, "startup": past}
    with pytest.raises(cs.errors.StepSizeError):
        cs.simulate(build(), **run, save=file, state_every=2, max_steps=3)
    assert "the startup of the run holds something of your own" in refusal(file, build())
    assert cs.resume(file, build(), startup=past, max_steps=20)["hold.y"][-1] == 1.0


def test_no_state(left, tmp_path):
    file, state = left
    state.unlink()
    assert "there is no state 'run.h5.state' beside" in refusal(file)
    with pytest.raises(cs.errors.OutputFileError, match="there is no result file"):
        cs.resume(tmp_path / "other.h5", two_mass())


def test_the_state_of_another_run(left, tmp_path):
    file, state = left
    kept = state.read_bytes()
    with pytest.raises(cs.errors.StepSizeError):
        models.simulate("readable", 0.2, file, state_every=4, max_steps=6)
    state.write_bytes(kept)
    assert "belongs to another run" in refusal(file)
    with cs.Stepper(two_mass(), method=cs.Jacobi(2), step=0.01) as stepper:
        stepper.save_file(state)
    assert "none that a run with state_every has left" in refusal(file)


def test_damaged_and_cut_states(left):
    file, state = left
    whole = state.read_bytes()
    for spoilt in (b"", whole[:100], whole[:-1], whole[: len(whole) // 2], whole[:200] + b"\0" * 50 + whole[250:]):
        state.write_bytes(spoilt)
        assert "is no saved state, or a damaged one" in refusal(file)


@pytest.mark.parametrize(("number", "age"), [(0, "an older"), (2, "a newer")])
def test_states_of_other_formats(left, number, age):
    file, state = left
    whole = state.read_bytes()

    def edit(name, content):
        return (
            content.replace(b'"cosolve state 1"', b'"cosolve state %d"' % number) if name == "state.json" else content
        )

    state.write_bytes(repacked(whole, edit))
    said = refusal(file)
    assert f"format {number}, written by {age} cosolve ({cs.__version__})" in said
    assert "reads format 1" in said


@pytest.mark.sample(1)
@pytest.mark.parametrize("key", ["rows", "settings", "stats", "observers", "caller"])
def test_counters_that_are_missing(left, key):
    file, state = left
    whole, attached = state.read_bytes(), {}
    repacked(whole, lambda name, content: attached.setdefault(name, content))
    read = json.loads(attached.pop("state.json"))
    counters = read["tree"]["the run"]["dict"]
    read["tree"]["the run"]["dict"] = [pair for pair in counters if pair[0] != key]
    read["digest"] = _digest(read["tree"], attached)
    state.write_bytes(
        repacked(whole, lambda name, content: json.dumps(read).encode() if name == "state.json" else content)
    )
    assert f"(its {key} is missing)" in refusal(file)


def test_counters_that_do_not_fit(left):
    """Noticed only when they are taken over: the result stays good for another attempt."""
    file, state = left
    whole, attached = state.read_bytes(), {}
    repacked(whole, lambda name, content: attached.setdefault(name, content))
    read = json.loads(attached.pop("state.json"))
    for pair in read["tree"]["the run"]["dict"]:
        if pair[0] == "observers":
            pair[1] = {"dict": []}
    read["digest"] = _digest(read["tree"], attached)
    state.write_bytes(
        repacked(whole, lambda name, content: json.dumps(read).encode() if name == "state.json" else content)
    )
    with pytest.raises(cs.errors.SetupError, match="the kept state does not fit this run"):
        cs.resume(file, two_mass())
    state.write_bytes(whole)
    assert cs.resume(file, two_mass(), max_steps=100).stats.steps == 20


def test_a_result_that_was_cut(left):
    """Rows that a state counts on are not in the file that lies beside it."""
    import h5py

    file, _ = left
    with h5py.File(file, "r+") as inside:
        inside["rows"][()] = 3
    assert "holds 3 rows, but its saved state was written after 5" in refusal(file)


def test_a_new_run_forgets_the_state_of_the_old_one(left):
    file, state = left
    models.simulate("readable", 0.05, file)
    assert not state.exists()


def forged(path, change):
    """The state with something else in it, and a digest that is right."""
    tree = from_bytes(path.read_bytes())
    change(tree)
    path.write_bytes(to_bytes(tree))


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: setattr(tree["history"], "depth", -1),  # machine code read beyond the end
        lambda tree: setattr(tree["history"], "depth", None),
        lambda tree: setattr(tree["history"], "steps", [np.zeros(3)]),
        lambda tree: tree["windows"].update(t=(1, 2)),
        lambda tree: tree["windows"].update(n=np.zeros(2)),
        lambda tree: tree.update(grid=("uniform", np.zeros(2), 0.1)),
        lambda tree: tree["description"].update({"made of": 1.0}),
        lambda tree: tree["the memory of the method"]["measure"].update(size=np.zeros(1)),
        lambda tree: tree["the memory of the method"]["measure"].update(least=np.zeros(2, np.int64)),
        lambda tree: tree["the run"]["observers"]["RingingDiagnosis"].update(rows="x"),
        lambda tree: tree["the run"]["observers"]["RingingDiagnosis"].update(largest=()),
    ],
)
@pytest.mark.parametrize("compiled", [False, True], ids=["readable", "compiled"])
def test_a_state_of_a_right_digest_that_makes_no_sense(tmp_path, change, compiled):
    """Refused, or the run ends in a sentence; neither machine code nor an observer stumbles over it."""
    file = tmp_path / "run.h5"
    run = {"t_end": 0.5, "method": cs.Jacobi(2), "step": 0.01, "compiled": compiled}
    with pytest.raises(cs.errors.StepSizeError):
        cs.simulate(models.linear_pair(), **run, save=file, state_every=4, max_steps=20)
    forged(tmp_path / "run.h5.state", change)
    with pytest.raises(cs.CosolveError) as refused:
        cs.resume(file, models.linear_pair(), max_steps=100)
    assert "\n" not in str(refused.value)
