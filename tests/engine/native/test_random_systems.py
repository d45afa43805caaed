"""Random systems under random methods: whatever the two engines are given, they agree bit for bit.

The sequence of a macro step is written down twice, for reading and for compiling; this is what keeps the two together.
"""

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine.native.test_same_bits import same

import cosolve as cs


@numba.njit
def spring(a, b):
    return 3.0 * (b - a) + 0.5 * np.tanh(b - a) ** 3


@numba.njit
def mixture(a, b):
    return np.sin(a) - 0.2 * b, 0.3 * np.cos(a) * b


@numba.njit
def damped(t, x, u):
    slope = np.empty(2)
    slope[0] = x[1]
    slope[1] = -9.0 * x[0] - 0.7 * x[1] + u[0] - 0.5 * u[1]
    return slope


@numba.njit
def position(t, x, u):
    return x[0]


NUMBERS = st.floats(-2.0, 2.0).map(lambda x: round(x, 3))


def subsystem(draw: st.DrawFn, solvers: list[str]) -> cs.Subsystem:
    """A stable linear system of one or two states, or an oscillator; inputs u, v, output y."""
    if draw(st.booleans()):
        solver = draw(st.sampled_from(solvers))
        h = None if solver == "auto" else 0.004
        return cs.Ode(
            damped,
            position,
            x0=[draw(NUMBERS), 0.0],
            inputs=["u", "v"],
            outputs=["y"],
            integrator=solver,
            internal_step=h,
        )
    n = draw(st.integers(1, 2))
    A = -np.diag(draw(st.lists(st.floats(0.5, 4.0), min_size=n, max_size=n)))
    B = np.array(draw(st.lists(NUMBERS, min_size=2 * n, max_size=2 * n))).reshape(n, 2)
    x0 = draw(st.lists(NUMBERS, min_size=n, max_size=n))
    return cs.Linear(A, B, [[1.0] * n], x0=x0, inputs=["u", "v"], outputs=["y"])


@st.composite
def systems(draw: st.DrawFn, solvers: list[str]) -> cs.System:
    count = draw(st.integers(2, 4))
    names = [f"s{i}" for i in range(count)]
    system = cs.System({name: subsystem(draw, solvers) for name in names})
    ports = draw(st.permutations([f"{name}.{port}" for name in names for port in ("u", "v")]))
    pick = st.sampled_from([f"{name}.y" for name in names])
    system.connect(draw(pick), ports.pop())
    while ports:
        kind = draw(st.sampled_from(["connect", "law", "pair", "set"]))
        if kind == "connect":
            system.connect(draw(pick), ports.pop())
        elif kind == "law":
            system.law({ports.pop(): draw(st.sampled_from([-1.5, 0.4, 1.0]))}, spring, of=[draw(pick), draw(pick)])
        elif kind == "pair" and len(ports) > 1:
            system.law([ports.pop(), ports.pop()], mixture, of=[draw(pick), draw(pick)])
        else:
            system.set(ports.pop(), draw(NUMBERS))
    return system


@st.composite
def methods(draw: st.DrawFn) -> cs.Method:
    degree, jacobian = draw(st.integers(0, 3)), draw(st.sampled_from(["auto", "difference"]))
    guess = draw(st.one_of(st.none(), st.integers(0, 2)))
    kind = draw(st.sampled_from(["jacobi", "gauss-seidel", "semi-implicit", "implicit"]))
    if kind == "jacobi":
        return cs.Jacobi(degree)
    if kind == "gauss-seidel":
        return cs.GaussSeidel(degree)
    if kind == "semi-implicit":
        update = draw(st.booleans())
        return cs.SemiImplicit(degree, jacobian=jacobian, predictor=guess, final_update=update)
    corrector = cs.Newton(draw(st.sampled_from(["step", "iteration"])))
    return cs.Implicit(degree, jacobian=jacobian, predictor=guess, corrector=corrector)


@pytest.mark.slow
@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(systems(["ode1", "ode4"]), methods(), st.sampled_from([0.01, 0.013]), st.sampled_from([1, 3]))
def test_the_engines_agree(system, method, step, every) -> None:
    agree(system, method, step, every)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(systems(["ode1", "ode4", "auto"]), methods(), st.sampled_from([0.01, 0.013]), st.sampled_from([1, 3]))
def test_the_engines_agree_with_steps_inside_that_follow_the_error(system, method, step, every) -> None:
    agree(system, method, step, every)


def agree(system: cs.System, method: cs.Method, step: float, every: int) -> None:
    run = {"method": method, "step": step, "t_end": 0.4, "every": every}
    (theirs, their_error), (ours, our_error) = (outcome(system, run, compiled) for compiled in (False, True))
    assert our_error == their_error
    if our_error is None:
        assert ours.stats.compiled_steps > 20
    same(ours, theirs)


def outcome(system: cs.System, run: dict, compiled: bool) -> tuple[cs.Result, str | None]:
    """The result, and what ended it where it did not reach the end (an iteration that does not converge, say)."""
    try:
        return cs.simulate(system, **run, compiled=compiled), None
    except cs.errors.SimulationError as error:
        return error.result, str(error)
