"""A subsystem gives the same bits in its own process as in ours, whatever carries the messages."""

from functools import partial

import numpy as np
import pytest
from tests.process.isolated import models

import cosolve as cs
from cosolve.signal import Polynomial

TRANSPORTS = ("shared_memory", "pipe")


def _coupled(wrap, kind=""):
    from examples.two_mass.model import TwoMass, force_displacement, lu, split

    system = split(kind, lu()) if kind else force_displacement(TwoMass())
    for name in ("one", "two"):
        system.subsystems[name] = wrap(partial(models.two_mass, name, kind))
    return system


def _pair(wrap):
    """Two pendulums joined by a spring: nonlinear, adaptive integrator with memory, replays."""
    system = cs.System({"one": wrap(models.pendulum), "two": wrap(partial(models.pendulum, "ode4", 1e-3))})
    spring = {"one.torque": 1.0, "two.torque": -1.0}
    system.law(spring, lambda a, b: 20.0 * (b - a), of=["one.angle", "two.angle"], name="spring")
    return system


METHODS = {
    "Jacobi": cs.Jacobi(degree=2),
    "Gauss-Seidel": cs.GaussSeidel(degree=1),
    "semi-implicit": cs.SemiImplicit(degree=2),
    "implicit": cs.Implicit(degree=2),
}


@pytest.mark.covers("SC-24")
def test_transports_give_identical_trajectories():
    """In-process, shared memory and pipe under every family: recorded columns equal bit for bit."""
    wraps = {"in-process": lambda factory: factory()}
    for transport in TRANSPORTS:
        wraps[transport] = partial(cs.remote.Isolated, transport=transport, timeout=600.0)
    systems = {name: (_coupled(wrap), _pair(wrap)) for name, wrap in wraps.items()}
    for label, method in METHODS.items():
        for k, (t_end, step) in enumerate([(6e-4, 2e-5), (0.15, 0.01)]):
            runs = {n: cs.simulate(s[k], t_end=t_end, method=method, step=step) for n, s in systems.items()}
            expected = runs.pop("in-process")
            for transport, run in runs.items():
                for channel in expected.names:
                    assert np.array_equal(run[channel], expected[channel]), (label, k, transport, channel)
                assert run.stats.calls == expected.stats.calls, (label, transport)
    for transport in TRANSPORTS:
        assert systems[transport][0].subsystems["one"].transport == transport
        assert systems[transport][0].subsystems["one"].pid != systems[transport][0].subsystems["two"].pid


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "factory",
    [
        models.Plain,
        models.Counter,
        models.pendulum,
        partial(models.pendulum, "Radau"),
        partial(models.two_mass, "one"),
        partial(models.two_mass, "two"),
    ],
    ids=["plain", "rollback", "ode", "radau", "linear", "feed-through"],
)
def test_same_capabilities_and_ports(factory):
    inner, apart = factory(), cs.remote.Isolated(factory, timeout=600.0)
    assert cs.capabilities(apart) == cs.capabilities(inner)
    from cosolve.subsystem import Ports

    assert apart.inputs == Ports(inner.inputs).ports
    assert apart.outputs == Ports(inner.outputs).ports
    assert apart.noise == inner.noise
    assert callable(getattr(apart, "feedthrough", None)) == callable(getattr(inner, "feedthrough", None))
    with pytest.raises(AttributeError, match="no attribute 'unheard_of'"):
        apart.unheard_of  # noqa: B018


def test_every_call_of_the_contract_travels():
    """Each capability by itself, against the same call in this process."""
    inner, apart = models.two_mass("two"), cs.remote.Isolated(partial(models.two_mass, "two"), timeout=600.0)
    u = Polynomial(0.0, 1e-4, np.array([[1.0, 2.0], [0.3, -0.2], [0.1, 0.7]]))
    weight = np.array([0.0, 1.0])
    for s in (inner, apart):
        s.start(0.0)
    assert np.array_equal(apart.output(0.0, np.array([1.0, 2.0])), inner.output(0.0, np.array([1.0, 2.0])))
    assert np.array_equal(apart.feedthrough(), inner.feedthrough())
    assert np.array_equal(apart.jacobian(0.0, 1e-4, u, weight), inner.jacobian(0.0, 1e-4, u, weight))
    state = apart.save()
    first = apart.advance(0.0, 1e-4, u)
    assert np.array_equal(first, inner.advance(0.0, 1e-4, u))
    apart.restore(state)
    assert np.array_equal(apart.advance(0.0, 1e-4, u), first)
    assert np.array_equal(apart.get_state(), inner.get_state())
    apart.set_state(np.array([3.0, 4.0]))
    assert apart.get_state().tolist() == [3.0, 4.0]
    rhs, output, mass = apart.equations()
    own_rhs, own_output, _ = inner.equations()
    x, v = np.array([0.1, 0.2]), np.array([1.0, -1.0])
    assert mass is None
    assert np.array_equal(rhs(0.0, x, v), own_rhs(0.0, x, v))
    assert np.array_equal(output(0.0, x, v), own_output(0.0, x, v))


