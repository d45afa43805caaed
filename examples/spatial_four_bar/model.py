"""Spatial four-bar mechanism cut in two by a fixed joint (Lu (2015), 3.3.1.4, with data of our own).

Rods 1 and 4 turn on revolute joints at the ground, rod 2 hangs on rod 1 by a spherical joint, rod 3 on rod 4 by a
universal joint; rods 2 and 3 are the halves of one coupler, joined by a fixed joint. Subsystem `left` holds rods 1 and
2, `right` rods 3 and 4: six conditions between them leave one degree of freedom. A force F_x = 1 N/s * t pulls at the
centre of rod 1.

The source gives no masses, lengths or start, so these are chosen here. Ground points
A = (0, 0, 0) and D = (1, 0.4, 0) m; rod 1 from A to B = (-0.24, 0, -0.32), rod 4 from D to C = (1, 0.4, -0.7), the
coupler from B to C, cut in its middle; slender rods of 0.2 kg/m (inertia about the rod's axis as for a radius of
2 cm); rod 1 turns about the y axis, rod 4 about (0.3, 1, 0); the universal joint joins the direction across the coupler
in the vertical plane through it, fixed to rod 3, with a horizontal direction on rod 4. Gravity 9.81 m/s^2 downwards,
start at rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import cosolve as cs

GRAVITY = np.array([0.0, 0.0, -9.81])
A, B = np.array([0.0, 0.0, 0.0]), np.array([-0.24, 0.0, -0.32])
C, D = np.array([1.0, 0.4, -0.7]), np.array([1.0, 0.4, 0.0])
MIDDLE = (B + C) / 2
AXIS_A, AXIS_D = np.array([0.0, 1.0, 0.0]), np.array([0.3, 1.0, 0.0])
PER_LENGTH, RADIUS = 0.2, 0.02
RODS = {"rod1": (A, B), "rod2": (B, MIDDLE), "rod3": (MIDDLE, C), "rod4": (C, D)}


def force(t: float) -> np.ndarray:
    """The drive at the centre of rod 1."""
    return np.array([t, 0.0, 0.0])


def frame(along: np.ndarray, across: Sequence[float] = (0.0, 1.0, 0.0)) -> np.ndarray:
    """Axes (columns) with z along the given direction and y as close to `across` as possible."""
    z = along / np.linalg.norm(along)
    y = np.asarray(across) - z * (across @ z)
    y /= np.linalg.norm(y)
    return np.column_stack([np.cross(y, z), y, z])


class Rod:
    """A rod between two points, its body frame with z along it."""

    def __init__(self, model: cs.multibody.MultibodyModel, name: str) -> None:
        self.model, self.name = model, name
        start, end = RODS[name]
        self.centre, self.axes = (start + end) / 2, frame(end - start)
        length = float(np.linalg.norm(end - start))
        mass = PER_LENGTH * length
        across = mass * length**2 / 12 + mass * RADIUS**2 / 4
        model.body(name, mass, [across, across, mass * RADIUS**2 / 2], position=self.centre, orientation=self.axes)

    def marker(self, name: str, point: np.ndarray, axes: np.ndarray | None = None) -> None:
        """A marker at a point, with axes, both given in space at the start."""
        turned = None if axes is None else self.axes.T @ axes
        self.model.marker(name, self.name, self.axes.T @ (point - self.centre), axes=turned)


def universal_axes() -> np.ndarray:
    """Common axes of both markers of the universal joint: x is fixed to rod 3 (first), y to rod 4 (second)."""
    along = (C - B) / np.linalg.norm(C - B)
    y = np.cross([0.0, 0.0, 1.0], along)
    y /= np.linalg.norm(y)
    x = np.cross(y, along)
    return np.column_stack([x, y, np.cross(x, y)])


def _left(model: cs.multibody.MultibodyModel) -> None:
    one, two = Rod(model, "rod1"), Rod(model, "rod2")
    turning = frame(AXIS_A, (0.0, 0.0, 1.0))
    one.marker("rod1_foot", A, turning)
    model.marker("ground_A", "ground", A, axes=turning)
    model.joint("pivot_A", "revolute", "rod1_foot", "ground_A")
    one.marker("rod1_end", B)
    two.marker("rod2_start", B)
    model.joint("ball_B", "spherical", "rod1_end", "rod2_start")
    two.marker("cut2", MIDDLE)
    model.load("rod1", force=force)


def _right(model: cs.multibody.MultibodyModel) -> None:
    three, four = Rod(model, "rod3"), Rod(model, "rod4")
    three.marker("cut3", MIDDLE)
    three.marker("rod3_end", C, universal_axes())
    four.marker("rod4_start", C, universal_axes())
    model.joint("cardan_C", "universal", "rod3_end", "rod4_start")
    turning = frame(AXIS_D, (0.0, 0.0, 1.0))
    four.marker("rod4_foot", D, turning)
    model.marker("ground_D", "ground", D, axes=turning)
    model.joint("pivot_D", "revolute", "rod4_foot", "ground_D")


def system(H: float = 1e-3, *, correction: bool = True, **options: Any) -> cs.System:
    """The mechanism cut between rods 2 and 3."""
    left, right = cs.multibody.MultibodyModel(GRAVITY), cs.multibody.MultibodyModel(GRAVITY)
    _left(left)
    _right(right)
    weld = cs.multibody.Joint("fixed", "left.cut2", "right.cut3", axis=C - B, name="weld")
    common = {"integrator": "rk4", "internal_step": H, "monitors": ["energy"], **options}
    return cs.multibody.assemble({"left": left, "right": right}, [weld], correction=correction, **common)


def monolithic() -> cs.multibody.MultibodySubsystem:
    """The whole mechanism in one model, as a reference; ports show all rods."""
    model = cs.multibody.MultibodyModel(GRAVITY)
    _left(model)
    _right(model)
    axes = frame(C - B)
    for name, rod in (("weld2", "rod2"), ("weld3", "rod3")):
        start, end = RODS[rod]
        body = frame(end - start)
        model.marker(name, rod, body.T @ (MIDDLE - (start + end) / 2), axes=body.T @ axes)
    model.joint("weld", "fixed", "weld2", "weld3")
    return cs.multibody.MultibodySubsystem(
        model, ports=[(rod, []) for rod in RODS], rtol=1e-11, atol=1e-13, monitors=["energy"]
    )
