"""What happens to connections between machines: each ending has its sentence, and leaves no process behind."""

import inspect
import os
import signal
import socket
import sys
import threading
import time

import numpy as np
import pytest
import zmq
from tests.process.isolated import models
from tests.process.isolated.servers import Line, said, served
from tests.processes import children, environment, started, until

import cosolve as cs
from cosolve.process import connection_server, data, network
from cosolve.process.channel import Disconnected, TimedOut
from cosolve.signal import Polynomial

IMPATIENT = "n.HEARTBEAT, n.SILENCE = 0.3, 3.0"  # the same on the side of the server
STEP = Polynomial(0.0, 0.1, np.zeros((1, 1)))
JACOBI = {"method": cs.Jacobi(degree=0), "step": 0.1}


@pytest.fixture
def impatient(monkeypatch):
    """A network that is gone is noticed after three seconds, not after eight."""
    monkeypatch.setattr(network, "HEARTBEAT", 0.3)
    monkeypatch.setattr(network, "SILENCE", 3.0)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """One server for many tests, whose processes it must be rid of after each; and what it said."""
    path = tmp_path_factory.mktemp("plain") / "said"
    with path.open("w") as log, served("tests.process.isolated.models:Plain", before=IMPATIENT, stderr=log) as given:
        yield *given, path


@pytest.fixture
def none_left(plain):
    yield
    assert until(lambda: not children(plain[2].pid))


def _driven(far):
    system = cs.System({"tool": far})
    system.set("tool.u", 1.0)
    return system


def test_a_wrong_key_is_told_on_both_sides(plain, none_left):
    """A refused client starts no process."""
    address, _, server, path = plain
    with pytest.raises(cs.errors.SetupError, match=r"the server at .* does not accept this key"):
        cs.remote.Remote(address, key="open wheat")
    assert not children(server.pid)
    assert until(lambda: said(path, "serve: refused a connection: a wrong key"))


def test_half_of_the_key_is_not_enough():
    """Who knows the server's public key still has to be the one client."""
    listener = network.Listener("127.0.0.1", 0, "the key")
    try:
        link = zmq.Context.instance().socket(zmq.DEALER)
        link.linger = 0
        link.curve_serverkey = network.keys("the key").server
        link.curve_publickey, link.curve_secretkey = zmq.curve_keypair()
        monitor = link.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_SUCCEEDED)
        link.connect(f"tcp://127.0.0.1:{listener.port}")
        assert network._event(zmq, monitor, 60.0) == zmq.EVENT_HANDSHAKE_FAILED_AUTH
        network._close(link, monitor)
        assert until(lambda: listener.lost() == [] and listener.complaints == ["refused a connection: a wrong key"])
    finally:
        listener.close()


def test_keys_differ_with_the_text_and_are_the_same_everywhere():
    one, other = network.keys("one"), network.keys("two")
    assert not set(one) & set(other)
    assert len(set(one)) == 4
    assert one.server == b"rFYxp3Yw*kI/2qN9qx<Z!g#y)vOXj114SL#tOCA^"


def test_another_version_is_named_on_both_sides(tmp_path, monkeypatch):
    """The key of both stands in the environment."""
    monkeypatch.setenv("COSOLVE_KEY", "from the environment")
    newer = "n.PROTOCOL = 7; n.VERSION = '9.9.9'"
    path = tmp_path / "said"
    with (
        path.open("w") as log,
        served("tests.process.isolated.models:Plain", before=newer, stderr=log) as (address, key, _),
    ):
        assert key == "from the environment"
        expected = (
            r"Remote: the server at .* has cosolve 9\.9\.9, which speaks protocol 7; this is cosolve "
            rf"{cs.__version__} with protocol {network.PROTOCOL}: install the same version"
        )
        with pytest.raises(cs.errors.SetupError, match=expected):
            cs.remote.Remote(address)
        here = f"a client with cosolve {cs.__version__} speaks protocol {network.PROTOCOL}"
        words = f"{here}, this is cosolve 9.9.9 with protocol 7"
        assert until(lambda: said(path, words))


