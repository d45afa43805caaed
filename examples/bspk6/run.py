"""BspK6: a cycle with direct feed-through and switches, against a reference code (Sicklinger (2014), 4.7.3).

    python examples/bspk6/run.py [--out DIR] [--quick]

Prints interface evaluations per step, and the outputs at four times next to those of a reference code and of an
elimination by hand. `--quick` stops at t = 0.5 instead of 5. Draws `outputs.png` (`DIR` is `build/bspk6` unless given):
the four outputs, the switches, and the evaluations per step.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.bspk6.model import OUTPUTS, PRINTED, H, eliminated, outputs, simulate


def table(result: cs.Result) -> str:
    """Ours and the reference code's at the times that the run reaches."""
    found = outputs(result)
    lines = [f"{'t':>5s}  {'':5s}" + "".join(f"{name.split('.')[1]:>17s}" for name in OUTPUTS)]
    for t, printed in PRINTED.items():
        if round(t / H) < len(found):
            for label, numbers in (("proto", printed), ("ours", found[round(t / H)])):
                lines.append(f"{t:5g}  {label:5s}" + "".join(f"{value:17.8e}" for value in numbers))
    return "\n".join(lines)


def counts(result: cs.Result) -> str:
    """How many evaluations the steps took."""
    evaluations = result.iterations + 1
    kinds = ", ".join(f"{n}: {k}" for n, k in zip(*np.unique(evaluations, return_counts=True), strict=True))
    return f"average {evaluations.mean():.5f}, steps with so many evaluations {{{kinds}}}"


def draw(path: Path, result: cs.Result) -> None:
    import matplotlib.pyplot as plt

    figure, (top, middle, bottom, last) = plt.subplots(
        4, 1, figsize=(9, 8.5), sharex=True, height_ratios=(2, 2, 1, 1), layout="constrained"
    )
    for axes, names in ((top, OUTPUTS[:2]), (middle, OUTPUTS[2:])):
        for name in names:
            axes.plot(result.t, result[name], lw=1.2, label=name)
    for k, name in enumerate(("S4.Y41", "S4.Y42")):
        bottom.plot(result.t, 0.8 * result[name] + k, drawstyle="steps-pre", color=f"C{k + 2}", label=name)
    last.plot(result.t[1:], result.iterations + 1, drawstyle="steps-pre", color="k", lw=0.8)
    top.set_title("BspK6, backward Euler, h = 1e-4")
    top.set_ylabel("outputs of S1")
    middle.set_ylabel("outputs of S2, S3")
    bottom.set(ylabel="switches", yticks=[])
    last.set(ylabel="evaluations", xlabel="t in s", ylim=(1.5, 3.5), yticks=[2, 3], xlim=(0, result.t[-1]))
    for axes in (top, middle, bottom):
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    for axes in (top, middle, bottom, last):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/bspk6"))
    parser.add_argument("--quick", action="store_true", help="stop at t = 0.5")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    result = simulate(0.5 if options.quick else 5.0)
    print(
        f"theirs (T = 5): average 2.00032, steps with so many evaluations {{2: 49984, 3: 16}}\nours: {counts(result)}\n"
    )
    print(table(result))
    print(f"\nlargest distance to elimination by hand {np.abs(outputs(result) - eliminated(result.t)).max():.1e}")
    draw(options.out / "outputs.png", result)
    print(f"pictures in {options.out}")


if __name__ == "__main__":
    main()
