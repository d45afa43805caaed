"""An algebraic loop (Sicklinger (2014), App. A): a sine and a cosine block feed each other, and nothing has a state.

    Y1 = sin U1,   Y2 = cos U2,      R = (Y2 - U1, Y1 - 2 U2)

In residual form the loop needs no special treatment. Following the signals instead, `U2 <- sin(cos U2) - U2`, does not
converge: the slope at the solution is -1.23.
"""

from __future__ import annotations

import numpy as np

import cosolve as cs

U1, U2 = 0.9217141291315097, 0.3983194523366732
STARTS = ((0.0, 0.0), (1.0, 1.0), (3.0, -2.0))


class Block(cs.Subsystem):
    """`y = function(u)` across a macro step, with its slope.

    Without the `output` capability of `cs.Static` nothing is solved before the first macro step, so that the
    corrections from a given start can be counted there.
    """

    inputs, outputs = ("u",), ("y",)

    def __init__(self, function: np.ufunc, slope: np.ufunc, sign: float, start: float) -> None:
        self._function, self._slope, self._sign, self._start = function, slope, sign, start

    def start(self, t0: float) -> float:
        return float(self._function(self._start))

    def advance(self, t0: float, t1: float, u: cs.InputSignal) -> float:
        return float(self._function(u.end[0]))

    def jacobian(self, t0: float, t1: float, u: cs.InputSignal, weight: np.ndarray) -> np.ndarray:
        return np.array([[self._sign * self._slope(u.end[0]) * weight.sum()]])

    def save(self) -> None:
        return None

    def restore(self, state: None) -> None:
        pass


def system(start: tuple[float, float] = (0.0, 0.0)) -> cs.System:
    """The loop as two blocks and two equations, with start values for its unknowns."""
    sine, cosine = Block(np.sin, np.cos, 1.0, start[0]), Block(np.cos, np.sin, -1.0, start[1])
    return _closed(cs.System({"sine": sine, "cosine": cosine}), start)


def static_system(start: tuple[float, float] = (0.0, 0.0)) -> cs.System:
    """The same from `cs.Static` blocks: the loop is closed at t = 0 already."""
    sine = cs.Static(lambda t, u: np.sin(u), inputs=["u"], outputs=["y"])
    cosine = cs.Static(lambda t, u: np.cos(u), inputs=["u"], outputs=["y"])
    return _closed(cs.System({"sine": sine, "cosine": cosine}), start)


def _closed(joined: cs.System, start: tuple[float, float]) -> cs.System:
    joined.equations(
        {"U1": "sine.u", "U2": "cosine.u"},
        lambda u1, u2, y1, y2: (y2 - u1, y1 - 2.0 * u2),
        of=["sine.y", "cosine.y"],
        initial={"U1": start[0], "U2": start[1]},
        solve_start=False,  # corrections are counted from there
    )
    return joined


def run(start: tuple[float, float], corrector: cs.Corrector | None = None, tol: float = 1e-14) -> tuple[float, int]:
    """`U2` after one macro step from the given start, and the corrections it took."""
    method = cs.Implicit(degree=0, tol=tol, corrector=cs.Newton() if corrector is None else corrector)
    result = cs.simulate(system(start), t_end=1.0, method=method, step=1.0)
    return float(result["U2"][-1]), int(result.iterations[0])
