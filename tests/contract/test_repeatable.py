"""Same inputs, same bits: again, after other methods, after a failed run, in threads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cosolve as cs

METHODS = {
    "Jacobi": (cs.Jacobi(degree=2), 0.05),
    "Jacobi exchanged": (cs.Jacobi(degree=1, outputs="exchanged"), 0.05),
    "Jacobi adaptive": (cs.Jacobi(degree=1), cs.Adaptive(rtol=1e-3, first_step=0.01)),
    "GaussSeidel": (cs.GaussSeidel(degree=2, order=["b"]), 0.05),
    "LeaderFollower": (cs.LeaderFollower(degree=1, leader="b"), None),
    "SemiImplicit": (cs.SemiImplicit(degree=2), 0.05),
    "SemiImplicit differenced": (cs.SemiImplicit(degree=1, jacobian="difference"), 0.05),
    "SemiImplicit adaptive": (cs.SemiImplicit(degree=2), cs.Adaptive(rtol=1e-4, first_step=0.01)),
    "Implicit": (cs.Implicit(degree=1), 0.05),
    "Implicit run Jacobian": (cs.Implicit(degree=1, corrector=cs.Newton(refresh="run")), 0.05),
}


class Trap:
    """Makes a subsystem fail at a given time, when armed."""

    time = np.inf


def build(trap):
    def rhs(t, x, u):
        if t > trap.time:
            raise FloatingPointError("trap")
        return [x[1], -np.sin(x[0]) + u[0]]

    pendulum = cs.Ode(rhs, lambda t, x, u: x, x0=[1.0, 0.0], inputs=["f"], outputs=["x", "v"])
    mass = cs.Ode(
        lambda t, x, u: [x[1], -2.0 * x[0] + u[0] - 0.1 * x[1] ** 3],
        lambda t, x, u: [x[0], x[1], 0.1 * u[0]],
        x0=[0.0, 0.5],
        inputs=["f"],
        outputs=["x", "v", "g"],
        integrator="dopri5",
    )
    line = cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[0.2], inputs=["u"], outputs=["y"])
    system = cs.System({"a": pendulum, "b": mass, "c": line})
    system.law({"a.f": 1, "b.f": -1}, lambda x1, x2, y: 3 * (x2 - x1) - 0.2 * y, of=["a.x", "b.x", "c.y"], name="F")
    system.connect("b.v", "c.u")
    return system


def bits(result):
    # a copy of t, y, z, H, iterations and residual as bytes; seconds differ of course
    return [result.column(n).tobytes() for n in ("t", "y", "z", "H", "iterations", "residual", "error", "calls")]


def run(system, name, **options):
    method, step = METHODS[name]
    return cs.simulate(system, t_end=0.8, method=method, step=step, **options)


@pytest.fixture(scope="module")
def fresh():
    """The bits of each method on a new system."""
    return {name: bits(run(build(Trap()), name)) for name in METHODS}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", METHODS)
def test_the_same_system_again(name, fresh):
    system = build(Trap())
    assert bits(run(system, name)) == fresh[name]
    assert bits(run(system, name)) == fresh[name]


def test_after_every_other_method(fresh):
    system = build(Trap())
    for first, second in itertools.pairwise([*METHODS, *reversed(METHODS)]):
        run(system, first)
        assert bits(run(system, second)) == fresh[second]


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", METHODS)
def test_after_a_failed_run(name, fresh):
    trap = Trap()
    system = build(trap)
    trap.time = 0.52
    with pytest.raises(cs.errors.SubsystemError) as caught:
        run(system, name)
    partial = caught.value.result
    trap.time = np.inf
    whole = run(system, name)
    assert bits(whole) == fresh[name]
    n = len(partial)
    assert 1 < n < len(whole)
    assert np.array_equal(partial.column("y"), whole.column("y")[:n])  # what was kept is what would have been


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", METHODS)
def test_in_threads(name, fresh):
    system = build(Trap())
    assert bits(run(system, name, workers=2)) == fresh[name]
    assert bits(run(system, name, workers=7)) == fresh[name]


def test_recording_less_changes_nothing():
    system = build(Trap())
    whole, part = run(system, "SemiImplicit"), run(system, "SemiImplicit", every=3)
    keep = [*range(0, len(whole), 3), len(whole) - 1]
    assert np.array_equal(part.t, whole.t[sorted(set(keep))])
    assert np.array_equal(part.column("y"), whole.column("y")[sorted(set(keep))])
    assert part.column("calls")[1:].sum() == whole.column("calls")[1:].sum()


@pytest.mark.parametrize("solver", ["LSODA", "cvode", "BDF"])
def test_library_solvers_in_threads(solver):
    def pair():
        ode = lambda k: cs.Ode(  # noqa: E731
            lambda t, x, u: [x[1], -k * np.sin(x[0]) + u[0]],
            lambda t, x, u: x[0],
            x0=[1.0, 0.0],
            inputs=["u"],
            outputs=["y"],
            integrator=solver,
            rtol=1e-6,
        )
        system = cs.System({f"s{i}": ode(1.0 + i) for i in range(4)})
        for i in range(4):
            system.connect(f"s{i}.y", f"s{(i + 1) % 4}.u")
        return system

    one, many = (cs.simulate(pair(), t_end=0.5, method=cs.Jacobi(), step=0.05, workers=w) for w in (1, 4))
    assert bits(one) == bits(many)
