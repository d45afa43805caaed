"""Programs of this machine that have not got the token, and pages that send what no page of ours sends."""

import socket
import stat
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from tests import processes

import cosolve as cs
from cosolve.viewer import host
from cosolve.viewer.live import Live


def _tank():
    system = cs.System({"a": cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["q"], outputs=["h"])})
    system.set("a.q", cs.TunableInput(1.0, low=0.0, high=5.0))
    return system


@pytest.fixture
def page():
    shown = cs.view(cs.simulate(_tank(), t_end=1.0, step=0.1, method=cs.Jacobi(1)), open_browser=False, told=None)
    yield shown
    shown.close()


def _files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files as Linux does")
def test_unknown_clients_do_not_use_up_the_files_of_a_run(page, monkeypatch):
    """A thousand connections on which nothing comes cost some dozens of descriptors, and the page comes back."""
    before, port = _files(), urlsplit(page.address).port
    with socket.create_connection(("127.0.0.1", port)):  # the backlog holds more than are let in
        unknown = []
        for _ in range(400):
            client_socket = socket.socket()
            client_socket.setblocking(False)
            with suppress(OSError):
                client_socket.connect(("127.0.0.1", port))
            unknown.append(client_socket)
        mine = len(unknown) + 1
        assert processes.until(lambda: _files() - before - mine >= 16)
        assert _files() - before - mine <= host._MOST
        for client_socket in unknown:
            client_socket.close()
    assert processes.until(lambda: _files() - before < 8)
    assert b"<title>" in urlopen(page.address, timeout=60).read()


def test_a_connection_without_a_request_is_closed(page, monkeypatch):
    with socket.create_connection(("127.0.0.1", urlsplit(page.address).port), timeout=60) as client_socket:
        client_socket.sendall(b"GET / HT")
        assert client_socket.recv(100) == b""


def test_the_token_is_in_no_command(monkeypatch):
    """A browser is started with the address of a file that only this user can read."""
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    shown = cs.view(cs.simulate(_tank(), t_end=1.0, step=0.1, method=cs.Jacobi(1)), told=None)
    try:
        token = urlsplit(shown.address).path.strip("/")
        assert token not in opened[0]
        file = Path(urlsplit(opened[0]).path)
        assert shown.address in file.read_text()
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    finally:
        shown.close()
    assert not file.parent.exists()


ORDERS = [
    {"do": "set", "name": "a.q", "value": 10**400},
    {"do": "set", "name": "a.q", "value": -(10**400)},
    {"do": "set", "name": "a.q", "value": float("nan")},
    {"do": "set", "name": "a.q", "value": float("inf")},
    {"do": "set", "name": ["a"], "value": 1.0},
    {"do": "set", "name": {"a": 1}, "value": True},
    {"do": "set"},
    {"do": {"x": 1}},
    {"do": ["set"]},
    {},
]


def test_no_order_ends_a_run():
    live = Live(open_browser=False, told=None)
    for order in ORDERS:
        live._orders.append(order)
    try:
        result = cs.simulate(_tank(), t_end=1.0, step=0.1, method=cs.Jacobi(1), observers=[live])
    finally:
        live.close()
    assert result.finished
    assert result.t[-1] == pytest.approx(1.0)
