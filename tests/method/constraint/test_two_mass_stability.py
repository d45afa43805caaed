"""Stability of the three constraint methods on the rigid two-mass oscillator (docs/theory.md, "Constraints").

Radii are taken from the engine's own macro step; a closed form written from 10.2 checks them independently.
"""

import numpy as np
import pytest
from examples.two_mass_rigid.model import STIFF, equal, split
from examples.two_mass_rigid.study import radii, radius
from tests.method.constraint import closed_form
from tests.method.constraint.printed import printed

import cosolve as cs

FREE = {"allow_unstable": True}


def B(beta, gamma):
    return cs.Baumgarte(beta, gamma, **FREE)


def W(a, b):
    return cs.WeightedMultipliers(a, b, **FREE)


def S(omega):
    return cs.StabilisedIndex2(omega, **FREE)


#: 10.3: radii for H -> 0 at k = 0, 1, 2, 3; Method 1 with beta / H and gamma / H^2
LIMITS = [
    (B(0.0, 0.0), (1.0000, 3.7321, 5.3431, 6.7283)),
    (B(0.4, 0.0), (0.1111, 1.8669, 2.8772, 3.7587)),
    (B(2.0, 0.0), (0.6000, 1.1779, 1.9763, 2.6893)),
    (B(1e9, 0.0), (1.0, 1.0, 1.7165, 2.3658)),
    (B(0.4, 0.04), (0.2063, 1.4312, 2.2600, 2.9784)),
    (B(2.0, 1.0), (0.5345, 0.4409, 0.4036, 0.7688)),
    (B(20.0, 100.0), (0.9110, 0.9073, 0.9048, 0.9050)),
    (W(0.0, 0.0), (1.0000, 3.7321, 5.3431, 6.7283)),
    (W(1.0, 0.0), (0.0, 2.0, 3.1478, 4.1501)),
    (W(1.0, 1.0), (0.5774, 0.5774, 1.1325, 1.9699)),
    (W(1.0, 2.0), (0.7071, 0.7071, 0.7128, 0.7303)),
    (S(1.0), (0.0, 1.0, 1.7165, 2.3658)),
    (S(0.9), (0.3162, 0.5000, 1.3015, 1.9336)),
    (S(0.8), (0.4472, 0.4472, 0.8319, 1.4926)),
    (S(0.7), (0.5477, 0.5477, 0.4000, 1.0360)),
]
#: 15.3: treatment, k, H, radii at (c, d) = (1e3, 10), (1e5, 10), (1e3, 1e3), (1e5, 1e3)
TABLE = [
    (B(0.0, 0.0), 0, 5e-3, ("0.98619", "0.98456", "0.99500", "0.54196")),
    (B(0.2, 0.0), 0, 5e-3, ("0.98346", "0.98251", "0.99500", "0.97202")),
    (B(0.2, 0.01), 0, 5e-3, ("0.98369", "4.46333", "0.99500", "1.00775")),
    (B(0.02, 1e-4), 0, 5e-3, ("0.98343", "1.03551", "0.99500", "0.56687")),
    (B(2e-3, 1e-6), 0, 5e-3, ("0.98347", "0.97468", "0.99500", "0.54210")),
    (B(2e-3, 1e-6), 1, 5e-3, ("1.41343", "1.35597", "0.99500", "0.54195")),
    (B(2e-3, 1e-6), 1, 1e-3, ("0.99667", "0.99667", "0.99900", "0.88469")),
    (B(2e-3, 0.0), 1, 1e-3, ("1.17462", "1.17356", "0.99900", "0.89812")),
    (W(1.0, 0.0), 0, 5e-3, ("0.98347", "0.97633", "0.99500", "0.54234")),
    (W(1.0, 1.0), 0, 5e-3, ("0.98347", "1.49909", "0.99500", "0.65298")),
    (W(1.0, 1.0), 1, 1e-3, ("0.99667", "0.99667", "0.99900", "0.88469")),
    (S(1.0), 0, 5e-3, ("0.98347", "0.98290", "0.99500", "0.54167")),
    (S(0.9), 1, 5e-3, ("0.98347", "0.97906", "0.99500", "0.54209")),
    (S(1.0), 1, 5e-3, ("0.99307", "0.99242", "0.99842", "0.83278")),
    (S(1.0), 2, 5e-3, ("1.70560", "1.66623", "1.71408", "1.46018")),
]
POINTS = ((1e3, 10.0), (1e5, 10.0), (1e3, 1e3), (1e5, 1e3))


def described(treatment):
    """Kind and parameters for the closed form."""
    if isinstance(treatment, cs.Baumgarte):
        return 1, (treatment.beta, treatment.gamma)
    if isinstance(treatment, cs.WeightedMultipliers):
        return 2, (treatment.a, treatment.b)
    return 3, (treatment.relaxation,)


@pytest.mark.covers("LU-30")
@pytest.mark.parametrize(("treatment", "expected"), LIMITS, ids=str)
def test_limit_of_small_steps(treatment, expected):
    """The table of 10.3 to 1e-4, all degrees."""
    assert [treatment.limit_radius(k) for k in range(4)] == pytest.approx(expected, abs=1e-4)


