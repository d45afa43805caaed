"""Pictures of the recloser: the switch itself at some moments, one pole over time, three poles on their frame."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from examples.recloser.model import CLOSE, Motion

#: mm in the drawing: lengths of the contacts, of the spring when the contact is at its stop, and of the armature
CONTACT, SPRING, ARMATURE = 10.0, 14.0, 16.0


def draw_switch(course: Motion, path: Path) -> None:
    """The switch at five moments of closing, and where these lie on travel and gap."""
    import matplotlib.pyplot as plt

    ms, (travel, _), (gap, _) = 1e3 * course.t, course.travel(), course.approach()
    touch, stop = int((gap < 0).argmax()), int((travel > course.recloser.magnet.stroke).argmax())
    apart = touch + int(gap[touch : stop + len(gap) // 6].argmax())
    moments = {
        "open, the coil is switched on": 0,
        "on its way": (int((travel > 1e-3).argmax()) + touch) // 2,
        "the contacts touch": touch,
        "the armature swings back, the contacts open again": apart,
        "closed": len(ms) - 1,
    }
    current = Motion(course.recloser, course.t[list(moments.values())], course.x[list(moments.values())]).current()
    figure = plt.figure(figsize=(9, 9), layout="constrained")
    grid = figure.add_gridspec(len(moments) + 1, 1, height_ratios=[1] * len(moments) + [2.2])
    for k, (label, row) in enumerate(moments.items()):
        ax = figure.add_subplot(grid[k])
        _draw_pole(ax, course, row, float(current[k]), named=k == 0)
        ax.set_title(f"{'abcde'[k]}: {ms[row]:.1f} ms, {label}", fontsize=9, loc="left")
    curves = figure.add_subplot(grid[-1])
    curves.plot(ms, 1e3 * travel, label="travel of the armature")
    curves.plot(ms, 1e3 * gap, label="gap of the contacts")
    curves.axhline(0, color="0.7", lw=0.8)
    for k, row in enumerate(moments.values()):
        curves.axvline(ms[row], color="0.6", lw=0.8, ls="--")
        curves.text(ms[row], 15, "abcde"[k], fontsize=9, ha="center")
    curves.set(xlabel="t [ms]", ylabel="mm", ylim=(-1, 16.5))
    curves.grid(alpha=0.3)
    curves.legend(loc="center left")
    figure.suptitle("A recloser closes")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_pole(ax: Any, course: Motion, row: int, current: float, named: bool) -> None:
    """Along the axis in mm: stator and armature to the left, spring, moving contact, fixed contact to the right."""
    from matplotlib.patches import Rectangle

    contact, armature, stator, fixed = (
        1e3 * course.part(name)[row] for name in ("contact", "armature", "stator", "fixed")
    )
    gap, stroke = 1e3 * course.recloser.mechanism.gap, 1e3 * course.recloser.magnet.stroke
    front = contact - CONTACT  # back of the moving contact
    face = armature - CONTACT - SPRING  # front of the armature

    def block(x: float, y: float, width: float, height: float, colour: str) -> None:
        ax.add_patch(Rectangle((x, y), width, height, facecolor=colour, edgecolor="0.25"))

    open_stop, closed_stop = stator - CONTACT - SPRING - ARMATURE, stator + stroke - CONTACT - SPRING
    for side in (-1, 1):  # the yoke, with the coil inside
        block(open_stop - 3, 8 * side - 2, closed_stop - open_stop + 6, 4, "0.75")
        block(open_stop + 6, 5 * side - 0.9, closed_stop - open_stop - 12, 1.8, "C3" if current > 0.5 else "C1")
        block(open_stop - 3, min(4 * side, 8 * side), 3, 4, "0.75")
        block(closed_stop, min(4 * side, 8 * side), 3, 4, "0.75")
    block(face - ARMATURE, -3.8, ARMATURE, 7.6, "C0")
    turns = np.linspace(0, 1, 13)
    ax.plot(face + (front - face) * turns, 2.2 * np.where(np.arange(13) % 2, 1, -1) * (turns > 0) * (turns < 1), "0.2")
    block(front, -3.0, CONTACT, 6.0, "C2")
    block(gap + fixed, -5.0, CONTACT, 10.0, "C4")
    if named:
        middle = 0.5 * (open_stop + closed_stop)
        for x, y, text, colour in (
            (face - 0.5 * ARMATURE, 0.0, "armature", "w"),
            (front + 0.5 * CONTACT, 0.0, "contact", "w"),
            (gap + fixed + 0.5 * CONTACT, 0.0, "fixed\ncontact", "w"),
            (middle, 8.0, "stator with coil", "0.2"),
        ):
            ax.text(x, y, text, color=colour, fontsize=7, ha="center", va="center")
    touching = course.part("contact")[row] - course.part("fixed")[row] > course.recloser.mechanism.gap
    ax.text(gap + fixed + CONTACT + 1.5, 0, "on" if touching else "off", va="center", fontsize=10)
    ax.text(open_stop - 5, 0, f"{current:.0f} A", va="center", ha="right", fontsize=9)
    ax.set(xlim=(-52, 32), ylim=(-11, 11), aspect="equal")
    ax.axis("off")


def draw_pole(course: Motion, path: Path) -> None:
    """Travel, forces and current of one pole over time."""
    import matplotlib.pyplot as plt

    ms, (travel, _), (gap, _) = 1e3 * course.t, course.travel(), course.approach()
    figure, (motion, force, current) = plt.subplots(3, 1, figsize=(8, 7.5), sharex=True, layout="constrained")
    motion.plot(ms, 1e3 * travel, label="armature, from the open stop")
    motion.plot(ms, 1e3 * gap, label="gap of the contacts")
    motion.axhline(0, color="0.7", lw=0.8)
    force.plot(ms, 1e-3 * course.signals()["em1.F"], label="magnetic force")
    force.plot(ms, 1e-3 * course.contact(), lw=0.8, label="contact force")
    current.plot(ms, course.current(), color="C3")
    closing = course.recloser.action == CLOSE
    for ax, label in ((motion, "mm"), (force, "kN"), (current, "coil current [A]")):
        ax.set_ylabel(label)
        ax.grid(alpha=0.3)
    force.set_ylim(-2, 8)
    for ax in (motion, force):
        ax.legend()
    current.set_xlabel("t [ms]")
    figure.suptitle("One pole closes" if closing else "One pole opens")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_poles(course: Motion, path: Path) -> None:
    """Gaps and contact forces of three poles."""
    import matplotlib.pyplot as plt

    figure, (gaps, forces) = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
    for pole in range(3):
        gaps.plot(1e3 * course.t, 1e3 * course.approach(pole)[0], label=f"pole {pole + 1}")
        forces.plot(1e3 * course.t, 1e-3 * course.contact(pole), lw=0.8)
    gaps.axhline(0, color="0.7", lw=0.8)
    gaps.set(ylabel="gap of the contacts [mm]", xlim=(15, 1e3 * course.t[-1]))
    forces.set(ylabel="contact force [kN]", xlabel="t [ms]", ylim=(0, 8))
    for ax in (gaps, forces):
        ax.grid(alpha=0.3)
    gaps.legend()
    figure.suptitle("Three poles on one frame, 20/3 ms apart")
    figure.savefig(path, dpi=120)
    plt.close(figure)
