"""Electrical circuits: capacitor, diode, coil, and coils that are coupled by their mutual inductances.

Currents of coils and voltages of capacitors are states of whoever uses them. Resistances may grow with temperature, and
inductances may come from a table over the position of a part that moves.
"""

from __future__ import annotations

from math import exp, expm1

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.jit import compiled


@compiled
def capacitor_rate(current: float, capacitance: float, connected: float = 1.0) -> float:
    """Of the voltage when it gives this current; `connected` is 0 once a diode or a switch has taken it out.

    An ideal free-wheeling diode is an event, `U = 0`, after which `connected` is 0 (see `cs.HybridOde`).

    >>> capacitor_rate(4.0, 2e-3), capacitor_rate(4.0, 2e-3, 0.0)
    (-2000.0, -0.0)
    """
    return -connected * current / capacitance


@compiled
def diode_current(voltage: float, saturation: float, thermal_voltage: float) -> float:
    """Of a diode that is no ideal switch, `Is (exp(U / Ut) - 1)` (Shockley (1949)).

    Beyond 40 thermal voltages it goes on along its tangent, so that no trial value overflows.

    >>> round(diode_current(0.6, 1e-12, 0.02585), 4), diode_current(-5.0, 1e-12, 0.02585)
    (0.012, -1e-12)
    """
    x = voltage / thermal_voltage
    if x <= 40.0:
        return saturation * expm1(x)
    return saturation * (exp(40.0) * (x - 39.0) - 1.0)


@compiled
def coil_rate(voltage: float, current: float, resistance: float, inductance: float) -> float:
    """Of the current in a coil by itself, `(U - R I) / L`.

    >>> coil_rate(300.0, 0.0, 0.02, 6e-6)
    50000000.0
    """
    return (voltage - resistance * current) / inductance


@compiled
def transformer_rates(
    primary: float, secondary: Vector, mutual: Vector, inductance: float, inverse: Matrix
) -> tuple[float, Vector]:
    """Rates of the currents in a primary coil and in all secondary ones, from the voltages that are left for them.

    Solves `[L M'; M S] [I'; J'] = [U; V]` with the `inverse` of `S`, the inductances of the secondary coils among each
    other: that matrix is constant where all of them move together, so that it is inverted once.

    >>> S, M = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([0.3, 0.2])
    >>> rate, rates = transformer_rates(1.0, np.array([0.0, 0.1]), M, 4.0, np.linalg.inv(S))
    >>> bool(np.allclose(4.0 * rate + M @ rates, 1.0)), bool(np.allclose(M * rate + S @ rates, [0.0, 0.1]))
    (True, True)
    """
    free = inverse @ secondary
    shield = inverse @ mutual
    rate = (primary - np.dot(mutual, free)) / (inductance - np.dot(mutual, shield))
    return rate, free - shield * rate


@compiled
def warm_resistance(cold: float | Vector, coefficient: float, rise: float | Vector) -> float | Vector:
    """Resistance after a rise of temperature, `R (1 + a dT)`; numbers or arrays.

    >>> round(warm_resistance(0.02, 0.0039, 100.0), 6)                    # copper
    0.0278
    """
    return cold * (1.0 + coefficient * rise)


@compiled
def tabulated_inductance(away: float, spacing: float, values: Matrix, slopes: Matrix) -> tuple[Vector, Vector]:
    """Inductances at a distance from the first row of a table, and their slopes: the cubic through values and slopes.

    Both belong to one curve, so that force and induced voltage, which follow from the slope, leak no energy. The
    distance must lie inside the table: nothing is checked here.

    >>> z = 0.1 * np.arange(5.0)
    >>> value, slope = tabulated_inductance(0.25, 0.1, z[:, None] ** 3, 3 * z[:, None] ** 2)
    >>> [round(float(one[0]), 12) for one in (value, slope)]              # exact for cubics
    [0.015625, 0.1875]
    """
    k = int(away / spacing)
    s = away / spacing - k
    r = 1.0 - s
    a, b = r * r * (1.0 + 2.0 * s), s * s * (1.0 + 2.0 * r)
    value = a * values[k] + b * values[k + 1] + spacing * s * r * (r * slopes[k] - s * slopes[k + 1])
    rise = 6.0 * s * r / spacing
    slope = rise * (values[k + 1] - values[k]) + r * (1.0 - 3.0 * s) * slopes[k] + s * (3.0 * s - 2.0) * slopes[k + 1]
    return value, slope
