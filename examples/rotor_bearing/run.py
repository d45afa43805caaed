"""Rigid rotor in a journal bearing: the pictures of Schmoll (2015), ch. 5, and what they leave open.

    python examples/rotor_bearing/run.py [--out DIR] [--quick]

What is drawn (`DIR` is `out/rotor_bearing` unless given; about three minutes, `--quick` some twenty seconds):

- `film.png` (Fig. 5.2): the pressure with Guembel's condition and with mass-conserving cavitation, and where the rotor
  rests in the bearing at different speeds;
- `run_up.png` (Fig. 5.4): orbit, coupling variables and film forces of a run-up;
- `whirl.png`: oil whirl. Growth of small motions over speed, from the bearing's coefficients and from runs; a run-up
  through the threshold, its orbits and its spectrum, in which the half-speed line appears;
- `comparison.png` (Figs. 5.5, 5.6): error, steps, iterations, static calls and time of the couplings over tolerance;
- `jump.png`: the distance of B and C to A over a fixed step, with three ways to treat negative pressure. The jump of
  method C that a reference code showed belongs to one of them (docs/validation/schmoll.md).

Numbers behind the pictures are checked in tests/method/dynamic_static.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.signal import ShortTimeFFT

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.rotor_bearing import fixed_step
from examples.rotor_bearing.elrod import Elrod, Groove
from examples.rotor_bearing.journal_bearing import JournalBearing
from examples.rotor_bearing.model import Rotor
from examples.rotor_bearing.reynolds import Reynolds
from examples.rotor_bearing.study import VARIANTS, Effort, compare, measured_threshold, run_up, small_motion

COLOURS = {"A": "tab:green", "B": "tab:red", "C": "tab:purple"}
MARKS = {"A": "+", "B": "s", "C": "D"}


def draw_film(path: Path, speeds: np.ndarray) -> None:
    """Fig. 5.2: pressure over the unwrapped gap; and the places of equilibrium."""
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(14, 4.2), layout="constrained", width_ratios=(1, 1, 0.9)
    )
    guembel = Reynolds(1.0, 128, 32)
    cavitated = Elrod(1.0, 128, 32, Groove(theta=0.0, length=0.8))
    film, oil = guembel.polar(0.6), cavitated.solve((0.6, 0.0), speed=1.0)
    degrees, z = np.degrees(guembel.theta), np.concatenate([-guembel.z[::-1], guembel.z])
    top = max(film.pressure.max(), oil.pressure.max())
    for axes, field, title in (
        (left, film.pressure, "Guembel's condition"),
        (middle, oil.pressure, "mass-conserving (Elrod), groove at 0°"),
    ):
        both = np.concatenate([field[:, ::-1], field], axis=1).T
        picture = axes.contourf(degrees, z, both, np.linspace(0, top, 21), cmap="viridis")
        axes.set(xlabel=r"$\theta$ in degrees (0: widest gap)", xticks=range(0, 361, 60), xlim=(0, 360), title=title)
    left.set_ylabel(r"$\bar z = z / B$")
    fill = np.concatenate([oil.fill[:, ::-1], oil.fill], axis=1).T
    broken = degrees > 170  # elsewhere only the corners beside the groove are not full
    lines = middle.contour(degrees[broken], z, fill[:, broken], [0.3, 0.5, 0.7, 0.9], colors="w", linewidths=0.8)
    middle.clabel(lines, fmt="fill %.1f", fontsize=8)
    figure.colorbar(
        picture, ax=(left, middle), label=r"$\bar p$ ($\varepsilon = 0.6$, $B = R$)", pad=0.01, format="%.2f"
    )
    for label, bearing in {
        "Guembel": Rotor().bearing,
        "Elrod, groove on top": JournalBearing(
            0.01, 20e-6, 0.01, 4e-3, cavitation="elrod", groove=Groove(np.pi / 2, 0.8)
        ),
    }.items():
        places = np.array([bearing.equilibrium(9.81, float(omega)) for omega in speeds]) / bearing.c
        right.plot(*places.T, "o-", ms=3, label=label)
        if label == "Guembel":
            for place, omega in zip(places, speeds, strict=True):
                above = {"xytext": (0, 10), "rotation": 60} if omega > 1000 else {"xytext": (8, 2)}
                right.annotate(f"{omega:.0f} rad/s", place, textcoords="offset points", fontsize=8, **above)
    circle = np.linspace(0, 2 * np.pi, 200)
    right.plot(np.cos(circle), np.sin(circle), "k", lw=1)
    right.set(aspect="equal", xlabel="$D_x / c$", ylabel="$D_y / c$", title="Place of rest under 9.81 N")
    right.set(xlim=(-0.1, 1.0), ylim=(-0.6, 0.35))
    right.legend(loc="lower left", fontsize=8)
    right.grid(alpha=0.3)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def draw_run_up(path: Path, t_end: float) -> cs.Result:
    """Fig. 5.4: a run-up with the data of model.py."""
    import matplotlib.pyplot as plt

    rotor = Rotor()
    result = cs.simulate(rotor.system(), t_end=t_end, method=cs.DynamicStatic("C", rtol=1e-6, max_step=1e-4))
    force = np.array(
        [
            rotor.bearing.to_cartesian(polar, place, omega)
            for polar, place, omega in zip(
                np.column_stack([result["bearing.F_r"], result["bearing.F_delta"]]),
                np.column_stack([result["rotor.x"], result["rotor.y"]]),
                result["rotor.omega"],
                strict=True,
            )
        ]
    )
    figure = plt.figure(figsize=(13, 6), layout="constrained")
    grid = figure.add_gridspec(4, 2, width_ratios=(1, 1.5))
    orbit = figure.add_subplot(grid[:, 0])
    dots = orbit.scatter(result["rotor.x"], result["rotor.y"], c=1e3 * result.t, s=6, cmap="viridis", zorder=3)
    orbit.plot(result["rotor.x"], result["rotor.y"], color="0.7", lw=0.8)
    rest = (
        np.array([rotor.equilibrium(w) for w in np.linspace(rotor.omega(0), rotor.omega(t_end), 12)]) / rotor.bearing.c
    )
    orbit.plot(*rest.T, "k--", lw=1, label="place of rest, 600 rad/s to the end")
    orbit.set(aspect="equal", xlabel="$D_x / c$", ylabel="$D_y / c$", title="Orbit of the journal")
    orbit.set_ylim(bottom=-0.36)
    orbit.legend(fontsize=8, loc="lower right")
    orbit.grid(alpha=0.3)
    figure.colorbar(dots, ax=orbit, label="t in ms", shrink=0.7)
    t = 1e3 * result.t
    rows = [figure.add_subplot(grid[k, 1]) for k in range(4)]
    for axes, name, label in zip(
        rows, ("eps", "deps", "ddelta"), (r"$\varepsilon$", r"$\varepsilon'$", r"$\delta'$"), strict=False
    ):
        axes.plot(t, result[f"rotor.{name}"], lw=1)
        axes.set_ylabel(label)
    rows[2].axhline(0.5, color="0.5", lw=0.8, ls=":")
    peak = np.abs(result["rotor.ddelta"]).max()
    rows[2].set(ylim=(-1, 2.5))
    rows[2].text(
        0.01,
        0.95,
        f"1/2: no wedge; |δ'| up to {peak:.0f} close to the centre",
        transform=rows[2].transAxes,
        fontsize=8,
        va="top",
    )
    for axes in rows[:3]:
        axes.tick_params(labelbottom=False)
    rows[3].plot(t, force[:, 0], lw=1, label="$F_x$")
    rows[3].plot(t, force[:, 1], lw=1, label="$F_y$")
    rows[3].axhline(9.81, color="0.5", lw=0.8, ls=":", label="weight")
    rows[3].set(ylabel="film force in N", xlabel="t in ms")
    rows[3].legend(fontsize=8, ncols=3, loc="upper left")
    for axes in rows:
        axes.grid(alpha=0.3)
        axes.set_xlim(0, t[-1])
    figure.savefig(path, dpi=140)
    plt.close(figure)
    return result


def draw_whirl(path: Path, ramp: float, runs: int) -> tuple[float, float]:
    """Threshold of oil whirl from the coefficients and from runs; returns both."""
    import matplotlib.pyplot as plt

    rotor = Rotor()
    limit = rotor.threshold()
    measured = measured_threshold(rotor, limit)
    figure, panels = plt.subplots(2, 2, figsize=(13, 8.5), layout="constrained")
    speeds = np.linspace(1000, 3000, 33)
    linear = np.array([rotor.whirl(float(omega)) for omega in speeds])
    growth, frequency = panels[0]
    growth.plot(speeds, linear.real, label="from stiffness and damping coefficients")
    frequency.plot(speeds, linear.imag / speeds, label="from stiffness and damping coefficients")
    some = np.linspace(1200, 2600, runs)
    seen = np.array([small_motion(rotor, float(omega), 0.03) for omega in some])
    growth.plot(some, seen.real, "o", color="tab:red", label="from runs (coupling C)")
    frequency.plot(some, seen.imag / some, "o", color="tab:red", label="from runs (coupling C)")
    growth.axhline(0, color="k", lw=0.8)
    growth.axvline(limit, color="0.4", ls="--", lw=1, label=f"threshold {limit:.0f} rad/s (runs: {measured:.0f})")
    growth.set(xlabel="speed in rad/s", ylabel="growth rate in 1/s", title="Small motions about the place of rest")
    frequency.axhline(0.5, color="0.4", ls=":", lw=1)
    frequency.axvline(limit, color="0.4", ls="--", lw=1)
    frequency.set(xlabel="speed in rad/s", ylabel="whirl frequency / speed", title="They turn with half the speed")
    light = replace(rotor, unbalance=0.5e-6, omega_0=1400.0, ramp=ramp, start=(0.1, -0.02))
    t_end = 1800.0 / ramp
    result = run_up(light, t_end)
    orbit, spectrum = panels[1]
    rate = 4000.0
    t = np.arange(0, t_end, 1 / rate)
    place = {  # smooth between the steps, for velocities are known
        name: CubicHermiteSpline(result.t, result[f"rotor.{name}"], light.omega_0 * result[f"rotor.v{name}"])
        for name in "xy"
    }
    closer = orbit.inset_axes((0.33, 0.33, 0.34, 0.34))
    for low, colour in ((1400, "tab:blue"), (2300, "tab:orange"), (3100, "tab:red")):
        part = np.linspace(low - light.omega_0, low + 100 - light.omega_0, 1500) / ramp
        for axes in (orbit, closer):
            axes.plot(place["x"](part), place["y"](part), color=colour, lw=0.9, label=f"{low} to {low + 100} rad/s")
    turn = np.linspace(0, 2 * np.pi, 200)
    orbit.plot(np.cos(turn), np.sin(turn), "k", lw=1)
    orbit.set(aspect="equal", xlabel="$D_x / c$", ylabel="$D_y / c$", title="Run-up with 0.5 µm unbalance: orbits")
    orbit.legend(fontsize=8, loc="upper right")
    closer.set(aspect="equal", xlim=(0, 0.16), ylim=(-0.08, 0.08))
    closer.tick_params(labelsize=7)
    length = 128
    window = ShortTimeFFT(np.hanning(length), hop=8, fs=2 * np.pi * rate, mfft=1024)
    signal = place["x"](t)
    power = window.spectrogram(signal - signal.mean(), p0=8, p1=(len(t) - length // 2) // 8)
    speed = light.omega_0 + ramp * 8 * np.arange(8, (len(t) - length // 2) // 8) / rate
    shown = window.f <= 3600
    level = np.maximum(10 * np.log10(power[shown] / power.max()), -60)
    mesh = spectrum.pcolormesh(speed, window.f[shown], level, cmap="magma", shading="auto")
    both = speed[[0, -1]]
    for share, style, what in ((1.0, ":", "1 x speed (unbalance)"), (0.5, "--", "1/2 x speed (oil whirl)")):
        spectrum.plot(both, share * both, "w", ls=style, lw=1)
        spectrum.text(both[0] + 60, share * both[0] - 230, what, color="w", fontsize=8)
    spectrum.axvline(limit, color="c", lw=1, ls="--")
    spectrum.text(limit + 20, 3400, "threshold", color="c", fontsize=8)
    spectrum.set(
        xlabel="speed in rad/s", ylabel="frequency in rad/s", title="Run-up: spectrum of $D_x$", ylim=(0, 3600)
    )
    spectrum.set_xlim(*both)
    figure.colorbar(mesh, ax=spectrum, label="dB below the peak")
    for axes in (growth, frequency, orbit):
        axes.grid(alpha=0.3)
    for axes in (growth, frequency):
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return limit, measured


def draw_comparison(path: Path, tolerances: list[float], t_end: float) -> dict[str, list[Effort]]:
    """Figs. 5.5 and 5.6."""
    import matplotlib.pyplot as plt

    found = compare(Rotor(), tolerances, t_end)
    figure, panels = plt.subplots(2, 3, figsize=(13, 7.2), layout="constrained")
    titles = {
        "error": "NRMSE of the states (from 2 ms on)",
        "steps": "accepted steps",
        "repetitions": "repeated steps",
        "iterations": "corrector iterations per attempt",
        "calls": "static calls",
        "seconds": "time in s",
    }
    for axes, (name, title) in zip(panels.flat, titles.items(), strict=True):
        for variant, efforts in found.items():
            values = [getattr(effort, name) for effort in efforts]
            style = {"color": COLOURS[variant], "marker": MARKS[variant], "label": VARIANTS[variant]}
            size = {"A": 11, "B": 5, "C": 4}[variant]
            axes.plot(tolerances, values, ms=size, lw=1.2, mfc="none", **style)
        axes.set(xscale="log", xlabel="tolerance", title=title)
        if name in ("error", "steps", "calls"):
            axes.set_yscale("log")
        axes.grid(which="both", alpha=0.2)
        axes.invert_xaxis()
    panels[0, 0].legend(fontsize=8)
    figure.suptitle(f"Rotor in journal bearing, {1e3 * t_end:g} ms, variable-order BDF")
    figure.savefig(path, dpi=140)
    plt.close(figure)
    return found


def draw_jump(path: Path, steps: np.ndarray) -> dict[tuple[str, str], list[float]]:
    """Distance of B and C to A over the fixed step of BDF2."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(13, 4.3), sharey=True, sharex=True, layout="constrained")
    titles = {
        "guembel-cells": "cut cell by cell (the reference code)",
        "guembel": "cut between the cells (differentiable)",
        "none": "negative pressure kept",
    }
    found = {}
    for axes, (cavitation, title) in zip(panels, titles.items(), strict=True):
        model = fixed_step.rotor(cavitation)
        held = np.array([fixed_step.distances(model, "BC", float(h), first="hold") for h in steps]).T
        sloped = np.array([fixed_step.distances(model, "C", float(h)) for h in steps]).T
        curves = {"B, start value": held[0], "C, start value": held[1], "C, slope": sloped[0]}
        for (label, values), mark in zip(curves.items(), ("s-", "D-", "D--"), strict=True):
            found[cavitation, label] = values.tolist()
            axes.loglog(1e6 * steps, values, mark, color=COLOURS[label[0]], mfc="none", ms=5, label=label)
        axes.set(title=title, xlabel="fixed step in µs")
        axes.grid(which="both", alpha=0.2)
    published = {"B": (1.0e-2, 2.9e-3, 8.9e-4), "C": (5.4e-3, 7.8e-4, 2.2e-6)}
    for values in published.values():
        panels[0].loglog(
            (80, 40, 20), values, "x", color="k", ms=8, label="reference code" if values[0] > 9e-3 else None
        )
    for axes in panels:
        axes.set_xticks(1e6 * steps, labels=[f"{1e6 * h:g}" for h in steps])
        axes.set_xticks([], minor=True)
    panels[0].set_ylabel("NRMSE against A with the same step")
    panels[0].legend(fontsize=8, title="variant, first step predicted from", title_fontsize=8)
    figure.savefig(path, dpi=140)
    plt.close(figure)
    return found


