"""Multi-code problem: five subsystems with added mass, against the figures of Sicklinger (2014), section 4.7.2.

    python examples/multi_code/run.py [--out DIR] [--quick]

Prints interface evaluations per step and the displacement of the common point as published, as found by an
reference code and by us, then the eigenvalues that rule out relaxation. `--quick` runs 20 steps. What is
drawn (`DIR` is `build/multi_code` unless given):

- `motion.png`: the common point over time in both settings, coupled and monolithic;
- `iterations.png`: evaluations per step, and the five residuals over the evaluations of the first step.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.multi_code.model import SETTING_1, SETTING_2, UNKNOWNS, MultiCode, monolithic, system, undeformed_jacobian

TOL = 1e-10

#: u(0.1), u(0.5), u(1) and the largest u of the reference code (docs/validation/sicklinger.md).
REFERENCE = {
    "setting 1": (0.0685228716, 0.0526915595, 0.0734767115, 0.08694362),
    "setting 2": (0.0666044446, 0.0529499697, 0.0668148944, 0.09424549),
}


class Noted(cs.Newton):
    """Newton that keeps the residuals of every evaluation, step by step."""

    def __init__(self, refresh: Any = "iteration") -> None:
        super().__init__(refresh)
        self.residuals: list[list[np.ndarray]] = []

    def __deepcopy__(self, memo: Any) -> Noted:
        return self  # methods work on a copy of their corrector; the notes are wanted outside

    def start_step(self) -> None:
        self.residuals.append([])
        super().start_step()

    def correct(self, z: np.ndarray, r: np.ndarray, problem: cs.InterfaceProblem) -> np.ndarray:
        self.residuals[-1].append(np.abs(r))
        return super().correct(z, r, problem)

    def accept(self, z: np.ndarray, r: np.ndarray) -> None:
        self.residuals[-1].append(np.abs(r))


@dataclass(frozen=True)
class Row:
    """One line of the table: how to run it, and the evaluations per step that others found."""

    setting: str
    label: str
    parameters: MultiCode
    refresh: str
    degree: int
    published: float | None
    reference: float | None


ROWS = [
    Row("setting 2", "IJCSA", SETTING_2, "iteration", 0, 3.7, 3.767),
    Row("setting 2", "modified Newton", SETTING_2, "step", 0, 5.0, 5.008),
    Row("setting 2", "IJCSA, first-order hold", SETTING_2, "iteration", 1, None, 2.998),
    Row("setting 2", "modified, first-order hold", SETTING_2, "step", 1, None, 3.665),
    Row("setting 1", "IJCSA", SETTING_1, "iteration", 0, None, 2.003),
]


@dataclass
class Found:
    """What a row came to."""

    row: Row
    result: cs.Result
    residuals: list[list[np.ndarray]]
    reference: np.ndarray

    @property
    def evaluations(self) -> np.ndarray:
        """Interface evaluations of every step, the converged one included."""
        return self.result.iterations + 1

    @property
    def deviation(self) -> float:
        return float(np.abs(self.result["one.u"] - self.reference).max())


def run_row(row: Row, steps: int | None = None) -> Found:
    p = row.parameters if steps is None else replace(row.parameters, steps=steps)
    corrector = Noted(row.refresh)
    method = cs.Implicit(degree=row.degree, tol=TOL, corrector=corrector)
    result = cs.simulate(system(p), t_end=p.t_end, method=method, step=p.h)
    return Found(row, result, corrector.residuals, monolithic(p))


def table(found: Sequence[Found]) -> str:
    """Evaluations per step, and the distance to the monolithic solution."""
    lines = [f"{'':11s}{'':28s}{'published':>10s}{'reference':>10s}{'ours':>8s}{'most':>6s}{'off by':>10s}"]
    for f in found:
        published, reference = ("-" if v is None else f"{v:g}" for v in (f.row.published, f.row.reference))
        lines.append(
            f"{f.row.setting:11s}{f.row.label:28s}{published:>10s}{reference:>10s}{f.evaluations.mean():8.3f}"
            f"{f.evaluations.max():6d}{f.deviation:10.1e}"
        )
    return "\n".join(lines)


def values(found: Sequence[Found]) -> str:
    """The displacement of the common point at three times, and its maximum, against the reference code."""
    lines = [f"{'':11s}{'':7s}" + "".join(f"{name:>14s}" for name in ("u(0.1)", "u(0.5)", "u(1)", "largest"))]
    for setting, printed in REFERENCE.items():
        u = next(f.result["one.u"] for f in found if f.row.setting == setting)
        for label, numbers in (("theirs", printed), ("ours", (u[100], u[500], u[1000], u.max()))):
            lines.append(f"{setting:11s}{label:7s}" + "".join(f"{value:14.10f}" for value in numbers))
    return "\n".join(lines)


def draw_motion(path: Path, found: Sequence[Found]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    chosen = {f.row.setting: f for f in reversed(found)}
    for k, (setting, f) in enumerate(sorted(chosen.items())):
        t, every = f.result.t, max(1, len(f.result.t) // 40)
        axes.plot(t, f.result["one.u"], color=f"C{k}", label=f"{setting}, coupled")
        axes.plot(t[::every], f.reference[::every], "o", ms=3.5, mfc="none", color=f"C{k}", label="monolithic")
    axes.set(xlabel="t in s", ylabel="displacement in m", title="Common point of the five subsystems, h = 0.001 s")
    axes.set_xlim(0, t[-1])
    axes.legend(loc="lower center", ncols=2)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_iterations(path: Path, found: Sequence[Found]) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=(1.5, 1), layout="constrained")
    for k, f in enumerate(found):
        label = f"{f.row.setting}, {f.row.label}"
        left.plot(f.result.t[1:], f.evaluations, ".", ms=3, color=f"C{k}", label=label, alpha=0.7)
    left.set(xlabel="t in s", ylabel="interface evaluations", title="Evaluations per step", ylim=(1.5, 8.5))
    left.set_yticks(range(2, 7))
    left.legend(loc="upper right", markerscale=4, fontsize=8, ncols=2)
    first = np.array(found[0].residuals[0])
    shown = np.where(first > 0, first, np.nan)  # R1 of the very first guess is zero
    for k in range(len(UNKNOWNS)):
        right.semilogy(
            np.arange(1, len(first) + 1), shown[:, k], "o-", ms=11 - 2 * k, color=f"C{k}", label=f"$R_{k + 1}$"
        )
    right.axhline(TOL, color="0.4", ls="--", lw=1, label="tolerance")
    right.set(xlabel="evaluation", ylabel="|residual| in N ($R_1$) or m", title="First step, setting 2, IJCSA")
    right.set_xticks(range(1, len(first) + 1))
    right.legend(fontsize=8)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/multi_code"))
    parser.add_argument("--quick", action="store_true", help="20 steps only")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    found = [run_row(row, 20 if options.quick else None) for row in ROWS]
    print("Interface evaluations per step (published and reference code: 1000 steps)\n")
    print(table(found))
    if not options.quick:
        print(f"\n{values(found)}")
    print("\nEigenvalues of the undeformed interface Jacobian: of both signs, so no relaxation factor works")
    for setting, p in (("setting 1", SETTING_1), ("setting 2", SETTING_2)):
        print(f"{setting}: " + ", ".join(f"{v:.5g}" for v in np.sort(np.linalg.eigvals(undeformed_jacobian(p)).real)))
    draw_motion(options.out / "motion.png", found)
    draw_iterations(options.out / "iterations.png", found)
    print(f"\npictures in {options.out}")


if __name__ == "__main__":
    main()
