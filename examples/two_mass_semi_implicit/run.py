"""Two-mass oscillator, semi-implicit coupling: the pictures of Lu (2015), Figs. 12-14, and the maps it leaves out.

    python examples/two_mass_semi_implicit/run.py [--out DIR] [--quick]

What is drawn (`DIR` is `out/two_mass_semi_implicit` unless given; about two minutes, `--quick` some ten seconds):

- `x1.png` (Fig. 12): x1(t) for several macro steps, force/force split, constant signals: first order, visibly damped;
- `convergence.png` (Fig. 13): error against macro step for F/F, F/D, D/D and degrees 0, 1, 2 with guide lines
  H, H^2, H^3: order k+1 in all nine cases;
- `stability.png` (Fig. 14, and the same for F/D and D/D): where the spectral radius of the macro step stays below 1
  at H = 5e-3 over stiffness c and damping d. O: semi-implicit stable, X: explicit stable, red: semi-implicit
  unstable. F/F with k = 0, 1 is stable on the source's whole map (c <= 1e5); with k = 2 it fails for c > 1e4 and
  d < 50. F/D and D/D with k = 0 fail over wide ranges, which the source does not mention: hold foreign displacements
  constant and they lead by half a step, which acts like negative damping. The right edge (c > 1e5) is where the
  oscillation of a subsystem is aliased by the macro step.

Numbers behind the pictures are checked in tests/method/semi_implicit, against docs/validation/schweizer-lu.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.two_mass.model import TwoMass, lu, split

SPLITS = ("F/F", "F/D", "D/D")
DEGREES = (0, 1, 2)
COLOURS = ("tab:blue", "tab:orange", "tab:green")


# -- numbers -------------------------------------------------------------------------------------------------


def position_error(
    kind: str,
    method: cs.Method,
    H: float,
    *,
    p: TwoMass | None = None,
    t_end: float = 0.5,
    startup: cs.RisingDegree | None = None,
) -> float:
    """Largest error of x1 and x2 at the macro points."""
    p = lu() if p is None else p
    result = cs.simulate(split(kind, p), t_end=t_end, method=method, step=H, startup=startup)
    exact = p.exact(result.t)
    return float(max(np.abs(result["one.x"] - exact[:, 0]).max(), np.abs(result["two.x"] - exact[:, 2]).max()))


def radii(kind: str, method: cs.Method, c: np.ndarray, d: np.ndarray, H: float) -> np.ndarray:
    """Spectral radii over stiffness (rows) and damping (columns)."""
    return cs.analysis.stability_map(lambda c, d: split(kind, lu(c, d)), c, d, method, H)


def stable_share(kind: str, method: cs.Method, c: np.ndarray, d: np.ndarray, H: float) -> float:
    """Share of the grid on which the macro step is stable."""
    return float((radii(kind, method, c, d, H) < 1.0 + 1e-9).mean())


# -- pictures ------------------------------------------------------------------------------------------------


def draw_x1(path: Path, steps: tuple[float, ...] = (2e-2, 1e-2, 5e-3, 1e-3), t_end: float = 0.5) -> None:
    """Fig. 12: x1(t), F/F, k = 0."""
    import matplotlib.pyplot as plt

    p = lu()
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    t = np.linspace(0.0, t_end, 1001)
    axes.plot(t, p.exact(t)[:, 0], "k", lw=2.5, alpha=0.35, label="exact")
    for H, colour in zip(steps, plt.cm.viridis(np.linspace(0.9, 0.1, len(steps))), strict=True):
        result = cs.simulate(split("F/F"), t_end=t_end, method=cs.SemiImplicit(degree=0), step=H)
        mark = "o" if len(result.t) <= 60 else None
        axes.plot(result.t, result["one.x"], marker=mark, ms=3, lw=1.2, color=colour, label=f"H = {H:g} s")
    axes.set(xlabel="t in s", ylabel="$x_1$ in m", title="Force/force split, constant signals (k = 0)")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def draw_convergence(path: Path, steps: np.ndarray, t_end: float = 0.5) -> dict[tuple[str, int], np.ndarray]:
    """Fig. 13: error against macro step; returns the errors."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    figure, panels = plt.subplots(1, 3, figsize=(12, 4.4), sharex=True, sharey=True, layout="constrained")
    errors = {}
    for kind, axes in zip(SPLITS, panels, strict=True):
        for k, colour in zip(DEGREES, COLOURS, strict=True):
            found = np.array([position_error(kind, cs.SemiImplicit(degree=k), float(H), t_end=t_end) for H in steps])
            errors[kind, k] = found
            axes.loglog(steps, found, "o-", color=colour, ms=4, label=f"k = {k}")
            guide = 0.4 * found[0] * (steps / steps[0]) ** (k + 1)
            axes.loglog(steps, guide, "--", color=colour, lw=1, alpha=0.7, label=f"$H^{k + 1}$")
        axes.set(title=kind, xlabel="macro step H in s")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xticks(steps, [f"{H:g}" for H in steps])
        axes.grid(which="both", alpha=0.2)
    panels[0].set_ylabel("largest position error in m")
    panels[-1].legend(ncols=1, fontsize=8, loc="lower right")
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return errors


