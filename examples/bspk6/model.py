"""BspK6: a cycle with direct feed-through whose gain is near 1000, and switches (Bastian et al. (2011)).

    S1:  X1' + 2 X1 = U11 + U12,              Y11 = 0 if U14 = 1 else U11 - X1,   Y12 = 0 if U13 = 1 else U12 - X1
    S2:  X2' / 2 + X2 = sin(3 pi t) - U2,     Y2 = X2 + g2 U2,   g2 = 1001 + 1000 sin(2 pi t / 10)
    S3:  X3' / 2 + X3 = sin(2 pi t) - U3,     Y3 = X3 + g3 U3,   g3 = 1001 - 1000 sin(2 pi t / 10)
    S4:  Y41 = [sin(pi t) > 1/2],             Y42 = [sin(2 pi t) < -1/2]

All by backward Euler from zero. S4 has no input and no Jacobian; the inputs U13 and U14 only trigger, so the outputs of
S1 have no slope by them. Six connections make six unknowns. Near t = 7.5 the loop gain passes 1 and the outputs grow
without bounds: nothing beyond t = 7 means anything.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import cosolve as cs

H = 1e-4
OUTPUTS = ("S1.Y11", "S1.Y12", "S2.Y2", "S3.Y3")

#: Of a reference code (docs/validation/sicklinger.md): Y11, Y12, Y2, Y3 at four times, h = 1e-4.
PRINTED = {
    0.5: (5.03805318e-5, 0.0, 0.0975985686, 0.395299513),
    1.0: (-1.00390374e-4, 7.79187712e-4, 0.0710444078, 0.0719239858),
    1.75: (0.0, 1.58103099e-3, 0.11914418, 0.090726378),
    5.0: (-1.62745920e-4, 3.29485838e-4, 0.0401334261, 0.0406256579),
}


def gains(t: float) -> tuple[float, float]:
    """`g2`, `g3`."""
    swing = 1000.0 * np.sin(2.0 * np.pi / 10.0 * t)
    return 1001.0 + swing, 1001.0 - swing


def triggers(t: float) -> tuple[float, float]:
    """`Y41`, `Y42`."""
    return float(np.sin(np.pi * t) > 0.5), float(np.sin(2.0 * np.pi * t) < -0.5)


class _Lag(cs.Subsystem):
    """What the three subsystems with a state have in common: one number that can be saved."""

    def __init__(self) -> None:
        self._x = 0.0

    def save(self) -> float:
        return self._x

    def restore(self, state: float) -> None:
        self._x = state


class Plant(_Lag):
    """S1. With `own_triggers` it reads the switches off the clock and has the inputs U11 and U12 only."""

    outputs = ("Y11", "Y12")

    def __init__(self, own_triggers: bool = False) -> None:
        super().__init__()
        self._own = own_triggers
        self.inputs = ("U11", "U12") if own_triggers else ("U11", "U12", "U13", "U14")

    def start(self, t0: float) -> tuple[float, float]:
        self._x = 0.0
        return 0.0, 0.0

    def advance(self, t0: float, t1: float, u: cs.InputSignal) -> tuple[float, float]:
        u11, u12 = (float(v) for v in u.end[:2])
        first, second = self._passing(t1, u)
        self._x = (u11 + u12 + self._x / u.H) / (1.0 / u.H + 2.0)
        return first * (u11 - self._x), second * (u12 - self._x)

    def jacobian(self, t0: float, t1: float, u: cs.InputSignal, weight: np.ndarray) -> np.ndarray:
        """By U11 and U12 (Sicklinger (2014) prints Eqs. 4.144 and 4.145 swapped); nothing by the triggers."""
        c = 1.0 / (1.0 / u.H + 2.0)
        J = np.zeros((2, len(u.end)))
        J[:, :2] = np.array([[1.0 - c, -c], [-c, 1.0 - c]]) * np.array(self._passing(t1, u))[:, np.newaxis]
        return J * weight.sum()

    def _passing(self, t: float, u: cs.InputSignal) -> tuple[float, float]:
        """1 where an output is switched on, else 0, for Y11 and Y12."""
        u13, u14 = triggers(t) if self._own else u.end[2:]
        return float(u14 != 1.0), float(u13 != 1.0)


class Feedthrough(_Lag):
    """S2 and S3: `x' / 2 + x = sin(frequency pi t) - u`, `y = x + gain(t) u`."""

    def __init__(self, number: int, frequency: float, gain: Callable[[float], float]) -> None:
        super().__init__()
        self.inputs, self.outputs = (f"U{number}",), (f"Y{number}",)
        self._omega, self._gain = frequency * np.pi, gain

    def start(self, t0: float) -> float:
        self._x = 0.0
        return 0.0

    def advance(self, t0: float, t1: float, u: cs.InputSignal) -> float:
        given = float(u.end[0])
        self._x = (self._x / (2.0 * u.H) - given + np.sin(self._omega * t1)) / (1.0 / (2.0 * u.H) + 1.0)
        return self._x + self._gain(t1) * given

    def jacobian(self, t0: float, t1: float, u: cs.InputSignal, weight: np.ndarray) -> np.ndarray:
        return np.array([[(self._gain(t1) - 1.0 / (1.0 / (2.0 * u.H) + 1.0)) * weight.sum()]])


class Triggers(cs.Subsystem):
    """S4: two switches that follow the clock. It has no input, so no Jacobian is needed."""

    inputs, outputs = (), ("Y41", "Y42")

    def start(self, t0: float) -> tuple[float, float]:
        return triggers(t0)

    def advance(self, t0: float, t1: float, u: cs.InputSignal) -> tuple[float, float]:
        return triggers(t1)

    def save(self) -> None:
        return None

    def restore(self, state: None) -> None:
        pass


def system(reduced: bool = False, plant: Plant | None = None) -> cs.System:
    """Four subsystems and six unknowns; `reduced`: S1 knows the switches, which leaves three and four.

    Another S1 may be given as `plant`.
    """
    parts: dict[str, cs.Subsystem] = {
        "S1": Plant(own_triggers=reduced) if plant is None else plant,
        "S2": Feedthrough(2, 3.0, lambda t: gains(t)[0]),
        "S3": Feedthrough(3, 2.0, lambda t: gains(t)[1]),
    }
    if not reduced:
        parts["S4"] = Triggers()
    joined = cs.System(parts)
    joined.connect("S2.Y2", "S1.U11")
    joined.connect("S3.Y3", "S1.U12")
    if not reduced:
        joined.connect("S4.Y41", "S1.U13")
        joined.connect("S4.Y42", "S1.U14")
    joined.connect("S1.Y11", "S2.U2")
    joined.connect("S1.Y12", "S3.U3")
    return joined


def simulate(t_end: float, reduced: bool = False) -> cs.Result:
    """The run of the source: Newton with exact Jacobians, zero-order hold, tolerance 1e-10."""
    method = cs.Implicit(degree=0, tol=1e-10, corrector=cs.Newton(refresh="iteration"))
    return cs.simulate(system(reduced), t_end=t_end, method=method, step=H)


def eliminated(t: np.ndarray) -> np.ndarray:
    """Y11, Y12, Y2, Y3 at the times of a run, every step solved for U11 and U12 by hand (a reference code)."""
    x1 = x2 = x3 = 0.0
    c1, c2 = 1.0 / (1.0 / H + 2.0), 1.0 / (1.0 / (2.0 * H) + 1.0)
    found = np.zeros((len(t), 4))
    for n, now in enumerate(t[1:], 1):
        g2, g3 = gains(now)
        off12, off11 = triggers(now)
        b2 = c2 * (x2 / (2.0 * H) + np.sin(3.0 * np.pi * now))
        b3 = c2 * (x3 / (2.0 * H) + np.sin(2.0 * np.pi * now))
        e2, e3 = (1.0 - off11) * (g2 - c2), (1.0 - off12) * (g3 - c2)
        # with X1 = c1 (U11 + U12) + k: U11 = b2 + e2 (U11 - X1), U12 = b3 + e3 (U12 - X1)
        k = c1 * x1 / H
        a, b, c, d = 1.0 - e2 * (1.0 - c1), e2 * c1, e3 * c1, 1.0 - e3 * (1.0 - c1)
        p, q = b2 - e2 * k, b3 - e3 * k
        det = a * d - b * c
        u11, u12 = (p * d - b * q) / det, (a * q - c * p) / det
        x1 = c1 * (u11 + u12) + k
        y11, y12 = (1.0 - off11) * (u11 - x1), (1.0 - off12) * (u12 - x1)
        x2, x3 = b2 - c2 * y11, b3 - c2 * y12
        found[n] = y11, y12, x2 + g2 * y11, x3 + g3 * y12
    return found


def outputs(result: cs.Result) -> np.ndarray:
    """The four outputs of a run, one column each."""
    return np.column_stack([result[name] for name in OUTPUTS])
