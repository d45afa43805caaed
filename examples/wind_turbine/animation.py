"""Pictures of the turbine with blades that bend: the brake over time, iterations, energy, and it all in motion."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import cosolve as cs
from examples.wind_turbine.flexible import Turbine
from examples.wind_turbine.flexible_study import Balance
from examples.wind_turbine.rotor import HEAD

HUB_HEIGHT = 12.192
MAGNIFIED = 30.0


def events(turbine: Turbine, run: cs.Result) -> dict[str, float]:
    """What happens, by name, and when."""
    found = {"motor off": turbine.train.motor_until, "brake command": turbine.schedule.command}
    slow = np.flatnonzero((run["control.brake"] > 0.5) & (np.abs(run["rotor.speed"]) < turbine.train.parking_speed))
    if len(slow):
        found["parking brake"] = float(run.t[slow[0]])
    return {name: t for name, t in found.items() if 0 < t <= run.t[-1]}


def draw_brake(turbine: Turbine, run: cs.Result, path: Path) -> None:
    """Speed, torques, deflection of the tip and pitch, with events."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(4, 1, figsize=(9, 10), sharex=True, layout="constrained")
    t, tip = run.t, 1e3 * run["rotor.tip"]
    axes[0].plot(t, np.degrees(run["rotor.speed"]))
    axes[0].set_ylabel("speed in deg/s")
    axes[1].plot(t[1:], run["air.torque"][1:], label="of the air")
    axes[1].plot(t[1:], run["generator.torque"][1:], lw=0.7, label="taken by the generator (motor: negative)")
    axes[1].set_ylim(-6000, 4500)
    axes[1].set_ylabel("torque in Nm")
    axes[1].legend(fontsize=8, loc="lower right")
    axes[2].plot(t, tip[:, 0], label="downwind")
    axes[2].plot(t, tip[:, 1], lw=0.7, label="with the rotation")
    axes[2].set_ylabel("tip deflection in mm")
    axes[2].legend(fontsize=8, loc="upper right")
    axes[3].plot(t, np.degrees(run["control.pitch"]))
    axes[3].set_ylabel("pitch in deg")
    axes[3].set_xlabel("t in s")
    for name, when in events(turbine, run).items():
        for ax in axes:
            ax.axvline(when, color="0.4", lw=0.8, ls="--")
        axes[3].annotate(
            f"{name}, {when:.2f} s", (when, 0.2), xycoords=("data", "axes fraction"), fontsize=8,
            xytext=(4, 0), textcoords="offset points",
        )  # fmt: skip
    for ax in axes:
        ax.grid(alpha=0.3)
    figure.suptitle("NREL Phase VI, blades that bend: motor start, wind, emergency brake into stall")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_iterations(turbine: Turbine, runs: dict[str, cs.Result], path: Path) -> None:
    """Steps of all subsystems per step."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        len(runs), 1, figsize=(9, 2.3 * len(runs)), sharex=True, layout="constrained", squeeze=False
    )
    for ax, (name, run) in zip(axes[:, 0], runs.items(), strict=True):
        counts = run.iterations + 1
        ax.plot(run.t[1:], counts, ".", ms=2)
        ax.set_title(f"{name}: {counts.mean():.2f} subsystem steps per step, at most {counts.max()}", fontsize=9)
        ax.set_ylim(0, counts.max() + 1)
        ax.grid(alpha=0.3)
        for when in events(turbine, run).values():
            ax.axvline(when, color="0.4", lw=0.8, ls="--")
    axes[-1, 0].set_xlabel("t in s")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_energy(balances: dict[str, Balance], path: Path) -> None:
    """Where the energy goes, and what is missing with both rules."""
    import matplotlib.pyplot as plt

    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 7), sharex=True, layout="constrained")
    one = next(iter(balances.values()))
    for name, values in (
        ("work of the air", one.air), ("taken by the generator", one.generator), ("lost in the blades", one.damping),
        ("stored in the rotor", one.stored),
    ):  # fmt: skip
        above.plot(one.t, 1e-3 * values, label=name)
    above.set_ylabel("energy in kJ")
    above.legend(fontsize=8)
    for name, found in balances.items():
        missing = np.abs(found.missing + found.shaft_missing)
        below.semilogy(found.t[1:], np.maximum(missing[1:] / found.throughput, 1e-18), label=name)
    below.set_ylabel("missing, of the throughput")
    below.set_xlabel("t in s")
    below.legend(fontsize=8)
    for ax in (above, below):
        ax.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def write_animation(turbine: Turbine, run: cs.Result, states: np.ndarray, path: Path, frames: int = 100) -> None:
    """The turbine from the front and, to the right of it, from the side; deflections are magnified."""
    b, n = turbine.blade, len(turbine.blade.pull)
    nodes = len(b.nodes)
    pick = np.unique(np.linspace(0, len(run.t) - 1, frames).astype(int))
    t = run.t[pick]
    turns = np.concatenate(
        [[0.0], np.cumsum(0.5 * np.diff(run.t) * (run["rotor.speed"][1:] + run["rotor.speed"][:-1]))]
    )
    angle = turns[pick]
    bent = MAGNIFIED * states[pick, HEAD : HEAD + n] @ b.shapes.T
    r = np.concatenate([[0.0], b.nodes])
    flap, edge = (np.hstack([np.zeros((len(t), 1)), part]) for part in (bent[:, :nodes], bent[:, nodes:]))
    parts = [np.broadcast_to(np.array(line), (len(t), len(line), 2)) for line in (
        [[0.0, 0.0], [0.0, HUB_HEIGHT]], [[9.0, 0.0], [9.0, HUB_HEIGHT]], [[8.0, HUB_HEIGHT], [9.6, HUB_HEIGHT]]
    )]  # fmt: skip
    for k in range(turbine.air.blades):
        at = angle[:, None] + 2 * np.pi * k / turbine.air.blades
        across, up = r * np.sin(at) + edge * np.cos(at), r * np.cos(at) - edge * np.sin(at)
        parts.append(np.stack([across, HUB_HEIGHT + up], axis=-1))
        parts.append(np.stack([8.0 + flap, HUB_HEIGHT + up], axis=-1))
    title = f"front, and side with wind from the left; deflections x {MAGNIFIED:g}"
    cs.plot.write_gif(path, parts, t, title=title, frames=frames)
