"""Subsystems that the tests of `Isolated` build in other processes: well-behaved ones and all sorts of bad ones."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from pathlib import Path

import numpy as np
from examples.two_mass.model import TwoMass, force_displacement, lu, split

import cosolve as cs


def two_mass(side: str, kind: str = "") -> cs.Subsystem:
    """One half of the two-mass oscillator."""
    system = split(kind, lu()) if kind else force_displacement(TwoMass())
    return system.subsystems[side]


def pendulum(solver: str = "auto", h: float | None = None) -> cs.Ode:
    return cs.Ode(
        lambda t, x, u: [x[1], -np.sin(x[0]) - 0.1 * x[1] + u[0]],
        lambda t, x, u: {"angle": x[0], "rate": x[1]},
        x0=[1.0, 0.0],
        inputs=["torque"],
        outputs=["angle", "rate"],
        integrator=solver,
        internal_step=h,
    )


class Plain(cs.Subsystem):
    """Nothing but the contract: no capability at all."""

    inputs, outputs = ("u",), ("x",)

    def start(self, t0):
        self.x = 1.0
        return self.x

    def advance(self, t0, t1, u):
        self.x += (t1 - t0) * (u(t0)[0] - self.x)
        return self.x


class Listening(Plain):
    """Asks for its input inside the step, at times that no power of two makes exact."""

    def advance(self, t0, t1, u):
        for s in np.linspace(0.03, 1.0, 20):
            self.x = np.sin(40.0 * self.x + 1e3 * u(t0 + s * (t1 - t0))[0])  # the last bit counts
        return self.x


class Bad(Plain):
    """Does something bad in the step that begins at `when`."""

    def __init__(self, deed: str, when: float = 0.5) -> None:
        self.deed, self.when = deed, when

    def advance(self, t0, t1, u):
        if t0 >= self.when - 1e-9:
            self.misbehave()
        return super().advance(t0, t1, u)

    def misbehave(self):
        print("about to", self.deed, flush=True)
        if self.deed == "segfault":
            ctypes.string_at(0)
        elif self.deed == "exit":
            sys.stderr.write("licence server not found\n")
            os._exit(3)
        elif self.deed == "sys.exit":
            sys.exit(4)
        elif self.deed == "kill":
            os.kill(os.getpid(), 9)
        elif self.deed == "hang":
            time.sleep(1e4)
        elif self.deed == "raise":
            raise ZeroDivisionError("no flow left")
        elif self.deed == "odd exception":
            raise OddError(1, 2)
        elif self.deed == "nonsense":
            return


class OddError(Exception):
    """Cannot be rebuilt from its arguments."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


class ReturnsNone(Plain):
    def advance(self, t0, t1, u):
        return None


class Counter(Plain):
    """Rolls back; tells how many of its states are alive."""

    alive = 0

    def save(self):
        return _State(self.x)

    def restore(self, state):
        self.x = state.x

    def states(self) -> int:
        return Counter.alive

    def get_echo(self, *values):
        return values


class _State:
    def __init__(self, x: float) -> None:
        self.x = x
        Counter.alive += 1

    def __del__(self) -> None:
        Counter.alive -= 1


class Rendezvous(Plain):
    """Each step waits until the partner is inside the same step: possible only when both run at once."""

    def __init__(self, folder: str, me: str, partner: str, patience: float) -> None:
        self.folder, self.me, self.partner, self.patience = Path(folder), me, partner, patience

    def advance(self, t0, t1, u):
        (self.folder / f"{self.me}-{t0:.6f}").touch()
        until = time.monotonic() + self.patience
        while not (self.folder / f"{self.partner}-{t0:.6f}").exists():  # busy: holds its interpreter all the time
            if time.monotonic() > until:
                raise RuntimeError(f"{self.partner} never came")
        return super().advance(t0, t1, u)


class Field(Plain):
    """A field of any size, longer than the shared memory if the signal has a high degree."""

    def __init__(self, n: int) -> None:
        self.inputs, self.outputs = [("u", n)], [("y", n)]
        self.n = n

    def start(self, t0):
        return np.zeros(self.n)

    def advance(self, t0, t1, u):
        return np.sin(u(t1))


def broken():
    raise OSError("no such mesh")


def nothing():
    return 42


def dies():
    sys.stderr.write("bad library\n")
    sys.stderr.flush()
    os.abort()


def crashing():
    return Bad("segfault")


def hanging():
    return Bad("hang")


def two():
    return two_mass("two")


def stepping_pendulum():
    return pendulum("dopri5")


def following():
    """Its input goes on with its rate, which needs degree 1 where inputs end in values of the end of the step."""
    lag = cs.Ode(lambda t, x, u: u[:1] - x, lambda t, x, u: x, x0=[0.0], inputs=["s", "v"], outputs=["x"])
    return cs.IntegratedInputs(lag, {"s": "v"})


def free_pendulum():
    return cs.InterpolatedOutputs(pendulum("dopri5"))


def long_field():
    return Field(150_000)


class Moody(Plain):
    """Raises or returns all sorts of things in the step that begins at 0.5."""

    mood = ""

    def become(self, mood):
        self.mood = mood

    def get_echo(self, *values):
        return values

    def get_myself(self):
        return self

    def advance(self, t0, t1, u):
        print("this goes to the log, not between the messages", flush=True)
        return super().advance(t0, t1, u) if t0 < 0.5 - 1e-9 else self.misbehave()

    def misbehave(self):
        if self.mood == "zero":
            raise ZeroDivisionError("no flow left")
        if self.mood == "odd":
            raise OddError(1, 2)
        if self.mood == "key":
            raise KeyError("valve")
        if self.mood == "cosolve":
            raise cs.errors.SubsystemError("the licence is gone")
        if self.mood == "end":
            raise cs.errors.EndOfSimulation("empty")
        if self.mood == "end with outputs":
            raise cs.errors.EndOfSimulation("empty", outputs=np.array([7.0]))