def draw_stability(path: Path, c: np.ndarray, d: np.ndarray, H: float = 5e-3) -> dict[tuple[str, int], np.ndarray]:
    """Fig. 14 for all three splits; returns the semi-implicit radii."""
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure, panels = plt.subplots(3, 3, figsize=(12.5, 11), sharex=True, sharey=True, layout="constrained")
    maps = {}
    C, D = np.meshgrid(c, d, indexing="ij")
    for kind, row in zip(SPLITS, panels, strict=True):
        for k, axes in zip(DEGREES, row, strict=True):
            semi = radii(kind, cs.SemiImplicit(degree=k), c, d, H)
            explicit = radii(kind, cs.Jacobi(degree=k), c, d, H)
            maps[kind, k] = semi
            good, bad = semi < 1.0 + 1e-9, semi >= 1.0 + 1e-9
            axes.pcolormesh(C, D, np.where(bad, 1.0, np.nan), cmap="Reds", vmin=0, vmax=3, shading="nearest")
            axes.plot(C[good], D[good], "o", mfc="none", mec="tab:blue", ms=6, mew=0.9)
            calm = explicit < 1.0 + 1e-9
            axes.plot(C[calm], D[calm], "x", color="k", ms=4, mew=0.9)
            axes.set(xscale="log", yscale="log", title=f"{kind}, k = {k}")
            axes.axvline(1e5, color="0.5", lw=0.8, ls=":")
    for axes in panels[-1]:
        axes.set_xlabel("stiffness c in N/m")
    for axes in panels[:, 0]:
        axes.set_ylabel("damping d in Ns/m")
    handles = [
        Line2D([], [], ls="", marker="o", mfc="none", mec="tab:blue", label="semi-implicit stable"),
        Line2D([], [], ls="", marker="x", color="k", label="explicit stable"),
        Patch(color=plt.cm.Reds(1 / 3), label="semi-implicit unstable"),
        Line2D([], [], color="0.5", ls=":", lw=0.8, label="c = 1e5: claims of the source checked up to here"),
    ]
    title = f"Two-mass oscillator, H = {H:g} s: where the macro step is stable"
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False, title=title)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return maps


def main(arguments: list[str] | None = None) -> None:
    """Draw everything and print what the pictures show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/two_mass_semi_implicit"), help="folder of the pictures")
    parser.add_argument("--quick", action="store_true", help="coarse grids, a few seconds")
    options = parser.parse_args(arguments)
    import matplotlib

    matplotlib.use("Agg")
    options.out.mkdir(parents=True, exist_ok=True)

    draw_x1(options.out / "x1.png")
    steps = np.array([1e-2, 5e-3, 2e-3]) if options.quick else np.array([1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4])
    errors = draw_convergence(options.out / "convergence.png", steps, 0.2 if options.quick else 0.5)
    print("order between the two smallest macro steps")
    for (kind, k), found in errors.items():
        print(f"  {kind}  k = {k}:  {np.log(found[-2] / found[-1]) / np.log(steps[-2] / steps[-1]):.3f}")
    shape = (7, 7) if options.quick else (25, 21)
    c, d = np.logspace(2, 6, shape[0]), np.logspace(0, 4, shape[1])
    maps = draw_stability(options.out / "stability.png", c, d)
    print("share of the map c <= 1e5 on which the semi-implicit step is stable")
    inside = c <= 1e5 * (1 + 1e-9)
    for (kind, k), found in maps.items():
        print(f"  {kind}  k = {k}:  {100 * (found[inside] < 1.0 + 1e-9).mean():.0f} %")
    print(f"pictures in {options.out}")


if __name__ == "__main__":
    main()
