"""Orientations that leave a model in Euler angles are continuous, whatever turns the body has made."""

import numpy as np
import pytest

import cosolve as cs


def spinning(coordinates: str) -> cs.Result:
    model = cs.multibody.MultibodyModel(gravity=(0, 0, 0))
    turned = (np.cos(0.5), np.sin(0.5), 0.0, 0.0)
    model.body("top", mass=1.0, inertia=(0.1, 0.12, 0.2), orientation=turned, angular_velocity=(0.2, 0.1, 6.0))
    model.marker("centre", "top", (0, 0, 0))
    top = cs.multibody.MultibodySubsystem(
        model, ports=["centre"], coordinates=coordinates, integrator="rk4", internal_step=2e-3
    )
    system = cs.System({"top": top})
    for port in ("centre_force", "centre_torque"):
        system.set(f"top.{port}", 0.0)
    return cs.simulate(system, t_end=3.0, step=2e-3, method=cs.Jacobi(0))


def test_the_sign_does_not_flip() -> None:
    """Three turns about its axis: both signs of q are passed through, without a jump."""
    q = spinning("euler_angles")["top.centre_orientation"]
    assert np.abs(np.diff(q, axis=0)).max() < 0.02
    assert q[:, 0].min() < -0.8
    assert q[:, 0].max() > 0.8


def test_both_coordinates_give_the_same_orientation() -> None:
    angles, parameters = (spinning(c)["top.centre_orientation"] for c in ("euler_angles", "euler_parameters"))
    assert np.abs(angles - parameters).max() == pytest.approx(0.0, abs=1e-8)
