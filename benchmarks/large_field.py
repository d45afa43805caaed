"""A field of 100 000 values coupled by IQN-ILS: memory, and the share of a step that is not spent in the subsystems.

    python benchmarks/large_field.py [--seconds 1] [--steps 4] [--values 100000] [--sweep jacobi] [--corrector iqn-ils]

A stretched string (tridiagonal, backward Euler) takes the forces of a bed of hardening springs, which takes its
displacements: 200 000 coupling variables in a parallel sweep, 100 000 in a serial one. Each call of a subsystem takes
`--seconds`: its own work, and sleep for the rest. Prints the peak of the resident memory, before and after, the share
of the wall time outside the subsystems, and how far the answer is from equilibrium.
"""

from __future__ import annotations

import argparse
import resource
import sys
from time import perf_counter, sleep

import numpy as np
from scipy.linalg import cho_solve_banded, cholesky_banded

import cosolve as cs
from cosolve.corrector import Anderson, Corrector, IqnIls, IqnImvj

CORRECTORS: dict[str, type[Corrector]] = {"iqn-ils": IqnIls, "iqn-imvj": IqnImvj, "anderson": Anderson}


class _Slow(cs.Subsystem):
    """Takes its time: `answer` is the work, the rest is sleep."""

    seconds = 0.0

    def advance(self, t0: float, t1: float, u: cs.InputSignal) -> np.ndarray:
        began = perf_counter()
        y = self.answer(t1, u.end)
        sleep(max(0.0, self.seconds - (perf_counter() - began)))
        return y

    def answer(self, t: float, u: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class String(_Slow):
    """Forces per length in, displacements out; driven by a travelling load."""

    def __init__(self, n: int, h: float, seconds: float) -> None:
        self.n, self.h, self.seconds = n, h, seconds
        self.inputs, self.outputs = [cs.Port("f", n, "N/m", nominal=10.0)], [cs.Port("u", n, "m", nominal=0.1)]
        self.x = np.linspace(0, 1, n + 2)[1:-1]
        le = self.x[1] - self.x[0]
        bands = np.zeros((2, n))
        bands[0], bands[1] = -10.0 / le**2, 1 / h**2 + 20.0 / le**2  # 10 N, 1 kg/m
        self._factor = cholesky_banded(bands), False

    def start(self, t0: float) -> np.ndarray:
        self._now = self._old = np.zeros(self.n)
        return self._now

    def answer(self, t: float, f: np.ndarray) -> np.ndarray:
        load = 40.0 * np.sin(3 * np.pi * self.x) * np.sin(8 * t) + 15.0 * np.exp(-((self.x - t) ** 2) / 0.01)
        u = cho_solve_banded(self._factor, (2 * self._now - self._old) / self.h**2 + load + f)
        self._now, self._old = u, self._now
        return u

    def save(self) -> tuple[np.ndarray, np.ndarray]:
        return self._now, self._old

    def restore(self, state: tuple[np.ndarray, np.ndarray]) -> None:
        self._now, self._old = state


class Bed(_Slow):
    """Displacements in, forces of hardening springs out, every point for itself."""

    def __init__(self, n: int, seconds: float) -> None:
        self.n, self.seconds = n, seconds
        self.inputs, self.outputs = [cs.Port("u", n, "m", nominal=0.1)], [cs.Port("f", n, "N/m", nominal=10.0)]

    def start(self, t0: float) -> np.ndarray:
        return np.zeros(self.n)

    def answer(self, t: float, u: np.ndarray) -> np.ndarray:
        return -(800.0 + 2e4 * u * u) * u

    def save(self) -> None:
        return None

    def restore(self, state: None) -> None:
        pass


def system(n: int, h: float, seconds: float = 0.0) -> cs.System:
    """String and bed on the same points."""
    joined = cs.System({"string": String(n, h, seconds), "bed": Bed(n, seconds)})
    joined.connect("string.u", "bed.u")
    joined.connect("bed.f", "string.f")
    return joined


def simulate(
    n: int, steps: int, seconds: float = 0.0, sweep: str = "jacobi", h: float = 0.02, corrector: str = "iqn-ils"
) -> cs.Result:
    """The coupled run, with the corrector as it is without any settings."""
    method = cs.Implicit(degree=1, tol=1e-8, corrector=CORRECTORS[corrector](), sweep=sweep)  # type: ignore[arg-type]
    return cs.simulate(system(n, h, seconds), t_end=steps * h, method=method, step=h)


def peak_megabytes() -> float:
    """The largest resident memory of this process so far (Linux gives kilobytes)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--sweep", choices=["jacobi", "gauss-seidel"], default="jacobi")
    parser.add_argument("--corrector", choices=list(CORRECTORS), default="iqn-ils")
    options = parser.parse_args()
    before = peak_megabytes()
    result = simulate(options.values, options.steps, options.seconds, options.sweep, corrector=options.corrector)
    stats = result.stats
    inside = sum(stats.seconds.values())
    calls = stats.calls["string"]
    outside = stats.wall_seconds - inside
    f, u = result["bed.f"][-1], result["string.u"][-1]
    iterations = [int(count) for count in result.iterations]
    share = outside / stats.wall_seconds
    print(f"{options.values} values, {options.corrector}, {options.sweep}, {options.steps} steps, {calls} evaluations")
    print(f"corrections {iterations}, wall {stats.wall_seconds:.2f} s, in subsystems {inside:.2f} s")
    print(f"outside {outside:.2f} s = {share:.1%} of the wall time, {outside / calls * 1e3:.0f} ms per evaluation")
    print(f"peak memory {peak_megabytes():.0f} MB ({before:.0f} MB before the run)")
    print(f"largest force that bed and string disagree about: {np.abs(f + (800.0 + 2e4 * u * u) * u).max():.1e} N/m")


if __name__ == "__main__":
    main()
