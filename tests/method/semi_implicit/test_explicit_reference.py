"""The explicit scheme beside the semi-implicit one (docs/validation/schweizer-lu.md)."""

import numpy as np
import pytest
from examples.two_mass.model import lu, split
from examples.two_mass_semi_implicit.run import position_error

import cosolve as cs

NAMES = ("one.x", "one.v", "two.x", "two.v")


def largest_position(method):
    """The demo of 3.1: c = 1e5, d = 100, H = 5e-3, T = 0.5."""
    run = {"t_end": 0.5, "method": method, "step": 5e-3, "startup": cs.RisingDegree()}  # as printed
    result = cs.simulate(split("F/F", lu(1e5, 100.0)), **run)
    return max(np.abs(result["one.x"]).max(), np.abs(result["two.x"]).max())


@pytest.mark.sample(1)
@pytest.mark.covers("SL-08")
@pytest.mark.parametrize(("k", "expected"), [(0, 2.801e-3), (1, 1.038e-5), (2, 1.086e-5)])
def test_errors(k, expected):
    """Errors at H = 1e-4, to the last printed digit; the first, constant step costs k = 2 one order."""
    fine = position_error("F/F", cs.Jacobi(degree=k), 1e-4, startup=cs.RisingDegree())
    assert fine == pytest.approx(expected, rel=5e-4)
    slope = np.log2(position_error("F/F", cs.Jacobi(degree=k), 2e-4, startup=cs.RisingDegree()) / fine)
    assert slope == pytest.approx(min(k, 1) + 1, abs=0.02)


@pytest.mark.covers("SL-08", "SL-22")
@pytest.mark.parametrize(("k", "expected"), [(1, 1.503e-5), (2, 5.278e-8)])
def test_known_past_restores_the_order(k, expected):
    """With the exact u_{-1}, u_{-2} the explicit slopes are 2.00 and 3.00."""
    p = lu()
    past = cs.KnownHistory(lambda t: dict(zip(NAMES, p.exact(t)[0], strict=True)))
    errors = [position_error("F/F", cs.Jacobi(degree=k), H, startup=past) for H in (2e-4, 1e-4)]
    assert errors[1] == pytest.approx(expected, rel=5e-4)
    assert np.log2(errors[0] / errors[1]) == pytest.approx(k + 1, abs=0.01)


@pytest.mark.covers("SL-09")
@pytest.mark.parametrize(("k", "semi", "explicit"), [(0, 0.241, 1.1e6), (1, 0.246, 8.2e13), (2, 0.246, 1.5e40)])
def test_explicit_diverges_where_semi_implicit_stays_bounded(k, semi, explicit):
    """rho is 1.17/1.40/2.60 against .84/.86/.86; exact max|x| is 0.203."""
    bounded = largest_position(cs.SemiImplicit(degree=k))
    with pytest.warns(cs.errors.StabilityWarning, match=rf"Jacobi\({k}\) is unstable here"):
        diverged = largest_position(cs.Jacobi(degree=k))
    assert bounded < 0.25
    assert diverged > 1e5
    assert bounded == pytest.approx(semi, abs=5.1e-4)
    assert diverged == pytest.approx(explicit, rel=0.05)
    grid = lu(1e5, 100.0).exact(np.linspace(0, 0.5, 101))
    assert np.abs(grid[:, [0, 2]]).max() == pytest.approx(0.203, abs=5e-4)
