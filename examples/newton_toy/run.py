"""The Newton toy problem: Tables 2.1 to 2.5 of Sicklinger (2014), and every other corrector on the same problem.

    python examples/newton_toy/run.py [--out DIR]

Prints |F| row by row next to the published values and draws (`DIR` is `build/newton_toy` unless given)
`residuals.png`: |F| over the evaluations, and `paths.png`: the way of the iterates over |F|, whose roots are lines.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import cosolve as cs
from examples.newton_toy.model import PUBLISHED, Iteration, iterate

TABLES: dict[str, tuple[str, cs.Corrector]] = {
    "T2.1": ("Newton", cs.Newton()),
    "T2.2": ("modified Newton", cs.Newton(refresh="step")),
    "T2.3": ("Broyden from the exact Jacobian", cs.Broyden(initial="exact")),
    "T2.4": ("Broyden from the identity", cs.Broyden()),
    "T2.5": ("Newton-Krylov", cs.NewtonKrylov(rtol=1e-12)),
}
OTHERS: dict[str, cs.Corrector] = {
    "damped Newton": cs.LineSearch(cs.Newton()),
    "secant": cs.Secant(),
    "Anderson": cs.Anderson(),
    "IQN-ILS": cs.IqnIls(),
    "IQN-IMVJ": cs.IqnImvj(),
    "relaxation 0.5": cs.Relaxation(0.5),
    "Aitken": cs.Aitken(),
}


def print_tables() -> dict[str, Iteration]:
    """Everything on the screen; the iterations by label."""
    found = {}
    for table, (label, corrector) in TABLES.items():
        rows = found[label] = iterate(corrector)
        print(f"{table}  {label}: {len(rows.norms)} rows, {rows.evaluations} evaluations, ends at {rows.x[-1]}")
        published = PUBLISHED[table]
        for m, norm in enumerate(rows.norms):
            print(f"    {m + 1:2d}  {norm:22.16g}  {published[m] if m < len(published) else '':<22}")
    print("\nothers, from the same start:")
    for label, corrector in OTHERS.items():
        rows = found[label] = iterate(corrector)
        end = f"ends at {rows.x[-1]}" if rows.converged else "does not converge"
        print(f"    {label:16s} {len(rows.norms):3d} rows, {end}")
    return found


def draw(found: dict[str, Iteration], out: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
    for k, (label, rows) in enumerate(found.items()):
        colour = plt.get_cmap("tab20").colors[k]  # type: ignore[attr-defined]
        evaluations = np.arange(1, len(rows.norms) + 1)
        axes.semilogy(evaluations, rows.norms, "osv^D*<>pXPh"[k], ls="-", ms=5, color=colour, label=label)
    axes.axhline(1e-6, color="grey", lw=0.8, ls="--")
    axes.set(xlabel="row (evaluation of F)", ylabel="|F|", title="Newton toy problem from (0, 0)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, ncols=2)
    figure.savefig(out / "residuals.png", dpi=120)
    plt.close(figure)

    figure, axes = plt.subplots(figsize=(7, 6), layout="constrained")
    x1, x2 = np.meshgrid(np.linspace(-2.5, 2.5, 300), np.linspace(-4.5, 3, 300))
    norm = np.hypot(np.sin(x1) - np.cos(x2), np.cos(x1) - np.sin(x2))
    shade = axes.contourf(x1, x2, norm, levels=20, cmap="Greys_r")
    figure.colorbar(shade, ax=axes, label="|F|")
    shown = {"Newton": 8, "Broyden from the exact Jacobian": 4, "Broyden from the identity": 4, "IQN-ILS": 4}
    for label, size in shown.items():
        path = np.array(found[label].x)
        axes.plot(path[:, 0], path[:, 1], "o-", ms=size, label=label)
    axes.set(xlabel="x1", ylabel="x2", xlim=(-2.5, 2.5), ylim=(-4.5, 3), title="Roots are the dark lines")
    axes.legend(fontsize=8, loc="upper right")
    figure.savefig(out / "paths.png", dpi=120)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/newton_toy"))
    out: Path = parser.parse_args(arguments).out
    out.mkdir(parents=True, exist_ok=True)
    draw(print_tables(), out)
    print(f"\npictures in {out}")


if __name__ == "__main__":
    main()
