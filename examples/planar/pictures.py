"""Pictures of a planar rigid-joint example: motion, multipliers, residuals, energy, convergence, and the mechanism."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import cosolve as cs
from examples.planar.case import Case, errors, exact, residuals, run

#: (label, treatment, degree)
Variant = tuple[str, cs.ConstraintTreatment | None, int]
_LEVELS = {"position": "m", "velocity": "m/s", "acceleration": "m/s^2"}


def draw_motion(path: Path, case: Case, results: Mapping[str, cs.Result]) -> None:
    """Coordinates and multipliers against the reference, residuals on each level, energy."""
    import matplotlib.pyplot as plt

    some = next(iter(results.values()))
    coordinates, multipliers = exact(case, len(some.t) - 1)
    n_lam = multipliers.shape[1]
    signals = [(name, coordinates[:, i], lambda r, n=name: r[n]) for i, name in enumerate(case.coordinates)]
    signals += [
        (f"lam[{i}]", multipliers[:, i], lambda r, i=i: r["lam"].reshape(len(r.t), -1)[:, i]) for i in range(n_lam)
    ]
    figure = plt.figure(figsize=(12, max(8.0, 1.8 * len(signals))), layout="constrained")
    one, two = figure.subfigures(1, 2)
    left, right = one.subplots(len(signals), sharex=True), two.subplots(4, sharex=True)
    for axes, (label, reference, found) in zip(left, signals, strict=True):
        axes.plot(some.t, reference, "k", lw=3, alpha=0.3, label="monolithic")
        for k, (name, result) in enumerate(results.items()):
            axes.plot(result.t, found(result), lw=1.1, ls=("-", "--", ":", "-.")[k % 4], color=f"C{k}", label=name)
        axes.set_ylabel(label)
    for level, (name, unit) in enumerate(_LEVELS.items()):
        for k, (label, result) in enumerate(results.items()):
            size = np.abs(residuals(case, result)[1:, level]).max(axis=1)  # consistent at the start
            right[level].semilogy(result.t[1:], np.maximum(size, 1e-17), lw=0.9, color=f"C{k}", label=label)
        right[level].set_ylabel(f"{name} residual\nin {unit}")
    for k, result in enumerate(results.values()):
        energy = case.energy(result)
        right[3].plot(result.t, energy - energy[0], lw=1.1, color=f"C{k}")
    right[3].set_ylabel("E - E(0) in J" + ("" if case.conservative else "\n(driven or damped)"))
    for axes in (*left, *right):
        axes.grid(alpha=0.3)
    for axes in (left[-1], right[-1]):
        axes.set_xlabel("t in s")
    left[0].legend(fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_convergence(path: Path, steps: Sequence[float], table: Mapping[str, Sequence[Sequence[float]]]) -> None:
    """Errors of coordinates and multipliers, and residuals, against the macro step."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    titles = ("coordinates", "multipliers", "position residual", "velocity residual")
    figure, panels = plt.subplots(1, 4, figsize=(15, 4), layout="constrained")
    for i, (axes, title) in enumerate(zip(panels, titles, strict=True)):
        for k, (name, rows) in enumerate(table.items()):
            axes.loglog(steps, [max(row[i], 1e-16) for row in rows], "o-", color=f"C{k}", ms=4, lw=1.2, label=name)
        axes.set(title=title, xlabel="macro step H in s")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xticks(steps, [f"{H:g}" for H in steps])
        axes.grid(which="both", alpha=0.2)
    panels[0].legend(fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_mechanism(out: Path, case: Case, result: cs.Result, traced: Sequence[int]) -> None:
    """`mechanism.gif`, at a third of the speed, and `mechanism.png` with several positions at once."""
    import matplotlib.pyplot as plt

    parts = case.parts(result)
    cs.plot.write_gif(out / "mechanism.gif", parts, result.t, title=case.name, traced=traced, speed=0.33)
    figure, axes = plt.subplots(figsize=(6, 5.5), layout="constrained")
    cs.plot.draw_strobe(axes, parts, result.t, traced=traced)
    axes.set_title(case.name)
    figure.savefig(out / "mechanism.png", dpi=110)
    plt.close(figure)


def report(
    case: Case, variants: Sequence[Variant], out: Path, *, fine: bool, traced: Sequence[int] = (), H: float = 1e-3
) -> None:
    """Run all variants at `2 H` and `H` (and `H / 2`), print their errors and orders, and draw everything."""
    import matplotlib

    matplotlib.use("Agg")
    out.mkdir(parents=True, exist_ok=True)
    steps = (2 * H, H, H / 2) if fine else (2 * H, H)
    shown, table = {}, {}
    head = f"{'':28}{'coordinates':>16}{'multipliers':>16}{'position':>16}{'velocity':>16}"
    print(f"{case.name}: largest errors and residuals at H = {H:g} s (order from {2 * H:g} s)\n{head}")
    for label, treatment, degree in variants:
        results = {h: run(case, treatment, degree, h) for h in steps}
        table[label] = [errors(case, results[h]) for h in steps]
        shown[label] = results[H]
        coarse, usual = table[label][:2]
        cells = "".join(
            f"{usual[i]:>10.2e} ({np.log2(coarse[i] / usual[i]):3.1f})"
            if usual[i] > 1e-11
            else f"{usual[i]:>10.0e}      "
            for i in range(4)
        )
        print(f"  {label:26}{cells}", flush=True)
    draw_motion(out / "motion.png", case, shown)
    draw_convergence(out / "convergence.png", steps, table)
    draw_mechanism(out, case, next(iter(shown.values())), traced)
    print(f"pictures in {out}")


def arguments_of(doc: str, folder: str) -> argparse.ArgumentParser:
    """The command line that these examples share."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out") / folder, help="folder of the pictures")
    parser.add_argument("--fine", action="store_true", help="three macro steps instead of two")
    return parser
