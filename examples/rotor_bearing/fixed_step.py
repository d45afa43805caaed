"""The rotor under a fixed-step BDF2, written out: the experiment behind a table of docs/validation/schmoll.md.

A reference code showed how far the semi-implicit couplings end up from the fully implicit one at the same step, and
a jump of method C by a factor of 360 between 40 and 20 microseconds. This is that experiment with everything open: the
predictor of the very first step (`first="hold"` keeps the start value, `"euler"` uses the slope), the way the pressure
is cut, and how long the fully implicit method leads (`lead`). docs/validation/schmoll.md draws the conclusion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import cosolve as cs
from examples.rotor_bearing.journal_bearing import JournalBearing
from examples.rotor_bearing.model import Rotor
from examples.rotor_bearing.reynolds import PolarFilm

T_END = 12e-3
_EXTRAPOLATE = {1: (1.0,), 2: (2.0, -1.0), 3: (3.0, -3.0, 1.0)}


def rotor(cavitation: str = "guembel-cells", n_theta: int = 48, n_z: int = 8) -> Rotor:
    """The rotor on the grid that reproduces the reference code's table."""
    return Rotor(JournalBearing(0.01, 20e-6, 0.01, 4e-3, n_theta, n_z, cavitation))


@dataclass(frozen=True)
class Run:
    """States (rows), static calls, and per step the cells whose pressure changed sign after the linearisation."""

    x: np.ndarray
    calls: int
    flips: np.ndarray


def run(model: Rotor, variant: str, h: float, *, first: str = "euler", lead: float = 0.0, tol: float = 1e-9) -> Run:
    """BDF2 (the first step BDF1) with static coupling A, B or C in `eps, eps', delta'`; A during the time `lead`."""
    steps = round(T_END / h)
    x = np.empty((steps + 1, 4))
    x[0] = model.x0
    flips = np.zeros(steps, dtype=int)
    calls = 0
    for n in range(steps):
        t = (n + 1) * h
        kind = "A" if n * h < lead * (1 - 1e-9) else variant
        weights = _EXTRAPOLATE[min(3, n + 1)]
        guess = np.tensordot(weights, x[n::-1][: len(weights)], axes=1)
        if n == 0 and first == "euler":
            guess = x[0] + h * model.slope(0.0, x[0], model.force(0.0, x[0]))
        alpha, past = (1.0, x[0]) if n == 0 else (1.5, 2 * x[n] - 0.5 * x[n - 1])
        at = {"A": guess, "B": x[n], "C": guess}[kind]
        y = model.kinematics(t - h if kind == "B" else t, at)
        film = model.bearing.polar(*y)
        calls += 1
        now = guess
        for iteration in range(30):
            if kind == "A" and iteration > 0:
                y = model.kinematics(t, now)
                film = model.bearing.polar(*y)
                calls += 1
            residual = alpha * now - past - h * _linearised(model, t, now, y, film)
            if np.abs(residual).max() < tol:
                break
            shift = 1e-6 * np.eye(4)
            up, down = (np.array([_linearised(model, t, now + s * d, y, film) for d in shift]) for s in (1, -1))
            now = now - np.linalg.solve(alpha * np.eye(4) - h * (up - down).T / 2e-6, residual)
        x[n + 1] = now
        if kind != "A":
            flips[n] = ((film.pressure > 0) != (model.bearing.polar(*model.kinematics(t, now)).pressure > 0)).sum()
    return Run(x, calls, flips)


def _linearised(model: Rotor, t: float, x: np.ndarray, y: np.ndarray, film: PolarFilm) -> np.ndarray:
    """The equations of motion with the film linearised at `y` (Eq. 4.13)."""
    force = film.force + film.derivative @ (model.kinematics(t, x) - y)
    return model.slope(t, x, model.bearing.to_cartesian(force, model.motion(x)[0], model.omega(t)))


def distances(model: Rotor, variants: str, h: float, *, first: str = "euler", lead: float = 0.0) -> list[float]:
    """NRMSE of the states of each variant against A with the same step and the same start."""
    fully = run(model, "A", h, first=first).x
    return [cs.analysis.nrmse(fully, run(model, variant, h, first=first, lead=lead).x) for variant in variants]
