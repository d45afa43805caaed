"""The flag of Turek and Hron under its own weight, by CalculiX: CSM1, CSM2, CSM3 next to their figures.

    python examples/calculix_flag/run.py [--out DIR] [--quick]

Prints the displacement of the tip at rest (CSM1, CSM2) and, unless `--quick`, its first swing (CSM3, 190 restarts of
CalculiX, two minutes or so). What is drawn (`DIR` is `build/calculix_flag` unless given): `swing.png`, the tip over
time, or with `--quick` its first 20 steps.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import cosolve as cs
from examples.calculix_flag.deck import TIP, WET, write_deck

H = 0.005  # s
#: Displacement of the tip in mm (Turek and Hron 2006), and the first lowest point and period of CSM3.
AT_REST = {"CSM1": (0.5e6, -7.187, -66.10), "CSM2": (2e6, -0.4690, -16.97)}
LOWEST, PERIOD = -63.607 - 65.160, 1 / 1.0995


def tip_of(flag: cs.fields.CalculiX) -> int:
    """Number of the node at the middle of the free end."""
    return int(np.argmin(np.linalg.norm(flag.meshes["displacement"].points - TIP, axis=1)))


def at_rest(folder: Path, mu: float) -> np.ndarray:
    """Displacement of the tip under the weight, mm."""
    flag = cs.fields.CalculiX(write_deck(folder / "rest.inp", mu=mu, gravity=2.0), WET, timeout=120.0)
    system = cs.System({"flag": flag})
    system.set("flag.force", np.zeros(2 * flag.meshes["force"].n_points))
    result = cs.simulate(system, t_end=1.0, method=cs.Jacobi(), step=1.0)
    k = 2 * tip_of(flag)
    return 1e3 * result["flag.displacement"][-1, k : k + 2]


def swing(folder: Path, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Time and displacement of the tip (mm) when the weight comes at once."""
    flag = cs.fields.CalculiX(write_deck(folder / "swing.inp", gravity=2.0, step=H), WET, timeout=120.0)
    system = cs.System({"flag": flag})
    system.set("flag.force", np.zeros(2 * flag.meshes["force"].n_points))
    result = cs.simulate(system, t_end=steps * H, method=cs.Jacobi(), step=H)
    k = 2 * tip_of(flag)
    return result.t, 1e3 * result["flag.displacement"][:, k : k + 2]


def turning_point(t: np.ndarray, y: np.ndarray, near: float) -> tuple[float, float]:
    """Time and value of the extreme of y near a time, by a parabola through three points."""
    window = np.flatnonzero(np.abs(t - near) < 0.1)
    k = int(window[np.argmax(np.abs(y[window] - y[window[0]]))])
    a, b, c = np.polyfit(t[k - 1 : k + 2] - t[k], y[k - 1 : k + 2], 2)
    at = -b / (2 * a)
    return float(t[k] + at), float(a * at**2 + b * at + c)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/calculix_flag"))
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name, (mu, *printed) in AT_REST.items():
        found = at_rest(given.out, mu)
        print(f"{name}: tip {found[0]:.4f}, {found[1]:.3f} mm; Turek and Hron {printed[0]}, {printed[1]} mm")
    t, u = swing(given.out, 20 if given.quick else 190)
    if not given.quick:
        _, lowest = turning_point(t, u[:, 1], PERIOD / 2)
        back, _ = turning_point(t, u[:, 1], PERIOD)
        print(f"CSM3: lowest {lowest:.2f} mm, back after {back:.4f} s; Turek and Hron {LOWEST:.2f} mm, {PERIOD:.4f} s")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    axes.plot(t, u[:, 1], label="vertical")
    axes.plot(t, u[:, 0], label="along the flag")
    axes.set(xlabel="time (s)", ylabel="displacement of the tip (mm)", title="A flag under its weight, by CalculiX")
    axes.legend()
    figure.savefig(given.out / "swing.png", dpi=120)


if __name__ == "__main__":
    main()
