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

from cosolve.basics.arrays import Vector
from cosolve.elements.hydraulics import Liquid, line_acceleration, liquid_density, sound_speed
from cosolve.errors import SetupError
from cosolve.jit import compiled


class WaveLine(NamedTuple):
    """A line of equal cells: lengths in m, density in kg/m3, sound speed in m/s, viscosity in Pa s.

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
        """A line full of `liquid` at about this pressure."""
        if not (length > 0 and bore > 0 and cells >= 1):
            raise SetupError(
                f"WaveLine needs a positive length and bore and at least one cell, got {length}, {bore} and {cells}"
            )
        rho, c = liquid_density(pressure, liquid), sound_speed(pressure, liquid)
        return WaveLine(length, bore, cells, rho, c, liquid.viscosity)

    @property
    def impedance(self) -> float:
        """Pressure per mass flow of a wave, `c / A`."""
        return self.sound_speed / (0.25 * pi * self.bore * self.bore)

    @property
    def travel_time(self) -> float:
        """From one end to the other."""
        return self.length / self.sound_speed

    @property
    def step(self) -> float:
        """How much time one step covers."""
        return self.travel_time / self.cells

    def at_rest(self, pressure: float) -> tuple[Vector, Vector]:
        """Pressures and flows of the `cells + 1` nodes when nothing moves."""
        return np.full(self.cells + 1, float(pressure)), np.zeros(self.cells + 1)


@compiled
def characteristics_step(
    pressure: Vector,
    flow: Vector,
    left: tuple[float, float, float],
    right: tuple[float, float, float],
    line: WaveLine,
) -> tuple[Vector, Vector]:
    """Pressures and flows (positive to the right) of all nodes one `line.step` later.

    An end is `(a, b, c)`: there `a p + b m = c` holds, so `(1, 0, p)` gives the pressure, `(0, 1, m)` the flow, and
    `(1, -R, p)` to the right is a resistance `R` towards the pressure `p`; `R = Z` swallows a wave.

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
