"""The cheap pair in plain Python, as a user of cosolve would write it."""

from __future__ import annotations

from typing import Any

import cosolve as cs
from problems import oscillator as o


class Plain(cs.Subsystem):
    """A mass; `owns_spring` says which of the two."""

    native = cs.Subsystem.by_callback

    def __init__(self, owns_spring: bool, h: float) -> None:
        self.mass, self.owns_spring, self.h = o.Mass(owns_spring, h), owns_spring, h
        self.inputs = ["x1", "v1"] if owns_spring else ["f"]
        self.outputs = ["F", "x", "v"] if owns_spring else ["x", "v"]

    def start(self, t0: float) -> Any:
        self.mass = o.Mass(self.owns_spring, self.h)
        return self.output(t0, [0.0, 0.0]) if self.owns_spring else [self.mass.x, self.mass.v]

    def output(self, t: float, u: Any) -> Any:
        if self.owns_spring:
            return [self.mass.spring(u[0], u[1]), self.mass.x, self.mass.v]
        return [self.mass.x, self.mass.v]

    def advance(self, t0: float, t1: float, u: Any) -> Any:
        at = u.end.tolist()  # plain numbers are several times faster to compute with than elements of an array
        if self.owns_spring:
            self.mass.pulled(at[0], at[1])
        else:
            self.mass.step(at[0])
        return self.output(t1, at)
