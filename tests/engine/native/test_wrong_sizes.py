"""Jitted functions that return another number of values in mid-run: both engines notice, with the same sentence."""

import numba
import numpy as np
import pytest

import cosolve as cs

LATE = 0.55


@numba.njit
def decay(t, x, u):
    return np.array([u[0] - x[0], -x[1]])


@numba.njit
def shorter_slope(t, x, u):
    return np.array([u[0] - x[0], -x[1]])[: 1 if t > LATE else 2]


@numba.njit
def both(t, x, u):
    return np.array([x[0], 2.0 * x[0]])


@numba.njit
def shorter(t, x, u):
    return np.array([x[0], 2.0 * x[0]])[: 1 if t > LATE else 2]


@numba.njit
def empty(t, x, u):
    return np.array([x[0], 2.0 * x[0]])[: 0 if t > LATE else 2]


@numba.njit
def longer(t, x, u):
    return np.array([x[0], 2.0 * x[0], 0.0])[: 3 if t > LATE else 2]


def pair(rhs, output, integrator):
    fixed = {"internal_step": 0.1} if integrator == "ode4" else {}
    ports = {"inputs": ["u"], "outputs": ["x", "y"], "integrator": integrator, **fixed}
    one, two = cs.Ode(rhs, output, x0=[1.0, 1.0], **ports), cs.Ode(decay, both, x0=[0.5, 1.0], **ports)
    system = cs.System({"one": one, "two": two})
    system.connect("one.x", "two.u")
    system.connect("two.y", "one.u")
    return system


@pytest.mark.sample(3)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("rhs", "output", "integrator", "sentence"),
    [
        (decay, shorter, "auto", "returned 1 numbers, expected 2"),
        (decay, empty, "ode4", "returned 0 numbers, expected 2"),
        (decay, longer, "ode4", "returned 3 numbers, expected 2"),
        (shorter_slope, both, "auto", "rhs did not return one number per state"),
        (shorter_slope, both, "ode4", "rhs did not return one number per state"),
    ],
)
def test_another_number_of_values_is_noticed(rhs, output, integrator, sentence, compiled):
    with pytest.raises(cs.errors.SubsystemError, match=f"'one' failed while advancing at t = 0.5: {sentence}") as found:
        cs.simulate(pair(rhs, output, integrator), t_end=1.0, method=cs.Jacobi(1), step=0.1, compiled=compiled)
    assert found.value.result.stats.steps == 5
    assert (found.value.result.stats.compiled_steps > 0) == compiled


@pytest.mark.parametrize("integrator", [pytest.param("rodas4", marks=pytest.mark.slow), "LSODA"])
def test_other_integrators_notice_a_shorter_slope(integrator):
    """A single number would be taken for the slope of every state."""
    with pytest.raises(
        cs.errors.SubsystemError, match=r"rhs (did not return one number per state|returned shape \(1,\))"
    ):
        cs.simulate(pair(shorter_slope.py_func, both, integrator), t_end=1.0, method=cs.Jacobi(1), step=0.1)


@numba.njit
def fed_back(x):
    return np.array([x, -x])[: 1 if x > 1.5 else 2]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_law_with_another_number_of_values_is_noticed(compiled):
    grown = cs.Linear([[1.0]], [[0.0, 0.0]], [[1.0]], x0=[1.0], inputs=["a", "b"], outputs=["x"])
    system = cs.System({"grown": grown})
    system.law(["grown.a", "grown.b"], fed_back, of="grown.x")
    with pytest.raises(
        cs.errors.SubsystemError, match=r"the law for grown.a, grown.b returned 1 numbers, expected 2"
    ) as found:
        cs.simulate(system, t_end=1.0, method=cs.SemiImplicit(0), step=0.1, compiled=compiled)
    assert found.value.result.t[-1] == pytest.approx(0.4)  # exp(0.5) = 1.65
    assert (found.value.result.stats.compiled_steps > 0) == compiled
