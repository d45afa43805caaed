"""Fields in a report: the numbers of the file are in the page, the page stays small, and it says what was left out."""

import json
import re
from base64 import b64decode

import numpy as np
import pytest
from tests.report.conftest import read_strictly
from tests.viewer.test_field_view import read as read_frame
from tests.viewer.test_field_view import snapshot
from typer.testing import CliRunner

import cosolve as cs
from cosolve.cli import app
from cosolve.drawing.wording import number
from cosolve.viewer.embedded import extract


@pytest.fixture(scope="module")
def result():
    clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    return cs.simulate(cs.System({"clock": clock}), t_end=1.0, method=cs.Jacobi(), step=0.5)


def opened(text):
    return read_frame(b64decode(text))[1]


def test_the_snapshots_of_the_file_are_in_the_page(tmp_path, result):
    times = [0.0, 0.5, 1.0]
    snapshots = [snapshot(0.0), snapshot(0.5), snapshot(1.0, 0.25)]
    cs.fields.FieldSeries.write(tmp_path / "flow.vtkhdf", times, snapshots, name="</script>")
    result.save(tmp_path / "run.h5")
    done = CliRunner().invoke(app, ["report", str(tmp_path / "run.h5"), str(tmp_path / "flow.vtkhdf")])
    assert done.stdout == f"report  {tmp_path / 'run.html'}\n"
    page = read_strictly(tmp_path / "run.html")  # everything in one file
    assert "flow.vtkhdf: everything that is drawn of the file." in page.text
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert text.count('class="cosolve-scene"') == 1
    found = json.loads(re.search(r'class="cosolve-data">(.*?)</script>', text)[1])
    (held,) = found["fields"]
    assert opened(held["mesh"])["t"].tolist() == times
    assert held["at"] == [0, 0, 7]  # it moved once
    assert sorted(held["points"]) == ["0", "7"]
    for step, one in enumerate(snapshots):
        velocity, p, load = (opened(values)["values"].tolist() for values in held["values"][step])
        assert velocity == one.point_data["velocity"][:6].ravel().tolist()  # the seventh point is in no cell
        assert p == one.point_data["p"][:6].tolist()
        assert load == one.cell_data["load"].tolist()
    assert held["limits"][1]["high"] == [5.0, 5.0]


def test_what_does_not_fit_is_left_out_and_said(tmp_path):
    times = np.linspace(0.0, 1.0, 41)
    path = cs.fields.FieldSeries.write(tmp_path / "flow.vtkhdf", times, [snapshot(t, t) for t in times])
    # a snapshot takes 72 bytes of points, 48 of velocity, 24 of p and 4 of load
    held, (said,) = extract([path], most_bytes=10 * (72 + 48 + 24 + 4))
    assert said == "flow.vtkhdf: 10 of 41 snapshots; cosolve view flow.vtkhdf shows all of it."
    kept = opened(held["fields"][0]["mesh"])["t"]
    assert (kept[0], kept[-1], len(kept)) == (0.0, 1.0, 10)
    assert opened(held["fields"][0]["values"][9][1])["values"][5] == 5.0  # p is 5 t there, and t = 1
    held, (said,) = extract([path], most_bytes=8 * (72 + 48 + 4))
    assert said.startswith("flow.vtkhdf: 8 of 41 snapshots, 2 of 3 fields;")
    assert [one["name"] for one in held["about"]["fields"][0]["fields"]] == ["velocity", "load"]


def test_a_fine_mesh_becomes_coarser_and_keeps_its_shape_and_values(tmp_path):
    n = 200
    x, y = (values.ravel() for values in np.meshgrid(np.linspace(5, 7, n), np.linspace(0, 1, n)))
    corner = (np.arange(n - 1)[:, np.newaxis] * n + np.arange(n - 1)).ravel()
    cells = {"quad": np.column_stack([corner, corner + 1, corner + n + 1, corner + n])}
    fine = cs.fields.FieldSnapshot(np.column_stack([x, y]), cells, {"x": x}, {"y": y[corner]})
    held, (said,) = extract([cs.fields.FieldSeries.write(tmp_path / "fine.vtkhdf", [0.0], [fine])])
    kept = held["fields"][0]
    points = opened(kept["points"]["0"])["points"].reshape(-1, 3)
    assert f"fine.vtkhdf: {number(len(points))} of 40\u202f000 points;" in said
    assert 5_000 < len(points) <= 10_000
    by_point, by_cell = (opened(values)["values"] for values in kept["values"][0])
    np.testing.assert_allclose(by_point, points[:, 0] + 6.0, atol=1e-6)  # drawn around the middle
    mesh = opened(kept["mesh"])
    a, b, c = points[mesh["corners"].reshape(-1, 3)].transpose(1, 0, 2).astype(float)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2
    assert area.sum() == pytest.approx(2.0, rel=0.002)  # no holes, no folds, and the edge where it was
    heights = (a + b + c)[:, 1] / 3 + 0.5
    assert np.abs(by_cell[mesh["owners"]] - heights).max() < 3 / np.sqrt(10_000)  # every triangle has a cell near it


def test_a_bad_file_is_a_sentence_and_no_report(tmp_path, result):
    result.save(tmp_path / "run.h5")
    (tmp_path / "text.vtkhdf").write_text("no HDF5 at all")
    for name, said in (("text", "is not an HDF5 file"), ("none", "there is no file")):
        done = CliRunner().invoke(app, ["report", str(tmp_path / "run.h5"), str(tmp_path / f"{name}.vtkhdf")])
        assert (done.exit_code, done.stdout) == (2, "")
        assert said in done.stderr
    with pytest.raises(cs.errors.SetupError, match=r"run.h5' is an HDF5 file, but not of the kind VTKHDF"):
        cs.write_report(result, tmp_path / "run.html", fields=tmp_path / "run.h5")
    assert not (tmp_path / "run.html").exists()
