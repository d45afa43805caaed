"""Pictures of the turbine with rigid blades: the emergency brake over time, loads along the blade, loose and strong."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import cosolve as cs
from examples.wind_turbine.aerodynamics import Rotor, steady
from examples.wind_turbine.control import braking_from
from examples.wind_turbine.data import SPAN, STALLED, TESTS
from examples.wind_turbine.monolithic import Course


def events(course: Course, parking_speed: float) -> dict[str, float]:
    """What happens, by name, and when."""
    found = {"too fast: brake": braking_from(course.t, course.brake), "fastest": float(course.t[course.speed.argmax()])}
    slow = np.flatnonzero((course.brake > 0.5) & (course.speed < parking_speed))
    if len(slow):
        found["parking brake"] = float(course.t[slow[0]])
    return {name: t for name, t in found.items() if np.isfinite(t)}


def draw_brake(course: Course, parking_speed: float, path: Path) -> None:
    """Speed, torque and pitch, with events."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(3, 1, figsize=(9, 8), sharex=True, layout="constrained")
    rows = (
        (np.degrees(course.speed), "speed in deg/s"),
        (course.torque, "aerodynamic torque in Nm"),
        (np.degrees(course.pitch), "pitch in deg"),
    )
    marked = events(course, parking_speed)
    for ax, (values, label) in zip(axes, rows, strict=True):
        ax.plot(course.t, values, color="C0")
        ax.set_ylabel(label)
        ax.grid(alpha=0.3)
        for t in marked.values():
            ax.axvline(t, color="0.4", lw=0.8, ls="--")
    axes[0].axhline(500, color="C3", lw=0.8, ls=":")
    axes[0].text(0.05, 510, "500 deg/s", color="C3", fontsize=8)
    for k, (name, t) in enumerate(marked.items()):
        at = {"xy": (t, 0.9 - 0.12 * k), "xycoords": ("data", "axes fraction")}
        axes[2].annotate(f"{name}, {t:.3f} s", **at, fontsize=8, xytext=(4, 0), textcoords="offset points")
    axes[-1].set_xlabel("t in s")
    figure.suptitle("NREL Phase VI, rigid blades: run-up without load, overspeed, emergency brake")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_loads(path: Path) -> None:
    """Coefficients along the blade and torque over wind, against the wind tunnel."""
    import matplotlib.pyplot as plt

    test = TESTS["S0700000"]
    found = steady(Rotor(wind=test.wind, density=test.density), test.rpm * np.pi / 30)
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    for ax, ours, column, label in (
        (axes[0], found.across, 1, "normal to the chord"),
        (axes[1], found.along, 2, "along the chord, to the nose"),
    ):
        ax.plot(found.r / 5.029, ours, "C0.-", label="blade elements")
        ax.plot(SPAN[:, 0], SPAN[:, column], "C3o", label="measured, S0700000")
        for at, *both in SPAN:
            off = 100 * (np.interp(at * 5.029, found.r, ours) / both[column - 1] - 1)
            ax.annotate(
                f"{off:+.0f} %",
                (at, both[column - 1]),
                xytext=(0, -14),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )
        ax.set(xlabel="r / R", title=f"force coefficient {label}", ylim=(0, 1.25 * SPAN[:, column].max()))
        ax.legend(loc="lower left")
    winds, speed = np.linspace(5, 20, 61), np.radians(432.0)
    for delayed, style in ((False, "C0-"), (True, "C2--")):
        torque = [steady(Rotor(wind=float(wind), stall_delay=delayed), speed).torque for wind in winds]
        axes[2].plot(winds, torque, style, label="with stall delay" if delayed else "blade elements")
    measured = {test.wind: test.torque for name, test in TESTS.items() if name.startswith("H")} | STALLED
    shown = {wind: torque for wind, torque in measured.items() if wind <= winds[-1]}
    axes[2].plot(shown.keys(), shown.values(), "C3o", label="measured, sequence H")
    axes[2].set(xlabel="wind in m/s", title="shaft torque in Nm", ylim=(0, None))
    axes[2].legend(loc="lower center")
    for ax in axes:
        ax.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_coupling(reference: Course, runs: dict[str, cs.Result], strong: dict[str, cs.Result], path: Path) -> None:
    """Torque at the start, its error over time, and how many subsystem steps strong coupling takes in a macro step."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(3, 1, figsize=(9, 9), layout="constrained")
    first = reference.t <= 0.06
    axes[0].plot(1e3 * reference.t[first], reference.torque[first], "k", lw=3, alpha=0.3, label="all in one program")
    for name, run in (runs | strong).items():
        at = run.t <= 0.06
        axes[0].plot(1e3 * run.t[at], run["aero.torque"][at], ".-", ms=4, lw=1, label=name)
        error = np.abs(run["aero.torque"] - reference.torque[: len(run.t)])
        axes[1].semilogy(run.t, np.maximum(error, 1e-11), lw=0.8, label=name)
    for k, (name, run) in enumerate(strong.items()):
        axes[2].plot(run.t[1:], run.iterations + 1 + 0.08 * k, ".", ms=2, label=name)
    axes[0].set(
        xlabel="t in ms", ylabel="torque in Nm", title="the first steps: apparent mass makes loose coupling ring"
    )
    axes[1].set(xlabel="t in s", ylabel="Nm", title="error of the torque against the one program")
    axes[2].set(
        xlabel="t in s", ylabel="subsystem steps", title="subsystem steps per step of strong coupling", ylim=(0, None)
    )
    for ax in axes:
        ax.grid(alpha=0.3)
        ax.legend(fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)
