"""The rules of step control: plain and compiled the same, and what they promise."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosolve.integrator import step_control
from cosolve.integrator.rosenbrock import Rosenbrock
from cosolve.integrator.step_control import equal_steps, step_factor
from cosolve.signal import Polynomial


@settings(derandomize=True)
@given(st.floats(1e-9, 1e6), st.floats(1e-3, 1.0))
def test_equal_steps_are_short_enough_and_not_too_many(span, share):
    """None is longer than asked for, beyond rounding, and one fewer would be too long."""
    longest = share * span
    count = equal_steps(span, longest)
    assert span / count <= longest * (1 + 1e-8)
    assert count == 1 or span / (count - 1) > longest


def test_compiled_rules_have_the_bits_of_the_plain_ones():
    random = np.random.default_rng(2)
    x, new, error = random.standard_normal((3, 7))
    for _ in range(20):
        size, t, h, span = random.uniform(1e-6, 3.0, 4)
        calls = (
            *((size, span, h), (size, 5, 0.9, 0.2, 10.0), (error, np.abs(x) + 1e-9), (x, new, 1e-6, 1e-9)),
            *((t, h, t + span), (h, t, span)),
        )
        for plain, compiled, arguments in zip(step_control.PYTHON, step_control.compiled(), calls, strict=True):
            assert np.array_equal(plain(*arguments), compiled(*arguments)), plain.__name__


@pytest.mark.parametrize(("error", "factor"), [(0.0, 10.0), (1.0, 0.9), (1e30, 0.2), (np.inf, 0.2), (np.nan, 0.2)])
def test_the_next_step_is_bounded_whatever_the_error(error, factor):
    """An estimate that is no number shortens the step as much as a huge one."""
    assert step_factor(error, 5, 0.9, 0.2, 10.0) == factor


def _growth(t, x, u):
    return 4.0 * x


@pytest.mark.parametrize(
    "rhs",
    [pytest.param(_growth, id="plain"), pytest.param(numba.njit(_growth), id="jitted", marks=pytest.mark.slow)],
)
def test_a_step_length_without_a_solution_is_left_aside(rhs):
    """`x' = 4 x` with h = 1: the matrix `1 / (h / 4) - 4` is zero. The step is made with another length."""
    solver = Rosenbrock(1e-8, 1e-10)
    solver.memory = 1.0
    x = solver.integrate(rhs, 0.0, 2.0, np.array([1.0]), Polynomial(0.0, 2.0, np.zeros((1, 1))))
    assert x[0] == pytest.approx(np.exp(8.0), rel=1e-6)
