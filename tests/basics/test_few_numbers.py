"""Few numbers are handled one by one in Python: the same bits as the array operations that do it for many."""

from __future__ import annotations

import numpy as np
import pytest

from cosolve.basics.arrays import FEW, finite_doubles, magnitude
from cosolve.basics.lu import largest
from cosolve.basics.products import product


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (2, 4), (4, 4), (1, 16), (3, 5), (2, 9)])
def test_products_are_added_up_in_order(shape: tuple[int, int]) -> None:
    random = np.random.default_rng(sum(shape))
    for scale in (1.0, 1e-300, 1e300):
        A = random.normal(size=shape) * scale
        b = random.normal(size=shape[1]) * 10.0 ** random.integers(-8, 8, shape[1])
        b[random.integers(shape[1])] = -0.0
        with np.errstate(all="ignore"):
            expected = (A * b).cumsum(axis=1)[:, -1]
        assert product(A, b).tobytes() == expected.tobytes()


def test_the_sign_of_a_zero_stays() -> None:
    A = np.array([[1.0, 1.0], [1.0, -1.0]])
    assert np.signbit(product(A, np.array([-0.0, -0.0]))).tolist() == [True, False]


@pytest.mark.parametrize("n", [1, 2, FEW, FEW + 1])
def test_the_largest_magnitude(n: int) -> None:
    values = np.random.default_rng(n).normal(size=n)
    assert magnitude(values) == np.abs(values).max()
    for bad in (np.nan, np.inf, -np.inf):
        values[-1] = bad
        np.testing.assert_equal(magnitude(values), np.abs(values).max())
    assert magnitude(np.full(n, 1e308)) == 1e308  # whose sum is no number


@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_the_largest_entries_of_rows_and_columns(n: int) -> None:
    size = np.abs(np.random.default_rng(n).normal(size=(n, n)))
    for axis in (0, 1):
        assert largest(size, axis).tobytes() == size.max(axis=axis).tobytes()


def test_what_is_not_plain_is_left_to_others() -> None:
    assert finite_doubles([1, 2]) is None  # whole numbers
    assert finite_doubles([1.0, None]) is None
    assert finite_doubles([[1.0], [2.0]]) is None
    assert finite_doubles([1.0, np.array([1.0, 2.0])]) is None
    whole = finite_doubles([1.0, np.float64(2.0)])
    assert whole is not None
    assert whole.tolist() == [1.0, 2.0]
    huge = finite_doubles([1e308, 1e308])
    assert huge is not None
