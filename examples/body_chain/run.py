"""A chain of ten rods in five solvers, joined by spherical, universal and revolute joints, swinging for 10 s.

    python examples/body_chain/run.py [--out DIR] [--quick]

Draws (`DIR` is `out/body_chain` unless given):

- `motion.png`: the centre of the last rod;
- `multipliers.png`: forces and torques in the four joints between the solvers;
- `residuals.png`: all joints at position, velocity and acceleration level: bounded, no drift;
- `energy.png`: total energy;
- `motion.gif`: the chain moving.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.body_chain.model import LENGTH, RODS, joints, system
from examples.spatial_pictures import animate, frames_of, residual_rows, stack

T_END, H = 10.0, 2e-3


def run(t_end: float = T_END, H: float = H, degree: int = 1) -> tuple[cs.System, cs.Result]:
    """Baumgarte's method with its default parameters beta = 2 H, gamma = H^2."""
    model = system(H)
    method = cs.SemiImplicit(degree, final_update=False, constraints=cs.Baumgarte())
    return model, cs.simulate(model, t_end=t_end, step=H, method=method)


def energy(result: cs.Result) -> np.ndarray:
    """Energy of all parts."""
    return sum(result[f"part{k}.energy"] for k in range(RODS // 2))


def rods(result: cs.Result) -> list[np.ndarray]:
    """All rods as lines: those next to a joint between solvers from its outputs, the first from its neighbour's end."""
    ends = np.array([[-LENGTH / 2, 0, 0], [LENGTH / 2, 0, 0]])
    found = []
    for joint in joints():
        for address in (joint.first, joint.second):
            name = f"{address.split('.')[0]}.{joint.name}"
            found.append(frames_of(result[f"{name}_r"], result[f"{name}_q"], ends))
    first = np.stack([np.zeros((len(result.t), 3)), found[0][:, 0]], axis=1)
    last = frames_of(result["part4.rod9_position"], result["part4.rod9_orientation"], ends)
    return [first, *found, last]


def main(arguments: list[str] | None = None) -> None:
    """Run, draw everything and print the largest residuals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/body_chain"), help="folder of the pictures")
    parser.add_argument("--quick", action="store_true", help="0.2 s instead of 10 s, short animation")
    options = parser.parse_args(arguments)
    import matplotlib

    matplotlib.use("Agg")
    options.out.mkdir(parents=True, exist_ok=True)
    model, result = run(0.2 if options.quick else T_END)
    levels = {name: (result.t, np.asarray(g)) for name, g in cs.multibody.constraint_residuals(model, result).items()}
    for name, (_, g) in levels.items():
        largest = np.abs(g).max(axis=(1, 2))
        print(f"{name:>12}: |g| {largest[0]:.1e}, |g'| {largest[1]:.1e}, |g''| {largest[2]:.1e}")
    e = energy(result)
    print(f"energy: {e[0]:.4f} J at the start, {e[-1]:.4f} J at the end")
    last = result["part4.rod9_position"]
    stack(
        options.out / "motion.png", [("centre of rod 9 in m", [(result.t, last[:, k], "xyz"[k], {}) for k in range(3)])]
    )
    rows = []
    for joint in joints():
        curves = [(result.t, result[f"{joint.name}_force"][:, k], "xyz"[k], {}) for k in range(3)]
        rows.append((f"{joint.name}\nforce in N", curves))
        if f"{joint.name}_torque" in result:
            torque = result[f"{joint.name}_torque"]
            rows.append((f"{joint.name}\ntorque in N m", [(result.t, t, "", {}) for t in torque.T]))
    stack(options.out / "multipliers.png", rows)
    stack(options.out / "residuals.png", residual_rows(levels), logarithmic=True)
    stack(options.out / "energy.png", [("energy in J", [(result.t, e, "", {})])])
    every = 50 if options.quick else 20
    animate(options.out / "motion.gif", result.t, rods(result), every=every, title="ten rods in five solvers")
    print(f"pictures in {options.out}")


if __name__ == "__main__":
    main()
