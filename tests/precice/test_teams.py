"""Participants of several processes: one field of all ranks, the bits of one process, the name of a rank that dies."""

import os
import shutil
import socket
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest
from tests import processes
from tests.precice.together import MEASURES, config, constant, couple
from tests.process.ranks.test_ranks import mpiexec

import cosolve as cs
from cosolve.errors import SetupError, SubsystemError
from cosolve.participants import client
from cosolve.participants.hub import Hub, ListeningSocket
from cosolve.participants.process_group import ProcessGroup
from cosolve.participants.subsystem import ParticipantSubsystem
from cosolve.precice.config import Reader
from cosolve.precice.coupling import Coupling
from cosolve.precice.running import run_configuration
from cosolve.signal.polynomial import Polynomial

PROGRAMS = Path(__file__).parent / "programs"
RADIAL = (
    '<mapping:rbf-global-direct {}><basis-function:compact-polynomial-c6 support-radius="20" />'
    "</mapping:rbf-global-direct>"
)
TEXT = config("serial-implicit", MEASURES + constant(0.5), end='<max-time-windows value="3" />')
for there, here in (("MB", "MA"), ("MA", "MB")):  # every value depends on all points, of whatever rank
    words = f'direction="read" from="{there}" to="{here}" constraint="consistent"'
    TEXT = TEXT.replace(f"<mapping:nearest-neighbor {words} />", RADIAL.format(words))
N = 9


