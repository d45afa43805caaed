"""Hydraulic parts by themselves: valves, leakage, and water hammer by characteristics and by a chain of volumes.

A valve at the end of a line shuts at once. Joukowsky: the pressure jumps by `rho c w`; the wave comes back from the
reservoir with the other sign, so that the valve sees a square wave of period `4 L / c`.
"""

from __future__ import annotations

from math import pi

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

import cosolve as cs
from examples import elements as el

DIESEL = el.Liquid(826.0, 1.45e9, 9.5, 5e3, 5e4, 4e-3)

#: wide enough that friction is nothing: 1000 kg/m3, 1000 m/s
PIPE = el.WaveLine(length=10.0, bore=0.2, cells=20, density=1000.0, sound_speed=1000.0, viscosity=0.0)
RESERVOIR, SPEED = 20e5, 0.5
FLOW = 1000.0 * pi / 4 * 0.2**2 * SPEED


def hammer(line: el.WaveLine, steps: int, flow: float = FLOW) -> tuple[np.ndarray, np.ndarray]:
    """Pressure at the valve after each step; it is shut at the first."""
    p, m = line.at_rest(RESERVOIR)
    m[:] = flow
    found = []
    for _ in range(steps):
        p, m = el.characteristics_step(p, m, (1.0, 0.0, RESERVOIR), (0.0, 1.0, 0.0), line)
        found.append(p[-1])
    return line.step * np.arange(1, steps + 1), np.array(found)


def square_wave(t: np.ndarray, line: el.WaveLine) -> np.ndarray:
    """What Joukowsky and the reservoir's echo give at the valve."""
    jump = line.density * line.sound_speed * SPEED
    return RESERVOIR + jump * np.where((t / (2 * line.travel_time)) % 2 < 1, 1.0, -1.0)


def test_water_hammer_by_characteristics_is_the_square_wave() -> None:
    """Jump of 0.5 MPa, period of 40 ms, at every step of two periods, but for the little that friction takes."""
    t, found = hammer(PIPE, 8 * PIPE.cells)
    inside = np.abs((t / (2 * PIPE.travel_time)) % 1 - 0.5) < 0.47  # not on the jumps themselves
    assert found[inside] == pytest.approx(square_wave(t, PIPE)[inside], abs=2e-3 * 5e5)
    assert PIPE.travel_time * 4 == pytest.approx(0.04)


def chain_hammer(pieces: int) -> float:
    """Root mean square error at the valve of a chain of volumes, as a share of Joukowsky's jump, over a period."""
    area, piece = pi / 4 * PIPE.bore**2, PIPE.length / pieces
    stiffness = PIPE.sound_speed**2 / (area * piece)  # pressure per mass

    def rhs(t, x):
        p, m = RESERVOIR + stiffness * x[:pieces], x[pieces:]
        before = np.append(RESERVOIR, p[:-1])
        rates = [el.line_acceleration(m[k], before[k], p[k], 1000.0, piece, PIPE.bore, 0.0) for k in range(pieces)]
        return np.concatenate([m - np.append(m[1:], 0.0), rates])

    t = np.linspace(0, 0.04, 801)[:-1] + 2.5e-5
    x0 = np.concatenate([np.zeros(pieces), np.full(pieces, FLOW)])
    run = solve_ivp(rhs, (0, 0.04), x0, "RK45", t_eval=t, rtol=1e-6, atol=1e-9)
    found = RESERVOIR + stiffness * run.y[pieces - 1]
    return float(np.sqrt(np.mean((found - square_wave(t, PIPE)) ** 2))) / 5e5


def test_a_chain_of_volumes_converges_to_the_square_wave() -> None:
    """Slowly, because a jump is what it cannot do: the error falls about as the cube root of the pieces."""
    errors = [chain_hammer(pieces) for pieces in (4, 16, 64)]
    assert errors[0] < 0.5
    assert errors[1] < 0.75 * errors[0]
    assert errors[2] < 0.75 * errors[1]


def test_steady_flow_in_a_narrow_line_follows_hagen_and_poiseuille() -> None:
    """With friction between two pressures: waves die out, and the flow is the laminar one and a little less."""
    line = el.WaveLine(length=1.0, bore=1e-3, cells=10, density=800.0, sound_speed=1000.0, viscosity=0.05)
    p, m = line.at_rest(1e5)
    for _ in range(3000):
        p, m = el.characteristics_step(p, m, (1.0, 0.0, 1.1e5), (1.0, 0.0, 1e5), line)
    laminar = pi * line.bore**4 * line.density * 1e4 / (128 * line.viscosity * line.length)
    assert m == pytest.approx(np.full(11, laminar), rel=1e-3)
    assert p == pytest.approx(np.linspace(1.1e5, 1e5, 11), rel=1e-4)