@pytest.mark.covers("LU-30")
@pytest.mark.parametrize(("treatment", "expected"), LIMITS, ids=str)
def test_limit_is_that_of_the_macro_step(treatment, expected):
    """The engine's macro step at H = 1e-3 with c = d = 1e-6: stiffness and damping drop out (1e-4).

    The motion of both masses together adds two eigenvalues at 1, set aside here. Dead-beat modes are defective: an
    eigenvalue 0 shows as a root of the rounding, at most 0.01.
    """
    H = 1e-3
    if isinstance(treatment, cs.Baumgarte):
        treatment = B(treatment.beta * H, treatment.gamma * H**2)
    for k, limit in enumerate(expected[:3]):
        step = cs.SemiImplicit(degree=k, constraints=treatment, final_update=False)
        eigenvalues = cs.analysis.amplification_matrix(split(equal(1e-6, 1e-6)), step, H).eigenvalues
        others = eigenvalues[np.argsort(np.abs(eigenvalues - 1.0))[2:]]
        assert np.abs(others).max() == pytest.approx(limit, abs=1e-4 if limit else 1e-2)


@pytest.mark.covers("LU-20", "LU-28", "LU-29", "LU-30")
def test_closed_forms_of_the_limits():
    """|2b - 1| / (2b + 1), 2 + sqrt 3, 1 / sqrt 3 and sqrt(1 - omega)."""
    for b in (0.0, 0.1, 0.5, 0.7, 3.0):
        assert B(b, 0.0).limit_radius(0) == pytest.approx(abs(2 * b - 1) / (2 * b + 1), abs=1e-7)
    assert B(0.0, 0.0).limit_radius(1) == pytest.approx(2 + 3**0.5, rel=1e-12)
    assert W(1.0, 1.0).limit_radius(0) == cs.WeightedMultipliers().limit_radius(0) == pytest.approx(3**-0.5, rel=1e-12)
    assert W(1.0, 1.0).limit_radius(1) == pytest.approx(3**-0.5, rel=1e-12)
    for omega in (0.3, 0.7, 0.9):
        assert S(omega).limit_radius(0) == pytest.approx((1 - omega) ** 0.5, rel=1e-12)
    assert S(0.9).limit_radius(1) == pytest.approx(0.5, abs=1e-12)
    # k = 2: stable up to omega = 0.8345
    assert S(0.83).limit_radius(2) < 1 < S(0.84).limit_radius(2)


@pytest.mark.covers("LU-11")
@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize("pair", [(0.02, 1e-4), (2e-3, 0.0)], ids=str)
def test_scaling_invariance_of_the_first_method(pair, k):
    """rho(H, c, d) = rho(H / 5, 25 c, 5 d) with beta / 5 and gamma / 25, by the macro step, to 1e-10."""

    def rho(by):
        treatment = B(pair[0] / by, pair[1] / by**2)
        step = cs.SemiImplicit(degree=k, constraints=treatment, final_update=False)
        return np.abs(
            cs.analysis.amplification_matrix(split(equal(by**2 * 2e3, by * 20.0)), step, 5e-3 / by).eigenvalues
        ).max()

    assert rho(5.0) == pytest.approx(rho(1.0), abs=1e-10)


@pytest.mark.covers("LU-30", "LU-31")
@pytest.mark.parametrize(("treatment", "k", "H", "expected"), TABLE, ids=str)
def test_radii_of_the_table(treatment, k, H, expected):
    """15.3 to the printed digits, by the engine's macro step and by the closed form."""
    kind, parameters = described(treatment)
    for (c, d), text in zip(POINTS, expected, strict=True):
        p = equal(c, d)
        assert radius(treatment, k, H, p) == printed(text)
        assert closed_form.radius(p, kind, parameters, k, H) == printed(text)


@pytest.mark.covers("LU-30")
def test_the_exact_system():
    """The line "exact" of 15.3: the slowest decay of both masses as one and of nothing else."""
    for (c, d), text in zip(POINTS, ("0.98347", "0.98347", "0.99500", "0.54195"), strict=True):
        rates = np.linalg.eigvals(equal(c, d).A)
        assert float(np.exp(rates.real.max() * 5e-3)) == printed(text)


@pytest.mark.covers("LU-19")
def test_index_3_is_marginal():
    """rho -> 1 for H -> 0, with an eigenvalue at -1."""
    step = cs.SemiImplicit(degree=0, constraints=B(0.0, 0.0), final_update=False)
    eigenvalues = cs.analysis.amplification_matrix(split(equal(1e3, 10.0)), step, 1e-5).eigenvalues
    assert np.abs(eigenvalues + 1).min() < 1e-3
    assert np.abs(eigenvalues).max() < 1.0


@pytest.mark.covers("LU-31")
def test_large_parameters():
    """(0.2, 0.01), c = 1e5, d = 10: 4.463 with k = 0, H = 5e-3; 0.99666 with k = 1, H = 1e-3."""
    assert radius(B(0.2, 0.01), 0, 5e-3, equal(1e5, 10.0)) == printed("4.463")
    assert radius(B(0.2, 0.01), 1, 1e-3, equal(1e5, 10.0)) == printed("0.99666")