def side(name, rank=0, size=1, points=None, cells=False):
    """One rank of a pair in which every point computes on its own."""
    mesh, reads, writes = ("MA", "X", "Y") if name == "A" else ("MB", "Y", "X")
    own = np.arange(N)[N * rank // size : N * (rank + 1) // size] if points is None else points
    factor, shift = (-0.6, 0.0) if name == "A" else (0.9, 0.3)

    def free(t):
        return 1 + 0.1 * own + 0.5 * np.sin(3 * t) if name == "A" else 0.2 * (own + 1) * np.cos(2 * t)

    def solver(p):
        ids = p.set_mesh_vertices(mesh, np.column_stack([own + shift, 0.0 * own]))
        if cells and p.requires_mesh_connectivity_for(mesh):
            for a in range(len(own) - 1):
                if own[a + 1] % 3:  # with three ranks no line goes from one to the next
                    p.set_mesh_edge(mesh, ids[a], ids[a + 1])
        if p.requires_initial_data():
            p.write_data(mesh, writes, ids, free(0.0))
        p.initialize()
        t = saved = 0.0
        value = np.zeros(len(own))
        while p.is_coupling_ongoing():
            if p.requires_writing_checkpoint():
                saved = t
            dt = p.get_max_time_step_size()
            t += dt
            value = factor * p.read_data(mesh, reads, ids, dt) + free(t)
            p.write_data(mesh, writes, ids, value)
            p.advance(dt)
            if p.requires_reading_checkpoint():
                t = saved
        return value

    return solver


def team(name, size, **options):
    return {(name, rank, size): side(name, rank, size, **options) for rank in range(size)}


def joined(got, name):
    return np.concatenate([got[key] for key in sorted(key for key in got if key[0] == name)]).tolist()


@pytest.mark.parametrize(("a", "b"), [(2, 1), (3, 4), (1, 12)], ids=["2+1", "3+4", "1+12"])
def test_ranks_give_the_bits_of_one_process(a, b):
    """Of 12 ranks some have no point."""
    alone, one = couple(TEXT, {"A": side("A"), "B": side("B")})
    got, several = couple(TEXT, {**team("A", a), **team("B", b)})
    assert joined(got, "A") == alone["A"].tolist()
    assert joined(got, "B") == alone["B"].tolist()
    assert several.members["B"].recorder.counts == one.members["B"].recorder.counts


def test_cells_join_points_of_their_own_rank():
    """Projection onto lines that each rank sets by its own numbers: as one process that sets the same lines."""
    text = TEXT
    for there, here in (("MB", "MA"), ("MA", "MB")):
        words = f'direction="read" from="{there}" to="{here}" constraint="consistent"'
        text = text.replace(RADIAL.format(words), f"<mapping:nearest-projection {words} />")
    alone, one = couple(text, {"A": side("A", cells=True), "B": side("B", cells=True)})
    got, several = couple(text, {**team("A", 3, cells=True), **team("B", 3, cells=True)})
    for mesh in ("MA", "MB"):
        lines = several.geometries[mesh].cells["line"].tolist()
        assert lines == one.geometries[mesh].cells["line"].tolist()
        assert len(lines) == 6
    assert joined(got, "A") == alone["A"].tolist()


def test_ranks_touch_their_part_of_a_received_mesh():
    """Direct access: A has no mesh and writes and reads on that of B, each rank in its own box; 4 and 5 are in both."""
    text = """<precice-configuration>
  <data:scalar name="X" /><data:vector name="Y" />
  <mesh name="MB" dimensions="2"><use-data name="X" /><use-data name="Y" /></mesh>
  <participant name="A"><receive-mesh name="MB" from="B" api-access="true" />
    <write-data name="Y" mesh="MB" /><read-data name="X" mesh="MB" /></participant>
  <participant name="B"><provide-mesh name="MB" />
    <write-data name="X" mesh="MB" /><read-data name="Y" mesh="MB" /></participant>
  <m2n:sockets acceptor="A" connector="B" />
  <coupling-scheme:parallel-explicit><participants first="A" second="B" />
    <max-time-windows value="1" /><time-window-size value="1" />
    <exchange data="Y" mesh="MB" from="A" to="B" /><exchange data="X" mesh="MB" from="B" to="A" initialize="true" />
  </coupling-scheme:parallel-explicit></precice-configuration>"""

    def reads(low, high):
        def solver(p):
            p.set_mesh_access_region("MB", [low, high, -1, 1])
            p.initialize()
            ids, points = p.get_mesh_vertex_ids_and_coordinates("MB")
            found = p.read_data("MB", "X", ids, 0.0)
            p.write_data("MB", "Y", ids, np.column_stack([points[:, 0], np.ones(len(ids))]))
            p.advance(1.0)
            return points[:, 0].tolist(), found.tolist()

        return solver

    def provides(p):
        x = np.arange(7.0)
        ids = p.set_mesh_vertices("MB", np.column_stack([x, 0 * x]))
        p.requires_initial_data()
        p.write_data("MB", "X", ids, 10 * x)
        p.initialize()
        p.advance(1.0)
        return p.read_data("MB", "Y", ids, 0.0).tolist()

    got, _ = couple(text, {("A", 0, 2): reads(0.5, 5.5), ("A", 1, 2): reads(3.5, 5.5), "B": provides})
    assert got["A", 0, 2] == ([1.0, 2.0, 3.0, 4.0, 5.0], [10.0, 20.0, 30.0, 40.0, 50.0])
    assert got["A", 1, 2] == ([4.0, 5.0], [40.0, 50.0])
    assert got["B"] == [[0, 0], [1, 1], [2, 1], [3, 1], [8, 2], [10, 2], [0, 0]]


def test_ranks_that_do_not_agree_are_told():
    def halves(p):
        ids = p.set_mesh_vertices("MA", [[0.0, 0.0]])
        p.requires_initial_data()
        p.write_data("MA", "Y", ids, [0.0])
        p.initialize()
        p.requires_writing_checkpoint()
        for _ in range(2):
            p.advance(0.05)

    text = TEXT.replace("exchange data", 'exchange substeps="true" data')
    with pytest.raises(client.ParticipantError) as end:
        couple(text, {("A", 0, 2): side("A", points=np.array([1.0])), ("A", 1, 2): halves, "B": side("B")})
    assert "the ranks of participant 'A' have taken different numbers of steps in a window (rank 0 1, rank 1 2)" in str(
        end.value
    )


def test_the_hub_lets_in_each_rank_once_and_names_the_one_that_is_missing():
    coupling = Coupling(Reader("config.xml", TEXT.encode()).configuration, record=False)
    listener = ListeningSocket()
    hub = Hub(coupling, listener, patience=1.0)
    said = []

    def visitors():
        first = client.Participant("A", listener.address, rank=0, size=2, limit=30.0)
        for rank, size in ((0, 2), (1, 3), (0, 1)):
            try:
                client.Participant("A", listener.address, rank=rank, size=size, limit=30.0)
            except client.ParticipantError as error:
                said.append(str(error))
        try:
            first.start()
        except client.ParticipantError as error:
            said.append(str(error))

    thread = threading.Thread(target=visitors, daemon=True)
    thread.start()
    with pytest.raises(SetupError, match=r"participants .*'A \(rank 1 of 2\)' did not connect within 1 s"):
        hub.serve()
    thread.join(30.0)
    assert said[0] == "A: rank 0 of participant 'A' is connected already"
    assert said[1] == "A: another process of 'A' says that there are 2, and this one that there are 3"
    assert said[2] == "A: another process of 'A' says that there are 2, and this one that there are 1"
    assert "did not connect" in said[3]


def greeted(listener, rank, size):
    """A line on which one rank of A has said hello, and waits for nothing."""
    line = client.connected(listener.place)
    hello = client.Packer().whole(client.PROTOCOL).text(listener.token).text("A").text(".")
    line.send(client.HELLO, hello.whole(4711 + rank, rank, size).bytes())
    return line


@pytest.mark.parametrize(("size", "who"), [(1, "participant 'A'"), (2, r"rank 0 of participant 'A' \(process 4711\)")])
def test_one_that_is_gone_right_after_its_hello_is_named(size, who):
    """The hub cannot tell it what the contract is, and must not take that for an end of its own."""
    listener = ListeningSocket()
    hub = Hub(Coupling(Reader("config.xml", TEXT.encode()).configuration, record=False), listener, patience=30.0)
    greeted(listener, 0, size).close()
    with pytest.raises(SubsystemError, match=f"^{who} is gone before the coupling has ended"):
        hub.serve()


def test_a_rank_that_is_gone_is_named_also_where_the_end_of_its_program_is_seen_first():
    """A shell ends with its rank: whether the hub sees first that one, or that the line is closed, must not matter."""
    listener = ListeningSocket()
    lines = [greeted(listener, rank, 2) for rank in range(2)]

    def watch(name):
        if name is None and "A" in hub.lines and not hub.lines["A"].missing:
            lines[1].close()
            return "participant 'A' ended with exit code 137"
        return "" if name is None else "the words of its program"

    coupling = Coupling(Reader("config.xml", TEXT.encode()).configuration, record=False)
    hub = Hub(coupling, listener, patience=30.0, watch=watch)
    with pytest.raises(SubsystemError, match=r"^rank 1 of participant 'A' \(process 4712\) is gone .*the words of its"):
        hub.serve()
    lines[0].close()


@pytest.mark.parametrize("when", ["it is sent to", "it computes"])
def test_under_a_method_too_a_rank_that_is_gone_is_named(when):
    ends = [socket.socketpair() for _ in range(2)]
    coupling = Coupling(Reader("config.xml", TEXT.encode()).configuration, record=False)
    both = ProcessGroup("A", 2, coupling.contract("A", "."))
    for rank, (near, _) in enumerate(ends):
        both.join(rank, client.Connection(near), 4711 + rank)
    speech = types.SimpleNamespace(state=lambda *_: b"", outputs=None)
    both._cut = lambda content: [b"", b""]

    def failure(name):
        if name is not None:
            return "the words of its program"
        ends[1][1].close()
        return "participant 'A' ended with exit code 137"

    if when == "it is sent to":
        ends[1][1].close()
    subsystem = ParticipantSubsystem("A", both, speech, ["x"], ["y"], np.zeros(1), failure)
    with pytest.raises(SubsystemError, match=r"^rank 1 of participant 'A' \(process 4712\) is gone: the words"):
        subsystem.advance(0.0, 1.0, Polynomial(0.0, 1.0, np.zeros((1, 1))))
    both.close()
    ends[0][1].close()


def test_all_ranks_hear_why_a_run_under_a_method_ends():
    ends = [socket.socketpair() for _ in range(2)]
    coupling = Coupling(Reader("config.xml", TEXT.encode()).configuration, record=False)
    both = ProcessGroup("A", 2, coupling.contract("A", "."))
    for rank, (near, _) in enumerate(ends):
        both.join(rank, client.Connection(near), 4711 + rank)
    subsystem = ParticipantSubsystem("A", both, None, ["x"], ["y"], np.zeros(1), lambda _: "")
    subsystem.finish("the valve is stuck")
    for _, far in ends:
        far.settimeout(10.0)
        kind, content = client.Connection(far).receive()
        assert kind == client.FAILED
        assert client.Unpacker(content).text() == "the valve is stuck"
        far.close()
    both.close()


def test_of_ports_rank_0_speaks_and_all_hear(tmp_path):
    """A program with ports has no points to share out."""
    shutil.copy(client.__file__, tmp_path / "client.py")
    (tmp_path / "tank.py").write_text(
        "import sys\nfrom client import Participant\n"
        "rank = int(sys.argv[1])\np = Participant('tank', rank=rank, size=2)\nlevel = 1.0\n"
        "p.put('level', level + rank)\np.start()\nwhile p.ongoing:\n    dt = p.step_limit\n"
        "    level += dt * (p.get('inflow') - 0.5 * level)\n    p.put('level', level + rank)\n    p.advance(dt)\n"
        "open(f'{rank}.txt', 'w').write(repr(level))\n"
    )
    both = f"cd {tmp_path} && {{ {sys.executable} tank.py 0 & {sys.executable} tank.py 1 & wait; }}"
    tank = cs.remote.ParticipantProgram(both, name="tank", inputs=["inflow"], outputs=["level"], rollback=False)
    valve = cs.Static(lambda t, h: 0.3 / (1 + h), inputs=["h"], outputs=["q"])
    system = cs.System({"tank": tank, "valve": valve})
    system.connect("tank.level", "valve.h")
    system.connect("valve.q", "tank.inflow")
    result = cs.simulate(system, t_end=2.0, method=cs.GaussSeidel(degree=0), step=0.5)
    tank.close()
    last = repr(float(result["tank.level"][-1]))
    assert (tmp_path / "0.txt").read_text() == (tmp_path / "1.txt").read_text() == last


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "config.xml").write_text(TEXT)
    (tmp_path / "ranked.py").write_text((PROGRAMS / "ranked.py").read_text())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ranks(name, size, failure=""):
    """A command that starts so many processes, and ends with an error when one of them has."""
    python = f"{sys.executable} ranked.py {name}"
    each = " ".join(f"{python} {rank} {size} {failure} & p{rank}=$!;" for rank in range(size))
    return each + " ".join(f"wait $p{rank} || bad=1;" for rank in range(size)) + " exit $bad"


