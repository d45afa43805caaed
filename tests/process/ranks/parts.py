"""Subsystems that the tests of ranks build: a ring of nonlinear ones, and those that can only pass together."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

import cosolve as cs


class Oscillator(cs.Subsystem):
    """A nonlinear oscillator in Python with semi-implicit Euler steps; rolls back, gives no Jacobian."""

    inputs, outputs = ["force"], ["x", "v"]

    def __init__(self, x: float, c: float = 4.0) -> None:
        self.first, self.c = x, c

    def start(self, t0):
        self.state = np.array([self.first, 0.0])
        return self.state.copy()

    def advance(self, t0, t1, u):
        x, v = self.state
        h = (t1 - t0) / 5
        for k in range(5):
            v += h * (u(t0 + (k + 1) * h)[0] - self.c * np.sin(x) - 0.1 * v)
            x += h * v
        self.state = np.array([x, v])
        return self.state.copy()

    def save(self):
        return self.state.copy()

    def restore(self, state):
        self.state = state.copy()


class Rendezvous(Oscillator):
    """Every subsystem step waits until the partner has begun one as often: possible only when both advance at once.

    Not in the first step, in which they are asked one by one whether they can go back.
    """

    def __init__(self, folder: str, me: str, partner: str, x: float) -> None:
        super().__init__(x)
        self.folder, self.me, self.partner, self.count = Path(folder), me, partner, 0

    def advance(self, t0, t1, u):
        if t0 < 0.05:
            return super().advance(t0, t1, u)
        self.count += 1
        (self.folder / f"{self.me}-{self.count}").touch()
        until = time.monotonic() + 60.0
        while not (self.folder / f"{self.partner}-{self.count}").exists():
            if time.monotonic() > until:
                raise RuntimeError(f"{self.partner} never came")
            time.sleep(1e-3)
        return super().advance(t0, t1, u)


class Bad(Oscillator):
    """Does something bad in the step that begins at 0.5."""

    def __init__(self, deed: str, folder: str = "") -> None:
        super().__init__(1.0)
        self.deed, self.folder = deed, folder

    def advance(self, t0, t1, u):
        if t0 >= 0.5 - 1e-9:
            if self.deed == "raise":
                raise ZeroDivisionError("no flow left")
            if self.deed == "kill":
                os.kill(os.getpid(), 9)
            if self.deed == "exit":
                sys.exit(4)
            Path(self.folder, "hangs").touch()
            time.sleep(1e4)
        return super().advance(t0, t1, u)


class Slow(Oscillator):
    """Takes a given time per subsystem step, without needing the processor."""

    def __init__(self, seconds: float) -> None:
        super().__init__(1.0)
        self.seconds = seconds

    def advance(self, t0, t1, u):
        time.sleep(self.seconds)
        return super().advance(t0, t1, u)


class Field(cs.Subsystem):
    """Ports that are too long for one small message."""

    def __init__(self, n: int) -> None:
        self.inputs, self.outputs, self.n = [("u", n)], [("y", n)], n

    def start(self, t0):
        self.y = np.linspace(0.0, 1.0, self.n)
        return self.y

    def advance(self, t0, t1, u):
        self.y = self.y + (t1 - t0) * (np.sin(u(t1)) - self.y)
        return self.y


def joined(parts: dict[str, cs.Subsystem]) -> cs.System:
    """Springs between neighbours in a ring."""
    system, names = cs.System(parts), list(parts)
    for one, two in zip(names, names[1:] + names[:1], strict=True):
        system.law(f"{one}.force", lambda x, y: 3.0 * np.tanh(y - x), of=[f"{one}.x", f"{two}.x"])
    return system


def ring(n: int) -> dict[str, partial[Oscillator]]:
    return {f"s{k}": partial(Oscillator, 0.3 * k - 0.5, 4.0 + k) for k in range(n)}
