"""Snapshots during a run, in files that other programs open: the rules of VTKHDF, time, ends of every kind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from tests.fields.plates import CELLS, RUN, Plate, Still, system

import cosolve as cs
from cosolve.fields.pictures import field_gif_html

#: A Python that has VTK (565 MB, so that nothing installs it): its reader is asked there.
VTK = os.environ.get("COSOLVE_VTK_PYTHON", "")


def written(path, **more):
    return cs.simulate(system(), **RUN, **more, observers=[cs.fields.FieldFile(path, of="one", every=7)])


def same(one, two):
    """Files with the same content, array by array and bit by bit."""
    with h5py.File(one) as a, h5py.File(two) as b:
        names = []
        a.visit(names.append)
        there = []
        b.visit(there.append)
        assert names == there
        assert a["VTKHDF/Steps"].attrs["NSteps"] == b["VTKHDF/Steps"].attrs["NSteps"]
        for name in names:
            if isinstance(a[name], h5py.Dataset):
                assert np.array_equal(a[name][()], b[name][()]), name
    return True


@pytest.mark.parametrize("compiled", [False, True])
def test_chosen_macro_points_are_written_by_every_engine(tmp_path, compiled):
    files = [
        cs.fields.FieldFile(tmp_path / "one.vtkhdf", of="one", every=7),
        cs.fields.FieldFile(tmp_path / "two.vtkhdf", of="two", times=[0.72, 0.3, 0.31]),
    ]
    result = cs.simulate(system(), **RUN, compiled=compiled, observers=files)
    assert (result.stats.compiled_steps > 0) == compiled
    one, two = cs.fields.read_fields(tmp_path / "one.vtkhdf"), cs.fields.read_fields(tmp_path / "two.vtkhdf")
    np.testing.assert_allclose(one.t, [0.0, 0.35, 0.7, 1.0], rtol=0, atol=1e-12)  # and the last
    np.testing.assert_allclose(two.t, [0.3, 0.35, 0.75], rtol=0, atol=1e-12)  # the next points of the grid
    assert (one.name, one.names) == ("one", ("pressure", "velocity", "rank"))
    for series, output in ((one, "one.h"), (two, "two.h")):
        h = result[output][np.searchsorted(result.t, series.t)]
        for level, snapshot in zip(h, series, strict=True):
            direct = Plate(level)
            direct.start(0.0)
            expected = direct.snapshot()
            assert np.array_equal(snapshot.points, expected.points)
            assert {k: v.tolist() for k, v in snapshot.cells.items()} == {k: v.tolist() for k, v in CELLS.items()}
            for name, values in {**expected.point_data, **expected.cell_data}.items():
                found = {**snapshot.point_data, **snapshot.cell_data}[name]
                assert np.array_equal(found, values), name


def test_the_rules_of_the_format(tmp_path):
    """What the specification of VTKHDF 2 asks of unstructured grids in time, read without any code of ours."""
    written(tmp_path / "one.vtkhdf")
    with h5py.File(tmp_path / "one.vtkhdf") as file:
        root = file["VTKHDF"]
        assert root.attrs["Version"][0] == 2
        assert root.attrs["Type"] == b"UnstructuredGrid"
        steps, n = root["Steps"], int(root["Steps"].attrs["NSteps"])
        assert n == 4 == len(steps["Values"])
        for name in ("PartOffsets", "NumberOfParts", "PointOffsets"):
            assert steps[name].shape == (n,)
        for name in ("CellOffsets", "ConnectivityIdOffsets"):
            assert steps[name].shape == (n, 1)
        points, cells = int(root["NumberOfPoints"][0]), int(root["NumberOfCells"][0])
        assert root["Points"].shape == (n * points, 3)  # they move in every step
        assert root["Points"].compression == "gzip"
        assert steps["PointOffsets"][:].tolist() == [k * points for k in range(n)]
        assert root["Offsets"].shape == (cells + 1,)
        assert root["Offsets"][-1] == root["NumberOfConnectivityIds"][0] == len(root["Connectivity"])
        assert root["Types"][:].tolist() == [22, 22, 9]
        assert root["Types"].dtype == np.uint8
        for group, size in (("PointData", points), ("CellData", cells)):
            for name, values in root[group].items():
                assert len(values) == n * size
                assert steps[group + "Offsets"][name][:].tolist() == [k * size for k in range(n)]


def test_points_that_stay_are_written_once(tmp_path):
    file = cs.fields.FieldFile(tmp_path / "still.vtkhdf", of="still")
    cs.simulate(cs.System({"still": Still()}), t_end=1.0, method=cs.Jacobi(), step=0.1, observers=[file])
    with h5py.File(tmp_path / "still.vtkhdf") as found:
        assert found["VTKHDF/Points"].shape == (4, 3)
        assert not found["VTKHDF/Steps/PointOffsets"][:].any()
        assert found["VTKHDF/PointData/n"].dtype == np.int64
    assert [int(one.point_data["n"][0]) for one in cs.fields.read_fields(file.path)] == list(range(11))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_resumed_run_continues_its_file(tmp_path, compiled):
    """Also one whose files have gone on after the state that it is resumed from."""
    whole = tmp_path / "whole"
    whole.mkdir()
    cs.simulate(
        system(), **RUN, compiled=compiled, observers=[cs.fields.FieldFile(whole / "one.vtkhdf", of="one", every=3)]
    )
    file = cs.fields.FieldFile(tmp_path / "one.vtkhdf", of="one", every=3)
    with pytest.raises(cs.errors.StepSizeError, match="max_steps"):
        cs.simulate(
            system(), **RUN, compiled=compiled, observers=[file], save=tmp_path / "run.h5", state_every=5, max_steps=14
        )
    assert len(cs.fields.read_fields(file.path)) == 5  # 0, 3, ..., 12
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in tmp_path.glob("*.*"):
        path.rename(moved / path.name)  # all files of a run together
    cs.resume(moved / "run.h5", system(), max_steps=1000)
    assert same(whole / "one.vtkhdf", moved / "one.vtkhdf")


def test_a_stepper_writes_the_same_file_also_after_it_went_back(tmp_path):
    written(tmp_path / "whole.vtkhdf")
    fields = cs.fields.FieldFile(tmp_path / "stepped.vtkhdf", of="one", every=7)
    with cs.Stepper(system(), **RUN, observers=[fields]) as stepper:
        stepper.run_until(0.4)
        here = stepper.save()
        stepper.run_until(0.9)
        assert len(cs.fields.read_fields(fields.path)) == 3
        stepper.restore(here)
        assert len(cs.fields.read_fields(fields.path)) == 2
        stepper.run_until(1.0)
    assert same(tmp_path / "whole.vtkhdf", tmp_path / "stepped.vtkhdf")


KILLED = """
import os, signal, sys
from cosolve.fields import vtkhdf
from tests.fields.plates import RUN, system
import cosolve as cs
count = vtkhdf._count
def killed(root, steps):
    if steps == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    count(root, steps)
