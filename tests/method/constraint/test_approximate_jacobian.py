"""Interface Jacobians from the leading terms of Lu (2015), App. B."""

from functools import cache

import numpy as np
import pytest
from examples.planar.case import method
from examples.slider_crank.model import L1, M1, RIGID_JOINT, response_1, response_2, rigid
from examples.two_mass.model import lu, spring
from examples.two_mass_rigid.model import RigidTwoMass, split
from examples.two_mass_rigid.study import errors, run
from tests.method.constraint.printed import printed

import cosolve as cs
from cosolve.signal import Polynomial

B, W, S = cs.Baumgarte, cs.WeightedMultipliers, cs.StabilisedIndex2


def response(subsystem, state, u, H, k=0):
    """d outputs / d inputs over one step by central differences of the sub-integration."""
    weight = np.eye(k + 1)[k]
    coefficients = np.zeros((k + 1, len(u)))
    coefficients[0] = u
    columns = []
    subsystem.start(0.0)
    for j in range(len(u)):
        ends = []
        for sign in (1.0, -1.0):
            shifted = coefficients.copy()
            shifted[:, j] += sign * 1e-4 * weight
            subsystem.set_state(state)
            ends.append(np.asarray(subsystem.advance(0.0, H, Polynomial(0.0, H, shifted))))
        columns.append((ends[0] - ends[1]) / 2e-4)
    return np.array(columns).T


# -- the oscillator with a rigid rod -------------------------------------------------------------------------


@pytest.mark.covers("LU-39")
def test_response_of_the_masses():
    """Rigid oscillator, H = 1e-3, k = 0: G_x off by 0.25 %, G_v by 0.39 %, G_a by 0.79 %."""
    H, u = 1e-3, Polynomial(0.0, 1e-3, np.zeros((1, 2)))
    G = []
    for approximate in (False, True):
        masses = split(RigidTwoMass(), approximate=approximate).plan().subsystems
        for mass in masses:
            mass.start(0.0)
        G.append(-sum(mass.jacobian(0.0, H, u, np.ones(1))[:, 0] for mass in masses))
    assert np.abs(G[1] / G[0] - 1.0) == pytest.approx([0.0025, 0.0039, 0.0079], abs=5.1e-5)


@pytest.mark.covers("LU-39")
@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_weights_of_higher_degrees(k):
    """H w_v and H^2 w_y: (1, 1/2), (1/2, 1/6), (5/12, 1/8), (3/8, 19/180)."""
    from cosolve.signal import History
    from cosolve.subsystem.secant_jacobian import perturbation_integrals

    history = History(np.zeros(1), depth=k)
    for _ in range(k):
        history.append_past(np.zeros(1), 0.5)
    _, weight = history.interpolation(k, 0.5)
    w_v, w_y = ((1, 1 / 2), (1 / 2, 1 / 6), (5 / 12, 1 / 8), (3 / 8, 19 / 180))[k]
    assert perturbation_integrals(weight, 0.5) == pytest.approx((0.5 * w_v, 0.25 * w_y), rel=1e-13)


@pytest.mark.sample(2)
@pytest.mark.covers("LU-39")
@pytest.mark.parametrize(
    ("treatment", "k", "x", "slopes"),
    [
        (B(2e-3, 0.0), 0, "2.36e-6", (2, 2)),
        (B(2e-3, 1e-6), 1, "4.1e-8", (2, 2.2)),
        (W(1.0, 1.0), 0, "4.33e-6", (3, 2)),
        (S(), 0, "1.02e-5", (2, 2)),
    ],
    ids=str,
)
def test_orders_are_those_of_the_exact_jacobian(treatment, k, x, slopes):
    """Rigid oscillator: error of x1 at H = 1e-3, orders of x and v between 5e-4 and 2.5e-4."""
    steps = (1e-3, 5e-4, 2.5e-4)
    found = [np.array(errors(run(treatment, k, H, approximate=True))) for H in steps]
    assert found[0][0] == printed(x)
    assert np.log2(found[1] / found[2])[:2] == pytest.approx(slopes, abs=0.15)
    if isinstance(treatment, S):  # one correction does not close the constraint any more
        assert found[0][3] == printed("7.4e-8")
        assert found[0][4] == printed("2.2e-4")
        assert np.log2(found[1] / found[2])[3:] == pytest.approx([4, 3], abs=0.15)


