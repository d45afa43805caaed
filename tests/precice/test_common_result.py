"""One result and one log of all participants, also where the schemes of the file are used and where one dies."""

import sys

import numpy as np
import pytest
from tests.precice.test_many import HEAD, first, scheme, three
from tests.precice.test_processes import case  # noqa: F401 - a fixture
from tests.precice.test_windows import COUNTS
from tests.precice.together import A_Y, B_X, MEASURES, a_free, b_free, config, constant, couple, pair
from typer.testing import CliRunner

from cosolve import load_result
from cosolve.cli import app
from cosolve.errors import SubsystemError
from cosolve.precice.common_result import CommonResult
from cosolve.viewer.viewing import results_and_fields


def common(path, text, solvers, **options):
    """A run with its result."""
    one = CommonResult(path)
    got, coupling = couple(text, solvers, common=one, **options)
    one.finish(None)
    return load_result(path), got, coupling


@pytest.mark.parametrize("scheme", ["serial-explicit", "parallel-explicit", "serial-implicit"])
def test_every_field_of_all_is_in_one_file(tmp_path, scheme):
    """Each row satisfies the equations of both with what they had read, which is what the other had written."""
    body = MEASURES + constant(0.5) if scheme.endswith("implicit") else ""
    result, got, _ = common(tmp_path / "run.h5", config(scheme, body), pair())
    assert result.names == ["A.Y", "B.X", "A.X", "B.Y"]
    np.testing.assert_allclose(result.t, np.arange(11) * 0.1, rtol=0, atol=1e-12)
    assert result["A.Y"][0].tolist() == a_free(0.0).tolist()
    assert result["B.X"][0].tolist() == b_free(0.0).tolist()
    assert result["A.Y"][-1].tolist() == got["A"].tolist()
    assert result["B.X"][-1].tolist() == got["B"].tolist()
    for n in range(11):
        assert result["A.X"][n].tolist() == result["B.X"][n].tolist()
        assert result["B.Y"][n].tolist() == result["A.Y"][n].tolist()
    for n in range(1, 11):
        if scheme != "parallel-explicit":  # where B runs after A
            wanted = B_X @ result["A.Y"][n] + b_free(result.t[n])
            np.testing.assert_allclose(result["B.X"][n], wanted, rtol=1e-12, atol=1e-12)
        if scheme.endswith("explicit"):
            wanted = A_Y @ result["B.X"][n - 1] + a_free(result.t[n])
            np.testing.assert_allclose(result["A.Y"][n], wanted, rtol=1e-12, atol=1e-12)
    subsystem_steps = COUNTS if scheme == "serial-implicit" else [1] * 10
    assert result.iterations.tolist() == [n - 1 for n in subsystem_steps]
    assert result.stats.calls == {"A": sum(subsystem_steps), "B": sum(subsystem_steps)}
    assert result.finished


def test_windows_of_different_lengths_share_the_rows(tmp_path):
    """Windows of 0.2 and 0.3: a participant without a window end at a time keeps its last values there."""
    one = scheme("parallel-explicit", first("A", "C"), ["YA", "XA"], window=0.2, windows=3)
    other = scheme("parallel-explicit", first("B", "C"), ["YB", "XB"], window=0.3, windows=2)
    result, got, _ = common(tmp_path / "run.h5", HEAD + one + other + "</precice-configuration>", three())
    np.testing.assert_allclose(result.t, [0.0, 0.2, 0.3, 0.4, 0.6], rtol=0, atol=1e-12)
    assert result["A.YA"][2].tolist() == result["A.YA"][1].tolist()
    assert result["B.YB"][1].tolist() == result["B.YB"][0].tolist() == [0.0] * 4
    assert result["B.YB"][-1].tolist() == got["B"]["YB"].tolist()
    assert result["A.YA"][-1].tolist() == got["A"]["YA"].tolist()
    assert result["C.YA"][-1].tolist() == result["A.YA"][-1].tolist()
    assert result.stats.calls == {"A": 3, "B": 2, "C": 4}


def test_the_viewer_opens_it_with_the_graph(tmp_path):
    path = tmp_path / "run.h5"
    result, _, _ = common(path, config("serial-explicit"), pair())
    assert result.meta["method"] == "as configured: serial-explicit"
    about = results_and_fields((path,)).about()["results"][0]
    assert about["coupling"]["subsystems"][0]["name"] == "A"
    assert [edge["sources"] for edge in about["coupling"]["edges"]] == [["B.X"], ["A.Y"]]
    assert {signal["name"] for signal in about["signals"]} >= {"A.Y", "B.X", "A.X", "B.Y"}


@pytest.mark.covers("PX-18")
def test_the_rows_before_a_death_are_kept_and_the_log_has_names(case):  # noqa: F811
    from cosolve.precice.running import run_configuration

    full, _, _ = common(case.folder / "full.h5", config("serial-implicit", MEASURES + constant(0.5)), pair())
    commands = {name: f"{sys.executable} solver.py {name} {how}" for name, how in (("A", "none"), ("B", "killed"))}
    with pytest.raises(SubsystemError, match="participant 'B' was ended"):
        run_configuration("config.xml", commands, out=case.folder / "run.h5", log=case.folder / "all.log")
    kept = load_result(case.folder / "run.h5")
    assert not kept.finished
    assert "participant 'B' was ended (signal 9, SIGKILL)" in kept.error
    assert len(kept) == 4
    for name in full.names:
        np.testing.assert_allclose(kept[name], full[name][:4], rtol=0, atol=1e-12)
    lines = (case.folder / "all.log").read_text().splitlines()
    assert "B | the mesh is tangled" in lines
    assert any(line.startswith("cosolve | participant 'B' was ended") for line in lines)
    assert any(line.startswith("A | ") and "ParticipantError: A: participant 'B' was ended" in line for line in lines)


def test_the_command_tells_where_the_result_is_and_refuses_a_bad_place_before_it_starts(case):  # noqa: F811
    words = ["precice", "run", "config.xml", "-p", "A=true", "-p", "B=true", "--out"]
    told = CliRunner().invoke(app, [*words, "nowhere/run.h5"])
    assert told.exit_code == 2, told.output
    assert "nowhere" in told.output


def test_progress_of_all_stands_in_one_line(monkeypatch):
    """`told` hears fractions that grow to the end, with the names of all."""
    heard = []
    one = CommonResult(None, lambda fraction, words: heard.append((fraction, words)))
    monkeypatch.setattr("cosolve.precice.common_result._TELL", -1.0)
    couple(config("serial-implicit", MEASURES + constant(0.5)), pair(), common=one)
    fractions = [fraction for fraction, _ in heard]
    assert fractions == sorted(fractions)
    assert 0.9 <= fractions[-1] <= 1.0
    assert heard[-1][1] == "A t = 1 (63 iterations), B t = 1 (63 iterations)"