vtkhdf._count = killed
file = cs.fields.FieldFile(sys.argv[1], of="one", every=7)
cs.simulate(system(), **RUN, save=sys.argv[2], state_every=1, observers=[file])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals")
def test_killed_in_the_middle_of_writing(tmp_path):
    """The steps before stay readable, and the run can be resumed; its file is that of a run that nothing has ended."""
    path = tmp_path / "one.vtkhdf"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(tmp_path / "run.h5")], cwd=Path(__file__).parents[2], timeout=300
    )
    assert done.returncode == -signal.SIGKILL
    series = cs.fields.read_fields(path)
    np.testing.assert_allclose(series.t, [0.0, 0.35], atol=1e-12)
    assert series[1].point_data["pressure"].shape == (11,)
    with pytest.raises(OSError, match="already open for write"):
        h5py.File(path)
    series.mend()
    with h5py.File(path) as mended:  # as other programs open it
        assert mended["VTKHDF/Steps"].attrs["NSteps"] == 2
    written(tmp_path / "whole.vtkhdf")
    cs.resume(tmp_path / "run.h5", system())
    assert same(tmp_path / "whole.vtkhdf", path)


@pytest.mark.skipif(not VTK, reason="COSOLVE_VTK_PYTHON names no Python with VTK")
def test_vtk_reads_steps_values_and_moving_points(tmp_path):
    written(tmp_path / "one.vtkhdf")
    reader = Path(__file__).with_name("vtk_reader.py")
    told = subprocess.run(
        [VTK, str(reader), str(tmp_path / "one.vtkhdf")], capture_output=True, timeout=300, check=True
    )
    found, series = json.loads(told.stdout), cs.fields.read_fields(tmp_path / "one.vtkhdf")
    assert found["times"] == series.t.tolist()
    for step, ours in zip(found["steps"], series, strict=True):
        assert step["types"] == [22, 22, 9]
        assert np.array_equal(np.array(step["points"])[:, :2], ours.points)
        assert np.array_equal(step["corners"], np.concatenate([cells.ravel() for cells in ours.cells.values()]))
        assert np.array_equal(step["point_data"]["pressure"], ours.point_data["pressure"])
        assert np.array_equal(np.array(step["point_data"]["velocity"])[:, :2], ours.point_data["velocity"])
        assert np.array_equal(step["cell_data"]["rank"], ours.cell_data["rank"])


