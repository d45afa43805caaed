"""CalculiX: what is read of decks, and the flag of Turek and Hron by the real program."""

import shutil
import sys

import numpy as np
import pytest
from examples.calculix_flag.deck import WET, write_deck
from examples.calculix_flag.run import AT_REST, LOWEST, PERIOD, H, at_rest, swing, turning_point
from tests.fields.fake_solvers import write_triangle

import cosolve as cs
from cosolve.fields.adapters.calculix import read_deck
from cosolve.fields.adapters.sides import outer_sides

real = pytest.mark.skipif(shutil.which("ccx") is None, reason="no CalculiX here")


def test_decks_are_read_with_includes_generated_sets_and_continued_elements(tmp_path):
    (tmp_path / "mesh.inc").write_text(
        "*Node\n" + "".join(f"{k}, {k % 2}, {k // 2 % 2}, {k // 4}\n" for k in range(8)).replace("0, 0", "100, 0", 1)
    )
    deck = tmp_path / "hex.inp"
    deck.write_text(
        "** comment\n*INCLUDE, INPUT=mesh.inc\n*ELEMENT, TYPE=C3D8R, ELSET=E\n1, 100, 1, 3, 2,\n4, 5, 7, 6\n"
        "*NSET, NSET=top, GENERATE\n4, 7\n*NSET, NSET=both\ntop, 1\n*STEP, NLGEOM\n*STATIC\n0.1, 1.\n*END STEP\n"
    )
    read = read_deck(deck)
    assert read.dimension == 3
    assert read.elements[0].nodes == (100, 1, 3, 2, 4, 5, 7, 6)
    assert read.sets == {"TOP": [4, 5, 6, 7], "BOTH": [4, 5, 6, 7, 1]}
    mesh = read.sides_of(read.node_set("top"), "top")
    assert (mesh.n_points, mesh.n_cells) == (4, 1)
    assert np.allclose(mesh.directions, [0, 0, 1])  # outwards


def test_the_step_is_repeated_with_its_own_cards_and_the_macro_step_as_length(tmp_path):
    deck = read_deck(write_deck(tmp_path / "flag.inp", gravity=2.0, step=0.002, along=2, across=1))
    first, later = deck.job(False, 0.005, "1, 1, 0."), deck.job(True, 0.005, "1, 1, 0.")
    assert later.startswith("*RESTART, READ\n*STEP, NLGEOM, INC=10000, AMPLITUDE=RAMP\n*DYNAMIC, DIRECT\n")
    assert first.endswith(later.partition("\n")[2])
    increment, length = map(float, later.splitlines()[3].split(","))
    assert length == 0.005
    assert increment == pytest.approx(0.005 / 3)  # not longer than that of the deck, a whole fraction of the step
    assert "GRAV" in later


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("*STEP\n*DYNAMIC\n0.1,1\n*END STEP\n*STEP\n*DYNAMIC\n0.1,1\n*END STEP\n", r"has 2 \*STEP cards"),
        ("*STEP\n*FREQUENCY\n3\n*END STEP\n", r"must have one \*DYNAMIC or \*STATIC card, not 0"),
        ("*ELEMENT, TYPE=S8R\n1,1\n*STEP\n*STATIC\n*END STEP\n", "elements of type S8R; CalculiX.* knows CPE3"),
        ("*NODE\n1, x, 0\n*STEP\n*STATIC\n*END STEP\n", r"cannot read the card '\*NODE'"),
        ("*NODE\n1, 0, 0\n*STEP\n*STATIC\n*END STEP\n", "needs elements"),
    ],
)
def test_decks_that_cannot_be_coupled_are_refused(tmp_path, text, message):
    (tmp_path / "bad.inp").write_text(text)
    with pytest.raises(cs.errors.SetupError, match=message):
        read_deck(tmp_path / "bad.inp")


def test_an_unknown_set_is_named_with_those_there_are(tmp_path):
    deck = read_deck(write_deck(tmp_path / "flag.inp", along=2, across=1))
    with pytest.raises(cs.errors.SetupError, match="no node set 'dry' with nodes in it; it has CLAMP, WET"):
        deck.node_set("dry")


