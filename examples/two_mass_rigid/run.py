"""Two oscillators joined by a rigid rod: the three constraint methods of Lu (2015), ch. 3.

    python examples/two_mass_rigid/run.py [--maps] [--out DIR] [--quick]

Prints the error table at H = 1e-3 s with observed orders, and draws (`DIR` is `out/two_mass_rigid` unless given):

- `motion.png`: position and multiplier against the exact solution, the distance of the masses on position, velocity
  and acceleration level, and the energy;
- `convergence.png`: errors against the macro step. Index 1 with degree 0 loses an order, Method 2 does not;
- `mechanism.gif`: the masses in motion.

With `--maps` it draws stability maps instead (docs/theory.md, "Constraints"; docs/validation/lu.md):

- `maps.png`: spectral radius over stiffness and damping for all three methods, with the Jacobian of the subsystems and
  with the leading terms of Lu's App. B, which lose stability where d H / m is not small;
- `limits.png`: what is left for H -> 0, over the parameters of each method. Degrees above 0 need an acceleration level
  with enough weight, or relaxation.

Checked in tests/method/constraint/.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.two_mass_rigid.model import RigidTwoMass
from examples.two_mass_rigid.study import Errors, errors, radii, run

B, W, S = cs.Baumgarte, cs.WeightedMultipliers, cs.StabilisedIndex2
FREE = {"allow_unstable": True}
#: label, treatment, degree
VARIANTS: tuple[tuple[str, cs.ConstraintTreatment, int], ...] = (
    ("M1 index 3, k = 0", B(0.0, 0.0, **FREE), 0),
    ("M1 index 2, k = 0", B(2e-3, 0.0), 0),
    ("M1 index 1, k = 0", B(2e-3, 1e-6), 0),
    ("M1 index 1, k = 1", B(2e-3, 1e-6), 1),
    ("M2 a = 1, b = 0, k = 0", W(1.0, 0.0), 0),
    ("M2 a = b = 1, k = 0", W(1.0, 1.0), 0),
    ("M2 a = b = 1, k = 1", W(1.0, 1.0), 1),
    ("M3, k = 0", S(), 0),
    ("M3 omega = 0.9, k = 0", S(0.9), 0),
    ("M3 omega = 0.9, k = 1", S(0.9), 1),
)
#: label, treatment, degree, H, leading terms instead of the subsystem's Jacobian?
MAPS: tuple[tuple[str, cs.ConstraintTreatment, int, float, bool], ...] = (
    ("M1 0.2/0.01, k = 0", B(0.2, 0.01, **FREE), 0, 5e-3, False),
    ("M1 2e-3/1e-6, k = 1", B(2e-3, 1e-6, **FREE), 1, 1e-3, False),
    ("M1 2e-3/1e-6, k = 1, App. B", B(2e-3, 1e-6, **FREE), 1, 1e-3, True),
    ("M2 a = b = 1, k = 0", W(1.0, 1.0, **FREE), 0, 5e-3, False),
    ("M2 a = b = 1, k = 1", W(1.0, 1.0, **FREE), 1, 1e-3, False),
    ("M2 a = b = 1, k = 1, App. B", W(1.0, 1.0, **FREE), 1, 1e-3, True),
    ("M3, k = 0", S(**FREE), 0, 5e-3, False),
    ("M3 omega = 0.9, k = 1", S(0.9, **FREE), 1, 5e-3, False),
    ("M3, k = 2", S(**FREE), 2, 5e-3, False),
)


def error_table(steps: Sequence[float]) -> dict[str, list[Errors]]:
    """Errors of all variants at all macro steps."""
    return {label: [errors(run(treatment, k, H)) for H in steps] for label, treatment, k in VARIANTS}


# -- pictures ------------------------------------------------------------------------------------------------


def draw_motion(path: Path, H: float = 1e-3) -> None:
    import matplotlib.pyplot as plt

    p = RigidTwoMass()
    results = {label: run(treatment, k, H) for label, treatment, k in VARIANTS}
    t = next(iter(results.values())).t
    states = p.exact(t)
    figure, panels = plt.subplots(3, 2, figsize=(12, 8.5), sharex=True, layout="constrained")
    (position, gap), (multiplier, rate), (energy, acceleration) = panels
    position.plot(t, states[:, 0], "k", lw=3, alpha=0.3, label="exact")
    multiplier.plot(t, p.exact_force(states), "k", lw=3, alpha=0.3)
    both = np.array([states[:, 0], states[:, 1]])
    energy.plot(t, p.energy(*both, *both), "k", lw=3, alpha=0.3)
    for k, (label, r) in enumerate(results.items()):
        style = {"lw": 1.0, "color": f"C{k}", "ls": ("-", "--", ":")[k % 3], "label": label}
        position.plot(t, r["one.x"], **style)
        multiplier.plot(t, r["lam"], **style)
        energy.plot(t, p.energy(r["one.x"], r["one.v"], r["two.x"], r["two.v"]), **style)
        for axes, name in ((gap, "x"), (rate, "v"), (acceleration, "a")):
            size = np.abs(r[f"two.{name}"] - r[f"one.{name}"])[1:]
            axes.semilogy(t[1:], np.maximum(size, 1e-17), **style)
    labels = ("x1 in m", "|x2 - x1| in m", "lam in N", "|v2 - v1| in m/s", "energy in J", "|a2 - a1| in m/s^2")
    for axes, label in zip(panels.ravel(), labels, strict=True):
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
    for axes in panels[-1]:
        axes.set_xlabel("t in s")
    figure.legend(*position.get_legend_handles_labels(), fontsize=8, ncol=4, loc="outside upper center")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_convergence(path: Path, steps: Sequence[float], table: dict[str, list[Errors]]) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    figure, panels = plt.subplots(1, 4, figsize=(15, 4.6), layout="constrained")
    titles = ("x1, relative", "v1, relative", "lam, relative", "|x2 - x1| in m")
    for i, (axes, title) in enumerate(zip(panels, titles, strict=True)):
        for k, (label, rows) in enumerate(table.items()):
            style = ("o-", "s--", "^:")[k % 3]
            axes.loglog(steps, [max(row[i], 1e-16) for row in rows], style, color=f"C{k}", ms=4, lw=1.1, label=label)
        axes.set(title=title, xlabel="macro step H in s")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xticks(steps, [f"{H:g}" for H in steps])
        axes.grid(which="both", alpha=0.2)
    figure.legend(*panels[0].get_legend_handles_labels(), fontsize=8, ncol=5, loc="outside upper center")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_masses(path: Path, H: float = 1e-3) -> None:
    """Two boxes and the rod between them; the motion drawn in units of its amplitude."""
    result = run(S(), 0, H)
    size = np.abs(result["one.x"]).max()
    boxes = []
    for x, middle in ((result["one.x"], -1.5), (result["two.x"], 1.5)):
        corner = np.array([[-0.5, -0.4], [0.5, -0.4], [0.5, 0.4], [-0.5, 0.4], [-0.5, -0.4]])
        centre = np.array([middle + x / size, np.zeros_like(x)]).T
        boxes.append(centre[:, np.newaxis] + corner)
    rod = np.stack([boxes[0][:, 1] + [0.0, 0.4], boxes[1][:, 0] + [0.0, 0.4]], axis=1)
    cs.plot.write_gif(path, [*boxes, rod], result.t, title="rigid two-mass oscillator", speed=0.03)


def draw_maps(path: Path, points: int) -> None:
    import matplotlib.pyplot as plt

    c, d = np.geomspace(1e1, 1e7, points), np.geomspace(1e0, 1e6, points)
    figure, panels = plt.subplots(3, 3, figsize=(13, 11), sharex=True, sharey=True, layout="constrained")
    image = None
    for axes, (label, treatment, k, H, approximate) in zip(panels.ravel(), MAPS, strict=True):
        found = radii(treatment, k, H, c, d, approximate=approximate)
        image = axes.pcolormesh(c, d, found.T, cmap="RdBu_r", vmin=0.8, vmax=1.2, shading="nearest")
        grows = found.T > 1.0 + 1e-9
        if grows.any() and not grows.all():
            axes.contour(c, d, grows, levels=[0.5], colors="k", linewidths=1)
        axes.set(xscale="log", yscale="log")
        axes.set_title(f"{label}, H = {H:g} s\n{100 * grows.mean():.0f} % unstable", fontsize=10)
        print(f"  {label:30} H = {H:g} s: {grows.sum():4d} of {grows.size} unstable, largest {found.max():.4g}")
    for axes in panels[-1]:
        axes.set_xlabel("c in N/m")
    for axes in panels[:, 0]:
        axes.set_ylabel("d in Ns/m")
    figure.colorbar(image, ax=panels, label="spectral radius of the macro step", extend="both", shrink=0.6)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_limits(path: Path, points: int) -> None:
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(3, 4, figsize=(15, 10.5), layout="constrained")
    beta, gamma = np.geomspace(0.1, 100.0, points), np.geomspace(1e-2, 1e3, points)
    weights = np.linspace(0.0, 5.0, points)
    omega = np.linspace(0.02, 1.0, 2 * points)
    for k in range(4):
        one = np.array([[B(x, y, **FREE).limit_radius(k) for x in beta] for y in gamma])
        two = np.array([[W(x, y, **FREE).limit_radius(k) for x in weights] for y in weights])
        for axes, values, x, y in ((panels[0, k], one, beta, gamma), (panels[1, k], two, weights, weights)):
            image = axes.pcolormesh(x, y, values, cmap="RdBu_r", vmin=0.0, vmax=2.0, shading="nearest")
            grows = values > 1.0 + 1e-9
            if grows.any():
                axes.contour(x, y, grows, levels=[0.5], colors="k", linewidths=1)
        panels[0, k].plot(beta, beta**2 / 4, "k:", lw=1)
        panels[0, k].set(
            xscale="log", yscale="log", xlabel="beta / H", ylabel="gamma / H^2", ylim=(gamma[0], gamma[-1])
        )
        panels[1, k].set(xlabel="a", ylabel="b")
        three = [S(w, **FREE).limit_radius(k) for w in omega]
        panels[2, k].plot(omega, three)
        panels[2, k].axhline(1.0, color="k", lw=0.8)
        panels[2, k].set(xlabel="omega", ylabel="radius", ylim=(0.0, 2.5))
        panels[2, k].grid(alpha=0.3)
        for row, name in enumerate(("Method 1 (dotted: critical damping)", "Method 2", "Method 3")):
            panels[row, k].set_title(f"{name}, k = {k}", fontsize=10)
    figure.colorbar(image, ax=panels[:2], label="spectral radius for H -> 0", extend="max", shrink=0.6)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    """Print the table and draw the runs, or draw the stability maps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--maps", action="store_true", help="stability maps instead of runs")
    parser.add_argument("--out", type=Path, default=Path("out/two_mass_rigid"), help="folder of the pictures")
    parser.add_argument("--quick", action="store_true", help="fewer macro steps, coarser maps")
    chosen = parser.parse_args(arguments)
    import matplotlib

    matplotlib.use("Agg")
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.maps:
        draw_maps(chosen.out / "maps.png", 7 if chosen.quick else 19)
        draw_limits(chosen.out / "limits.png", 8 if chosen.quick else 30)
        print(f"pictures in {chosen.out}")
        return
    steps = (2e-3, 1e-3) if chosen.quick else (2e-3, 1e-3, 5e-4, 2.5e-4)
    table = error_table(steps)
    print(f"{'H = 1e-3 s, order from 2e-3 s':28}{'x1':>15}{'v1':>15}{'lam':>15}{'|x2 - x1|':>15}{'|v2 - v1|':>15}")
    for label, rows in table.items():
        cells = "".join(
            f"{fine:>9.2e} ({np.log2(coarse / fine):3.1f})" if fine > 1e-11 else f"{fine:>9.0e}      "
            for coarse, fine in zip(rows[0], rows[1], strict=True)
        )
        print(f"  {label:26}{cells}")
    draw_motion(chosen.out / "motion.png")
    draw_convergence(chosen.out / "convergence.png", steps, table)
    draw_masses(chosen.out / "mechanism.gif")
    print(f"pictures in {chosen.out}")


if __name__ == "__main__":
    main()
