"""Time per macro step of a chain of 10, 100 and 1000 small subsystems, for each family of methods.

Everything in the engine should cost a constant time per subsystem, so the time per macro step *and subsystem* at 1000
should be close to that at 10. The right-most column is that ratio. Run with

    python benchmarks/chain.py            the table
    python benchmarks/chain.py --profile  where the time of the largest chain goes, method by method
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
from collections.abc import Callable
from time import perf_counter

import numpy as np

import cosolve as cs

SIZES = (10, 100, 1000)
REPEATS = 5
H = 1.0 / 128  # a power of two: the same to the last bit whatever the number of steps


def linear_cell() -> cs.Subsystem:
    """A heated cell with its own exact propagation and Jacobian: `x' = left - 2 x + right`."""
    return cs.Linear([[-2.0]], [[1.0, 1.0]], [[1.0]], x0=[0.0], inputs=["left", "right"], outputs=["x"])


def ode_cell() -> cs.Subsystem:
    """The same cell from a right-hand side, without a Jacobian: it is differenced."""
    return cs.Ode(
        lambda t, x, u: -2.0 * x + u[0] + u[1],
        lambda t, x, u: x,
        x0=[0.0],
        inputs=["left", "right"],
        outputs=["x"],
        integrator="ode2",
        internal_step=H,
    )


def chain(count: int, cell: Callable[[], cs.Subsystem]) -> cs.System:
    """`count` cells in a row, the outer neighbours held at 1 and 0."""
    system = cs.System({f"c{i}": cell() for i in range(count)})
    for i in range(count):
        targets = [f"c{k}.{side}" for k, side in ((i - 1, "right"), (i + 1, "left")) if 0 <= k < count]
        system.connect(f"c{i}.x", *targets)
    system.set("c0.left", 1.0)
    system.set(f"c{count - 1}.right", 0.0)
    return system


def law_chain(count: int) -> cs.System:
    """The same chain with one law (a heat flow) between neighbours."""
    cells = {
        f"c{i}": cs.Linear(
            [[0.0]], [[1.0, 1.0]], [[1.0]], x0=[1.0 if i == 0 else 0.0], inputs=["left", "right"], outputs=["x"]
        )
        for i in range(count)
    }
    system = cs.System(cells)
    for i in range(count - 1):
        system.law(
            {f"c{i}.right": -1, f"c{i + 1}.left": 1},
            lambda a, b: a - b,
            of=[f"c{i}.x", f"c{i + 1}.x"],
            jacobian=lambda a, b: [1.0, -1.0],
            name=f"flow{i}",
        )
    system.set("c0.left", 0.0)
    system.set(f"c{count - 1}.right", 0.0)
    return system


def static_chain(count: int) -> cs.System:
    """Memoryless gains in a row: start-up and re-evaluation have to follow feed-through all along."""
    source = cs.Static(lambda t, u: t, inputs=[], outputs=["y"])
    gains = {f"g{i}": cs.Static(lambda t, u: 0.999 * u[0], inputs=["u"], outputs=["y"]) for i in range(count)}
    system = cs.System({"source": source, **gains})
    for i in reversed(range(count)):
        system.connect(f"g{i - 1}.y" if i else "source.y", f"g{i}.u")
    return system


CASES: dict[str, tuple[Callable[[int], cs.System], cs.Method]] = {
    "Jacobi": (lambda n: chain(n, linear_cell), cs.Jacobi(degree=1)),
    "Jacobi, laws": (law_chain, cs.Jacobi(degree=1)),
    "Jacobi, Ode": (lambda n: chain(n, ode_cell), cs.Jacobi(degree=1)),
    "Jacobi, exchanged": (lambda n: chain(n, ode_cell), cs.Jacobi(degree=1, outputs="exchanged")),
    "Jacobi, exchanged gains": (static_chain, cs.Jacobi(degree=1, outputs="exchanged")),
    "GaussSeidel": (lambda n: chain(n, linear_cell), cs.GaussSeidel(degree=1)),
    "GaussSeidel, laws": (law_chain, cs.GaussSeidel(degree=1)),
    "SemiImplicit, exact": (lambda n: chain(n, linear_cell), cs.SemiImplicit(degree=1)),
    "SemiImplicit, laws": (law_chain, cs.SemiImplicit(degree=1)),
    "SemiImplicit, differences": (lambda n: chain(n, ode_cell), cs.SemiImplicit(degree=1)),
    "Implicit": (lambda n: chain(n, linear_cell), cs.Implicit(degree=1)),
    "Implicit, differences": (lambda n: chain(n, ode_cell), cs.Implicit(degree=1)),
}


def measure(name: str, size: int) -> tuple[float, float, float]:
    """Seconds to build and compile, to run one step, and per further macro step (best of several)."""
    build, method = CASES[name]
    began = perf_counter()
    system = build(size)
    system.plan()
    building = perf_counter() - began
    few, many = 3, 3 + max(5, 1000 // size)
    best = dict.fromkeys((1, few, many), np.inf)
    cs.simulate(system, t_end=few * H, method=method, step=H)  # warm: matrix exponentials are computed once
    for _ in range(REPEATS):
        for count in best:
            began = perf_counter()
            cs.simulate(system, t_end=count * H, method=method, step=H)
            best[count] = min(best[count], perf_counter() - began)
    return building, best[1], (best[many] - best[few]) / (many - few)


def table() -> None:
    """Print one row per method family."""
    print("microseconds per macro step and subsystem; ratio = largest chain / smallest chain")
    print("build, start: microseconds per subsystem to build the system and to run one step, smallest -> largest chain")
    head = "".join(f"{n:>9}" for n in SIZES)
    print(f"{'':26}{head}{'ratio':>8}   {'build':>14}   {'start':>16}")
    for name in CASES:
        rows = np.array([measure(name, n) for n in SIZES]) / np.array(SIZES)[:, np.newaxis] * 1e6
        building, starting, stepping = rows.T
        cells = "".join(f"{v:9.2f}" for v in stepping)
        first = f"{building[0]:5.0f} -> {building[-1]:5.0f}   {starting[0]:6.0f} -> {starting[-1]:6.0f}"
        print(f"{name:26}{cells}{stepping[-1] / stepping[0]:8.2f}   {first}", flush=True)


def profile() -> None:
    """Print where the largest chain spends its time."""
    for name, (build, method) in CASES.items():
        system = build(SIZES[-1])
        watch = cProfile.Profile()
        watch.runcall(cs.simulate, system, t_end=20 * H, method=method, step=H)
        print(f"\n=== {name}")
        pstats.Stats(watch).sort_stats("tottime").print_stats(8)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", action="store_true")
    profile() if parser.parse_args().profile else table()
