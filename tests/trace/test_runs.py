"""Runs of traced models: the bits of the Python engine, and the Python engine where a model changes meanwhile."""

import numpy as np
import pytest
from tests.trace.random_models import difference

import cosolve as cs
from cosolve.run import checkpoints


def pendulums(strength: float = 4.0, **options) -> cs.System:
    def rhs(t, x, u):
        return [x[1], -strength * np.sin(x[0]) + 0.1 * u[0] - (0.05 * x[1] if x[1] > 0 else 0.0)]

    parts = {
        name: cs.Ode(rhs, lambda t, x, u: x, x0=[x0, 0.0], inputs=["u"], outputs=["x", "v"], **options)
        for name, x0 in (("a", 1.0), ("b", 0.2))
    }
    system = cs.System(parts)
    system.law("a.u", lambda x, v: 0.3 * np.tanh(x) ** 3 - v / 7.0, of=["b.x", "b.v"])
    system.connect("a.x", "b.u")
    return system


@pytest.mark.parametrize("integrator", ["auto", "ode1", "ode3", "ode4", "ode5"])
@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.SemiImplicit(1), cs.Implicit(2)], ids=lambda m: m.name)
def test_lambdas_run_in_machine_code_with_the_bits_of_python(integrator, method) -> None:
    options = {"integrator": integrator, "internal_step": None if integrator == "auto" else 4e-3}
    python, machine = (
        cs.simulate(pendulums(**options), t_end=0.6, method=method, step=0.01, compiled=compiled)
        for compiled in (False, True)
    )
    assert machine.stats.compiled_steps > 50
    for name in ("a.x", "a.v", "b.x", "b.v"):
        assert machine[name].tobytes() == python[name].tobytes()


def test_controlled_steps_too() -> None:
    python, machine = (
        cs.simulate(pendulums(), t_end=2.0, method=cs.SemiImplicit(1), step=cs.Adaptive(rtol=1e-4), compiled=compiled)
        for compiled in (False, True)
    )
    assert machine.stats.compiled_steps > 50
    assert machine.t.tobytes() == python.t.tobytes()
    assert machine["b.v"].tobytes() == python["b.v"].tobytes()


def test_many_states_are_loops() -> None:
    """Beyond the size that is written out, with numpy's own order of sums in the error norm."""
    n = 50

    def chain(t, x, u):
        q, v = x[:n], x[n:]
        apart = np.diff(np.concatenate([[u[0]], q, [0.0]]))
        force = 9.0 * apart + 0.4 * apart**3
        return np.concatenate([v, force[1:] - force[:-1] - 0.1 * v])

    def build() -> cs.System:
        part = lambda: cs.Ode(chain, lambda t, x, u: x[n - 1], x0=np.zeros(2 * n), inputs=["u"], outputs=["q"])  # noqa: E731
        drive = cs.Linear(
            [[0.0, 1.0], [-1.0, 0.0]], [[0.0], [0.1]], [[1.0, 0.0]], x0=[0.5, 0.0], inputs=["f"], outputs=["q"]
        )
        system = cs.System({"drive": drive, "chain": part()})
        system.connect("drive.q", "chain.u")
        system.connect("chain.q", "drive.f")
        return system

    python, machine = (
        cs.simulate(build(), t_end=0.5, method=cs.SemiImplicit(1), step=0.01, compiled=compiled)
        for compiled in (False, True)
    )
    assert machine.stats.compiled_steps > 40
    assert machine["chain.q"].tobytes() == python["chain.q"].tobytes()


@pytest.mark.parametrize("seed", [3, 11, 22, 26])
def test_random_models(seed) -> None:
    worst, compiled = difference(seed)
    assert compiled > 0
    assert worst == 0.0


def test_what_python_raises_is_raised() -> None:
    def part(sign: float) -> cs.Ode:
        def rhs(t, x, u):
            return [np.exp(u[0]) * 0 + sign / float(1.0 - x[0] * t)]

        options = {"inputs": ["u"], "outputs": ["x"], "integrator": "ode1", "internal_step": 0.125}
        return cs.Ode(rhs, lambda t, x, u: x, x0=[0.5], **options)

    def build() -> cs.System:
        parts = {"a": part(1.0), "b": part(-1.0)}
        system = cs.System(parts)
        system.connect("a.x", "b.u")
        system.law("a.u", lambda x: 1.0 / (x + 0.25) if x > -0.25 else 1 / 0, of="b.x")
        return system

    said = []
    for compiled in (False, True):
        with pytest.raises(cs.errors.SimulationError) as stopped:
            cs.simulate(build(), t_end=20.0, method=cs.Jacobi(0), step=0.125, compiled=compiled)
        said.append((str(stopped.value), stopped.value.result["b.x"].tobytes()))
    assert said[0] == said[1]
    assert "ZeroDivisionError" in said[0][0]


@pytest.mark.parametrize("law", [False, True])
def test_what_changes_during_a_run_is_followed(law, monkeypatch) -> None:
    """A callback changes what a function has captured: the run goes on in Python, with the new value."""
    monkeypatch.setattr(checkpoints, "_PROGRESS_EVERY", -1.0)  # after each stretch
    gain = {"k": 1.0}

    def change(fraction: float) -> None:
        if fraction > 0.005:  # not before anything is compiled
            gain["k"] = 3.0

    rhs = (lambda t, x, u: u) if law else (lambda t, x, u: -gain["k"] * x)
    part = cs.Ode(
        rhs, lambda t, x, u: x, x0=[1.0], inputs=["u"], outputs=["x"], integrator="ode1", internal_step=2**-12
    )
    system = cs.System({"a": part})
    system.law("a.u", lambda x: -gain["k"] * x, of="a.x")
    result = cs.simulate(system, t_end=2.0, method=cs.Jacobi(0), step=2**-12, compiled=True, progress=change)
    x = result["a.x"]
    rates = np.round(-np.diff(x) / x[:-1] * 2**12, 6)
    switched = int(np.argmax(rates > 2.0))
    assert 0 < result.stats.compiled_steps < len(rates) // 2
    assert (rates[:switched] == 1.0).all()
    assert (rates[switched:] == 3.0).all()


def test_python_beside_captured_values_is_not_compiled() -> None:
    """A subsystem that runs Python in compiled steps could change what a traced one has captured."""
    gain = {"k": 1.0}

    class Tank(cs.Subsystem):
        inputs, outputs = ["u"], ["y"]
        native = cs.Subsystem.by_callback

        def start(self, t0):
            self.y = 1.0
            return self.y

        def advance(self, t0, t1, u):
            self.y += (t1 - t0) * (u(t1)[0] - self.y)
            gain["k"] = 1.0 + self.y
            return self.y

    def build(rhs) -> cs.System:
        once = {"integrator": "ode1", "internal_step": 0.01}  # which never hands a step back
        ode = cs.Ode(rhs, lambda t, x, u: x, x0=[1.0], inputs=["u"], outputs=["x"], **once)
        system = cs.System({"ode": ode, "tank": Tank()})
        system.connect("ode.x", "tank.u")
        system.connect("tank.y", "ode.u")
        return system

    run = {"t_end": 1.0, "method": cs.Jacobi(1), "step": 0.01}
    with pytest.raises(cs.errors.SetupError, match=r"'tank' runs Python code .* could change what 'ode' has captured"):
        cs.simulate(build(lambda t, x, u: -gain["k"] * x + u), **run, compiled=True)
    assert cs.simulate(build(lambda t, x, u: -2.0 * x + u), **run, compiled=True).stats.compiled_steps > 50
