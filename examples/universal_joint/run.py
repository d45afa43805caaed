"""Two bodies on a universal joint, each in a solver of its own, under three constraint methods.

    python examples/universal_joint/run.py [--out DIR] [--quick]

Draws (`DIR` is `out/universal_joint` unless given):

- `motion.png`: the centre of body 2 and the Euler parameters of body 1 (all methods lie on top of each other);
- `multipliers.png`: joint force and torque, and the corrections mu of the stabilised index-2 method;
- `residuals.png`: the joint's conditions at position, velocity and acceleration level for all methods;
- `energy.png`: energy less the work of the driving torque (which the exact motion conserves);
- `motion.gif`: the mechanism moving.

and prints the errors at t = 0.2 s next to those of a reference code (docs/validation/lu.md).
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
from examples.spatial_pictures import animate, frames_of, residual_rows, stack
from examples.universal_joint.model import GRAVITY, J_1, J_2, M_1, M_2, POINT_1, POINT_2, system, torque

T_END, H = 2.0, 2e-3


def methods(H: float = H) -> dict[str, cs.Method]:
    """The treatments of the table, with parameters in units of the macro step."""
    return {
        "Baumgarte index 2, k = 0": cs.SemiImplicit(0, final_update=False, constraints=cs.Baumgarte(2 * H, 0.0)),
        "Baumgarte index 1, k = 1": cs.SemiImplicit(1, final_update=False, constraints=cs.Baumgarte(2 * H, H**2)),
        "weighted multipliers, k = 0": cs.SemiImplicit(0, final_update=False, constraints=cs.WeightedMultipliers()),
        "stabilised index 2, k = 0": cs.SemiImplicit(0, final_update=False, constraints=cs.StabilisedIndex2()),
    }


def residuals(result: cs.Result) -> np.ndarray:
    """Levels x points x conditions."""
    model = system(correction="cardan_mu_force" in result)
    return np.asarray(cs.multibody.constraint_residuals(model, result)["cardan"])


def energy(result: cs.Result) -> np.ndarray:
    """Kinetic and potential energy less the work of the torque (trapezoidal sum over the macro points)."""
    total = np.zeros(len(result.t))
    for name, m, J in (("one", M_1, J_1), ("two", M_2, J_2)):
        r, v, w = (result[f"{name}.cardan_{what}"] for what in ("r", "v", "w"))
        total += 0.5 * m * (v * v).sum(axis=1) + 0.5 * (w * w) @ J - m * r @ GRAVITY
    power = np.array([torque(t) @ w for t, w in zip(result.t, result["one.cardan_w"], strict=True)])
    work = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(result.t) * (power[1:] + power[:-1]))])
    return total - work


def draw(out: Path, results: dict[str, cs.Result]) -> None:
    """All diagrams over time."""
    dashes = dict(zip(results, ("-", "--", "-.", ":"), strict=True))

    def curves(quantity: str, names: Sequence[str], start: int = 0) -> list[tuple]:
        found = []
        for k, (method, result) in enumerate(results.items()):
            for axis, name in enumerate(names):
                style = {"ls": dashes[method], "color": f"C{axis}"}
                found.append((result.t[start:], result[quantity][start:, axis], "" if k else name, style))
        return found

    stack(
        out / "motion.png",
        [
            ("centre of body 2 in m", curves("two.cardan_r", "xyz")),
            ("orientation of body 1", curves("one.cardan_q", ("$q_0$", "$q_1$", "$q_2$", "$q_3$"))),
        ],
    )
    third = results["stabilised index 2, k = 0"]
    mu = [(third.t, third["cardan_mu_force"][:, k], "xyz"[k], {}) for k in range(3)]
    mu.append((third.t, third["cardan_mu_torque"][:, 0], "angle", {"color": "k"}))
    torque_curves = [(r.t[1:], r["cardan_torque"][1:, 0], name, {"ls": dashes[name]}) for name, r in results.items()]
    stack(
        out / "multipliers.png",
        [
            ("joint force in N", curves("cardan_force", "xyz", 1)),
            ("joint torque in N m", torque_curves),
            (r"$\mu$ (stabilised index 2)", mu),
        ],
    )
    rows = residual_rows({name: (result.t, residuals(result)) for name, result in results.items()})
    stack(out / "residuals.png", rows, logarithmic=True)
    changes = []
    for name, result in results.items():
        e = energy(result)
        changes.append((result.t, e - e[0], name, {"ls": dashes[name]}))
    stack(out / "energy.png", [("change of energy less work, J", changes)])


def shapes(result: cs.Result) -> list[np.ndarray]:
    """Lines to draw, seen from the common centre of mass (the pair falls): frames x points x 3 each."""
    centre = (M_1 * result["one.cardan_r"] + M_2 * result["two.cardan_r"]) / (M_1 + M_2)
    one = [[-0.4, 0.15, 0.1], [-0.4, -0.15, 0.1], [0, 0, 0.1], [-0.4, 0.15, 0.1], [0, 0, 0.1], POINT_1]
    two = [POINT_2, [0, 0.1, 0], [0.3, 0.35, 0], [0.3, -0.15, 0], [0, 0.1, 0]]
    return [
        frames_of(result["one.cardan_r"] - centre, result["one.cardan_q"], np.array(one)),
        frames_of(result["two.cardan_r"] - centre, result["two.cardan_q"], np.array(two)),
    ]


def main(arguments: list[str] | None = None) -> None:
    """Run all methods, draw everything and print errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/universal_joint"), help="folder of the pictures")
    parser.add_argument("--quick", action="store_true", help="0.2 s instead of 2 s, short animation")
    options = parser.parse_args(arguments)
    import matplotlib

    matplotlib.use("Agg")
    options.out.mkdir(parents=True, exist_ok=True)
    t_end = 0.2 if options.quick else T_END
    results = {}
    for name, method in methods().items():
        model = system(H, correction="stabilised" in name)
        results[name] = cs.simulate(model, t_end=t_end, step=H, method=method)
        g = np.abs(residuals(results[name])).max(axis=(1, 2))
        print(f"{name:>28}: largest |g| {g[0]:.1e} m, |g'| {g[1]:.1e} m/s, |g''| {g[2]:.1e} m/s^2")
    exact = np.array([1.01353539, -0.14837429, -0.54900084])
    for name, result in results.items():
        off = np.abs(result["two.cardan_r"][round(0.2 / H)] - exact).max()
        print(f"{name:>28}: error of the centre of body 2 at t = 0.2 s: {off:.1e} m")
    draw(options.out, results)
    last = results["stabilised index 2, k = 0"]
    every = 20 if options.quick else 10
    animate(
        options.out / "motion.gif", last.t, shapes(last), every=every, title="universal joint, seen from the centre"
    )
    print(f"pictures in {options.out}")


if __name__ == "__main__":
    main()
