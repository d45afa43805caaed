"""The algebraic loop of Sicklinger (2014), App. A: corrections from three starts, by several correctors.

    python examples/algebraic_loop/run.py [--out DIR]

Prints the solution and the corrections it took, and draws `loop.png` (`DIR` is `build/algebraic_loop` unless given):
the distance to the solution over the iterations of Newton, of the resolved form `U2 <- sin(cos U2) / 2`, and of
following the signals as they are connected, which does not converge.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import cosolve as cs
from examples.algebraic_loop.model import STARTS, U1, U2, run

CORRECTORS = (
    cs.Newton(),
    cs.LineSearch(cs.Newton()),
    cs.NewtonKrylov(),
    cs.Broyden(initial="exact"),
    cs.Broyden(initial=-1.0),
    cs.Anderson(initial=-0.1),
    cs.IqnIls(initial=-0.1),
    cs.IqnImvj(initial=-0.1),
    cs.Secant(initial=-1.0),
)


def table() -> list[str]:
    """One line per corrector: corrections from the three starts, or what went wrong."""
    lines = [f"{'corrector':58s}" + "".join(f"{start!s:>14}" for start in STARTS)]
    for corrector in CORRECTORS:
        cells = []
        for start in STARTS:
            try:
                found, corrections = run(start, corrector, tol=1e-14)
            except cs.errors.SimulationError as error:
                cells.append(type(error).__name__.removesuffix("Error").lower())
            else:
                cells.append(f"{corrections}" if abs(found - U2) < 1e-12 else f"{corrections} (other root)")
        lines.append(f"{corrector!r:58s}" + "".join(f"{cell:>14}" for cell in cells))
    return lines


def newton_errors() -> list[float]:
    """Distance of U2 to the solution, Newton from (0, 0), by hand."""
    u, errors = np.zeros(2), []
    for _ in range(6):
        errors.append(abs(u[1] - U2))
        r = np.array([np.cos(u[1]) - u[0], np.sin(u[0]) - 2 * u[1]])
        u = u - np.linalg.solve([[-1.0, -np.sin(u[1])], [np.cos(u[0]), -2.0]], r)
    return errors


def draw(path: Path) -> None:
    """The three iterations in one picture."""
    import matplotlib.pyplot as plt

    resolved, followed = [0.0], [U2 + 1e-6]
    for _ in range(16):
        resolved.append(0.5 * np.sin(np.cos(resolved[-1])))
        followed.append(np.sin(np.cos(followed[-1])) - followed[-1])
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for values, label, marker in (
        (newton_errors(), "Newton on the residuals, from 0", "o"),
        (np.abs(np.array(resolved) - U2), "resolved by hand, factor −0.117, from 0", "s"),
        (np.abs(np.array(followed) - U2), "signals followed, factor −1.23, from 1e-6 away", "^"),
    ):
        axes.semilogy(np.maximum(values, 1e-17), marker=marker, label=label)
    axes.set(xlabel="iteration", ylabel="|U2 − solution|", title="An algebraic loop without a state")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/algebraic_loop"))
    out: Path = parser.parse_args(arguments).out
    out.mkdir(parents=True, exist_ok=True)
    print(f"solution U1 = {U1!r}, U2 = {U2!r}; corrections to |r| < 1e-14 from each start\n")
    print("\n".join(table()))
    draw(out / "loop.png")
    print(f"\npicture in {out}")


if __name__ == "__main__":
    main()
