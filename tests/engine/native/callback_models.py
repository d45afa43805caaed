"""Subsystems in Python that compiled loops call back."""

from __future__ import annotations

import numba
import numpy as np

import cosolve as cs


@numba.njit
def spring(a, va, b, vb):
    return 20.0 * (b - a) + 0.5 * (vb - va)


def stumble():
    raise LookupError("no ground here")


class Mass(cs.Subsystem):
    """On a spring that grows stiffer; does its deed in the step that begins at t = 0.15."""

    inputs, outputs = ("f",), ("x", "v")
    native = cs.Subsystem.by_callback

    def __init__(self, x=1.0, deed=""):
        self.first, self.deed = x, deed

    def start(self, t0):
        self.x, self.v = self.first, 0.0
        return [self.x, self.v]

    def advance(self, t0, t1, u):
        h = t1 - t0
        for t in (t0, t0 + 0.5 * h):
            self.v += 0.5 * h * (float(u(t)[0]) - 9.0 * self.x - self.x**3)
            self.x += 0.5 * h * self.v
        return self._done() if t0 > 0.145 else [self.x, self.v]

    def _done(self):
        if isinstance(self.deed, type):
            raise self.deed
        if self.deed == "raise":
            stumble()
        if self.deed == "complain":
            raise cs.errors.NonFiniteError("state 0 became nan")
        wrong = {"none": None, "text": ["left", "right"], "too many": [1.0, 2.0, 3.0], "nan": [self.x, np.nan]}
        return wrong.get(self.deed, [self.x, self.v])

    def save(self):
        return self.x, self.v

    def restore(self, state):
        if self.deed == "no way back" and self.x < 0.9:
            raise OSError("the bridge is out")
        self.x, self.v = state


class Replaying(Mass):
    """Repeats a step otherwise than it advances it, so that one taken for the other is seen."""

    def replay(self, t0, t1, u):
        x, v = self.advance(t0, t1, u)
        return [x * (1.0 + 1e-9), v]


class Noisy(Mass):
    noise = 1e-6


class Finite(Mass):
    """Wants the end in the middle of a step (from t = 0.15)."""

    def __init__(self, how, end=0.155):
        super().__init__()
        self.how, self.end = how, end

    def advance(self, t0, t1, u):
        if t1 < self.end:
            return super().advance(t0, t1, u)
        if self.how == "no step":
            raise cs.errors.EndOfSimulation("enough")
        outputs = super().advance(t0, t1, u)
        raise cs.errors.EndOfSimulation("enough", time=None if self.how == "whole step" else self.end, outputs=outputs)


class Field(cs.Subsystem):
    """Fields as ports, outputs in any form, and signals that are kept."""

    inputs, outputs = [("u", 2)], [("y", 2), "z"]
    native = cs.Subsystem.by_callback

    def __init__(self, returns):
        self.returns = returns

    def start(self, t0):
        self.n, self.kept = 0, []
        return [0.0, 0.0, 0.0]

    def advance(self, t0, t1, u):
        self.n += 1
        self.kept.append(u)
        a, b = u(0.5 * (t0 + t1))
        if self.returns == "whole numbers":
            return [self.n, 2, 3]
        values = [float(a * b), float(b) + self.n, 0.25]
        if self.returns == "dict":
            return {"z": values[2], "y": values[:2]}
        return {"list": list, "tuple": tuple, "array": np.array}[self.returns](values)
