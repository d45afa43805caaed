"""Files beside a run: logs of iterations and convergence, watch points and integrals, exports."""

import numpy as np
import pytest
from tests.precice.test_acceleration import ONE, quasi
from tests.precice.test_windows import COUNTS, X_CONST, Y_CONST
from tests.precice.together import A_Y, B_X, MEASURES, POINTS, a_free, b_free, config, couple, linear, pair


def table(path):
    lines = path.read_text().splitlines()
    return lines[0].split(), np.array([[float(word) for word in line.split()] for line in lines[1:]])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.covers("PX-16")
def test_logs_of_iterations(folder):
    couple(
        config(
            "serial-implicit", MEASURES + "<acceleration:constant><relaxation value='0.5' /></acceleration:constant>"
        ),
        pair(),
        record=True,
    )
    for name in "AB":
        titles, rows = table(folder / f"precice-{name}-iterations.log")
        assert titles == ["TimeWindow", "TotalIterations", "Iterations", "Convergence"]
        assert rows[:, 0].tolist() == list(range(1, 11))
        assert rows[:, 2].tolist() == COUNTS
        assert rows[:, 1].tolist() == np.cumsum(COUNTS).tolist()
        assert rows[:, 3].tolist() == [1] * 10
    assert not (folder / "precice-A-convergence.log").exists()
    titles, rows = table(folder / "precice-B-convergence.log")
    assert titles == ["TimeWindow", "Iteration", "ResRel(X)", "ResRel(Y)"]
    assert len(rows) == sum(COUNTS)
    last = rows[np.flatnonzero(np.diff(rows[:, 0]))]
    assert (last[:, 2:] <= 1e-8).all()
    assert (rows[:, 2:].max(axis=1) <= 1e-8).sum() == 10


@pytest.mark.covers("PX-16")
def test_logs_of_quasi_newton_count_columns(folder):
    couple(config("serial-implicit", quasi("IQN-ILS", ONE).replace("100", "2")), pair(), record=True)
    titles, rows = table(folder / "precice-B-iterations.log")
    assert titles[4:] == ["QNColumns", "DeletedQNColumns", "DroppedQNColumns"]
    assert rows[:, 3].tolist() == [0] * 10
    assert rows[0, 4] == 1


WATCHED = """
    <watch-point name="tip" mesh="MB" coordinate="1.5; 0.0" /><watch-integral name="all" mesh="MB" />
    <export:vtu directory="out" every-n-time-windows="5" /><export:vtk directory="out" every-n-time-windows="10" />
    <export:vtp directory="out" every-n-time-windows="10" /><export:csv directory="out" every-n-time-windows="10" />"""


@pytest.mark.covers("PX-16")
def test_watches_and_exports(folder):
    text = config(
        "serial-implicit", MEASURES + "<acceleration:constant><relaxation value='0.5' /></acceleration:constant>"
    )
    text = text.replace('<provide-mesh name="MB" />', '<provide-mesh name="MB" />' + WATCHED)
    plain = linear("MB", "Y", "X", B_X, b_free)

    def b(p):
        inner = p.set_mesh_vertices

        def with_edges(mesh, points):
            ids = inner(mesh, points)
            p.set_mesh_edges(mesh, [[0, 1], [1, 2], [2, 3]])
            return ids

        p.set_mesh_vertices = with_edges
        return plain(p)

    couple(text, {"A": linear("MA", "X", "Y", A_Y, a_free), "B": b}, record=True)
    titles, rows = table(folder / "precice-B-watchpoint-tip.log")
    assert titles == ["Time", "Coordinate0", "Coordinate1", "X", "Y"]
    np.testing.assert_allclose(rows[:, 0], np.arange(1, 11) / 10, rtol=1e-8)
    assert rows[-1, 1:3].tolist() == [1.5, 0.0]
    assert rows[-1, 3] == pytest.approx((X_CONST[1] + X_CONST[2]) / 2, abs=1e-8)
    assert rows[-1, 4] == pytest.approx((Y_CONST[1] + Y_CONST[2]) / 2, abs=1e-8)
    titles, rows = table(folder / "precice-B-watchintegral-all.log")
    assert titles == ["Time", "X", "Y", "SurfaceArea"]
    assert rows[-1, 1] == pytest.approx(np.trapezoid(X_CONST), abs=1e-7)
    assert rows[-1, 3] == 3.0
    import meshio

    assert sorted(p.name for p in (folder / "out").iterdir()) == [
        "MB-B.dt10.csv", "MB-B.dt10.vtk", "MB-B.dt10.vtp", "MB-B.dt10.vtu", "MB-B.dt5.vtu",
    ]  # fmt: skip
    for kind in ("vtu", "vtk"):
        mesh = meshio.read(folder / f"out/MB-B.dt10.{kind}")
        np.testing.assert_allclose(mesh.points[:, :2], POINTS)
        np.testing.assert_allclose(mesh.point_data["X"].ravel(), X_CONST, atol=1e-10)
        assert mesh.cells_dict["line"].tolist() == [[0, 1], [1, 2], [2, 3]]
    lines = (folder / "out/MB-B.dt10.csv").read_text().splitlines()
    assert lines[0] == "PosX;PosY;Rank;X;Y"
    assert float(lines[1].split(";")[3]) == pytest.approx(X_CONST[0], abs=1e-10)
    assert (folder / "out/MB-B.dt10.vtp").read_text().count("<Lines>") == 1


