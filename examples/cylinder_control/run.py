"""Oscillating cylinder in a flow, stopped by a PID controller: fluid, structure and signal coupled.

    python examples/cylinder_control/run.py [--out DIR] [--quick]

Prints frequency, amplitudes and evaluations per step next to those of a reference code, and the poles of the loop for
both signs of the error. `--quick` couples only the time around the switching and takes the motion before it from the
monolithic code. What is drawn (`DIR` is `build/cylinder_control` unless given):

- `motion.png`: displacement with and without control, lift and motion of the root while control sets in;
- `iterations.png`: evaluations per step, and residuals over the evaluations of some steps;
- `wrong_sign.png`: the error sign of the source's text against the right one.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.cylinder_control.model import (
    WRONG_SIGN,
    Cylinder,
    State,
    amplitude,
    frequency,
    method,
    monolithic,
    system,
)

T_END = 16.0
TOL = 1e-8


def coupled(p: Cylinder, t_start: float, first: State, tol: float = TOL) -> cs.Result:
    """A run from `first` to the end."""
    return cs.simulate(system(p, first), t_start=t_start, t_end=T_END, method=method(tol), step=p.h)


def table(t: np.ndarray, u: np.ndarray, result: cs.Result, p: Cylinder) -> str:
    """Ours and the reference code."""
    assert p.on_at is not None
    before = (t > 2.0) & (t <= p.on_at)
    free, held = amplitude(t, u, p.on_at - 1.0, p.on_at), amplitude(t, u, T_END - 1.0, T_END)
    evaluations = result.iterations + 1
    right, wrong = p.poles()[0], p.poles(-1.0)[0]
    rows = [
        ("frequency from 2 s to 12 s, Hz", "7.0157", f"{frequency(t[before], u[before]):.4f}"),
        ("amplitude at 12 s, m", "7.14e-04", f"{free:.3e}"),
        ("amplitude at 12 s over D", "0.446", f"{free / p.diameter:.4f}"),
        ("amplitude with control, m", "4.84e-06", f"{held:.3e}"),
        ("reduction", "147", f"{free / held:.1f}"),
        ("evaluations per step", "2.05 (max 3)", f"{evaluations.mean():.3f} (max {evaluations.max()})"),
        ("poles with e = -u", "-9.77 ± 43.4i", f"{right.real:.2f} ± {abs(right.imag):.1f}i"),
        ("poles with e = +u", "+9.65 ± 42.6i", f"+{wrong.real:.2f} ± {abs(wrong.imag):.1f}i"),
    ]
    return "\n".join(
        f"{what:32s} {theirs:>16s} {ours:>16s}" for what, theirs, ours in [("", "reference code", "ours"), *rows]
    )


def draw_motion(path: Path, result: cs.Result, t: np.ndarray, u: np.ndarray, free: np.ndarray, p: Cylinder) -> None:
    """`u` is the controlled motion over all times `t`, `free` the uncontrolled one."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(4, 1, figsize=(9.5, 10), layout="constrained", height_ratios=(3, 2, 2, 2))
    top, close, lift, root = panels
    top.plot(t, free / p.diameter, color="0.7", lw=0.5, label="without control")
    top.plot(t, u / p.diameter, color="C0", lw=0.5, label="with control from 12 s")
    top.set(ylabel="u / D", xlim=(0, T_END), title="Cylinder in its wake, Re = 109, h = 5e-4 s")
    shown = (t >= p.on_at - 0.4) & (t <= p.on_at + 1.0)
    close.plot(t[shown], free[shown] / p.diameter, color="0.7", lw=1)
    close.plot(t[shown], u[shown] / p.diameter, color="C0", lw=1)
    close.set_ylabel("u / D")
    part = (result.t >= p.on_at - 0.4) & (result.t <= p.on_at + 1.0)
    lift.plot(result.t[part], 1e3 * result["fluid.f"][part], color="C1", lw=1)
    lift.set_ylabel("lift in mN")
    root.plot(result.t[part], 1e3 * result["signal.psi"][part], color="C2", lw=1)
    root.set(ylabel="root ψ in mm", xlabel="t in s")
    for axes in (close, lift, root):
        axes.set_xlim(p.on_at - 0.4, p.on_at + 1.0)
        axes.axvline(p.on_at, color="k", lw=0.8, ls=":")
    for axes in panels:
        axes.grid(alpha=0.3)
    top.legend(loc="upper left", fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_iterations(path: Path, found: dict[float, cs.Result], p: Cylinder) -> None:
    """Results by tolerance; the residuals are those of the last."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for k, (tol, result) in enumerate(found.items()):
        evaluations = result.iterations + 1
        near = (result.t[1:] > p.on_at - 0.4) & (result.t[1:] <= p.on_at + 1.0)
        label = f"tol {tol:g}: {evaluations.mean():.2f} on average"
        left.plot(result.t[1:][near], evaluations[near] + 0.04 * k, drawstyle="steps-pre", lw=0.8, label=label)
    n = int(np.searchsorted(result.t, p.on_at))
    for step in (n - 100, n, n + 10, n + 100, n + 400):
        history = np.maximum(result.residual_norms[step], 1e-19)  # exact zeros have no place on the axis
        right.semilogy(range(1, len(history) + 1), history, "o-", ms=4, label=f"t = {result.t[step + 1]:.4f} s")
    for tol in found:
        right.axhline(tol, color="k", lw=0.8, ls=":")
    left.set(xlabel="t in s", ylabel="interface evaluations", ylim=(0, 4.5), yticks=range(5))
    right.set(xlabel="evaluation", ylabel="largest residual in m, N", xticks=[1, 2, 3])
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_signs(path: Path, t_end: float = 0.8) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for p, label, colour in ((Cylinder(), "e = -u", "C0"), (WRONG_SIGN, "e = +u, the text of the source", "C3")):
        p = replace(p, on_at=0.0)
        start = p.first()._replace(u=1e-5)
        result = cs.simulate(system(p, start), t_end=t_end, method=method(), step=p.h)
        axes.semilogy(result.t, np.abs(result["structure.u"]) / p.diameter, color=colour, lw=1, label=label)
    growth = WRONG_SIGN.poles(-1.0)[0].real
    t = np.array([0.0, t_end])
    axes.semilogy(t, 1e-5 / p.diameter * np.exp(growth * t), "k--", lw=0.8, label=f"exp({growth:.2f} t)")
    axes.set(xlabel="t in s", ylabel="|u| / D", ylim=(1e-6, 1e2), xlim=(0, t_end))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/cylinder_control"))
    parser.add_argument("--quick", action="store_true", help="couple only the time around the switching")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    import matplotlib

    matplotlib.use("Agg")
    p = Cylinder()
    assert p.on_at is not None
    free = monolithic(replace(p, on_at=None), T_END)
    t = p.h * np.arange(len(free))
    begin = p.on_at - 0.5
    first = State(*(float(x) for x in free[round(begin / p.h)]))
    if options.quick:
        result = coupled(p, begin, first)
        u = free[:, 0].copy()
        u[round(begin / p.h) :] = result["structure.u"]
    else:
        result = coupled(p, 0.0, p.first())
        u = result["structure.u"]
    print(table(t, u, result, p))
    print(f"\nlargest distance to the monolithic code {np.abs(u - monolithic(p, T_END)[:, 0]).max():.1e} m")
    sharp = coupled(p, begin, first, 1e-12)
    draw_motion(options.out / "motion.png", result, t, u, free[:, 0], p)
    draw_iterations(options.out / "iterations.png", {TOL: result, 1e-12: sharp}, p)
    draw_signs(options.out / "wrong_sign.png")
    print(f"pictures in {options.out}")


if __name__ == "__main__":
    main()
