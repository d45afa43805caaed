"""Real processes: the command, the last output of one that dies, and nothing left behind."""

import os
import signal
import socket
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests import processes
from tests.precice.together import MEASURES, config, constant, couple, pair
from typer.testing import CliRunner

from cosolve.cli import app
from cosolve.errors import CosolveError, SetupError, SubsystemError
from cosolve.participants import client
from cosolve.participants.hub import Hub, ListeningSocket
from cosolve.precice.config import Reader
from cosolve.precice.coupling import Coupling
from cosolve.precice.opt_in.precice import Participant
from cosolve.precice.running import OPT_IN, run_configuration

SOLVER = """
import sys, os, signal
import numpy as np
import precice
name, failure = sys.argv[1], sys.argv[2]
if failure == "absent":
    import time
    time.sleep(600)
mesh, reads, writes = ("MA", "X", "Y") if name == "A" else ("MB", "Y", "X")
i = np.arange(4)
d = abs(i[:, None] - i)
p = precice.Participant(name, "config.xml", 0, 1)
ids = p.set_mesh_vertices(mesh, np.column_stack([i, 0 * i]))
t = saved = 0.0
def value(t, x):
    if name == "A":
        return (-0.6 / (1 + d)) @ x + (1 + 0.1 * i + 0.5 * np.sin(3 * t))
    return (0.9 * 0.5**d) @ x + 0.2 * (i + 1) * np.cos(2 * t)
if p.requires_initial_data():
    p.write_data(mesh, writes, ids, value(0.0, 0 * i))
p.initialize()
windows = 0
while p.is_coupling_ongoing():
    if p.requires_writing_checkpoint():
        saved = t
    if windows == 3 and failure == "busy":
        import time
        time.sleep(600)
    dt = p.get_max_time_step_size()
    t += dt
    v = value(t, p.read_data(mesh, reads, ids, dt))
    p.write_data(mesh, writes, ids, v)
    p.advance(dt)
    if p.requires_reading_checkpoint():
        t = saved
    windows += p.is_time_window_complete()
    if windows == 3 and failure == "killed":
        print("the mesh is tangled", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if windows == 3 and failure == "raises":
        raise ValueError("no convergence inside")
np.save(name + ".npy", v)
if failure == "falls":
    p.finalize()
    os.kill(os.getpid(), signal.SIGABRT)
if failure == "forgets":  # some solvers never finalize
    os._exit(0)
"""


@pytest.fixture
def case(tmp_path, monkeypatch):
    """A run of the pair with the hub in this process; `folder` is where it happens."""
    (tmp_path / "config.xml").write_text(config("serial-implicit", MEASURES + constant(0.5)))
    (tmp_path / "solver.py").write_text(SOLVER)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def run(a="none", b="none", **options):
        commands = {
            name: f"{sys.executable} solver.py {name} {failure}" for name, failure in (("A", a), ("B", b)) if failure
        }
        try:
            return run_configuration("config.xml", commands, **options)
        finally:
            assert list(temporary.iterdir()) == []  # no socket is left
            assert not (tmp_path / "config.xml.hub").exists()
            assert not a or children_of(os.getpid(), "solver.py") == []

    run.folder = tmp_path
    return run


def children_of(pid, word):
    found = []
    for child in processes.children(pid):
        with suppress(OSError):
            if word in Path(f"/proc/{child}/cmdline").read_text():
                found.append(child)
    return found


@pytest.mark.covers("PX-18", "PX-20")
@pytest.mark.parametrize(
    "tcp", [pytest.param(False, id="socket"), pytest.param(True, id="tcp", marks=pytest.mark.slow)]
)
def test_processes_give_the_bits_of_threads(case, tcp):
    coupling = case(b="forgets", tcp=tcp)
    got, _ = couple(config("serial-implicit", MEASURES + constant(0.5)), pair())
    for name in "AB":
        assert np.load(case.folder / f"{name}.npy").tolist() == got[name].tolist()
        assert sum(coupling.members[name].recorder.counts) == 620


