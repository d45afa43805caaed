"""Serial sweeps and the master/slave start, each formula against numbers of its own."""

from __future__ import annotations

import numpy as np
import pytest

import cosolve as cs
from cosolve.engine.python.executor import bind
from cosolve.engine.python.serial import Serial
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.method import Window
from cosolve.signal import History


def tank(x0, h=0.01):
    """`x' = u - 3 x` with equal steps of its own."""
    return cs.Ode(
        lambda t, x, u: u - 3.0 * x,
        lambda t, x, u: x,
        x0=[x0],
        inputs=["u"],
        outputs=["x"],
        integrator="ode4",
        internal_step=h,
    )


def test_a_variable_lags_when_it_is_read_before_its_source_has_run_or_by_its_source_itself():
    system = cs.System({"a": tank(1.0), "b": tank(2.0)})
    system.law("a.u", lambda xa, xb: xa + xb, of=["a.x", "b.x"])
    system.connect("a.x", "b.u")
    names = system.plan().z_labels
    for sequence, lagging in (((0, 1), {"a.u"}), ((1, 0), {"a.u", "a.x"})):
        assert {names[m] for m in np.flatnonzero(Serial(system.plan(), sequence).lagging)} == lagging
    own = cs.System({"a": tank(1.0)})
    own.connect("a.x", "a.u")
    assert Serial(own.plan(), (0,)).lagging.all()


def test_a_subsystem_that_reads_its_own_output_is_iterated_in_a_serial_sweep():
    """`y = u / 2 + 2 + t` with `u = y`: y = 4 + 2 t."""
    system = cs.System({"a": cs.Static(lambda t, u: 0.5 * u + 2.0 + t, inputs=["u"], outputs=["y"])})
    system.connect("a.y", "a.u")
    method = cs.Implicit(degree=1, sweep="gauss-seidel", corrector=cs.Aitken())
    run = cs.simulate(system, t_end=0.2, method=method, step=0.1)
    assert run["a.y"] == pytest.approx([4.0, 4.2, 4.4], abs=1e-9)


@pytest.mark.parametrize("degree", [1, 2])
def test_a_rejected_step_of_the_master_slave_start_leaves_no_trace(degree):
    """The same macro step after a rejected longer one, and as a first attempt: to the bit."""
    found = []
    for rejected in ((), (0.1,), (0.1, 0.07)):
        system = cs.System({"a": tank(1.0), "b": tank(2.0)})
        system.connect("a.x", "b.u")
        system.connect("b.x", "a.u")
        caller, method = SubsystemCaller(system.plan()), cs.Jacobi(degree)
        _, z = caller.start(0.0)
        history = History(z, depth=method.depth)
        step = cs.LeaderFollowerStart(leader="a").wrap(caller, method, bind(method, caller))
        history.push(step(history, Window(0.0, 0.05, 0.05)).z, 0.05)
        states = caller.save()
        for H in rejected:
            step(history, Window(0.05, 0.05 + H, H))
            caller.restore(states)
        found.append(step(history, Window(0.05, 0.09, 0.04)))
    for other in found[1:]:
        assert np.array_equal(other.y, found[0].y)
        assert np.array_equal(other.z, found[0].z)


class Walker(cs.Subsystem):
    """Takes steps of its own, each as long as it was told to."""

    inputs, outputs = ("u",), ("x",)

    def __init__(self, length):
        self.length = length

    def start(self, t0):
        return 0.0

    def advance(self, t0, t1, u):
        return t1

    def step(self, t0, t1, u):
        return t0 + self.length, t1


@pytest.mark.parametrize(("length", "reason"), [(0.0, "from t = 0 to t = 0"), (0.3, "from t = 0 to t = 0.3")])
def test_a_leader_must_come_forward_and_not_beyond_the_end(length, reason):
    system = cs.System({"a": Walker(length), "b": tank(1.0)})
    system.connect("b.x", "a.u")
    system.connect("a.x", "b.u")
    with pytest.raises(cs.errors.SubsystemError, match=f"'a' stepped {reason} .* expected .* with 0 < t1 <= 0.2"):
        cs.simulate(system, t_end=0.2, method=cs.LeaderFollower(degree=0, leader="a"))