def test_processes_of_python(folder):
    run_configuration("config.xml", {"A": ranks("A", 3), "B": ranks("B", 1)})
    got, _ = couple(TEXT, {"A": side("A"), "B": side("B")})
    found = np.concatenate([np.load(f"A-{rank}.npy") for rank in range(3)])
    assert found.tolist() == got["A"].tolist()
    assert np.load("B-0.npy").tolist() == got["B"].tolist()


@pytest.mark.covers("PX-18")
def test_a_rank_that_is_killed_ends_all_with_its_name(folder):
    before = set(processes.children(os.getpid()))
    with pytest.raises(SubsystemError, match=r"rank 2 of participant 'A' \(process \d+\) is gone") as end:
        run_configuration("config.xml", {"A": ranks("A", 3, "killed"), "B": ranks("B", 1)}, logs=folder / "logs")
    assert end.match("the mesh is tangled")
    assert "rank 2 of participant 'A'" in (folder / "logs/B.log").read_text()
    assert set(processes.children(os.getpid())) <= before, "something was left"


@pytest.mark.slow
def test_a_rank_that_finishes_too_early_ends_all(folder):
    words = r"rank 0 of participant 'A' \(process \d+\) has finished before the coupling has ended"
    with pytest.raises(SubsystemError, match=words):
        run_configuration("config.xml", {"A": ranks("A", 2, "leaves"), "B": ranks("B", 1)})


def test_ranks_that_mpiexec_starts(folder):
    """Two ranks that also communicate by MPI, as solvers of fields do.

    Skipped where MPI is missing or mpiexec cannot start processes.
    """
    launcher = mpiexec()
    got = []
    for size in (2, 1):
        start = f"{launcher} -n {size} {sys.executable} ranked.py A mpi 0"
        run_configuration("config.xml", {"A": start, "B": ranks("B", 1)})
        got.append(np.concatenate([np.load(f"A-{rank}.npy") for rank in range(size)]).tolist())
    assert got[0] == got[1]


@pytest.mark.covers("PX-19")
def test_a_method_couples_ranks_as_one_subsystem(folder):
    found = []
    for size in (2, 1):
        commands = {"A": ranks("A", size), "B": ranks("B", 1)}
        with cs.remote.Participants("config.xml", commands) as both:
            result = cs.simulate(both.system, t_end=0.2, method=cs.Implicit(degree=1), step=0.1)
            assert isinstance(both.subsystems["A"]._line, ProcessGroup) is (size == 2)
        found.append(result["A.Y"].tolist())
    assert found[0] == found[1]
