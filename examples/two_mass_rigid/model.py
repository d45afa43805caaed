"""Two spring-mass-damper oscillators joined by a rigid rod (Lu (2015), 3.3.1.1, 3.3.2.1, 3.3.3.1).

    m1 x1'' = -c1 x1 - d1 v1 + lam,   m2 x2'' = -c2 x2 - d2 v2 - lam,   g = x2 - x1 = 0

Both masses take the multiplier `lam`; Method 3 adds `mu` to the kinematic equations, `x1' = v1 + mu`, `x2' = v2 - mu`.
The source gives no data; the defaults are chosen here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import cosolve as cs


@dataclass(frozen=True)
class RigidTwoMass:
    """Parameters and the common initial position and velocity."""

    m1: float = 1.0
    m2: float = 2.0
    c1: float = 1000.0
    c2: float = 3000.0
    d1: float = 10.0
    d2: float = 4.0
    x0: float = 0.0
    v0: float = 100.0

    @property
    def A(self) -> np.ndarray:
        """System matrix of both masses as one: state (x, v)."""
        m, c, d = self.m1 + self.m2, self.c1 + self.c2, self.d1 + self.d2
        return np.array([[0.0, 1.0], [-c / m, -d / m]])

    def exact(self, times: np.ndarray) -> np.ndarray:
        """Exact rows (x, v) of the joined masses."""
        values, vectors = np.linalg.eig(self.A)
        amplitudes = np.linalg.solve(vectors, np.array([self.x0, self.v0], dtype=complex))
        return (np.exp(np.multiply.outer(times, values)) * amplitudes @ vectors.T).real

    def exact_force(self, states: np.ndarray) -> np.ndarray:
        """The multiplier for rows (x, v), Eq. 91 at any time."""
        reduced = self.m1 * self.m2 / (self.m1 + self.m2)
        by_x = self.c1 / self.m1 - self.c2 / self.m2
        return reduced * (by_x * states[:, 0] + (self.d1 / self.m1 - self.d2 / self.m2) * states[:, 1])

    def energy(self, x1, v1, x2, v2):
        """Kinetic and elastic energy (arrays over time)."""
        return 0.5 * (self.m1 * v1**2 + self.m2 * v2**2 + self.c1 * x1**2 + self.c2 * x2**2)


#: Very different eigenfrequencies: the only complete set of data in Lu's chapter 3 (Fig. 43).
STIFF = RigidTwoMass(1.0, 10.0, 1e5, 1e3, 3.0, 3.0)


def equal(c: float, d: float) -> RigidTwoMass:
    """The model of the stability maps: equal springs, equal dampers, m2 = 2 m1."""
    return RigidTwoMass(c1=c, c2=c, d1=d, d2=d)


def levels(x1, v1, a1, x2, v2, a2):
    """Distance of the masses, its rate and its acceleration."""
    return x2 - x1, v2 - v1, a2 - a1


def split(p: RigidTwoMass | None = None, *, approximate: bool = False) -> cs.System:
    """The two masses and the rod; with `approximate` their Jacobians are the leading terms of Lu's App. B."""
    p = RigidTwoMass() if p is None else p
    one, two = _mass(p.m1, p.c1, p.d1, p.x0, p.v0), _mass(p.m2, p.c2, p.d2, p.x0, p.v0)
    if approximate:
        one = cs.ApproximateJacobian(one, _LeadingTerms(p.m1, p.c1))
        two = cs.ApproximateJacobian(two, _LeadingTerms(p.m2, p.c2))
    system = cs.System({"one": one, "two": two})
    system.constraint(
        {"lam": {"one.f": 1.0, "two.f": -1.0}},
        levels,
        of=[f"{mass}.{name}" for mass in ("one", "two") for name in ("x", "v", "a")],
        correction={"mu": {"one.shift": 1.0, "two.shift": -1.0}},
        jacobian=lambda *motion: _BY_MOTION,
    )
    return system


def explicit(p: RigidTwoMass, mu_B: float) -> cs.System:
    """The same for an explicit method: at macro points the multiplier solves `g + 2 mu_B g' + mu_B^2 g'' = 0`.

    This is how Lu's comparison with an explicit constraint coupling (Gu and Asada 2004, Figs. 41-43) is read here; run
    it with `Jacobi(degree, outputs="exchanged")`.
    """
    bodies = [_mass(m, c, d, p.x0, p.v0) for m, c, d in ((p.m1, p.c1, p.d1), (p.m2, p.c2, p.d2))]
    system = cs.System(dict(zip(("one", "two"), bodies, strict=True)))

    def stabilised(lam, x1, v1, a1, x2, v2, a2):
        return x2 - x1 + 2 * mu_B * (v2 - v1) + mu_B**2 * (a2 - a1)

    of = [f"{mass}.{name}" for mass in ("one", "two") for name in ("x", "v", "a")]
    system.equations({"lam": {"one.f": 1.0, "two.f": -1.0}}, stabilised, of=of)
    system.set("one.shift", 0.0)
    system.set("two.shift", 0.0)
    return system


_BY_MOTION = np.kron([[-1.0, 1.0]], np.eye(3)).reshape(3, 1, 6)


def _mass(m: float, c: float, d: float, x: float, v: float) -> cs.Subsystem:
    return cs.Linear(
        [[0, 1], [-c / m, -d / m]],
        [[0, 1], [1 / m, 0]],
        [[1, 0], [0, 1], [-c / m, -d / m]],
        [[0, 0], [0, 0], [1 / m, 0]],
        x0=[x, v],
        inputs=["f", "shift"],
        outputs=["x", "v", "a"],
    )


@dataclass(frozen=True)
class _LeadingTerms:
    """Derivatives of (x, v, a) by (f, shift): Eqs. 199 and 203, for any degree."""

    m: float
    c: float

    def __call__(self, x: np.ndarray, u: np.ndarray, by_velocity: float, by_position: float) -> np.ndarray:
        m, c = self.m, self.c
        return np.array(
            [
                [by_position / m, by_velocity],
                [by_velocity / m, -c / m * by_position],
                [1.0 / m, -c / m * by_velocity],
            ]
        )
