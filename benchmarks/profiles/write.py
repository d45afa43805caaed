"""Writes the profiles next to this file: where a macro step of cosolve spends its time, path by path.

    python benchmarks/profiles/write.py

cProfile slows Python down and not machine code, so shares are to be read within one kind; the first lines of each file
give undisturbed times.
"""

from __future__ import annotations

import cProfile
import io
import pstats
import re
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from time import perf_counter

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from problems import fmus  # noqa: E402
from problems import oscillator as o  # noqa: E402
from problems.plain import Plain  # noqa: E402

import cosolve as cs  # noqa: E402


def pair(one: cs.Subsystem, two: cs.Subsystem) -> cs.System:
    """Force/displacement."""
    system = cs.System({"one": one, "two": two})
    system.connect("one.x", "two.x1")
    system.connect("one.v", "two.v1")
    system.connect("two.F", "one.f")
    return system


def forces(path: str) -> cs.System:
    """Two masses and the law of the spring."""
    import numba

    system = cs.System({"one": cs.load_fmu(path), "two": cs.load_fmu(path, start={"x": o.X2})})
    law = numba.njit(lambda x1, v1, x2, v2: o.CK * (x2 - x1) + o.DK * (v2 - v1))
    system.law({"one.f": 1, "two.f": -1}, law, of=["one.x", "one.v", "two.x", "two.v"], name="lam")
    return system


def profiled(name: str, what: str, system: cs.System, method: cs.Method, steps: int, compiled: bool) -> None:
    """Time it, watch it, write it down."""
    run: Callable[[], cs.Result] = partial(
        cs.simulate, system, t_end=steps * o.H, method=method, step=o.H, compiled=compiled
    )
    run()
    times, inside = [], []
    for _ in range(5):
        began = perf_counter()
        result = run()
        times.append((perf_counter() - began) / steps)
        inside.append(result.stats.compiled_seconds / steps)
    k = sorted(range(5), key=times.__getitem__)[2]
    watch = cProfile.Profile()
    watch.runcall(run)
    text = io.StringIO()
    pstats.Stats(watch, stream=text).sort_stats("tottime").print_stats(16)
    lines = [f"{what}; {steps} macro steps", f"undisturbed: {times[k] * 1e9:.0f} ns per step (median of 5)"]
    if compiled:
        lines.append(f"  of them inside compiled chunks and their counters: {inside[k] * 1e9:.0f} ns")
    table = re.sub(r"\S*/(cosolve|site-packages|benchmarks|python3\.\d+)/", r"\1/", text.getvalue())
    kept = [line.rstrip() for line in table.splitlines() if line.strip()]
    (HERE / f"{name}.txt").write_text("\n".join([*lines, "", *kept[2:]]) + "\n")
    print(*lines, sep="\n")


def main() -> None:
    """All paths."""
    files = asdict(fmus.build())["fmus"]
    both = pair(cs.load_fmu(files["mass_force"]), cs.load_fmu(files["mass_spring"]))
    profiled("compiled_jacobi", "two FMUs, Jacobi, compiled loop", both, cs.Jacobi(0), 1_000_000, True)
    rollback = cs.SemiImplicit(0, jacobian="difference")
    profiled("compiled_rollback", "two FMUs, rollback, compiled", forces(files["mass_force"]), rollback, 100_000, True)
    plain = pair(Plain(False, o.H), Plain(True, o.H))
    profiled("readable_engine", "Python subsystems, Jacobi, Python engine", plain, cs.Jacobi(0), 20_000, False)
    far = cs.remote.Isolated(partial(Plain, True, o.H), timeout=60.0)
    apart = pair(Plain(False, o.H), far)
    profiled("processes", "one mass in a process of its own, shared memory", apart, cs.Jacobi(0), 5000, False)
    profiled("processes_callback", "the same, compiled loop that calls Python back", apart, cs.Jacobi(0), 20_000, True)
    far.close()


if __name__ == "__main__":
    main()
