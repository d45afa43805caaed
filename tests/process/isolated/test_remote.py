"""Subsystems behind `cosolve serve`: the same bits, capabilities and words as in this process."""

import signal
import threading

import numpy as np
import pytest
from tests.method.explicit.test_topologies import CLIENTS, START, centre, client_matrices, joined
from tests.process.isolated import models
from tests.process.isolated.servers import served
from tests.processes import children, ends, until

import cosolve as cs
from cosolve.process import message as m
from cosolve.process.content import Content
from cosolve.process.offered_server import OfferedServer
from cosolve.signal import Polynomial
from cosolve.subsystem import Ports


def _coupled(one, two):
    system = cs.System({"one": one, "two": two})
    spring = {"one.torque": 1.0, "two.torque": -1.0}
    system.law(spring, lambda a, b: 20.0 * (b - a), of=["one.angle", "two.angle"], name="spring")
    return system


@pytest.mark.covers("SC-24")
def test_a_served_subsystem_gives_the_same_bits():
    """Two connections to one server are two independent subsystems; rollback and replay travel."""
    with served("tests/process/isolated/models.py:pendulum") as (address, key, _):
        far = _coupled(
            cs.remote.Remote(address, key=key, timeout=600.0), cs.remote.Remote(address, key=key, timeout=60.0)
        )
        near = _coupled(models.pendulum(), models.pendulum())
        for method in (cs.Jacobi(degree=1), cs.SemiImplicit(degree=2), cs.Implicit(degree=2)):
            expected = cs.simulate(near, t_end=0.3, method=method, step=0.01)
            found = cs.simulate(far, t_end=0.3, method=method, step=0.01)
            for channel in expected.names:
                assert np.array_equal(found[channel], expected[channel])
            assert found.stats.calls == expected.stats.calls
        assert cs.capabilities(far.subsystems["one"]) == cs.capabilities(models.pendulum()) - {"compiled step"}


def test_every_call_of_the_contract_travels():
    """Each capability by itself, against the same call in this process."""
    with served("tests.process.isolated.models:two") as (address, key, _):
        inner, far = models.two(), cs.remote.Remote(address, key=key, timeout=600.0)
        assert far.inputs == Ports(inner.inputs).ports
        assert far.outputs == Ports(inner.outputs).ports
        assert far.noise == inner.noise
        u = Polynomial(0.0, 1e-4, np.array([[1.0, 2.0], [0.3, -0.2], [0.1, 0.7]]))
        weight, v = np.array([0.0, 1.0]), np.array([1.0, 2.0])
        for s in (inner, far):
            s.start(0.0)
        assert np.array_equal(far.output(0.0, v), inner.output(0.0, v))
        assert np.array_equal(far.feedthrough(), inner.feedthrough())
        assert far.feedthrough().dtype == inner.feedthrough().dtype
        assert np.array_equal(far.jacobian(0.0, 1e-4, u, weight), inner.jacobian(0.0, 1e-4, u, weight))
        asked, exchange = [], far._exchange
        far._exchange = lambda request, timeout: asked.append(1) or exchange(request, timeout)
        state = far.save()
        first = far.advance(0.0, 1e-4, u)
        assert np.array_equal(first, inner.advance(0.0, 1e-4, u))
        far.restore(state)
        assert np.array_equal(far.advance(0.0, 1e-4, u), first)
        assert len(asked) == 2  # saving and going back travel with the subsystem steps
        assert np.array_equal(far.get_state(), inner.get_state())
        portable = far.portable_state()
        far.set_state(np.array([3.0, 4.0]))
        assert far.get_state().tolist() == [3.0, 4.0]
        far.set_portable_state(portable)
        assert np.array_equal(far.get_state(), inner.get_state())
        rhs, output, mass = far.equations()
        own_rhs, own_output, _ = inner.equations()
        assert mass is None
        assert np.array_equal(rhs(0.0, v, v), own_rhs(0.0, v, v))
        assert np.array_equal(output(0.0, v, v), own_output(0.0, v, v))
        with pytest.raises(AttributeError, match="no attribute 'unheard_of'"):
            far.unheard_of  # noqa: B018


