"""Predictor, perturbed and corrector polynomials (Schweizer and Lu (2014), 3.6; Lu (2015), 2.2.6)."""

import numpy as np
import pytest

from cosolve.signal import History, Polynomial


def filled(values, H=0.1):
    """A history whose newest value is `values[0]`."""
    history = History(np.atleast_1d(values[0]).astype(float), depth=len(values) - 1)
    for older in values[1:]:
        history.append_past(np.atleast_1d(older).astype(float), H)
    return history


def value(coefficients, s):
    return Polynomial(0.0, 1.0, coefficients)(s)


@pytest.mark.covers("SL-01")
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_any_polynomial_of_the_degree_is_reproduced(degree):
    """A degree-k interpolant of a degree-k polynomial is that polynomial: 1e-13 is rounding alone."""
    random = np.random.default_rng(degree)
    exact = np.polynomial.Polynomial(random.standard_normal(degree + 1))
    history = filled([exact(-j) for j in range(degree + 1)])
    s = np.linspace(0.0, 1.0, 11)
    extrapolated = [value(history.extrapolate(degree, 0.1), x)[0] for x in s]
    base, weight = history.interpolation(degree, 0.1)
    interpolated = [value(base + np.outer(weight, [exact(1.0)]), x)[0] for x in s]
    if degree > 0:  # degree 0 interpolates the end value, a constant is reproduced by both
        assert np.abs(np.array(interpolated) - exact(s)).max() < 1e-13
    assert np.abs(np.array(extrapolated) - exact(s)).max() < 1e-13


@pytest.mark.covers("SL-01", "LU-01")
@pytest.mark.parametrize(("degree", "weights"), [(0, [1]), (1, [2, -1]), (2, [3, -3, 1])])
def test_predicted_end_values(degree, weights):
    """k=0: u_N; k=1: 2u_N - u_{N-1}; k=2: 3u_N - 3u_{N-1} + u_{N-2}, exact in floating point up to rounding."""
    values = np.random.default_rng(1).standard_normal((3, 4))
    end = filled(values).extrapolate(degree, 0.1).sum(axis=0)
    assert np.abs(end - np.tensordot(weights, values[: degree + 1], axes=1)).max() < 1e-13


@pytest.mark.covers("SL-01", "LU-01")
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_unperturbed_interpolant_is_the_predictor(degree):
    """Polynomial identity of 2.1: through (T_{N+1}, u^p) and the newer nodes runs the extrapolant itself (1e-12)."""
    history = filled(np.random.default_rng(2).standard_normal((3, 2)))
    extrapolated = history.extrapolate(degree, 0.1)
    base, weight = history.interpolation(degree, 0.1)
    again = base + np.outer(weight, extrapolated.sum(axis=0))
    assert np.abs(again - extrapolated).max() < 1e-12


@pytest.mark.covers("SL-01", "LU-01")
@pytest.mark.parametrize(
    ("degree", "basis"),
    [(0, lambda s: [1]), (1, lambda s: [s, 1 - s]), (2, lambda s: [s * (s + 1) / 2, 1 - s**2, s * (s - 1) / 2])],
)
def test_basis_weights_of_the_corrector(degree, basis):
    """The Lagrange basis on the nodes (T_{N+1}, T_N, T_{N-1}); for degree 0 the *new* value fills the step."""
    values = np.array([0.7, -1.3, 2.1])
    new = 5.0
    base, weight = filled(values).interpolation(degree, 0.1)
    for s in (0.0, 0.3, 1.0):
        expected = np.dot(basis(s), [new, *values][: degree + 1])
        assert value(base + np.outer(weight, [new]), s)[0] == pytest.approx(expected, abs=1e-14)


@pytest.mark.covers("SL-22")
def test_degrees_rise_with_the_stored_points():
    """Start-up: predictor degree min(k, N), corrector degree min(k, N+1)."""
    history = History(np.zeros(1), depth=2)
    degrees = []
    for _ in range(4):
        degrees.append((history.extrapolation_degree(2), history.interpolation_degree(2)))
        history.push(np.ones(1), 0.1)
    assert degrees == [(0, 1), (1, 2), (2, 2), (2, 2)]


def test_nodes_of_unequal_steps():
    """Step control moves the nodes: a parabola through unequally spaced points is still reproduced."""
    history = History(np.array([(-0.4) ** 2]), depth=2)
    history.push(np.array([(-0.1) ** 2]), 0.3)
    history.push(np.array([0.0]), 0.1)
    assert history.extrapolate(2, 0.25).sum() == pytest.approx(0.25**2, abs=1e-15)
