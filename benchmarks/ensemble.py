"""10 000 variants of the two-mass oscillator, 1000 macro steps each: `cs.sweep` against JAX `vmap` (PF-5).

Force/displacement coupling, Jacobi of degree 0 and 1; stiffness and damping of the coupling spring differ per variant;
kept are the end values of position, velocity and force. Both sides do the same arithmetic in double precision: exact
propagators of both subsystems, then the macro steps. JAX runs `jit(vmap(scan))` over scalar expressions, at the best of
several unrollings and memory layouts; compile times are not counted on either side. Rows of the table:

    loop            the macro steps alone
    + propagators   with the matrix exponentials (JAX: vmap of a series) and, on our side, all laying out and collecting
    whole sweep     cs.sweep(..., matrices=...), with checks and labels, against JAX's loop + propagators; then
                    its parts [ms]: building the first systems and the matrices, propagators, preparing ...
    systems built   cs.sweep without matrices=: 10 000 System objects made by build (once)

Run with `python benchmarks/ensemble.py [--variants 10000] [--steps 1000] [--repeats 7] [--degree 1]`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

import cosolve as cs

H = 1e-4
C1, C2, D1, D2 = 1e4, 2e4, 2.0, 4.0


def build(ck: float, dk: float) -> cs.System:
    one = cs.Linear([[0, 1], [-C1, -D1]], [[0], [1]], np.eye(2), x0=[1, 0], inputs=["f"], outputs=["x", "v"])
    two = cs.Linear(
        [[0, 1], [-(C2 + ck), -(D2 + dk)]],
        [[0, 0], [ck, dk]],
        [[ck, dk]],
        [[-ck, -dk]],
        x0=[2, 0],
        inputs=["x1", "v1"],
        outputs=["F"],
    )
    system = cs.System({"one": one, "two": two})
    system.connect("one.x", "two.x1")
    system.connect("one.v", "two.v1")
    system.connect("two.F", "one.f")
    return system


def matrices(ck: Any, dk: Any) -> dict[str, dict[str, Any]]:
    return {
        "two": {
            "A": [[0, 1], [-(C2 + ck), -(D2 + dk)]],
            "B": [[0, 0], [ck, dk]],
            "C": [[ck, dk]],
            "D": [[-ck, -dk]],
        }
    }


def jax_functions(degree: int, steps: int, unroll: int, axis: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The propagators of one variant, and its macro steps, mapped over all variants."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def exponential(M: Any) -> Any:
        """Scaling by 2^5, Taylor series, squaring. (JAX's own expm, under vmap, hangs now and then on two cores.)"""
        one, X = jnp.eye(M.shape[0]), M / 32.0
        T = one
        for k in range(18, 0, -1):
            T = one + X @ T / k
        for _ in range(5):
            T = T @ T
        return T

    def propagator(A: Any, B: Any) -> Any:
        n, p = B.shape
        chain = jnp.zeros((n + p * (degree + 1),) * 2)
        chain = chain.at[:n, :n].set(A * H).at[:n, n : n + p].set(B * H)
        if degree:
            chain = chain.at[n : n + p * degree, n + p :].set(jnp.eye(p * degree))
        return exponential(chain)[:n]  # degree <= 1: all factorials are 1

    def propagators(ck: Any, dk: Any) -> tuple[Any, Any]:
        one = propagator(jnp.array([[0.0, 1.0], [-C1, -D1]]), jnp.array([[0.0], [1.0]]))  # the same for all
        A = jnp.array([[0.0, 1.0], [-(C2 + ck), -(D2 + dk)]])
        return one, propagator(A, jnp.array([[0.0, 0.0], [ck, dk]]))

    def run(P: Any, Q: Any, ck: Any, dk: Any) -> Any:
        def step(state: Any, _: None) -> tuple[Any, None]:
            a, b, c, d, F, a0, b0, F0 = state
            x = P[0, 0] * a + P[0, 1] * b + P[0, 2] * F
            v = P[1, 0] * a + P[1, 1] * b + P[1, 2] * F
            X = Q[0, 0] * c + Q[0, 1] * d + Q[0, 2] * a + Q[0, 3] * b
            V = Q[1, 0] * c + Q[1, 1] * d + Q[1, 2] * a + Q[1, 3] * b
            end_a, end_b = a, b
            if degree:
                da, db, dF = a - a0, b - b0, F - F0
                x, v = x + P[0, 3] * dF, v + P[1, 3] * dF
                X, V = X + Q[0, 4] * da + Q[0, 5] * db, V + Q[1, 4] * da + Q[1, 5] * db
                end_a, end_b = a + da, b + db
            force = ck * X + dk * V + (-ck * end_a - dk * end_b)
            return (x, v, X, V, force, a, b, F), None

        F = ck * 2.0 - ck * 1.0
        first = (1.0 + 0 * ck, 0 * ck, 2.0 + 0 * ck, 0 * ck, F, 1.0 + 0 * ck, 0 * ck, F)
        end, _ = jax.lax.scan(step, first, None, length=steps, unroll=unroll)
        return end[0], end[1], end[4]

    made = jax.jit(jax.vmap(propagators, out_axes=(None, axis)))
    return made, jax.jit(jax.vmap(run, in_axes=(None, axis, 0, 0)))


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    began = perf_counter()
    value = function()
    return perf_counter() - began, value


def best_of_jax(degree: int, steps: int, ck: Any, dk: Any) -> tuple[Any, Any, str, float]:
    """The fastest of several settings, and what compiling that one took."""
    import jax

    found = []
    for axis in (0, -1):
        for unroll in (1, 8, 20):
            made, run = jax_functions(degree, steps, unroll, axis)
            P = jax.block_until_ready(made(ck, dk))
            compiling, _ = timed(lambda run=run, P=P: jax.block_until_ready(run(*P, ck, dk)))
            spent = min(timed(lambda run=run, P=P: jax.block_until_ready(run(*P, ck, dk)))[0] for _ in range(2))
            found.append((spent, f"unroll {unroll}, variants {'last' if axis else 'first'}", made, run, compiling))
    spent, label, made, run, compiling = min(found, key=lambda f: f[0])
    return made, run, label, compiling


def compare(degree: int, variants: int, steps: int, repeats: int) -> None:
    import jax

    random = np.random.default_rng(0)
    ck, dk = 1e5 * (1.0 + random.random(variants)), 10.0 * (1.0 + random.random(variants))
    rows = pd.DataFrame({"ck": ck, "dk": dk})
    kept = {"methods": cs.Jacobi(degree), "steps": H, "t_end": H * steps, "record": ["one.x", "one.v", "two.F"]}
    made, run, label, compiling = best_of_jax(degree, steps, ck, dk)
    first, _ = timed(lambda: cs.sweep(build, rows[:64], **kept, matrices=matrices))

    shares: list[dict[str, float]] = []
    times: dict[str, list[float]] = {name: [] for name in ("jl", "jp", "ol", "op", "ow")}
    for _ in range(repeats):  # interleaved: both sides see the same load of the machine
        spent, P = timed(lambda: jax.block_until_ready(made(ck, dk)))
        loop, theirs = timed(lambda P=P: jax.block_until_ready(run(*P, ck, dk)))
        times["jl"].append(loop)
        times["jp"].append(spent + loop)
        whole, ours = timed(lambda: cs.sweep(build, rows, **kept, matrices=matrices))
        parts = {name.removeprefix("seconds_"): s for name, s in ours.attrs.items() if name.startswith("seconds_")}
        times["ol"].append(parts["loop"])
        times["op"].append(sum(parts[k] for k in ("propagators", "preparing", "loop", "collecting")))
        times["ow"].append(whole)
        shares.append(parts | {"rest": whole - sum(parts.values())})
    theirs = np.array(theirs).T
    size = np.abs(theirs).max(axis=0)
    difference = float((np.abs(ours[kept["record"]].to_array("quantity").T.values - theirs) / size).max())
    built, _ = timed(lambda: cs.sweep(build, rows, **kept))
    print(f"\nJacobi({degree}), {variants} variants, {steps} steps, {repeats} repeats; JAX at {label}")
    print(f"largest difference {difference:.1e} of the largest value; {ours.attrs['how']}")
    print(f"compiling, or reading compiled code: JAX {compiling:.2f} s, cosolve (a first sweep of 64) {first:.2f} s")
    print(f"{'':16}{'JAX [ms]':>22}{'cosolve [ms]':>22}{'ratio':>8}{'  (of pairs)':>18}")
    for name, theirs_key, ours_key in (
        ("loop", "jl", "ol"),
        ("+ propagators", "jp", "op"),
        ("whole sweep", "jp", "ow"),
    ):
        a, b = times[theirs_key], times[ours_key]
        ratios = [p / q for p, q in zip(a, b, strict=True)]
        print(
            f"{name:16}{spread(a):>22}{spread(b):>22}{median(a) / median(b):8.1f}"
            f"{f'{min(ratios):.1f} .. {max(ratios):.1f}':>18}"
        )
    parts = {name: 1e3 * median(share[name] for share in shares) for name in shares[0]}
    print("of whole sweep: " + ", ".join(f"{name} {spent:.1f}" for name, spent in parts.items()))
    print(f"{'systems built':16}{'':22}{1e3 * built:>22.0f}")


def spread(times: list[float]) -> str:
    return f"{1e3 * median(times):.1f} ({1e3 * min(times):.1f} .. {1e3 * max(times):.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--degree", type=int, choices=(0, 1), action="append")
    chosen = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, numpy {np.__version__}, cosolve {cs.__version__}")
    for degree in chosen.degree or (0, 1):
        compare(degree, chosen.variants, chosen.steps, chosen.repeats)


if __name__ == "__main__":
    main()