@pytest.mark.covers("PX-16")
def test_exports_of_every_iteration(folder):
    text = config("serial-implicit", '<max-iterations value="2" />', end='<max-time-windows value="2" />')
    text = text.replace('<provide-mesh name="MA" />', '<provide-mesh name="MA" /><export:csv every-iteration="true" />')
    couple(text, pair(), record=True)
    names = sorted(path.name for path in folder.glob("*.csv"))
    assert names == [f"MA-A.{step}.csv" for step in ("dt1", "dt2", "it1", "it2", "it3", "it4")]
    last, whole = (folder / "MA-A.it4.csv").read_text(), (folder / "MA-A.dt2.csv").read_text()
    assert last == whole != (folder / "MA-A.it3.csv").read_text()


ACTIONS = """<action:multiply-by-area mesh="MA"><target-data name="Y" /></action:multiply-by-area>
  <action:divide-by-area mesh="MA" timing="read-mapping-post"><target-data name="X" /></action:divide-by-area>"""


def test_actions_by_area():
    """Loads become tractions and back: three unit edges give the end points half an edge each."""
    text = config("parallel-explicit", init=False, end='<max-time-windows value="2" />')
    text = text.replace('<provide-mesh name="MA" />', '<provide-mesh name="MA" />' + ACTIONS)

    def a(p):
        ids = p.set_mesh_vertices("MA", POINTS)
        assert p.requires_mesh_connectivity_for("MA")
        p.set_mesh_edges("MA", [[0, 1], [1, 2], [2, 3]])
        p.initialize()
        p.write_data("MA", "Y", ids, np.ones(4))
        p.advance(0.1)
        got = p.read_data("MA", "X", ids, 0.0)
        p.advance(0.1)
        return got

    def b(p):
        ids = p.set_mesh_vertices("MB", POINTS)
        p.initialize()
        p.write_data("MB", "X", ids, np.ones(4))
        p.advance(0.1)
        got = p.read_data("MB", "Y", ids, 0.0)
        p.advance(0.1)
        return got

    got, _ = couple(text, {"A": a, "B": b})
    assert got["B"].tolist() == [0.5, 1.0, 1.0, 0.5]
    assert got["A"].tolist() == [2.0, 1.0, 1.0, 2.0]


def test_a_summation_of_what_is_read():
    """C reads the sum of what A and B send it, beside each of them."""
    from tests.precice.test_many import HEAD, first, scheme, solver, three

    text = HEAD.replace('<data:scalar name="YA" />', '<data:scalar name="YA" /><data:scalar name="S" />', 1)
    text = text.replace(
        '<use-data name="YB" /><use-data name="XB" /></mesh>\n  <participant name="A">',
        '<use-data name="YB" /><use-data name="XB" /><use-data name="S" /></mesh>\n  <participant name="A">',
    )
    action = """<action:summation mesh="MC" timing="read-mapping-post">
      <source-data name="YA" /><source-data name="YB" /><target-data name="S" /></action:summation>"""
    text = text.replace(
        '<provide-mesh name="MC" />', '<provide-mesh name="MC" /><read-data name="S" mesh="MC" />' + action
    )
    text += scheme("parallel-explicit", first("A", "C"), ["YA", "XA"], windows=3)
    text += scheme("parallel-explicit", first("C", "B"), ["XB", "YB"], windows=3) + "</precice-configuration>"
    seen = []

    def step(t, a, b, s):
        seen.append(np.abs(s - (a + b)).max() + (0 if t < 0.15 else 1) * (np.abs(s).max() == 0))
        return {"XA": 0.5 * a, "XB": 0.3 * b}

    couple(text, {**three(), "C": solver("MC", step, ["YA", "YB", "S"], ["XA", "XB"])})
    assert seen == [0.0] * 3