def test_sides_with_midside_nodes_become_linear_cells():
    nodes = [(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)]  # a tetrahedron with midside nodes
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
    mids = np.array([corners[a] + corners[b] for a, b in ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))]) / 2
    mesh = outer_sides(nodes, range(1, 11), np.vstack([corners, mids]), "tetra")
    assert mesh.n_cells == 16
    assert mesh.sizes.sum() == pytest.approx(1.5 + 3**0.5 / 2)
    outwards = (mesh.directions * (mesh.corner_points.mean(axis=1) - 0.25)).sum(axis=1)
    assert (outwards > 0).all()


@pytest.mark.covers("FS-10")
def test_traces_follow_the_parabolas_of_the_elements_and_keep_forces(tmp_path):
    deck = write_deck(tmp_path / "flag.inp", along=6, across=2)
    flag = cs.fields.CalculiX(deck, WET, program=sys.executable)  # which is not run
    points = flag.meshes["displacement"].points
    s = np.linspace(0.3, 0.59, 40)
    target = cs.mapping.Mesh.line(np.column_stack([s, np.full_like(s, 0.21)]))
    trace = flag.trace_to(target)
    np.testing.assert_allclose(trace.consistent(points[:, 0] ** 2), s**2, rtol=0, atol=1e-12)
    straight = cs.mapping.barycentric(flag.meshes["displacement"], target).consistent(points[:, 0] ** 2)
    assert np.abs(straight - s**2).max() > 1e-4
    f = np.random.default_rng(3).standard_normal(40)
    assert trace.conservative(f).sum() == pytest.approx(f.sum(), abs=1e-13 * np.abs(f).sum())
    linear = cs.fields.CalculiX(write_triangle(tmp_path / "one.inp"), "EDGE", program=sys.executable)
    with pytest.raises(
        cs.errors.SetupError, match=r"plane elements with midside nodes; .*one.inp.*cs\.mapping\.barycentric"
    ):
        linear.trace_to(target)


@real
@pytest.mark.covers("FS-15")
def test_a_flag_under_its_weight_hangs_as_deep_as_published(tmp_path):
    mu, *printed = AT_REST["CSM1"]
    assert np.allclose(at_rest(tmp_path, mu), printed, rtol=0.015)


@real
@pytest.mark.covers("FS-08", "FS-15")
def test_a_step_repeated_from_the_restart_file_is_the_same(tmp_path):
    flag = cs.fields.CalculiX(
        write_deck(tmp_path / "flag.inp", gravity=2.0, step=H, along=8, across=1), WET, timeout=60.0
    )
    n = len(flag.start(0.0))
    push = np.tile([0.0, 0.01], n // 2)
    for k in range(2):
        state = flag.save()
        once = flag.advance(k * H, (k + 1) * H, lambda t: push)
        flag.restore(state)
        other = flag.advance(k * H, (k + 1) * H, lambda t: -push)
        flag.restore(state)
        again = flag.advance(k * H, (k + 1) * H, lambda t: push)
        assert np.abs(other - once).max() > 1e-2 * np.abs(once).max()
        assert np.abs(again - once).max() <= 1e-4 * np.abs(once).max()
    moved = flag.snapshot()
    assert moved.n_cells == 8
    assert np.abs(moved.point_data["displacement"]).max() >= np.abs(again).max()


@real
@pytest.mark.slow
@pytest.mark.covers("FS-15")
def test_all_three_solid_benchmarks(tmp_path):
    for mu, *printed in AT_REST.values():
        assert np.allclose(at_rest(tmp_path, mu), printed, rtol=0.015)
    t, u = swing(tmp_path, 190)
    down, lowest = turning_point(t, u[:, 1], PERIOD / 2)
    back, _ = turning_point(t, u[:, 1], PERIOD)
    assert back == pytest.approx(PERIOD, rel=0.01)
    assert down == pytest.approx(PERIOD / 2, rel=0.01)
    assert lowest == pytest.approx(LOWEST, rel=0.01)