def test_late_and_repeated_connections_find_a_new_subsystem_each(plain, none_left):
    """One after the other and two at a time; the processes of those who left are gone."""
    address, key, server, _ = plain
    for count in (1, 2):
        far = [cs.remote.Remote(address, key=key) for _ in range(count)]
        for one in far:
            assert one.start(0.0).tolist() == [1.0]
            assert one.advance(0.0, 0.1, STEP).tolist() == [0.9]
        assert len(children(server.pid)) >= count
        for one in far:
            one.close()


def test_a_client_that_is_killed_takes_only_its_own_process_along(plain, none_left):
    code = (
        "import sys, time\n"
        "from cosolve.process.network import Connection\n"
        "there = Connection(*sys.argv[1].split(':'), sys.argv[2])\n"
        "print('here', flush=True)\n"
        "time.sleep(1e4)\n"
    )
    address, key, server, _ = plain
    mine = cs.remote.Remote(address, key=key)
    mine.start(0.0)
    (own,) = children(server.pid)
    with started([sys.executable, "-c", code, address, key], env=environment(), stdout=-1) as client:
        assert client.stdout.readline() == "here\n"
        assert until(lambda: len(children(server.pid)) == 2)
        client.kill()
        client.wait()
    assert until(lambda: children(server.pid) == [own])
    assert mine.advance(0.0, 0.1, STEP).tolist() == [0.9]
    mine.close()


@pytest.mark.slow
def test_a_network_that_goes_silent_ends_the_run_and_the_process(plain, none_left, impatient):
    """Nothing is closed, nothing is answered: heartbeats tell. The result up to there is kept."""
    address, key, server, _ = plain
    with Line(address) as line:
        far = cs.remote.Remote(line.address, key=key)  # no time limit on calls
        system = cs.System({"tool": far})
        system.set("tool.u", lambda t: float(_silence(line, t)))
        expected = (
            r"'tool' failed .* at t = 0.4: the connection to the server at .* broke: it was ended, or the network"
        )
        with pytest.raises(cs.errors.SubsystemError, match=expected) as caught:
            cs.simulate(system, t_end=1.0, **JACOBI)
        assert len(caught.value.result.t) == 5
        assert until(lambda: not children(server.pid))
        line.silent = False
        result = cs.simulate(_driven(far), t_end=1.0, **JACOBI)
        assert len(result.t) == 11
        far.close()


def _silence(line, t):
    line.silent = line.silent or t > 0.45
    return 1.0


@pytest.mark.slow
def test_a_long_silence_between_calls_is_no_failure(plain, none_left, impatient):
    """Heartbeats go on while both sides do something else, and unread probes are skipped."""
    address, key, _, _ = plain
    far = cs.remote.Remote(address, key=key)
    far.start(0.0)
    threading.Event().wait(5.0)
    assert far.advance(0.0, 0.1, STEP).tolist() == [0.9]
    far.close()


