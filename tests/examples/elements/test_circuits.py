"""Electrical elements by themselves: against closed solutions of small circuits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from examples import elements as el


def test_a_capacitor_discharges_into_a_coil() -> None:
    """The damped oscillation of a series circuit, in closed form."""
    R, L, C, U0 = 0.1, 6e-6, 2e-3, 300.0

    def rhs(t, x):
        return [el.coil_rate(x[1], x[0], R, L), el.capacitor_rate(x[0], C)]

    t = np.linspace(0, 5e-4, 6)
    found = solve_ivp(rhs, (0, t[-1]), [0.0, U0], t_eval=t, rtol=1e-10, atol=1e-9).y[0]
    damping = R / (2 * L)
    frequency = np.sqrt(1 / (L * C) - damping**2 + 0j)  # aperiodic here: the sine turns hyperbolic by itself
    exact = (U0 / (frequency * L) * np.exp(-damping * t) * np.sin(frequency * t)).real
    assert found == pytest.approx(exact, rel=1e-7, abs=1e-6)


def test_a_capacitor_that_is_out_of_the_circuit_keeps_its_voltage() -> None:
    assert el.capacitor_rate(123.0, 2e-3, 0.0) == 0.0


@pytest.mark.parametrize("U", [-10.0, -0.01, 0.0, 0.3, 0.8])
def test_a_diode_conducts_one_way(U: float) -> None:
    assert el.diode_current(U, 1e-12, 0.02585) == pytest.approx(1e-12 * np.expm1(U / 0.02585), rel=1e-12)


def test_no_trial_voltage_overflows_a_diode() -> None:
    """Beyond 40 thermal voltages value and slope go on without a jump, and stay finite."""
    Is, Ut = 1e-12, 0.02585
    edge, step = 40 * Ut, 1e-9
    below, at, above = (el.diode_current(edge + k * step, Is, Ut) for k in (-1, 0, 1))
    assert (above - at) / (at - below) == pytest.approx(1.0, rel=1e-5)
    assert np.isfinite(el.diode_current(1e4, Is, Ut))


def test_a_shorted_winding_shields_the_coil() -> None:
    """Without resistance it leaves the primary coil `L - M' S^-1 M`, and keeps its own flux at zero."""
    S, M, L = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 0.8]]), np.array([0.3, 0.2, 0.4]), 1.5
    rate, rates = el.transformer_rates(1.0, np.zeros(3), M, L, np.linalg.inv(S))
    assert rate == pytest.approx(1.0 / (L - M @ np.linalg.solve(S, M)), rel=1e-13)
    assert M * rate + S @ rates == pytest.approx(np.zeros(3), abs=1e-15)


def test_coupled_coils_keep_their_energy() -> None:
    """Primary and secondary with resistances, driven: what the source gives is heat or field."""
    S, M, L, R, Rs = np.array([[1.0, 0.3], [0.3, 0.7]]), np.array([0.5, 0.4]), 2.0, 0.4, np.array([0.2, 0.3])
    inverse = np.linalg.inv(S)

    def rhs(t, x):
        source = np.sin(3 * t)
        rate, rates = el.transformer_rates(source - R * x[0], -Rs * x[1:3], M, L, inverse)
        return [rate, *rates, source * x[0] - R * x[0] ** 2 - Rs @ x[1:3] ** 2]

    x = solve_ivp(rhs, (0, 4), np.zeros(4), rtol=1e-10, atol=1e-12).y[:, -1]
    stored = 0.5 * L * x[0] ** 2 + x[0] * (M @ x[1:3]) + 0.5 * x[1:3] @ S @ x[1:3]
    assert stored == pytest.approx(x[3], rel=1e-8)


def test_a_table_of_inductances_is_one_smooth_curve() -> None:
    """Its slope is the slope of its values, also where it passes from one row to the next."""
    z = 1e-3 * np.arange(6)
    values, slopes = (f(40 * z)[:, np.newaxis] * [1.0, 2.0] for f in (np.cos, lambda a: -40 * np.sin(a)))
    for away in (0.4e-3, 1e-3, 2e-3 - 1e-9, 3.7e-3):
        value, slope = el.tabulated_inductance(away, 1e-3, values, slopes)
        assert value == pytest.approx(np.cos(40 * away) * np.array([1, 2]), rel=1e-7)
        near = [el.tabulated_inductance(away + d, 1e-3, values, slopes)[0] for d in (-1e-7, 1e-7)]
        assert (near[1] - near[0]) / 2e-7 == pytest.approx(slope, rel=1e-5)


def test_resistances_of_many_rings_grow_each_with_its_own_temperature() -> None:
    cold, rise = np.array([1.0, 2.0]), np.array([0.0, 100.0])
    assert el.warm_resistance(cold, 0.0039, rise) == pytest.approx([1.0, 2.78])


def test_loops_in_series_are_a_coil() -> None:
    """A current sheet: `mu0 n^2 A / l` and Nagaoka's coefficient, 0.8181 for a coil half as wide as long."""
    count, length, radius = 400, 0.2, 0.05
    pitch = length / count
    L = el.inductance_matrix(np.full(count, radius), pitch * np.arange(count), pitch, pitch)
    long = 4e-7 * np.pi * count**2 * np.pi * radius**2 / length
    assert L.sum() / long == pytest.approx(0.8181, rel=0.01)  # turns of a wire that is no sheet: 0.3 % less
    assert np.array_equal(L, L.T)
