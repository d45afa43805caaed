"""Error bars of random linear systems of hard kinds, against matrix exponentials; nothing is tuned on them.

    python -m tests.trust.random_bars KIND [SEED] [COUNT] [--sure] [--rtol]

Kinds: `smooth` oscillators; `stiff` capacities with rates from 1 to 1e3 per second; `multirate` pairs, one 20 to 500
times faster; `kinks`, oscillators driven by a table with corners. Fixed steps of random length and method, or `rtol=`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm

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


KINDS: dict[str, Callable[[np.random.Generator], Linear]] = {
    "smooth": lambda rng: oscillators(rng, rng.uniform(2, 10, int(rng.integers(2, 5)))),
    "stiff": capacities,
    "multirate": lambda rng: oscillators(rng, np.array([1.0, 10 ** rng.uniform(1.3, 2.7)]) * rng.uniform(1, 3)),
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
        spread = "/".join(f"{q:.2f}" for q in np.percentile(self.ratios, [5, 50, 95])) if self.ratios else "-"
        return (
            f"{self.runs} runs, all bars in {self.complete}; {self.bars} bars, false {self.false} "
            f"(least bar/error {self.worst:.2f}); bar/error {spread}"
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
                    result = cs.simulate(case.system, t_end=5.0, rtol=tolerance, error_bar=wanted)
                else:
                    result = cs.simulate(case.system, t_end=5.0, method=method, step=5.0 / steps, error_bar=wanted)
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
