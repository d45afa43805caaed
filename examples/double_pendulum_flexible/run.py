"""Double pendulum with a stiff flexible joint, two rods in two solvers (Schweizer and Lu (2014), 4.2).

    python examples/double_pendulum_flexible/run.py [--out DIR] [--quick]

Draws (`DIR` is `out/double_pendulum_flexible` unless given):

- `motion.png`: both angles and the joint force, force/force split at H = 1e-3 s with degrees 0, 1, 2 against the
  monolithic reference. The stiff joint rings at the start and decays; even constant signals follow.
- `convergence.png`: largest error of phi1 against the macro step, semi-implicit and explicit. Explicit with k = 2
  diverges at H = 1e-3.
- `displacement.png`: phi1 when motion instead of force is exchanged at the interface (F/D, D/D). With constant
  signals these splits are useless for a stiff joint: the half-step lead acts as c H / 2 = 50 Ns/m of negative damping.

and prints the error table. Checked in tests/examples/test_double_pendulum_flexible.py.
"""

from __future__ import annotations

import argparse
import sys
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.double_pendulum_flexible.model import reference, reference_force, split

T_END = 1.0
_FINEST = 2.5e-4


class Errors(NamedTuple):
    """Largest errors at the macro points: angles in rad, force component in N (NaN where no force is exchanged)."""

    phi1: float
    phi2: float
    force: float


@lru_cache(maxsize=4)
def grid(H: float, t_end: float = T_END) -> tuple[np.ndarray, np.ndarray]:
    """Reference states and forces at the macro points."""
    states = _finest(t_end)[:: round(H / _FINEST)] if H >= _FINEST else reference(_times(H, t_end))
    return states, reference_force(states)


@lru_cache(maxsize=2)
def _finest(t_end: float) -> np.ndarray:
    return reference(_times(_FINEST, t_end))


def _times(H: float, t_end: float) -> np.ndarray:
    return np.linspace(0.0, t_end, round(t_end / H) + 1)


def run(
    kind: str, method: cs.Method, H: float = 1e-3, t_end: float = T_END, startup: cs.Startup | None = None
) -> cs.Result:
    """One co-simulation, RK4 with four inner steps per macro step; a run that blows up returns what it has."""
    try:
        return cs.simulate(split(kind, h=H / 4), t_end=t_end, method=method, step=H, startup=startup)
    except cs.errors.SimulationError as error:
        return error.result


def errors(result: cs.Result, H: float, t_end: float = T_END, every: int = 1) -> Errors:
    """Errors of a run against the reference, over every n-th macro point."""
    states, forces = grid(H, t_end)
    points = slice(None, len(result.t), every)

    def largest(found: np.ndarray, exact: np.ndarray) -> float:
        return float(np.abs(found[::every] - exact[points]).max())

    force = largest(result["joint"], forces) if "joint" in result else np.nan
    return Errors(largest(result["one.phi"], states[:, 0]), largest(result["two.phi"], states[:, 4]), force)


def error_table(steps: tuple[float, ...]) -> dict[tuple[str, int], list[Errors]]:
    """The errors of docs/validation/schweizer-lu.md: force/force split, semi-implicit and explicit, k = 0, 1, 2."""
    methods = {"semi": cs.SemiImplicit, "explicit": cs.Jacobi}
    return {
        (name, k): [errors(run("F/F", method(degree=k), H), H) for H in steps]
        for name, method in methods.items()
        for k in (0, 1, 2)
    }


# -- pictures ------------------------------------------------------------------------------------------------