def test_iterating_closes_the_constraint():
    """The formula only slows Newton down: iterated to 1e-13, Method 3 holds the distance again at rounding."""
    implicit = cs.Implicit(degree=0, constraints=S(), tol=1e-13)
    result = cs.simulate(split(approximate=True), t_end=0.1, method=implicit, step=1e-3)
    assert np.abs(result["two.x"] - result["one.x"]).max() < 1e-12
    assert result.iterations.max() > 1


# -- the sliding lever ---------------------------------------------------------------------------------------


STATE_1, STATE_2 = np.array([0.7, 0.3]), np.array([1.1, -0.4])
U_1 = np.array([30.0, 0.02, 1.1, 100.0, 5.0])
U_2 = np.array([30.0, 0.02, 0.55, 0.45, 0.7])


def relative_gaps(H):
    """Largest error of each entry of both responses, relative to the entry (zeros of the formula left out)."""
    gaps = []
    for name, state, u, formula in (("one", STATE_1, U_1, response_1), ("two", STATE_2, U_2, response_2)):
        subsystem = dict(zip(("one", "two"), rigid(h=H / 4).plan().subsystems, strict=True))[name]
        by, exact = formula(state, u, H, H**2 / 2), response(subsystem, state, u, H)
        used = np.abs(by) > 0
        gaps.append(np.abs(exact[used] / by[used] - 1.0))
    return np.concatenate(gaps)


@pytest.mark.covers("LU-40", "SL-17")
def test_leading_terms_against_differences():
    """Every entry agrees to O(H): its gap halves with H (2 ms to 1 ms), and is below 1e-3 at H = 0.1 ms."""
    assert relative_gaps(1e-4).max() < 1e-3
    coarse, fine = relative_gaps(2e-3), relative_gaps(1e-3)
    visible = fine > 1e-4  # the rest is of higher order and drowns in the rounding of the differences
    assert visible.sum() > 10
    slopes = np.log2(coarse / fine)[visible]  # above 1 where the second order is still larger than the first
    assert slopes.min() > 0.9
    assert np.median(slopes) == pytest.approx(1.0, abs=0.05)


@pytest.mark.covers("LU-40", "SL-17")
def test_printed_sign_fails():
    """d x_S1 / d phi2 at phi1 = 0.7, phi2 = 1.1, lam = 30, w1 = 0.3, H = 1e-4: 3.9914e-8, not 9.98e-8."""
    H, lam, phi1, phi2 = 1e-4, 30.0, 0.7, 1.1
    u = np.array([lam, 0.0, phi2, 0.0, 0.0])
    numeric = response(rigid(h=H).plan().subsystems[0], STATE_1, u, H)[3, 2]
    factor = 3 * lam * H**2 / (4 * M1)
    mixed = np.cos(phi1) * np.sin(phi1) * np.sin(phi2)
    corrected = factor * (-np.cos(phi2) * np.sin(phi1) ** 2 + mixed)
    wrong = factor * (np.cos(phi2) * np.sin(phi1) ** 2 + mixed)
    assert numeric == printed("3.9914e-8", extra=0.5)
    assert corrected == printed("3.9913e-8")
    assert wrong == printed("9.98e-8")
    assert response_1(STATE_1, u, H, H**2 / 2)[3, 2] == pytest.approx(corrected, rel=1e-12)
    assert L1**2 == pytest.approx(2.0)  # l1 / (2 I1) = 3 / (2 m1 l1): the factor above holds for these rods


@pytest.mark.covers("LU-40")
def test_a_run_with_the_formula():
    """Inplane joint, Method 1 index 2, H = 1e-3, 0.2 s: angles as with differences, residual of the same size."""
    runs = [
        cs.simulate(rigid(approximate=approximate), t_end=0.2, method=method(B(2e-3, 0.0), 0), step=1e-3)
        for approximate in (False, True)
    ]
    for name in ("one.phi", "two.phi"):
        assert np.abs(runs[0][name] - runs[1][name]).max() < 1e-9
    assert RIGID_JOINT.levels(*(runs[1][name][-1] for name in RIGID_JOINT.motion))[0] < 1e-8


# -- the oscillator with a spring (force/force) --------------------------------------------------------------


def spring_coupled(p, approximate=True):
    def mass(m, c, d, x, v):
        linear = cs.Linear(
            [[0, 1], [-c / m, -d / m]], [[0], [1 / m]], np.eye(2), x0=[x, v], inputs=["f"], outputs=["x", "v"]
        )
        if not approximate:
            return linear
        return cs.ApproximateJacobian(linear, lambda x, u, by_v, by_x: [[by_x / m], [by_v / m]])

    system = cs.System({"one": mass(p.m1, p.c1, p.d1, p.x1, p.v1), "two": mass(p.m2, p.c2, p.d2, p.x2, p.v2)})
    law = spring(p.ck, p.dk)
    system.law({"one.f": 1.0, "two.f": -1.0}, law, of=["one.x", "one.v", "two.x", "two.v"], name="lam")
    return system


