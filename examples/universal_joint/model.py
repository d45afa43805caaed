"""Two free rigid bodies joined by a universal joint, each in a solver of its own.

The joint is an atpoint condition and one perpendicular condition: axis z of body 1 stays perpendicular to axis
y of body 2. Body 1 is driven by the torque (0.3, -0.2, 0.1) sin 5t N m in its own frame; gravity acts on both. Start:
coincident coupling points, the same absolute angular velocity (0.5, 1, -0.3) rad/s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cosolve as cs

GRAVITY = np.array([0.0, 0.0, -9.81])
M_1, J_1, POINT_1 = 1.0, np.array([0.1, 0.12, 0.05]), np.array([0.5, 0.0, 0.1])
M_2, J_2, POINT_2 = 2.0, np.array([0.2, 0.15, 0.3]), np.array([-0.6, 0.1, 0.0])
Q_2 = np.array([np.cos(0.2), 0.0, np.sin(0.2), 0.0])
OMEGA = np.array([0.5, 1.0, -0.3])  # of both bodies, inertial frame
AXIS_1, AXIS_2 = np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0])  # at the start, inertial frame


def torque(t: float) -> np.ndarray:
    """Torque on body 1 in its own frame."""
    return np.array([0.3, -0.2, 0.1]) * np.sin(5.0 * t)


def start_of_second() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity and angular velocity (body frame) of body 2 that fit body 1."""
    c, s = np.cos(0.4), np.sin(0.4)
    T_2 = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    lever = T_2 @ POINT_2
    return POINT_1 - lever, np.cross(OMEGA, POINT_1) - np.cross(OMEGA, lever), T_2.T @ OMEGA


def models() -> dict[str, cs.multibody.MultibodyModel]:
    """The two models, to be joined."""
    one = cs.multibody.MultibodyModel(gravity=GRAVITY)
    one.body("body", M_1, J_1, angular_velocity=OMEGA)
    one.marker("hook", "body", POINT_1)
    one.load("body", torque=torque, frame="body")
    two = cs.multibody.MultibodyModel(gravity=GRAVITY)
    r, v, omega = start_of_second()
    two.body("body", M_2, J_2, position=r, orientation=Q_2, velocity=v, angular_velocity=omega)
    two.marker("eye", "body", POINT_2)
    return {"one": one, "two": two}


def system(H: float = 1e-3, *, correction: bool = True, **options: Any) -> cs.System:
    """Both bodies in their own subsystems, RK4 with one internal step per macro step."""
    joint = cs.multibody.Joint("universal", "one.hook", "two.eye", axis=AXIS_1, second_axis=AXIS_2, name="cardan")
    return cs.multibody.assemble(models(), [joint], correction=correction, integrator="rk4", internal_step=H, **options)