@pytest.mark.slow
def test_a_server_that_stands_still_is_noticed(plain, none_left, impatient):
    """Stopped, as by a debugger: its machine still acknowledges what is sent."""
    address, key, server, _ = plain
    far = cs.remote.Remote(address, key=key)
    far.start(0.0)
    server.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(cs.errors.SubsystemError, match=r"the connection to the server at .* broke"):
            far.advance(0.0, 0.1, STEP)
    finally:
        server.send_signal(signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("share", [0.3, 0.999])
def test_half_a_message_ends_with_a_sentence(share):
    """The line is cut inside of a long message; the server goes on with others."""
    with served("tests.process.isolated.models:long_field") as (address, key, server), Line(address) as line:
        far = cs.remote.Remote(line.address, key=key)
        other = cs.remote.Remote(address, key=key)
        u = Polynomial(0.0, 1.0, np.ones((2, 150_000)))
        for one in (far, other):
            one.start(0.0)
        line.budget = int(share * 8 * u.coefficients.size)
        with pytest.raises(cs.errors.SubsystemError, match=r"the connection to the server at .* broke"):
            far.advance(0.0, 1.0, u)
        assert np.array_equal(other.advance(0.0, 1.0, u), np.sin(u(1.0)))
        assert until(lambda: len(children(server.pid)) == 1)


@pytest.mark.slow
def test_a_server_that_was_restarted_is_found_again():
    """The old connection ends with a sentence; a new run gets a subsystem of the new server."""
    with served("tests.process.isolated.models:Plain") as (address, key, server):
        far = cs.remote.Remote(address, key=key)
        first = cs.simulate(_driven(far), t_end=0.3, **JACOBI)
        server.terminate()
        server.wait()
    port = address.rpartition(":")[2]
    with served("tests.process.isolated.models:Plain", "--port", port, "--key", key):
        with pytest.raises(cs.errors.SubsystemError, match=r"server was ended|broke"):
            far.advance(0.3, 0.4, Polynomial(0.3, 0.1, np.zeros((1, 1))))
        again = cs.simulate(_driven(far), t_end=0.3, **JACOBI)
    assert np.array_equal(first["tool.x"], again["tool.x"])


def test_nothing_listens_beyond_this_machine_unless_asked():
    """All of 127/8 is this machine, so its other addresses can stand for other networks."""
    listener = network.Listener("127.0.0.1", 0, "k")
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", listener.port))
    listener.close()
    assert inspect.signature(connection_server.serve).parameters["host"].default == "127.0.0.1"
    named = network.Listener("localhost", 0, "k")
    socket.create_connection(("localhost", named.port)).close()
    named.close()
    everywhere = network.Listener("0.0.0.0", 0, "k")
    socket.create_connection(("127.0.0.2", everywhere.port)).close()
    everywhere.close()


def test_bad_options_of_a_server_are_refused():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(cs.errors.SetupError, match=r"serve: cannot listen at 127\.0\.0\.1:"):
            connection_server.serve("tests.process.isolated.models:Plain", port=taken.getsockname()[1], key="k")
        with pytest.raises(cs.errors.SetupError, match="a port is a number from 0 to 65535, not 70000"):
            connection_server.serve("tests.process.isolated.models:Plain", port=70000)
        with pytest.raises(cs.errors.SetupError, match="a factory is named as"):
            connection_server.serve("nonsense")
        with pytest.raises(
            cs.errors.SetupError, match=r"cannot listen at no\.such\.host\.invalid:0: there is no such host"
        ):
            connection_server.serve("tests.process.isolated.models:Plain", host="no.such.host.invalid", key="k")


@pytest.mark.parametrize("name", ["zmq", "msgpack"])
def test_a_missing_library_is_named_with_its_remedy(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(cs.errors.SetupError, match=rf"needs {name}, which is not installed; run: pip install 'cosolve"):
        cs.remote.Remote("127.0.0.1:1", key="k")


# -- the two classes by themselves ------------------------------------------------------------------------------------


@pytest.fixture
def ends():
    """A listener and a connection to it that has greeted."""
    listener = network.Listener("127.0.0.1", 0, "k")
    made = []
    thread = threading.Thread(target=lambda: made.append(network.Connection("127.0.0.1", listener.port, "k")))
    thread.start()
    came = []
    assert until(lambda: came.extend(listener.events()) or came)
    thread.join()
    assert came == [(came[0].peer, None)]
    yield listener, came[0].peer, made[0]
    made[0].close()
    listener.close()


def _next(listener):
    came = []
    assert until(lambda: came.extend(listener.events()) or came)
    return came


@pytest.mark.parametrize("size", [0, 1, network._PIECE, network._PIECE + 1, 3 * network._PIECE])
def test_messages_of_all_sizes_arrive_whole(ends, size):
    listener, peer, connection = ends
    message = os.urandom(size)
    connection.send([message[: size // 2], message[size // 2 :]])
    ((who, found),) = _next(listener)
    assert who == peer
    assert bytes(found) == message
    listener.send(peer, [message])
    assert bytes(connection.receive(60.0)) == message


def test_waiting_ends_in_time_or_with_the_other_side(ends):
    listener, peer, connection = ends
    with pytest.raises(TimedOut):
        connection.receive(0.01)
    listener._peers[peer].doubts = 1
    listener.lost()  # a probe, which is not read
    listener.drop(peer, "enough")
    with pytest.raises(Disconnected, match="enough"):
        connection.receive(60.0)


def test_what_was_said_last_is_read_after_the_connection_has_ended(ends):
    """Also by a side that looked before there was anything, and again only when the other one is gone."""
    listener, peer, connection = ends
    with pytest.raises(TimedOut):
        connection.receive(0.0)
    listener.send(peer, [b"the reason"])
    listener.close("good night")
    assert connection._monitor.poll(60_000)  # the connection has ended, and nothing was read yet
    time.sleep(0.05)  # ZeroMQ throws away after it tells, if it does
    assert bytes(connection.receive(60.0)) == b"the reason"
    with pytest.raises(Disconnected, match="good night"):
        connection.receive(60.0)
    with pytest.raises(Disconnected, match=r"^$"):
        connection.receive(60.0)


def test_probes_are_rare(ends):
    """They are not read while the client computes; a queue full of them would hold up the heartbeats."""
    listener, peer, connection = ends
    assert not any(listener.lost() for _ in range(1000))
    with pytest.raises(TimedOut):
        connection.receive(0.0)
    assert not connection._link.poll(100)
    listener._peers[peer].due = 0.0
    assert not any(listener.lost() for _ in range(1000))
    assert connection._link.poll(60_000)
    assert connection._link.recv() == network.PROBE
    assert not connection._link.poll(100)


def test_who_left_is_told_within_some_looks(ends):
    listener, peer, connection = ends
    connection.close()
    lost = []
    assert until(lambda: list(listener.events()) or lost.extend(listener.lost()) or lost)
    assert lost == [peer]
    assert listener.lost() == []


@pytest.fixture
def short_queues(monkeypatch):
    """Both sides hold little, so that what the system holds besides (tens of MB) decides nothing."""
    monkeypatch.setattr(network, "_QUEUE", 4)


def test_who_does_not_read_holds_up_no_other(short_queues, ends):
    """What has no room on the network waits here and is sent later."""
    listener, peer, connection = ends
    message = bytes(56 * network._PIECE)
    listener.send(peer, [message])
    assert listener.owes(peer)
    found = []
    thread = threading.Thread(target=lambda: found.append(connection.receive(60.0)))
    thread.start()
    assert until(lambda: listener.flush() or not listener.busy)
    thread.join()
    assert len(found[0]) == len(message)


def test_too_long_a_message_is_refused_before_it_is_sent(ends, monkeypatch):
    _, _, connection = ends
    monkeypatch.setattr(network, "LARGEST", 2 * network._PIECE)
    with pytest.raises(cs.errors.SubsystemError, match="too long to be sent; at most"):
        connection.send([bytes(3 * network._PIECE)])


def test_objects_of_the_listed_classes_travel_and_no_others():
    from cosolve.integrator.bdf_control import Counts
    from cosolve.process.content import Content
    from cosolve.signal.history import History
    from cosolve.structures.integrators import Past
    from cosolve.subsystem.interpolated_outputs import AcceptedSteps
    from cosolve.subsystem.units import Unit

    contents = Content()
    steps = AcceptedSteps()
    steps.offer(0.0, np.array([1.0]))
    past = Past(*(np.full(2, float(k)) for k in range(6)), 0.5)
    unit = Unit("mm", 1e-3, exponents={"m": 1})
    port = cs.Port("x", size=3, unit="mm", nominal=2.0, definition=unit)
    for value in (Counts(steps=3), History(np.array([1.0]), 2), steps, past):
        found = contents.unpack(contents.pack(value))
        assert type(found) is type(value)
        assert contents.pack(found) == contents.pack(value)
    assert contents.unpack(contents.pack(port)) == port
    with pytest.raises(cs.errors.SubsystemError, match="a value of type Plain cannot be sent"):
        contents.pack(models.Plain())
    with pytest.raises(data.Malformed, match="unknown class"):
        contents.unpack(data.pack(unit, _Renamed("os.system")))


class _Renamed:
    def __init__(self, name):
        self.name = name

    def taken_apart(self, value):
        return self.name, ("true",)

    def put_together(self, name, content):
        raise AssertionError