def test_pictures(tmp_path):
    """A second-order triangle is four in a picture; the colours of all frames are the same."""
    from matplotlib.figure import Figure

    written(tmp_path / "one.vtkhdf")
    series = cs.fields.read_fields(tmp_path / "one.vtkhdf")
    drawn = cs.plot.draw_field(Figure().subplots(), series[0], "rank")
    assert len(drawn.get_array()) == 2 * 4 + 2
    gif = cs.plot.write_field_gif(tmp_path / "v.gif", series, "velocity", frames=3)
    assert gif.read_bytes()[:6] == b"GIF89a"
    assert field_gif_html(series, "pressure", frames=1).startswith('<img alt="pressure" src="data:image/gif')
    with pytest.raises(cs.errors.SetupError, match="no field 'presure'; did you mean 'pressure'"):
        cs.plot.write_field_gif(tmp_path / "no.gif", series, "presure")


def test_sentences(tmp_path):
    path = tmp_path / "one.vtkhdf"
    tank = cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["q"], outputs=["h"])
    alone = cs.System({"tank": tank})
    alone.set("tank.q", 0.0)
    for fields, sentence in (
        ([cs.fields.FieldFile(path, of="on")], "no subsystem 'on'; did you mean 'one'"),
        ([cs.fields.FieldFile(path, of="one"), cs.fields.FieldFile(path, of="two")], "is given twice"),
        ("one.vtkhdf", "list of Observer objects"),
        ([cs.fields.FieldFile(tmp_path / "no" / "one.vtkhdf", of="one")], "does not exist"),
    ):
        with pytest.raises((cs.errors.SetupError, cs.errors.OutputFileError), match=sentence):
            cs.simulate(system(), **RUN, observers=fields)
    with pytest.raises(cs.errors.SetupError, match=r"'tank' \(Linear\) shows no fields"):
        cs.simulate(alone, **RUN, observers=[cs.fields.FieldFile(path, of="tank")])
    with pytest.raises(cs.errors.SetupError, match=r"end in \.vtkhdf"):
        cs.fields.FieldFile("one.vtu", of="one")
    with pytest.raises(cs.errors.SetupError, match="times are finite"):
        cs.fields.FieldFile(path, of="one", times=[0.0, np.nan])
    with pytest.raises(cs.errors.SetupError, match="there is no file"):
        cs.fields.read_fields(path)
    with h5py.File(tmp_path / "other.hdf", "w"):
        pass
    with pytest.raises(cs.errors.SetupError, match="not of the kind VTKHDF"):
        cs.fields.read_fields(tmp_path / "other.hdf")


def test_a_mesh_that_changes_ends_the_run_with_what_there_is(tmp_path):
    class Torn(Still):
        def snapshot(self):
            cells = np.array([[0, 1, 2, 3]]) if self.n < 3 else np.array([[0, 2, 1, 3]])
            return cs.fields.FieldSnapshot(self.points, {"tetra": cells}, {"n": np.full(4, self.n)})

    file = cs.fields.FieldFile(tmp_path / "torn.vtkhdf", of="torn")
    with pytest.raises(
        cs.errors.SimulationError, match=r"fields of 'torn' could not be written at t = 0.3.*one mesh"
    ) as caught:
        cs.simulate(cs.System({"torn": Torn()}), t_end=1.0, method=cs.Jacobi(), step=0.1, observers=[file])
    assert len(caught.value.result.t) == 4
    assert len(cs.fields.read_fields(file.path)) == 3
