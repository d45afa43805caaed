"""Every method of the interface once: shapes, kinds of numbers, refusals; and the client by itself."""

import ast
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from tests import processes
from tests.precice.together import MEASURES, POINTS, config, constant, couple, linear, pair

import cosolve
from cosolve.participants import client
from cosolve.participants.client import Connection, Packer, ParticipantError, Unpacker
from cosolve.participants.hub import Hub

SOURCE = Path(cosolve.__file__).parent
BOX = """<precice-configuration>
  <data:scalar name="T" /><data:vector name="F" />
  <mesh name="P" dimensions="3"><use-data name="T" /><use-data name="F" /></mesh>
  <mesh name="Q" dimensions="3"><use-data name="T" /><use-data name="F" /></mesh>
  <participant name="One"><provide-mesh name="P" /><write-data name="F" mesh="P" /><read-data name="T" mesh="P" />
    <watch-integral name="all" mesh="P" /></participant>
  <participant name="Two"><provide-mesh name="Q" /><receive-mesh name="P" from="One" api-access="true" />
    <write-data name="T" mesh="P" /><read-data name="F" mesh="P" /><read-data name="F" mesh="Q" />
    <mapping:nearest-neighbor direction="read" from="P" constraint="consistent" />
    <mapping:nearest-neighbor direction="write" to="P" constraint="conservative" />
    <mapping:nearest-projection direction="read" from="P" to="Q" constraint="consistent" /></participant>
  <m2n:sockets acceptor="One" connector="Two" />
  <coupling-scheme:parallel-explicit>
    <participants first="One" second="Two" /><max-time value="2" /><time-window-size value="1" />
    <exchange data="F" mesh="P" from="One" to="Two" initialize="true" />
    <exchange data="T" mesh="P" from="Two" to="One" />
  </coupling-scheme:parallel-explicit>
</precice-configuration>"""


class Almost:
    """Something that is no float but can become one, as constants of other packages do."""

    def __init__(self, value):
        self.value = value

    def __float__(self):
        return self.value


