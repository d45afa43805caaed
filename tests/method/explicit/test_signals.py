"""Polynomial signals on uneven macro points: exact for polynomials up to their degree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cosolve as cs
from cosolve.signal import History, Polynomial

degrees = st.integers(0, 5)
uneven_steps = st.lists(st.floats(0.2, 5.0), min_size=7, max_size=7)  # neighbours may differ 25-fold
coefficients = st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6)


def filled_history(degree: int, steps: list[float], polynomial: np.polynomial.Polynomial) -> History:
    """Macro points with these steps, the newest at t = 0."""
    history = History(np.array([polynomial(-sum(steps[:degree]))]), depth=max(degree, 1))
    for k in range(degree - 1, -1, -1):
        history.push(np.array([polynomial(-sum(steps[:k]))]), steps[k])
    return history


@pytest.mark.covers("SC-03")
@given(degrees, uneven_steps, coefficients)
def test_extrapolation_is_exact_for_polynomials_of_its_degree(
    degree: int, steps: list[float], values: list[float]
) -> None:
    """A polynomial is its own Lagrange polynomial, whatever the nodes: 1e-10 of the size it reaches."""
    truth = np.polynomial.Polynomial(values[: degree + 1])
    history, H = filled_history(degree, steps, truth), steps[-1]
    signal = Polynomial(0.0, H, history.extrapolate(degree, H))
    size = np.polynomial.Polynomial(np.abs(truth.coef))(sum(steps))
    for t in np.linspace(0.0, H, 7):
        assert abs(signal(t)[0] - truth(t)) <= 1e-10 * max(1.0, size)


@pytest.mark.covers("SC-03")
@given(degrees, uneven_steps, coefficients)
def test_interpolation_is_exact_for_polynomials_of_its_degree(
    degree: int, steps: list[float], values: list[float]
) -> None:
    """The same with the end of the step as a node (second solver of Gauss-Seidel)."""
    truth = np.polynomial.Polynomial(values[: degree + 1])
    history, H = filled_history(degree, steps, truth), steps[-1]
    base, weight = history.interpolation(degree, H)
    signal = Polynomial(0.0, H, base + np.outer(weight, [truth(H)]))
    size = np.polynomial.Polynomial(np.abs(truth.coef))(sum(steps))
    for t in np.linspace(0.0, H, 7):
        assert abs(signal(t)[0] - truth(t)) <= 1e-10 * max(1.0, size)


@pytest.mark.covers("SC-03")
@pytest.mark.parametrize("degree", range(6))
def test_one_degree_too_many_is_not_exact(degree: int) -> None:
    """The counterpart: t^(p+1) is missed by `prod (t - T_j)`, the known remainder of Lagrange's formula."""
    steps = [0.3, 0.5, 0.2, 0.7, 0.4, 0.6, 1.0]
    truth = np.polynomial.Polynomial.basis(degree + 1)
    history = filled_history(degree, steps, truth)
    nodes = [-sum(steps[:k]) for k in range(degree + 1)]
    remainder = np.prod([1.0 - node for node in nodes])
    assert truth(1.0) - history.extrapolate(degree, 1.0).sum() == pytest.approx(remainder, rel=1e-10)


@pytest.mark.covers("SC-03")
def test_degree_zero_interpolation_holds_the_end_value() -> None:
    """For p = 0 the second solver of Gauss-Seidel gets y(T_{n+1}), not y(T_n)."""
    base, weight = History(np.array([7.0]), depth=1).interpolation(0, 0.1)
    assert (base + np.outer(weight, [9.0])).tolist() == [[9.0]]


@pytest.mark.covers("SC-03")
@pytest.mark.parametrize("degree", range(6))
def test_a_run_on_uneven_steps_copies_a_polynomial_exactly(degree: int) -> None:
    """The whole path, engine and history on variable steps: t^p arrives undisturbed at the reader's input."""
    source = cs.Static(lambda t, u: t**degree, inputs=[], outputs=["y"])
    reader = cs.Static(lambda t, u: u[0], inputs=["u"], outputs=["y"])
    system = cs.System({"source": source, "reader": reader})
    system.connect("source.y", "reader.u")
    past = cs.KnownHistory(lambda t: {"source.y": t**degree})
    control = cs.Adaptive(rtol=1e-3, first_step=0.05, max_step=0.3, reject=False)
    result = cs.simulate(system, t_end=2.0, method=cs.Jacobi(degree), step=control, startup=past)
    assert len(set(np.round(result.H, 6))) > 3
    np.testing.assert_allclose(result["reader.y"], result["source.y"], rtol=0, atol=1e-10)
