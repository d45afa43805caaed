"""Nonlinear one-mass oscillator: the three dynamic-static couplings compared (Schmoll (2015), Figs. 4.4, 4.6, 4.7).

    python examples/nonlinear_oscillator/run.py [--out DIR] [--quick]

What is drawn (`DIR` is `out/nonlinear_oscillator` unless given; about two minutes, `--quick` some fifteen seconds):

- `coupling_variables.png` (Fig. 4.4): x, v and the coupling force over the whole run and its first 2.5 ms;
- `comparison.png` (Figs. 4.6, 4.7): error, steps, mean corrector iterations, static calls and run time over the
  tolerance for the uncoupled model and the variants A (fully implicit), B (last corrector) and C (predictor). The
  time counts `--static-ms` for every static call on top of the measured time, as if it were a field solver;
- `order.png`: end error over fixed steps between two zero crossings, BDF 1 to 5: A and C keep the order, B is capped at
  two (its lines for BDF 3, 4 and 5 lie on each other).

Numbers behind the pictures are checked in tests/method/dynamic_static, against docs/validation/schmoll.md.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.nonlinear_oscillator.model import SEGMENT, T_END, X0, oscillator, reference, whole

STYLES = {
    "uncoupled": ("tab:blue", "x", "-"),
    "A": ("tab:green", "+", "-"),
    "B": ("tab:red", "s", "-"),
    "C": ("tab:purple", "D", "--"),
}
NAMES = {
    "uncoupled": "uncoupled",
    "A": "A: fully implicit",
    "B": "B: linearised at last corrector",
    "C": "C: linearised at predictor",
}


@dataclass(frozen=True)
class Cost:
    """What one run took; `calls` and `seconds` are NaN for the uncoupled model where they mean nothing."""

    error: float
    steps: int
    repetitions: int
    iterations: float
    calls: float
    seconds: float


def method(variant: str, tol: float) -> cs.DynamicStatic:
    """The settings of the source: h_max = 1e-4, h_min = 1e-11, h_init = 1e-7 s."""
    return cs.DynamicStatic(variant, rtol=tol, first_step=1e-7, min_step=1e-11, max_step=1e-4)


def cost(variant: str, tol: float, t_end: float, milliseconds: float) -> Cost:
    """Run one variant and measure."""
    if variant == "uncoupled":
        model = cs.Ode(lambda t, x, u: whole(t, x), lambda t, x, u: x, x0=X0, inputs=[], outputs=["x", "v"])
        alone = cs.simulate(cs.System({"whole": model}), t_end=t_end, method=method("A", tol))
        n, attempts = alone.stats, alone.stats.calls["whole"]
        error = cs.analysis.nrmse(reference()(alone.t), np.column_stack([alone["whole.x"], alone["whole.v"]]))
        return Cost(error, n.steps, attempts - n.steps, n.iterations / attempts, np.nan, n.wall_seconds)
    result = cs.simulate(oscillator(), t_end=t_end, method=method(variant, tol))
    stats = result.stats
    attempts, calls = stats.calls["mass"], stats.calls["law"]
    error = cs.analysis.nrmse(reference()(result.t), np.column_stack([result["mass.x"], result["mass.v"]]))
    # a set of solves runs in parallel: each call adds the duration of one solve
    seconds = stats.wall_seconds + calls * milliseconds * 1e-3
    return Cost(error, stats.steps, attempts - stats.steps, stats.iterations / attempts, calls, seconds)


# -- pictures ------------------------------------------------------------------------------------------------


def draw_histories(path: Path) -> None:
    """Fig. 4.4."""
    import matplotlib.pyplot as plt

    result = cs.simulate(oscillator(), t_end=T_END, method=method("C", 1e-7))
    t = 1e3 * result.t
    figure, panels = plt.subplots(3, 2, figsize=(11, 7), sharex="col", sharey="row", layout="constrained")
    rows = (("mass.x", 1.0, "x in m"), ("mass.v", 1e-3, "v in km/s"), ("law.force", 1e-6, "$F_k$ in MN"))
    for row, (name, factor, text) in zip(panels, rows, strict=True):
        for axes, until in zip(row, (1e3 * T_END, 2.5), strict=True):
            shown = t <= until
            axes.plot(t[shown], factor * result[name][shown], lw=1.2, marker="." if until < 10 else None, ms=3)
            axes.grid(alpha=0.3)
        row[0].set_ylabel(text)
    for axes, title in zip(panels[0], ("whole run", "first 2.5 ms, a dot per step"), strict=True):
        axes.set_title(title)
    for axes in panels[-1]:
        axes.set_xlabel("t in ms")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def draw_comparison(path: Path, tolerances: np.ndarray, t_end: float, milliseconds: float) -> dict[str, list[Cost]]:
    """Figs. 4.6 and 4.7; returns the numbers."""
    import matplotlib.pyplot as plt

    costs = {v: [cost(v, float(tol), t_end, milliseconds) for tol in tolerances] for v in STYLES}
    figure, panels = plt.subplots(2, 3, figsize=(13.5, 8), layout="constrained")
    shown = (
        ("error", "NRMSE of x and v", True),
        ("steps", "accepted steps", True),
        ("repetitions", "repeated steps", True),
        ("iterations", "mean corrector iterations", False),
        ("calls", "static calls", True),
        ("seconds", f"time in s, {milliseconds:g} ms per static call", True),
    )
    for axes, (quantity, text, logarithmic) in zip(panels.flat, shown, strict=True):
        for variant, (colour, mark, line) in STYLES.items():
            values = [getattr(c, quantity) for c in costs[variant]]
            axes.plot(tolerances, values, marker=mark, ls=line, color=colour, ms=7, mfc="none", label=NAMES[variant])
        if quantity == "error":
            axes.plot(tolerances, tolerances, "k--", lw=0.8, label="tol")
        axes.set(xscale="log", xlabel="tol", title=text)
        if logarithmic:
            axes.set_yscale("log")
        else:
            axes.set_ylim(0.0, 1.5 * max(c.iterations for found in costs.values() for c in found))
        axes.invert_xaxis()
        axes.grid(which="major", alpha=0.3)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5, frameon=False)
    figure.savefig(path, dpi=140)
    plt.close(figure)
    return costs


def end_error(variant: str, order: int, h: float) -> float:
    """Relative end error of x with fixed steps over `SEGMENT`, the past being known."""
    t0, t1 = SEGMENT
    exact = reference()
    fixed = cs.DynamicStatic(variant, order=order, fixed_order=True, step=h, rtol=1e-11, past=lambda t: exact(t)[0])
    result = cs.simulate(oscillator(exact(t0)[0]), t_start=t0, t_end=t1, method=fixed)
    return float(abs(result["mass.x"][-1] / exact(t1)[0, 0] - 1.0))


def draw_order(path: Path, steps: np.ndarray) -> dict[tuple[str, int], np.ndarray]:
    """The cap of variant B; returns the errors."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(12, 4.4), sharex=True, sharey=True, layout="constrained")
    errors = {}
    for variant, axes in zip("ACB", panels, strict=True):
        for order, colour in zip(range(1, 6), plt.cm.viridis(np.linspace(0.0, 0.85, 5)), strict=True):
            found = np.array([end_error(variant, order, float(h)) for h in steps])
            errors[variant, order] = found
            slope = np.log(found[0] / found[-1]) / np.log(steps[0] / steps[-1])
            label = f"BDF{order}: slope {slope:.2f}"
            axes.loglog(1e6 * steps, found, "o-", ms=11 - 2 * order, mfc="none", color=colour, label=label)
        axes.set(title=NAMES[variant], xlabel="h in µs")
        axes.set_xticks(1e6 * steps, [f"{1e6 * h:g}" for h in steps])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, frameon=False)
    panels[0].set_ylabel("relative error of x at 0.4 ms")
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return errors


