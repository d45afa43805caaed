"""Crank and sliding lever: elastic inplane joint, and relaxed copies with the rigid one.

Lu (2015), 2.3.3 and 3.3.3.3; Schweizer and Lu (2014), 4.3.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from examples.planar.case import run
from examples.slider_crank.model import ELASTIC_JOINT, SPRUNG_JOINT, energy, flexible, reference_flexible, rigid
from tests.method.constraint.printed import printed

import cosolve as cs

SEMI, EXPLICIT = cs.SemiImplicit, cs.Jacobi
S = cs.StabilisedIndex2
ENERGY_0 = 26.556717523


@cache
def states(t_end, steps):
    return reference_flexible(np.linspace(0.0, t_end, steps + 1))


@cache
def elastic(kind, k, H, t_end):
    """Largest errors of both angles (at all points; every 50 ms) and the change of energy, with the source's start."""
    method, start = kind(degree=k), cs.RisingDegree()
    result = cs.simulate(flexible(h=H), t_end=t_end, method=method, step=H, startup=start)
    exact = states(t_end, round(t_end / 1e-4 if H < 5e-4 else t_end / H))
    gap = np.abs(np.array([result["one.phi"], result["two.phi"]]).T - exact[:, [0, 2]])
    change = ELASTIC_JOINT.energy(result)
    return gap.max(axis=0), gap[:: round(0.05 / H)].max(axis=0), change[-1] - change[0]


@pytest.mark.covers("LU-18", "SL-16")
def test_reference():
    """Monolithic angles at 0.4, 1, 1.4 and 2 s; energy 26.556717523 J, drift below 1e-11 J."""
    found = reference_flexible(np.array([0.0, 0.4, 1.0, 1.4, 2.0]))
    expected = [(0.62246919, 1.40334750), (-0.01834039, -0.05398546), (-1.51128082, -2.14829416)]
    assert found[1:4, [0, 2]] == pytest.approx(np.array(expected), abs=6e-9)
    assert found[4, [0, 2]] == pytest.approx([-4.37438975, -3.87216185], abs=6e-9)
    total = energy(*found.T, stiffness=1e3)
    assert total[0] == pytest.approx(ENERGY_0, abs=5.1e-10)
    assert np.abs(total[:3] - total[0]).max() < 1e-11


@pytest.mark.covers("LU-18", "LU-35")
def test_counts():
    """Planar inplane joint: five coupling variables, with mu six (Lu (2015), 3.2.2)."""
    assert flexible().plan().n_z == 5
    assert rigid().plan().n_z == 6


@pytest.mark.sample(1)
@pytest.mark.covers("LU-18")
@pytest.mark.parametrize(
    ("k", "texts"), [(0, ("1.28e-3", "7.7e-4")), (1, ("9.7e-6", "1.2e-6")), (2, ("1.6e-7", "2.0e-8"))]
)
def test_elastic_errors(k, texts):
    """T = 1, H = 1e-3: errors of both angles sampled every 50 ms, to the printed digits; order k + 1."""
    _, sampled, _ = elastic(SEMI, k, 1e-3, 1.0)
    for value, text in zip(sampled, texts, strict=True):
        assert value == printed(text)
    order = np.log2(elastic(SEMI, k, 2e-3, 1.0)[0] / elastic(SEMI, k, 1e-3, 1.0)[0])
    assert order == pytest.approx(k + 1, abs=0.15 if k else 0.25)  # k = 0: 0.77 and 0.98, settling with H


@pytest.mark.slow
@pytest.mark.covers("LU-18")
@pytest.mark.parametrize("k", [0, 1, 2])
def test_elastic_orders_at_fine_steps(k):
    """Between 5e-4 and 2.5e-4 the order is k + 1 within 0.15."""
    times = np.linspace(0.0, 1.0, 4001)
    exact = reference_flexible(times)[:, [0, 2]]
    gaps = []
    for H in (5e-4, 2.5e-4):
        result = cs.simulate(flexible(h=H), t_end=1.0, method=SEMI(degree=k), step=H)
        found = np.array([result["one.phi"], result["two.phi"]]).T
        gaps.append(np.abs(found - exact[:: round(H / 2.5e-4)]).max(axis=0))
    assert np.log2(gaps[0] / gaps[1]) == pytest.approx(k + 1, abs=0.15)


@pytest.mark.covers("LU-18")
@pytest.mark.parametrize(("H", "text"), [(1e-3, "-1.45e-2"), pytest.param(5e-4, "-7.98e-3", marks=pytest.mark.slow)])
def test_elastic_dissipation(H, text):
    """k = 0, T = 1: the coupling takes energy out."""
    assert elastic(SEMI, 0, H, 1.0)[2] == printed(text)


