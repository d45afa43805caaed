"""Oscillating cylinder with wake oscillator and PID control: fluid, structure, signal.

A cylinder on a spring in a cross flow sheds vortices that set it swinging; a controller moves the root of the spring by
`psi` to hold it. Three subsystems (Sicklinger (2014), 5.2), the flow by a wake oscillator (Facchinetti et al. (2004)):

    fluid      u -> f     q'' + eps Omega (q^2 - 1) q' + Omega^2 q = A/D u'',   f = rho V^2 D L C_L0 / 4 q
    structure  f, psi -> u     m u'' + d u' + k u = f + k psi
    signal     u -> psi     PID with the error e = -u, switched on at `on_at`

all by the trapezoidal rule (the derivative in the controller by backward Euler), with the end values of the step as
interface. `J3 = -(K_P + K_I h/2 + K_D/h)`, and all other derivatives, are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import pi
from typing import NamedTuple

import numpy as np

import cosolve as cs


class State(NamedTuple):
    """Everything that moves: the cylinder, the wake, and the integral of the error."""

    u: float
    v: float
    a: float
    q: float
    w: float  # q'
    b: float  # q''
    integral: float = 0.0


@dataclass(frozen=True)
class Cylinder:
    """Parameters; the defaults are those of Sicklinger (2014), 5.2, and for the wake of Facchinetti et al. (2004).

    `q0` and `on_at` are printed nowhere; these give the printed figures (docs/validation/sicklinger.md).
    """

    m: float = 0.03575  # kg
    d: float = 0.0043  # Ns/m
    k: float = 69.48  # N/m
    diameter: float = 1.6e-3  # m
    span: float = 0.12  # m
    velocity: float = 0.06802  # m/s
    nu: float = 1e-6  # m^2/s, water
    rho: float = 1000.0  # kg/m^3
    A: float = 12.0
    eps: float = 0.3
    C_L0: float = 0.33
    K_P: float = 0.02
    K_I: float = 0.02  # 1/s
    K_D: float = 0.01  # s
    sign: float = 1.0  # -1: the error of the source's text, e = +u
    q0: float = 0.1  # first disturbance of the wake
    h: float = 5e-4
    on_at: float | None = 12.0  # s; None: no control

    @property
    def Re(self) -> float:
        return self.velocity * self.diameter / self.nu

    @property
    def Omega(self) -> float:
        """Shedding frequency of the cylinder at rest, rad/s."""
        return 2.0 * pi * 0.212 * (1.0 - 21.2 / self.Re) * self.velocity / self.diameter

    @property
    def lift(self) -> float:
        """Force per unit of `q`, N."""
        return 0.5 * self.rho * self.velocity**2 * self.diameter * self.span * 0.5 * self.C_L0

    @property
    def gains(self) -> tuple[float, float, float]:
        return self.sign * self.K_P, self.sign * self.K_I, self.sign * self.K_D

    def first(self) -> State:
        """At rest, the wake disturbed."""
        a = self.lift * self.q0 / self.m
        return State(0.0, 0.0, a, self.q0, 0.0, self.A / self.diameter * a - self.Omega**2 * self.q0)

    def poles(self, sign: float = 1.0) -> np.ndarray:
        """Poles of cylinder and controller without the flow: `m s^2 + d s + k = -sign k (K_P + K_I/s + K_D s)`."""
        k = sign * self.k
        return np.roots([self.m, self.d + k * self.K_D, self.k + k * self.K_P, k * self.K_I])


class Wake(cs.Subsystem):
    """The wake oscillator, driven by the cylinder's displacement; trapezoidal rule with local Newton steps."""

    inputs, outputs = (cs.Port("u", unit="m", nominal=1e-3),), (cs.Port("f", unit="N", nominal=1e-4),)

    def __init__(self, p: Cylinder, first: State) -> None:
        self.p, self._first = p, first
        self._now = first
        self._Omega, self._lift, self._drive = p.Omega, p.lift, p.A / p.diameter

    def start(self, t0: float) -> float:
        self._now = self._first
        return self._lift * self._now.q

    def advance(self, t0: float, t1: float, u: cs.InputSignal) -> float:
        self._now, _ = self._cross(float(u.end[0]), u.H)
        return self._lift * self._now.q

    def jacobian(self, t0: float, t1: float, u: cs.InputSignal, weight: np.ndarray) -> np.ndarray:
        """`df/du`: the derivative of the converged local equation."""
        _, slope = self._cross(float(u.end[0]), u.H)
        return np.array([[self._lift * self._drive * 4.0 / u.H**2 / slope * weight.sum()]])

    def save(self) -> tuple[float, ...]:
        return tuple(self._now)

    def restore(self, state: Sequence[float]) -> None:
        self._now = State(*state)

    def _cross(self, u: float, h: float) -> tuple[State, float]:
        """The state after a step to the displacement `u`, and the slope of the local residual there."""
        old, Omega, eps = self._now, self._Omega, self.p.eps
        v = 2.0 / h * (u - old.u) - old.v
        a = 2.0 / h * (v - old.v) - old.a
        q = old.q + h * old.w + 0.5 * h**2 * old.b
        for _ in range(25):
            w = 2.0 / h * (q - old.q) - old.w
            b = 2.0 / h * (w - old.w) - old.b
            r = b + eps * Omega * (q * q - 1.0) * w + Omega**2 * q - self._drive * a
            slope = 4.0 / h**2 + eps * Omega * (2.0 * q * w + (q * q - 1.0) * 2.0 / h) + Omega**2
            change = r / slope
            q -= change
            if abs(change) <= 1e-14 * max(1.0, abs(q)):
                w = 2.0 / h * (q - old.q) - old.w
                return State(u, v, a, q, w, 2.0 / h * (w - old.w) - old.b), slope
        raise cs.errors.SubsystemError(
            f"the wake's local iteration stands at {r:.3g} after 25 Newton steps; take a smaller step"
        )


