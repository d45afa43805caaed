"""Free and pinned single bodies against exact solutions, conserved quantities and independent integrations."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from tests.multibody.mechanics.mechanisms import advance

import cosolve as cs
from cosolve.multibody.equations.joint_math import rotation_matrix
from cosolve.multibody.equations.kinematics import parameters_of

TIGHT = {"rtol": 1e-11, "atol": 1e-12}


def free_body(inertia, spin, **options):
    model = cs.multibody.MultibodyModel(gravity=(0, 0, 0))
    tilt = [np.cos(0.4), np.sin(0.4) * 0.6, np.sin(0.4) * 0.8, 0]
    model.body("top", 2.0, inertia, orientation=tilt, velocity=(0.1, -0.2, 0.3), angular_velocity=spin)
    body = cs.multibody.MultibodySubsystem(model, ports=["top"], **options)
    body.start(0.0)
    return body


@pytest.mark.parametrize("largest", range(4))
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_euler_parameters_of_a_matrix_whichever_is_the_largest(largest, sign):
    """From the identity and from half a turn about each axis; none of the others is zero."""
    q = np.array([0.1, -0.2, 0.3, 0.25])
    q[largest] = sign
    q /= np.linalg.norm(q)
    found = np.zeros(6)
    parameters_of(tuple(np.ravel(rotation_matrix(q))), found, 1)
    assert found == pytest.approx([0.0, *(sign * q), 0.0], abs=1e-15)


def test_symmetric_top_precesses_as_euler_says():
    J, J3, w3, a = 0.3, 0.5, 4.0, 1.2
    top = free_body([J, J, J3], (a, 0.0, w3), **TIGHT)
    advance(top, 0.0, 3.0, steps=30)
    rate = (J3 - J) / J * w3  # w1' = -rate w2, w2' = rate w1
    assert top.state_of("top")[10:] == pytest.approx([a * np.cos(3 * rate), a * np.sin(3 * rate), w3], abs=1e-8)
    assert top.state_of("top")[:3] == pytest.approx([0.3, -0.6, 0.9], abs=1e-12)  # no force: a straight line


@pytest.mark.parametrize("coordinates", ["euler_parameters", "euler_angles"])
def test_free_rotation_conserves_energy_and_momentum(coordinates):
    body = free_body([0.1, 0.25, 0.3], (0.01, 5.0, 0.02), coordinates=coordinates, **TIGHT)
    E, (p, L) = body.energy(), body.momentum()
    advance(body, 0.0, 1.0, steps=10)
    assert body.energy() == pytest.approx(E, rel=1e-9)
    assert body.momentum()[0] == pytest.approx(p, rel=1e-12)
    assert body.momentum()[1] == pytest.approx(L, abs=1e-9)


def test_rotation_about_the_intermediate_axis_tumbles():
    J, w0 = np.array([0.1, 0.2, 0.3]), np.array([0.01, 5.0, 0.02])
    body = free_body(J, w0, **TIGHT)
    E, L = body.energy(), body.momentum()[1]
    euler = solve_ivp(
        lambda t, w: -np.cross(w, J * w) / J,
        (0, 6),
        w0,
        method="DOP853",
        rtol=1e-12,
        atol=1e-13,
        t_eval=np.arange(1, 7),
    )
    for k in range(6):
        advance(body, k, k + 1.0, steps=4)
        assert body.state_of("top")[10:] == pytest.approx(euler.y[:, k], abs=2e-7)
    assert euler.y[1].min() < -4.9  # it did turn over
    assert body.energy() == pytest.approx(E, rel=1e-8)
    assert body.momentum()[1] == pytest.approx(L, abs=1e-8)
    assert np.linalg.norm(body.state_of("top")[3:7]) == pytest.approx(1.0, abs=1e-15)


def test_orders_of_the_fixed_step_integrators():
    reference = free_body([0.1, 0.2, 0.3], (1.0, 2.0, 3.0), **TIGHT)
    advance(reference, 0.0, 1.0)
    exact = reference.state_of("top")
    for integrator, stages, order, steps in (
        ("rk4", 3, 4, (0.02, 0.01)),
        ("radau", 2, 3, (0.02, 0.01)),
        ("radau", 3, 5, (0.1, 0.05)),
    ):
        error = []
        for h in steps:
            body = free_body([0.1, 0.2, 0.3], (1.0, 2.0, 3.0), integrator=integrator, internal_step=h, stages=stages)
            advance(body, 0.0, 1.0)
            error.append(np.abs(body.state_of("top") - exact).max())
        assert np.log2(error[0] / error[1]) == pytest.approx(order, abs=0.25)


def heavy_body(inertia, tilt, spin, length=0.5, **options):
    """A body hung with its point (0, 0, -length) in the origin, the body's z axis tilted by the Euler angle theta."""
    model = cs.multibody.MultibodyModel()
    q = np.array([np.cos(tilt / 2), np.sin(tilt / 2), 0, 0])
    T = rotation_matrix(q)
    model.body(
        "top",
        1.5,
        inertia,
        position=T @ [0, 0, length],
        orientation=q,
        velocity=T @ np.cross(spin, [0, 0, length]),
        angular_velocity=spin,
    )
    model.marker("foot", "top", (0, 0, -length))
    model.joint("foot", "spherical", "foot", "ground")
    top = cs.multibody.MultibodySubsystem(model, **options)
    top.start(0.0)
    return top


