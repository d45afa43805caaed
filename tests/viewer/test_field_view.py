"""Fields on the page: the numbers are those of the file, travel once, and bad files are sentences."""

import json
import struct
from pathlib import Path

import h5py
import numpy as np
import pytest
from tests.viewer.test_server import client

import cosolve as cs
from cosolve.fields.field_subsystem import FieldSnapshot
from cosolve.viewer.field_view import FieldView
from cosolve.viewer.viewing import session_of
from cosolve.viewer.widget import answer

POINTS = np.array([[100.0, 0.0], [101.0, 0.0], [100.0, 1.0], [100.5, 0.0], [100.5, 0.5], [100.0, 0.5], [7.0, 7.0]])
CELLS = {"triangle6": np.array([[0, 1, 2, 3, 4, 5]])}


def snapshot(t: float, moved: float = 0.0) -> FieldSnapshot:
    places = np.arange(7.0)
    velocity = np.column_stack([t + places, np.full(7, -2.0)])
    return FieldSnapshot(POINTS + moved, CELLS, {"velocity": velocity, "p": t * places}, {"load": np.array([t])})


@pytest.fixture
def file(tmp_path):
    snapshots = [snapshot(0.0), snapshot(0.5), snapshot(1.0, 0.25)]
    return cs.fields.FieldSeries.write(tmp_path / "flow.vtkhdf", [0.0, 0.5, 1.0], snapshots, name="<b>fluid</b>")


def read(frame):
    (length,) = struct.unpack("<I", frame[:4])
    head, at, found = json.loads(frame[4 : 4 + length]), 4 + length, {}
    for name, kind, count in head.pop("parts"):
        assert at % 8 == 0
        found[name] = np.frombuffer(frame, "<" + kind, count, at)
        at += -(-found[name].nbytes // 8) * 8
    assert at == len(frame)
    return head, found


def test_mesh_and_snapshots_are_those_of_the_file(file):
    page = client(session_of((file,), None, None))
    about = page.get("/secret/about").json()
    assert (about["title"], about["results"]) == ("flow.vtkhdf", [])
    (shown,) = about["fields"]
    assert (shown["of"], shown["plane"]) == ("<b>fluid</b>", True)
    assert [(one["name"], one["components"], one["per_cell"]) for one in shown["fields"]] == [
        ("velocity", 2, False),
        ("p", 1, False),
        ("load", 1, True),
    ]
    head, mesh = read(page.get("/secret/mesh?f=0").content)
    assert head == {"origin": [100.5, 0.5, 0.0], "points": 6, "cells": 1}  # the seventh point is in no cell
    assert mesh["t"].tolist() == [0.0, 0.5, 1.0]
    assert mesh["corners"].reshape(-1, 3).tolist() == [[0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5]]
    assert mesh["owners"].tolist() == [0, 0, 0, 0]
    _, first = read(page.get("/secret/field?step=0&field=1").content)
    assert first["points"].reshape(6, 3).tolist() == (np.pad(POINTS[:6], ((0, 0), (0, 1))) - head["origin"]).tolist()
    told, second = read(page.get("/secret/field?step=1&field=0&have=0").content)
    assert list(second) == ["values"]  # nothing has moved
    assert second["values"].dtype == np.float32
    assert second["values"].reshape(6, 2).tolist() == snapshot(0.5).point_data["velocity"][:6].tolist()
    told, third = read(page.get(f"/secret/field?step=2&field=2&have={told['at']}").content)
    np.testing.assert_array_equal(third["points"].reshape(6, 3)[:, :2], first["points"].reshape(6, 3)[:, :2] + 0.25)
    assert third["values"].tolist() == [1.0]
    limits = page.get("/secret/limits?field=0").json()
    assert limits["low"] == pytest.approx([2.0, 0.0, -2.0])  # magnitude, x, y
    assert limits["high"] == pytest.approx([np.hypot(6.0, 2.0), 6.0, -2.0])
    assert (limits["looks"], limits["steps"]) == (3, 3)


def test_a_result_and_its_fields_on_one_page(file, result, tmp_path):
    from cosolve.viewer.command import _shown

    files = [result.save(tmp_path / "run.h5"), file]
    about = _shown(files, None, None, None).about()
    assert [one["label"] for one in about["results"] + about["fields"]] == ["run.h5", "flow.vtkhdf"]
    with pytest.raises(
        cs.errors.SetupError, match=r"results \(.h5\) and fields \(.vtkhdf\); 'system.toml' is a system"
    ):
        _shown([*files, Path("system.toml")], None, None, None)


def test_steps_that_are_added_and_numbers_that_are_none(file):
    result_view = FieldView(cs.fields.read_fields(file))
    from cosolve.fields import vtkhdf

    blown = snapshot(1.5)
    blown.point_data["p"][:] = [np.nan, np.inf, 1e300, 1.0, 2.0, 3.0, 9.0]
    vtkhdf.append(file, 1.5, blown)
    result_view.about()
    _, mesh = read(result_view.mesh())
    assert mesh["t"].tolist() == [0.0, 0.5, 1.0, 1.5]
    _, last = read(result_view.frame(3, 1))
    assert np.isnan(last["values"][0])
    assert np.isinf(last["values"][1:3]).all()
    assert result_view.limits(1)["high"] == [1e300, 1e300]


def test_the_widget_answers_the_same(file):
    session = session_of((cs.fields.read_fields(file),), None, None)
    page = client(session)
    asked = {"id": 1, "f": 0, "field": 0, "step": 2, "have": -1}
    assert answer(session, asked | {"ask": "mesh"}) == ({"id": 1}, [page.get("/secret/mesh").content])
    assert answer(session, asked | {"ask": "field"})[1] == [page.get("/secret/field?step=2&field=0").content]
    assert answer(session, asked | {"ask": "limits"})[0]["found"] == page.get("/secret/limits?field=0").json()
    assert answer(session, {"id": 1, "ask": "field", "f": 0})[0]["problem"] == "that is no question about a result"


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("mesh?f=1", 422, "there are no fields 1; 1 files of fields are shown"),
        ("field?step=3&field=0", 422, "holds 3 steps; there is none of number 3"),
        ("field?step=-1&field=0", 422, "none of number -1"),
        ("field?step=0&field=3", 422, "has 3 fields; there is none of number 3"),
        ("limits?field=-1", 422, "none of number -1"),
        ("limits", 400, "all of them numbers"),
        ("field?step=x&field=0", 400, "all of them numbers"),
    ],
)
def test_questions_that_make_no_sense(file, path, status, said):
    found = client(session_of((file,), None, None)).get(f"/secret/{path}")
    assert found.status_code == status
    assert said in found.json()["problem"]


