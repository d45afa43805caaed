"""Sweeps as maps: what the page gets is what xarray says, cell by cell."""

import numpy as np
import pytest

import cosolve as cs
from cosolve.viewer.sweep_map import SweepMap, read_sweep
from cosolve.viewer.viewer_session import ViewerSession
from cosolve.viewer.viewing import session_of
from cosolve.viewer.widget import answer


def tank(rate, level):
    return cs.System({"a": cs.Linear([[-rate]], [], [[1]], x0=[level], inputs=[], outputs=["h"])})


@pytest.fixture(scope="module")
def found():
    grid = {"rate": [1.0, 2.0, np.nan], "level": [1.0, 3.0]}
    methods = [cs.Jacobi(0), cs.GaussSeidel(0)]
    return cs.sweep(tank, grid, methods=methods, steps=[0.1, 0.05], t_end=1, executor="serial")


def test_a_map_is_the_slice_that_was_asked_for(found):
    shown = SweepMap(found, "tank")
    got = shown.map("a.h", "level", "step", {"rate": 1, "coupling": 1})
    expected = found["a.h"].isel(rate=1, coupling=1).transpose("step", "level").values
    assert np.array(got["values"]) == pytest.approx(expected)
    alone = shown.map("a.h", "rate", "", {"level": 1})["values"]
    assert np.array(alone[0][:2]) == pytest.approx(found["a.h"].isel(level=1, coupling=0, step=0).values[:2])
    assert alone[0][2] is None  # a run that failed has no number


def test_failed_runs_are_told_where_they_are(found):
    shown = SweepMap(found, "tank")
    got = shown.map("a.h", "rate", "level", {})
    assert [place[:2] for place in got["error"]] == [[0, 2], [1, 2]]
    cell = shown.cell({"rate": 2, "level": 0, "coupling": 0, "step": 0})
    assert "must be a finite number" in cell["error"]
    assert cell["at"]["level"] == 1.0
    assert cell["values"] == {"a.h": None}
    assert shown.about()["failed"] == 8


def test_rows_are_points_and_files_are_sweeps(found, tmp_path):
    rows = cs.sweep(tank, [{"rate": 1.0, "level": 2.0}, {"rate": 3.0, "level": 1.0}], methods=cs.Jacobi(), steps=0.1,
                    t_end=1, executor="serial")  # fmt: skip
    shown = SweepMap(rows, "rows")
    assert shown.about()["columns"] == ["rate", "level"]
    assert shown.map("a.h", "rate", "level", {})["points"] == [[1.0, 3.0], [2.0, 1.0]]
    pytest.importorskip("h5netcdf")
    found.to_netcdf(tmp_path / "sweep.nc", engine="h5netcdf")
    again = read_sweep(tmp_path / "sweep.nc")
    assert again.map("a.h", "rate", "level", {}) == SweepMap(found, "").map("a.h", "rate", "level", {})
    with pytest.raises(cs.errors.SetupError, match="one sweep at a time"):
        session_of((found, found), None, None)
    (tmp_path / "no.nc").write_text("no")
    with pytest.raises(cs.errors.OutputFileError, match=r"'.*no\.nc' is not an HDF5 file"):
        read_sweep(tmp_path / "no.nc")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"ask": "map", "quantity": "b", "x": "rate", "y": "", "at": {}}, "there is no quantity 'b'"),
        ({"ask": "map", "quantity": "a.h", "x": "no", "y": "", "at": {}}, "'a.h' has no dimension 'no'"),
        ({"ask": "cell", "at": {"no": 1}}, "there is no dimension 'no'"),
        ({"ask": "cell", "at": ["x"]}, "places of a sweep are whole numbers"),
        ({"ask": "cell", "at": {"rate": 10**9}}, ""),
    ],
)
def test_foolish_questions_get_a_sentence(found, question, said):
    reply, _ = answer(ViewerSession(sweep=SweepMap(found, "tank")), {"id": 1} | question)
    assert said in reply.get("problem", "")


def test_without_a_sweep(result):
    from cosolve.viewer.result_view import ResultView

    reply, _ = answer(ViewerSession([ResultView(result, "")]), {"id": 1, "ask": "cell", "at": {}})
    assert reply["problem"] == "no sweep is shown here"
