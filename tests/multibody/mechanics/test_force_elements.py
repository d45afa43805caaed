"""Forces and moments of springs, bushings and torsion springs between two bodies that move and turn, by hand."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import cosolve as cs
from cosolve.multibody.equations.joint_math import rotation_matrix

MASS = {"a": 1.3, "b": 2.1}
INERTIA = {"a": np.diag([0.1, 0.12, 0.05]), "b": np.diag([0.2, 0.15, 0.3])}
R = {"a": np.array([0.1, -0.2, 0.3]), "b": np.array([1.2, 0.1, -0.1])}
V = {"a": np.array([0.4, 0.2, -0.7]), "b": np.array([-0.3, 0.5, 0.1])}
W = {"a": np.array([0.5, 1.0, -0.3]), "b": np.array([-1.0, 0.6, 2.0])}  # in the axes of the body
Q = {name: np.array(q) / np.linalg.norm(q) for name, q in (("a", [0.9, 0.1, -0.3, 0.2]), ("b", [0.8, 0.36, 0.48, 0.1]))}
T = {name: rotation_matrix(q) for name, q in Q.items()}
S = {"a": np.array([0.3, 0.1, 0.2]), "b": np.array([-0.2, 0.3, 0.1])}  # the markers
AXES = {"a": rotation_matrix([0.6, 0.0, 0.8, 0.0]), "b": rotation_matrix([0.8, 0.6, 0.0, 0.0])}

P = {name: R[name] + T[name] @ S[name] for name in R}
U = {name: V[name] + T[name] @ np.cross(W[name], S[name]) for name in R}  # velocities of the markers
OMEGA = {name: T[name] @ W[name] for name in R}
E = {name: T[name] @ AXES[name] for name in R}  # axes of the markers, as columns
D, RATE = P["a"] - P["b"], U["a"] - U["b"]

Element = Callable[[cs.multibody.MultibodyModel], None]
ZERO = np.zeros(3)


def loads(element: Element, first: str, second: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Force on each body and moment about its centre of mass, in K0, from its accelerations."""
    model = cs.multibody.MultibodyModel(gravity=(0, 0, 0))
    for name in (first, second):
        model.body(
            name, MASS[name], INERTIA[name], position=R[name], orientation=Q[name], velocity=V[name],
            angular_velocity=W[name],
        )  # fmt: skip
        model.marker(f"p{name}", name, S[name], axes=AXES[name])
    element(model)
    pair = cs.multibody.MultibodySubsystem(model, ports=["a", "b"])
    y = pair.start(0.0).reshape(2, 19)
    found = {}
    for name, row in zip("ab", y, strict=True):
        J, w = INERTIA[name], W[name]
        found[name] = MASS[name] * row[13:16], T[name] @ (J @ row[16:19] + np.cross(w, J @ w))
    return found


def expected(force: np.ndarray, moment: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """For this force and moment on body "a" at its marker, which act on body "b" the other way round."""
    return {
        "a": (force, moment + np.cross(P["a"] - R["a"], force)),
        "b": (-force, -moment - np.cross(P["a"] - R["b"], force)),
    }


def spring(k: float, c: float, length: float) -> tuple[Element, np.ndarray, np.ndarray]:
    size = np.linalg.norm(D)
    force = -(k * (size - length) + c * (D @ RATE) / size) * D / size
    return lambda model: model.spring_damper("it", "pa", "pb", k, c, length), force, ZERO


def bushing(k: np.ndarray, c: np.ndarray) -> tuple[Element, np.ndarray, np.ndarray]:
    axes = E["b"]
    turn = Rotation.from_matrix(axes.T @ E["a"]).as_rotvec()
    along = k[:3] * (axes.T @ D) + c[:3] * (axes.T @ (RATE - np.cross(OMEGA["b"], D)))
    about = k[3:] * turn + c[3:] * (axes.T @ (OMEGA["a"] - OMEGA["b"]))
    return lambda model: model.bushing("it", "pa", "pb", k, c), -axes @ along, -axes @ about


def torsion(k: float, c: float, angle: float) -> tuple[Element, np.ndarray, np.ndarray]:
    x_a, (x_b, y_b, z_b) = E["a"][:, 0], E["b"].T
    turned = np.angle(np.exp(1j * (np.arctan2(x_a @ y_b, x_a @ x_b) - angle)))
    moment = -(k * turned + c * (OMEGA["a"] - OMEGA["b"]) @ z_b) * z_b
    return lambda model: model.torsion_spring("it", "pa", "pb", k, c, angle), ZERO, moment


ONLY = np.eye(6)
CASES = {
    "spring": spring(40.0, 0.0, 0.3),
    "damper": spring(0.0, 3.0, 0.0),
    "spring and damper": spring(40.0, 3.0, 0.7),
    **{f"bushing stiffness {k}": bushing(20.0 * ONLY[k], 0 * ONLY[k]) for k in range(6)},
    **{f"bushing damping {k}": bushing(0 * ONLY[k], 5.0 * ONLY[k]) for k in range(6)},
    "bushing": bushing(np.array([30.0, 20.0, 10.0, 3.0, 2.0, 1.0]), np.array([1.0, 3.0, 2.0, 0.1, 0.4, 0.2])),
    "torsion spring": torsion(5.0, 0.0, 0.2),
    "torsion damper": torsion(0.0, 0.3, 0.0),
    "torsion beyond half a turn": torsion(5.0, 0.3, 3.0),
}


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("case", CASES)
def test_loads(case: str, order: str) -> None:
    """Whichever of the bodies was added first."""
    element, force, moment = CASES[case]
    found, wanted = loads(element, *order), expected(force, moment)
    for name in "ab":
        for got, should in zip(found[name], wanted[name], strict=True):
            assert got == pytest.approx(should, abs=1e-11)
