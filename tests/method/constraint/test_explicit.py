"""An explicit method on a rigid rod (Lu (2015), 3.3.3.1, Figs. 41-43): the multiplier is found at macro points."""

from contextlib import nullcontext

import numpy as np
import pytest
from examples.two_mass_rigid.model import STIFF, RigidTwoMass, equal, explicit
from examples.two_mass_rigid.study import errors, explicit_method, explicit_radius, run, run_explicit

import cosolve as cs

STEPS = (1e-3, 5e-4, 2.5e-4, 1.25e-4)


def free_limit(degree: int) -> float:
    """Largest stable H / mu_B of a free constraint error: `e'' = a`, `e + 2 mu e' + mu^2 a = 0` at macro points."""

    def grows(k: float) -> bool:  # state: e, mu e', the last mu^2 a
        new = np.array([-1.0, -2.0, 0.0])
        slope = new - np.array([0.0, 0.0, 1.0]) if degree else np.zeros(3)
        rate = np.array([0.0, 1.0, 0.0]) + k * (new + slope / 2)
        error = np.array([1.0, k, 0.0]) + k**2 * (new / 2 + slope / 6)
        return np.abs(np.linalg.eigvals(np.array([error, rate, new]))).max() > 1 + 1e-12

    low, high = 1e-3, 10.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if grows(middle) else (middle, high)
    return low


@pytest.mark.parametrize("degree", [0, 1])
def test_limit_of_free_masses(degree: int) -> None:
    """H < mu_B for degree 0 (by hand: 1 + trace + determinant = 4 - 4 H / mu_B), about half of it for degree 1."""
    limit = free_limit(degree)
    assert limit == pytest.approx((1.0, 0.5109)[degree], rel=1e-3)
    free = RigidTwoMass(c1=1e-3, c2=1e-3, d1=1e-3, d2=1e-3)
    for mu in (1e-3, 1e-2):
        assert explicit_radius(mu, degree, 0.99 * limit * mu, free) < 1.0 + 1e-9
        assert explicit_radius(mu, degree, 1.01 * limit * mu, free) > 1.001


def test_very_different_frequencies() -> None:
    """Fig. 43: stable below H = 5e-4 only, which is what degree 1 with mu_B = 0.001 gives; a run shows both sides."""
    limit = cs.analysis.critical_step(explicit(STIFF, 1e-3), explicit_method(1))
    assert limit == pytest.approx(5.1e-4, rel=0.01)
    assert explicit_radius(1e-3, 1, 5e-4, STIFF) < 1.0 < explicit_radius(1e-3, 1, 5.2e-4, STIFF)
    runs = {}
    for H in (4.8e-4, 6e-4):
        with pytest.warns(cs.errors.StabilityWarning) if H > limit else nullcontext():
            runs[H] = cs.simulate(explicit(STIFF, 1e-3), t_end=0.12, method=explicit_method(1), step=H)
    assert np.abs(runs[4.8e-4]["one.x"]).max() < 1.05  # the amplitude of the joined masses is 1.04 m
    assert np.abs(runs[6e-4]["one.x"]).max() > 1e3


@pytest.mark.parametrize("mu", [0.005, 0.01])
@pytest.mark.parametrize("degree", [0, 1])
def test_errors_are_larger_than_those_of_method_3(mu: float, degree: int) -> None:
    """Fig. 41: order `degree + 1`, at every step with a larger error than one correction per step."""
    found = [errors(run_explicit(mu, degree, H)).x for H in STEPS]
    slope = np.polyfit(np.log(STEPS), np.log(found), 1)[0]
    assert slope == pytest.approx(degree + 1, abs=0.06)
    if degree == 0:
        assert all(mine > errors(run(cs.StabilisedIndex2(), 0, H)).x for mine, H in zip(found, STEPS, strict=True))


def test_stable_regions_shrink_with_the_parameter() -> None:
    """Fig. 42, H = 5e-3, degree 0: of 36 points between c = 10 .. 1e6, d = 1 .. 1e5, stable for the three mu_B."""
    grid = [equal(c, d) for c in np.geomspace(1e1, 1e6, 6) for d in np.geomspace(1e0, 1e5, 6)]
    stable = [sum(explicit_radius(mu, 0, 5e-3, p) < 1 for p in grid) for mu in (0.01, 0.005, 0.001)]
    assert stable == [36, 33, 13]


def test_equations_that_macro_points_do_not_determine_are_refused() -> None:
    """Without the accelerations nothing at a macro point depends on the multiplier."""
    with pytest.raises(cs.errors.SimulationError, match="do not determine 'lam' with the states held"):
        cs.simulate(explicit(STIFF, 0.0), t_end=0.1, method=explicit_method(0), step=4e-4)
    with pytest.raises(cs.errors.CapabilityError, match=r"Jacobi\(outputs='exchanged'\) solves equations"):
        cs.simulate(explicit(STIFF, 1e-3), t_end=0.1, method=cs.Jacobi(0), step=4e-4)
