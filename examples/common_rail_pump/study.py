"""What one looks for in the pump: orders of the speed, flows of a revolution, errors of a coupled run."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

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


def detuned(pump: Pump) -> dict[str, Pump]:
    """The machines of the study that take the resonance apart."""
    drive, liquid = pump.drive, pump.hydraulics
    return {
        "gear drive 4000 Nm/rad": Pump(drive._replace(gear_stiffness=4000.0)),
        "gear drive 16000 Nm/rad": Pump(drive._replace(gear_stiffness=16000.0)),
        "line 0.3 m": Pump(hydraulics=liquid._replace(line_length=0.3)),
    }


def coupled(
    method: cs.Method,
    H: float | cs.Adaptive,
    x0: np.ndarray,
    t_end: float = 0.034,
    internal_step: float = 1e-7,
    **options,
) -> cs.Result:
    """One coupled run that begins in steady operation."""
    return cs.simulate(split(internal_step=internal_step, x0=x0), t_end=t_end, method=method, step=H, **options)


def error(result: cs.Result, reference: Course, grid: float | None = None) -> float:
    """Root mean square over the nine signals and all macro points, relative to the signals' ranges.

    With a `grid` only macro points at its multiples count: the same points for all step sizes that divide it.

    Between the points of the reference, where steps are as long as they like, cubic curves stand for it.
    """
    exact, shares = reference.signals(), []
    places = (result.t - reference.t[0]) / (reference.t[1] - reference.t[0])
    nearest = np.rint(places).astype(int)
    on_grid = np.abs(places - nearest).max() < 1e-3
    chosen = slice(None) if grid is None else slice(None, None, round(grid / (result.t[1] - result.t[0])))
    for name in SIGNALS:
        rows = exact[name][nearest] if on_grid else CubicSpline(reference.t, exact[name])(result.t)
        shares.append(((result[name] - rows) / np.ptp(rows, axis=0))[chosen])
    return float(np.sqrt(np.mean(np.square(shares))))


def steps_over_angle(result: cs.Result, sectors: int = 40, settled: float = 1e-3) -> tuple[np.ndarray, np.ndarray]:
    """Where in degrees each sector of a third of a turn begins, and the mean macro step there (of the logarithms).

    The three cylinders do the same 120 degrees apart, so a third of a turn shows everything; steps before `settled` are
    those of the start.
    """
    seen = result.t[:-1] >= settled
    H = np.diff(result.t)[seen]
    angle = np.degrees(result["mbs.shaft"][:-1, 2][seen]) % 120
    begins = np.linspace(0, 120, sectors, endpoint=False)
    inside = np.digitize(angle, begins) - 1
    means = [np.exp(np.log(H[inside == k]).mean()) if (inside == k).any() else np.nan for k in range(sectors)]
    return begins, np.array(means)


def chatter(result: cs.Result, most: int = 3, band: float = 0.2) -> list[str]:
    """A sentence for every valve that opens more often than `most` times in a revolution.

    Only openings and closings by more than `band` of the full opening count. In a healthy run each valve opens once or
    twice; where one chatters, the step is mostly too long for the coupling.
    """
    found = []
    revolution = Pump().revolution
    for i, name in enumerate(f"{kind} valve {k}" for kind in ("suction", "outlet") for k in (1, 2, 3)):
        moments = result.t[_openings(result["hydraulics.valves"][:, i], band)]
        for first, last in zip(moments, moments[most:], strict=False):
            if last - first < revolution:
                span = f"between t = {first:.4g} s and t = {last:.4g} s"
                found.append(f"{name} chatters: it opens {most + 1} times {span}; take a shorter step")
                break
    return found


def _openings(opening: np.ndarray, band: float) -> list[int]:
    """Where a valve begins to open, by at least `band`, after it had closed by as much."""
    found, opens, lowest, highest = [], False, opening[0], opening[0]
    for k, now in enumerate(opening):
        if opens:
            highest = max(highest, now)
            if now < highest - band:
                opens, lowest = False, now
        else:
            lowest = min(lowest, now)
            if now > lowest + band:
                opens, highest = True, now
                found.append(k)
    return found
