"""Flap in a converging channel (Mok 2001): fluid and solid of Kratos, coupled strongly.

    python examples/kratos_flap/run.py [--out DIR] [--quick] [--steps N] [--accelerators]

Needs Kratos (pip install "cosolve[kratos]"). 75 steps take three minutes or so; `--quick` makes 8 on a coarser mesh.
`--accelerators` repeats the run with those of Kratos' own CoSimulationApplication on the same pair, first guesses and
tolerance, and prints the evaluations per step of each. What is drawn (`DIR` is `build/kratos_flap` unless given):
`flap.png`, the flow at the end, and the motion of the tip.
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
from examples.kratos_flap.case import LEFT, TIP
from examples.kratos_flap.model import OwnAccelerator, flap_system, iterations, run

#: Those of Kratos that converge here, with its defaults and with the horizons that suit it best.
OWN = {
    "mvqn, 50": {"type": "mvqn", "horizon": 50},
    "iqnils, 9 steps": {"type": "iqnils", "timestep_horizon": 9, "iteration_horizon": 50, "alpha": 1.0},
    "iqnils": {"type": "iqnils"},
    "aitken": {"type": "aitken"},
}


def draw(result: cs.Result, flow: cs.fields.FieldSnapshot, tip: np.ndarray, path: Path) -> None:
    """The flow at the end over the motion of the tip."""
    import matplotlib.pyplot as plt

    figure, (top, below) = plt.subplots(2, figsize=(7, 5.5), layout="constrained", height_ratios=[3, 2])
    speed = np.linalg.norm(flow.point_data["VELOCITY"], axis=1)
    drawn = top.tripcolor(*flow.points.T, flow.cells["triangle"], speed, shading="gouraud")
    top.set(aspect="equal", title=f"Speed of the flow at {result.t[-1]:g} s (m/s)")
    figure.colorbar(drawn, ax=top)
    below.plot(result.t, 1e3 * tip[:, 0])
    below.set(xlabel="time (s)", ylabel="tip of the flap (mm)")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/kratos_flap"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--accelerators", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    steps = given.steps or (8 if given.quick else 75)
    with tempfile.TemporaryDirectory() as folder:
        system = flap_system(Path(folder), fineness=0 if given.quick else 1)
        result = run(system, cs.IqnIls(), steps)
        fluid, flap = system.subsystems["fluid"], system.subsystems["flap"]
        assert isinstance(fluid, cs.fields.Kratos)
        assert isinstance(flap, cs.fields.Kratos)
        k = int(np.argmin(np.linalg.norm(flap.meshes["displacement"].points - (LEFT, TIP), axis=1)))
        tip = result["flap.displacement"][:, 2 * k : 2 * k + 2]
        print(f"IQN-ILS: {iterations(result):.2f} evaluations per step, tip {1e3 * tip[-1, 0]:.4f} mm")
        draw(result, fluid.snapshot(), tip, given.out / "flap.png")
        for name, settings in OWN.items() if given.accelerators else ():
            try:
                theirs = run(system, OwnAccelerator(**settings), steps)
            except cs.errors.SimulationError as error:
                print(f"Kratos {name}: {error}")
                continue
            end = theirs["flap.displacement"][-1, 2 * k]
            print(f"Kratos {name}: {iterations(theirs):.2f} evaluations per step, tip {1e3 * end:.4f} mm", flush=True)


if __name__ == "__main__":
    main()