@pytest.mark.covers("PX-01")
def test_every_method_once():
    def one(p):
        assert p.get_mesh_dimensions("P") == 3
        assert p.get_data_dimensions("P", "F") == 3
        assert p.get_data_dimensions("P", "T") == 1
        assert p.requires_mesh_connectivity_for("P")
        assert not p.requires_gradient_data_for("P", "F")
        first = p.set_mesh_vertex("P", (0, 0, 0))
        assert first == 0
        more = p.set_mesh_vertices("P", [[1, 0, 0], [1, 1, 0], [0, 1, 0]])
        assert more.tolist() == [1, 2, 3]
        assert more.dtype == np.int32
        assert p.set_mesh_vertices("P", np.zeros((0, 3))).shape == (0,)
        wide = np.zeros((4, 6))
        wide[:, ::2] = [[0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]]
        top = p.set_mesh_vertices("P", wide[:, ::2])  # not contiguous
        assert p.get_mesh_vertex_size("P") == 8
        p.set_mesh_edge("P", 0, 1)
        p.set_mesh_edges("P", [[1, 2], [2, 3]])
        p.set_mesh_triangle("P", 0, 1, 2)
        p.set_mesh_triangles("P", np.array([[0, 2, 3]]))
        p.set_mesh_quad("P", *top)
        p.set_mesh_quads("P", [[0, 1, 5, 4]])
        p.set_mesh_tetrahedron("P", 0, 1, 3, 4)
        p.set_mesh_tetrahedra("P", [[1, 2, 3, 6]])
        with pytest.raises(ParticipantError, match="two equal corners"):
            p.set_mesh_edge("P", 1, 1)
        with pytest.raises(ParticipantError, match="no point; points are numbered from 0 to 7"):
            p.set_mesh_triangle("P", 0, 1, 8)
        with pytest.raises(ParticipantError, match="not plane and convex"):
            p.set_mesh_quad("P", 0, 1, 2, 7)
        with pytest.raises(ParticipantError, match="has no mesh 'X'; its meshes are P"):
            p.get_mesh_dimensions("X")
        with pytest.raises(ParticipantError, match="has no data 'Z' on mesh 'P'; there are F, T"):
            p.get_data_dimensions("P", "Z")
        with pytest.raises(ParticipantError, match="not offered yet"):
            p.reset_mesh("P")
        with pytest.raises(ParticipantError, match="initial data are due"):
            p.initialize()
        assert p.requires_initial_data()
        ids = np.arange(8)
        p.write_data("P", "F", ids, np.arange(24.0).reshape(8, 3))
        p.initialize()
        with pytest.raises(ParticipantError, match="only before the start"):
            p.set_mesh_vertex("P", (2, 0, 0))
        p.start_profiling_section("solve")
        p.stop_last_profiling_section()
        with pytest.raises(ParticipantError, match="no section"):
            p.stop_last_profiling_section()
        assert not p.requires_writing_checkpoint()
        assert not p.requires_reading_checkpoint()
        with pytest.raises(ParticipantError, match="would hold a NaN"):
            p.write_data("P", "F", [0], [[np.nan, 0, 0]])
        with pytest.raises(ParticipantError, match="must be 2 x 3 numbers"):
            p.write_data("P", "F", [0, 1], [[1, 2, 3]])
        with pytest.raises(ParticipantError, match="does not write data 'T'"):
            p.write_data("P", "T", [0], [1.0])
        with pytest.raises(ParticipantError, match=r"are known for the next 1 s, not 1\.5 s"):
            p.read_data("P", "T", ids, 1.5)
        with pytest.raises(ParticipantError, match=r"a step of 1\.5 is not above 0 and at most 1"):
            p.advance(1.5)
        for outside in (1.0 + 1e-11, 0.0, -1e-300, np.nan):
            with pytest.raises(ParticipantError, match="is not above 0 and at most 1"):
                p.advance(outside)
        for outside in (1.0 + 1e-11, -1e-11):
            with pytest.raises(ParticipantError, match="are known for the next 1 s"):
                p.read_data("P", "T", ids, outside)
        for inside in (0.0, -5e-13, 1.0, 1.0 + 5e-13):  # what rounding adds to sums of steps
            assert p.read_data("P", "T", ids, inside).shape == (8,)
        p.write_data("P", "F", (0, 1), ((1, 2, 3), (4, 5, 6)))
        p.write_data("P", "F", [], np.zeros((0, 3)))
        assert p.read_data("P", "T", [], 0.0).shape == (0,)
        p.advance(Almost(1.0))
        got = p.read_data("P", "T", ids, Almost(0.0))
        assert got.shape == (8,)
        assert p.is_time_window_complete()
        p.advance(p.get_max_time_step_size())
        assert not p.is_coupling_ongoing()
        assert p.get_max_time_step_size() == 0.0
        p.read_data("P", "T", ids, 0.0)
        with pytest.raises(ParticipantError, match="the coupling has ended"):
            p.advance(0.1)
        return got

    def two(p):
        q = p.set_mesh_vertices("Q", [[0.5, 0.5, 0.0]])
        p.set_mesh_access_region("P", [-0.5, 0.5, -1, 2, -1, 2])
        with pytest.raises(ParticipantError, match="was set already"):
            p.set_mesh_access_region("P", [-1, 2, -1, 2, -1, 2])
        with pytest.raises(ParticipantError, match="not open to direct access"):
            p.set_mesh_access_region("Q", [-1, 2, -1, 2, -1, 2])
        assert not p.requires_initial_data()
        p.initialize()
        ids, where = p.get_mesh_vertex_ids_and_coordinates("P")
        assert where.tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1]]
        assert ids.dtype == np.int32
        assert p.get_mesh_vertex_size("P") == 4
        start = p.read_data("P", "F", ids, 0.0)
        assert start.tolist() == [[0, 1, 2], [9, 10, 11], [12, 13, 14], [21, 22, 23]]
        # plane through the corners 0, 1, 2, 3: the middle is on the diagonal between 0 and 2
        assert p.read_data("Q", "F", q, 0.0).tolist() == [[3, 4, 5]]
        assert p.map_and_read_data("P", "F", [[0.1, 0.9, 0.2]], 0.0).tolist() == [[9, 10, 11]]
        p.write_data("P", "T", ids, [1.0, 2.0, 3.0, 4.0])
        p.write_and_map_data("P", "T", [[0.0, 0.1, 0.0], [0.0, 0.2, 0.1]], [10.0, 20.0])
        p.advance(1.0)
        later = p.read_data("P", "F", ids, 0.0)
        assert later.tolist() == [[1, 2, 3], [0, 0, 0], [0, 0, 0], [0, 0, 0]]  # unwritten counts as zero
        p.advance(1.0)
        return True

    got, _ = couple(BOX, {"One": one, "Two": two})
    assert got["Two"]
    assert got["One"].tolist() == [31.0, 0.0, 0.0, 2.0, 3.0, 0.0, 0.0, 4.0]


