"""A string in a dense fluid, on two meshes that do not match: the added-mass test.

The string (24 elements, length 1 m, 10 N, 1 kg/m) takes nodal forces and gives displacements; the fluid, an inviscid
layer on both sides (33 elements), takes displacements and gives the forces of its added mass `2 rho_f / k`, large for
long waves. Both use backward Euler with h = 0.01 s. Displacements are mapped by a mortar matrix `L`, forces by `L^T`:

    R_1 = U_1 - L Y_2,   R_2 = U_2 - L^T Y_1.

`system` is the coupled system; `march` advances over the same 50 steps with a bare corrector and the convergence test
of a reference code (root mean squares 1e-10 m and 1e-8 N), which is how its table counts; `monolithic` is the
reference.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import eigh

import cosolve as cs

Levels = tuple[np.ndarray, np.ndarray]  # at this and at the last macro point

#: The reference code's table (docs/validation/sicklinger.md): evaluations of both codes per step (None: diverges), and
#: the largest displacement at the end.
TABLE = {
    0.2: {"jacobi": 16.4, "optimal": 15.6, "aitken": 3.9, "broyden": 4.0, "jfnk": 10.0, "newton": 2.0},
    1.0: {"jacobi": 70.3, "optimal": 34.3, "aitken": 4.8, "broyden": 4.0, "jfnk": 11.0, "newton": 2.0},
    10.0: {"jacobi": None, "optimal": 218.3, "aitken": 5.0, "broyden": 10.5, "jfnk": 15.0, "newton": 2.0},
}
U_END = {0.2: 0.0857731137, 1.0: 0.0743473971, 10.0: 0.2550693597}


def line(elements: int) -> tuple[np.ndarray, np.ndarray]:
    """Mass and stiffness of linear elements on [0, 1] with unit coefficients, fixed ends removed."""
    n, le = elements - 1, 1.0 / elements
    M = le / 6 * (4 * np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1))
    K = (2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)) / le
    return M, K


def mixed_mass(rows: int, columns: int) -> np.ndarray:
    """Integrals of products of the hat functions of two meshes, exact by Gauss points between all nodes of both."""
    x_rows, x_columns = np.linspace(0, 1, rows + 1), np.linspace(0, 1, columns + 1)
    cuts = np.union1d(x_rows, x_columns)
    left, right = cuts[:-1], cuts[1:]
    C = np.zeros((rows + 1, columns + 1))
    for side in (-1, 1):
        points = 0.5 * (left + right) + side / np.sqrt(12) * (right - left)
        hats_rows = np.array([np.interp(points, x_rows, e) for e in np.eye(rows + 1)])
        hats_columns = np.array([np.interp(points, x_columns, e) for e in np.eye(columns + 1)])
        C += hats_rows * (0.5 * (right - left)) @ hats_columns.T
    return C[1:-1, 1:-1]


@dataclass(frozen=True)
class Model:
    """Matrices of both sides; the start is a velocity `sin(pi x)`, or a pluck in the shape of a triangle."""

    rho_f: float = 1.0
    pluck: bool = False
    string_elements: int = 24
    fluid_elements: int = 33
    tension: float = 10.0
    h: float = 0.01
    steps: int = 50

    @cached_property
    def M(self) -> np.ndarray:
        return line(self.string_elements)[0]

    @cached_property
    def K(self) -> np.ndarray:
        return self.tension * line(self.string_elements)[1]

    @cached_property
    def M_added(self) -> np.ndarray:
        M, K = line(self.fluid_elements)
        eigenvalues, modes = eigh(K, M)
        weighted = M @ modes
        return 2 * self.rho_f * weighted / np.sqrt(eigenvalues) @ weighted.T

    @cached_property
    def L(self) -> np.ndarray:
        """Mortar: displacements of the string to the fluid mesh."""
        return np.linalg.solve(line(self.fluid_elements)[0], mixed_mass(self.fluid_elements, self.string_elements))

    @cached_property
    def compliance(self) -> np.ndarray:
        """What the string answers to a force within a step."""
        return np.linalg.inv(self.M / self.h**2 + self.K)

    @property
    def past(self) -> tuple[np.ndarray, np.ndarray]:
        """Displacements of the string at 0 and at -h."""
        x = np.linspace(0, 1, self.string_elements + 1)[1:-1]
        if self.pluck:
            return 0.1 * np.minimum(x, 1 - x), 0.1 * np.minimum(x, 1 - x)
        return np.zeros_like(x), -self.h * np.sin(np.pi * x)

    @property
    def ratio(self) -> float:
        """Spectral radius of the serial iteration: how heavy the fluid is for the string."""
        H = self.L @ self.compliance @ self.L.T @ self.M_added / self.h**2
        return float(np.abs(np.linalg.eigvals(H)).max())

    @property
    def jacobian(self) -> np.ndarray:
        n_f, n_s = self.L.shape
        return np.block([[np.eye(n_f), -self.L @ self.compliance], [self.L.T @ self.M_added / self.h**2, np.eye(n_s)]])

    def monolithic(self) -> np.ndarray:
        """Displacements at all times (rows), both sides in one equation."""
        M = self.M + self.L.T @ self.M_added @ self.L
        u, old = self.past
        found = [u]
        for _ in range(self.steps):
            u, old = np.linalg.solve(M / self.h**2 + self.K, M @ (2 * u - old) / self.h**2), u
            found.append(u)
        return np.array(found)


class _TwoLevels(cs.Subsystem):
    """Keeps the values of this and of the last macro point."""

    def __init__(self, now: np.ndarray, old: np.ndarray) -> None:
        self._first = now, old

    def start(self, t0: float) -> np.ndarray:
        self.now, self.old = self._first
        return self.at_start()

    def at_start(self) -> np.ndarray:
        raise NotImplementedError

    def move(self, new: np.ndarray) -> None:
        self.now, self.old = new, self.now

    def save(self) -> tuple[np.ndarray, np.ndarray]:
        return self.now, self.old

    def restore(self, state: tuple[np.ndarray, np.ndarray]) -> None:
        self.now, self.old = state


class String(_TwoLevels):
    """Force in, displacement out."""

    def __init__(self, p: Model) -> None:
        super().__init__(*p.past)
        self.p = p
        n = len(p.M)
        self.inputs, self.outputs = [cs.Port("f", n, "N", nominal=100.0)], [cs.Port("u", n, "m")]

    def at_start(self) -> np.ndarray:
        return self.now

    def advance(self, t0: float, t1: float, u: cs.InputSignal) -> np.ndarray:
        p = self.p
        self.move(p.compliance @ (p.M @ (2 * self.now - self.old) / p.h**2 + u.end))
        return self.now

    def jacobian(self, t0: float, t1: float, u: cs.InputSignal, weight: np.ndarray) -> np.ndarray:
        return self.p.compliance * weight.sum()


class Fluid(_TwoLevels):
    """Displacement in, force of the added mass out."""

    def __init__(self, p: Model) -> None:
        now, old = p.past
        super().__init__(p.L @ now, p.L @ old)
        self.p = p
        n = len(p.L)
        self.inputs, self.outputs = [cs.Port("w", n, "m")], [cs.Port("f", n, "N")]

    def at_start(self) -> np.ndarray:
        return np.zeros_like(self.now)

    def advance(self, t0: float, t1: float, u: cs.InputSignal) -> np.ndarray:
        force = -self.p.M_added @ (u.end - 2 * self.now + self.old) / self.p.h**2
        self.move(u.end.copy())
        return force

    def jacobian(self, t0: float, t1: float, u: cs.InputSignal, weight: np.ndarray) -> np.ndarray:
        return -self.p.M_added / self.p.h**2 * weight.sum()


def system(p: Model) -> cs.System:
    """String and fluid, joined by the mortar matrix and its transpose."""
    joined = cs.System({"fluid": Fluid(p), "string": String(p)})
    joined.law("fluid.w", lambda u: p.L @ u, of="string.u", jacobian=lambda u: p.L)
    joined.law("string.f", lambda f: p.L.T @ f, of="fluid.f", jacobian=lambda f: p.L.T)
    return joined


def simulate(p: Model, corrector: cs.Corrector, sweep: str = "jacobi", most: int = 400) -> cs.Result:
    """The coupled run in the engine: tolerance 1e-10 m and 1e-8 N in every entry."""
    method = cs.Implicit(
        degree=1,
        tol=1e-10,
        max_iterations=most,
        corrector=corrector,
        sweep=sweep,  # type: ignore[arg-type]
        order=["fluid", "string"] if sweep == "gauss-seidel" else (),
    )
    return cs.simulate(system(p), t_end=p.steps * p.h, method=method, step=p.h)


# -- the bare iteration, with the convergence test of the reference code -------------------------------------------


@dataclass
class March:
    """What `march` found: residual norms of every evaluation, and the string at the end (None: diverged)."""

    norms: list[list[float]] = field(default_factory=list)
    evaluations: int = 0
    u: np.ndarray | None = None

    @property
    def per_step(self) -> float:
        return self.evaluations / len(self.norms)


class _Step:
    """The interface problem of one step; in a serial sweep only the displacements of the fluid are unknown."""

    def __init__(self, p: Model, serial: bool, u: Levels, w: Levels) -> None:
        self.p, self.serial = p, serial
        (self.u, self.u_old), (self.w, self.w_old) = u, w
        self.evaluations = 0
        self.answer = self.u

    def residual(self, z: np.ndarray) -> np.ndarray:
        self.evaluations += 1
        p, n = self.p, len(self.w)
        on_fluid = -p.M_added @ (z[:n] - 2 * self.w + self.w_old) / p.h**2
        force = p.L.T @ on_fluid
        self.answer = p.compliance @ (p.M @ (2 * self.u - self.u_old) / p.h**2 + (force if self.serial else z[n:]))
        lag = z[:n] - p.L @ self.answer
        return lag if self.serial else np.concatenate([lag, z[n:] - force])

    def jacobian(self) -> np.ndarray:
        return self.p.jacobian


def march(p: Model, corrector: cs.Corrector, serial: bool = False, most: int = 400) -> March:
    """All steps with a bare corrector; stops where the residual explodes or `most` corrections do not suffice."""
    n_f, n_s = p.L.shape
    done = March()
    u = p.past
    w = p.L @ u[0], p.L @ u[1]
    z = z_old = np.concatenate([w[0], np.zeros(0 if serial else n_s)])
    corrector.start_run([f"w[{i}]" for i in range(n_f)] + ([] if serial else [f"f[{i}]" for i in range(n_s)]))
    for _ in range(p.steps):
        step = _Step(p, serial, u, w)
        corrector.start_step()
        trial, norms = 2 * z - z_old if done.norms else z, []
        done.norms.append(norms)
        while True:
            r = step.residual(trial)
            norms.append(_rms(r[:n_f]))
            if norms[-1] < 1e-10 and (serial or _rms(r[n_f:]) < 1e-8):
                break
            if len(norms) > most or not np.abs(r).max() < 1e10:
                return done
            trial = corrector.correct(trial, r, step)
        corrector.accept(trial, r)
        done.evaluations += step.evaluations
        z, z_old = trial, z
        u, w = (step.answer, u[0]), (trial[:n_f], w[0])
    done.u = u[0]
    return done


def _rms(v: np.ndarray) -> float:
    return float(np.sqrt(np.mean(v * v)))
