"""A slider-crank with crank and rod of equal length, cut between them: singular where the crank stands upright."""

import numpy as np
import pytest

import cosolve as cs

PIN = cs.multibody.Joint("inline", "left.tip", "right.near", axis=(0, 0, 1), name="pin")
ALONG_X = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # marker axes with z along x of the ground


def about_z(angle):
    return np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)


def models(angle, rate=2.0):
    """Crank of 1 m at `angle`; the rod of 1 m mirrors it, the slider moves along x."""
    up, across = np.array([np.cos(angle), np.sin(angle), 0.0]), np.array([-np.sin(angle), np.cos(angle), 0.0])
    left = cs.multibody.MultibodyModel(gravity=(0, 0, 0))
    left.body(
        "crank", 1.0, [0.1] * 3, position=up / 2, orientation=about_z(angle), velocity=rate / 2 * across,
        angular_velocity=(0, 0, rate),
    )  # fmt: skip
    left.marker("foot", "crank", (-0.5, 0, 0))
    left.marker("tip", "crank", (0.5, 0, 0))
    left.joint("hinge", "revolute", "foot", "ground")
    right = cs.multibody.MultibodyModel(gravity=(0, 0, 0))
    down = np.array([np.cos(angle), -np.sin(angle), 0.0])  # from the tip to the slider
    swing = np.cross([0, 0, -rate], down)
    right.body(
        "rod", 1.0, [0.1] * 3, position=up + down / 2, orientation=about_z(-angle), velocity=rate * across + swing / 2,
        angular_velocity=(0, 0, -rate),
    )  # fmt: skip
    right.marker("near", "rod", (-0.5, 0, 0))
    right.marker("far", "rod", (0.5, 0, 0))
    right.body("slider", 1.0, [0.1] * 3, position=up + down, velocity=rate * across + swing)
    right.marker("rail", "ground", axes=ALONG_X)
    right.marker("shoe", "slider", axes=ALONG_X)
    right.joint("slide", "translational", "shoe", "rail")
    right.joint("pin", "revolute", "far", "slider")
    return {"left": left, "right": right}


def test_a_start_in_the_singular_position_is_refused():
    with pytest.raises(
        cs.errors.SetupError, match=r"'pin' over-constrains .* of 2 conditions .* only 1 is .* not singular"
    ):
        cs.multibody.assemble(models(np.pi / 2), [PIN])


def test_passing_the_singular_position_between_macro_points():
    """The mirror-image motion goes on: rod and crank keep opposite rates, and energy stays."""
    system = cs.multibody.assemble(models(1.2), [PIN], integrator="rk4", internal_step=2e-3)
    method = cs.SemiImplicit(0, final_update=False, constraints=cs.StabilisedIndex2())
    result = cs.simulate(system, t_end=0.6, step=2e-3, method=method)
    angle = np.arctan2(result["left.pin_r"][:, 1], result["left.pin_r"][:, 0])
    assert angle[0] < np.pi / 2 < angle[-1]
    np.testing.assert_allclose(result["left.pin_w"][:, 2], -result["right.pin_w"][:, 2], atol=1e-4)
    g = np.abs(cs.multibody.constraint_residuals(system, result)["pin"]).max(axis=(1, 2))
    assert g[0] < 1e-7
    assert g[1] < 1e-4
