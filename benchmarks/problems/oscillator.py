"""The cheap pair: two masses between walls, joined by a spring and a damper, advanced exactly for held inputs.

Force/displacement: `one` takes the force and gives its motion, `two` owns the coupling spring. Weakly damped, so that
the motion lives on for a million macro steps; `two` starts deflected, and the start value 0 of every input fits.
Standard library only: peers import this in environments of their own.
"""

from __future__ import annotations

from math import cos, exp, sin, sqrt

M, C, D, CK, DK = 1.0, 100.0, 0.02, 100.0, 0.02
X2 = 1.0  # first deflection of mass two
H = 1e-4


def propagation(c: float, d: float, h: float) -> tuple[tuple[float, float], tuple[float, float], tuple[float, float]]:
    """Rows of `exp(A h)` for `m x'' = -c x - d x'`, and the response to a unit force held over `h`."""
    a, delta = c / M, 0.5 * d / M
    w = sqrt(a - delta * delta)
    e, s, k = exp(-delta * h), sin(w * h), cos(w * h)
    phi = ((e * (k + delta / w * s), e * s / w), (-e * a / w * s, e * (k - delta / w * s)))
    force = ((1.0 - phi[0][0]) / c, -phi[1][0] / c)  # the steady state 1/c is approached with the same exponential
    return phi[0], phi[1], force


class Mass:
    """A mass for masters that want Python: `step` advances `h` with held inputs."""

    def __init__(self, owns_spring: bool, h: float = H) -> None:
        self.owns_spring = owns_spring
        extra = (CK, DK) if owns_spring else (0.0, 0.0)
        (self.a, self.b), (self.c, self.d), (self.f, self.g) = propagation(C + extra[0], D + extra[1], h)
        self.x, self.v = (X2 if owns_spring else 0.0), 0.0

    def step(self, force: float) -> None:
        """Advance over one macro step under this force."""
        x, v = self.x, self.v
        self.x, self.v = self.a * x + self.b * v + self.f * force, self.c * x + self.d * v + self.g * force

    def pulled(self, x1: float, v1: float) -> None:
        """The same for the mass with the spring, whose other end moves."""
        self.step(CK * x1 + DK * v1)

    def spring(self, x1: float, v1: float) -> float:
        """The force on the other mass."""
        return CK * (self.x - x1) + DK * (self.v - v1)


def jacobi(steps: int, h: float = H) -> list[float]:
    """x1, v1, x2, v2 after so many Jacobi steps with held inputs: the answer all masters must give."""
    one, two = Mass(False, h), Mass(True, h)
    force = two.spring(one.x, one.v)
    for _ in range(steps):
        x1, v1 = one.x, one.v
        one.step(force)
        two.pulled(x1, v1)
        force = two.spring(x1, v1)  # of the inputs that were used
    return [one.x, one.v, two.x, two.v]


def semi_implicit(steps: int, h: float = H) -> list[float]:
    """x1, v1, x2, v2 with a force that solves the interface equation exactly, held over each step."""
    one, two = Mass(False, h), Mass(False, h)
    two.x = X2
    slope = 1.0 + 2.0 * (CK * one.f + DK * one.g)
    for _ in range(steps):
        states = (one.x, one.v), (two.x, two.v)
        one.step(0.0)
        two.step(0.0)
        lam = (CK * (two.x - one.x) + DK * (two.v - one.v)) / slope
        (one.x, one.v), (two.x, two.v) = states
        one.step(lam)
        two.step(-lam)
    return [one.x, one.v, two.x, two.v]