@cache
def spring_error(k, H):
    result = cs.simulate(spring_coupled(lu()), t_end=0.5, method=cs.SemiImplicit(degree=k), step=H)
    exact = lu().exact(result.t)
    return max(np.abs(result["one.x"] - exact[:, 0]).max(), np.abs(result["two.x"] - exact[:, 2]).max())


@pytest.mark.covers("SL-17")
@pytest.mark.parametrize(("k", "texts"), [(0, (0.129, 2.75e-2)), (1, (7.47e-3, 3.00e-4)), (2, (1.16e-3, 9.40e-6))])
def test_spring_coupled_errors(k, texts):
    """2.5: largest position error at H = 5e-3 and 1e-3, T = 0.5, to 1 %."""
    assert [spring_error(k, H) for H in (5e-3, 1e-3)] == pytest.approx(texts, rel=0.01)


@pytest.mark.slow
@pytest.mark.covers("SL-17")
@pytest.mark.parametrize(("k", "value"), [(0, 2.79e-3), (1, 3.00e-6), (2, 9.40e-9)])
def test_spring_coupled_errors_at_the_finest_step(k, value):
    """H = 1e-4."""
    assert spring_error(k, 1e-4) == pytest.approx(value, rel=0.01)


@pytest.mark.covers("SL-17")
@pytest.mark.filterwarnings(
    "ignore:values grow without bound:cosolve.errors.StabilityWarning"
)  # beyond the limit on purpose
def test_where_the_formula_loses_stability():
    """c = 1e5, d = 10, H = 5e-3 (c H^2 / m = 2.5), k = 1: rho 0.984 with the exact Jacobian, above 1 with these."""
    p, step = lu(1e5, 10.0), cs.SemiImplicit(degree=1)
    assert cs.analysis.spectral_radius(spring_coupled(p, approximate=False), step, 5e-3) == pytest.approx(
        0.984, abs=1e-3
    )
    assert cs.analysis.spectral_radius(spring_coupled(p), cs.SemiImplicit(degree=0), 5e-3) < 1.0
    assert cs.analysis.spectral_radius(spring_coupled(p), step, 5e-3) > 1.0
    for t_end, size in ((0.5, 4.0), (2.0, 9e3)):
        once = cs.SemiImplicit(degree=1, repeat=False)
        result = cs.simulate(spring_coupled(p), t_end=t_end, method=once, step=5e-3)
        largest = max(np.abs(result["one.x"]).max(), np.abs(result["two.x"]).max())
        assert largest == pytest.approx(size, rel=0.06)


# -- bad input -----------------------------------------------------------------------------------------------


def test_bad_formulas_are_refused():
    mass = cs.Linear([[0]], [[1]], [[1]], x0=[0], inputs=["f"], outputs=["x"])
    with pytest.raises(cs.errors.SetupError, match=r"give a cosolve\.Subsystem"):
        cs.ApproximateJacobian("mass", lambda x, u, a, b: [[a]])
    with pytest.raises(cs.errors.SetupError, match="must be a function"):
        cs.ApproximateJacobian(mass, [[1.0]])

    class Blind(cs.Subsystem):
        inputs, outputs = ["f"], ["x"]

    with pytest.raises(cs.errors.SetupError, match="does not give its state"):
        cs.ApproximateJacobian(Blind(), lambda x, u, a, b: [[a]])
    wrong = cs.ApproximateJacobian(mass, lambda x, u, a, b: [[a, b]])
    system = cs.System({"one": wrong})
    system.law("one.f", lambda x: 1.0 - x, of="one.x")
    with pytest.raises(cs.errors.SubsystemError, match="gave a Jacobian with shape"):
        cs.simulate(system, t_end=0.1, method=cs.SemiImplicit(degree=0), step=0.1)


def test_everything_else_is_the_subsystem():
    """Capabilities, rollback and results are those of the wrapped subsystem."""
    mass = cs.Linear([[0]], [[1]], [[1]], x0=[0], inputs=["f"], outputs=["x"])
    wrapped = cs.ApproximateJacobian(mass, lambda x, u, a, b: [[a]])
    assert cs.capabilities(wrapped) == cs.capabilities(mass)
