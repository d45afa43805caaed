"""The test model itself: its exact solution, and the two subsystems it is cut into."""

import numpy as np
import pytest
from examples.two_mass.model import BAR, SCHMOLL, TwoMass, force_displacement, lu
from scipy.integrate import solve_ivp


@pytest.mark.covers("SC-01")
def test_eigenvalues_are_those_of_the_reference_code() -> None:
    """The reference code gives seven digits; relative to their size they must agree to 1e-6."""
    printed = np.array([-16.2647 - 1433.787j, -16.2647 + 1433.787j, -2.0397 - 232.3444j, -2.0397 + 232.3444j])
    found = np.linalg.eigvals(SCHMOLL.A)
    found = found[np.lexsort((found.imag, -np.abs(found.imag)))]
    printed = printed[np.lexsort((printed.imag, -np.abs(printed.imag)))]
    assert np.all(np.abs(found - printed) <= 1e-6 * np.abs(printed))


@pytest.mark.covers("SC-01")
@pytest.mark.parametrize("p", [SCHMOLL, BAR, lu()], ids=["table 2.1", "table 3.1", "lu"])
def test_eigenvalues_solve_the_characteristic_equation(p: TwoMass) -> None:
    """An independent form: `det(M s^2 + D s + K) = 0` from the masses, dampers and springs, not from `A`."""
    M = np.diag([p.m1, p.m2])
    D = np.array([[p.d1 + p.dk, -p.dk], [-p.dk, p.d2 + p.dk]])
    K = np.array([[p.c1 + p.ck, -p.ck], [-p.ck, p.c2 + p.ck]])
    for s in np.linalg.eigvals(p.A):
        terms = M * s**2, D * s, K
        size = max(np.abs(term).max() for term in terms) ** 2
        assert abs(np.linalg.det(sum(terms))) <= 1e-12 * size


@pytest.mark.covers("SC-01")
def test_exact_solution_agrees_with_a_tight_integration() -> None:
    """Matrix exponential against DOP853 at its tightest: 1e-9 of the size of each state over a tenth of a second."""
    t = np.linspace(0.0, 0.1, 101)
    tight = solve_ivp(
        lambda t, z: SCHMOLL.A @ z, (0.0, 0.1), SCHMOLL.z0, method="DOP853", rtol=3e-14, atol=1e-13, t_eval=t
    )
    by_modes = SCHMOLL.exact(t)
    by_exponential = np.array([SCHMOLL.flow(time) @ SCHMOLL.z0 for time in t])
    size = np.abs(by_modes).max(axis=0)
    assert np.all(np.abs(by_exponential - tight.y.T) <= 1e-9 * size)
    assert np.all(np.abs(by_modes - by_exponential) <= 1e-11 * size)


@pytest.mark.covers("SC-02")
@pytest.mark.parametrize("p", [SCHMOLL, BAR, lu()], ids=["table 2.1", "table 3.1", "lu"])
def test_the_two_subsystems_add_up_to_the_whole(p: TwoMass) -> None:
    """Eliminating the inputs, `u2 = (x1, v1)` and `u1 = F`, must give the monolithic matrix (Eq. 2.8)."""
    system = force_displacement(p)
    one, two = system.subsystems["one"], system.subsystems["two"]
    force_by_state, force_by_input = two.C[:1], two.D[:1]
    assembled = np.block([[one.A + one.B @ force_by_input @ one.C, one.B @ force_by_state], [two.B @ one.C, two.A]])
    assert np.all(np.abs(assembled - p.A) <= 1e-12 * np.abs(p.A).max())
    assert np.array_equal(assembled == 0, p.A == 0)
    np.testing.assert_allclose(assembled[p.A != 0], p.A[p.A != 0], rtol=1e-12)
