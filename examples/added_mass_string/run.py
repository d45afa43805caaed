"""String in a dense fluid: evaluations per step of every corrector, and the pictures that go with them.

    python examples/added_mass_string/run.py [--out DIR] [--quick]

Prints, for three fluid densities, the average evaluations of both codes per step (next to those of a reference code),
the same from the engine, and the largest distance to the monolithic solution; once for a start in one sine and once for
a triangular pluck, which excites all modes. `--quick` leaves out the slow relaxations. What is drawn (`DIR` is
`build/added_mass_string` unless given):

- `residuals.png`: the residual over the evaluations of the first three steps, for the heaviest fluid;
- `iterations.png`: evaluations per step over time;
- `motion.png`: the middle of the string for the three densities, coupled and monolithic.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import cosolve as cs
from examples.added_mass_string.model import TABLE, March, Model, march, simulate


@dataclass(frozen=True)
class Row:
    """A corrector, how it sweeps, and its column in the reference code's table."""

    label: str
    corrector: Callable[[Model], cs.Corrector]
    serial: bool = False
    column: str = ""
    slow: bool = False


ROWS = (
    Row("relaxation 1", lambda p: cs.Relaxation(1.0), column="jacobi", slow=True),
    Row("relaxation 1/(1+ratio)", lambda p: cs.Relaxation(1 / (1 + p.ratio)), column="optimal", slow=True),
    Row("Aitken 0.1", lambda p: cs.Aitken(initial=0.1), serial=True, column="aitken"),
    Row("Broyden", lambda p: cs.Broyden(), column="broyden"),
    Row("Broyden", lambda p: cs.Broyden(), serial=True),
    Row("Newton-Krylov 1e-12", lambda p: cs.NewtonKrylov(rtol=1e-12, vectors=100, increment=1.0), column="jfnk"),
    Row("Newton-Krylov", lambda p: cs.NewtonKrylov(), serial=True),
    Row("Anderson", lambda p: cs.Anderson(depth=30)),
    Row("Anderson", lambda p: cs.Anderson(), serial=True),
    Row("IQN-ILS", lambda p: cs.IqnIls()),
    Row("IQN-ILS", lambda p: cs.IqnIls(), serial=True),
    Row("IQN-IMVJ", lambda p: cs.IqnImvj()),
    Row("IQN-IMVJ", lambda p: cs.IqnImvj(), serial=True),
    Row("Newton (IJCSA)", lambda p: cs.Newton(), column="newton"),
)


def print_table(rho: float, pluck: bool, quick: bool) -> dict[str, March]:
    """One density and start; the bare iterations by label."""
    p = Model(rho, pluck)
    exact = p.monolithic()
    print(f"\nrho_f = {rho:g}, ratio {p.ratio:.4f}, {'triangular pluck' if pluck else 'sine start'}")
    print(f"    {'corrector':24s} {'sweep':12s} {'proto':>7s} {'ours':>7s} {'engine':>7s} {'distance':>9s}")
    found = {}
    for row in ROWS:
        if quick and row.slow:
            continue
        sweep = "gauss-seidel" if row.serial else "jacobi"
        run = found[f"{row.label}, {sweep}"] = march(p, row.corrector(p), row.serial)
        proto = TABLE[rho].get(row.column, "") if row.column and not pluck else ""
        try:
            result = simulate(p, row.corrector(p), sweep)
            calls = f"{result.stats.calls['string'] / p.steps:7.2f}"
            distance = f"{np.abs(result['string.u'] - exact).max():9.1e}"
        except cs.errors.ConvergenceError:
            calls, distance = "   none", "        -"
        ours = f"{run.per_step:7.2f}" if run.u is not None else "   none"
        print(f"    {row.label:24s} {sweep:12s} {'none' if proto is None else proto!s:>7} {ours} {calls} {distance}")
    return found


def draw(found: dict[str, March], out: Path) -> None:
    """Residuals and iterations of one density."""
    import matplotlib.pyplot as plt

    shown = {label: run for label, run in found.items() if run.u is not None and max(map(len, run.norms)) < 60}
    colours = dict(zip(shown, plt.get_cmap("tab20").colors, strict=False))  # type: ignore[attr-defined]
    figure, panels = plt.subplots(1, 3, figsize=(12, 4.5), sharey=True, layout="constrained")
    for step, axes in enumerate(panels):
        for label, run in shown.items():
            norms = np.maximum(run.norms[step], 1e-17)
            axes.semilogy(np.arange(1, len(norms) + 1), norms, ".-", color=colours[label], label=label)
        axes.axhline(1e-10, color="grey", lw=0.8, ls="--")
        axes.set(title=f"step {step + 1}", xlabel="iteration")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("rms of the displacement residual (m)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    figure.savefig(out / "residuals.png", dpi=120)
    plt.close(figure)

    figure, axes = plt.subplots(figsize=(10, 4.5), layout="constrained")
    for label in ("Broyden, jacobi", "Aitken 0.1, gauss-seidel", "IQN-ILS, jacobi", "IQN-IMVJ, gauss-seidel",
                  "Newton (IJCSA), jacobi"):  # fmt: skip
        run = shown[label]
        axes.step(np.arange(1, len(run.norms) + 1), [len(n) for n in run.norms], where="mid", color=colours[label],
                  label=label)  # fmt: skip
    axes.set(xlabel="step", ylabel="iterations, the converged one included", title="rho_f = 10")
    axes.grid(alpha=0.3)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    figure.savefig(out / "iterations.png", dpi=120)
    plt.close(figure)


def draw_motion(out: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    for rho in TABLE:
        p = Model(rho)
        result, exact = simulate(p, cs.IqnIls(), "gauss-seidel"), p.monolithic()
        middle = exact.shape[1] // 2
        lines = axes.plot(result.t, result["string.u"][:, middle], label=f"rho_f = {rho:g}")
        axes.plot(result.t, exact[:, middle], "k.", ms=3, label="monolithic" if rho == 10.0 else None)
        lines[0].set_linewidth(2)
    axes.set(xlabel="t (s)", ylabel="middle of the string (m)", title="The heavier the fluid, the slower the string")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(out / "motion.png", dpi=120)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/added_mass_string"))
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    for pluck in (True, False):
        for rho in TABLE:
            found = print_table(rho, pluck, given.quick)
    draw(found, given.out)
    draw_motion(given.out)
    print(f"\npictures in {given.out}")


if __name__ == "__main__":
    main()
