"""Rigid two-mass oscillator: errors and orders of the three constraint methods (Lu (2015), 3.1 and 3.3)."""

from functools import cache

import numpy as np
import pytest
from examples.two_mass_rigid.model import RigidTwoMass, split
from examples.two_mass_rigid.study import T_END, errors, method, run
from tests.method.constraint.printed import printed

import cosolve as cs

B, W, S = cs.Baumgarte, cs.WeightedMultipliers, cs.StabilisedIndex2
FREE = {"allow_unstable": True}
INDEX_3 = B(0.0, 0.0, **FREE)
PAIRS = ((0.2, 0.01), (0.02, 1e-4), (2e-3, 1e-6))


@cache
def found(treatment, k, H, approximate=False):
    return errors(run(treatment, k, H, approximate=approximate))


def orders(treatment, k, coarse=1e-3):
    """Slopes of x, v, lam, position and velocity residual between `coarse` and half of it."""
    return np.log2(np.array(found(treatment, k, coarse)) / np.array(found(treatment, k, coarse / 2)))


@pytest.mark.covers("LU-19")
def test_exact_solution_and_start():
    """x, v, lam at t = 0.1 as printed in 15.3, lam(0) = 533.3333 from g'' = 0 without being told."""
    p = RigidTwoMass()
    x, v = p.exact(np.array([0.1]))[0]
    assert (x, v) == pytest.approx((-1.04647729, -66.96067043), abs=5e-9)
    assert p.exact_force(np.array([[x, v]]))[0] == pytest.approx(-8.29781095, abs=5e-9)
    assert run(INDEX_3, 0, 1e-2)["lam"][0] == pytest.approx(1600.0 / 3.0, rel=1e-12)


@pytest.mark.sample(12)
@pytest.mark.covers("LU-19", "LU-20", "LU-21", "LU-22", "LU-23", "LU-24", "LU-27", "LU-28", "LU-29")
@pytest.mark.parametrize(
    ("treatment", "k", "x"),
    [
        (INDEX_3, 0, "5.3e-10"),
        (B(0.2, 0.0), 0, "4.85e-5"),
        (B(0.2, 0.0, **FREE), 1, "3.2e-9"),
        (B(0.02, 0.0), 0, "1.81e-5"),
        (B(2e-3, 0.0), 0, "2.49e-6"),
        (B(0.2, 0.01), 0, "1.00e-2"),
        (B(0.2, 0.01), 1, "4.2e-5"),
        (B(0.2, 0.01), 2, "2.4e-7"),
        (B(0.02, 1e-4), 0, "5.91e-4"),
        (B(0.02, 1e-4), 1, "3.9e-6"),
        (B(0.02, 1e-4), 2, "4.9e-8"),
        (B(2e-3, 1e-6), 0, "9.94e-6"),
        (B(2e-3, 1e-6), 1, "4.4e-8"),
        (B(2e-3, 1e-6), 2, "1.3e-9"),
        (W(1.0, 0.0), 0, "6.36e-7"),
        (W(1.0, 1.0), 0, "4.45e-6"),
        (W(1.0, 1.0), 1, "7.4e-9"),
        (S(), 0, "1.07e-5"),
        (S(**FREE), 1, "9.0e-10"),
        (S(0.9), 0, "3.82e-6"),
        (S(0.9), 1, "7.2e-6"),
        (S(0.7), 0, "4.52e-5"),
        (S(0.7), 1, "2.8e-5"),
        (S(0.7), 2, "2.3e-5"),
    ],
    ids=str,
)
def test_errors_of_the_table(treatment, k, x):
    """Relative L2 error of x1 at H = 1e-3, all entries of 15.3, to the printed digits."""
    assert found(treatment, k, 1e-3).x == printed(x)


@pytest.mark.covers("LU-19")
def test_index_3():
    """Distance at rounding, orders 4 / 2 / 1 of x / v / lam, and a velocity residual that alternates in sign."""
    assert found(INDEX_3, 0, 1e-3).position < 1e-12
    assert orders(INDEX_3, 0, 2e-3)[:3] == pytest.approx([4, 2, 1], abs=0.15)
    result = run(INDEX_3, 0, 1e-3)
    gap = (result["two.v"] - result["one.v"])[1:]
    assert (np.sign(np.diff(gap)[1:]) != np.sign(np.diff(gap)[:-1])).mean() > 0.9  # the marginal mode at -1


@pytest.mark.covers("LU-20")
@pytest.mark.parametrize("beta", [0.2, 0.02, 2e-3])
def test_index_2(beta):
    """Order 2 in x and v, 1 in lam, 2 in the distance."""
    assert orders(B(beta, 0.0), 0)[:4] == pytest.approx([2, 2, 1, 2], abs=0.15)


