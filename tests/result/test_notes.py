"""What a run reports about itself is one list, and everything that shows a run reads it."""

import json

import numba
import numpy as np
import pytest
from typer.testing import CliRunner

import cosolve as cs
from cosolve.cli import app
from cosolve.report import write_report
from cosolve.result.notes import verdict, worst_level
from cosolve.viewer.result_view import ResultView

MODEL = """
import cosolve as cs

def part():
    return cs.Static(lambda t, u: 0.5 * u + t, inputs=["u"], outputs=["y"])
"""

FILE = """
[subsystems.a]
factory = "model:part"

[[connections]]
from = "a.y"
to = "a.u"

[simulation]
t_end = 1.0
step = 0.1

[simulation.method]
name = "implicit"
corrector = {name = "relaxation", alpha = 0.05}
max_iterations = 1
accept_unconverged = true
"""


def loop() -> cs.System:
    system = cs.System({"a": cs.Static(lambda t, u: 0.5 * u + t, inputs=["u"], outputs=["y"])})
    system.connect("a.y", "a.u")
    return system


def unconverged() -> cs.Result:
    method = cs.Implicit(corrector=cs.Relaxation(0.05), max_iterations=1, accept_unconverged=True)
    return cs.simulate(loop(), t_end=1.0, step=0.1, method=method)


def over_tolerance() -> cs.Result:
    """Every step is too long for the tolerance, and no shorter one is allowed."""
    one = cs.Linear([[0.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
    two = cs.Linear([[0.0]], [[-25.0]], [[1.0]], x0=[0.0], inputs=["u"], outputs=["x"])
    system = cs.System({"one": one, "two": two})
    system.connect("two.x", "one.u")
    system.connect("one.x", "two.u")
    step = cs.Adaptive(rtol=1e-9, min_step=0.1, max_step=0.1, first_step=0.1)
    return cs.simulate(system, t_end=2.0, step=step, method=cs.Implicit(1))


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (unconverged, "10 of 10 steps were accepted without convergence"),
        (over_tolerance, "20 of 20 steps exceed the error tolerance"),
    ],
)
def test_a_run_that_did_not_do_what_was_asked_never_just_finished(run, text, tmp_path) -> None:
    result = run()
    assert worst_level(result.notes) == "warning"
    assert result.notes[0].text.startswith(text)
    found = verdict(result)
    assert found.level == "doubtful"
    assert "Finished" not in found.headline
    page = write_report(result, tmp_path / "report.html").read_text(encoding="utf-8")
    assert text in page
    assert "Finished: reached" not in page
    assert '<div class="verdict doubtful">' in page
    assert "finished, with warnings" in repr(result)


def test_a_new_diagnosis_shows_everywhere(tmp_path) -> None:
    """It is written down in one place; no list anywhere else names it."""
    result = cs.simulate(loop(), t_end=1.0, step=0.1, method=cs.Implicit(0))
    assert result.notes == []
    note = cs.Note("moon-phase", "the moon was full", "error", 0.5, "a", "wait a fortnight")
    result.stats.add(note)
    assert result.notes == [note]
    said = "the moon was full; wait a fortnight"
    assert said in str(result)
    assert said in result._repr_html_()
    again = cs.load_result(result.save(tmp_path / "run.h5"))
    assert again.notes == [note]
    assert "The moon was full; wait a fortnight." in write_report(again, tmp_path / "report.html").read_text("utf-8")
    about = ResultView(again, "run").about()["verdict"]
    assert (about["level"], about["details"]) == ("bad", [said])


def test_the_command_line_gives_the_same_list(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "system.toml").write_text(FILE)
    shown = CliRunner().invoke(app, ["run", "system.toml"])
    assert "WARNING: 10 of 10 steps were accepted without convergence" in shown.output
    assert "cosolve compare system.toml" in shown.output
    told = CliRunner().invoke(app, ["run", "system.toml", "--json"])
    assert [note["kind"] for note in json.loads(told.stdout)["notes"]] == ["not-converged"]


def test_a_sweep_keeps_what_its_runs_report() -> None:
    method = cs.Implicit(corrector=cs.Relaxation(0.05), max_iterations=1, accept_unconverged=True)
    found = cs.sweep(lambda k: loop(), {"k": [1.0, 2.0]}, methods=method, steps=0.1, t_end=1.0)
    assert "accepted without convergence" in str(found["note"].values.ravel()[0])


def test_a_note_gives_way_to_a_newer_one_about_the_same() -> None:
    stats = cs.simulate(loop(), t_end=0.2, step=0.1, method=cs.Implicit(0)).stats
    stats.add(cs.Note("growth", "a little", subsystem="a"))
    stats.add(cs.Note("growth", "elsewhere", subsystem="b"))
    stats.add(cs.Note("growth", "a lot", "error", subsystem="a"))
    assert [note.text for note in stats.notes] == ["a lot", "elsewhere"]


def test_a_run_that_stopped_says_so_first() -> None:
    breaks = cs.System({"a": cs.Static(lambda t, u: t if t < 0.5 else float("inf"), inputs=[], outputs=["x"])})
    with pytest.raises(cs.errors.SimulationError) as stopped:
        cs.simulate(breaks, t_end=1.0, method=cs.Jacobi(0), step=0.1)
    first = stopped.value.result.notes[0]
    assert (first.kind, first.level) == ("stopped", "error")
    assert "returned inf" in first.text


def oscillator(decorate) -> cs.System:
    """A spring between two masses, all of it functions."""
    law = lambda a, b: 10.0 * (b - a)  # noqa: E731
    parts = {}
    for name in ("one", "two"):
        rhs, output = (lambda t, x, u: np.array([x[1], u[0]])), (lambda t, x, u: x[:1])
        parts[name] = cs.Ode(decorate(rhs), decorate(output), x0=[0.0, 1.0], inputs=["f"], outputs=["x"])
    system = cs.System(parts)
    system.law({"one.f": 1, "two.f": -1}, decorate(law), of=["one.x", "two.x"])
    return system


def notes(decorate, steps=1000, **options) -> list[str]:
    result = cs.simulate(oscillator(decorate), t_end=steps * 1e-3, step=1e-3, method=cs.Jacobi(1), **options)
    return [note.sentence for note in result.notes if note.kind == "not-compiled"]


def test_a_long_run_says_what_keeps_it_in_python() -> None:
    """Every function that a decorator would help, and what that gains; not short runs, nor those that asked for it."""
    text = lambda f: lambda *given: f(*given) if str(given) else None  # noqa: E731
    (said,) = notes(text)
    assert "'one': its rhs stays in Python: it uses str (test_notes.py, line" in said
    assert "the law for one.f, two.f stays in Python: it uses str (" in said
    assert "a fifteenth to a fiftieth of the time" in said
    assert notes(text, steps=999) == []
    assert notes(text, compiled=False) == []
    assert notes(lambda f: f) == []
    assert notes(numba.njit) == []