def wake(**parameters: float) -> Wake:
    """The wake at its disturbed rest, for a system file: parameters of `Cylinder` by name."""
    p = Cylinder(**parameters)
    return Wake(p, p.first())


def structure(p: Cylinder, first: State) -> cs.structures.SecondOrder:
    """The cylinder on its spring, whose root is moved by `psi`."""
    return cs.structures.SecondOrder(
        cs.structures.Structure([p.m], D=[[p.d]], K=[[p.k]]),
        "trapezoidal",
        inputs=[
            cs.structures.DofPort("f", 0, "force", unit="N", nominal=1e-4),
            cs.structures.DofPort("psi", 0, "force", factor=p.k, unit="m", nominal=1e-3),
        ],
        outputs=[cs.structures.DofPort("u", 0, "displacement", unit="m", nominal=1e-3)],
        q0=[first.u],
        v0=[first.v],
        a0=[first.a],
    )


def controller(p: Cylinder, first: State) -> cs.Pid:
    """The PID controller, off where `on_at` is None."""
    return cs.Pid(
        *p.gains,
        inputs=[cs.Port("u", unit="m", nominal=1e-3)],
        outputs=[cs.Port("psi", unit="m", nominal=1e-3)],
        u0=first.u,
        on_at=1e300 if p.on_at is None else p.on_at,
    )


def system(p: Cylinder, first: State | None = None) -> cs.System:
    """`r = [U1 - Y2, U21 - Y1, U22 - Y3, U3 - Y2]`; the two copies of `u` are one coupling variable."""
    first = p.first() if first is None else first
    joined = cs.System({"fluid": Wake(p, first), "structure": structure(p, first), "signal": controller(p, first)})
    joined.connect("structure.u", "fluid.u", "signal.u")
    joined.connect("fluid.f", "structure.f")
    joined.connect("signal.psi", "structure.psi")
    return joined


def method(tol: float = 1e-8, corrector: cs.Corrector | None = None) -> cs.Implicit:
    """Interface-Jacobian coupling to `tol` in m and N, as in the source."""
    return cs.Implicit(degree=0, tol=tol, absolute=True, corrector=corrector or cs.Newton())


def simulate(p: Cylinder, t_end: float, tol: float = 1e-8, first: State | None = None, **options) -> cs.Result:
    """The coupled run; it begins at `first` (the cylinder at rest)."""
    return cs.simulate(system(p, first), t_end=t_end, method=method(tol), step=p.h, **options)


def monolithic(p: Cylinder, t_end: float, first: State | None = None, t_start: float = 0.0) -> np.ndarray:
    """All states at every time from one Newton iteration for everything (an independent code); rows of `State`."""
    h, Omega, drive = p.h, p.Omega, p.A / p.diameter
    K_P, K_I, K_D = p.gains
    now = p.first() if first is None else first
    n_on = np.inf if p.on_at is None else round((p.on_at - t_start) / h)
    rows = [now]
    for n in range(round((t_end - t_start) / h)):
        u, v, a, q, w, b, integral = now
        on = n >= n_on
        slope3 = -(K_P + 0.5 * h * K_I + K_D / h) if on else 0.0
        rest3 = K_I * (integral - 0.5 * h * u) + K_D * u / h if on else 0.0
        stiffness = 4.0 * p.m / h**2 + 2.0 * p.d / h + p.k - p.k * slope3
        past = p.m * (4.0 / h**2 * u + 4.0 / h * v + a) + p.d * (2.0 / h * u + v) + p.k * rest3
        q1 = q + h * w
        for _ in range(25):
            u1 = (p.lift * q1 + past) / stiffness
            v1 = 2.0 / h * (u1 - u) - v
            a1 = 2.0 / h * (v1 - v) - a
            w1 = 2.0 / h * (q1 - q) - w
            b1 = 2.0 / h * (w1 - w) - b
            r = b1 + p.eps * Omega * (q1**2 - 1.0) * w1 + Omega**2 * q1 - drive * a1
            by_q = 4.0 / h**2 + p.eps * Omega * (2.0 * q1 * w1 + (q1**2 - 1.0) * 2.0 / h) + Omega**2
            change = r / (by_q - drive * 4.0 / h**2 * p.lift / stiffness)
            q1 -= change
            if abs(change) < 1e-15 * max(1.0, abs(q1)):
                break
        now = State(u1, v1, a1, q1, w1, b1, integral - 0.5 * h * (u1 + u) if on else integral)
        rows.append(now)
    return np.array(rows)


def frequency(t: np.ndarray, u: np.ndarray) -> float:
    """Mean frequency between the first and the last upward change of sign, Hz."""
    i = np.flatnonzero((u[:-1] < 0.0) & (u[1:] >= 0.0))
    at_zero = t[i] - u[i] * (t[i + 1] - t[i]) / (u[i + 1] - u[i])
    return float((len(at_zero) - 1) / (at_zero[-1] - at_zero[0]))


def amplitude(t: np.ndarray, u: np.ndarray, begin: float, end: float) -> float:
    """Largest displacement between two times."""
    return float(np.abs(u[(t > begin) & (t <= end)]).max())


WRONG_SIGN = replace(Cylinder(), sign=-1.0)