def test_files_that_cannot_be_shown_are_sentences(tmp_path, result):
    lines = FieldSnapshot(POINTS, {"line": np.array([[0, 1]])}, {"p": np.arange(7.0)})
    cs.fields.FieldSeries.write(tmp_path / "lines.vtkhdf", [0.0], [lines])
    from cosolve.fields import vtkhdf

    vtkhdf.create(tmp_path / "empty.vtkhdf", lines, "")
    result.save(tmp_path / "run.h5").rename(tmp_path / "result.vtkhdf")
    (tmp_path / "text.vtkhdf").write_text("no HDF5 at all")
    for name, sentence in (
        ("lines", r"has cells of the kinds line; view draws triangle, triangle6"),
        ("empty", r"holds no steps \(yet\), so there is nothing to show"),
        ("result", r"is an HDF5 file, but not of the kind VTKHDF"),
        ("text", r"is not an HDF5 file"),
        ("none", r"there is no file '.*none.vtkhdf'"),
    ):
        with pytest.raises((cs.errors.SetupError, cs.errors.OutputFileError), match=sentence):
            cs.view(tmp_path / f"{name}.vtkhdf", open_browser=False, told=None)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut(file, share):
    """A sentence at once: HDF5 itself would wait for the writer to bring the rest."""
    data = file.read_bytes()
    file.write_bytes(data[: int(share * len(data))])
    with pytest.raises(
        cs.errors.OutputFileError, match=r"flow.vtkhdf' cannot be read: it was cut off after \d+ of \d+ bytes"
    ):
        cs.view(file, open_browser=False, told=None)


def test_a_file_that_is_cut_while_it_is_looked_at(file):
    page = client(session_of((file,), None, None))
    with h5py.File(file, "r+") as held:
        del held["VTKHDF/PointData/p"]
    found = page.get("/secret/field?step=0&field=1")
    assert found.status_code == 422
    assert "flow.vtkhdf' cannot be read, was it cut or damaged?" in found.json()["problem"]


def test_a_file_that_is_replaced_while_it_is_looked_at(file):
    page = client(session_of((file,), None, None))
    fewer = POINTS[:3]
    other = FieldSnapshot(fewer, {"triangle": np.array([[0, 1, 2]])}, {"p": fewer[:, 0], "velocity": fewer})
    cs.fields.FieldSeries.write(file, [0.0, 1.0, 2.0], [other] * 3)
    assert page.get("/secret/field?step=0&field=1").status_code == 422
