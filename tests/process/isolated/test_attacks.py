"""Hostile clients and servers: nothing that comes from the network is run, and a server goes on serving others."""

import ast
import os
import pickle
import random
import socket
import struct
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgpack
import numpy as np
import pytest
from tests.process.isolated.servers import served
from tests.process.isolated.test_data import HOSTILE
from tests.processes import children, until

import cosolve as cs
import cosolve.process
from cosolve.process import message as m
from cosolve.process import network
from cosolve.process.channel import Disconnected
from cosolve.process.content import Content
from cosolve.process.data import pack
from cosolve.signal import Polynomial

FOLDER = Path(cosolve.process.__file__).parent
STEP = Polynomial(0.0, 0.1, np.zeros((1, 1)))


# -- what the modules may use -----------------------------------------------------------------------------------------


def _reached(*names):
    """The modules of this package that these import, at any place in them, and those that they import."""
    found, todo = {}, list(names)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        tree = found[name] = ast.parse((FOLDER / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cosolve.process"):
                inside = node.module.split(".")[2:]
                todo += inside or [alias.name for alias in node.names]
    return found


NETWORK = _reached("remote", "connection_server", "offered_server", "network")


def test_modules_that_read_the_network_know_no_way_to_run_what_they_read():
    """Neither by themselves nor through what they import here; `factory.py` imports what the server's owner names."""
    assert {
        "remote",
        "connection_server",
        "offered_server",
        "network",
        "content",
        "data",
        "message",
        "server",
        "proxy",
    } <= set(NETWORK)
    assert not {"pickles", "isolated", "launch", "worker", "native_exchange"} & set(NETWORK)
    modules = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml", "jsonpickle", "ctypes", "code", "runpy"}
    functions = {"eval", "exec", "compile", "__import__"}
    methods = {"recv_pyobj", "send_pyobj", "allow_pickle", "loads", "Unpickler"}
    for name, tree in NETWORK.items():
        found = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= modules & {part for alias in node.names for part in alias.name.split(".")}
            elif isinstance(node, ast.ImportFrom):
                found |= modules & {*(node.module or "").split("."), *(alias.name for alias in node.names)}
            elif isinstance(node, ast.Name):
                found |= functions & {node.id}
            elif isinstance(node, ast.Attribute):
                found |= methods & {node.attr}
            elif isinstance(node, ast.keyword):
                found |= methods & {node.arg}
        # how processes end, and what the owner of the server names
        assert found == {"factory": {"runpy"}}.get(name, set()), name


def test_names_that_are_imported_come_from_lists():
    """`import_module` is called with names that stand in the source, or that the server's owner gave."""
    calls = [
        (name, ast.unparse(node.args[0]))
        for name, tree in NETWORK.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module")
    ]
    assert sorted(calls) == [("content", "_MEMORIES[name]"), ("factory", "where")]
    libraries = [
        ast.unparse(node.args[0])
        for tree in NETWORK.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("library", "optional")
    ]
    assert set(libraries) == {"'zmq'", "'msgpack'", "'zmq.auth.thread'", "name"}  # `name`: within `library` itself


# -- what is sent -----------------------------------------------------------------------------------------------------


class _Deed:
    """What a pickle can do when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def _contents(path):
    """Things for the place of a content: pickles that would leave a trace, hostile msgpack, anything."""
    deeds = [pickle.dumps(_Deed(path), protocol=protocol) for protocol in (0, 2, 5)]
    objects = [
        pack(1, None)[:0] + msgpack.packb(msgpack.ExtType(8, msgpack.packb([name, content])))
        for name, content in [
            ("os.system", f"mkdir {path}"),
            ("Port", ["x", -5, 3, "nominal", 7]),
            ("Port", f"mkdir {path}"),
            ("Polynomial", [0.0, 1.0, "no matrix"]),
            ("Unit", ["x", 1.0, 0.0, [1]]),
            ("History", {"__class__": "x"}),
            ("Past", [1]),
            ("Counts", 5),
        ]
    ]
    numbers = random.Random(7)
    return [*deeds, *objects, *HOSTILE.values(), *(numbers.randbytes(numbers.randrange(1, 80)) for _ in range(40))]


def _requests(path):
    """Requests of every kind, with every kind of content, and things that are no requests."""
    contents = _contents(path)
    one, ones = np.ones((1, 1)), np.ones(3)
    for call in range(1, 30):  # LOAD builds the server's own subsystem whatever it holds; see below
        yield m.write_request(call)
        yield m.write_request(call, handle=-(2**62), coefficients=np.ones((7, 5)), extra=ones, notes=(1, -1, 2**62))
        yield m.write_request(call, times=(np.nan, np.inf, -np.inf, np.nan), coefficients=one, extra=np.ones(1))
        yield m.write_request(call, content=contents[0])
    for content in contents:
        yield m.write_request(m.CALL, content=content)
    for name in ("__class__", "__init__", "__reduce__", "__setattr__", "_hidden", "by_callback", "unheard", "x"):
        yield m.write_request(m.CALL, content=Content().pack((name, (str(path),), {})))
    for call in (m.NATIVE, m.ATTACH, m.EXPLAIN):
        yield m.write_request(call, content=Content().pack((0.1, 1, "/etc/passwd", (1, 1))))
        yield m.write_request(call, content=pickle.dumps(_Deed(path)))
    yield m.write_request(m.CALL, content=Content().pack(5))
    yield m.write_request(m.CALL, content=Content().pack(("advance", 5, [])))
    for sizes in ((2**32 - 1, 2**32 - 1, 0, 0), (0, 0, 2**32 - 1, 0), (0, 0, 0, 2**32 - 1), (1, 1, 1, 1)):
        for call in (m.ADVANCE, m.JACOBIAN, m.CALL):
            yield [struct.pack("<IIqddddIIII", call, 0, 0, 0.0, 0.0, 0.0, 0.0, *sizes)]
            yield [struct.pack("<IIqddddIIII", call, 2**32 - 1, 0, 0.0, 0.0, 0.0, 0.0, *sizes)]
    yield [b"x" * 10]
    yield [pickle.dumps(_Deed(path))]


# -- hostile clients --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    """One server for all of them."""
    with served("tests.process.isolated.models:Counter") as given:
        yield given


@pytest.fixture(scope="module")
def friend(server):
    """Another client of the same server."""
    far = cs.remote.Remote(server[0], key=server[1], timeout=120.0)
    far.start(0.0)
    yield far
    far.close()


@pytest.fixture
def bystander(server, friend):
    """The friend must not notice anything, and no process of another may be left."""
    friend.start(0.0)
    state, first = friend.save(), friend.advance(0.0, 0.1, STEP)
    yield
    friend.restore(state)
    assert np.array_equal(friend.advance(0.0, 0.1, STEP), first)
    assert friend.states() == 1
    assert server[2].poll() is None
    assert until(lambda: len(children(server[2].pid)) == 1)


def _connected(server):
    host, _, port = server[0].rpartition(":")
    return network.Connection(host, int(port), server[1])


def test_a_client_with_the_key_can_ask_anything_and_run_nothing(server, bystander, tmp_path):
    """Every request is answered, by a failure where it makes no sense, and a good one afterwards works."""
    path = tmp_path / "deed"
    there = _connected(server)
    there.send(m.write_request(m.LOAD, content=pickle.dumps(_Deed(path))))
    assert m.read_answer(there.receive(60.0)).form == m.FAILURE
    there.send(m.write_request(m.LOAD))
    about = Content().unpack(m.read_answer(there.receive(60.0)).value)
    assert about["kind"] == "Counter"
    for request in _requests(path):
        there.send(request)
        answer = m.read_answer(there.receive(60.0))
        if answer.form == m.FAILURE:
            assert isinstance(Content().unpack_error(answer.value), Exception)
    assert not path.exists()
    there.send(m.write_request(m.START))
    assert m.read_vector(there.receive(60.0)).tolist() == [1.0]
    there.close()


def _drained(connection):
    while True:
        connection.receive(60.0)


def test_a_client_that_breaks_the_rules_is_let_go(server, bystander):
    """Two questions at once, no greeting, unknown heads, several frames, pieces without end."""
    load = m.write_request(m.LOAD)
    there = _connected(server)
    for _ in range(3):
        there.send(load)
    with pytest.raises(Disconnected, match="a second question came before the answer to the first"):
        _drained(there)
    there.close()
    there = _connected(server)
    there.send([])
    with pytest.raises(Disconnected, match="an empty question"):
        there.receive(60.0)
    there.close()
    for frames in (
        [b"cosolve\x00"],
        [b"cosolve\x09 hello"],
        [b"cos"],
        [b""],
        [network.HELLO],
        [network.BYE + b"you are dismissed"],
        [network.DATA, b"second frame"],
        [pickle.dumps(_Deed("never"))],
    ):
        there = _connected(server)
        there._link.send_multipart(frames)
        with pytest.raises(Disconnected, match="this is no message of cosolve"):
            there.receive(60.0)
        there.close()


def test_a_frame_beyond_the_limit_ends_the_connection(server, bystander):
    there = _connected(server)
    there._link.send(network.DATA + bytes(2 * network._PIECE))
    with pytest.raises(Disconnected):
        there.receive(60.0)
    there.close()


def test_pieces_without_end_are_refused(monkeypatch):
    """The listener by itself, with a smaller limit."""
    monkeypatch.setattr(network, "LARGEST", 3 * network._PIECE)
    listener = network.Listener("127.0.0.1", 0, "k")
    made, came = [], []
    thread = threading.Thread(target=lambda: made.append(network.Connection("127.0.0.1", listener.port, "k")))
    thread.start()
    assert until(lambda: came.extend(listener.events()) or came)
    thread.join()
    for _ in range(4):
        made[0]._link.send(network.MORE + bytes(network._PIECE))
    gone = []
    assert until(lambda: came.extend(listener.events()) or gone.extend(listener.lost()) or gone)
    assert [one.data for one in came] == [None]
    with pytest.raises(Disconnected, match="this is no message of cosolve"):
        made[0].receive(60.0)
    made[0].close()
    listener.close()


GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01"


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: there\r\n\r\n",
        pickle.dumps(_Deed("never")),
        bytes(100_000),
        b"\xff" * 100_000,
        GREETING + b"NULL".ljust(20, b"\0") + b"\0" + bytes(31) + b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x06DEALER",
        GREETING + b"PLAIN".ljust(20, b"\0") + b"\0" + bytes(31) + b"\x04\x0a\x05HELLO\x01a\x01b",
        GREETING + b"CURVE".ljust(20, b"\0") + b"\0" + bytes(31) + b"\x04\xc8\x05HELLO" + bytes(194),
        GREETING + b"CURVE".ljust(20, b"\0") + b"\0" + bytes(31) + b"\x06" + b"\x7f" + b"\xff" * 7 + bytes(500),
        GREETING + b"CURVE".ljust(20, b"\0") + b"\0" + bytes(31) + b"\x02" + struct.pack(">Q", 2**40),
        struct.pack("<q", 2**40) + bytes(64),
    ],
    ids=["http", "pickle", "zeros", "ones", "no encryption", "password", "bad proof", "length", "long", "old protocol"],
)
def test_unknown_clients_start_no_process_and_disturb_no_other(server, bystander, sent):
    """Without the key: whatever is sent, the connection is closed or ignored."""
    host, _, port = server[0].rpartition(":")
    before = children(server[2].pid)
    for _ in range(2):
        with socket.create_connection((host, int(port))) as client_socket, suppress(ConnectionError):
            client_socket.sendall(sent)
            client_socket.settimeout(0.05)
            with suppress(TimeoutError):
                while client_socket.recv(4096):
                    pass
    assert children(server[2].pid) == before


def test_many_silent_clients_keep_none_out(server, bystander):
    host, _, port = server[0].rpartition(":")
    unknown = [socket.create_connection((host, int(port))) for _ in range(60)]
    there = _connected(server)
    there.send(m.write_request(m.LOAD))
    assert m.read_answer(there.receive(60.0)).form == m.OBJECT
    there.close()
    for client_socket in unknown:
        client_socket.close()


# -- hostile servers --------------------------------------------------------------------------------------------------


class HostileServer:
    """Has the key, greets as it should, and answers every request by what it is given."""

    def __init__(self):
        self.listener = network.Listener("127.0.0.1", 0, "k")
        self.answers = []
        self._on = True
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while self._on:
            for peer, data in self.listener.events():
                if data is not None:
                    answer = self.answers.pop(0) if self.answers else [b""]
                    if callable(answer):
                        answer(self.listener, peer)
                    else:
                        self.listener.send(peer, answer)
            self.listener.flush()
            time.sleep(0.001)
        self.listener.close()

    @property
    def address(self):
        return f"127.0.0.1:{self.listener.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._on = False
        self._thread.join()


ABOUT = {
    "inputs": (cs.Port("u"),),
    "outputs": (cs.Port("x"),),
    "methods": frozenset({"save", "restore", "get_echo"}),
    "overshoots": False,
    "variable_step": True,
    "input_form": "any",
    "concurrent": False,
    "kind": "Counter",
    "native": False,
}


def _object(value):
    return m.write_answer(m.OBJECT, Content().pack(value))


def _answers(path):
    """Answers that no server of ours gives."""
    contents = _contents(path)
    for content in contents:
        yield m.write_answer(m.OBJECT, content)
        yield m.write_answer(m.FAILURE, content)
        yield [content]
    for kind in ("SystemExit", "KeyboardInterrupt", "GeneratorExit", "os.system", "__import__", "Unheard"):
        yield m.write_answer(m.FAILURE, pack({"kind": kind, "text": "x\x1b[2J\n" * 5000, "where": "y" * 10**6}))
    fields = {"time": "now", "subsystem": 5, "outputs": None, "result": 1}
    yield m.write_answer(m.FAILURE, pack({"kind": "SubsystemError", "text": "t", "where": "", "fields": fields}))
    yield m.write_answer(m.FAILURE, pack({"kind": 5, "text": None, "where": []}))
    yield m.write_answer(m.FAILURE, pack([1, 2, 3]))
    for form in (0, 1, 2, 3, 4, 5, 77, 2**32 - 1):
        for shape in ((0, 0), (2**32 - 1, 2**32 - 1), (2, 2), (1, 1)):
            yield [struct.pack("<IIqdII", form, 0, 0, 0.0, *shape)]
    yield [b"short"]


def test_a_hostile_server_runs_nothing_on_the_client(tmp_path, monkeypatch):
    """Every call ends with an error of cosolve or a value that is plain; nothing else is raised."""
    monkeypatch.setattr(network, "_LOOK", 0.01)
    path = tmp_path / "deed"
    with HostileServer() as hostile:
        far = cs.remote.Remote(hostile.address, key="k", timeout=600.0)
        refused = []
        calls = (lambda: far.advance(0.0, 0.1, STEP), lambda: far.get_echo(1), lambda: far.noise)
        for k, answer in enumerate(_answers(path)):
            if far._channel is None:
                far._begin_anew()
                far._channel = far._connected()
            if far._known is None:
                hostile.answers[:] = [_object(ABOUT)]
                assert far.outputs == ABOUT["outputs"]
            hostile.answers[:] = [answer]
            try:
                calls[k % 3]()
            except (cs.CosolveError, TypeError, ValueError) as error:
                refused.append(str(error))
        far.close()
    assert len(refused) > 100
    assert all(text.isprintable() and len(text) < 4000 for text in refused)
    assert not path.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": None},
        {"inputs": ("u",)},
        {"inputs": (cs.Port("u"), cs.Port("u"))},
        {"outputs": [cs.Port("x")]},
        {"methods": ["save"]},
        {"methods": frozenset({1})},
        {"overshoots": "no"},
        {"input_form": 3},
    ],
    ids=str,
)
def test_a_description_of_no_subsystem_is_refused(change):
    with HostileServer() as hostile:
        hostile.answers.append(_object(ABOUT | change))
        far = cs.remote.Remote(hostile.address, key="k", timeout=600.0)
        with pytest.raises(cs.errors.SetupError, match=r"Remote 127.0.0.1:\d+: "):
            far.inputs  # noqa: B018
        far.close()


def test_a_server_that_says_goodbye_or_nonsense_is_named():
    def goodbye(listener, peer):
        listener._sent(peer, network.BYE + b"\x1b[31mred\xff\n" * 500)

    def nonsense(listener, peer):
        listener._sent(peer, b"cosolve\x55nonsense")

    def endless(listener, peer):
        for _ in range(5):
            listener._post(peer, network.MORE + bytes(network._PIECE))

    with pytest.MonkeyPatch.context() as patch, HostileServer() as hostile:
        patch.setattr(network, "LARGEST", 3 * network._PIECE)
        for deed, expected in (
            (goodbye, r"closed the connection: \\x1b\[31mred"),
            (nonsense, "it sent what is no message of cosolve"),
            (endless, "it sent what is no message of cosolve"),
        ):
            hostile.answers[:] = [deed]
            far = cs.remote.Remote(hostile.address, key="k", timeout=600.0)
            with pytest.raises(cs.errors.SetupError, match=expected) as caught:
                far.inputs  # noqa: B018
            assert str(caught.value).isprintable()
            far.close()