def draw_motion(path: Path, H: float = 1e-3) -> None:
    import matplotlib.pyplot as plt

    states, forces = grid(H)
    t = _times(H, T_END)
    results = [run("F/F", cs.SemiImplicit(degree=k), H) for k in (0, 1, 2)]
    rows = (
        (r"$\varphi_1$ in rad", states[:, 0], [r["one.phi"] for r in results]),
        (r"$\varphi_2$ in rad", states[:, 4], [r["two.phi"] for r in results]),
        (r"$\lambda_x$ in N", forces[:, 0], [r["joint"][:, 0] for r in results]),
        (r"$\lambda_y$ in N", forces[:, 1], [r["joint"][:, 1] for r in results]),
    )
    figure, panels = plt.subplots(len(rows), 2, figsize=(11, 10), layout="constrained")
    start = t <= 0.05
    for i, ((label, exact, found), (left, right)) in enumerate(zip(rows, panels, strict=True)):
        left.plot(t, exact, "k", lw=3, alpha=0.3, label="monolithic")
        if i >= 2:
            right.plot(t[start], exact[start], "k", lw=3, alpha=0.3)
        for k, values in enumerate(found):
            style = {"lw": 1.1, "ls": ("-", "--", ":")[k], "color": f"C{k}"}
            left.plot(t, values, label=f"semi-implicit, k = {k}", **style)
            if i < 2:
                right.semilogy(t[1:], np.abs(values - exact)[1:], lw=0.9, color=f"C{k}")
            else:
                right.plot(t[start], values[start], **style)
        left.set_ylabel(label)
        right.set_title("error in rad" if i < 2 else "the first 50 ms", fontsize=10)
        for axes in (left, right):
            axes.grid(alpha=0.3)
    panels[0, 0].set_title(f"force/force split, H = {H:g} s", fontsize=10)
    for axes in panels[-1]:
        axes.set_xlabel("t in s")
    panels[0, 0].legend(fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_convergence(path: Path, table: dict[tuple[str, int], list[Errors]], steps: tuple[float, ...]) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    figure, panels = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    H = np.array(steps)
    for axes, pick, label in (
        (panels[0], "phi1", r"largest error of $\varphi_1$ in rad"),
        (panels[1], "force", r"largest error of $\lambda$ in N"),
    ):
        for (name, k), found in table.items():
            style = "o-" if name == "semi" else "x:"
            values = [getattr(e, pick) for e in found]
            axes.loglog(
                H, values, style, color=f"C{k}", label=f"{'semi-implicit' if name == 'semi' else name}, k = {k}"
            )
        axes.set(xlabel="macro step H in s", ylabel=label)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xticks(steps, [f"{h:g}" for h in steps])
        axes.grid(which="both", alpha=0.2)
    panels[0].legend(fontsize=8)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def draw_displacement(path: Path, H: float = 1e-3) -> None:
    import matplotlib.pyplot as plt

    states, _ = grid(H)
    t = _times(H, T_END)
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
    for axes, kind in zip(panels, ("F/D", "D/D"), strict=True):
        axes.plot(t, states[:, 0], "k", lw=3, alpha=0.3, label="monolithic")
        for k in (0, 1, 2):
            result = run(kind, cs.SemiImplicit(degree=k), H)
            axes.plot(result.t, result["one.phi"], lw=1.1, ls=("-", "--", ":")[k], label=f"semi-implicit, k = {k}")
        result = run(kind, cs.Jacobi(degree=0), H)
        axes.plot(result.t, result["one.phi"], lw=1.1, ls="-.", label="explicit, k = 0")
        axes.set(title=f"{kind}, H = {H:g} s", xlabel="t in s", ylim=(0.4, 1.8))
        axes.grid(alpha=0.3)
    panels[0].set_ylabel(r"$\varphi_1$ in rad")
    panels[1].legend(fontsize=8)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    """Draw everything and print the error table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/double_pendulum_flexible"), help="folder of the pictures")
    parser.add_argument("--quick", action="store_true", help="two macro steps instead of three")
    options = parser.parse_args(arguments)
    import matplotlib

    matplotlib.use("Agg")
    options.out.mkdir(parents=True, exist_ok=True)
    steps = (1e-3, 5e-4) if options.quick else (1e-3, 5e-4, 2.5e-4)
    table = error_table(steps)
    print("largest errors, force/force split" + "".join(f"   H = {H:<10g}         " for H in steps))
    for (name, k), found in table.items():
        cells = "   ".join(f"phi1 {e.phi1:8.2e} rad, lam {e.force:8.2e} N" for e in found)
        print(f"  {name:>8}, k = {k}   {cells}")
    draw_motion(options.out / "motion.png")
    draw_convergence(options.out / "convergence.png", table, steps)
    draw_displacement(options.out / "displacement.png")
    print(f"pictures in {options.out}")


if __name__ == "__main__":
    main()
