"""Which unstable runs are told, and which physically growing ones are blamed: random systems, own seeds.

    python -m tests.run.stepper.growth_study [SEED] [COUNT]

Unstable: two or three masses at 1 to 40 % above the critical step; runs count whose largest value in the end is at
least ten times that of the undivided system. Growing: the same kind with negative damping or stiffness, in steps that
resolve it and with which the coupling grows like the model.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator

import numpy as np
from scipy.linalg import expm

import cosolve as cs

METHODS = [cs.Jacobi(1), cs.Jacobi(2), cs.Jacobi(0), cs.GaussSeidel(1), cs.SemiImplicit(2), cs.SemiImplicit(0)]
LENGTHS = (20, 40, 100, 300, 1000, 6000, 20000)


def network(rng: np.random.Generator, damping: float = 1.0, stiffness: float = 1.0) -> tuple[cs.System, np.ndarray]:
    """Masses joined in a row by springs and dampers as laws, or by copied motion; and the undivided matrix."""
    n = int(rng.integers(2, 4))
    k, d = 10 ** rng.uniform(0, 3, n), damping * 10 ** rng.uniform(-2, 0, n)
    kc, dc = 10 ** rng.uniform(0, 3, n - 1), 10 ** rng.uniform(-2, 0.5, n - 1)
    x0 = rng.uniform(-0.1, 0.1, n)
    stiff, damp = np.diag(stiffness * k), np.diag(d)
    for i in range(n - 1):
        stiff[i : i + 2, i : i + 2] += kc[i] * np.array([[1, -1], [-1, 1]])
        damp[i : i + 2, i : i + 2] += dc[i] * np.array([[1, -1], [-1, 1]])
    parts = {}
    for i in range(n):
        A = [[0, 1], [-stiffness * k[i], -d[i]]]
        parts[f"m{i}"] = cs.Linear(A, [[0, 0], [1, 1]], np.eye(2), x0=[x0[i], 0], inputs=["l", "r"], outputs=["x", "v"])
    system = cs.System(parts)
    for i in range(n - 1):
        of = [f"m{i}.x", f"m{i}.v", f"m{i + 1}.x", f"m{i + 1}.v"]
        system.law(
            {f"m{i}.r": 1, f"m{i + 1}.l": -1},
            lambda a, b, c, e, k=kc[i], d=dc[i]: k * (c - a) + d * (e - b),
            of=of,
            name=f"F{i}",
        )
    system.set("m0.l", 0.0)
    system.set(f"m{n - 1}.r", 0.0)
    whole = np.block([[np.zeros((n, n)), np.eye(n)], [-stiff, -damp]])
    return system, whole


def ran(system: cs.System, method: cs.Method, H: float, steps: int) -> tuple[float, bool, bool]:
    """The largest position, whether growth was told, and whether the run failed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = cs.simulate(system, method=method, step=H, t_end=steps * H)
        except cs.errors.SimulationError:
            return np.inf, True, True
    told = any(issubclass(one.category, cs.errors.StabilityWarning) for one in caught)
    return max(np.abs(result[f"m{i}.x"]).max() for i in range(len(system.subsystems))), told, False


def unstable(seed: int, count: int) -> Iterator[tuple[bool, str]]:
    """Runs that the coupling blew up; whether that was told."""
    rng, done = np.random.default_rng(seed), 0
    while done < count:
        system, whole = network(rng)
        method = METHODS[rng.integers(len(METHODS))]
        limit = cs.analysis.critical_step(system, method)
        if not 0.0 < limit < np.inf:
            continue
        factor, steps = 1.0 + 10 ** rng.uniform(-2, -0.4), int(LENGTHS[rng.integers(len(LENGTHS))])
        largest, told, failed = ran(system, method, factor * limit, steps)
        n = len(whole) // 2
        start = np.concatenate([[p.x0[0] for p in system.subsystems.values()], np.zeros(n)])
        times = np.linspace(0.0, steps * limit, 200)
        bound = max(np.abs((expm(t * whole) @ start)[:n]).max() for t in times)
        if failed or not largest > 10.0 * bound:
            continue
        done += 1
        yield told, f"{method.label} x {factor:.3f} steps {steps} grew {largest / bound:.1e}"


def growing(seed: int, count: int) -> Iterator[tuple[bool, str]]:
    """Runs whose model grows; whether the coupling was blamed."""
    rng, done = np.random.default_rng(seed), 0
    while done < count:
        damping, stiffness = ((-rng.uniform(0.2, 3.0), 1.0), (1.0, -rng.uniform(0.2, 2.0)))[int(rng.integers(2))]
        system, whole = network(rng, damping, stiffness)
        rate, fast = np.linalg.eigvals(whole).real.max(), np.abs(np.linalg.eigvals(whole)).max()
        if rate <= 1e-3 * fast:
            continue
        method = METHODS[rng.integers(len(METHODS))]
        H = rng.uniform(0.02, 0.15) / fast
        here = cs.analysis.amplification_matrix(system, method, H).eigenvalues
        if abs(np.log(np.abs(here).max()) / H / rate - 1.0) > 0.1:  # the coupling grows too
            continue
        steps = int(min(20000, rng.uniform(8.0, 30.0) / (rate * H)))
        if steps < 16:
            continue
        largest, told, failed = ran(system, method, H, steps)
        if failed:
            continue
        done += 1
        yield (
            told,
            f"{method.label} steps {steps} grew to {largest:.1e} damping {damping:.2f} stiffness {stiffness:.2f}",
        )


def main(words: list[str]) -> None:
    """Print what was told and what was not."""
    seed, count = (int(words[0]) if words else 1), (int(words[1]) if len(words) > 1 else 200)
    for kind, wanted in ((unstable, True), (growing, False)):
        found = list(kind(seed, count))
        for told, what in found:
            if told is not wanted:
                print(f"{kind.__name__}: {'told' if told else 'silent'}: {what}")
        print(f"{kind.__name__}: told {sum(told for told, _ in found)} of {len(found)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
