"""Large rotations taken out of displacements: what only turns does not deform."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import cosolve as cs
from cosolve.multibody.equations.elements import rotation_vector
from cosolve.multibody.equations.joint_math import rotation_matrix

pytestmark = pytest.mark.covers("IJ-35")

RNG = np.random.default_rng(5)
POINTS = RNG.normal(size=(40, 3))


def blade_turn(omega: float, psi: float) -> np.ndarray:
    """Pitch about x first, then the rotor about y, written out."""
    cw, sw, cp, sp = np.cos(omega), np.sin(omega), np.cos(psi), np.sin(psi)
    return np.array([[cw, sp * sw, cp * sw], [0.0, cp, -sp], [-sw, sp * cw, cp * cw]])


def test_pitch_then_rotor_is_the_product_in_this_order() -> None:
    R_y, R_x = Rotation.from_euler("y", 1.3), Rotation.from_euler("x", -0.4)
    assert (R_y * R_x).as_matrix() == pytest.approx(blade_turn(1.3, -0.4), abs=1e-15)
    assert np.abs((R_y * R_x).as_matrix() - (R_x * R_y).as_matrix()).max() > 0.1


@pytest.mark.parametrize("omega", [0.1, 1.0, 3.0, 40.0])
def test_a_body_that_only_turns_does_not_deform(omega: float) -> None:
    R, centre = blade_turn(omega, 0.7), np.array([0.3, -0.2, 5.0])
    moved = cs.mapping.rigid_part(POINTS, R, centre=centre)
    for axes in ("space", "body"):
        assert np.abs(cs.mapping.elastic_part(POINTS, moved, R, centre=centre, axes=axes)).max() < 1e-13
    assert np.abs(moved - moved @ R.T).max() > 0.1  # what the source prints does not vanish


def test_what_bends_comes_out_in_the_axes_that_are_asked_for() -> None:
    R, bend = blade_turn(2.0, -0.5), 1e-3 * RNG.normal(size=POINTS.shape)
    moved = (POINTS + bend) @ R.T - POINTS
    assert cs.mapping.elastic_part(POINTS, moved, R, axes="body") == pytest.approx(bend, abs=1e-14)
    assert cs.mapping.elastic_part(POINTS, moved, Rotation.from_matrix(R)) == pytest.approx(bend @ R.T, abs=1e-14)


def test_rotation_vectors_and_quaternions_come_back() -> None:
    """Vector, quaternion, the matrix of the multibody room, its rotation vector."""
    for _ in range(50):
        axis = RNG.normal(size=3)
        vector = axis / np.linalg.norm(axis) * RNG.uniform(1e-3, 3.0)
        x, y, z, w = Rotation.from_rotvec(vector).as_quat()
        R = np.array(rotation_matrix(np.array([w, x, y, z]))).reshape(3, 3)
        assert np.array(rotation_vector(tuple(R.ravel()))) == pytest.approx(vector, abs=2e-13)
        again = Rotation.from_matrix(R).as_quat()
        assert again * np.sign(again[3] * w) == pytest.approx(np.array([x, y, z, w]), abs=1e-13)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([[0, 0]], [[0, 0]], np.eye(3)), "rows of three"),
        (([[0, 0, 0]], [[0, 0, np.nan]], np.eye(3)), "displacements must be rows"),
        (([[0, 0, 0]], [[0, 0, 0]], 2 * np.eye(3)), "rotation matrix"),
        (([[0, 0, 0]], [[0, 0, 0]], -np.eye(3)), "rotation matrix"),
        (([[0, 0, 0]], [[0, 0, 0], [1, 1, 1]], np.eye(3)), "1 points, but displacements of 2"),
    ],
)  # fmt: skip
def test_nonsense_is_refused(arguments, sentence: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=sentence):
        cs.mapping.elastic_part(*arguments)
