"""Multi-code problem: two trusses, a spring, a dashpot and a piston full of water meet in one point.

Four subsystems take the force they feel and give their displacement; the piston takes a displacement and gives the
force of the accelerated fluid, `f = rho A (L - u) u''`, an added mass far beyond that of the trusses. The point has
five unknowns and five equations (Sicklinger (2014), 4.7.2):

    R1 = U1 + U2 + U3 / l3 + U4 / l4 - Y5,  R2 = Y1 - Y2,  R3 = Y1 + l3 Y3,  R4 = Y1 + l4 Y4,  R5 = Y1 - U5

Backward Euler everywhere but in the piston, which has the trapezoidal rule (Eq. 4.130 with `u''` for its `u'`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

import cosolve as cs


@dataclass(frozen=True)
class MultiCode:
    """Parameters; the defaults are setting 2 of the source, with water in the piston."""

    one: cs.structures.Bar = field(default_factory=lambda: cs.structures.Bar(elements=20, length=1.0, E=20.0, rho=0.55))
    two: cs.structures.Bar = field(default_factory=lambda: cs.structures.Bar(elements=10, length=1.0, E=50.0, rho=0.5))
    force: float = 12.25  # N
    k3: float = 500.0  # N/m
    lambda3: float = 2.0
    d4: float = 10.0  # Ns/m
    lambda4: float = 2.0
    rho5: float = 2.75  # kg/m^3
    area5: float = 0.1  # m^2
    length5: float = 1.0  # m
    h: float = 1e-3
    steps: int = 1000
    local_tol: float = 1e-12

    @property
    def t_end(self) -> float:
        return self.h * self.steps


SETTING_2 = MultiCode()
SETTING_1 = replace(SETTING_2, rho5=1e-10)

UNKNOWNS = {"U1": "one.f", "U2": "two.f", "U3": "spring.f", "U4": "dashpot.f", "U5": "piston.u"}
OUTPUTS = ["one.u", "two.u", "spring.u", "dashpot.u", "piston.f"]


class Spring(cs.Subsystem):
    """`u = f / k`, without a state."""

    inputs, outputs = ("f",), ("u",)

    def __init__(self, k: float) -> None:
        self.k = k

    def start(self, t0: float) -> float:
        return 0.0

    def advance(self, t0: float, t1: float, u: cs.InputSignal) -> float:
        return float(u.end[0]) / self.k

    def jacobian(self, t0: float, t1: float, u: cs.InputSignal, weight: np.ndarray) -> np.ndarray:
        return np.array([[weight.sum() / self.k]])

    def save(self) -> None:
        return None

    def restore(self, state: None) -> None:
        pass


class Dashpot(cs.Subsystem):
    """`d u' = f` by backward Euler."""

    inputs, outputs = ("f",), ("u",)

    def __init__(self, d: float) -> None:
        self.d, self._u = d, 0.0

    def start(self, t0: float) -> float:
        self._u = 0.0
        return self._u

    def advance(self, t0: float, t1: float, u: cs.InputSignal) -> float:
        self._u += u.H / self.d * float(u.end[0])
        return self._u

    def jacobian(self, t0: float, t1: float, u: cs.InputSignal, weight: np.ndarray) -> np.ndarray:
        return np.array([[u.H / self.d * weight.sum()]])

    def save(self) -> float:
        return self._u

    def restore(self, state: float) -> None:
        self._u = state


class Piston(cs.Subsystem):
    """`f = rho A (L - u) u''` of a fluid that cannot be compressed, by the trapezoidal rule from rest."""

    inputs, outputs = ("u",), ("f",)

    def __init__(self, rho: float, area: float, length: float) -> None:
        self.rho_area, self.length = rho * area, length
        self._state = (0.0, 0.0, 0.0)  # u, v, a

    def start(self, t0: float) -> float:
        self._state = (0.0, 0.0, 0.0)
        return 0.0

    def advance(self, t0: float, t1: float, u: cs.InputSignal) -> float:
        self._state = self._moved(u)
        now, _, a = self._state
        return self.rho_area * (self.length - now) * a

    def jacobian(self, t0: float, t1: float, u: cs.InputSignal, weight: np.ndarray) -> np.ndarray:
        now, _, a = self._moved(u)
        slope = self.rho_area * ((self.length - now) * 4.0 / u.H**2 - a)
        return np.array([[slope * weight.sum()]])

    def save(self) -> tuple[float, float, float]:
        return self._state

    def restore(self, state: tuple[float, float, float]) -> None:
        self._state = state

    def _moved(self, u: cs.InputSignal) -> tuple[float, float, float]:
        old, v_old, a_old = self._state
        now = float(u.end[0])
        v = 2.0 / u.H * (now - old) - v_old
        return now, v, 2.0 / u.H * (v - v_old) - a_old


def truss(bar: cs.structures.Bar, force: float, tol: float) -> cs.structures.SecondOrder:
    """A clamped truss with a constant force at its free end, from which the input `f` is taken away."""
    load = np.zeros(bar.n)
    load[-1] = force
    return cs.structures.SecondOrder(
        cs.structures.Structure(bar.mass(), internal_force=bar.internal_force, tangent=bar.tangent, load=load),
        "backward-euler",
        inputs=[cs.structures.DofPort("f", -1, "force", factor=-1.0, unit="N")],
        outputs=[cs.structures.DofPort("u", -1, "displacement", unit="m")],
        tol=tol,
    )


def system(p: MultiCode = SETTING_2) -> cs.System:
    """The five subsystems and R1 to R5, measured in N and m as in the source."""
    joined = cs.System(
        {
            "one": truss(p.one, p.force, p.local_tol),
            "two": truss(p.two, 0.0, p.local_tol),
            "spring": Spring(p.k3),
            "dashpot": Dashpot(p.d4),
            "piston": Piston(p.rho5, p.area5, p.length5),
        }
    )

    def residual(U1, U2, U3, U4, U5, Y1, Y2, Y3, Y4, Y5):
        return (
            U1 + U2 + U3 / p.lambda3 + U4 / p.lambda4 - Y5,
            Y1 - Y2,
            Y1 + p.lambda3 * Y3,
            Y1 + p.lambda4 * Y4,
            Y1 - U5,
        )

    joined.equations(UNKNOWNS, residual, of=OUTPUTS)
    return joined


def sicklinger(refresh: str = "iteration", degree: int = 0) -> cs.Implicit:
    """The interface-Jacobian method of the source: `"step"` is its modified Newton, degree 0 its zero-order hold.

    Residuals count as they are, as in the source: its numbers of evaluations rest on that.
    """
    newton = cs.Newton(refresh=refresh)  # type: ignore[arg-type]
    return cs.Implicit(degree=degree, tol=1e-10, corrector=newton, absolute=True)


def undeformed_jacobian(p: MultiCode) -> np.ndarray:
    """`dR/dU` by formula, everything at rest and not loaded: what the validation page calls t = 0."""
    at_rest = cs.Polynomial(0.0, p.h, np.zeros((1, 1)))
    slopes = []
    for subsystem in system(replace(p, force=0.0)).subsystems.values():
        subsystem.start(0.0)
        slopes.append(float(subsystem.jacobian(0.0, p.h, at_rest, np.ones(1))[0, 0]))
    J1, J2, J3, J4, J5 = slopes
    return np.array(
        [
            [1.0, 1.0, 1.0 / p.lambda3, 1.0 / p.lambda4, -J5],
            [J1, -J2, 0.0, 0.0, 0.0],
            [J1, 0.0, p.lambda3 * J3, 0.0, 0.0],
            [J1, 0.0, 0.0, p.lambda4 * J4, 0.0],
            [J1, 0.0, 0.0, 0.0, -1.0],
        ]
    )


def monolithic(p: MultiCode = SETTING_2) -> np.ndarray:
    """Displacement of the point at every time, from one Newton iteration on all nodes (an independent code).

    With the forces eliminated its equation is `(M a + p)_1 + (M a + p)_2 + k3 u / l3^2 + d4 u' / l4^2 + f5 = force`.
    """
    n1, n2, h = p.one.n, p.two.n, p.h
    n = n1 + n2 - 1  # the common point last
    in_one, in_two = np.r_[0 : n1 - 1, n - 1], np.r_[n1 - 1 : n]
    M = np.zeros(n)
    M[in_one] += p.one.mass()
    M[in_two] += p.two.mass()
    k, d, m = p.k3 / p.lambda3**2, p.d4 / p.lambda4**2, p.rho5 * p.area5
    now = old = np.zeros(n)
    v5 = a5 = 0.0
    found = [0.0]
    for _ in range(p.steps):
        u = now.copy()
        for _ in range(30):
            v = 2.0 / h * (u[-1] - now[-1]) - v5
            a = 2.0 / h * (v - v5) - a5
            r = M * (u - 2.0 * now + old) / h**2
            A = np.diag(M) / h**2
            for bar, where in ((p.one, in_one), (p.two, in_two)):
                r[where] += bar.internal_force(u[where])
                A[np.ix_(where, where)] += bar.tangent(u[where])
            r[-1] += k * u[-1] + d * (u[-1] - now[-1]) / h + m * (p.length5 - u[-1]) * a - p.force
            A[-1, -1] += k + d / h + m * ((p.length5 - u[-1]) * 4.0 / h**2 - a)
            change = np.linalg.solve(A, -r)
            u = u + change
            if np.abs(change).max() < 1e-15:
                break
        v5, v_before = 2.0 / h * (u[-1] - now[-1]) - v5, v5
        a5 = 2.0 / h * (v5 - v_before) - a5
        now, old = u, now
        found.append(float(u[-1]))
    return np.array(found)