def test_a_matched_end_swallows_the_wave() -> None:
    """A resistance of the line's impedance at the right: no echo comes back to the left."""
    p, m = PIPE.at_rest(RESERVOIR)
    shut, matched = (0.0, 1.0, FLOW), (1.0, -PIPE.impedance, RESERVOIR)
    for _ in range(5 * PIPE.cells):
        p, m = el.characteristics_step(p, m, shut, matched, PIPE)
        assert p[0] == pytest.approx(RESERVOIR + PIPE.impedance * FLOW, rel=1e-3)


def test_nothing_arrives_before_its_time() -> None:
    """0.6 m of diesel at 180 MPa: 0.32 ms from end to end, to the step."""
    line = el.WaveLine.of(DIESEL, 180e6, length=0.6, bore=2.4e-3, cells=32)
    assert line.travel_time == pytest.approx(0.32e-3, rel=2e-3)
    p, m = line.at_rest(180e6)
    for step in range(line.cells + 1):
        p, m = el.characteristics_step(p, m, (1.0, 0.0, 181e6), (0.0, 1.0, 0.0), line)
        assert (p[-1] == 180e6) == (step < line.cells)


def test_no_line_without_cells() -> None:
    with pytest.raises(cs.errors.SetupError, match="at least one cell"):
        el.WaveLine.of(DIESEL, 180e6, length=0.6, bore=2.4e-3, cells=0)


def test_a_check_valve_lets_liquid_through_one_way() -> None:
    """Behind a pressure that swings about zero: what comes back is what slips through while it shuts."""
    lag, area = 1e-4, 6e-6

    def rhs(t, x):
        drop = 1e6 * np.sin(2 * pi * 50 * t)
        flow = el.orifice_flow(drop, 826.0, x[0] * area, 2e4)
        return [el.valve_rate(x[0], drop, 5e4, lag), max(flow, 0.0), max(-flow, 0.0)]

    found = solve_ivp(rhs, (0, 0.1), [0.0, 0.0, 0.0], max_step=2e-5).y
    assert 0.0 <= found[0].min()
    assert found[0].max() <= 1.0
    assert found[2, -1] < 0.01 * found[1, -1]


def test_a_limiting_valve_holds_a_pressure() -> None:
    """A constant flow into a volume: the pressure ends where the valve lets as much out, `limit + flow/conductance`."""
    flow, conductance = 5e-3, 1.6e-9

    def rhs(t, mass):
        p = el.volume_pressure(mass[0], 20e-6, DIESEL)
        return [flow - el.limiting_flow(p, 180e6, conductance, 0.1e6)]

    begin = 20e-6 * el.liquid_density(170e6, DIESEL)
    mass = solve_ivp(rhs, (0, 0.5), [begin], "Radau", rtol=1e-9, atol=1e-12).y[0, -1]
    assert el.volume_pressure(mass, 20e-6, DIESEL) == pytest.approx(180e6 + flow / conductance, rel=1e-4)


@pytest.mark.parametrize("eccentricity", [0.0, 0.6, 1.0])
def test_leakage_along_a_piston_is_the_flow_in_a_narrow_ring(eccentricity: float) -> None:
    """By integrating the laminar flow `h^3 / 12 eta` around the ring, whose width varies by the eccentricity."""
    D, c, length, eta, rho = 6.5e-3, 2e-6, 0.03, 4e-3, 826.0
    around = quad(lambda a: (c * (1 + eccentricity * np.cos(a))) ** 3, 0, 2 * pi)[0]
    expected = rho * around * D / 2 / (12 * eta * length)
    assert el.gap_conductance(rho, eta, D, c, length, eccentricity) == pytest.approx(expected, rel=1e-9)


@pytest.mark.covers("SC-45")
def test_no_pressure_is_below_that_of_the_vapour() -> None:
    """A piston pulls on a shut volume: the pressure stays at the floor, and comes back when the volume does."""
    mass = 1e-6 * el.liquid_density(1e5, DIESEL)
    stretched = [el.volume_pressure(mass, 1e-6 * share, DIESEL) for share in (1.0, 1.01, 2.0, 100.0)]
    assert stretched[0] == pytest.approx(1e5, rel=1e-6)
    assert all(5e3 <= p < 1e5 for p in stretched[1:])
    assert stretched[-1] == pytest.approx(5e3, rel=1e-2)
