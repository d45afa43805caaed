"""What one looks for in the pump: orders of the speed, flows of a revolution, errors of a coupled run."""

from __future__ import annotations

import numpy as np

import cosolve as cs
from examples.common_rail_pump.model import FORCES, STROKES, Course, Pump, split, undivided

#: points per revolution that are kept
POINTS = 3000

SIGNALS = ("mbs.x", "mbs.v", "hydraulics.force")


def revolutions(count: int, pump: Pump | None = None, step: float = 1e-7, **options) -> Course:
    """The undivided machine over so many revolutions; the last one begins `POINTS` before the end."""
    pump = Pump() if pump is None else pump
    T = pump.revolution
    return undivided(pump, count * T, interval=T / POINTS, step=step, **options)


def last(course: Course) -> Course:
    """The last revolution of a course."""
    return Course(course.pump, course.t[-POINTS - 1 :], course.x[-POINTS - 1 :])


def order(values: np.ndarray, n: int = 15) -> float:
    """Amplitude of the n-th order in one revolution."""
    values = values[:-1]
    return float(2 * abs(np.mean(values * np.exp(-2j * np.pi * n * np.arange(len(values)) / len(values)))))


def torque(course: Course) -> np.ndarray:
    """What the liquid asks of the eccentric, in Nm."""
    lever = np.array([course.pump.strokes(angle)[1] for angle in course.x[:, 2]])
    return (lever * course.pump.piston_area * course.pressures["cylinders"]).sum(axis=1)


def resonance(pump: Pump | None = None, count: int = 12, step: float = 1e-7) -> dict[str, tuple[float, float]]:
    """Amplitudes of order 15, of speed in rad/s and port pressure in Pa: coupled, and each side alone."""
    together, liquid = (last(revolutions(count, pump, step, alone=alone)) for alone in (0, STROKES))
    table = liquid.pressures["cylinders"][:-1, 0]
    motion = last(revolutions(count, pump, step, alone=FORCES, table=table))
    return {
        "coupled": (order(together.x[:, 3]), order(together.pressures["port"])),
        "hydraulics alone": (np.nan, order(liquid.pressures["port"])),
        "multibody side alone": (order(motion.x[:, 3]), np.nan),
    }


def coupled(
    method: cs.Method, H: float, x0: np.ndarray, t_end: float = 0.034, internal_step: float = 1e-7, **options
) -> cs.Result:
    """One coupled run that begins in steady operation."""
    return cs.simulate(split(internal_step=internal_step, x0=x0), t_end=t_end, method=method, step=H, **options)


def error(result: cs.Result, reference: Course) -> float:
    """Root mean square over the nine signals and all macro points, each signal relative to its range."""
    exact, shares = reference.signals(), []
    places = np.rint((result.t - reference.t[0]) / (reference.t[1] - reference.t[0])).astype(int)
    for name in SIGNALS:
        rows = exact[name][places]
        shares.append((result[name] - rows) / np.ptp(rows, axis=0))
    return float(np.sqrt(np.mean(np.square(shares))))