def test_own_steps_and_replay_travel():
    inner, apart = models.pendulum("dopri5"), cs.remote.Isolated(partial(models.pendulum, "dopri5"), timeout=600.0)
    u = Polynomial(0.0, 0.5, np.array([[1.0], [0.5]]))
    for s in (inner, apart):
        assert s.start(0.0) is None
    (t, y), (t_own, y_own) = apart.step(0.0, 0.5, u), inner.step(0.0, 0.5, u)
    assert t == t_own
    assert y.tolist() == list(y_own.values())
    for s in (inner, apart):
        s.start(0.0)
        s.advance(0.0, 0.5, u)
        s.start(0.0)
    assert apart.replay(0.0, 0.5, u).tolist() == list(inner.replay(0.0, 0.5, u).values())


def test_input_coefficients_keep_their_order_in_memory():
    """Sums over columns may round differently when the same matrix lies the other way round."""
    apart = cs.remote.Isolated(partial(models.Field, 3), timeout=600.0)
    apart.start(0.0)
    rows = np.random.default_rng(1).normal(size=(4, 3))
    for coefficients in (rows, np.asfortranarray(rows), rows[:, ::-1]):
        u = Polynomial(0.0, 1.0, coefficients)
        assert np.array_equal(apart.advance(0.0, 1.0, u), np.sin(u(1.0)))


@pytest.mark.sample(1)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_messages_longer_than_the_shared_memory(transport):
    """Room is kept for four coefficients; nine times 20 000 doubles take the pipe, and the next call is short again."""
    n = 20_000
    apart = cs.remote.Isolated(partial(models.Field, n), transport=transport, timeout=600.0)
    apart.start(0.0)
    for rows in (1, 9, 2, 9, 9, 1):
        u = Polynomial(0.0, 1.0, np.random.default_rng(rows).normal(size=(rows, n)))
        assert np.array_equal(apart.advance(0.0, 1.0, u), np.sin(u(1.0)))


def test_states_live_in_the_process_and_are_freed():
    apart = cs.remote.Isolated(models.Counter, timeout=600.0)
    apart.start(0.0)
    states = [apart.save() for _ in range(5)]
    assert apart.states() == 5
    del states[1:]
    assert apart.states() == 1
    apart.restore(states[0])
    del states
    assert apart.states() == 0


def test_what_a_subsystem_needs_of_signals_is_known_from_afar():
    """A method that holds inputs is refused for it here and there alike."""
    apart = cs.remote.Isolated(models.following, timeout=600.0)
    assert apart.least_degree == models.following().least_degree == 1
    assert cs.remote.Isolated(models.Plain, timeout=600.0).least_degree == 0
    refusals = []
    for follower in (models.following(), apart):
        drive = cs.Static(lambda t, u: [np.sin(t), np.cos(t)], inputs=[], outputs=["s", "v"])
        system = cs.System({"drive": drive, "lag": follower})
        system.connect("drive.s", "lag.s")
        system.connect("drive.v", "lag.v")
        with pytest.raises(cs.errors.SetupError, match="goes on from those at its beginning; take degree 1") as refused:
            cs.simulate(system, t_end=0.1, method=cs.GaussSeidel(degree=0), step=0.01)
        refusals.append(str(refused.value).replace("IntegratedInputs", "Isolated"))
    assert refusals[0] == refusals[1]


@pytest.mark.covers("SC-24")
@pytest.mark.parametrize("kind", ["linear", "step", "cubic"])
def test_tables_drive_it_with_the_same_bits(kind):
    """Kinks lie inside macro steps, and before and after its times the table holds its values."""
    table = cs.Table([0.13, 0.31, 0.57, 0.8], [0.3, 1.7, -0.4, 0.9], kind=kind)
    runs = []
    for tool in (models.Listening(), cs.remote.Isolated(models.Listening, timeout=600.0)):
        system = cs.System({"tool": tool})
        system.set("tool.u", table)
        runs.append(cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=1), step=0.07))
    assert np.array_equal(runs[0]["tool.x"], runs[1]["tool.x"])
