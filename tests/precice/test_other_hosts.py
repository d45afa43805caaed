"""Participants on other machines: encrypted, by key, with the bits of one machine, and an end when that is gone."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress

import numpy as np
import pytest
from tests import processes
from tests.precice.test_processes import SOLVER, children_of
from tests.precice.together import config, couple, pair

from cosolve.errors import SetupError, SubsystemError
from cosolve.participants.gateway import HEAD, OPEN, Gateway, gateway
from cosolve.participants.hub import ListeningSocket
from cosolve.participants.relay import Relay
from cosolve.precice.running import run_configuration
from cosolve.process import network

TEXT = config("serial-explicit")
KEY = "a key for tests of participants elsewhere"
FAR = """
import cosolve.process.network as n
n.HEARTBEAT, n.SILENCE = 0.3, 3.0
from cosolve.cli import main
main()
"""


@pytest.fixture
def case(tmp_path, monkeypatch):
    """A in this folder with the hub, B in another, with a relay; addresses of the loopback are the machines."""
    (tmp_path / "config.xml").write_text(TEXT)
    for folder in (tmp_path, tmp_path / "far"):
        folder.mkdir(exist_ok=True)
        (folder / "solver.py").write_text(SOLVER)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(network, "HEARTBEAT", 0.3)
    monkeypatch.setattr(network, "SILENCE", 3.0)

    class Case:
        folder = tmp_path
        port = free_port()

        def relay(self, failure="none", host="127.0.0.2", key=KEY, before=()):
            """A process there, as Popen of `processes.started`."""
            words = [*before, sys.executable, "-c", FAR, "precice", "connect", f"{host}:{self.port}", "--logs", "logs"]
            words += ["-p", f"B={sys.executable} solver.py B {failure}"]
            env = processes.environment(COSOLVE_KEY=key, TMPDIR=str(temporary))
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            return processes.started(words, cwd=tmp_path / "far", env=env, **pipes)

        def hub(self, failure="none", host="127.0.0.2"):
            commands = {"A": f"{sys.executable} solver.py A {failure}"}
            return run_configuration("config.xml", commands, listen=f"{host}:{self.port}", key=KEY, patience=60.0)

    yield Case()
    assert list(temporary.iterdir()) == []
    assert children_of(os.getpid(), "solver.py") == []


def free_port():
    with socket.create_server(("127.0.0.2", 0)) as one:
        return one.getsockname()[1]


@pytest.mark.covers("SC-24")
def test_one_elsewhere_gives_the_bits_of_one_here(case):
    """The relay comes first and waits. What B would write into its folder goes to that of the hub."""
    (case.folder / "config.xml").write_text(
        TEXT.replace(
            '<receive-mesh name="MA" from="A" />', '<receive-mesh name="MA" from="A" /><export:csv directory="out" />'
        )
    )
    with case.relay() as far:
        case.hub()
        said, _ = far.communicate()
    assert far.returncode == 0, said
    got, _ = couple(TEXT, pair())
    assert np.load("A.npy").tolist() == got["A"].tolist()
    assert np.load("far/B.npy").tolist() == got["B"].tolist()
    assert list((case.folder / "out").glob("*.csv"))
    assert not (case.folder / "far/out").exists()


def test_one_that_dies_elsewhere_is_named_here_with_its_last_output(case):
    words = r"participant 'B' was ended \(signal 9, SIGKILL\); its last output: .*the mesh is tangled"
    with case.relay("killed") as far:
        with pytest.raises(SubsystemError, match=words):
            case.hub()
        said, _ = far.communicate()
    assert far.returncode == 3
    assert f"the hub at 127.0.0.2:{case.port} has ended the coupling: participant 'B' was ended (signal 9" in said


@pytest.mark.slow
def test_one_that_dies_here_ends_those_elsewhere(case):
    with case.relay() as far:
        with pytest.raises(SubsystemError, match=r"participant 'A' was ended \(signal 9, SIGKILL\)"):
            case.hub("killed")
        said, _ = far.communicate()
    assert far.returncode == 3
    assert "has ended the coupling: participant 'A' was ended (signal 9, SIGKILL)" in " ".join(said.split())
    assert "B: participant 'A' was ended (signal 9, SIGKILL)" in (case.folder / "far/logs/B.log").read_text()


def test_a_wrong_key_gets_no_byte_to_the_hub():
    listener = ListeningSocket()
    gate = gateway(listener, "127.0.0.1:0", KEY, ".", ["B"])
    try:
        with pytest.raises(SetupError, match=r"connect: the server at 127\.0\.0\.1:\d+ does not accept this key"):
            Relay(f"127.0.0.1:{gate.port}", "another key", {})
        listener.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.socket.accept()
    finally:
        gate.close()
        listener.close()


def test_who_has_the_key_but_speaks_otherwise_is_let_go_and_others_are_served():
    listener = ListeningSocket()
    gate = Gateway(listener.place, listener.token, "127.0.0.1", 0, KEY)
    try:
        for spoilt in (b"", b"x", HEAD.pack(1, 99), HEAD.pack(1, OPEN) + b"\xff" * 40):
            one = network.Connection("127.0.0.1", gate.port, KEY)
            one.receive(30.0)  # the token
            one.send([spoilt])
            with pytest.raises(network.Disconnected, match="no message of a relay"):
                one.receive(30.0)
            one.close()
        good = Relay(f"127.0.0.1:{gate.port}", KEY, {})
        assert good.listener.token == listener.token
        good._end("")
    finally:
        gate.close()
        listener.close()


@pytest.mark.parametrize("address", ["nowhere", "host:port", "::1:5", "host:70000"])
def test_addresses_that_are_none_are_refused(address):
    with pytest.raises(SetupError, match="an address is 'host:port'"):
        Relay(address, KEY, {})
    listener = ListeningSocket()
    with pytest.raises(SetupError, match="--listen: an address is 'host:port'"):
        gateway(listener, address, None, ".", [])
    with pytest.raises(SetupError, match="say with --listen"):
        gateway(listener, None, KEY, ".", [])
    listener.close()


def test_no_server_there_is_a_sentence():
    port = free_port()
    with pytest.raises(
        SetupError, match=rf"no server answers at 127\.0\.0\.2:{port}; start 'cosolve precice run CONFIG"
    ):
        Relay(f"127.0.0.2:{port}", KEY, {})


@pytest.fixture
def wire():
    """Another network of this machine with a cable to it: (prefix of commands there, address here, cut)."""
    if sys.platform != "linux" or shutil.which("ip") is None:
        pytest.skip("no network namespaces: no command ip")
    name = f"cs{os.getpid() % 100000}"
    here = f"10.213.{os.getpid() % 250}.1"

    def ip(*words):
        return subprocess.run(["ip", *words], capture_output=True, text=True, check=False, timeout=30)

    made = ip("netns", "add", name)
    if made.returncode:
        pytest.skip(f"no network namespaces: {made.stderr.strip()}")
    try:
        for words in (
            ("link", "add", f"{name}a", "type", "veth", "peer", "name", f"{name}b", "netns", name),
            ("addr", "add", f"{here}/24", "dev", f"{name}a"),
            ("link", "set", f"{name}a", "up"),
            ("-n", name, "addr", "add", f"{here[:-1]}2/24", "dev", f"{name}b"),
            ("-n", name, "link", "set", f"{name}b", "up"),
        ):
            made = ip(*words)
            if made.returncode:
                pytest.skip(f"no network namespaces: {made.stderr.strip()}")
        yield ["ip", "netns", "exec", name], here, lambda: ip("link", "set", f"{name}a", "down")
    finally:
        ip("link", "del", f"{name}a")
        ip("netns", "del", name)


@pytest.mark.slow
def test_a_cable_that_is_cut_ends_both_sides_with_sentences(case, wire):
    before, here, cut = wire
    log = case.folder / "far/logs/B.log"

    def cutter():
        processes.until(lambda: log.exists() and "computes for long" in log.read_text())
        cut()

    text = (
        (case.folder / "far/solver.py")
        .read_text()
        .replace('failure == "busy":', 'failure == "busy":\n        print("computes for long", flush=True)')
    )
    (case.folder / "far/solver.py").write_text(text)
    thread = threading.Thread(target=cutter, daemon=True)
    thread.start()
    with case.relay("busy", here, before=before) as far:
        with pytest.raises(SubsystemError, match=r"the connection to .*, where participant 'B' runs, broke: .*network"):
            case.hub(host=here)
        with suppress(subprocess.TimeoutExpired):
            said, _ = far.communicate(timeout=60.0)
    thread.join(60.0)
    assert far.returncode == 3
    assert f"the connection to the hub at {here}:{case.port} broke: it was ended, or the network is gone" in said
