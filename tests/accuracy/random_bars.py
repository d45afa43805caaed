"""Error bars of random linear systems of hard kinds, against matrix exponentials; nothing is tuned on them.

    python -m tests.accuracy.random_bars KIND [SEED] [COUNT] [--sure] [--rtol]

Kinds: `smooth` oscillators; `stiff` capacities with rates from 1 to 1e3 per second; `multirate` pairs, one 20 to 500
times faster; `kinks`, oscillators driven by a table with corners; `layers`, an oscillator and a part that dies out at a
rate of 20 to 1000; `wave`, a string split in two; `line`, a tank and a transport line that feeds back; `events`, a ball
with a drag by a law that bounces. Fixed steps of random length and method, or `rtol=`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.linalg import expm
from scipy.optimize import brentq

import cosolve as cs

METHODS = [cs.Jacobi(0), cs.Jacobi(1), cs.Jacobi(2), cs.GaussSeidel(0), cs.GaussSeidel(1), cs.GaussSeidel(3)]
METHODS += [cs.SemiImplicit(0), cs.SemiImplicit(1), cs.SemiImplicit(2), cs.Implicit(2)]


@dataclass(frozen=True)
class Linear:
    """A coupled system, its undivided matrix, the first entries of the states that are outputs, and a drive."""

    system: cs.System
    matrix: np.ndarray
    x0: np.ndarray
    outputs: dict[str, int]
    fast: float
    corners: tuple[np.ndarray, np.ndarray] | None = None
    driven: int = 0
    options: dict[str, bool] = field(default_factory=dict)

    def exact(self, t: np.ndarray) -> np.ndarray:
        """States at these times, exactly; the drive is linear between its corners."""
        n = len(self.matrix)
        whole = np.zeros((n + 2, n + 2))
        whole[:n, :n] = self.matrix
        whole[n, n + 1] = 1.0
        if self.corners is not None:
            whole[self.driven, n] = 1.0
        known: dict[float, np.ndarray] = {}
        rows, x, now = [self.x0], self.x0, t[0]
        for after in t[1:]:
            while now < after:
                end, value, slope = after, 0.0, 0.0
                if self.corners is not None:
                    times, values = self.corners
                    k = max(0, int(np.searchsorted(times, now + 1e-12, side="right")) - 1)
                    slope = (values[k + 1] - values[k]) / (times[k + 1] - times[k])
                    value, end = values[k] + slope * (now - times[k]), min(after, times[k + 1])
                step = float(f"{end - now:.12g}")
                if step not in known:
                    known[step] = expm(whole * step)
                x = (known[step] @ np.concatenate([x, [value, slope]]))[:n]
                now = end
            rows.append(x)
        return np.array(rows)


def oscillators(rng: np.random.Generator, rates: np.ndarray, corners: bool = False) -> Linear:
    """Two or more oscillators in a row, springs and dampers between them as laws."""
    n = len(rates)
    k, d = rates**2, rng.uniform(0.01, 0.1, n) * rates
    x0, kc = rng.uniform(-1, 1, n), rng.uniform(0.05, 0.5, n - 1) * np.minimum(k[:-1], k[1:])
    A = np.zeros((2 * n, 2 * n))
    parts = {}
    for i in range(n):
        A[2 * i, 2 * i + 1], A[2 * i + 1, 2 * i], A[2 * i + 1, 2 * i + 1] = 1.0, -k[i], -d[i]
        own = [[0, 1], [-k[i], -d[i]]]
        parts[f"m{i}"] = cs.Linear(
            own, [[0] * 3, [1] * 3], np.eye(2)[:1], x0=[x0[i], 0], inputs=[*"lre"], outputs=["x"]
        )
    system = cs.System(parts)
    for i in range(n - 1):
        system.law(
            {f"m{i}.r": 1, f"m{i + 1}.l": -1},
            lambda a, b, k=kc[i]: k * (b - a),
            of=[f"m{i}.x", f"m{i + 1}.x"],
            name=f"F{i}",
        )
        for a, b in ((i, i + 1), (i + 1, i)):
            A[2 * a + 1, 2 * a] -= kc[i]
            A[2 * a + 1, 2 * b] += kc[i]
    system.set("m0.l", 0.0)
    system.set(f"m{n - 1}.r", 0.0)
    table = None
    for i in range(n):
        system.set(f"m{i}.e", 0.0)
    if corners:
        times = np.concatenate([[0.0], np.cumsum(rng.uniform(0.2, 1.0, 60))])
        table = times, rates[0] ** 2 * rng.uniform(-1, 1, len(times))
        system.set("m0.e", cs.Table(*table))
    start = np.zeros(2 * n)
    start[::2] = x0
    names = {f"m{i}.x": 2 * i for i in range(n)}
    return Linear(system, A, start, names, float(np.abs(np.linalg.eigvals(A)).max()), table, 1)


def capacities(rng: np.random.Generator) -> Linear:
    """Capacities in a row, conductances between them as laws; one loses to the outside."""
    n = int(rng.integers(2, 5))
    C, G = 10 ** rng.uniform(-1, 0.5, n), 10 ** rng.uniform(-0.5, 2.0, n - 1)
    x0 = rng.uniform(-1, 1, n)
    A = np.zeros((n, n))
    parts = {}
    for i in range(n):
        loss = 0.5 if i == 0 else 0.0
        A[i, i] -= loss / C[i]
        parts[f"m{i}"] = cs.Linear(
            [[-loss / C[i]]], [[1 / C[i]] * 2], [[1]], x0=[x0[i]], inputs=["l", "r"], outputs=["x"]
        )
    system = cs.System(parts)
    for i in range(n - 1):
        targets = {f"m{i}.r": 1, f"m{i + 1}.l": -1}
        system.law(targets, lambda a, b, g=G[i]: g * (b - a), of=[f"m{i}.x", f"m{i + 1}.x"], name=f"q{i}")
        for a, b in ((i, i + 1), (i + 1, i)):
            A[a, a] -= G[i] / C[a]
            A[a, b] += G[i] / C[a]
    system.set("m0.l", 0.0)
    system.set(f"m{n - 1}.r", 0.0)
    return Linear(system, A, x0, {f"m{i}.x": i for i in range(n)}, float(np.abs(np.linalg.eigvals(A)).max()))


def layers(rng: np.random.Generator) -> Linear:
    """An oscillator and a part of first order that dies out, joined by a law."""
    w, d, rate = rng.uniform(1, 5), rng.uniform(0, 0.3), 10 ** rng.uniform(1.3, 3.0)
    k, gain, x0 = rng.uniform(0.5, 2.0) * w**2, rng.uniform(0.001, 0.1) * rate, rng.uniform(-1, 1, 2)
    slow = cs.Linear([[0, 1], [-(w**2), -d]], [[0], [1]], [[1, 0]], x0=[x0[0], 0.0], inputs=["f"], outputs=["x"])
    fast = cs.Linear([[-rate]], [[gain / k]], [[1.0]], x0=[x0[1]], inputs=["f"], outputs=["x"])
    system = cs.System({"slow": slow, "fast": fast})
    system.law({"slow.f": 1, "fast.f": -1}, lambda a, b: k * (b - a), of=["slow.x", "fast.x"])
    A = np.array([[0, 1, 0], [-(w**2) - k, -d, k], [gain, 0, -rate - gain]])
    return Linear(system, A, np.array([x0[0], 0.0, x0[1]]), {"slow.x": 0, "fast.x": 2}, rate)


def wave(rng: np.random.Generator) -> Linear:
    """A string of masses, split in two; the spring between the halves is a law."""
    n, c, d = int(rng.integers(3, 12)), rng.uniform(0.2, 2.0), rng.uniform(0.0, 0.5)
    k = (c * n) ** 2
    K = k * (-2.0 * np.eye(2 * n) + np.eye(2 * n, k=1) + np.eye(2 * n, k=-1))
    A = np.block([[np.zeros((2 * n, 2 * n)), np.eye(2 * n)], [K, -d * np.eye(2 * n)]])
    x0 = np.exp(-((np.arange(2 * n) - rng.uniform(0, 2 * n)) ** 2) / rng.uniform(1, n) ** 2)
    parts = {}
    for name, begin, place in (("left", 0, n - 1), ("right", n, 0)):
        own = K[begin : begin + n, begin : begin + n].copy()
        own[place, place] += k
        matrix = np.block([[np.zeros((n, n)), np.eye(n)], [own, -d * np.eye(n)]])
        B, C = np.zeros((2 * n, 1)), np.zeros((1, 2 * n))
        B[n + place, 0], C[0, place] = k, 1.0
        start = np.concatenate([x0[begin : begin + n], np.zeros(n)])
        parts[name] = cs.Linear(matrix, B, C, x0=start, inputs=["f"], outputs=["x"])
    system = cs.System(parts)
    system.law({"left.f": 1, "right.f": -1}, lambda a, b: b - a, of=["left.x", "right.x"])
    names = {"left.x": n - 1, "right.x": n}
    return Linear(system, A, np.concatenate([x0, np.zeros(2 * n)]), names, 2.0 * c * n)


def line(rng: np.random.Generator) -> Linear:
    """A tank whose outflow comes back through a line of cells in a row, as a delay."""
    n, tau, loss, gain = int(rng.integers(5, 40)), rng.uniform(0.1, 1.0), rng.uniform(0.2, 2.0), rng.uniform(-1.5, 0.9)
    rate = n / tau
    A = np.zeros((n + 1, n + 1))
    A[0, 0], A[0, n] = -loss, gain
    for k in range(1, n + 1):
        A[k, k], A[k, k - 1] = -rate, rate
    x0 = np.zeros(n + 1)
    x0[0] = 1.0
    tank = cs.Linear([[-loss]], [[gain]], [[1]], x0=[1.0], inputs=["q"], outputs=["h"])
    B, C = rate * np.eye(n)[:, :1], np.eye(n)[n - 1 :]
    cells = cs.Linear(A[1:, 1:], B, C, x0=np.zeros(n), inputs=["q"], outputs=["h"])
    system = cs.System({"tank": tank, "line": cells})
    system.connect("tank.h", "line.q")
    system.connect("line.h", "tank.q")
    return Linear(system, A, x0, {"tank.h": 0, "line.h": n}, rate)


@dataclass(frozen=True)
class Bounces(Linear):
    """A ball that falls with a drag in proportion to its speed, and bounces."""

    drag: float = 0.5
    bounce: float = 0.8

    def exact(self, t: np.ndarray) -> np.ndarray:
        """Heights: each flight in closed form, its end by the root of that."""
        h, v, begin, end, rows = self.x0[0], self.x0[1], 0.0, 0.0, []
        flight = partial(_height, self.drag)
        for now in t:
            while now >= end:
                if end:
                    v = -self.bounce * float(
                        (v + 9.81 / self.drag) * np.exp(-self.drag * (end - begin)) - 9.81 / self.drag
                    )
                    h, begin = 0.0, end
                places = np.linspace(1e-9, 5.0, 2000)
                below = int(np.argmax(flight(h, v, places) < 0.0))
                end = begin + brentq(lambda s, h=h, v=v: flight(h, v, s), places[below - 1], places[below], xtol=1e-14)
            rows.append(flight(h, v, now - begin))
        return np.array(rows)[:, np.newaxis]


def _height(c: float, h: float, v: float, s: np.ndarray) -> np.ndarray:
    return h + (v + 9.81 / c) * (1.0 - np.exp(-c * s)) / c - 9.81 * s / c


def bounces(rng: np.random.Generator) -> Linear:
    """Few enough of them that flights do not become shorter than steps."""
    drag, bounce, height = rng.uniform(0.2, 2.0), rng.uniform(0.85, 0.98), rng.uniform(3.0, 8.0)
    ball = cs.HybridOde(
        lambda t, x, u: [x[1], -9.81 + u[0]],
        lambda t, x, u: x,
        x0=[height, 0.0],
        inputs=["f"],
        outputs=["h", "v"],
        indicators=lambda t, x, u: x[:1],
        jump=lambda t, x, u, advanced: [0.0, -bounce * x[1]] if x[1] < 0 else x,
        rtol=1e-11,
        atol=1e-12,
    )
    system = cs.System({"ball": ball})
    system.law({"ball.f": 1.0}, lambda v: -drag * v, of=["ball.v"])
    start, options = np.array([height, 0.0]), {"stop_at_events": True}
    return Bounces(system, np.eye(2), start, {"ball.h": 0}, 1.0, options=options, drag=drag, bounce=bounce)


KINDS: dict[str, Callable[[np.random.Generator], Linear]] = {
    "smooth": lambda rng: oscillators(rng, rng.uniform(2, 10, int(rng.integers(2, 5)))),
    "stiff": capacities,
    "multirate": lambda rng: oscillators(rng, np.array([1.0, 10 ** rng.uniform(1.3, 2.7)]) * rng.uniform(1, 3)),
    "layers": layers,
    "wave": wave,
    "line": line,
    "events": bounces,
    "kinks": lambda rng: oscillators(rng, rng.uniform(2, 10, 2), corners=True),
}


@dataclass
class Count:
    """Runs, those with all bars, bars, false ones, and how large bars are beside errors above 1e-7."""

    runs: int = 0
    complete: int = 0
    bars: int = 0
    false: int = 0
    worst: float = np.inf
    ratios: tuple[float, ...] = ()

    def __str__(self) -> str:
        spread = "/".join(f"{q:.2f}" for q in np.percentile(self.ratios, [5, 50, 95, 100])) if self.ratios else "-"
        return (
            f"{self.runs} runs, all bars in {self.complete}; {self.bars} bars, false {self.false} "
            f"(least bar/error {self.worst:.2f}); bar/error (5, 50, 95, 100 %) {spread}"
        )


def count(kind: str, seed: int, runs: int, sure: bool = False, rtol: bool = False, say: bool = False) -> Count:
    """Random runs of one kind."""
    rng, found = np.random.default_rng([seed, sum(map(ord, kind))]), Count()
    while found.runs < runs:
        case = KINDS[kind](rng)
        method = METHODS[rng.integers(len(METHODS))]
        steps = int(10 ** rng.uniform(1.6, 2.8))
        tolerance = float(10 ** rng.uniform(-5, -2.5))
        wanted = "sure" if sure else True
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                if rtol:
                    result = cs.simulate(case.system, t_end=5.0, rtol=tolerance, error_bar=wanted, **case.options)
                else:
                    given = {"method": method, "step": 5.0 / steps}
                    result = cs.simulate(case.system, t_end=5.0, error_bar=wanted, **given, **case.options)
            except cs.CosolveError:
                continue
        found.runs += 1
        bar = result.error_bar
        found.complete += bar.reason is None
        exact = case.exact(result.t)
        for name, k in case.outputs.items():
            if name not in bar.bar:
                continue
            found.bars += 1
            size = np.abs(exact[:, k]).max()
            error, high = np.abs(result[name] - exact[:, k]).max() / size, bar.bar[name].max() / size
            if error > 1e-7:
                found.ratios += (float(high / error),)
            if error > high + 1e-10:
                found.false += 1
                found.worst = min(found.worst, high / error)
                if say:
                    what = f"rtol {tolerance:.1e}" if rtol else f"{method.label} N {steps}"
                    print(f"false: {kind} {what} {name}: {high:.2e} for {error:.2e}, R = {bar.ratio:.2f}", flush=True)
    return found


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    numbers = [int(word) for word in words[1:]] + [1, 200][len(words) - 1 :]
    print(words[0], count(words[0], *numbers, sure="--sure" in sys.argv, rtol="--rtol" in sys.argv, say=True))
