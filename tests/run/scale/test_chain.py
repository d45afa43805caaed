"""A thousand small subsystems: the answer is right, and work grows in proportion to their number."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import cosolve as cs
from cosolve.engine.python.subsystem_caller import SubsystemCaller

H, STEPS = 1.0 / 16, 8
METHODS = {
    "Jacobi": cs.Jacobi(degree=1),
    "GaussSeidel": cs.GaussSeidel(degree=1),
    "SemiImplicit": cs.SemiImplicit(degree=1),
    "SemiImplicit differenced": cs.SemiImplicit(degree=1, jacobian="difference"),
    "Implicit": cs.Implicit(degree=1),
}


def chain(count):
    """Cells `x' = left - 2 x + right`; the left neighbour of the first is 1, the right one of the last is 0."""
    cells = {
        f"c{i}": cs.Ode(
            lambda t, x, u: -2.0 * x + u[0] + u[1],
            lambda t, x, u: x,
            x0=[0.0],
            inputs=["left", "right"],
            outputs=["x"],
            integrator="ode4",
            internal_step=H,
        )
        for i in range(count)
    }
    system = cs.System(cells)
    for i in range(count):
        system.connect(
            f"c{i}.x", *(f"c{k}.{side}" for k, side in ((i - 1, "right"), (i + 1, "left")) if 0 <= k < count)
        )
    system.set("c0.left", 1.0)
    system.set(f"c{count - 1}.right", 0.0)
    return system


def exact(count, t):
    """Only the first cells feel the boundary in so short a time: solve 60 of them."""
    n = min(count, 60)
    A = np.diag(np.full(n, -2.0)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    rest = np.zeros(n)
    rest[0] = 1.0
    x = np.linalg.solve(A, (expm(A * t) - np.eye(n)) @ rest)
    return np.concatenate([x, np.zeros(count - n)])


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", METHODS)
def test_a_thousand_subsystems_give_the_right_answer_with_work_in_proportion(method):
    calls, errors = {}, {}
    for count in (10, 1000):
        result = cs.simulate(chain(count), t_end=STEPS * H, method=METHODS[method], step=H)
        x = np.array([result[f"c{i}.x"][-1] for i in range(count)])
        errors[count] = np.abs(x - exact(count, STEPS * H)).max()
        calls[count] = result.stats.total_calls / count
    assert errors[1000] < 2e-3
    assert errors[1000] == pytest.approx(errors[10], rel=1e-3)
    assert calls[1000] <= 1.15 * calls[10]  # per subsystem; cells at the ends have one coupled input fewer


def test_the_error_shrinks_with_the_order_of_the_method_on_a_long_chain():
    errors = []
    for H in (1 / 8, 1 / 16):
        result = cs.simulate(chain(150), t_end=0.5, method=cs.SemiImplicit(degree=1), step=H)
        errors.append(max(abs(result[f"c{i}.x"][-1] - e) for i, e in enumerate(exact(150, 0.5))))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.3)


class Counted(cs.Static):
    """A gain that counts how often its outputs are asked for."""

    asked = 0

    def output(self, t, u):
        Counted.asked += 1
        return super().output(t, u)


@pytest.mark.parametrize("backwards", [False, True])
def test_values_travel_along_a_thousand_memoryless_subsystems_in_linear_work(backwards):
    asked = {}
    for count in (10, 1000):
        gains = {f"g{i}": Counted(lambda t, u: 1.0 + 0.5 * u, inputs=["u"], outputs=["y"]) for i in range(count)}
        names = list(gains)[::-1] if backwards else list(gains)
        system = cs.System({**{n: gains[n] for n in names}, "one": cs.Static(lambda t, u: t, inputs=[], outputs=["y"])})
        for i in range(count):
            system.connect(f"g{i - 1}.y" if i else "one.y", f"g{i}.u")
        Counted.asked = 0
        result = cs.simulate(system, t_end=4.0, method=cs.Jacobi(degree=0, outputs="exchanged"), step=1.0)
        asked[count] = Counted.asked / count
        want = 2.0 + (result.t - 2.0) * 0.5**10  # the fixed point 2, approached by one half per gain
        np.testing.assert_allclose(result["g9.y"], want, rtol=1e-14)
    assert asked[1000] <= 1.5 * asked[10]


def test_an_algebraic_loop_beside_a_long_chain_is_closed():
    gain = lambda: cs.Static(lambda t, u: 1.0 - 2.0 * u, inputs=["u"], outputs=["y"])  # noqa: E731
    system = cs.System({"a": gain(), "b": gain(), "c": gain()})
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u", "c.u")
    with pytest.warns(cs.errors.StabilityWarning, match="lags one macro step in an algebraic loop"):
        result = cs.simulate(system, t_end=1.0, method=cs.Jacobi(), step=0.5)
    assert result["a.y"][0] == pytest.approx(1 / 3, abs=1e-12)
    assert result["c.y"][0] == pytest.approx(1 / 3, abs=1e-12)


def test_large_interfaces_use_sparse_jacobians_with_a_few_entries_per_row():
    from cosolve.engine.python.trial import Trial
    from cosolve.method import Window
    from cosolve.signal import History

    system = chain(400)
    plan = system.plan()
    caller = SubsystemCaller(plan)
    _, z = caller.start(0.0)
    trial = Trial(caller, History(z, 1), Window(0.0, H, H), degree=1)
    trial.run(z)
    G = trial.jacobian()
    assert G.nnz <= 3 * plan.n_z
    assert caller.calls.max() <= 3  # the run, and one perturbed run per coupled input
