"""Coefficients of the Runge-Kutta methods satisfy the conditions that their order asks for, to rounding."""

import numpy as np
import pytest

from cosolve.integrator.kernels import DOPRI5, FIXED, RADAU

EXPLICIT = {int(name[-1]): tableau for name, tableau in FIXED.items()}


@pytest.mark.parametrize("stages", RADAU)
def test_radau_is_collocation_at_the_zeros_that_radau_asks_for(stages: int) -> None:
    """`sum_j a_ij c_j^(k-1) = c_i^k / k` up to `k = s`; the weights, its last row, are exact up to `k = 2 s - 1`."""
    A, c = RADAU[stages]
    for k in range(1, stages + 1):
        assert A @ c ** (k - 1) == pytest.approx(c**k / k, abs=1e-15)
    for k in range(1, 2 * stages):
        assert A[-1] @ c ** (k - 1) == pytest.approx(1 / k, abs=1e-15)
    assert c[-1] == 1.0
    assert (np.diff(c) > 0).all()


@pytest.mark.parametrize("order", EXPLICIT)
def test_explicit_methods(order: int) -> None:
    """The conditions of trees up to order 5 (Hairer, Norsett and Wanner, Solving ODEs I, II.2), as far as they hold."""
    a, b, c, _ = EXPLICIT[order]
    conditions(a, b, c, order)
    assert not np.triu(a).any()


def test_dormand_prince() -> None:
    """Order 5, and order 4 of the formula that estimates the error."""
    a, b, c, e = DOPRI5
    conditions(a, b, c, 5)
    conditions(a, b - e, c, 4)
    assert np.abs(e).max() > 1e-3
    assert a[-1] == pytest.approx(b, abs=0.0)  # its last stage is the first of the next step


def conditions(a: np.ndarray, b: np.ndarray, c: np.ndarray, order: int) -> None:
    assert a.sum(axis=1) == pytest.approx(c, abs=1e-15)
    ac, acc = a @ c, a @ c**2
    trees = {
        1: [(np.ones_like(c), 1.0)],
        2: [(c, 1 / 2)],
        3: [(c**2, 1 / 3), (ac, 1 / 6)],
        4: [(c**3, 1 / 4), (c * ac, 1 / 8), (acc, 1 / 12), (a @ ac, 1 / 24)],
        5: [
            *((c**4, 1 / 5), (c**2 * ac, 1 / 10), (c * acc, 1 / 15), (c * (a @ ac), 1 / 30), (ac**2, 1 / 20)),
            *((a @ c**3, 1 / 20), (a @ (c * ac), 1 / 40), (a @ acc, 1 / 60), (a @ (a @ ac), 1 / 120)),
        ],
    }
    for p in range(1, order + 1):
        for column, value in trees[p]:
            assert b @ column == pytest.approx(value, abs=1e-15)
