"""The spatial test of docs/validation/lu.md as one model: two free bodies with a universal joint.

Initial multipliers and the state at t = 0.2 were computed with another code.
"""

import numpy as np
import pytest
from tests.multibody.mechanics.mechanisms import advance

import cosolve as cs
from cosolve.multibody.equations.joint_math import rotation_matrix


def universal_joint(**options):
    model = cs.multibody.MultibodyModel()
    omega = np.array([0.5, 1.0, -0.3])
    r_i, r_j = np.array([0.5, 0, 0.1]), np.array([-0.6, 0.1, 0])
    q2 = np.array([np.cos(0.2), 0, np.sin(0.2), 0])
    T2 = rotation_matrix(q2)
    r2 = r_i - T2 @ r_j
    model.body("one", 1.0, [0.1, 0.12, 0.05], angular_velocity=omega)
    model.body(
        "two",
        2.0,
        [0.2, 0.15, 0.3],
        position=r2,
        orientation=q2,
        velocity=np.cross(omega, r2),
        angular_velocity=T2.T @ omega,
    )
    model.marker("i", "one", r_i, axes=np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]]).T)  # x axis: e_i = (0, 0, 1)
    model.marker("j", "two", r_j)  # y axis: e_j = (0, 1, 0)
    model.joint("advance", "universal", "i", "j")
    model.load("one", torque=lambda t: np.array([0.3, -0.2, 0.1]) * np.sin(5 * t), frame="body")
    return cs.multibody.MultibodySubsystem(model, monitors=["multipliers"], **options)


@pytest.mark.parametrize(
    "options",
    [
        {"rtol": 1e-10, "atol": 1e-12},
        {"form": "ggl", "internal_step": 5e-3},
        {"form": "baumgarte", "beta": 20.0, "integrator": "rk4", "internal_step": 2e-3},
        {"integrator": "radau", "internal_step": 5e-3},
    ],
)
def test_values_of_the_reference_code(options):
    pair = universal_joint(**options)
    lam = pair.start(0.0)
    assert lam == pytest.approx([0.60329774, -0.08688633, -0.05270608, -0.00937441], abs=1e-8)
    advance(pair, 0.0, 0.2, steps=4)
    assert pair.state_of("two")[:3] == pytest.approx([1.01353539, -0.14837429, -0.54900084], abs=2e-8)
    assert pair.state_of("one")[3:7] == pytest.approx([0.99242929, 0.05184652, 0.10432943, -0.03887684], abs=2e-8)
    momentum = pair.momentum()[0]
    start = universal_joint(**options)
    assert momentum - start.momentum()[0] == pytest.approx([0, 0, -3 * 9.81 * 0.2], abs=1e-13)
