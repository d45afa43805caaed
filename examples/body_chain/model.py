"""A hanging chain of ten rods, split into five subsystems of two rods each by rigid joints.

Rods of 0.2 m and 0.3 kg; inside a subsystem the two rods are joined by a spherical joint, the first rod hangs on the
ground by one. Between subsystems there are, in turn, a spherical, a universal, a revolute and again a spherical joint.
The chain starts at rest, pulled aside into a three-dimensional zigzag, and swings under gravity.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cosolve as cs

GRAVITY = np.array([0.0, 0.0, -9.81])
RODS, PER_SUBSYSTEM, LENGTH, MASS, RADIUS = 10, 2, 0.2, 0.3, 0.02
BETWEEN = ("spherical", "universal", "revolute", "spherical")


def points() -> np.ndarray:
    """The joints of the chain at the start: eleven points."""
    found = [np.zeros(3)]
    for k in range(RODS):
        side, height = np.deg2rad(25.0 * (-1) ** k + 6.0 * k), np.deg2rad(-35.0 + 4.0 * k)
        step = np.array([np.cos(side) * np.cos(height), np.sin(side) * np.cos(height), np.sin(height)])
        found.append(found[-1] + LENGTH * step)
    return np.array(found)


def rod_axes(along: np.ndarray) -> np.ndarray:
    """Body axes of a rod: x along it, y horizontal."""
    x = along / np.linalg.norm(along)
    y = np.cross([0.0, 0.0, 1.0], x)
    y /= np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])


def models() -> dict[str, cs.multibody.MultibodyModel]:
    """The five models."""
    at = points()
    thin, wide = MASS * RADIUS**2 / 2, MASS * (LENGTH**2 / 12 + RADIUS**2 / 4)
    made = {}
    for s in range(RODS // PER_SUBSYSTEM):
        model = cs.multibody.MultibodyModel(GRAVITY)
        for k in range(PER_SUBSYSTEM * s, PER_SUBSYSTEM * (s + 1)):
            name = f"rod{k}"
            axes = rod_axes(at[k + 1] - at[k])
            model.body(name, MASS, [thin, wide, wide], position=(at[k] + at[k + 1]) / 2, orientation=axes)
            model.marker(f"start{k}", name, (-LENGTH / 2, 0, 0))
            model.marker(f"end{k}", name, (LENGTH / 2, 0, 0))
            if k == 0:
                model.joint("hook", "spherical", "start0", "ground")
            elif k > PER_SUBSYSTEM * s:
                model.joint(f"ball{k}", "spherical", f"end{k - 1}", f"start{k}")
        made[f"part{s}"] = model
    return made


def joints() -> list[cs.multibody.Joint]:
    """The four joints between the subsystems, with axes that fit the start."""
    at = points()
    found = []
    for s, kind in enumerate(BETWEEN):
        k = PER_SUBSYSTEM * (s + 1)
        before, after = rod_axes(at[k] - at[k - 1]), rod_axes(at[k + 1] - at[k])
        axes: dict[str, Any] = {}
        if kind == "revolute":
            axes["axis"] = np.cross(before[:, 0], after[:, 0])  # the normal of the plane of both rods
        elif kind == "universal":
            axes["axis"], axes["second_axis"] = before[:, 1], np.cross(before[:, 1], after[:, 0])
        found.append(
            cs.multibody.Joint(kind, f"part{s}.end{k - 1}", f"part{s + 1}.start{k}", name=f"{kind}{s}", **axes)
        )
    return found


def system(H: float = 2e-3, *, correction: bool = False, **options: Any) -> cs.System:
    """The whole chain; the last rod has ports that show where it is."""
    common = {"integrator": "rk4", "internal_step": H, "monitors": ["energy"], **options}
    last = {"part4": {"ports": [("rod9", [])]}}
    return cs.multibody.assemble(models(), joints(), correction=correction, options=last, **common)