@pytest.mark.slow
def test_own_steps_and_replay_travel():
    with served("tests.process.isolated.models:stepping_pendulum") as (address, key, _):
        inner, far = models.stepping_pendulum(), cs.remote.Remote(address, key=key, timeout=600.0)
        u = Polynomial(0.0, 0.5, np.array([[1.0], [0.5]]))
        for s in (inner, far):
            assert s.start(0.0) is None
        (t, y), (t_own, y_own) = far.step(0.0, 0.5, u), inner.step(0.0, 0.5, u)
        assert t == t_own
        assert y.tolist() == list(y_own.values())
        for s in (inner, far):
            s.start(0.0)
            s.advance(0.0, 0.5, u)
            s.start(0.0)
        assert far.replay(0.0, 0.5, u).tolist() == list(inner.replay(0.0, 0.5, u).values())


@pytest.mark.slow
def test_states_with_objects_in_them_travel():
    """A solver that runs past the macro points remembers its steps; both sides go on from there with the same bits."""
    with served("tests.process.isolated.models:free_pendulum") as (address, key, _):
        inner, far = models.free_pendulum(), cs.remote.Remote(address, key=key, timeout=600.0)
        u = Polynomial(0.0, 0.5, np.array([[1.0], [0.5]]))
        for s in (inner, far):
            s.start(0.0)
            s.advance(0.0, 0.5, u)
        far.set_portable_state(inner.portable_state())
        inner.set_portable_state(far.portable_state())
        later = Polynomial(0.5, 0.5, np.array([[1.0], [0.5]]))
        ports = Ports(inner.outputs)
        assert np.array_equal(far.advance(0.5, 1.0, later), ports.pack(inner.advance(0.5, 1.0, later)))


@pytest.mark.slow
def test_a_run_is_saved_to_a_file_and_goes_on_elsewhere(tmp_path):
    """Begun with the subsystem on a server and finished in this process, or all of it here: the same bits."""
    with served("tests.process.isolated.models:pendulum") as (address, key, _):
        reached = []
        for tool in (cs.remote.Remote(address, key=key, timeout=600.0), models.pendulum()):
            options = {"method": cs.SemiImplicit(degree=1), "step": 0.02}
            cs.simulate(_driven(tool), t_end=0.2, save_state=tmp_path / "half.state", **options)
            stepper = cs.Stepper(_driven(models.pendulum()), **options)
            stepper.restore_file(tmp_path / "half.state")
            while stepper.t < 0.4 - 1e-9:
                stepper.step()
            reached.append(stepper["tool.angle"])
    assert reached[0] == reached[1]


def _driven(tool):
    system = cs.System({"tool": tool})
    system.set("tool.torque", 0.5)
    return system


@pytest.mark.covers("SC-25")
def test_two_servers_are_inside_the_same_step_together(tmp_path):
    """Each subsystem step returns only when the other one has begun; one after the other that can never happen."""
    lines = ["from tests.process.isolated.models import Rendezvous"]
    for me, partner in (("one", "two"), ("two", "one")):
        lines.append(f"def {me}(): return Rendezvous({str(tmp_path)!r}, {me!r}, {partner!r}, 60.0)")
    (tmp_path / "model.py").write_text("\n".join(lines))
    factory = f"{tmp_path / 'model.py'}"
    with served(f"{factory}:one") as (one, key, _), served(f"{factory}:two", "--key", key) as (two, _, _):
        system = cs.System({"one": cs.remote.Remote(one, key=key), "two": cs.remote.Remote(two, key=key)})
        system.connect("one.x", "two.u")
        system.connect("two.x", "one.u")
        result = cs.simulate(system, t_end=0.5, method=cs.Jacobi(degree=1), step=0.1, workers=2)
    assert len(result.t) == 6


