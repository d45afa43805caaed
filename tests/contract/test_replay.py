"""Replaying the internal grid gives difference quotients without the noise of step control."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

import cosolve as cs
from cosolve.signal import Polynomial

A = np.array([[0.0, 1.0], [-9.0, -0.4]])
B = np.array([0.3, 1.0])


def rhs(t, x, u):
    return np.array([x[1] + 0.3 * u[0], -9.0 * x[0] - 0.4 * x[1] + u[0]])


def sensitivity(H, weight):
    """d x(H) / d eps for the input u + eps * sum_j weight[j] (t/H)^j, from the matrix exponential."""
    d = len(weight)
    chain = np.zeros((2 + d, 2 + d))
    chain[:2, :2] = A * H
    chain[:2, 2] = B * H
    chain[2:-1, 3:] = np.eye(d - 1)
    scaled = np.array([w * np.prod(np.arange(1, j + 1)) for j, w in enumerate(weight)])
    return expm(chain)[:2, 2:] @ scaled


RHS = {"python": rhs, "jitted": numba.njit(rhs)}


@pytest.mark.parametrize("solver", ["auto", "dopri5"])
@pytest.mark.parametrize("compiled", RHS)
def test_difference_quotients_are_exact_sensitivities(solver, compiled):
    ode = cs.Ode(
        RHS[compiled], lambda t, x, u: x, x0=[1.0, 0.0], inputs=["u"], outputs=["x", "v"], integrator=solver, rtol=1e-9
    )

    @settings(max_examples=15)
    @given(
        st.floats(0.05, 1.0),
        st.lists(st.floats(-2, 2), min_size=1, max_size=3),
        st.floats(-3, 3),
    )
    def check(H, weight, level):
        weight, eps = np.array(weight), 1e-5
        u = np.zeros((len(weight), 1))
        u[0] = level
        ode.start(0.0)
        ode.advance(0.0, 0.1, Polynomial(0.0, 0.1, np.array([[level]])))
        state = ode.save()
        y = np.array(ode.advance(0.1, 0.1 + H, Polynomial(0.1, H, u)))
        ode.restore(state)
        moved = np.array(ode.replay(0.1, 0.1 + H, Polynomial(0.1, H, u + eps * weight[:, np.newaxis])))
        assert (moved - y) / eps == pytest.approx(sensitivity(H, weight), abs=1e-7)
        ode.restore(state)
        assert np.array_equal(ode.replay(0.1, 0.1 + H, Polynomial(0.1, H, u)), y)  # same grid, same inputs, same bits

    check()


@pytest.mark.parametrize("solver", ["auto", "dopri5", "rodas4", "ode4"])
def test_every_solver_that_can_repeats_its_grid(solver):
    """The same bits with the same inputs, and quotients that hardly depend on the increment with others."""
    internal = 0.005 if solver == "ode4" else None
    ode = cs.Ode(
        rhs, lambda t, x, u: x, x0=[1.0, 0.0], inputs=["u"], outputs=["x", "v"], integrator=solver, rtol=1e-4,
        internal_step=internal,
    )  # fmt: skip
    ode.start(0.0)
    ode.advance(0.0, 0.1, Polynomial(0.0, 0.1, np.array([[0.5]])))
    state = ode.save()
    inputs = np.array([[0.5], [2.0]])
    y = np.array(ode.advance(0.1, 0.9, Polynomial(0.1, 0.8, inputs)))
    slopes = []
    for eps in (0.0, 1e-1, 1e-3):
        ode.restore(state)
        moved = np.array(ode.replay(0.1, 0.9, Polynomial(0.1, 0.8, inputs + np.array([[eps], [0.0]]))))
        slopes.append((moved - y) / (eps or 1.0))
    assert not slopes[0].any()
    assert slopes[1] == pytest.approx(slopes[2], rel=1e-6)
