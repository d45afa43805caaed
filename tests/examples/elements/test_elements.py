"""Parts of models by themselves: friction that sticks and slips, contacts, liquids, current loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from examples import elements as el

BRAKE = el.LuGre(stiffness=1e5, damping=100.0, viscosity=1.0, sliding=4.0, sticking=6.0, stribeck_speed=0.01)
DIESEL = el.Liquid(826.0, 1.45e9, 9.5, 5e3, 5e4, 4e-3)


def pulled(force, t_end: float, mass: float = 1.0) -> np.ndarray:
    """A mass on the brake, pulled by `force(t)` from rest: position, speed and bristles at the end."""

    def rhs(t, x):
        return [x[1], (force(t) - BRAKE.force(x[1], x[2])) / mass, BRAKE.rate(x[1], x[2])]

    return solve_ivp(rhs, (0, t_end), [0.0, 0.0, 0.0], "Radau", rtol=1e-8, atol=1e-12).y[:, -1]


@pytest.mark.covers("SC-47", "AP-42")
@pytest.mark.parametrize("v", [1e-3, 0.01, 0.3, -0.3])
def test_steady_sliding_follows_the_stribeck_curve(v: float) -> None:
    """Bristles that have come to rest: `g(v) + s2 v`, by integrating them and not by their closed form."""
    z = solve_ivp(lambda t, z: [BRAKE.rate(v, z[0])], (0, 40 * 6e-5 / abs(v)), [0.0], "Radau", rtol=1e-10, atol=1e-14)
    level = 4.0 + 2.0 * np.exp(-((v / 0.01) ** 2))
    assert BRAKE.force(v, float(z.y[0, -1])) == pytest.approx(np.sign(v) * level + 1.0 * v, rel=1e-6)


@pytest.mark.covers("SC-47", "AP-42")
def test_before_it_slides_it_is_a_spring() -> None:
    """A push of a hundredth of the sticking force bends the bristles by `F / s0`."""
    x, _, z = pulled(lambda t: 0.06 * min(t, 1.0), 3.0)
    assert x == pytest.approx(0.06 / 1e5, rel=0.02)
    assert z == pytest.approx(0.06 / 1e5, rel=0.02)


@pytest.mark.covers("AP-42")
def test_it_holds_half_of_what_it_can() -> None:
    """No creeping: under half of the sticking force it moves by less than a micrometre in a second."""
    early, late = (pulled(lambda t: 3.0 * min(t / 0.1, 1.0), t)[0] for t in (0.5, 1.5))
    assert abs(late - early) < 1e-6


def test_a_contact_takes_energy_and_never_pulls() -> None:
    """A ball against Hunt and Crossley: slower after than before, and the force is never negative."""

    def rhs(t, x):
        return [x[1], -el.hunt_crossley(x[0], x[1], 1e6, 0.5, 1.5)]

    path = solve_ivp(rhs, (0, 0.02), [-1e-3, 1.0], rtol=1e-9, atol=1e-12, max_step=1e-5)
    assert 0.5 < -path.y[1, -1] < 0.95
    assert all(el.hunt_crossley(x, v, 1e6, 0.5, 1.5) >= 0 for x, v in path.y.T)


def test_the_modulus_of_a_liquid_grows_with_pressure() -> None:
    """`rho dp/drho = K0 + c p` by differences, far from the vapour pressure."""
    for p in (5e6, 180e6):
        rho = el.liquid_density(p, DIESEL)
        slope = (el.liquid_pressure(rho * 1.0001, DIESEL) - el.liquid_pressure(rho * 0.9999, DIESEL)) / 2e-4
        assert slope == pytest.approx(1.45e9 + 9.5 * p, rel=2e-4)


def test_flow_through_an_orifice() -> None:
    """Bernoulli far above the laminar range, proportional below it."""
    area = 0.7e-6
    assert el.orifice_flow(1e6, 826.0, area, 1e3) == pytest.approx(area * np.sqrt(2 * 826.0 * 1e6), rel=1e-6)
    small = [el.orifice_flow(dp, 826.0, area, 1e5) for dp in (10.0, 20.0)]
    assert small[1] == pytest.approx(2 * small[0], rel=1e-6)


@dataclass
class Loops:
    a: float
    b: float
    d: float


@pytest.mark.parametrize("loops", [Loops(0.02, 0.03, 0.01), Loops(0.05, 0.05, 0.2)])
def test_mutual_inductance_against_neumann(loops: Loops) -> None:
    """By Neumann's double integral over both loops, which becomes one over the angle between them."""

    def share(angle: float) -> float:
        return np.cos(angle) / np.sqrt(loops.a**2 + loops.b**2 - 2 * loops.a * loops.b * np.cos(angle) + loops.d**2)

    neumann = 4e-7 * np.pi / 2 * loops.a * loops.b * quad(share, 0, 2 * np.pi, epsabs=1e-12, epsrel=1e-12)[0]
    assert float(el.mutual_inductance(loops.a, loops.b, loops.d)) == pytest.approx(neumann, rel=1e-9)
