"""Two bodies in space and joints between them, for cosolve and for the independent monolithic model."""

import numpy as np
from tests.multibody.joints.monolithic import Basic, Body, Monolithic, T

import cosolve as cs

GRAVITY = (0.0, 0.0, -9.81)
POINT = (np.array([0.5, 0.1, 0.1]), np.array([-0.4, 0.1, -0.1]))
MASS, INERTIA = (1.0, 2.0), (np.array([0.1, 0.12, 0.05]), np.array([0.2, 0.15, 0.3]))


def unit(*x):
    return np.array(x) / np.linalg.norm(x)


def starts(rigid=True):
    """Initial motion of both bodies: coupling points together, the same angular velocity in space."""
    q = unit(1.0, 0.1, -0.2, 0.3), unit(0.9, -0.3, 0.1, 0.2)
    omega = np.array([0.5, 1.0, -0.3])
    lever = [T(q[k]) @ POINT[k] for k in range(2)]
    first = np.concatenate([np.zeros(3), q[0], [0.2, -0.1, 0.3], T(q[0]).T @ omega])
    v = first[7:10] + np.cross(omega, lever[0]) - np.cross(omega, lever[1])
    second = np.concatenate([lever[0] - lever[1], q[1], v, T(q[1]).T @ omega])
    return first, second


def models():
    made = []
    for k, z in enumerate(starts()):
        model = cs.multibody.MultibodyModel(gravity=GRAVITY)
        model.body(
            "body", MASS[k], INERTIA[k], position=z[:3], orientation=z[3:7], velocity=z[7:10], angular_velocity=z[10:]
        )
        model.marker("at", "body", POINT[k])
        made.append(model)
    return {"one": made[0], "two": made[1]}


def monolithic(parts, law=None):
    """`parts`: rows (kind, e_i, e_j, c, d) with directions in space at the start."""
    z = starts()
    bodies = [Body(MASS[k], np.diag(INERTIA[k]), z[k]) for k in range(2)]
    T_i, T_j = T(z[0][3:7]), T(z[1][3:7])
    joints = [Basic(kind, 0, 1, *POINT, T_i.T @ e_i, T_j.T @ e_j, c, d, law) for kind, e_i, e_j, c, d in parts]
    return Monolithic(bodies, joints, GRAVITY)


def states(result, name):
    """Both bodies' motion (13) at all macro points."""
    return np.stack(
        [np.hstack([result[f"{body}.{name}_{what}"] for what in ("r", "q", "v", "w")]) for body in ("one", "two")],
        axis=1,
    )
