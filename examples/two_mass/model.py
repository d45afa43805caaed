"""Two masses between walls, joined by a spring and a damper: the test model of all coupling methods.

    m1 x1'' = -c1 x1 - d1 x1' + F,   m2 x2'' = -c2 x2 - d2 x2' - F,   F = ck (x2 - x1) + dk (x2' - x1')

Five ways to cut it in two (Schmoll (2015), 2.3; Schweizer and Lu (2014), ch. 2):

- `force_displacement`: subsystem two owns the coupling spring and *outputs* the force (Schmoll);
- `split("F/F")`, `split("F/D")`, `split("D/F")`, `split("D/D")`: the decompositions of Schweizer and Lu.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm

import cosolve as cs


@dataclass(frozen=True)
class TwoMass:
    """Parameters and initial state; the defaults are Schmoll's Table 2.1."""

    m1: float = 1.0
    m2: float = 1.0
    c1: float = 1e4
    c2: float = 1e5
    ck: float = 1e6
    d1: float = 2.0
    d2: float = 6.3246
    dk: float = 14.1421
    x1: float = 1.0
    v1: float = 0.0
    x2: float = 2.0
    v2: float = 0.0

    @property
    def A(self) -> np.ndarray:
        """Monolithic system matrix for the state (x1, v1, x2, v2)."""
        return np.array(
            [
                [0, 1, 0, 0],
                [-(self.c1 + self.ck) / self.m1, -(self.d1 + self.dk) / self.m1, self.ck / self.m1, self.dk / self.m1],
                [0, 0, 0, 1],
                [self.ck / self.m2, self.dk / self.m2, -(self.c2 + self.ck) / self.m2, -(self.d2 + self.dk) / self.m2],
            ]
        )

    @property
    def z0(self) -> np.ndarray:
        """Initial state."""
        return np.array([self.x1, self.v1, self.x2, self.v2])

    def exact(self, t: float | np.ndarray) -> np.ndarray:
        """Exact states at the times `t`, one row (x1, v1, x2, v2) each."""
        values, vectors = np.linalg.eig(self.A)
        amplitudes = np.linalg.solve(vectors, self.z0.astype(complex))
        return (np.exp(np.multiply.outer(np.atleast_1d(t), values)) * amplitudes @ vectors.T).real

    def flow(self, H: float) -> np.ndarray:
        """Exact propagation over `H`."""
        return expm(self.A * H)

    def force(self, states: np.ndarray) -> np.ndarray:
        """Coupling force on mass 1 for rows of states."""
        return self.ck * (states[:, 2] - states[:, 0]) + self.dk * (states[:, 3] - states[:, 1])


#: Table 2.1 of Schmoll.
SCHMOLL = TwoMass()
#: Table 3.1 of Schmoll: one mass and a bar of two elements.
BAR = TwoMass(c1=1e4, c2=2e5, ck=2e5, d1=2.0, d2=4.0, dk=4.0, x1=1e-2, x2=5e-3)


def lu(c: float = 1e3, d: float = 10.0, m1: float = 1.0, m2: float = 2.0) -> TwoMass:
    """The oscillator of Schweizer and Lu: all springs equal, all dampers equal."""
    return TwoMass(m1, m2, c, c, c, d, d, d, x1=0.0, v1=100.0, x2=0.0, v2=-100.0)


def force_displacement(p: TwoMass = SCHMOLL) -> cs.System:
    """Subsystem one takes the force and gives its motion; subsystem two takes the motion and gives the force."""
    system = cs.System({"one": _mass(p.m1, p.c1, p.d1, p.x1, p.v1), "two": _mass_with_spring_force(p)})
    system.connect("one.x", "two.x1")
    system.connect("one.v", "two.v1")
    system.connect("two.F", "one.f")
    return system


def split(kind: str, p: TwoMass | None = None) -> cs.System:
    """One of the decompositions "F/F", "F/D", "D/F", "D/D"."""
    p = lu() if p is None else p
    one = _mass(p.m1, p.c1, p.d1, p.x1, p.v1) if kind[0] == "F" else _mass_on_foreign(p.m1, p.c1, p.d1, p.x1, p.v1, p)
    two = _mass(p.m2, p.c2, p.d2, p.x2, p.v2) if kind[2] == "F" else _mass_on_foreign(p.m2, p.c2, p.d2, p.x2, p.v2, p)
    system = cs.System({"one": one, "two": two})
    forces = {name: sign for name, sign, letter in (("one.f", 1.0, kind[0]), ("two.f", -1.0, kind[2])) if letter == "F"}
    if forces:
        system.law(forces, _Spring(p.ck, p.dk), of=["one.x", "one.v", "two.x", "two.v"], name="lam")
    if kind[0] == "D":
        system.connect("two.x", "one.foreign_x")
        system.connect("two.v", "one.foreign_v")
    if kind[2] == "D":
        system.connect("one.x", "two.foreign_x")
        system.connect("one.v", "two.foreign_v")
    return system


@dataclass(frozen=True)
class _Spring:
    """The coupling force on mass 1."""

    c: float
    d: float

    def __call__(self, x1: float, v1: float, x2: float, v2: float) -> float:
        return self.c * (x2 - x1) + self.d * (v2 - v1)


def _mass(m: float, c: float, d: float, x: float, v: float) -> cs.Linear:
    return cs.Linear([[0, 1], [-c / m, -d / m]], [[0], [1 / m]], np.eye(2), x0=[x, v], inputs=["f"], outputs=["x", "v"])


def _mass_on_foreign(m: float, c: float, d: float, x: float, v: float, p: TwoMass) -> cs.Linear:
    """A mass with its own copy of the coupling spring, attached to the motion of the other mass."""
    return cs.Linear(
        [[0, 1], [-(c + p.ck) / m, -(d + p.dk) / m]],
        [[0, 0], [p.ck / m, p.dk / m]],
        np.eye(2),
        x0=[x, v],
        inputs=["foreign_x", "foreign_v"],
        outputs=["x", "v"],
    )


def _mass_with_spring_force(p: TwoMass) -> cs.Linear:
    """Subsystem two of the force-displacement split (Eqs. 2.21-2.26); its own motion is given for plots."""
    return cs.Linear(
        [[0, 1], [-(p.c2 + p.ck) / p.m2, -(p.d2 + p.dk) / p.m2]],
        [[0, 0], [p.ck / p.m2, p.dk / p.m2]],
        [[p.ck, p.dk], [1, 0], [0, 1]],
        [[-p.ck, -p.dk], [0, 0], [0, 0]],
        x0=[p.x2, p.v2],
        inputs=["x1", "v1"],
        outputs=["F", "x", "v"],
    )


def mass(m: float = 1.0, c: float = 1e4, d: float = 2.0, x: float = 0.0, v: float = 0.0) -> cs.Linear:
    """A mass held by a spring and a damper, driven by a force; for system files."""
    return _mass(m, c, d, x, v)


def spring(c: float, d: float = 0.0) -> _Spring:
    """The force of a spring and a damper between two masses, from x1, v1, x2, v2; for system files."""
    return _Spring(c, d)
