"""The three-mass chain with equal and mixed integrators: Examples 3.1 to 3.6 of Sicklinger (2014), section 3.2.

    python examples/three_mass_chain/run.py [--out DIR] [--quick]

Prints the observed orders of the error up to T = 1 s. What is drawn (`DIR` is `build/three_mass_chain` unless given):

- `orders.png`: error of displacement, velocity and acceleration at the cut over the step;
- `levels.png`: the acceleration at the cut on both sides, backward Euler and BDF2, coupled on three levels: coupling by
  displacement makes the derived acceleration of domain two jump at the start.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.three_mass_chain.model import Level, exact, run

LEVELS: tuple[Level, ...] = ("displacement", "velocity", "acceleration")
#: label -> integrators of the two domains, force interpolated
CASES = {
    "3.1  BE / BE": ("BE", "BE", False),
    "3.2  GA / GA": ("GA", "GA", True),
    "3.3  BDF2 / BDF2": ("BDF2", "BDF2", False),
    "3.4  GA / BDF2, force held": ("GA", "BDF2", False),
    "3.6  GA / BDF2, force interpolated": ("GA", "BDF2", True),
    "3.5  BE / BDF2": ("BE", "BDF2", False),
}


def errors(case: tuple[str, str, bool], steps: list[float]) -> np.ndarray:
    """Errors at the cut, one row per step: displacement, velocity, acceleration.

    The largest error from t = 0.9 to 1 s is taken, since an error at one instant may pass through zero.
    """
    one, two, interpolated = case
    rows = []
    for h in steps:
        result = run(one, two, h, interpolated=interpolated)
        last = result.t > 0.9
        true = np.array([[x[1] for x in exact(float(t))] for t in result.t[last]])
        found = np.column_stack([result[f"one.{level}"][last] for level in LEVELS])
        rows.append(np.abs(found - true).max(axis=0))
    return np.array(rows)


def draw_orders(path: Path, steps: list[float], found: dict[str, np.ndarray]) -> None:
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(13, 4.8), layout="constrained")
    h = np.array(steps)
    for k, (axes, level) in enumerate(zip(panels, LEVELS, strict=True)):
        for c, (label, values) in enumerate(found.items()):
            axes.loglog(h, values[:, k], "o-", ms=4, lw=1.2, color=f"C{c}", label=label if k == 0 else None)
        for order, style in ((1, ":"), (2, "--")):
            scale = {
                1: 0.55 * found["3.5  BE / BDF2"][0, k],
                2: 0.35 * found["3.6  GA / BDF2, force interpolated"][0, k],
            }
            guide = scale[order] * (h / h[0]) ** order
            axes.loglog(h, guide, style, color="0.5", lw=1, label=f"order {order}" if k == 0 else None)
        axes.set(xlabel="step h in ms", title=f"error of the {level}")
        axes.set_xticks(steps, [f"{1e3 * step:g}" for step in steps])
        axes.xaxis.set_minor_formatter("")
        axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4, fontsize=9)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_levels(path: Path, h: float = 0.01) -> None:
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(3, 1, figsize=(9, 8), sharex=True, layout="constrained")
    t = np.linspace(0.0, 0.5, 400)
    true = [exact(float(x))[2][1] for x in t]
    for axes, level in zip(panels, LEVELS, strict=True):
        result = run("BE", "BDF2", h, level=level, interpolated=False)
        shown = result.t <= 0.5
        axes.plot(t, true, color="k", lw=1, label="exact")
        axes.plot(result.t[shown], result["one.acceleration"][shown], "o-", ms=3, lw=1, label="domain one (BE)")
        axes.plot(result.t[shown], result["two.acceleration"][shown], "s-", ms=3, lw=1, label="domain two (BDF2)")
        gap = np.abs(result["one.acceleration"] - result["two.acceleration"]).max()
        axes.set(ylabel="acceleration in m/s²", title=f"coupled by {level} (largest gap {gap:.1e})")
        axes.grid(alpha=0.3)
    panels[0].legend(fontsize=9)
    panels[-1].set_xlabel("t in s")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/three_mass_chain"))
    parser.add_argument("--quick", action="store_true", help="three steps instead of five")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    steps = [0.02, 0.01, 0.005] if options.quick else [0.02, 0.01, 0.005, 0.0025, 0.00125]
    found = {label: errors(case, steps) for label, case in CASES.items()}
    print(f"{'example, integrators':36}" + "".join(f"{level:>15}" for level in LEVELS) + "   (order, last halving)")
    for label, values in found.items():
        orders = np.log2(values[-2] / values[-1])
        print(f"{label:36}" + "".join(f"{order:15.2f}" for order in orders))
    draw_orders(options.out / "orders.png", steps, found)
    draw_levels(options.out / "levels.png")
    print(f"pictures in {options.out}")


if __name__ == "__main__":
    main()