@pytest.mark.slow
@pytest.mark.covers("SC-26")
def test_three_clients_on_a_server_equal_one_block_diagonal_client(tmp_path):
    """The tree of three clients, each behind a connection of its own: 1e-12 of each signal."""
    (tmp_path / "model.py").write_text(
        "import os\n"
        "from tests.process.isolated.test_remote import numbered_client\n"
        "def client():\n"
        "    k = 0\n"
        "    while True:\n"
        "        try:\n"
        f"            os.mkdir({str(tmp_path)!r} + f'/{{k}}')\n"
        "            return numbered_client(k)\n"
        "        except FileExistsError:\n"
        "            k += 1\n"
    )
    with served(f"{tmp_path / 'model.py'}:client") as (address, key, _):
        clients = {}
        for k in (1, 2, 3):
            clients[f"client{k}"] = cs.remote.Remote(address, key=key, timeout=600.0)
            assert len(clients[f"client{k}"].inputs) == 2  # waits until it has taken its number
        system = cs.System({"centre": centre(), **clients})
        for k in (1, 2, 3):
            system.connect("centre.x", f"client{k}.x")
            system.connect("centre.v", f"client{k}.v")
            system.connect(f"client{k}.f", f"centre.f{k}")
        apart = cs.simulate(system, t_end=0.2, method=cs.Jacobi(2), step=1e-3, workers=3)
    together = cs.simulate(joined(), t_end=0.2, method=cs.Jacobi(2), step=1e-3)
    pairs = [("centre.x", "centre.x"), *((f"client{k}.f", f"clients.f{k}") for k in (1, 2, 3))]
    for one, other in pairs:
        assert np.abs(apart[one] - together[other]).max() <= 1e-12 * np.abs(together[other]).max()


def numbered_client(k):
    return cs.Linear(*client_matrices(*CLIENTS[k]), x0=START[k], inputs=["x", "v"], outputs=["f"])


def test_long_messages_keep_their_bits():
    """Longer than one piece of the network, than a pipe and than what is read at once; short ones in between."""
    with served("tests.process.isolated.models:long_field") as (address, key, _):
        far = cs.remote.Remote(address, key=key, timeout=600.0)
        far.start(0.0)
        for rows in (1, 2, 1):
            u = Polynomial(0.0, 1.0, np.random.default_rng(rows).normal(size=(rows, 150_000)))
            assert np.array_equal(far.advance(0.0, 1.0, u), np.sin(u(1.0)))


def test_exceptions_ends_and_odd_values_read_as_in_this_process():
    """What a run says and keeps must not depend on where its subsystem is."""
    with served("tests.process.isolated.models:Moody") as (address, key, _):
        far = cs.remote.Remote(address, key=key, timeout=600.0)
        for mood in ("zero", "odd", "key", "cosolve", "none", "end", "end with outputs"):
            texts = []
            for tool in (models.Moody(), far):
                system = cs.System({"tool": tool})
                system.set("tool.u", 1.0)
                tool.start(0.0)
                tool.become(mood)
                try:
                    result = cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=0), step=0.1)
                    texts.append((result.ended, result.t.tolist(), result["tool.x"].tolist()))
                except cs.errors.SimulationError as error:
                    texts.append((str(error), error.result.t.tolist(), type(error)))
            assert texts[0] == texts[1]
        assert far.get_echo(1, (2.0, None), {"a": np.arange(3)})[1] == (2.0, None)
        with pytest.raises(cs.errors.SubsystemError, match="a value of type Moody cannot be sent to another machine"):
            far.get_myself()
        with pytest.raises(cs.errors.SubsystemError, match="a value of type object cannot be sent to another machine"):
            far.get_echo(object())
        assert far.get_echo(5) == (5,)  # the connection is still good


def test_a_crash_over_there_ends_the_run_and_a_new_run_works():
    with served("tests.process.isolated.models:crashing") as (address, key, _):
        system = cs.System({"tool": cs.remote.Remote(address, key=key, timeout=600.0)})
        system.set("tool.u", 1.0)
        expected = (
            r"'tool' failed .* at t = 0.5: the server at .* closed the connection: the process of the subsystem there "
            r"crashed \(signal 11, SIGSEGV\)"
        )
        with pytest.raises(cs.errors.SubsystemError, match=expected) as caught:
            cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=0), step=0.1)
        assert len(caught.value.result.t) == 6
        result = cs.simulate(system, t_end=0.4, method=cs.Jacobi(degree=0), step=0.1)
        assert len(result.t) == 5


@pytest.mark.slow
def test_a_hang_is_ended_by_the_timeout():
    """The process there, which computes for ever, is ended too."""
    with served("tests.process.isolated.models:hanging") as (address, key, server):
        system = cs.System({"tool": cs.remote.Remote(address, key=key, timeout=2.0)})
        system.set("tool.u", 1.0)
        with pytest.raises(cs.errors.SubsystemError, match=r"gave no answer within 2 s") as caught:
            cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=0), step=0.1)
        assert len(caught.value.result.t) == 6
        assert until(lambda: not children(server.pid))


