"""Waves in a line by the method of characteristics (Wylie and Streeter (1993)): steps of `dx / c`, no dispersion.

`p + Z m` travels to the right and `p - Z m` to the left, with the mass flow `m` and the impedance `Z = c / A`; both
lose what friction takes. A closing valve is a jump that arrives as a jump, where a chain of volumes rings. The density
is that of the mean pressure, the step follows from the cells, and the ends are not coupled at once: what one does, the
other feels after `length / c`.
"""

from __future__ import annotations

from math import pi
from typing import NamedTuple

import numpy as np

import cosolve as cs
from examples.elements.hydraulics import Liquid, line_acceleration, liquid_density, sound_speed
from examples.elements.jit import Array, compiled


class WaveLine(NamedTuple):
    """A line of equal cells for the method of characteristics.

    Parameters
    ----------
    length : float
        Length in m.
    bore : float
        Inner diameter in m.
    cells : int
        Number of cells.
    density : float
        Density in kg/m^3.
    sound_speed : float
        Speed of sound in m/s.
    viscosity : float
        Dynamic viscosity in Pa s.

    Notes
    -----
    `p + Z m` travels to the right and `p - Z m` to the left, with the mass flow `m` and the impedance `Z = c / A`. The
    step is `dx / c`; waves do not disperse.

    References
    ----------
    .. [1] E. B. Wylie, V. L. Streeter, Fluid Transients in Systems, Prentice Hall, 1993.

    Examples
    --------
    >>> diesel = Liquid(826.0, 1.45e9, 9.5, 5e3, 5e4, 4e-3)
    >>> line = WaveLine.of(diesel, 180e6, length=0.6, bore=2.4e-3, cells=32)
    >>> round(1e3 * line.travel_time, 2), round(1e6 * line.step, 2)          # ms from end to end, us per step
    (0.32, 9.99)
    >>> p, m = line.at_rest(180e6)
    >>> p, m = characteristics_step(p, m, (1.0, 0.0, 181e6), (0.0, 1.0, 0.0), line)     # pressure left, shut right
    >>> round(float(m[0] * line.impedance))                                             # a wave of 1 MPa sets off
    1000000
    """

    length: float
    bore: float
    cells: int
    density: float
    sound_speed: float
    viscosity: float

    @staticmethod
    def of(liquid: Liquid, pressure: float, *, length: float, bore: float, cells: int) -> WaveLine:
        """Make a line full of a liquid at about one pressure.

        Parameters
        ----------
        liquid : Liquid
            The liquid.
        pressure : float
            Pressure in Pa.
        length : float
            Length in m.
        bore : float
            Inner diameter in m.
        cells : int
            Number of cells.

        Returns
        -------
        WaveLine
            The line.
        """
        if not (length > 0 and bore > 0 and cells >= 1):
            raise cs.errors.SetupError(
                f"WaveLine needs a positive length and bore and at least one cell, got {length}, {bore} and {cells}"
            )
        rho, c = liquid_density(pressure, liquid), sound_speed(pressure, liquid)
        return WaveLine(length, bore, cells, rho, c, liquid.viscosity)

    @property
    def impedance(self) -> float:
        """Pressure per mass flow of a wave, `c / A`, in Pa s/kg."""
        return self.sound_speed / (0.25 * pi * self.bore * self.bore)

    @property
    def travel_time(self) -> float:
        """Time from one end to the other in seconds."""
        return self.length / self.sound_speed

    @property
    def step(self) -> float:
        """Time that one step covers in seconds."""
        return self.travel_time / self.cells

    def at_rest(self, pressure: float) -> tuple[Array, Array]:
        """Return pressures and flows at rest.

        Parameters
        ----------
        pressure : float
            Pressure in Pa.

        Returns
        -------
        tuple of (ndarray, ndarray)
            Pressures and mass flows of the `cells + 1` nodes.
        """
        return np.full(self.cells + 1, float(pressure)), np.zeros(self.cells + 1)


@compiled
def characteristics_step(
    pressure: Array,
    flow: Array,
    left: tuple[float, float, float],
    right: tuple[float, float, float],
    line: WaveLine,
) -> tuple[Array, Array]:
    """Advance pressures and flows of a line by one step.

    Parameters
    ----------
    pressure : ndarray
        Pressures of the nodes in Pa.
    flow : ndarray
        Mass flows of the nodes in kg/s, positive to the right.
    left : tuple of (float, float, float)
        Condition `a p + b m = c` at the left end: (1, 0, p) gives the pressure, (0, 1, m) the flow.
    right : tuple of (float, float, float)
        The same at the right end; (1, -R, p) is a resistance `R` towards the pressure `p`, and `R = Z` absorbs a wave.
    line : WaveLine
        The line.

    Returns
    -------
    tuple of (ndarray, ndarray)
        Pressures and mass flows one `line.step` later.

    References
    ----------
    .. [1] E. B. Wylie, V. L. Streeter, Fluid Transients in Systems, Prentice Hall, 1993.

    Examples
    --------
    >>> line = WaveLine(10.0, 0.02, 4, 1000.0, 1000.0, 0.0)
    >>> p, m = line.at_rest(1e5)
    >>> p, m = characteristics_step(p, m, (1.0, 0.0, 1e5), (0.0, 1.0, 0.01), line)
    >>> float(round(p[-1])), float(m[-1])                     # drawn from at the right: the pressure falls by Z m
    (68169.0, 0.01)
    """
    n = line.cells
    Z = line.sound_speed / (0.25 * pi * line.bore * line.bore)
    dt = line.length / (n * line.sound_speed)
    p, m = np.empty(n + 1), np.empty(n + 1)
    forth, back = np.empty(n + 1), np.empty(n + 1)  # what leaves each node to the right and to the left
    for i in range(n + 1):
        slowed = dt * line_acceleration(flow[i], 0.0, 0.0, line.density, 1.0, line.bore, line.viscosity)
        forth[i] = pressure[i] + Z * (flow[i] + slowed)
        back[i] = pressure[i] - Z * (flow[i] + slowed)
    for i in range(1, n):
        p[i] = 0.5 * (forth[i - 1] + back[i + 1])
        m[i] = 0.5 * (forth[i - 1] - back[i + 1]) / Z
    a, b, c = left  # p = back + Z m
    m[0] = (c - a * back[1]) / (a * Z + b)
    p[0] = back[1] + Z * m[0]
    a, b, c = right  # p = forth - Z m
    m[n] = (c - a * forth[n - 1]) / (b - a * Z)
    p[n] = forth[n - 1] - Z * m[n]
    return p, m
