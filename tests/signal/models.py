"""Stiff couplings of first-order subsystems, with references that use nothing of cosolve: eigenvectors and expm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.integrate import solve_ivp

import cosolve as cs


@dataclass
class Case:
    """A coupled system, its states as outputs, the matrix of the whole (`x' = A x`), and how fluxes follow from x."""

    system: cs.System
    states: list[str]
    A: np.ndarray
    x0: np.ndarray
    fluxes: dict[str, np.ndarray]  # by name: a row that multiplies x
    rows: list[int] | None = None  # entries of x that `states` are

    def exact(self, t: np.ndarray) -> np.ndarray:
        w, V = np.linalg.eig(self.A)
        if np.linalg.cond(V) < 1e8:
            a = np.linalg.solve(V, self.x0.astype(complex))
            return np.real(np.array([V @ (np.exp(w * s) * a) for s in t]))
        return np.array([scipy.linalg.expm(self.A * s) @ self.x0 for s in t])

    def run(self, method, H=0.02, T=1.0, **options) -> cs.Result:
        return cs.simulate(self.system, t_end=T, method=method, step=H, **options)

    def error(self, method, H=0.02, T=1.0, after=0.0, **options) -> float:
        """The largest error of the states at macro points from `after` on."""
        return self.errors(method, H, T, after, **options)[0]

    def errors(self, method, H=0.02, T=1.0, after=0.0, **options) -> tuple[float, float]:
        """That, and the relative error of the fluxes at the end."""
        return self.of(self.run(method, H, T, **options), after)

    def of(self, result: cs.Result, after: float = 0.0) -> tuple[float, float]:
        R = self.exact(result.t)
        late = result.t > after - 1e-12
        rows = range(len(self.states)) if self.rows is None else self.rows
        gap = np.array([np.ravel(result[name]) - R[:, k] for name, k in zip(self.states, rows, strict=True)])
        true = np.array([row @ R[-1] for row in self.fluxes.values()])
        ours = np.array([np.ravel(result[name])[-1] for name in self.fluxes])
        return float(np.abs(gap[:, late]).max()), float(np.abs(ours - true).max() / np.abs(true).max())


def capacity(C, loss, T0, inputs=("q",)):
    return cs.Linear([[-loss / C]], [[1 / C] * len(inputs)], [[1.0]], x0=[T0], inputs=list(inputs), outputs=["T"])


def two_capacities(G, xa=1.0, xb=0.0) -> Case:
    """C = 1 with a loss of 0.2, and C = 0.5, joined by `q = G (T1 - T2)`."""
    system = cs.System({"a": capacity(1.0, 0.2, xa), "b": capacity(0.5, 0.0, xb)})
    system.law({"a.q": -1, "b.q": 1}, lambda x, y: G * (x - y), of=["a.T", "b.T"], name="q")
    A = np.array([[-0.2 - G, G], [2 * G, -2 * G]])
    return Case(system, ["a.T", "b.T"], A, np.array([xa, xb]), {"q": np.array([G, -G])})


def driven(G) -> Case:
    """The same from rest with a source `2 cos 6t` in subsystem a."""
    a = cs.Linear(
        [[-0.2, 2, 0], [0, 0, -6], [0, 6, 0]], [[-1], [0], [0]], [[1, 0, 0]], x0=[0, 1, 0], inputs=["q"], outputs=["T"]
    )
    system = cs.System({"a": a, "b": capacity(0.5, 0.0, 0.0)})
    system.law({"a.q": 1, "b.q": 1}, lambda x, y: G * (x - y), of=["a.T", "b.T"], name="q")
    A = np.array([[-0.2 - G, 2, 0, G], [0, 0, -6, 0], [0, 6, 0, 0], [2 * G, 0, 0, -2 * G]])
    return Case(system, ["a.T", "b.T"], A, np.array([0, 1.0, 0, 0]), {"q": np.array([G, 0, 0, -G])}, [0, 3])


def network(seed: int) -> Case:
    """3 to 6 capacities in a chain with further edges; conductances between 1 and 1e4."""
    r = np.random.default_rng(seed)
    n = int(r.integers(3, 7))
    C, loss, x0 = 10 ** r.uniform(-1, 1, n), r.uniform(0, 1, n), r.uniform(0, 1, n)
    edges = [(i, i + 1) for i in range(n - 1)]
    edges += [(i, j) for i in range(n) for j in range(i + 2, n) if r.uniform() < 0.4]
    G = 10 ** r.uniform(0, 4, len(edges))
    return joined(C, loss, x0, edges, G)


def joined(C, loss, x0, edges, G) -> Case:
    """Capacities with losses, joined by conductances along edges."""
    n = len(C)
    ends = [[e for e, edge in enumerate(edges) if i in edge] for i in range(n)]
    system = cs.System(
        {f"c{i}": capacity(C[i], loss[i], x0[i], [f"q{e}" for e in ends[i]]) for i in range(n)}  # one input per edge
    )
    A, fluxes = np.diag(-np.asarray(loss) / C), {}
    for e, (i, j) in enumerate(edges):
        system.law(
            {f"c{i}.q{e}": -1, f"c{j}.q{e}": 1},
            lambda x, y, g=float(G[e]): g * (x - y),
            of=[f"c{i}.T", f"c{j}.T"],
            name=f"q{e}",
        )
        row = np.zeros(n)
        row[i], row[j] = G[e], -G[e]
        A[i] -= row / C[i]
        A[j] += row / C[j]
        fluxes[f"q{e}"] = row
    return Case(system, [f"c{i}.T" for i in range(n)], A, np.asarray(x0), fluxes)


def bar(n: int, k: float) -> tuple[np.ndarray, float]:
    d = 1.0 / n
    A = np.diag(np.full(n - 1, 1.0), 1) + np.diag(np.full(n - 1, 1.0), -1) - np.diag([1.0] + [2.0] * (n - 2) + [1.0])
    return A * k / d**2, d


def two_bars(form: str, G: float = 1e6, n: int = 20) -> Case:
    """Two bars of n cells, conductivities 1 and 0.2: joined by a conductance, or temperature against flux."""
    (A1, d), (A2, _) = bar(n, 1.0), bar(n, 0.2)
    middle = (np.arange(n) + 0.5) * d
    x1, x2 = 1 - middle**2 / 2, 0.5 - 0.25 * middle
    e1, e2 = np.zeros((n, 1)), np.zeros((n, 1))
    e1[-1], e2[0] = 1, 1
    every = np.eye(n)
    names = [f"T{i}" for i in range(n)]
    states = [f"hot.{name}" for name in names] + [f"cold.{name}" for name in names]
    whole, x0 = scipy.linalg.block_diag(A1, A2), np.concatenate([x1, x2])
    if form == "conductance":
        hot = cs.Linear(A1, -e1 / d, every, x0=x1, inputs=["q"], outputs=names)
        cold = cs.Linear(A2, e2 / d, every, x0=x2, inputs=["q"], outputs=names)
        system = cs.System({"hot": hot, "cold": cold})
        system.law({"hot.q": 1, "cold.q": 1}, lambda x, y: G * (x - y), of=[f"hot.T{n - 1}", "cold.T0"], name="q")
        row = np.zeros(2 * n)
        row[n - 1], row[n] = G, -G
        whole = whole + np.concatenate([-e1, e2]) / d @ row[np.newaxis]
        return Case(system, states, whole, x0, {"q": row})
    a, b = 2.0 / d, 0.4 / d  # half cells on both sides of the face
    D2 = A2.copy()
    D2[0, 0] -= b / d
    face, zero = np.zeros((1, n)), np.zeros((n, 1))
    face[0, -1] = 1
    hot = cs.Linear(
        A1,
        -e1 / d,
        np.vstack([every, face]),
        np.vstack([zero, [[-1 / a]]]),
        x0=x1,
        inputs=["q"],
        outputs=[*names, "face"],
    )
    flux = np.zeros((1, n))
    flux[0, 0] = -b
    cold = cs.Linear(
        D2,
        e2 * b / d,
        np.vstack([every, flux]),
        np.vstack([zero, [[b]]]),
        x0=x2,
        inputs=["face"],
        outputs=[*names, "q"],
    )
    system = cs.System({"hot": hot, "cold": cold})
    system.connect("hot.face", "cold.face")
    system.connect("cold.q", "hot.q")
    B = np.zeros((2 * n, 2))
    B[n - 1, 0], B[n, 1] = -1 / d, b / d
    C = np.zeros((2, 2 * n))
    C[0, n], C[1, n - 1] = -b, 1
    D = np.array([[0, b], [-1 / a, 0]])
    z = np.linalg.solve(np.eye(2) - D, C)  # flux and temperature of the face
    return Case(system, states, scipy.linalg.block_diag(A1, D2) + B @ z, x0, {"cold.q": z[0]})


def radiation(sigma: float = 1e3) -> tuple[cs.System, object]:
    """`q = sigma (T1^4 - T2^4)` from a jump, and the exact states as a function of time."""
    system = cs.System({"a": capacity(1.0, 0.2, 1.2), "b": capacity(0.5, 0.0, 0.8)})
    system.law({"a.q": -1, "b.q": 1}, lambda x, y: sigma * (x**4 - y**4), of=["a.T", "b.T"], name="q")

    def slope(t, x):
        q = sigma * (x[0] ** 4 - x[1] ** 4)
        return np.array([-0.2 * x[0] - q, 2 * q])

    found = solve_ivp(slope, (0, 1), [1.2, 0.8], "Radau", rtol=1e-12, atol=1e-13, dense_output=True)
    return system, found.sol


def two_masses(c: float, d: float, form: str = "force") -> Case:
    """Masses of 1, springs to ground 40 and 10, dampers 0.2 and 0.1; spring c and damper d between them.

    `form`: the force as a law of positions and velocities, or ("element") as a subsystem of its own that gets
    velocities and gives the force.
    """
    A1, A2, x0 = np.array([[0, 1.0], [-40, -0.2]]), np.array([[0, 1.0], [-10, -0.1]]), np.array([0.1, 0, 0.1, 0])
    one = cs.Linear(A1, [[0], [-1.0]], np.eye(2), x0=x0[:2], inputs=["f"], outputs=["x", "v"])
    two = cs.Linear(A2, [[0], [1.0]], np.eye(2), x0=x0[2:], inputs=["f"], outputs=["x", "v"])
    whole = scipy.linalg.block_diag(A1, A2)
    if form == "force":
        system = cs.System({"one": one, "two": two})
        system.law(
            {"one.f": 1, "two.f": 1},
            lambda x1, v1, x2, v2: c * (x1 - x2) + d * (v1 - v2),
            of=["one.x", "one.v", "two.x", "two.v"],
            name="force",
        )
        row = np.array([c, d, -c, -d])
        whole = whole + np.outer([0, -1, 0, 1], row)
        return Case(system, ["one.x", "two.x"], whole, x0, {"force": row}, [0, 2])
    element = cs.Linear([[0]], [[1, -1]], [[c]], [[d, -d]], x0=[0], inputs=["v1", "v2"], outputs=["f"])
    system = cs.System({"one": one, "two": two, "element": element})
    system.connect("one.v", "element.v1")
    system.connect("two.v", "element.v2")
    system.connect("element.f", "one.f")
    system.connect("element.f", "two.f")
    big = scipy.linalg.block_diag(whole, np.zeros((1, 1)))
    row = np.array([0, d, 0, -d, c])
    big += np.outer([0, -1, 0, 1, 0], row)
    big[4, [1, 3]] = 1, -1
    return Case(system, ["one.x", "two.x"], big, np.append(x0, 0.0), {"element.f": row}, [0, 2])


def scalar(q: float) -> cs.System:
    """`y' = z`, `z = -q y`: with H = 1 the factors of the method at q."""
    system = cs.System({"y": cs.Linear([[0.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["z"], outputs=["y"])})
    system.law({"y.z": 1}, lambda y: -q * y, of=["y.y"], name="z")
    return system


def ringing(system: cs.System, method, H: float) -> float:
    """The largest factor of the amplification matrix that turns by more than 60 degrees per step."""
    mu = cs.analysis.amplification_matrix(system, method, H).eigenvalues
    return float(np.abs(mu[np.abs(np.angle(mu)) > np.pi / 3]).max(initial=0.0))


def ladder(G=(1e4, 10.0, 1e3)) -> Case:
    """An RC ladder: capacitors of 1, 0.5, 0.2 and 1 with a leak, joined by resistors, fed by `2 cos 6t` from rest."""
    C = [1.0, 0.5, 0.2, 1.0]
    first = cs.Linear(
        [[-0.2, 2, 0], [0, 0, -6], [0, 6, 0]], [[-1], [0], [0]], [[1, 0, 0]], x0=[0, 1, 0], inputs=["q0"], outputs=["T"]
    )
    parts = {"c0": first}
    for i in range(1, 4):
        parts[f"c{i}"] = capacity(C[i], 0.2, 0.0, [f"q{i - 1}", *([f"q{i}"] if i < 3 else [])])
    system = cs.System(parts)
    rows = [0, 3, 4, 5]  # entries of the whole; 1 and 2 are the source
    A = np.zeros((6, 6))
    A[0, :2], A[1, 2], A[2, 1] = [-0.2, 2], -6, 6
    for i in range(1, 4):
        A[rows[i], rows[i]] -= 0.2 / C[i]
    fluxes = {}
    for e, g in enumerate(G):
        system.law(
            {f"c{e}.q{e}": 1 if e == 0 else -1, f"c{e + 1}.q{e}": 1},
            lambda x, y, g=g: g * (x - y),
            of=[f"c{e}.T", f"c{e + 1}.T"],
            name=f"q{e}",
        )
        row = np.zeros(6)
        row[rows[e]], row[rows[e + 1]] = g, -g
        A[rows[e]] -= row / C[e]
        A[rows[e + 1]] += row / C[e + 1]
        fluxes[f"q{e}"] = row
    return Case(system, [f"c{i}.T" for i in range(4)], A, np.array([0, 1.0, 0, 0, 0, 0]), fluxes, rows)


def heat(seed: int) -> Case:
    """Two bars of 3 to 8 cells with conductivities between 0.05 and 5, joined by a conductance between 1 and 1e5."""
    r = np.random.default_rng(seed)
    n1, n2 = (int(n) for n in r.integers(3, 9, 2))
    k1, k2, G = 5 * 10 ** r.uniform(-2, 0), 5 * 10 ** r.uniform(-2, 0), 10 ** r.uniform(0, 5)
    (A1, d1), (A2, d2) = bar(n1, k1), bar(n2, k2)
    e1, e2 = np.zeros((n1, 1)), np.zeros((n2, 1))
    e1[-1], e2[0] = 1, 1
    x1, x2 = r.uniform(0, 1, n1), r.uniform(0, 1, n2)
    hot = cs.Linear(A1, -e1 / d1, np.eye(n1), x0=x1, inputs=["q"], outputs=[f"T{i}" for i in range(n1)])
    cold = cs.Linear(A2, e2 / d2, np.eye(n2), x0=x2, inputs=["q"], outputs=[f"T{i}" for i in range(n2)])
    system = cs.System({"hot": hot, "cold": cold})
    system.law({"hot.q": 1, "cold.q": 1}, lambda x, y: G * (x - y), of=[f"hot.T{n1 - 1}", "cold.T0"], name="q")
    row = np.zeros(n1 + n2)
    row[n1 - 1], row[n1] = G, -G
    whole = scipy.linalg.block_diag(A1, A2) + np.concatenate([-e1 / d1, e2 / d2]) @ row[np.newaxis]
    states = [f"hot.T{i}" for i in range(n1)] + [f"cold.T{i}" for i in range(n2)]
    return Case(system, states, whole, np.concatenate([x1, x2]), {"q": row})


@dataclass
class Tanks:
    """Tanks in a chain, `q = K d / sqrt(|d| + 0.01)` for a difference of levels d; the first one leaks."""

    system: cs.System
    states: list[str]
    exact: object

    def error(self, method, H=0.02, T=1.0, after=0.0, **options) -> float:
        result = cs.simulate(self.system, t_end=T, method=method, step=H, **options)
        late = result.t > after - 1e-12
        return float(np.abs(np.array([result[name] for name in self.states]) - self.exact(result.t))[:, late].max())


def tanks(seed: int) -> Tanks:
    """3 to 5 tanks, pipes between 1 and 1e3."""
    r = np.random.default_rng(seed)
    n = int(r.integers(3, 6))
    area, h0, K = 10 ** r.uniform(-0.7, 0.7, n), r.uniform(0.2, 1, n), 10 ** r.uniform(0, 3, n - 1)

    def flow(d, k):
        return k * d / np.sqrt(np.abs(d) + 0.01)

    def slope(t, h):
        q = flow(h[:-1] - h[1:], K)
        change = -np.append(q, 0.0) + np.insert(q, 0, 0.0)
        change[0] -= 0.2 * h[0]
        return change / area

    ends = [[*([f"q{i - 1}"] if i else []), *([f"q{i}"] if i < n - 1 else [])] for i in range(n)]
    system = cs.System({f"t{i}": capacity(area[i], 0.2 if i == 0 else 0.0, h0[i], ends[i]) for i in range(n)})
    for e in range(n - 1):
        system.law(
            {f"t{e}.q{e}": -1, f"t{e + 1}.q{e}": 1},
            lambda a, b, k=float(K[e]): float(flow(a - b, k)),
            of=[f"t{e}.T", f"t{e + 1}.T"],
            name=f"q{e}",
        )
    found = solve_ivp(slope, (0, 1), h0, "Radau", rtol=1e-10, atol=1e-12, dense_output=True)
    return Tanks(system, [f"t{i}.T" for i in range(n)], found.sol)