@pytest.mark.covers("LU-21")
@pytest.mark.parametrize("pair", PAIRS[:2], ids=str)
def test_index_1_loses_an_order(pair):
    """k = 0 with large parameters: order 1 in everything."""
    assert orders(B(*pair), 0)[:3] == pytest.approx([1, 1, 1], abs=0.15)


@pytest.mark.covers("LU-21")
def test_index_1_loses_an_order_late():
    """Small parameters: 1.3 between 2e-3 and 1e-3, 1.06 between 2.5e-4 and 1.25e-4; v from 1.9 to 1.1."""
    first, last = orders(B(2e-3, 1e-6), 0, 2e-3), orders(B(2e-3, 1e-6), 0, 2.5e-4)
    assert first[:2] == pytest.approx([1.32, 1.9], abs=0.05)
    assert last[:3] == pytest.approx([1.06, 1.1, 1.0], abs=0.05)


@pytest.mark.sample(3)
@pytest.mark.covers("LU-22")
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_index_1_higher_degrees(pair, k):
    """Order k + 1 in x, v and lam for all pairs (small ones: between 2.5e-4 and 1.25e-4, where v has settled)."""
    small = pair == PAIRS[2]
    assert orders(B(*pair), k, 2.5e-4 if small else 1e-3)[:3] == pytest.approx([k + 1] * 3, abs=0.15)


@pytest.mark.covers("LU-23")
@pytest.mark.parametrize("treatment", [W(1.0, 0.0), W(1.0, 1.0)], ids=str)
def test_weighted_multipliers(treatment):
    """k = 0: order 3 in x, 2 in v, 1 in lam, 3 in the distance; no order is lost with the acceleration level."""
    assert orders(treatment, 0)[:4] == pytest.approx([3, 2, 1, 3], abs=0.15)


@pytest.mark.covers("LU-24")
def test_weighted_multipliers_degree_1():
    """Order 4 / 3.5 / 2; degree 2 grows by 1.13 a step and is refused unless asked for."""
    assert orders(W(1.0, 1.0), 1, 2e-3)[:3] == pytest.approx([4, 3.5, 2], abs=0.15)
    with pytest.raises(cs.errors.SetupError, match=r"multiplied by 1\.13"):
        run(W(1.0, 1.0), 2, 1e-3)
    with pytest.warns(cs.errors.StabilityWarning, match="'lam' has reached"):
        wild = run(W(1.0, 1.0, **FREE), 2, 2.5e-4)  # 400 steps: 1.13^400 = 1e21
    assert np.abs(wild["two.x"] - wild["one.x"]).max() > 1.0


@pytest.mark.covers("LU-25")
@pytest.mark.parametrize("k", [0, 1])
def test_method_1_is_method_2(k):
    """a = beta G_v / G_x and b = gamma G_a / G_x, from the responses of both masses: trajectories agree to 1e-11."""
    H, (beta, gamma) = 1e-3, PAIRS[2]
    from cosolve.signal import Polynomial

    weight = np.eye(k + 1)[k]  # the basis polynomial of the end value: 1, or s
    u = Polynomial(0.0, H, np.zeros((k + 1, 2)))
    plan = split().plan()
    g_x, g_v, g_a = -sum(s.jacobian(0.0, H, u, weight)[:, 0] for s in plan.subsystems)
    a, b = beta * g_v / g_x, gamma * g_a / g_x
    if k == 0:
        assert (a, b) == pytest.approx((3.994733, 1.989284), abs=5e-7)
    p = RigidTwoMass()
    gap = []
    for treatment in (B(beta, gamma), W(a, b)):
        # degree 1 starts with one step of degree 1 as well: the end value is its second node
        result = cs.simulate(split(p), t_end=T_END, method=method(treatment, k), step=H)
        gap.append(np.array([result[name] for name in ("one.x", "one.v", "two.x", "two.v", "lam")]))
    scale = np.abs(gap[0]).max(axis=1, keepdims=True)
    assert (np.abs(gap[0] - gap[1]) / scale).max() < 1e-11


@pytest.mark.covers("LU-26")
def test_index_3_is_the_same_in_both_methods():
    """a = b = 0 and beta = gamma = 0: not one bit differs."""
    one, two = run(INDEX_3, 0, 1e-3), run(W(0.0, 0.0, **FREE), 0, 1e-3)
    for name in ("one.x", "one.v", "two.x", "two.v", "lam"):
        assert np.array_equal(one[name], two[name])