def main(arguments: list[str] | None = None) -> None:
    """Draw everything and print what the pictures show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/nonlinear_oscillator"), help="folder of the pictures")
    parser.add_argument("--quick", action="store_true", help="few tolerances, a tenth of the run")
    parser.add_argument("--static-ms", type=float, default=10.0, help="duration reckoned for one static call")
    options = parser.parse_args(arguments)
    import matplotlib

    matplotlib.use("Agg")
    options.out.mkdir(parents=True, exist_ok=True)

    draw_histories(options.out / "coupling_variables.png")
    tolerances = 10.0 ** -(np.arange(3.0, 7.0) if options.quick else np.arange(2.0, 9.0))
    t_end = T_END / 10 if options.quick else T_END
    costs = draw_comparison(options.out / "comparison.png", tolerances, t_end, options.static_ms)
    print("  tol      variant     error      steps  repeated  iterations  static calls   time")
    for n, tol in enumerate(tolerances):
        for variant, found in costs.items():
            c = found[n]
            calls = "-" if np.isnan(c.calls) else f"{c.calls:.0f}"
            print(f"  {tol:.0e}  {variant:10s}  {c.error:.2e}  {c.steps:7d}  {c.repetitions:8d}  {c.iterations:10.2f}"
                  f"  {calls:>12s}  {c.seconds:6.1f} s")  # fmt: skip
    steps = np.array([1e-5, 5e-6, 2.5e-6]) if options.quick else np.array([1e-5, 5e-6, 2.5e-6, 1.25e-6])
    errors = draw_order(options.out / "order.png", steps)
    print("observed order between the two smallest steps")
    for (variant, order), found in errors.items():
        print(f"  {variant}  BDF{order}:  {np.log2(found[-2] / found[-1]):.2f}")
    print(f"pictures in {options.out}")


if __name__ == "__main__":
    main()