@pytest.mark.parametrize(
    "options",
    [
        TIGHT,
        {"coordinates": "euler_angles", **TIGHT},
        {"form": "ggl", "internal_step": 2.5e-3},
        {"form": "baumgarte", **TIGHT},
    ],
)
def test_heavy_top_against_its_reduced_equations(options):
    J, J3, m, length, spin, tilt = 0.1, 0.06, 1.5, 0.5, 40.0, 0.7
    top = heavy_body([J, J, J3], tilt, (0.0, 0.0, spin), length, **options)
    A = J + m * length**2  # about the foot
    p_phi, p_psi = J3 * spin, J3 * spin * np.cos(tilt)  # conserved momenta of spin and precession

    def reduced(t, y):
        theta, rate, _ = y
        precession = (p_psi - p_phi * np.cos(theta)) / (A * np.sin(theta) ** 2)
        bend = A * precession**2 * np.sin(theta) * np.cos(theta) - p_phi * precession * np.sin(theta)
        return [rate, (bend + m * 9.81 * length * np.sin(theta)) / A, precession]

    exact = solve_ivp(reduced, (0, 1.5), [tilt, 0, 0], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    E = top.energy()
    advance(top, 0.0, 1.5, steps=15)
    axis = rotation_matrix(top.state_of("top")[3:7])[:, 2]
    assert np.arccos(axis[2]) == pytest.approx(exact[0], abs=1e-6)
    precession = np.arctan2(axis[0], -axis[1])
    assert np.sin(precession - exact[2]) == pytest.approx(0, abs=2e-6)
    assert np.cos(precession - exact[2]) > 0
    assert top.energy() == pytest.approx(E, abs=1e-6)
    assert top.momentum()[1][2] == pytest.approx(p_psi, abs=1e-7)


def test_spherical_pendulum_against_its_angles():
    J, m, length = 0.05, 1.5, 0.5
    start, turning = 2.0, 3.0  # polar angle from the upward vertical, and its azimuthal rate
    K = np.array([0.0, 0.0, turning])
    T = rotation_matrix([np.cos(start / 2), np.sin(start / 2), 0, 0])
    axis = T[:, 2]
    across = K - (K @ axis) * axis  # no spin about the own axis
    pendulum = heavy_body([J, J, J], start, T.T @ across, length, **TIGHT)
    A = J + m * length**2

    def angles(t, y):
        theta, _, rate, turn = y
        s, c = np.sin(theta), np.cos(theta)
        return [rate, turn, turn**2 * s * c + m * 9.81 * length / A * s, -2 * rate * turn * c / s]

    exact = solve_ivp(angles, (0, 2), [start, 0, 0, turning], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    E, Lz = pendulum.energy(), pendulum.momentum()[1][2]
    advance(pendulum, 0.0, 2.0, steps=20)
    axis = rotation_matrix(pendulum.state_of("top")[3:7])[:, 2]
    assert axis[2] == pytest.approx(np.cos(exact[0]), abs=1e-7)
    assert np.arctan2(axis[0], -axis[1]) == pytest.approx(np.angle(np.exp(1j * exact[1])), abs=1e-6)
    assert pendulum.energy() == pytest.approx(E, abs=1e-8)
    assert pendulum.momentum()[1][2] == pytest.approx(Lz, abs=1e-9)
    assert np.abs(list(pendulum.constraint_residuals().values())).max() < 1e-14


def test_euler_angles_and_parameters_give_the_same_motion():
    ends = []
    for coordinates in ("euler_parameters", "euler_angles"):
        top = heavy_body([0.1, 0.12, 0.06], 0.7, (0.5, 0.2, 20.0), coordinates=coordinates, **TIGHT)
        advance(top, 0.0, 1.0, steps=10)
        z = top.state_of("top")
        ends.append(np.concatenate([z[:3], rotation_matrix(z[3:7]).ravel(), z[7:]]))
    assert ends[0] == pytest.approx(ends[1], abs=1e-7)


@pytest.mark.parametrize(
    "integrator", [{}, {"integrator": "rk4", "internal_step": 1e-3}, {"integrator": "radau", "internal_step": 1e-2}]
)
def test_passing_the_singularity_of_euler_angles_is_reported(integrator):
    model = cs.multibody.MultibodyModel(gravity=(0, 0, 0))
    model.body(
        "disc", 1.0, [0.1, 0.1, 0.1], orientation=[np.cos(0.25), np.sin(0.25), 0, 0], angular_velocity=(-1.0, 0, 0)
    )
    disc = cs.multibody.MultibodySubsystem(model, coordinates="euler_angles", **integrator)
    disc.start(0.0)
    with pytest.raises(
        cs.errors.SubsystemError, match=r"Euler angles of body 'disc' are singular near t = 0\.(49|5|6)"
    ):
        advance(disc, 0.0, 1.0, steps=5)
    through = cs.multibody.MultibodySubsystem(model, **integrator)
    through.start(0.0)
    advance(through, 0.0, 1.0, steps=5)  # Euler parameters do not mind
    assert through.state_of("disc")[3:7] == pytest.approx([np.cos(0.25), -np.sin(0.25), 0, 0], abs=1e-8)


def test_a_start_at_the_singularity_is_refused():
    model = cs.multibody.MultibodyModel()
    model.body("disc", 1.0, [0.1, 0.1, 0.1])
    with pytest.raises(cs.errors.SetupError, match=r"body 'disc': Euler angles .* singular at the initial orientation"):
        cs.multibody.MultibodySubsystem(model, coordinates="euler_angles")