@pytest.mark.covers("LU-27")
def test_stabilised():
    """Orders 2 / 2 / 1; distance and rate at rounding; mu of order 2."""
    assert orders(S(), 0)[:3] == pytest.approx([2, 2, 1], abs=0.15)
    best = found(S(), 0, 1e-3)
    assert best.position < 1e-13
    assert best.velocity < 1e-12
    mu = [np.abs(run(S(), 0, H)["mu"]).max() for H in (1e-3, 5e-4)]
    assert np.log2(mu[0] / mu[1]) == pytest.approx(2, abs=0.15)
    assert run(S(), 0, 1e-3)["mu"][0] == 0.0


@pytest.mark.covers("LU-28")
@pytest.mark.parametrize(("omega", "k"), [(0.9, 0), (0.9, 1), (0.7, 0), (0.7, 1), (0.7, 2)])
def test_relaxation(omega, k):
    """Order 2 in the states, 3 in the distance and 2 in its rate, for every degree that is stable."""
    measured = orders(S(omega), k)
    assert measured[[0, 1, 3, 4]] == pytest.approx([2, 2, 3, 2], abs=0.15)
    assert measured[2] == pytest.approx(1 if k == 0 else 1.5, abs=0.15)


@pytest.mark.covers("LU-29")
def test_marginal_degree_1():
    """k = 1, omega = 1: a warning, order 4 / 4 / 2 on this smooth run; k = 2 refused above omega = 0.83."""
    with pytest.warns(cs.errors.StabilityWarning, match="multiplied by 1 in every step"):
        run(S(), 1, 1e-2)
    assert orders(S(**FREE), 1, 2e-3)[:3] == pytest.approx([4, 4, 2], abs=0.15)
    with pytest.raises(cs.errors.SetupError, match="smaller relaxation"):
        run(S(0.9), 2, 1e-3)
    run(S(0.8), 2, 1e-2)  # runs


def jumping(at):
    """Two free masses on one rod whose length grows by 1 at that time: the positions cannot follow at once."""

    def mass(m):
        return cs.Linear(
            [[0, 1], [0, 0]], [[0], [1 / m]], [[1, 0], [0, 1], [0, 0]], [[0], [0], [1 / m]], x0=[0.0, 0.0],
            inputs=["f"], outputs=["x", "v", "a"],
        )  # fmt: skip

    rod = cs.Static(lambda t, u: 1.0 if t > at else 0.0, inputs=[], outputs=["s"])
    system = cs.System({"one": mass(1.0), "two": mass(2.0), "rod": rod})
    of = [f"{name}.{level}" for name in ("one", "two") for level in "xva"]
    system.constraint(
        {"lam": {"one.f": 1, "two.f": -1}},
        lambda x1, v1, a1, x2, v2, a2, s: (x2 - x1 - s, v2 - v1, a2 - a1),
        of=[*of, "rod.s"],
    )
    return system


@pytest.mark.covers("LU-46")
@pytest.mark.parametrize("frequency", [10.0, 100.0, 1000.0])
def test_parameters_of_the_note(frequency):
    """gamma = 1 / w^2 and beta = 2 alpha / w^2 with alpha = w: the three pairs are aperiodic at 10, 100, 1000 rad/s.

    A violation that obeys g + beta g' + gamma g'' = 0 decays as (1 + w t) exp(-w t). The run is given one by a jump.
    """
    beta, gamma = PAIRS[(10.0, 100.0, 1000.0).index(frequency)]
    assert (beta, gamma) == pytest.approx((2.0 / frequency, 1.0 / frequency**2), rel=1e-14)
    H = 1e-2 / frequency
    run = cs.simulate(jumping(9.5 * H), t_end=410 * H, method=cs.SemiImplicit(1, constraints=B(beta, gamma)), step=H)
    g = run["rod.s"] - (run["two.x"] - run["one.x"])
    t = run.t - run.t[10]
    assert g[:10] == pytest.approx(0.0, abs=1e-12)
    assert g[10:] == pytest.approx((1 + frequency * t[10:]) * np.exp(-frequency * t[10:]), abs=0.02)
    assert run["one.x"] == pytest.approx(-2.0 * run["two.x"], abs=1e-9)  # the rod moves no centre of mass


@pytest.mark.covers("LU-46")
def test_default_parameters_are_aperiodic():
    """Without parameters beta = 2 H and gamma = H^2: frequency 1 / H, damping ratio 1; at H = 1e-3 the third pair."""
    for H in (1e-3, 2e-4):
        ((_, level),) = B().combinations(H)
        assert level.velocity / (2.0 * level.acceleration**0.5) == pytest.approx(1.0, rel=1e-14)
        assert level.acceleration**-0.5 == pytest.approx(1.0 / H, rel=1e-14)
    for name in ("one.x", "two.v", "lam"):
        assert np.array_equal(run(B(), 1, 1e-3)[name], run(B(2e-3, 1e-6), 1, 1e-3)[name])
