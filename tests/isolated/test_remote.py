"""Subsystems behind `cosolve serve`, reached through TCP with a key."""

import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from tests.isolated import models
from tests.processes import ROOT, children, ends, environment, started

import cosolve as cs
from cosolve.signal import Polynomial


@contextmanager
def _served(factory, *options):
    """A server as a user starts it; gives the address and the key that it prints."""
    command = [sys.executable, "-c", "from cosolve.cli import main; main()", "serve", factory, *options]
    with started(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE) as server:
        assert server.stdout.readline() == f"serving {factory}\n"
        line = server.stdout.readline()
        yield line.split("'")[1], line.split("'")[3], server


def _coupled(one, two):
    system = cs.System({"one": one, "two": two})
    spring = {"one.torque": 1.0, "two.torque": -1.0}
    system.law(spring, lambda a, b: 20.0 * (b - a), of=["one.angle", "two.angle"], name="spring")
    return system


@pytest.mark.covers("SC-24")
def test_a_served_subsystem_gives_the_same_bits():
    """Two connections to one server are two independent subsystems; rollback and replay travel."""
    with _served("tests/isolated/models.py:pendulum") as (address, key, _):
        far = _coupled(cs.Remote(address, key=key, timeout=60.0), cs.Remote(address, key=key, timeout=60.0))
        near = _coupled(models.pendulum(), models.pendulum())
        for method in (cs.Jacobi(degree=1), cs.SemiImplicit(degree=2)):
            expected = cs.simulate(near, t_end=0.3, method=method, step=0.01)
            found = cs.simulate(far, t_end=0.3, method=method, step=0.01)
            for channel in expected.names:
                assert np.array_equal(found[channel], expected[channel])
        assert cs.capabilities(far.subsystems["one"]) == cs.capabilities(models.pendulum()) - {"compiled crossing"}


def test_a_crash_over_there_ends_the_run_and_a_new_run_works():
    with _served("tests.isolated.models:crashing") as (address, key, _):
        system = cs.System({"tool": cs.Remote(address, key=key, timeout=60.0)})
        system.set("tool.u", 1.0)
        with pytest.raises(
            cs.SubsystemError, match=r"'tool' failed .* at t = 0.5: the server .* closed the connection"
        ):
            cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=0), step=0.1)
        result = cs.simulate(system, t_end=0.4, method=cs.Jacobi(degree=0), step=0.1)
        assert len(result.t) == 5


def test_a_hang_is_ended_by_the_timeout():
    with _served("tests.isolated.models:hanging") as (address, key, _):
        system = cs.System({"tool": cs.Remote(address, key=key, timeout=2.0)})
        system.set("tool.u", 1.0)
        with pytest.raises(cs.SubsystemError, match=r"gave no answer within 2 s") as caught:
            cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=0), step=0.1)
        assert len(caught.value.result.t) == 6


def test_a_wrong_key_and_a_factory_that_fails():
    with _served("tests.isolated.models:broken", "--key", "open sesame") as (address, key, _):
        assert key == "open sesame"
        with pytest.raises(cs.SetupError, match="does not accept this key"):
            cs.Remote(address, key="open wheat")
        with pytest.raises(cs.SetupError, match=r"loading the subsystem raised OSError: no such mesh"):
            cs.Remote(address, key=key).inputs  # noqa: B018


@pytest.mark.sample(2)
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_server_ends_with_all_its_connections(how):
    """Also those that are busy; SIGTERM is how a server in the background is ended, where Ctrl-C is ignored."""
    with _served("tests.isolated.models:hanging") as (address, key, server):
        idle, busy = (cs.Remote(address, key=key, timeout=200.0) for _ in range(2))
        idle.start(0.0)
        busy.start(0.0)
        caught = []

        def hang():
            with pytest.raises(cs.SubsystemError, match="closed the connection") as error:
                busy.advance(0.5, 0.6, Polynomial(0.5, 0.1, np.zeros((1, 1))))
            caught.append(error)

        thread = threading.Thread(target=hang)
        thread.start()
        answering = children(server.pid)
        assert len(answering) == 2
        server.send_signal(how)
        code = server.wait()
        assert all(ends(pid) for pid in answering)
        thread.join()
        idle.close()
    assert code == {signal.SIGTERM: 0, signal.SIGINT: 130, signal.SIGKILL: -9}[how]
    assert len(caught) == 1


def test_bad_addresses_are_refused(monkeypatch):
    monkeypatch.delenv("COSOLVE_KEY", raising=False)
    for address in ("here", ":1", "a:b:1", "a:x"):
        with pytest.raises(cs.SetupError, match="an address is 'host:port'"):
            cs.Remote(address, key="k")
    with pytest.raises(cs.SetupError, match="give the key"):
        cs.Remote("localhost:1")
    with pytest.raises(cs.SetupError, match=r"nobody answers at 127.0.0.1:1; start 'cosolve serve FACTORY --port 1'"):
        cs.Remote("127.0.0.1:1", key="k")
    with pytest.raises(cs.SetupError, match="timeout must be a positive number"):
        cs.Remote("127.0.0.1:1", key="k", timeout=0.0)