@pytest.mark.covers("LU-31")
def test_index_2_and_3_are_stable_up_to_1e5():
    """k = 0, H = 5e-3: stable for c <= 1e5; index 2 (0.2) fails at c = 1e6."""
    c, d = 10.0 ** np.arange(2, 6), 10.0 ** np.arange(0, 5)
    for treatment in (B(0.0, 0.0), B(0.2, 0.0)):
        assert radii(treatment, 0, 5e-3, c, d).max() < 1.0
    assert radius(B(0.2, 0.0), 0, 5e-3, equal(1e6, 10.0)) > 1.0


@pytest.mark.covers("LU-32")
def test_leading_terms_lose_stability():
    """App. B Jacobian, H = 1e-3, k = 1, c = 1e3; with the subsystems' own Jacobian all of these are below 1."""
    expected = {
        (B(2e-3, 1e-6), 1e3): "0.9990",
        (B(2e-3, 1e-6), 1e4): "1.0496",
        (W(1.0, 1.0), 1e3): "1.0901",
        (W(1.0, 1.0), 1e4): "1.174",
        (B(0.02, 1e-4), 1e5): "1.0109",
    }
    for (treatment, d), text in expected.items():
        p = equal(1e3, d)
        assert radius(treatment, 1, 1e-3, p, approximate=True) == printed(text)
        assert radius(treatment, 1, 1e-3, p) < 1.0
    for d in (1e3, 1e4, 1e5):  # large parameters hold on longer
        assert radius(B(0.2, 0.01), 1, 1e-3, equal(1e3, d), approximate=True) < 1.0
    assert radius(B(0.2, 0.01), 1, 1e-3, equal(1e3, 1e6), approximate=True) == pytest.approx(1.00119, abs=1e-5)


@pytest.mark.covers("LU-33")
def test_stabilised_on_the_decades():
    """Method 3, k = 0, H = 5e-3: rho <= 1 + 1e-9 at every decade of c in 10 .. 1e7 and d in 1 .. 1e6."""
    found = radii(S(1.0), 0, 5e-3, 10.0 ** np.arange(1, 8), 10.0 ** np.arange(0, 7))
    assert found.max() <= 1.0 + 1e-9


@pytest.mark.covers("LU-33")
def test_stabilised_between_the_decades():
    """Between them it is not: narrow windows where a mass swings more than half a turn in a macro step.

    See docs/validation/lu.md. Below c = 5e5, and with d > 90 anywhere, everything is stable.
    """
    assert radius(S(1.0), 0, 5e-3, equal(2.15443469e6, 1.0)) == pytest.approx(1.8028, abs=1e-4)
    assert closed_form.radius(equal(2.15443469e6, 1.0), 3, (1.0,), 0, 5e-3) == pytest.approx(1.8028, abs=1e-4)
    c = np.concatenate([np.geomspace(10.0, 4e5, 30), np.geomspace(4.5e5, 1e7, 80)])
    d = np.geomspace(1.0, 1e6, 19)
    found = np.array([[closed_form.radius(equal(x, y), 3, (1.0,), 0, 5e-3) for y in d] for x in c])
    unstable = np.argwhere(found > 1.0 + 1e-9)
    assert len(unstable) > 0
    assert c[unstable[:, 0]].min() > 5e5
    assert d[unstable[:, 1]].max() < 90.0
    swing = 5e-3 * np.sqrt(c[unstable[:, 0]]) / np.pi  # half turns of mass 1 per macro step
    assert swing.min() > 1.0


@pytest.mark.covers("LU-33")
def test_very_different_frequencies():
    """Fig. 43: c1 = 1e5, c2 = 1e3, m2 = 10: printed radii at H = 1, 5, 10, 20 ms, below and near the exact ones."""
    steps, texts = (1e-3, 5e-3, 1e-2, 2e-2), ("0.99973", "0.99844", "0.99412", "0.95869")
    for H, text, exact in zip(steps, texts, ("0.99973", "0.99864", "0.99728", "0.99456"), strict=True):
        assert radius(S(1.0), 0, H, STIFF) == printed(text)
        assert float(np.exp(np.linalg.eigvals(STIFF.A).real.max() * H)) == printed(exact)


def test_the_acceleration_level_alone_can_be_blind():
    """Method 2, k = 0: where the end acceleration does not answer to a constant force, G^acc = 0 and rho has a pole.

    For overdamped masses the response changes sign on a curve in the plane of c and d; c = 46.4 lies on it.
    """
    d = np.linspace(3000.0, 6000.0, 301)
    found = np.array([closed_form.radius(equal(46.4, x), 2, (1.0, 1.0), 0, 5e-3) for x in d])
    assert found.max() > 10.0
    assert np.median(found) < 1.0
    worst = equal(46.4, float(d[found.argmax()]))
    assert radius(W(1.0, 1.0), 0, 5e-3, worst) == pytest.approx(found.max(), rel=1e-3)
    assert radius(B(2e-3, 1e-6), 0, 5e-3, worst) < 1.0  # the sum of the levels is not
