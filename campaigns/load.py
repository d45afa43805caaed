"""Large systems: a thousand subsystems, and fields of a hundred thousand values."""

from __future__ import annotations

from time import perf_counter, process_time

import numpy as np
from scipy.linalg import expm

import cosolve as cs
from campaigns.page import Outcome
from campaigns.soak import resident


def chain(n: int) -> cs.System:
    """Tanks in a row, each fed by the one before."""

    def tank(level: float) -> cs.Linear:
        return cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[level], inputs=["q"], outputs=["h"])

    system = cs.System({f"t{k}": tank(1.0 if k == 0 else 0.0) for k in range(n)})
    system.set("t0.q", 0.0)
    for k in range(1, n):
        system.connect(f"t{k - 1}.h", f"t{k}.q")
    return system


def chain_error(n: int, method: cs.Method, step: float, t_end: float) -> float:
    """The largest error of the first 20 tanks at the end: those do not know how many follow."""
    m = min(n, 20)
    A = -np.eye(m) + np.eye(m, k=-1)
    exact = expm(A * t_end)[:, 0]
    result = cs.simulate(chain(n), t_end=t_end, method=method, step=step, record=[f"t{k}.h" for k in range(m)])
    return max(abs(float(result[f"t{k}.h"][-1]) - exact[k]) for k in range(m))


class Field(cs.Subsystem):
    """`y' = (u - y) / T` at every point, exactly for inputs that are linear in the step."""

    inputs: list[tuple[str, int]]

    def __init__(self, n: int, first: np.ndarray) -> None:
        self.inputs, self.outputs, self.first = [("u", n)], [("y", n)], first

    def start(self, t0: float) -> np.ndarray:
        self.y = self.first
        return self.y

    def advance(self, t0: float, t1: float, u: cs.InputSignal) -> np.ndarray:
        h, a, b = t1 - t0, u(t0), u(t1)
        slope = (b - a) / h
        self.y = b - slope + (self.y - a + slope) * np.exp(-h)
        return self.y

    def save(self) -> np.ndarray:
        return self.y

    def restore(self, state: np.ndarray) -> None:
        self.y = state


def field_error(n: int, method: cs.Method, step: float) -> float:
    """Two fields that follow each other: their mean stays, their difference decays with exp(-2 t)."""
    shape = np.sin(np.linspace(0.0, 3.0, n))
    system = cs.System({"a": Field(n, shape), "b": Field(n, -shape)})
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    result = cs.simulate(system, t_end=1.0, method=method, step=step, every=1000)
    return float(np.abs(result["a.y"][-1] - shape * np.exp(-2.0)).max())


def run(quick: bool = False) -> Outcome:
    """The campaign."""
    outcome = Outcome(["what", "method", "error", "error allowed", "seconds", "CPU seconds", "memory now (MB)"])
    n, points = (60, 2000) if quick else (1000, 100_000)
    work = [
        (f"{n} subsystems", cs.Jacobi(degree=1), lambda m: chain_error(n, m, 0.02, 1.0), 5e-4),
        (f"{n} subsystems", cs.GaussSeidel(degree=1), lambda m: chain_error(n, m, 0.02, 1.0), 5e-4),
        (f"{n} subsystems", cs.SemiImplicit(degree=1), lambda m: chain_error(n, m, 0.02, 1.0), 5e-4),
        (f"fields of {points} values", cs.Jacobi(degree=1), lambda m: field_error(points, m, 0.02), 1e-3),
        (
            f"fields of {points} values",
            cs.Implicit(degree=1, tol=1e-8, corrector=cs.IqnIls()),
            lambda m: field_error(points, m, 0.02),
            1e-3,
        ),
    ]
    for what, method, error_of, allowed in work:
        began, cpu = perf_counter(), process_time()
        error = error_of(method)
        outcome.good = outcome.good and error < allowed
        outcome.rows.append(
            [
                *(what, method.label, f"{error:.2g}", f"{allowed:g}", f"{perf_counter() - began:.1f}"),
                *(f"{process_time() - cpu:.1f}", f"{resident() / 1e6:.0f}"),
            ]
        )
    return outcome
