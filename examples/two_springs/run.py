"""Two springs in four decompositions: the maps of Sicklinger (2014), Figs. 3.14 and 3.15, regenerated.

    python examples/two_springs/run.py [--out DIR] [--quick]

Prints the best constant relaxation factors. What is drawn (`DIR` is `build/two_springs` unless given):

- `jacobi.png`: where the relaxed Jacobi iteration contracts, over both stiffnesses, for five relaxation factors (the
  factors of the printed figures are lost; these are -1, -0.75, -0.5, -0.25 and -0.1);
- `gauss_seidel.png`: the same for Gauss-Seidel, which exists for D/N and N/D.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.two_springs.model import KINDS, best_factor, gauss_seidel_eigenvalue, radius

FACTORS = (-1.0, -0.75, -0.5, -0.25, -0.1)
PAIRS = ((1.0, 1.0), (1.0, 2.0), (2.0, 1.0), (10.0, 1.0), (0.1, 1.0))


def draw(path: Path, kinds: tuple[str, ...], measure: Callable[..., np.ndarray], points: int) -> None:
    """Regions of contraction, one panel per decomposition, one outline per factor."""
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    axis = np.linspace(-5.0, 5.0, points)  # an even number of points: never zero
    k1, k2 = np.meshgrid(axis, axis)
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(FACTORS)))
    figure, panels = plt.subplots(1, len(kinds), figsize=(3.6 * len(kinds), 4.4), layout="constrained", squeeze=False)
    for axes, kind in zip(panels[0], kinds, strict=True):
        for colour, alpha in zip(colours, FACTORS, strict=True):
            field = measure(kind, k1, k2, alpha)
            axes.contourf(axis, axis, field, [0.0, 1.0], colors=[colour], alpha=0.18)
            axes.contour(axis, axis, field, [1.0], colors=[colour], linewidths=1.2)
        axes.axhline(0, color="0.4", lw=0.7)
        axes.axvline(0, color="0.4", lw=0.7)
        axes.set(title=kind, xlabel="$k_1$", ylabel="$k_2$", aspect="equal")
    handles = [Line2D([], [], color=c, label=rf"$\alpha = {a:g}$") for c, a in zip(colours, FACTORS, strict=True)]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(FACTORS))
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/two_springs"))
    parser.add_argument("--quick", action="store_true", help="coarser maps")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    print("best constant factor / spectral radius (Jacobi)")
    print(f"{'k1, k2':>10}" + "".join(f"{kind:>18}" for kind in KINDS))
    for k1, k2 in PAIRS:
        cells = ["{:.3f} / {:.4f}".format(*best_factor(kind, k1, k2)) for kind in KINDS]
        print(f"{k1:g}, {k2:g}".rjust(10) + "".join(f"{cell:>18}" for cell in cells))
    points = 100 if options.quick else 600
    draw(options.out / "jacobi.png", KINDS, radius, points)
    draw(options.out / "gauss_seidel.png", KINDS[1:3], lambda *of: np.abs(gauss_seidel_eigenvalue(*of)), points)
    print(f"pictures in {options.out}")


if __name__ == "__main__":
    main()
