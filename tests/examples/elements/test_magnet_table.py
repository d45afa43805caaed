"""An actuator as a table of flux linkage and force, against the magnetic circuit of the recloser in formulas."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from examples.recloser.model import Magnet, _circuit, _force
from numba import njit
from scipy.optimize import brentq

import cosolve as cs
from examples import elements as el

MAGNET = Magnet()


def flux(current: float, travel: float) -> float:
    """Of the closing branch, with so much current in the coil: what is left over is what the coil drives."""
    drive = MAGNET.turns * current
    return float(brentq(lambda f: _circuit(f, travel, MAGNET)[2] - drive, -20e-3, 20e-3, xtol=1e-18))


@cache
def table() -> el.MagnetTable:
    """The travel takes the place of the gap; 0 to 20 A, 0 to 14 mm."""
    i, r = np.linspace(0.0, 20.0, 41), np.linspace(0.0, 14e-3, 57)
    fluxes = np.array([[flux(a, b) for b in r] for a in i])
    forces = [[_force(f, b, MAGNET) for f, b in zip(row, r, strict=True)] for row in fluxes]
    return el.MagnetTable.from_points(i, r, MAGNET.turns * fluxes, np.array(forces))


def test_the_table_gives_what_the_circuit_gives_between_its_points() -> None:
    """Linkage to 1e-3 of its range, force to 3e-3, where iron saturates too; and the current back from the linkage."""
    rng = np.random.default_rng(1)
    for i, r in zip(rng.uniform(0, 20, 200), rng.uniform(0, 14e-3, 200), strict=True):
        there = el.table_value(table().linkage, i, r, table())
        assert there == pytest.approx(MAGNET.turns * flux(i, r), abs=1e-3 * np.ptp(table().linkage))
        force = el.table_value(table().force, i, r, table())
        assert force == pytest.approx(_force(flux(i, r), r, MAGNET), abs=3e-3 * np.ptp(table().force))
        assert el.linked_current(there, r, table()) == pytest.approx(i, abs=1e-9)


def test_the_current_of_a_linkage_outside_the_table_is_that_of_its_edge() -> None:
    for r in (0.0, 7e-3, 14e-3):
        low, high = (el.table_value(table().linkage, i, r, table()) for i in (0.0, 20.0))
        for beyond in (1e-9, 0.5, 10.0):
            assert el.linked_current(low - beyond * (high - low), r, table()) == 0.0
            assert el.linked_current(high + beyond * (high - low), r, table()) == 20.0


def test_the_coil_of_the_table_builds_up_flux_as_the_circuit_does() -> None:
    """The capacitor discharges while the armature moves: flux after 30 ms by both, with the same Runge-Kutta steps."""
    m = MAGNET

    def rates(t, x, left_over):
        change = (m.turns * x[1] / m.resistance - left_over) / (m.turns**2 / m.resistance + 1 / m.eddy_resistance)
        return np.array([change, -(x[1] - m.turns * change) / m.resistance / m.capacitance])

    def by_circuit(t, x):
        return rates(t, x, _circuit(x[0], travel(t), m)[2])

    def by_table(t, x):
        return rates(t, x, m.turns * el.linked_current(m.turns * x[0], travel(t), table()))

    def travel(t: float) -> float:
        return 10e-3 * (t / 30e-3) ** 3

    ends = []
    for rhs in (by_circuit, by_table):
        x, h = np.array([flux(0.0, 0.0), m.closing_voltage]), 1e-4
        for k in range(300):
            t = k * h
            k1 = rhs(t, x)
            k2 = rhs(t + h / 2, x + h / 2 * k1)
            k3 = rhs(t + h / 2, x + h / 2 * k2)
            k4 = rhs(t + h, x + h * k3)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        ends.append(x)
    assert ends[0][0] > 1.2 * flux(0.0, 0.0)
    assert ends[1] == pytest.approx(ends[0], rel=1e-4)


def test_a_table_that_cannot_be_turned_round_is_refused() -> None:
    """Linkage that does not grow with the current; uneven points; holes."""
    i, g = np.linspace(0, 1, 3), np.linspace(0, 1, 2)
    rising = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    with pytest.raises(
        cs.errors.SetupError, match=r"does not grow from current 0\.5 to 1 at gap 1, so that no current"
    ):
        el.MagnetTable.from_points(i, g, np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 1.0]]), rising)
    with pytest.raises(cs.errors.SetupError, match="needs currents that rise evenly"):
        el.MagnetTable.from_points(np.array([0.0, 0.3, 1.0]), g, rising, rising)
    with pytest.raises(cs.errors.SetupError, match=r"force must be finite numbers of shape \(3, 2\)"):
        el.MagnetTable.from_points(i, g, rising, np.full((3, 2), np.nan))


def test_a_compiled_right_hand_side_can_use_it() -> None:
    """As a constant of a jitted law."""
    linear = el.MagnetTable.of(lambda i, g: 2.0 * i, lambda i, g: i * i, (0.0, 5.0, 6), (0.0, 1.0, 3))
    linked_current = el.linked_current

    @njit
    def rhs(t, x, u):
        return np.array([u[0] - linked_current(x[0], 0.5, linear)])

    @njit
    def output(t, x, u):
        return x

    coil = cs.Ode(rhs, output, x0=[0.0], inputs=["U"], outputs=["psi"], integrator="ode4", internal_step=0.01)
    system = cs.System({"coil": coil})
    system.set("coil.U", 1.0)
    found = cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.1)["coil.psi"][-1]
    assert found == pytest.approx(2 * (1 - np.exp(-0.5)), rel=1e-6)
