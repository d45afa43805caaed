"""Error levels and orders on the two-mass oscillator (docs/validation/schweizer-lu.md and lu.md)."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from examples.two_mass.model import lu, split
from examples.two_mass_semi_implicit.run import position_error

import cosolve as cs

P = lu()
STEPS = (1e-2, 5e-3, 1e-3, 1e-4)
#: Table 3.1: max position error on [0, 0.5] at STEPS, and the slope between 2e-4 and 1e-4.
TABLE = {
    ("F/F", 0): (2.418e-1, 1.295e-1, 2.754e-2, 2.793e-3, 0.998),
    ("F/F", 1): (2.999e-2, 7.486e-3, 3.004e-4, 3.004e-6, 2.000),
    ("F/F", 2): (8.958e-3, 1.159e-3, 9.388e-6, 9.395e-9, 3.000),
    ("F/D", 0): (2.414e-1, 1.156e-1, 2.391e-2, 2.439e-3, 0.997),
    ("F/D", 1): (2.827e-2, 7.088e-3, 2.851e-4, 2.851e-6, 2.000),
    ("F/D", 2): (9.472e-3, 1.185e-3, 9.576e-6, 9.565e-9, 3.000),
    ("D/D", 0): (4.413e-1, 1.893e-1, 3.420e-2, 3.352e-3, 1.003),
    ("D/D", 1): (1.576e-2, 3.939e-3, 1.576e-4, 1.576e-6, 2.000),
    ("D/D", 2): (3.737e-3, 4.832e-4, 3.894e-6, 3.890e-9, 3.000),
}
MIRRORED = {0: 2.476e-3, 1: 2.285e-6, 2: 6.560e-9}  # D/F at H = 1e-4
#: x1, v1, x2, v2 at t = 0.1 with H = 1e-3 (applied-force 3.1); where only x1 is given: semi-implicit 15.1.
STATES = {
    ("F/F", 0): (-1.5096798891, 33.0757034900, -0.5640405978, 28.2523524020),
    ("F/F", 1): (-1.5278153265, 34.0816975083, -0.5503314930, 27.9778074354),
    ("F/F", 2): (-1.5275424866, 34.0874160472, -0.5503851000, 27.9734632959),
    ("F/D", 0): (-1.5110794730,),
    ("F/D", 1): (-1.5277284632, 34.0813402219, -0.5502314554, 27.9758251834),
    ("F/D", 2): (-1.5275418499,),
    ("D/D", 0): (-1.5260194319,),
    ("D/D", 1): (-1.5275901021, 34.0866079140, -0.5503110237, 27.9786224552),
    ("D/D", 2): (-1.5275388527,),
}
#: Relative L2 error of x1 on [0, 0.1] at H = 1e-3, with the digits of docs/validation/lu.md.
L2 = {
    ("F/F", 0): (1.367e-2, 5e-6),
    ("F/F", 1): (1.497e-4, 5e-8),
    ("F/F", 2): (5.93e-6, 5e-9),
    ("F/D", 0): (1.171e-2, 5e-6),
    ("F/D", 1): (1.516e-4, 5.5e-8),
    ("F/D", 2): (5.57e-6, 5e-9),
    ("D/D", 0): (4.60e-3, 5e-6),
    ("D/D", 1): (4.66e-5, 5e-8),
    ("D/D", 2): (2.17e-6, 5e-9),
}
CASES = [pytest.param(kind, k, id=f"{kind} k={k}") for kind, k in TABLE]


@cache
def error(kind, k, H):
    return position_error(kind, cs.SemiImplicit(degree=k), H)


@cache
def run(kind, k, H=1e-3, t_end=0.1):
    return cs.simulate(split(kind), t_end=t_end, method=cs.SemiImplicit(degree=k), step=H)


@pytest.mark.covers("SL-03")
def test_exact_solution():
    """The reference itself, to the ten digits of 3.1."""
    exact = P.exact(np.array([0.1, 0.5]))
    assert exact[0] == pytest.approx([-1.5275368774, 34.0870596456, -0.5503874963, 27.9735490184], abs=1e-9)
    assert exact[1] == pytest.approx([0.0153268176, -7.4501675931, 0.0344635069, -10.3554600834], abs=1e-9)
    assert P.force(exact[:1])[0] == pytest.approx(916.01427483, abs=1e-7)
    assert run("F/F", 0)["lam"][0] == -2000.0  # u_0 from the initial states, never zero


@pytest.mark.sample(1)
@pytest.mark.covers("SL-03", "SL-04", "SL-05")
@pytest.mark.parametrize(("kind", "k"), CASES)
def test_error_table(kind, k):
    """Table 3.1 to 1 %: the closed-form amplification matrix has these errors, and subsystems are exact here too."""
    found = [error(kind, k, H) for H in STEPS]
    assert found == pytest.approx(TABLE[kind, k][:4], rel=1e-2)


@pytest.mark.sample(1)
@pytest.mark.covers("SL-03", "SL-04", "SL-05", "SL-22", "LU-03", "LU-04", "LU-05")
@pytest.mark.parametrize(("kind", "k"), CASES)
def test_order_is_degree_plus_one(kind, k):
    """Order k+1 as slope between 2e-4 and 1e-4, +-0.02, with the N-dependent start-up degree."""
    slope = np.log2(error(kind, k, 2e-4) / error(kind, k, 1e-4))
    assert slope == pytest.approx(k + 1, abs=0.02)
    assert slope == pytest.approx(TABLE[kind, k][4], abs=2e-3)


@pytest.mark.covers("SL-03", "SL-04", "SL-05")
@pytest.mark.parametrize(("kind", "k"), CASES)
def test_state_at_one_tenth(kind, k):
    """States at t = 0.1, H = 1e-3 to 1e-8 (all printed digits but the last two)."""
    result = run(kind, k)
    found = [result[name][-1] for name in ("one.x", "one.v", "two.x", "two.v")]
    expected = STATES[kind, k]
    assert found[: len(expected)] == pytest.approx(expected, abs=1e-8)


@pytest.mark.covers("LU-03", "LU-04", "LU-05")
@pytest.mark.parametrize(("kind", "k"), CASES)
def test_relative_l2_error(kind, k):
    """Relative L2 error of x1 on [0, 0.1] at H = 1e-3, to the last printed digit."""
    result = run(kind, k)
    exact = P.exact(result.t)[:, 0]
    expected, half_digit = L2[kind, k]
    assert np.linalg.norm(result["one.x"] - exact) / np.linalg.norm(exact) == pytest.approx(expected, abs=half_digit)


@pytest.mark.covers("SL-03", "LU-03")
@pytest.mark.parametrize("k", [0, 1, 2])
def test_velocity_and_force_have_the_same_order(k):
    """15.1: v1 converges as x1 does; so does the coupling force (final update), slopes +-0.15."""
    names, errors = ("one.v", "lam"), []
    for H in (1e-3, 5e-4):
        result = run("F/F", k, H, 0.1)
        exact = P.exact(result.t)
        errors.append([np.abs(result[n] - e).max() for n, e in zip(names, (exact[:, 1], P.force(exact)), strict=True)])
    slopes = np.log2(np.array(errors[0]) / errors[1])
    assert slopes == pytest.approx(k + 1, abs=0.15)


@pytest.mark.slow
@pytest.mark.covers("SL-04")
@pytest.mark.parametrize("k", [0, 1, 2])
def test_mirrored_error_and_order(k):
    """D/F at 1e-4 to 1 %, slope +-0.02."""
    assert error("D/F", k, 1e-4) == pytest.approx(MIRRORED[k], rel=1e-2)
    assert np.log2(error("D/F", k, 2e-4) / error("D/F", k, 1e-4)) == pytest.approx(k + 1, abs=0.02)


@pytest.mark.covers("SL-04", "LU-06")
@pytest.mark.parametrize("k", [0, 1, 2])
def test_mirrored_model_gives_the_mirrored_result(k):
    """Swapping the masses turns F/D into D/F; only the order of sums differs, so 1e-12 relative is rounding.

    The force changes sign with the names: it pulls the *first* mass.
    """
    p = replace(P, c1=800.0, d2=7.0, x1=0.1)
    q = replace(p, m1=p.m2, m2=p.m1, c1=p.c2, c2=p.c1, d1=p.d2, d2=p.d1, x1=p.x2, x2=p.x1, v1=p.v2, v2=p.v1)
    method = cs.SemiImplicit(degree=k)
    a = cs.simulate(split("F/D", p), t_end=0.1, method=method, step=1e-3)
    b = cs.simulate(split("D/F", q), t_end=0.1, method=method, step=1e-3)
    for name, mirrored in (("one.x", "two.x"), ("one.v", "two.v"), ("two.x", "one.x"), ("two.v", "one.v")):
        assert np.abs(a[name] - b[mirrored]).max() < 1e-12 * np.abs(a[name]).max()
    assert np.abs(a["lam"] + b["lam"]).max() < 1e-12 * np.abs(a["lam"]).max()


@pytest.mark.covers("SL-22")
def test_degree_three_needs_a_known_past():
    """Semi-implicit ch. 2: the simple start-up limits k = 3 to order 3; a known past or short pieces give 4."""
    names = ("one.x", "one.v", "two.x", "two.v")
    past = cs.KnownHistory(lambda t: dict(zip(names, P.exact(t)[0], strict=True)))

    def slope(startup):
        errors = []
        for H in (1e-3, 5e-4):
            result = cs.simulate(split("F/F"), t_end=0.1, method=cs.SemiImplicit(degree=3), step=H, startup=startup)
            errors.append(np.abs(result["one.x"] - P.exact(result.t)[:, 0]).max())
        return np.log2(errors[0] / errors[1])

    assert slope(cs.RisingDegree()) == pytest.approx(3.0, abs=0.15)
    assert slope(past) == pytest.approx(4.0, abs=0.15)
    assert slope(None) == pytest.approx(4.0, abs=0.15)
