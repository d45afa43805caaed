"""What a user may choose freely changes nothing: the order of names, of ports and of connections, and the time zero."""

import itertools
from collections.abc import Sequence

import numba
import numpy as np
import pytest

import cosolve as cs

NAMES = ("one", "two", "three")
METHODS = {
    "jacobi 0": cs.Jacobi(0),
    "jacobi 2": cs.Jacobi(2),
    "jacobi 3": cs.Jacobi(3),
    "jacobi 1, exchanged": cs.Jacobi(1, outputs="exchanged"),
    "gauss-seidel 2": cs.GaussSeidel(2, order=["two", "three", "one"]),
    "leader 2": cs.LeaderFollower(2, leader="two", order=["three", "one"]),
    "semi-implicit 0": cs.SemiImplicit(0),
    "semi-implicit 2": cs.SemiImplicit(2),
    "semi-implicit 2, differences": cs.SemiImplicit(2, jacobian="difference"),
    "semi-implicit 2, kept": cs.SemiImplicit(2, refresh="run"),
    "implicit 3": cs.Implicit(3, tol=1e-12),
    "implicit 2, serial": cs.Implicit(
        2, tol=1e-12, corrector=cs.Aitken(), sweep="gauss-seidel", order=["two", "three", "one"]
    ),
    "implicit 1, IQN-ILS": cs.Implicit(1, tol=1e-12, corrector=cs.IqnIls()),
}
ENGINES = [(name, compiled) for name in METHODS for compiled in (False, True) if not compiled or name in (
    "jacobi 0", "jacobi 2", "jacobi 3", "gauss-seidel 2", "semi-implicit 0", "semi-implicit 2",
    "semi-implicit 2, differences", "implicit 3",
)]  # fmt: skip
COLUMNS = ("one.x", "one.v", "two.rate", "two.angle", "three.y", "three.field")
STEP = 1.0 / 64
ROUNDING = 1e-11

pytestmark = pytest.mark.filterwarnings("ignore:.*algebraic loop:cosolve.errors.StabilityWarning")


@numba.njit
def bush(a, b, rate):
    return 20.0 * (b - a) + 5.0 * (b - a) ** 3 - 0.2 * rate, 3.0 * np.tanh(a - b)


@numba.njit
def swing(t, x, u):
    return np.array([x[1], -9.0 * np.sin(x[0]) - 0.1 * x[1] + u[0] + 0.2 * u[1]])


@numba.njit
def motion(t, x, u):
    return np.array([x[1], x[0]])


def system(order: Sequence[str] = NAMES, turned: bool = False) -> cs.System:
    """Three unlike parts, of which one has a vector port and one reacts at once; a law with two values."""
    B, C = np.array([[0.0, 0.0], [1.0, 0.5]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    ports = (["f", "g"], ["x", "v"])
    if turned:  # ports the other way round, with the columns and rows that belong to them
        B, C, ports = B[:, ::-1], C[::-1], (["g", "f"], ["v", "x"])
    parts = {
        "one": lambda: cs.Linear([[0, 1], [-4, -0.3]], B, C, x0=[0.4, 0.0], inputs=ports[0], outputs=ports[1]),
        "two": lambda: cs.Ode(
            swing,
            motion,
            x0=[0.9, 0.0],
            inputs=[cs.Port("load", 2)],
            outputs=["rate", "angle"],
            integrator="ode4",
            internal_step=0.005,
        ),
        "three": lambda: cs.Linear(
            *([[-2.0]], [[1.0, 2.0]], [[1.0], [0.5]], [[0.0, 0.0], [0.0, 0.1]]), x0=[0.1], inputs=["p", "q"],
            outputs=["y", "field"],
        ),
    }  # fmt: skip
    made = cs.System({name: parts[name]() for name in order})
    rules = [
        lambda: made.law(["one.f", "three.q"], bush, of=["one.x", "two.angle", "two.rate"]),
        lambda: made.connect("one.v", "three.p"),
        lambda: made.connect("three.y", "one.g"),
        lambda: made.law("two.load", pair, of=["three.field", "one.x"]),
    ]
    for rule in reversed(rules) if turned else rules:
        rule()
    return made


@numba.njit
def pair(a, b):
    return np.array([0.7 * a, -0.4 * b])


def near(found: cs.Result, expected: cs.Result) -> None:
    assert len(found.t) == len(expected.t)
    for name in COLUMNS:
        assert np.abs(found[name] - expected[name]).max() < ROUNDING, name


@pytest.mark.parametrize(("name", "compiled"), ENGINES)
def test_the_order_of_names_ports_and_connections_changes_nothing(name: str, compiled: bool) -> None:
    """Where a method depends on an order, that is given by name."""
    run = {"method": METHODS[name], "step": STEP, "t_end": 0.5, "compiled": compiled}
    expected = cs.simulate(system(), **run)
    assert (expected.stats.compiled_steps > 20) == compiled
    for order, turned in zip(itertools.permutations(NAMES), itertools.cycle([True, False]), strict=False):
        found = cs.simulate(system(order, turned), **run)
        near(found, expected)
        if "IQN" not in name:  # at 1e-12 rounding decides whether it takes one more
            assert np.array_equal(found.iterations, expected.iterations)
            assert found.stats.calls == expected.stats.calls


@pytest.mark.parametrize(("name", "compiled"), ENGINES)
@pytest.mark.parametrize("t_start", [-3.0, 128.0])
def test_the_time_at_which_a_run_begins_changes_nothing(name: str, compiled: bool, t_start: float) -> None:
    """Nothing here depends on time, and all times are whole numbers of 1/64 s; the last step is half as long."""
    run = {"method": METHODS[name], "step": STEP, "compiled": compiled}
    length = 0.5 + STEP / 2
    expected = cs.simulate(system(), t_end=length, **run)
    found = cs.simulate(system(), t_start=t_start, t_end=t_start + length, **run)
    near(found, expected)
    if name.startswith("leader"):  # it steps by 5 ms, which is no binary number
        assert np.abs(found.t - t_start - expected.t).max() < 1e-13
    else:
        assert np.array_equal(found.t - t_start, expected.t)
        assert np.diff(found.t)[-1] == STEP / 2


@pytest.mark.parametrize("t_start", [0.0, -3.0, 128.0])
@pytest.mark.parametrize("name", ["jacobi 2", "gauss-seidel 2", "semi-implicit 2", "implicit 3"])
def test_steps_that_follow_the_error_do_not_depend_on_the_order_or_the_start(name: str, t_start: float) -> None:
    """Rounding moves the estimates of the first, very short steps a little, and by them the times of later ones."""
    run = {"method": METHODS[name], "step": cs.Adaptive(rtol=1e-4)}
    expected = cs.simulate(system(), t_end=1.0, **run)
    found = cs.simulate(system(("three", "two", "one"), True), t_start=t_start, t_end=t_start + 1.0, **run)
    assert found.stats.rejected == expected.stats.rejected
    assert np.diff(found.t) == pytest.approx(np.diff(expected.t), rel=5e-3)
    for column in COLUMNS:
        assert found[column][-1] == pytest.approx(expected[column][-1], abs=1e-6), column  # 1 % of the tolerance
