"""Polynomial signals are reproduced to rounding on any grid, and zero perturbation is no perturbation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosolve.signal import History, lagrange_weights

EPS = np.finfo(float).eps
numbers = st.floats(-3.0, 3.0, allow_subnormal=False)


@st.composite
def histories(draw, degree):
    """A polynomial in local time, a history of its values on an uneven grid, and the next step."""
    coefficients = np.array(draw(st.lists(numbers, min_size=degree + 1, max_size=degree + 1)))
    steps = draw(st.lists(st.floats(0.3, 3.0), min_size=degree + 1, max_size=degree + 1))
    H = draw(st.floats(0.3, 3.0))
    t = np.concatenate([[0.0], -np.cumsum(steps)])  # newest first
    values = [np.array([np.polyval(coefficients[::-1], s / H)]) for s in t]
    history = History(values[-1], depth=degree + 1)
    for value, step in zip(values[-2::-1], steps[::-1], strict=True):
        history.push(value, step)
    return coefficients, history, H, t[: degree + 1] / H


def rounding(nodes, values):
    """Rounding of the weighted sum: the amplification of the weights times the unit roundoff."""
    W = lagrange_weights(tuple(nodes))
    return 50 * len(nodes) * EPS * (np.abs(W) @ np.abs(values)).max() * (1 + np.abs(nodes).max()) ** len(nodes)


@pytest.mark.parametrize("degree", range(9))
def test_extrapolation_reproduces_polynomials_of_its_degree(degree):
    @settings(max_examples=30)
    @given(histories(degree))
    def check(case):
        coefficients, history, H, nodes = case
        found = history.extrapolate(degree, H)[:, 0]
        values = np.array([v[0] for v in history.values[: degree + 1]])
        assert found.shape == (degree + 1,)
        assert np.abs(found - coefficients).max() <= rounding(nodes, values)

    check()


@pytest.mark.parametrize("degree", range(1, 9))
def test_interpolation_with_the_true_end_value_reproduces_polynomials_too(degree):
    @settings(max_examples=30)
    @given(histories(degree))
    def check(case):
        coefficients, history, H, nodes = case
        base, weight = history.interpolation(degree, H)
        end = coefficients.sum()
        used = np.array([1.0, *nodes[:degree]])
        values = np.array([end, *(v[0] for v in history.values[:degree])])
        assert np.abs(base[:, 0] + weight * end - coefficients).max() <= rounding(used, values)
        # the shape of a perturbation: one at the end of the step, zero at every old point
        s = used[1:]
        powers = s[:, np.newaxis] ** np.arange(degree + 1)
        scale = 50 * EPS * (np.abs(powers) @ np.abs(weight) + 1)
        assert weight.sum() == pytest.approx(1.0, abs=50 * EPS * np.abs(weight).sum())
        assert (np.abs(powers @ weight) <= scale).all()

    check()


@pytest.mark.parametrize("degree", range(9))
def test_the_perturbed_polynomial_with_zero_perturbation_is_the_predictor_polynomial(degree):
    """Same nodes and end value: base + weight * z is unique, so both forms agree to rounding (bitwise for one form)."""

    @settings(max_examples=30)
    @given(histories(degree))
    def check(case):
        _, history, H, nodes = case
        predicted = history.extrapolate(degree, H)
        base, weight = history.interpolation(degree, H)
        z = predicted.sum(axis=0)
        assert np.array_equal(base + weight[:, np.newaxis] * (z + 0.0), base + weight[:, np.newaxis] * z)
        if degree >= 1:  # the end value lies on the extrapolated polynomial, one node fewer is used: same polynomial
            lower = history.extrapolate(degree - 1, H)
            low_base, low_weight = history.interpolation(degree, H)
            same = low_base + low_weight[:, np.newaxis] * lower.sum(axis=0)
            values = np.array([v[0] for v in history.values[: degree + 1]])
            assert np.abs(same[:degree] - lower).max(initial=0.0) <= rounding([1.0, *nodes[:degree]], values)
            assert abs(same[degree, 0]) <= rounding([1.0, *nodes[:degree]], values)

    check()


def test_on_a_uniform_grid_the_nodes_stay_integers_after_a_million_steps():
    history = History(np.zeros(1), depth=3)
    for n in range(5):
        history.push(np.array([float(n)]), 0.1)
    assert history._past_nodes(4, 0.1) == pytest.approx((0, -1, -2, -3), abs=1e-15)


def test_cached_weights_cannot_be_spoiled_by_a_caller():
    with pytest.raises(ValueError):
        lagrange_weights((1.0, 0.0, -1.0))[0, 0] = 5.0


@pytest.mark.parametrize("points", [1, 2, 3, 5])
@pytest.mark.parametrize("degree", range(4))
def test_a_prediction_is_the_polynomial_through_the_newest_points_and_its_end(points, degree):
    """Uneven steps, against a fit of the same degree; with too few points the degree is what they allow."""
    rng = np.random.default_rng(points)
    values, steps, H = rng.normal(size=(points, 2)), rng.uniform(0.5, 2.0, points - 1), 0.7
    history = History(values[-1], depth=4)
    for value, step in zip(values[-2::-1], steps[::-1], strict=True):
        history.push(value, step)
    coefficients, end = history.predict(degree, H)
    reached = min(degree, points - 1)
    s = np.concatenate([[0.0], -np.cumsum(steps)])[: reached + 1] / H
    exact = np.polyfit(s, values[: reached + 1], reached)[::-1]
    assert coefficients == pytest.approx(exact, abs=1e-12)
    assert end == pytest.approx(exact.sum(axis=0), abs=1e-12)