@pytest.mark.slow
@pytest.mark.covers("LU-18")
def test_elastic_dissipation_at_the_finest_step():
    """H = 2.5e-4: -4.21e-3 J."""
    result = cs.simulate(flexible(h=2.5e-4), t_end=1.0, method=SEMI(degree=0), step=2.5e-4)
    change = ELASTIC_JOINT.energy(result)
    assert change[-1] - change[0] == printed("-4.21e-3")


# -- two seconds, against the explicit scheme ----------------------------------------------------------------


@pytest.mark.covers("SL-16")
@pytest.mark.parametrize(
    ("kind", "H", "change", "phi1", "phi2"),
    [
        (EXPLICIT, 1e-3, 0.477, 1.05e-2, 5.41e-3),
        pytest.param(EXPLICIT, 5e-4, 0.150, 4.40e-3, 2.32e-3, marks=pytest.mark.slow),
        pytest.param(SEMI, 1e-3, -0.1386, 6.35e-3, 3.48e-3, marks=pytest.mark.slow),  # quick over one second, see above
        pytest.param(SEMI, 5e-4, -0.0825, 3.45e-3, 1.88e-3, marks=pytest.mark.slow),
        pytest.param(SEMI, 1e-4, -0.0200, 7.50e-4, 4.04e-4, marks=pytest.mark.slow),
        pytest.param(EXPLICIT, 1e-4, 0.0225, 7.87e-4, 4.21e-4, marks=pytest.mark.slow),
    ],
)
def test_semi_implicit_dissipates_explicit_pumps(kind, H, change, phi1, phi2):
    """k = 0, T = 2: E(2) - E(0) to 2 %, largest errors of the angles to 1 %."""
    errors, _, found = elastic(kind, 0, H, 2.0)
    assert found == pytest.approx(change, rel=0.02)
    assert errors == pytest.approx([phi1, phi2], rel=0.01)


@pytest.mark.sample(1)
@pytest.mark.covers("SL-16")
@pytest.mark.parametrize(
    ("kind", "k", "phi1", "change"),
    [
        pytest.param(SEMI, 1, (4.74e-5, 1.18e-5), (-1.93e-5, -4.85e-6), marks=pytest.mark.slow),
        pytest.param(SEMI, 2, (1.197e-6, 1.496e-7), (3.68e-5, 4.60e-6), marks=pytest.mark.slow),
        (EXPLICIT, 1, (2.36e-4, 5.91e-5), (3.95e-4, 6.1e-5)),
        (EXPLICIT, 2, (1.08e-5, 1.34e-6), (-3.29e-4, -4.14e-5)),
    ],
)
def test_higher_degrees(kind, k, phi1, change):
    """H = 1e-3 and 5e-4: slopes 2.0 and 3.0 (+-0.05); the sign rule of the energy turns around for k = 2."""
    found = [elastic(kind, k, H, 2.0) for H in (1e-3, 5e-4)]
    assert [f[0][0] for f in found] == pytest.approx(phi1, rel=0.01)
    assert [f[2] for f in found] == pytest.approx(change, rel=0.02)
    assert np.log2(found[0][0][0] / found[1][0][0]) == pytest.approx(k + 1, abs=0.05)


@pytest.mark.sample(1)
@pytest.mark.covers("SL-16")
@pytest.mark.parametrize("k", [1, 2])
def test_slopes_over_one_second(k):
    """The quick variant for the semi-implicit method: T = 1, between 2e-3 and 1e-3."""
    slope = np.log2(elastic(SEMI, k, 2e-3, 1.0)[0][0] / elastic(SEMI, k, 1e-3, 1.0)[0][0])
    assert slope == pytest.approx(k + 1, abs=0.05)


# -- the rigid joint -----------------------------------------------------------------------------------------


@pytest.mark.covers("LU-28", "LU-35")
def test_relaxed_copies_limit_the_order():
    """k = 1, omega = 0.9: order 0.97 when the copies of states are relaxed too, 2 when only lam and mu are.

    docs/validation/lu.md; T = 0.4, H = 4e-3 and 2e-3.
    """
    short = replace(SPRUNG_JOINT, t_end=0.4)
    exact = short.reference(np.linspace(0.0, 0.4, 201))[0]
    slopes = {}
    for relaxed in ("all", "multipliers"):
        gaps = []
        for H in (4e-3, 2e-3):
            result = run(short, S(0.9, relaxed), 1, H)
            found = np.array([result["one.phi"], result["two.phi"]]).T
            gaps.append(np.abs(found - exact[:: round(H / 2e-3)]).max())
        slopes[relaxed] = np.log2(gaps[0] / gaps[1])
    assert slopes["all"] == pytest.approx(0.97, abs=0.15)
    assert slopes["multipliers"] == pytest.approx(2.0, abs=0.15)