@pytest.mark.covers("PX-18")
def test_the_command_starts_both_and_says_how_it_went(case):
    words = ["precice", "run", "config.xml"]
    for name in "AB":
        words += ["-p", f"{name}={sys.executable} solver.py {name} none"]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.output
    assert told.output.splitlines() == [f"{name}: t = 1, 10 windows, 620 iterations" for name in "AB"]
    for wrong, sentence in (
        (["-p", "A"], "write it as -p NAME='COMMAND'"),
        (["-p", "A=true", "-p", "A=true"], "'A' has two commands"),
        (["--step", "0.1"], "--step belongs to --method"),
        (["--method", "implicit", "--resume", "x"], "belong to the schemes of the file"),
    ):
        told = CliRunner().invoke(app, ["precice", "run", "config.xml", *wrong])
        assert told.exit_code == 2
        assert sentence in told.output
    assert CliRunner().invoke(app, ["precice", "path"]).output.strip() == str(OPT_IN)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--config", "solver/config.xml"], {"note": "solver/config.xml.hub"}),
        (["-p", "B=true -v", "-p", "C=false"], {"commands": {"B": "true -v", "C": "false"}}),
        (["-p", "B=true", "--logs", "logs", "--patience", "3", "--key", "other"],
         {"commands": {"B": "true"}, "logs": Path("logs"), "patience": 3.0, "key": "other"}),
    ],
)  # fmt: skip
def test_what_is_connected_from_here_is_what_the_command_says(words, expected, monkeypatch, tmp_path):
    """Everything that stands in the command, and the defaults of the rest, arrives at the relay."""
    made = []

    class Relay:
        def __init__(self, address, key, commands, **options):
            made.append({"address": address, "key": key, "commands": commands, **options})

        def run(self):
            made[-1]["ran"] = True

    monkeypatch.setattr("cosolve.participants.relay.Relay", Relay)
    monkeypatch.setenv("COSOLVE_KEY", "secret")
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(app, ["precice", "connect", "there:5555", *words])
    assert told.exit_code == 0, told.output
    (found,) = made
    assert found.pop("environment")["PYTHONPATH"]
    if "note" in expected:
        expected = {"note": tmp_path / expected["note"]}
    default = {"address": "there:5555", "key": "secret", "commands": {}, "logs": None, "note": None, "patience": 60.0}
    assert found == {**default, **expected, "ran": True}


@pytest.mark.covers("PX-18")
def test_one_that_is_killed_ends_the_other_with_signal_and_last_output(case):
    with pytest.raises(
        SubsystemError, match=r"participant 'B' was ended \(signal 9, SIGKILL\); its last output: .*"
    ) as end:
        case(b="killed", logs=case.folder / "logs")
    assert end.match("the mesh is tangled")
    other = (case.folder / "logs/A.log").read_text()
    assert "ParticipantError: A: participant 'B' was ended" in other  # the other knows why


@pytest.mark.slow
@pytest.mark.covers("PX-18")
def test_one_that_computes_is_ended_too(case):
    """It would not look at its connection for ten minutes, which the limit of a test does not allow."""
    (case.folder / "config.xml").write_text(config("parallel-explicit"))
    began = time.monotonic()
    with pytest.raises(SubsystemError, match=r"participant 'B' was ended \(signal 9, SIGKILL\)"):
        case(a="busy", b="killed")
    assert time.monotonic() - began < 240.0


@pytest.mark.covers("PX-18")
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_ended_ends_its_programs(case, number):
    command = [sys.executable, "-m", "cosolve.cli", "precice", "run", "config.xml"]
    for name in "AB":
        command += ["-p", f"{name}={sys.executable} solver.py {name} busy"]
    temporary = case.folder / "tmp"
    with processes.started(command, cwd=case.folder, env=processes.environment(TMPDIR=str(temporary))) as run:
        assert processes.until(lambda: len(children_of(run.pid, "solver.py")) == 2)
        programs = children_of(run.pid, "solver.py")
        run.send_signal(number)
        assert run.wait(timeout=60) != 0
        assert all(processes.ends(pid) for pid in programs)
    assert list(temporary.iterdir()) == []


@pytest.mark.covers("PX-18")
def test_one_that_raises_ends_the_other_with_its_last_output(case):
    with pytest.raises(SubsystemError, match=r"participant 'B' ended with exit code 1; its last output: .*") as end:
        case(b="raises")
    assert end.match("ValueError: no convergence inside")


@pytest.mark.slow
@pytest.mark.covers("PX-18")
def test_one_that_dies_after_the_coupling_is_named_with_its_signal(case):
    with pytest.raises(CosolveError, match=r"participant 'B' aborted \(signal 6, SIGABRT\) after the coupling"):
        case(b="falls")


@pytest.mark.covers("PX-18")
def test_one_that_never_connects_is_named(case):
    with pytest.raises(SetupError, match=r"participants? .*'B' did not connect within 0\.3 s"):
        case(b="absent", patience=0.3)


