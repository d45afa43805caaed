"""Cylinder in a computed flow, swinging with its vortices and stopped by a PID controller: field, structure, signal.

    python examples/cylinder_flow/run.py [--solver lattice|elements] [--out DIR] [--quick]

First the cylinder is held at Re = 100 (drag, lift, Strouhal number; `--stage sweep`: at Re = 60 to 160; `--stage
forced`: in forced motion); then it swings on its spring at Re = 109, locked in with its vortices, and a controller
stops it. `--quick` takes a small lattice and short times. Runs are streamed to files in `DIR` (`build/cylinder_flow`
unless given); one that was ended goes on when the command is given again.

- `street.png`, `street.gif`: vortices behind the swinging cylinder, and what becomes of them when control sets in;
- `motion.png`: displacement, lift and iterations; `spectrum.png`: frequencies with and without control.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.cylinder_control.model import Cylinder, frequency, monolithic
from examples.cylinder_flow.cross_flow import CrossFlow
from examples.cylinder_flow.model import (
    LOCK_IN,
    MEASURED,
    STROUHAL,
    Discretisation,
    controlled,
    coupled,
    fixed,
    flow,
    forced,
    mean_and_amplitude,
    method,
    spectrum,
)

STAGES = ["fixed", "swing", "film", "forced", "sweep"]


def progress(name: str):
    """Says how far a run is, on one line of a terminal."""

    def say(fraction: float) -> None:
        if sys.stderr.isatty():
            print(f"\r{name}: {100 * fraction:5.1f} %", end="" if fraction < 1.0 else "\n", file=sys.stderr, flush=True)

    return say


def streamed(file: Path, system: cs.System, **options) -> cs.Result:
    """A run into a file; one that was begun there goes on, one that has finished is read."""
    say = progress(file.stem)
    if file.exists():
        return cs.resume(file, system, progress=say, method=options["method"])
    return cs.simulate(system, save=file, state_every="1 min", progress=say, **options)


def shedding(result: cs.Result, water: CrossFlow, begin: float) -> dict[str, float]:
    """Strouhal number, mean drag and amplitudes of a cylinder that is held."""
    lift, drag = result["fluid.lift"] / water.unit_force, result["fluid.drag"] / water.unit_force
    late = result.t >= begin
    return {
        "St": frequency(result.t[late], lift[late]) * water.unit_time,
        "C_D": mean_and_amplitude(result.t, drag, begin)[0],
        "C_L": mean_and_amplitude(result.t, lift, begin)[1],
    }


def swinging(result: cs.Result, p: Cylinder, t_free: float) -> list[tuple[str, str, str, str]]:
    """What was found, next to the source and to the wake oscillator: name, source, wake oscillator, ours."""
    t, u = result.t, result["structure.u"]
    lift = result["fluid.lift"]
    model = monolithic(controlled(p, p.h, 12.0), 16.0)
    times = p.h * np.arange(len(model))
    free, model_free = (t > t_free / 2) & (t <= t_free), (times > 8.0) & (times <= 12.0)
    held, model_held = t > 0.5 * (t_free + t[-1]), times > 14.0
    before, after = np.abs(u[(t > t_free - 1.0) & (t <= t_free)]).max(), np.abs(u[held]).max()
    model_before, model_after = np.abs(model[model_free, 0]).max(), np.abs(model[times > 15.0, 0]).max()
    evaluations = result.iterations + 1
    D = p.diameter
    return [
        ("lock-in, Hz", f"{LOCK_IN} ({MEASURED} measured)", _hz(times, model[:, 0], model_free), _hz(t, u, free)),
        ("the same in the lift, Hz", f"{LOCK_IN}", _hz(times, model[:, 3], model_free), _hz(t, lift, free)),
        ("amplitude over D", "-", f"{model_before / D:.4f}", f"{before / D:.4f}"),
        ("with control, lift, Hz", "-", _hz(times, model[:, 3], model_held), _hz(t, lift, held)),
        ("with control, amplitude over D", "-", f"{model_after / D:.5f}", f"{after / D:.5f}"),
        ("reduction", "orders of magnitude", f"{model_before / model_after:.0f}", f"{before / after:.0f}"),
        ("evaluations per step at 1e-8", "4", "2.05", f"{evaluations.mean():.3f} (max {evaluations.max()})"),
    ]


def _hz(t: np.ndarray, x: np.ndarray, part: np.ndarray) -> str:
    return f"{frequency(t[part], x[part] - x[part].mean()):.4f}"


def film(how: Discretisation, p: Cylinder, u0: float, swing: float, length: float, frames: int) -> list[tuple]:
    """Time, displacement and fields of a run of its own: `swing` seconds unseen, then filmed."""
    system = coupled(how, p, u0)
    fluid, shots = system.subsystems["fluid"], []
    with cs.Stepper(system, method=method(), step=how.h) as stepper:
        for t in np.linspace(swing, swing + length, frames):
            stepper.run_until(round(t / how.h) * how.h)
            shots.append((stepper.t, stepper["structure.u"], fluid.snapshot()))
    return shots


def draw_street(folder: Path, shots: list[tuple], p: Cylinder, u0: float) -> None:
    """All frames as an animation, the last one before control sets in as a picture; seen from the frame at rest."""
    import matplotlib.pyplot as plt
    from matplotlib.animation import FuncAnimation, PillowWriter
    from matplotlib.patches import Circle

    D, turning = p.diameter, p.velocity / p.diameter
    figure, axes = plt.subplots(figsize=(8, 3.7), layout="constrained")

    def draw(k: int) -> None:
        t, u, shot = shots[k]
        axes.clear()
        x, y = shot.points.T / D
        ((kind, cells),) = shot.cells.items()
        triangles = cells if kind == "triangle" else np.concatenate([cells[:, :3], cells[:, [0, 2, 3]]])
        look = {"cmap": "RdBu_r", "vmin": -3.0, "vmax": 3.0, "shading": "gouraud"}
        axes.tripcolor(x, y + u0 / D, triangles, shot.point_data["vorticity"] / turning, **look)
        axes.add_patch(Circle((0.0, u / D), 0.5, color="0.25"))
        axes.set(xlim=(-2.5, 12.0), ylim=(-3.2, 3.2), aspect="equal", xlabel="x / D", ylabel="y / D")
        control = "on" if p.on_at is not None and t > p.on_at else "off"
        axes.set_title(f"vorticity at Re = {p.Re:.0f}: u / D = {u / D:+.3f}, control {control}", fontsize=10)

    FuncAnimation(figure, draw, frames=len(shots)).save(folder / "street.gif", writer=PillowWriter(fps=12), dpi=60)
    draw(len(shots) // 2 - 1)
    figure.savefig(folder / "street.png", dpi=120)
    plt.close(figure)


def draw_motion(path: Path, result: cs.Result, p: Cylinder, water: CrossFlow) -> None:
    import matplotlib.pyplot as plt

    t, D = result.t, p.diameter
    figure, (top, middle, bottom) = plt.subplots(3, 1, figsize=(9, 7.5), layout="constrained", sharex=True)
    top.plot(t, result["structure.u"] / D, lw=0.5)
    top.set(ylabel="u / D", title=f"Cylinder in a flow, Re = {p.Re:.0f}, control from {p.on_at:g} s on")
    middle.plot(t, result["fluid.lift"] / water.unit_force, lw=0.5, color="C1", label="lift")
    middle.plot(t, result["fluid.drag"] / water.unit_force, lw=0.5, color="C2", label="drag")
    middle.set(ylabel="coefficients", ylim=(-2.0, 3.0))
    middle.legend(loc="upper right", fontsize=8)
    bottom.plot(t[1:], result.iterations + 1, lw=0.5, color="C3")
    bottom.set(ylabel="evaluations per step", xlabel="t in s", ylim=(0, 5))
    for axes in (top, middle, bottom):
        axes.axvline(p.on_at, color="k", lw=0.8, ls=":")
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_spectrum(path: Path, result: cs.Result, p: Cylinder, water: CrossFlow) -> None:
    import matplotlib.pyplot as plt

    t, lift = result.t, result["fluid.lift"] / water.unit_force
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    parts = {"control off": (t > p.on_at / 2) & (t <= p.on_at), "control on": t > 0.5 * (p.on_at + t[-1])}
    for label, part in parts.items():
        axes.semilogy(*spectrum(t[part], lift[part]), lw=1, label=label)
    axes.axvline(LOCK_IN, color="k", lw=0.8, ls=":", label=f"lock-in of the source, {LOCK_IN} Hz")
    axes.set(xlabel="frequency in Hz", ylabel="amplitude of the lift coefficient", xlim=(0, 25), ylim=(1e-4, 1))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def held_at_rest(how: Discretisation, p: Cylinder, folder: Path, lengths: float) -> None:
    """Stage one: `lengths` is the time of the run in times that the flow takes for a diameter."""
    water = flow(p, 100.0)
    t_end = round(lengths * water.unit_time / how.h) * how.h
    result = streamed(folder / "fixed.h5", fixed(how, p), t_end=t_end, method=cs.Jacobi(degree=1), step=how.h)
    found = shedding(result, water, 0.7 * t_end)
    print("held at Re = 100:", ", ".join(f"{name} {value:.4f}" for name, value in found.items()), end="")
    print(f" (source: St {STROUHAL})")


def led(how: Discretisation, p: Cylinder, folder: Path, lengths: float) -> float:
    """Table 5.3: amplitude of the lift coefficient of a cylinder in forced motion, over the last fifth of the run."""
    water = flow(p, 100.0)
    t_end = round(lengths * water.unit_time / how.h) * how.h
    system = forced(how, p, lengths)
    result = streamed(folder / "forced.h5", system, t_end=t_end, method=cs.Jacobi(degree=1), step=how.h)
    amplitude = mean_and_amplitude(result.t, result["fluid.lift"] / water.unit_force, 0.8 * t_end)[1]
    print(f"forced, 0.4 mm at 7.05 Hz, Re = 100: C_L {amplitude:.4f} (source 0.70, Placzek 0.71)")
    return amplitude


def over_reynolds(how: Discretisation, p: Cylinder, folder: Path, lengths: float) -> None:
    """Figs. 5.6 to 5.8: drag, lift and Strouhal number of a cylinder that is held, over the Reynolds number."""
    for Re in (60.0, 80.0, 100.0, 120.0, 140.0, 160.0):
        water = flow(p, Re)
        t_end = round(lengths * water.unit_time / how.h) * how.h
        file = folder / f"fixed-{Re:.0f}.h5"
        result = streamed(file, fixed(how, p, Re), t_end=t_end, method=cs.Jacobi(degree=1), step=how.h)
        found = shedding(result, water, 0.7 * t_end)
        print(f"held at Re = {Re:.0f}:", ", ".join(f"{name} {value:.4f}" for name, value in found.items()), flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/cylinder_flow"))
    parser.add_argument("--solver", choices=["lattice", "elements"], default="lattice")
    parser.add_argument("--quick", action="store_true", help="a small lattice or mesh, and short times")
    parser.add_argument("--wide", action="store_true", help="elements: sides far away, less blockage")
    parser.add_argument("--stage", choices=STAGES, action="append", help="only this (repeatable)")
    parser.add_argument("--free", type=float, help="seconds without control")
    parser.add_argument("--held", type=float, help="seconds with control")
    parser.add_argument("--amplitude", type=float, default=0.36, help="where the cylinder is let go, in diameters")
    options = parser.parse_args(arguments)
    if options.wide and options.solver != "elements":
        parser.error("--wide: for --solver elements; the lattice would have eleven times as many nodes")
    options.out.mkdir(parents=True, exist_ok=True)
    import matplotlib

    matplotlib.use("Agg")
    how = Discretisation(options.solver, options.quick, options.wide)
    stages = options.stage or ["fixed", "swing", "film"]
    t_free, t_held = options.free or (2.0 if options.quick else 20.0), options.held or (1.2 if options.quick else 6.0)
    p = controlled(Cylinder(), how.h, t_free)
    water, u0 = flow(p), options.amplitude * p.diameter
    if "fixed" in stages:
        held_at_rest(how, p, options.out, 50.0 if options.quick else 150.0)
    if "swing" in stages:
        file = options.out / "swing.h5"
        result = streamed(file, coupled(how, p, u0), t_end=t_free + t_held, method=method(), step=how.h)
        for name, *values in [("", "source", "wake oscillator", options.solver), *swinging(result, Cylinder(), t_free)]:
            print(f"{name:32s}" + "".join(f"{value:>24s}" for value in values))
        draw_motion(options.out / "motion.png", result, p, water)
        draw_spectrum(options.out / "spectrum.png", result, p, water)
    if "forced" in stages:
        led(how, Cylinder(), options.out, 50.0 if options.quick else 150.0)
    if "sweep" in stages:
        over_reynolds(how, Cylinder(), options.out, 50.0 if options.quick else 150.0)
    if "film" in stages:
        swing, length, frames = (0.5, 0.6, 20) if options.quick else (1.0, 0.9, 48)
        on = controlled(p, how.h, round((swing + length / 2) / how.h) * how.h)
        draw_street(options.out, film(how, on, u0, swing, length, frames), on, u0)
    print(f"pictures in {options.out}")


if __name__ == "__main__":
    main()
