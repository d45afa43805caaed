"""The NREL Phase VI rotor: its blade, its profile, and what was measured on it in the wind tunnel.

Blade and profile: Hand et al. (2001), the report of the experiment; S809 at a Reynolds number of one million from the
tunnels of Ohio State University (table A-7) and Delft (A-8), deep stall from Colorado State University (A-3). Drag is
that of the wake where it was measured, of the pressures elsewhere; the drag at 11.2 and 12.2 degrees bridges a gap.
Torque, thrust and coefficients: statistics of the tests, doi 10.21947/WDH-DAP/1910052.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: Radius in m, chord in m, twist in degrees; the twist is zero near three quarters of the span.
BLADE = np.array(
    [
        [1.257, 0.737, 20.040],
        [1.343, 0.728, 18.074],
        [1.510, 0.711, 14.292],
        [1.648, 0.697, 11.909],
        [1.952, 0.666, 7.979],
        [2.257, 0.636, 5.308],
        [2.562, 0.605, 3.425],
        [2.867, 0.574, 2.083],
        [3.172, 0.543, 1.150],
        [3.476, 0.512, 0.494],
        [3.781, 0.482, -0.015],
        [4.023, 0.457, -0.381],
        [4.391, 0.420, -0.920],
        [4.696, 0.389, -1.352],
        [5.000, 0.358, -1.775],
        [5.029, 0.355, -1.815],
    ]
)

#: The tests had the tip pitched by 3 degrees, and the twist at the tip is -1.815 degrees.
PITCH_OFFSET = 3.0 + 1.815

#: Angle of attack in degrees, lift coefficient, drag coefficient.
OHIO_STATE = np.array(
    [
        [-20.1, -0.55, 0.2983],
        [-18.2, -0.65, 0.2955],
        [-16.2, -0.80, 0.1826],
        [-14.1, -0.79, 0.0793],
        [-12.1, -0.70, 0.0547],
        [-10.2, -0.63, 0.0750],
        [-8.2, -0.58, 0.0266],
        [-6.2, -0.61, 0.0193],
        [-4.1, -0.40, 0.0127],
        [-2.1, -0.16, 0.0090],
        [0.0, 0.07, 0.0085],
        [2.1, 0.30, 0.0088],
        [4.1, 0.55, 0.0088],
        [6.1, 0.79, 0.0090],
        [8.2, 0.90, 0.0167],
        [10.1, 0.94, 0.0487],
        [11.2, 0.93, 0.0487],
        [12.2, 0.97, 0.0500],
        [13.3, 1.00, 0.0551],
        [14.2, 1.02, 0.0618],
        [15.2, 1.03, 0.0705],
        [16.2, 1.01, 0.0880],
        [17.2, 0.95, 0.1043],
        [18.1, 0.90, 0.1325],
        [19.2, 0.78, 0.3474],
        [20.0, 0.67, 0.3211],
        [22.1, 0.70, 0.3699],
        [24.0, 0.77, 0.4348],
        [26.1, 0.91, 0.5356],
    ]
)

#: Colorado State, at a Reynolds number of 300 000.
DEEP_STALL = np.array(
    [
        [30.2, 0.946, 0.633],
        [35.2, 1.02, 0.799],
        [40.3, 1.08, 0.983],
        [45.2, 1.23, 1.31],
        [50.0, 1.21, 1.51],
        [60.0, 1.05, 1.86],
        [69.9, 0.805, 2.27],
        [80.0, 0.456, 2.16],
        [90.0, 0.128, 2.24],
    ]
)

DELFT = np.array(
    [
        [-1.04, 0.019, 0.0095],
        [-0.01, 0.139, 0.0094],
        [1.02, 0.258, 0.0096],
        [2.05, 0.378, 0.0099],
        [3.07, 0.497, 0.0100],
        [4.10, 0.617, 0.0100],
        [5.13, 0.736, 0.0097],
        [6.16, 0.851, 0.0095],
        [7.18, 0.913, 0.0127],
        [8.20, 0.952, 0.0169],
        [9.21, 0.973, 0.0247],
        [10.20, 0.952, 0.0375],
        [11.21, 0.947, 0.0725],
        [12.23, 1.007, 0.0636],
        [13.22, 1.031, 0.0703],
        [14.23, 1.055, 0.0828],
        [15.23, 1.062, 0.1081],
        [16.22, 1.043, 0.1425],
        [17.21, 0.969, 0.1853],
        [18.19, 0.938, 0.1853],
        [19.18, 0.929, 0.1853],
        [20.16, 0.923, 0.1853],
    ]
)


class Test(NamedTuple):
    """Ten-minute means of a test: wind in m/s, revolutions per minute, density, shaft torque in Nm, thrust in N.

    The thrust is estimated from the pressure taps, from a quarter of the span outwards.
    """

    wind: float
    rpm: float
    density: float
    torque: float
    thrust: float


TESTS = {
    "S0700000": Test(7.0, 71.867, 1.2525, 801.265, 1149.5),
    "H0700000": Test(7.0, 71.878, 1.2337, 789.857, 1132.07),
    "H1000000": Test(10.0, 72.107, 1.2372, 1291.589, 1631.8),
}

#: Shaft torque in Nm of sequence H where speed and density were not written down with it, by wind in m/s.
STALLED = {13.0: 1297.2, 15.0: 1269.7, 20.0: 1240.7, 25.0: 1580.4}

#: S0700000: radius over tip radius, and force coefficients normal to the chord and along it, by the local pressure.
SPAN = np.array(
    [
        [0.30, 0.8034, 0.0961],
        [0.47, 0.9114, 0.1175],
        [0.63, 0.8653, 0.0948],
        [0.80, 0.7707, 0.0730],
        [0.95, 0.5064, 0.0414],
    ]
)
