"""One verdict on singular matrices in all solvers: LAPACK, SuperLU or compiled code."""

import numba
import numpy as np
import pytest
from scipy.sparse import csc_array

from cosolve.basics.lu import RCOND, eliminate, equilibration, factorised, lu_factor, substitute

RANDOM = np.random.default_rng(5)
COMPILED = numba.njit(eliminate), numba.njit(substitute)


def near_singular(distance: float) -> np.ndarray:
    """A 6 x 6 matrix whose smallest singular value is `distance`, the others between 1 and 2."""
    left, right = (np.linalg.qr(RANDOM.standard_normal((6, 6)))[0] for _ in range(2))
    return np.asarray(left * np.array([2.0, 1.8, 1.5, 1.2, 1.0, distance]) @ right)


def verdicts(A: np.ndarray) -> list[bool]:
    """Regular or not: dense, sparse, plain and compiled elimination of the equilibrated matrix."""
    rows, columns = equilibration(A)
    found = [factorised(A) is not None, factorised(csc_array(A)) is not None]
    for run in (eliminate, COMPILED[0]):
        found.append(run(A / rows[:, np.newaxis] / columns, np.zeros(6, dtype=np.intp), 6, RCOND))
    return found


@pytest.mark.parametrize(("distance", "regular"), [(1e-10, True), (1e-18, False)])
def test_all_say_the_same(distance, regular):
    """1e-10 leaves six digits of a solution, 1e-18 none; the decimals in between cannot be told apart."""
    assert verdicts(near_singular(distance)) == [regular] * 4


def test_units_do_not_make_a_matrix_singular():
    """Newtons next to radians: rows and columns that differ by 1e24 in size, and not in direction."""
    good = near_singular(0.9)
    rows, columns = 10.0 ** RANDOM.integers(-12, 13, (2, 6))
    A, x = good * rows[:, np.newaxis] * columns, RANDOM.standard_normal(6)
    assert lu_factor(A)[2] < RCOND  # as it stands it looks singular
    assert verdicts(A) == [True] * 4
    for matrix in (A, csc_array(A)):
        for b in (A @ (x / columns), np.stack([A @ (x / columns)] * 2, axis=1)):
            assert (factorised(matrix)(b).T * columns).reshape(-1, 6)[-1] == pytest.approx(x, rel=1e-9)


def test_a_good_matrix_is_solved_as_it_stands():
    """No scaling where none is needed: the bits of LAPACK."""
    A, b = near_singular(0.5), RANDOM.standard_normal(6)
    assert np.array_equal(factorised(A)(b), np.linalg.solve(A, b))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(bad):
    A = near_singular(0.5)
    A[2, 3] = bad
    assert factorised(A) is None
    assert factorised(csc_array(A)) is None


def test_compiled_elimination_has_the_bits_of_the_plain_one():
    """And solves: with a zero on the diagonal, so that rows change places."""
    A, b = near_singular(0.7), RANDOM.standard_normal(6)
    A[0, 0] = 0.0
    found = []
    for factor, solve in ((eliminate, substitute), COMPILED):
        matrix, order, x = A.copy(), np.zeros(6, dtype=np.intp), np.zeros(6)
        assert factor(matrix, order, 6, RCOND)
        solve(matrix, order, 6, b, x)
        found.append(x)
    assert np.array_equal(*found)
    assert A @ found[0] == pytest.approx(b, abs=1e-13)