@pytest.mark.covers("PX-18")
def test_a_program_that_cannot_start_and_a_name_that_is_not_there(case):
    with pytest.raises(SetupError, match=r"'A' cannot be started \(No such file or directory\): no-such-program-here"):
        run_configuration("config.xml", {"A": "no-such-program-here"})
    with pytest.raises(SetupError, match=r"config\.xml has no participant 'C'"):
        run_configuration("config.xml", {"C": "true"})


@pytest.mark.covers("PX-18")
def test_participants_started_elsewhere_find_the_hub_beside_the_file(case):
    env = {**processes.environment(), "PYTHONPATH": str(OPT_IN)}
    command = [sys.executable, "solver.py", "A", "none"]
    with processes.started(command, cwd=case.folder, env=env) as late:  # before the hub is there
        case(a="")
        assert late.wait(timeout=60) == 0
    assert (case.folder / "A.npy").exists()


@pytest.mark.parametrize("tcp", [False, True], ids=["socket", "tcp"])
def test_unknown_clients_are_turned_away(tcp):
    """A wrong token, a wrong name, a client with another protocol: each is told, and the run goes on."""
    listener = ListeningSocket(tcp)
    coupling = Coupling(Reader("config.xml", config("serial-explicit").encode()).configuration, record=False)
    hub = Hub(coupling, listener, patience=30.0)
    said = []

    def visitors():
        for name, address in (("A", f"{listener.place} wrong"), ("C", listener.address)):
            try:
                client.Participant(name, address, limit=30.0)
            except client.ParticipantError as error:
                said.append(str(error))
        odd = client.connected(listener.place)
        odd.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        odd.socket.settimeout(30.0)
        said.append(client.Unpacker(odd.receive()[1]).text())
        odd.close()
        for name, solver in pair().items():
            threading.Thread(target=visit, args=(name, solver), daemon=True).start()

    def visit(name, solver):
        p = Participant(name, "config.xml", 0, 1, connection=None, limit=30.0)
        solver(p)
        p.finalize()

    os.environ["COSOLVE_HUB"] = listener.address
    try:
        thread = threading.Thread(target=visitors, daemon=True)
        thread.start()
        hub.serve()
        thread.join(30.0)
    finally:
        del os.environ["COSOLVE_HUB"]
    assert "the token is not that of this hub" in said[0]
    assert "there is no participant 'C' in this coupling; there are 'A', 'B'" in said[1]
    assert "no record of this protocol" in said[2]


@pytest.mark.parametrize("flood", ["connections", "a long record", "no file descriptor"])
def test_unknown_clients_cost_a_hub_little(flood, monkeypatch):
    """Before they have the token: no memory, no descriptors, and not the life of the run."""
    listener, open_ones, said = ListeningSocket(True), [], []
    coupling = Coupling(Reader("config.xml", config("serial-explicit").encode()).configuration, record=False)
    hub = Hub(coupling, listener, patience=60.0)

    class Full(socket.socket):
        """The first connection finds no file descriptor left."""

        def accept(self):
            self.accept = super().accept
            raise OSError(24, "Too many open files")

    if flood == "no file descriptor":
        listener.socket = Full(fileno=listener.socket.detach())
    host, _, port = listener.place.removeprefix("tcp:").rpartition(":")

    def visitors():
        for _ in range(100 if flood == "connections" else 0):
            client_socket = socket.create_connection((host, int(port)), timeout=30.0)
            open_ones.append(client_socket)
        if flood == "connections":
            answers = [client_socket.recv(1000) for client_socket in open_ones[:60]]
            said.append(all(b"too many connections" in one for one in answers))
        if flood == "a long record":
            client_socket = client.connected(listener.place)
            client_socket.socket.sendall(client._HEAD.pack(client._MAGIC, client.HELLO, 1 << 33))
            client_socket.socket.settimeout(30.0)
            said.append("no record of this protocol" in client.Unpacker(client_socket.receive()[1]).text())
            client_socket.close()
        for name, solver in pair().items():
            threading.Thread(target=visit, args=(name, solver), daemon=True).start()

    def visit(name, solver):
        p = Participant(name, "config.xml", 0, 1, connection=None, limit=60.0)
        solver(p)
        p.finalize()

    monkeypatch.setenv("COSOLVE_HUB", listener.address)
    thread = threading.Thread(target=visitors, daemon=True)
    thread.start()
    hub.serve()
    thread.join(60.0)
    for client_socket in open_ones:
        client_socket.close()
    assert said == ([] if flood == "no file descriptor" else [True])


@pytest.mark.covers("PX-01")
def test_the_folder_of_the_module_holds_it():
    assert (OPT_IN / "precice.py").is_file()