@pytest.mark.covers("PX-01")
def test_checkpoint_questions_must_be_asked():
    def forgetful(p):
        p.set_mesh_vertices("MA", POINTS)
        p.requires_initial_data()
        p.initialize()
        p.advance(0.1)

    with pytest.raises(ParticipantError, match="its state must be saved here; ask must_save"):
        couple(config("serial-implicit", MEASURES + constant(0.5)), {**pair(), "A": forgetful})


@pytest.mark.covers("PX-01")
@pytest.mark.parametrize(("rank", "size"), [(2, 2), (-1, 2), (0, 0)])
def test_ranks_that_cannot_be_are_refused(rank, size):
    with pytest.raises(ParticipantError, match="ranks are 0 to the number minus one"):
        client.Participant("A", "unix:nowhere", rank=rank, size=size)


@pytest.mark.covers("PX-01")
def test_the_client_is_one_file_that_uses_numpy_only_and_old_syntax():
    for file in (SOURCE / "participants/client.py", SOURCE / "precice/opt_in/precice.py"):
        tree = ast.parse(file.read_text(), feature_version=(3, 9))
        imported = {
            (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
            for node in ast.walk(tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
        }
        outside = {name for name in imported if name.split(".")[0] not in sys.stdlib_module_names}
        assert outside <= {"numpy", "cosolve.participants"}
        assert "cosolve.participants" not in outside or file.name == "precice.py"
    code = "import precice, sys; print('cosolve' in sys.modules, precice.get_version_information())"
    path = processes.environment(PYTHONPATH=str(SOURCE / "precice/opt_in"))
    told = processes.run([sys.executable, "-c", code], check=True, env=path)
    assert told.stdout.split(" ", 1)[0] == "False"
    assert told.stdout.split(" ", 1)[1].startswith("b'3.")
    assert told.stderr.count("coupled by cosolve") == 1


@pytest.mark.covers("PX-01")
def test_the_module_is_not_there_unless_asked_for():
    code = "import importlib.util, cosolve.precice; print(importlib.util.find_spec('precice'))"
    told = processes.run([sys.executable, "-c", code], check=True, env=processes.environment())
    assert told.stdout.strip() == "None"
    assert cosolve.precice.get_version_information().startswith(b"3.")


def test_records_that_are_cut_or_foreign_are_refused():
    import socket

    a, b = socket.socketpair()
    with a, b:
        left, right = Connection(a), Connection(b)
        left.send(3, Packer().whole(7).real(0.5).text("grün").array([1.0, 2.0]).numbers([4, 5]).bytes())
        kind, content = right.receive()
        got = Unpacker(content)
        assert (kind, got.whole(), got.real(), got.text()) == (3, 7, 0.5, "grün")
        assert got.array().tolist() == [1.0, 2.0]
        assert got.numbers().tolist() == [4, 5]
        with pytest.raises(ParticipantError, match="ended too early"):
            got.real()
        a.sendall(os.urandom(64))
        with pytest.raises(ParticipantError, match="no record of this protocol"):
            right.receive()
    for method in (Unpacker(b"\x01").whole, Unpacker(b"\xff\xff\xff\xff").text, Unpacker(b"\xff\xff\xff\xff").array):
        with pytest.raises(ParticipantError, match="ended too early"):
            method()


@pytest.mark.covers("PX-14")
def test_direct_access_without_mapping_reproduces_the_pair():
    from tests.precice.test_windows import COUNTS, X_CONST
    from tests.precice.together import A_Y, B_X, a_free, b_free, iterations

    text = config("serial-implicit", MEASURES + constant(0.5), init=False).replace(
        '<receive-mesh name="MA" from="A" />', '<receive-mesh name="MA" from="A" api-access="true" />'
    )
    text = text.replace(
        '<write-data name="X" mesh="MB" /><read-data name="Y" mesh="MB" />',
        '<write-data name="X" mesh="MA" /><read-data name="Y" mesh="MA" />',
    )
    text = text.replace('<mapping:nearest-neighbor direction="read" from="MA" to="MB" constraint="consistent" />', "")
    text = text.replace('<mapping:nearest-neighbor direction="read" from="MB" to="MA" constraint="consistent" />', "")
    text = text.replace('<receive-mesh name="MB" from="B" />', "").replace('data="X" mesh="MB"', 'data="X" mesh="MA"')
    text = text.replace('<provide-mesh name="MB" />', "")

    def b(p):
        p.set_mesh_access_region("MA", [-1, 4, -1, 1])
        p.initialize()
        ids, where = p.get_mesh_vertex_ids_and_coordinates("MA")
        assert where.tolist() == POINTS.tolist()
        t = saved = 0.0
        while p.is_coupling_ongoing():
            if p.requires_writing_checkpoint():
                saved = t
            dt = p.get_max_time_step_size()
            t += dt
            value = B_X @ p.read_data("MA", "Y", ids, dt) + b_free(t)
            p.write_data("MA", "X", ids, value)
            p.advance(dt)
            if p.requires_reading_checkpoint():
                t = saved
        return value

    got, coupling = couple(text, {"A": linear("MA", "X", "Y", A_Y, a_free), "B": b})
    assert iterations(coupling, "B") == [73, *COUNTS[1:]]
    np.testing.assert_allclose(got["B"], X_CONST, rtol=0, atol=1e-10)


@pytest.mark.covers("PX-15")
@pytest.mark.parametrize("scheme", ["serial-explicit", "serial-implicit"])
def test_the_first_participant_may_choose_the_windows(scheme):
    lengths = [0.1, 0.05, 0.2]
    body = '<max-iterations value="2" />' if scheme == "serial-implicit" else ""
    text = config(scheme, body, end='<max-time-windows value="3" />').replace(
        '<time-window-size value="0.1" />', '<time-window-size method="first-participant" />'
    )

    def first(p):
        p.set_mesh_vertices("MA", POINTS)
        p.requires_initial_data()
        p.initialize()
        k = 0
        while p.is_coupling_ongoing():
            p.requires_writing_checkpoint()
            p.advance(lengths[k])
            p.requires_reading_checkpoint()
            k += p.is_time_window_complete()

    def second(p):
        p.set_mesh_vertices("MB", POINTS)
        p.requires_initial_data()
        p.initialize()
        seen = []
        while p.is_coupling_ongoing():
            p.requires_writing_checkpoint()
            length = p.get_max_time_step_size()
            p.advance(length / 2)
            p.advance(p.get_max_time_step_size())
            p.requires_reading_checkpoint()
            if p.is_time_window_complete():
                seen.append(length)
        return seen

    got, _ = couple(text, {"A": first, "B": second})
    assert got["B"] == lengths

    def growing(p):
        p.set_mesh_vertices("MA", POINTS)
        p.requires_initial_data()
        p.initialize()
        for dt in (0.1, 0.2):
            p.requires_writing_checkpoint()
            p.advance(dt)
            p.requires_reading_checkpoint()

    if scheme == "serial-implicit":
        with pytest.raises(ParticipantError, match=r"with a step of 0\.2, longer than before"):
            couple(text, {"A": growing, "B": second})


def test_nothing_that_travels_is_executed():
    for longest in ("participants", "precice"):
        for file in (SOURCE / longest).rglob("*.py"):
            text = file.read_text()
            assert not any(word in text for word in ("pickle", "marshal", "eval(", " exec(", "yaml")), file


def test_records_of_random_bytes_end_in_a_sentence():
    """Whatever a client sends, the hub says which participant it was; nothing else comes out of it."""
    from cosolve.errors import CosolveError
    from cosolve.precice.config import Reader
    from cosolve.precice.coupling import Coupling

    rng = np.random.default_rng(1)
    configuration = Reader("config.xml", BOX.encode()).configuration
    good = Packer().array(np.arange(6.0)).numbers([]).numbers([]).numbers([]).numbers([]).bytes() + bytes(48)
    sentences = {}
    for k in range(150):
        hub = Hub(Coupling(configuration, record=False))
        hub.coupling.contract("One", ".")
        spoilt = bytearray(good)
        for _ in range(int(rng.integers(1, 4))):
            spoilt[int(rng.integers(len(spoilt)))] = int(rng.integers(256))
        kind = client.START if k % 3 else client.MAP
        cut = len(spoilt) if k % 2 else int(rng.integers(len(spoilt)))
        try:
            hub._record(None, "One", kind, bytes(spoilt[:cut]))
        except CosolveError as error:
            sentences[k] = str(error)
    assert 50 < len(sentences) < 140  # some are refused, and some are well-formed still
    assert all("participant 'One'" in sentence for sentence in sentences.values())
