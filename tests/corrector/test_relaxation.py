"""Constant relaxation: its optimal factor, its rate, and that it is Newton with the Jacobian I / alpha."""

import numpy as np
import pytest

from cosolve.corrector import Newton, Relaxation, optimal_factor
from cosolve.errors import SetupError


def residuals(corrector, A, b, z, count):
    found = []
    for _ in range(count):
        r = A @ z - b
        found.append(np.linalg.norm(r))
        z = corrector.correct(z, r, None)
    return np.array(found)


@pytest.mark.covers("IJ-06")
@pytest.mark.parametrize("G", [3.7, -0.2])
def test_the_optimal_factor_of_a_scalar_problem_needs_one_correction(G):
    z = Relaxation(optimal_factor(G)).correct(np.array([5.0]), np.array([G * 5.0 - 1.0]), None)
    assert G * z[0] == pytest.approx(1.0, abs=1e-14)


@pytest.mark.covers("IJ-06")
@pytest.mark.parametrize("sign", [1, -1])
def test_the_rate_of_a_definite_problem_is_the_optimal_one(sign):
    rng = np.random.default_rng(6)
    Q = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    eigenvalues = np.array([1.0, 2.0, 4.0, 5.0, 8.0, 9.0])
    A = sign * Q @ np.diag(eigenvalues) @ Q.T
    alpha = optimal_factor(sign * eigenvalues)
    assert alpha == pytest.approx(sign * 0.2, rel=1e-15)
    norms = residuals(Relaxation(alpha), A, rng.normal(size=6), np.zeros(6), 60)
    rate = (norms[-1] / norms[-21]) ** (1 / 20)
    assert rate == pytest.approx((9 - 1) / (9 + 1), abs=1e-6)
    assert -np.log10(rate) == pytest.approx(0.09691, abs=1e-5)  # digits per iteration


@pytest.mark.covers("IJ-06")
@pytest.mark.parametrize("q", [0.1, 1.0, 6.3])
def test_the_optimal_factor_of_parallel_sweeps_is_the_one_of_section_4(q):
    pair = np.array([1 + 1j * np.sqrt(q), 1 - 1j * np.sqrt(q)])
    alpha = optimal_factor(pair)
    assert alpha == pytest.approx(1 / (1 + q), rel=1e-12)
    assert np.abs(1 - alpha * pair).max() == pytest.approx(np.sqrt(q / (1 + q)), rel=1e-12)


@pytest.mark.covers("IJ-06")
def test_no_factor_beats_the_optimal_one():
    rng = np.random.default_rng(7)
    for _ in range(50):
        eigenvalues = rng.uniform(0.1, 3, 8) + 1j * rng.normal(size=8)
        best = optimal_factor(eigenvalues)
        radius = np.abs(1 - best * eigenvalues).max()
        others = best * np.array([0.5, 0.99, 0.9999, 1.0001, 1.01, 2.0])
        assert all(radius <= np.abs(1 - a * eigenvalues).max() for a in others)


@pytest.mark.covers("IJ-32")
def test_newton_with_a_crude_jacobian_is_relaxation():
    rng = np.random.default_rng(8)
    A, b, alpha = np.eye(5) + 0.3 * rng.normal(size=(5, 5)), rng.normal(size=5), 0.38

    class Crude:
        def jacobian(self):
            return np.eye(5) / alpha

    newton, relaxation = Newton(), Relaxation(alpha)
    newton.start_run([f"z[{i}]" for i in range(5)])
    one = two = rng.normal(size=5)
    for _ in range(30):
        one, two = newton.correct(one, A @ one - b, Crude()), relaxation.correct(two, A @ two - b, None)
        assert np.abs(one - two).max() <= 1e-14 * max(1.0, np.abs(one).max())


@pytest.mark.parametrize("eigenvalues", [[1.0, -1.0], [0.0], [1j], [], [np.nan]])
def test_eigenvalues_without_a_factor_are_refused(eigenvalues):
    with pytest.raises(SetupError, match="optimal_factor"):
        optimal_factor(eigenvalues)
