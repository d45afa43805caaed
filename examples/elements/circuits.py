"""Electrical circuits: capacitor, diode, coil, and coils that are coupled by their mutual inductances.

Currents of coils and voltages of capacitors are states of the model that uses them. Resistances may grow with
temperature, and inductances may come from a table over the position of a part that moves.
"""

from __future__ import annotations

from math import exp, expm1

import numpy as np

from examples.elements.jit import Array, compiled


@compiled
def capacitor_rate(current: float, capacitance: float, connected: float = 1.0) -> float:
    """Compute the rate of the voltage of a capacitor.

    Parameters
    ----------
    current : float
        Current that it delivers in A.
    capacitance : float
        Capacitance in F.
    connected : float, default 1.0
        0 when a diode or a switch has disconnected it.

    Returns
    -------
    float
        Rate in V/s.

    Notes
    -----
    An ideal free-wheeling diode is an event, `U = 0`, after which `connected` is 0; see `HybridOde`.

    Examples
    --------
    >>> capacitor_rate(4.0, 2e-3), capacitor_rate(4.0, 2e-3, 0.0)
    (-2000.0, -0.0)
    """
    return -connected * current / capacitance


@compiled
def diode_current(voltage: float, saturation: float, thermal_voltage: float) -> float:
    """Compute the current of a diode, `Is (exp(U / Ut) - 1)`.

    Parameters
    ----------
    voltage : float
        `U` in V.
    saturation : float
        Saturation current `Is` in A.
    thermal_voltage : float
        `Ut` in V.

    Returns
    -------
    float
        Current in A.

    Notes
    -----
    Beyond 40 thermal voltages it continues along its tangent, so that no trial value overflows.

    References
    ----------
    .. [1] W. Shockley, The theory of p-n junctions in semiconductors and p-n junction transistors, Bell System
       Technical Journal 28(3), 1949.

    Examples
    --------
    >>> round(diode_current(0.6, 1e-12, 0.02585), 4), diode_current(-5.0, 1e-12, 0.02585)
    (0.012, -1e-12)
    """
    x = voltage / thermal_voltage
    if x <= 40.0:
        return saturation * expm1(x)
    return saturation * (exp(40.0) * (x - 39.0) - 1.0)


@compiled
def coil_rate(voltage: float, current: float, resistance: float, inductance: float) -> float:
    """Compute the rate of the current in a coil, `(U - R I) / L`.

    Parameters
    ----------
    voltage : float
        `U` in V.
    current : float
        `I` in A.
    resistance : float
        `R` in Ohm.
    inductance : float
        `L` in H.

    Returns
    -------
    float
        Rate in A/s.

    Examples
    --------
    >>> coil_rate(300.0, 0.0, 0.02, 6e-6)
    50000000.0
    """
    return (voltage - resistance * current) / inductance


@compiled
def transformer_rates(
    primary: float, secondary: Array, mutual: Array, inductance: float, inverse: Array
) -> tuple[float, Array]:
    """Compute the rates of the currents in a primary coil and in coupled secondary ones.

    Parameters
    ----------
    primary : float
        Voltage left for the primary coil, `U - R I`, in V.
    secondary : ndarray
        The same for each secondary coil.
    mutual : ndarray
        Mutual inductances of the primary with each secondary coil in H.
    inductance : float
        Inductance `L` of the primary coil in H.
    inverse : ndarray
        Inverse of the inductance matrix `S` of the secondary coils.

    Returns
    -------
    tuple of (float, ndarray)
        Rates in A/s.

    Notes
    -----
    Solves `[L M'; M S] [I'; J'] = [U; V]`. `S` is constant if all secondary coils move together, so it is inverted
    once.

    Examples
    --------
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
def warm_resistance(cold: float | Array, coefficient: float, rise: float | Array) -> float | Array:
    """Compute a resistance after a rise of temperature, `R (1 + a dT)`.

    Parameters
    ----------
    cold : float or ndarray
        `R` in Ohm.
    coefficient : float
        `a` in 1/K.
    rise : float or ndarray
        `dT` in K.

    Returns
    -------
    float or ndarray
        Resistance in Ohm.

    Examples
    --------
    >>> round(warm_resistance(0.02, 0.0039, 100.0), 6)                    # copper
    0.0278
    """
    return cold * (1.0 + coefficient * rise)


@compiled
def tabulated_inductance(away: float, spacing: float, values: Array, slopes: Array) -> tuple[Array, Array]:
    """Interpolate inductances and their slopes in a table, by cubics through values and slopes.

    Parameters
    ----------
    away : float
        Distance from the first row in m. It must be inside the table; this is not checked.
    spacing : float
        Distance of rows in m.
    values : ndarray
        Inductances in H, one row per distance.
    slopes : ndarray
        Their derivatives in H/m, likewise.

    Returns
    -------
    tuple of (ndarray, ndarray)
        Inductances in H and slopes in H/m.

    Notes
    -----
    Value and slope belong to one curve, so that force and induced voltage, which follow from the slope, conserve
    energy.

    Examples
    --------
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
