"""FMUs whose values come a step late, or that do not follow their inputs inside a step: told, or held."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from tests.fmu.zoo.pairs import expected, pair, part, y

import cosolve as cs
from cosolve.fmu import step_trial
from cosolve.fmu.findings import facts

METHODS = [cs.Jacobi(1), cs.SemiImplicit(1)]


@pytest.fixture(autouse=True)
def forgotten(monkeypatch, tmp_path):
    """What one test learns of an FMU must not reach another."""
    monkeypatch.setenv("COSOLVE_FINDINGS", str(tmp_path))
    monkeypatch.setattr(facts, "_known", {})
    monkeypatch.setattr(step_trial, "_looked", {})


def run(name, fmi, method=METHODS[0], **options):
    a = part(name, fmi)
    return cs.simulate(pair(a, fmi), t_end=1.0, method=method, step=0.05, **options), a


@pytest.mark.parametrize(("fmi", "method"), [(2, METHODS[0]), (3, METHODS[0]), (2, METHODS[1])], ids=str)
@pytest.mark.parametrize("name", ["late_input", "late_output", "denies"])
def test_values_that_come_a_step_late_are_told(name, fmi, method):
    result, _ = run(name, fmi, method)
    (note,) = [note for note in result.notes if note.kind == "step-length"]
    assert (note.level, note.subsystem) == ("warning", "a")
    words = "reacts at once to inputs" if name == "denies" else "depends on the length of its steps"
    assert words in note.text


def test_a_tool_behind_an_fmu_is_not_called_from_copies_of_the_process():
    """They would send to the same program as the run."""
    a = part("late_input", 2)
    flags = a._instance.flags
    a._instance.flags = replace(flags, flags={**flags.flags, "needsExecutionTool": "true"})
    result = cs.simulate(pair(a, 2), t_end=1.0, method=METHODS[0], step=0.05)
    assert not [note for note in result.notes if note.kind == "step-length"]


def test_it_is_told_in_every_run_of_a_process():
    for _ in range(2):
        assert [note.kind for note in run("late_input", 2)[0].notes if note.level == "warning"] == ["step-length"]


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize(("name", "fmi"), [("deaf", 2), ("deaf_between", 3)])
def test_inputs_that_are_not_followed_are_held_in_the_middle_of_the_step(name, fmi, method):
    with pytest.warns(cs.errors.FmuWarning, match="does not do what it says: inputs that change during the step"):
        first, a = run(name, fmi, method)
    with pytest.warns(cs.errors.FmuWarning, match="as if it did not claim that it follows its inputs inside a step"):
        second, b = run(name, fmi, method)
    held, c = run("black", fmi, method)
    for one, other in ((first, a), (second, b)):
        np.testing.assert_array_equal(y(one, other), y(held, c))


@pytest.mark.parametrize(
    "name", ["plain", "black", "grid_down", "grid_up", "rounds", "samples", "discrete", "outputs_in_step"]
)
def test_sound_ones_are_not_blamed(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.FmuWarning)
        result, _ = run(name, 3 if name == "plain" else 2)
    assert [note for note in result.notes if note.kind == "step-length"] == []


def test_the_trial_leaves_the_fmu_of_the_run_alone():
    """One that forgets what happens at restores, under a method that restores nothing."""
    result, a = run("state_kept", 2)
    np.testing.assert_allclose(y(result, a), expected("plain", 2), atol=0.1)
    assert result.notes == [note for note in result.notes if note.level == "info"]