def test_what_saving_raises_over_there_is_raised_by_the_call_that_carries_it():
    """Before the subsystem step, which is then left out; the state that could not be saved is not there either."""

    class Stiff(cs.Subsystem):
        inputs, outputs, steps = ["u"], ["y"], 0

        def advance(self, t0, t1, u):
            self.steps += 1
            return [1.0]

        def save(self):
            raise RuntimeError("the disk is full")

        def restore(self, state):
            raise AssertionError("there is no such state")

    server = OfferedServer("")
    server.subsystem, server.outputs = Stiff(), Ports(["y"])
    step_count = {"times": (0.0, 0.1, 0.0, 0.1), "coefficients": np.ones((1, 1))}
    for what, problem in ((m.KEEP, "the disk is full"), (m.GO_BACK, "7")):
        request = m.write_request(m.ADVANCE, notes=[m.write_note(7, what)], **step_count)
        answer = m.read_answer(memoryview(b"".join(server.answer(memoryview(b"".join(request))))))
        assert answer.form == m.FAILURE
        assert problem in str(Content().unpack_error(answer.value))
    assert server.subsystem.steps == 0


def test_a_state_of_an_earlier_connection_is_refused():
    with served("tests.process.isolated.models:Counter") as (address, key, _):
        far = cs.remote.Remote(address, key=key, timeout=600.0)
        far.start(0.0)
        old = far.save()
        far.close()
        with pytest.raises(cs.errors.SubsystemError, match=r"the connection to .* is closed; start a new run"):
            far.save()
        far.start(0.0)
        with pytest.raises(cs.errors.SubsystemError, match="the saved state went with the process"):
            far.restore(old)
        new = far.save()
        del old
        far.restore(new)
        assert far.states() == 1


def test_a_factory_that_fails_is_told():
    with (
        served("tests.process.isolated.models:broken") as (address, key, _),
        pytest.raises(cs.errors.SetupError, match=r"Remote .*: loading the subsystem raised OSError: no such mesh"),
    ):
        cs.remote.Remote(address, key=key).inputs  # noqa: B018


@pytest.mark.sample(2)
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_server_ends_with_all_its_connections(how):
    """Also those that are busy; SIGTERM is how a server in the background is ended, where Ctrl-C is ignored."""
    with served("tests.process.isolated.models:hanging") as (address, key, server):
        idle, busy = (cs.remote.Remote(address, key=key, timeout=200.0) for _ in range(2))
        idle.start(0.0)
        busy.start(0.0)
        caught = []

        def hang():
            with pytest.raises(
                cs.errors.SubsystemError, match=r"closed the connection: the server was ended|broke"
            ) as error:
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
        with pytest.raises(cs.errors.SubsystemError):
            idle.advance(0.0, 0.1, Polynomial(0.0, 0.1, np.zeros((1, 1))))
    assert code == {signal.SIGTERM: 0, signal.SIGINT: 130, signal.SIGKILL: -9}[how]
    assert len(caught) == 1


def test_bad_addresses_are_refused(monkeypatch):
    monkeypatch.delenv("COSOLVE_KEY", raising=False)
    for address in ("here", ":1", "a:b:1", "a:x", "[]:1", "a:123456", "a:0", "a:65536", 5):
        with pytest.raises(cs.errors.SetupError, match="an address is 'host:port'"):
            cs.remote.Remote(address, key="k")
    for key in (None, "", 5):
        with pytest.raises(cs.errors.SetupError, match="give the key"):
            cs.remote.Remote("localhost:1", key=key)
    with pytest.raises(cs.errors.SetupError, match="there is no such host"):
        cs.remote.Remote("a\0b:1", key="\ud800")
    with pytest.raises(
        cs.errors.SetupError, match=r"no server answers at 127.0.0.1:1; start 'cosolve serve FACTORY --port 1'"
    ):
        cs.remote.Remote("127.0.0.1:1", key="k")
    with pytest.raises(
        cs.errors.SetupError, match=r"no server answers at no\.such\.host\.invalid:1: there is no such host"
    ):
        cs.remote.Remote("no.such.host.invalid:1", key="k")
    with pytest.raises(cs.errors.SetupError, match="timeout must be a positive number"):
        cs.remote.Remote("127.0.0.1:1", key="k", timeout=0.0)
