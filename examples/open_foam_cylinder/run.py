"""Cylinder on a spring in a stream: the flow by OpenFOAM, step by step, coupled to a body of two states.

    python examples/open_foam_cylinder/run.py [--out DIR] [--quick]

Needs OpenFOAM (Debian and Ubuntu: apt install openfoam). Every subsystem step is a process of pimpleFoam that begins
from the time directory of the last macro point, so that steps can be repeated. 400 steps take some five minutes;
`--quick` makes 30 on a coarser mesh. What is drawn (`DIR` is `build/open_foam_cylinder` unless given): `flow.png`, the
velocity at the end, and the motion of the cylinder with the force on it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import cosolve as cs
from examples.open_foam_cylinder.model import Cylinder, cylinder_system, simulate


def draw(result: cs.Result, flow: cs.fields.FieldSnapshot, path: Path) -> None:
    """The flow at the end over the motion."""
    import matplotlib.pyplot as plt
    from matplotlib.collections import PolyCollection

    figure, (top, below) = plt.subplots(2, figsize=(7, 6), layout="constrained", height_ratios=[3, 2])
    cells = PolyCollection(flow.points[flow.cells["quad"]], cmap="viridis")
    cells.set_array(np.linalg.norm(flow.cell_data["velocity"], axis=1))
    top.add_collection(cells)
    top.set(xlim=(-3, 12), ylim=(-4, 4), aspect="equal", title=f"Speed of the flow at t = {result.t[-1]:g}")
    figure.colorbar(cells, ax=top)
    below.plot(result.t, result["cylinder.y"], label="displacement (diameters)")
    below.plot(result.t[5:], result["flow.force"][5:, 1], label="force (densities x velocity² x diameter)", lw=0.8)
    below.set(xlabel="time (diameters per velocity)")
    below.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/open_foam_cylinder"))
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    parameters = Cylinder()
    with tempfile.TemporaryDirectory() as folder:
        size = {"around": 10, "outwards": 16} if given.quick else {}
        system = cylinder_system(Path(folder), parameters, **size)
        flow = system.subsystems["flow"]
        assert isinstance(flow, cs.fields.OpenFoam)
        print(system)
        result = simulate(system, parameters, 30 if given.quick else 400)
        print(result.stats)
        print(f"{np.mean(result.iterations + 1):.2f} evaluations per step, largest displacement", end=" ")
        print(f"{np.abs(result['cylinder.y']).max():.4f} diameters")
        draw(result, flow.snapshot(), given.out / "flow.png")


if __name__ == "__main__":
    main()
