"""Spatial four-bar mechanism, cut in the middle of its coupler by a fixed joint (Lu (2015), 3.3.1.4).

    python examples/spatial_four_bar/run.py [--out DIR] [--quick]

Draws (`DIR` is `out/spatial_four_bar` unless given):

- `motion.png`: pose of rod 2 under three constraint methods, against the same mechanism in one solver (all lie on top
  of each other);
- `multipliers.png`: force and torque in the cut, and the corrections of the stabilised index-2 method;
- `residuals.png`: the six conditions at position, velocity and acceleration level;
- `energy.png`: energy less the work of the drive;
- `motion.gif`: the mechanism moving.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.spatial_four_bar.model import AXIS_A, AXIS_D, A, B, C, D, monolithic, system
from examples.spatial_pictures import animate, frames_of, residual_rows, stack

T_END, H = 1.2, 1e-3


def methods() -> dict[str, cs.Method]:
    """The source's choice (index 2, beta = 5e-4 s), and the other two treatments."""
    return {
        "Baumgarte index 2, k = 0": cs.SemiImplicit(0, final_update=False, constraints=cs.Baumgarte(5e-4, 0.0)),
        "weighted multipliers, k = 1": cs.SemiImplicit(1, final_update=False, constraints=cs.WeightedMultipliers()),
        "stabilised index 2, k = 0": cs.SemiImplicit(0, final_update=False, constraints=cs.StabilisedIndex2()),
    }


@cache
def reference(t_end: float = T_END, H: float = 1e-2) -> cs.Result:
    """The mechanism in one solver."""
    return cs.simulate(cs.System({"all": monolithic()}), t_end=t_end, step=H, method=cs.Jacobi(0))


def run(method: cs.Method, H: float = H, t_end: float = T_END, *, correction: bool = False) -> cs.Result:
    """One co-simulation."""
    return cs.simulate(system(H, correction=correction), t_end=t_end, step=H, method=method)


def residuals(result: cs.Result) -> np.ndarray:
    """Levels x points x conditions."""
    model = system(correction="weld_mu_force" in result)
    return np.asarray(cs.multibody.constraint_residuals(model, result)["weld"])


def error(result: cs.Result, t_end: float = T_END) -> float:
    """Largest distance of the centre of rod 2 from the reference."""
    exact = reference(t_end)
    every = round(float(exact.t[1] / result.t[1]))
    return float(np.abs(result["left.weld_r"][::every] - exact["all.rod2_position"]).max())


def draw(out: Path, results: dict[str, cs.Result], t_end: float) -> None:
    """All diagrams over time."""
    exact = reference(t_end)
    dashes = dict(zip(results, ("-", "--", ":"), strict=True))

    def curves(quantity: str, names: Sequence[str], start: int = 0) -> list[tuple]:
        found = []
        for k, (method, result) in enumerate(results.items()):
            for axis, name in enumerate(names):
                style = {"ls": dashes[method], "color": f"C{axis}"}
                found.append((result.t[start:], result[quantity][start:, axis], "" if k else name, style))
        return found

    def with_reference(quantity: str, of: str, names: Sequence[str]) -> list[tuple]:
        grey = {"color": "k", "alpha": 0.25, "lw": 3}
        behind = [(exact.t, exact[of][:, k], "" if k else "one solver", grey) for k in range(len(names))]
        return [*behind, *curves(quantity, names)]

    stack(
        out / "motion.png",
        [
            ("centre of rod 2 in m", with_reference("left.weld_r", "all.rod2_position", "xyz")),
            (
                "orientation of rod 2",
                with_reference("left.weld_q", "all.rod2_orientation", ("$q_0$", "$q_1$", "$q_2$", "$q_3$")),
            ),
        ],
    )
    third = results["stabilised index 2, k = 0"]
    mu = [(third.t, third["weld_mu_force"][:, k], f"shift {'xyz'[k]}", {}) for k in range(3)]
    mu += [(third.t, third["weld_mu_torque"][:, k], f"turn {k + 1}", {"ls": "--"}) for k in range(3)]
    stack(
        out / "multipliers.png",
        [
            ("force in the cut in N", curves("weld_force", "xyz", 1)),
            ("torque in the cut in N m", curves("weld_torque", ("about 1", "about 2", "about 3"), 1)),
            (r"$\mu$ (stabilised index 2)", mu),
        ],
    )
    rows = residual_rows({name: (result.t, residuals(result)) for name, result in results.items()})
    stack(out / "residuals.png", rows, logarithmic=True)
    changes = [(r.t, energy(r) - energy(r)[0], name, {"ls": dashes[name]}) for name, r in results.items()]
    stack(out / "energy.png", [("change of energy less work, J", changes)])


def energy(result: cs.Result) -> np.ndarray:
    """Energy of both halves less the work of the drive, which pulls rod 1 at its centre, half way from A to B."""
    x, t = (A + lines(result)[0][:, 1])[:, 0] / 2, result.t
    work = np.concatenate([[0.0], np.cumsum(0.5 * (t[1:] + t[:-1]) * np.diff(x))])
    return result["left.energy"] + result["right.energy"] - work


def lines(result: cs.Result) -> list[np.ndarray]:
    """Rods to draw: frames x points x 3 each; rods 1 and 4 follow from where the coupler ends are."""
    halves = []
    half = np.linalg.norm(C - B) / 4
    for side in ("left", "right"):
        ends = np.array([[0, 0, -half], [0, 0, half]])
        halves.append(frames_of(result[f"{side}.weld_r"], result[f"{side}.weld_q"], ends))
    count = len(result.t)
    first = np.stack([np.tile(A, (count, 1)), halves[0][:, 0]], axis=1)
    fourth = np.stack([halves[1][:, 1], np.tile(D, (count, 1))], axis=1)
    return [first, *halves, fourth]


def main(arguments: list[str] | None = None) -> None:
    """Run all methods, draw everything and print residuals and errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/spatial_four_bar"), help="folder of the pictures")
    parser.add_argument("--quick", action="store_true", help="0.1 s instead of 1.2 s, short animation")
    options = parser.parse_args(arguments)
    import matplotlib

    matplotlib.use("Agg")
    options.out.mkdir(parents=True, exist_ok=True)
    t_end = 0.1 if options.quick else T_END
    results = {}
    for name, method in methods().items():
        results[name] = result = run(method, t_end=t_end, correction="stabilised" in name)
        g = np.abs(residuals(result)).max(axis=(1, 2))
        print(f"{name:>28}: |g| {g[0]:.1e}, |g'| {g[1]:.1e}, |g''| {g[2]:.1e}; error {error(result, t_end):.1e} m")
    draw(options.out, results, t_end)
    last = results["stabilised index 2, k = 0"]
    pivots = ((A, AXIS_A / 8), (D, AXIS_D / 8))
    ground = [np.array([point - axis, point + axis]) for point, axis in pivots]
    every = 50 if options.quick else 25
    animate(options.out / "motion.gif", last.t, lines(last), every=every, title="spatial four-bar", fixed=ground)
    print(f"pictures in {options.out}")


if __name__ == "__main__":
    main()