def main(arguments: list[str] | None = None) -> None:
    """Draw everything and print what the pictures show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/rotor_bearing"), help="folder of the pictures")
    parser.add_argument("--quick", action="store_true", help="short runs, some twenty seconds")
    options = parser.parse_args(arguments)
    import matplotlib

    matplotlib.use("Agg")
    options.out.mkdir(parents=True, exist_ok=True)
    quick = options.quick

    draw_film(options.out / "film.png", np.array([150.0, 300.0, 600.0, 1200.0, 2400.0]))
    draw_run_up(options.out / "run_up.png", 0.02 if quick else 0.05)
    limit, measured = draw_whirl(options.out / "whirl.png", ramp=1.2e4 if quick else 4e3, runs=4 if quick else 8)
    print(f"oil whirl begins at {limit:.1f} rad/s (coefficients), {measured:.1f} rad/s (runs)")
    tolerances = [1e-3, 1e-5] if quick else [1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8]
    efforts = draw_comparison(options.out / "comparison.png", tolerances, 0.012 if quick else 0.039)
    print(f"{'':24}{'tol':>8}{'error':>10}{'steps':>7}{'repeated':>10}{'iterations':>12}{'calls':>7}{'time':>9}")
    for k, rtol in enumerate(tolerances):
        for variant, label in VARIANTS.items():
            e = efforts[variant][k]
            counts = f"{e.steps:7}{e.repetitions:10}{e.iterations:12.2f}{e.calls:7}{e.seconds:7.2f} s"
            print(f"  {label:22}{rtol:8.0e}{e.error:10.1e}{counts}")
    steps = np.array([80e-6, 40e-6, 20e-6] if quick else [160e-6, 80e-6, 40e-6, 20e-6, 10e-6])
    distances = draw_jump(options.out / "jump.png", steps)
    print("distance to A at fixed steps of " + ", ".join(f"{1e6 * h:g}" for h in steps) + " microseconds")
    for (cavitation, what), values in distances.items():
        print(f"  {cavitation:14} {what:16}" + "".join(f"{value:10.1e}" for value in values))
    print(f"pictures in {options.out}")


if __name__ == "__main__":
    main()
