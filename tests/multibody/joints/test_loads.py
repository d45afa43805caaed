"""Loads and conditions of the basic joints: virtual power, potentials, net force and moment, derivatives."""

import numpy as np
import pytest

from cosolve.multibody.equations.coupling_conditions import coupling_conditions
from cosolve.multibody.equations.coupling_loads import (
    ATPOINT,
    FORCE,
    INPLANE,
    LAW,
    PERPENDICULAR,
    STABILISED,
    VECTOR,
    coupling_loads,
    part_constants,
)
from cosolve.multibody.equations.joint_math import (
    euler_angle_rates,
    euler_angle_rotation,
    parameter_rates,
    rotation_matrix,
)

BASIC = {"atpoint": ATPOINT, "inplane": INPLANE, "perpendicular": PERPENDICULAR}


def motion(rng):
    z = rng.normal(size=13)
    z[3:7] /= np.linalg.norm(z[3:7])
    return z


def part(rng, code, c=0.0, d=0.0):
    points, directions = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    return part_constants(code, *points, *directions, c, d)


def constants(side, *parts):
    return np.concatenate([[len(parts), side, 1, 1, 1, 1], *parts])


def loads(kind, side, parts, multipliers, other, own):
    out = np.empty(12)
    coupling_loads(kind, constants(side, *parts), np.concatenate([multipliers, other]), own, out)
    return out


def levels(parts, z_i, z_j, a_i=None, a_j=None):
    n = sum(3 if p[0] == ATPOINT else 1 for p in parts)
    g, J = np.empty((3, n)), np.empty((3, n, 38))
    full = [np.concatenate([z, np.zeros(6) if a is None else a]) for z, a in ((z_i, a_i), (z_j, a_j))]
    coupling_conditions(constants(1, *parts), *full, g, J)
    return g, J


@pytest.mark.covers("LU-13")
@pytest.mark.parametrize("code", BASIC.values(), ids=BASIC)
def test_virtual_power_of_the_loads_is_multiplier_times_rate(code):
    rng = np.random.default_rng(1)
    for _ in range(50):
        p, z_i, z_j = part(rng, code), motion(rng), motion(rng)
        lam = rng.normal(size=3 if code == ATPOINT else 1)
        on_i, on_j = loads(FORCE, 1, [p], lam, z_j, z_i), loads(FORCE, -1, [p], lam, z_i, z_j)
        power = on_i[:6] @ z_i[7:] + on_j[:6] @ z_j[7:]
        rate = lam @ levels([p], z_i, z_j)[0][1]
        scale = 1 + np.abs(on_i[:6] * z_i[7:]).sum() + np.abs(on_j[:6] * z_j[7:]).sum()
        assert abs(power - rate) < 1e-14 * scale


@pytest.mark.covers("SL-13")
@pytest.mark.parametrize("code", BASIC.values(), ids=BASIC)
def test_undamped_law_is_minus_the_gradient_of_its_potential(code):
    """V = g^2 c / 2; a small turn dtheta of the body changes q by P^T dtheta / 4."""
    rng = np.random.default_rng(2)
    c = 3.7

    def potential(p, z_i, z_j):
        g = levels([p], z_i, z_j)[0][0]
        return 0.5 * c * g @ g

    for _ in range(5):
        p, z_i, z_j = part(rng, code, c), motion(rng), motion(rng)
        for side in (1, -1):
            own, other = (z_i, z_j) if side > 0 else (z_j, z_i)
            got = loads(LAW, side, [p], [], other, own)[:6]
            for k in range(6):
                ahead, behind = own.copy(), own.copy()
                for z, h in ((ahead, 1e-5), (behind, -1e-5)):
                    if k < 3:
                        z[k] += h
                    else:
                        z[3:7] += parameter_rates(own[3:7])[k - 3] / 4 * h
                pair = [(z, other) if side > 0 else (other, z) for z in (ahead, behind)]
                slope = (potential(p, *pair[0]) - potential(p, *pair[1])) / 2e-5
                assert got[k] == pytest.approx(-slope, abs=1e-7)


@pytest.mark.covers("SL-13")
@pytest.mark.parametrize("code", BASIC.values(), ids=BASIC)
def test_net_force_and_net_moment_about_the_origin(code):
    rng = np.random.default_rng(3)
    for _ in range(20):
        p, z_i, z_j = part(rng, code, 2.0, 0.3), motion(rng), motion(rng)
        on = {1: loads(LAW, 1, [p], [], z_j, z_i), -1: loads(LAW, -1, [p], [], z_i, z_j)}
        force, moment = np.zeros(3), np.zeros(3)
        for side, z in ((1, z_i), (-1, z_j)):
            force += on[side][:3]
            moment += np.cross(z[:3], on[side][:3]) + rotation_matrix(z[3:7]) @ on[side][3:6]
        # an atpoint law with damping acts in two points: its couple d x lam remains (docs/validation/schweizer-lu.md)
        d = levels([p], z_i, z_j)[0][0]
        expected = np.cross(d, on[1][:3]) if code == ATPOINT else np.zeros(3)
        np.testing.assert_allclose(force, 0, atol=1e-14)
        np.testing.assert_allclose(moment, expected, atol=1e-12)


@pytest.mark.parametrize("code", BASIC.values(), ids=BASIC)
def test_law_side_equals_force_side_with_the_law_outside(code):
    """F/D and D/D evaluate the law inside: same loads as F/F with lambda = -c g - d g'."""
    rng = np.random.default_rng(4)
    p, z_i, z_j = part(rng, code, 5.0, 0.7), motion(rng), motion(rng)
    g = levels([p], z_i, z_j)[0]
    lam = -5.0 * g[0] - 0.7 * g[1]
    for side, own, other in ((1, z_i, z_j), (-1, z_j, z_i)):
        np.testing.assert_allclose(
            loads(LAW, side, [p], [], other, own), loads(FORCE, side, [p], lam, other, own), atol=1e-13
        )


@pytest.mark.covers("SL-20")
def test_alternative_form_is_the_same_torque_and_opposite_on_both_bodies():
    """App. C with the corrected sign of Eq. 99: the torque vector (a x n) lam replaces orientations."""
    rng = np.random.default_rng(5)
    p, z_i, z_j = part(rng, PERPENDICULAR), motion(rng), motion(rng)
    T_i, T_j = rotation_matrix(z_i[3:7]), rotation_matrix(z_j[3:7])
    torque = np.cross(T_i @ p[7:10], T_j @ p[10:13]) * 0.8
    on_i, on_j = loads(VECTOR, 1, [p], torque, z_j, z_i), loads(VECTOR, -1, [p], torque, z_i, z_j)
    np.testing.assert_allclose(on_i, loads(FORCE, 1, [p], [0.8], z_j, z_i), atol=1e-14)
    np.testing.assert_allclose(on_j, loads(FORCE, -1, [p], [0.8], z_i, z_j), atol=1e-14)
    np.testing.assert_allclose(T_i @ on_i[3:6] + T_j @ on_j[3:6], 0, atol=1e-14)


def test_scaled_torque_has_the_size_of_the_multiplier():
    rng = np.random.default_rng(6)
    p, z_i, z_j = part(rng, PERPENDICULAR), motion(rng), motion(rng)
    p[19] = 1.0
    assert np.linalg.norm(loads(FORCE, 1, [p], [0.8], z_j, z_i)[3:6]) == pytest.approx(0.8, rel=1e-14)


def test_projection_terms_are_the_loads_with_the_other_multiplier():
    rng = np.random.default_rng(7)
    parts = [part(rng, code) for code in BASIC.values()]
    z_i, z_j, lam, mu = motion(rng), motion(rng), rng.normal(size=5), rng.normal(size=5)
    both = loads(STABILISED, 1, parts, np.concatenate([lam, mu]), z_j, z_i)
    np.testing.assert_allclose(both[:6], loads(FORCE, 1, parts, lam, z_j, z_i)[:6], atol=1e-14)
    np.testing.assert_allclose(both[6:], loads(FORCE, 1, parts, mu, z_j, z_i)[:6], atol=1e-14)


@pytest.mark.covers("LU-42")
def test_projection_matrix_of_the_atpoint_joint_has_the_corrected_sign():
    """c_i = c_j = (1, 0, 0): eigenvalues 2, 4, 4; with the printed sign of Omega_c the matrix is singular."""
    p = part_constants(ATPOINT, [1, 0, 0], [1, 0, 0])
    z = np.zeros(13)
    z[3] = 1.0
    J = levels([p], z, z)[1][1]
    corrected, printed = np.zeros((3, 3)), np.zeros((3, 3))
    for k, unit in enumerate(np.eye(3)):
        for matrix, sign in ((corrected, 1.0), (printed, -1.0)):
            for side, columns in ((1, slice(7, 13)), (-1, slice(26, 32))):
                out = loads(STABILISED, side, [p], np.concatenate([np.zeros(3), unit]), z, z)
                matrix[:, k] += J[:, columns] @ np.concatenate([out[6:9], sign * out[9:]])
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(corrected)), [2, 4, 4], atol=1e-14)
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(printed)), [0, 0, 2], atol=1e-14)


@pytest.mark.covers("LU-42")
def test_euler_parameters():
    rng = np.random.default_rng(8)
    q = rng.normal(size=4)
    q /= np.linalg.norm(q)
    P = parameter_rates(q)
    np.testing.assert_allclose(P @ P.T, 4 * np.eye(3), atol=1e-14)
    np.testing.assert_allclose(P @ q, 0, atol=1e-15)
    omega = rng.normal(size=3)
    q_dot, h = P.T @ omega / 4, 1e-6
    T_dot = (rotation_matrix(q + h * q_dot) - rotation_matrix(q - h * q_dot)) / (2 * h)
    W = rotation_matrix(q).T @ T_dot
    np.testing.assert_allclose([W[2, 1], W[0, 2], W[1, 0]], omega, atol=1e-9)


@pytest.mark.covers("LU-41")
def test_euler_angle_rates_in_the_right_order():
    rng = np.random.default_rng(9)
    for _ in range(10):
        angles = rng.uniform([-3, 0.3, -3], [3, 2.8, 3])
        omega, h = rng.normal(size=3), 1e-6
        rates = euler_angle_rates(angles) @ omega
        T_dot = (euler_angle_rotation(angles + h * rates) - euler_angle_rotation(angles - h * rates)) / (2 * h)
        W = euler_angle_rotation(angles).T @ T_dot
        np.testing.assert_allclose([W[2, 1], W[0, 2], W[1, 0]], omega, atol=1e-9)


@pytest.mark.parametrize("code", BASIC.values(), ids=BASIC)
def test_levels_are_time_derivatives_of_each_other(code):
    """Along a motion with given accelerations: central differences of g and g' in time."""
    rng = np.random.default_rng(10)
    p = part(rng, code)
    z, a = [motion(rng), motion(rng)], rng.normal(size=(2, 6))
    h = 1e-5

    def at(t):
        moved = []
        for zk, ak in zip(z, a, strict=True):
            # second order in t is enough for central differences
            w, q = zk[10:], zk[3:7]
            q1 = parameter_rates(q).T @ w / 4
            q2 = parameter_rates(q1).T @ w / 4 + parameter_rates(q).T @ ak[3:] / 4
            x = zk + t * np.concatenate([zk[7:10], q1, ak]) + 0.5 * t * t * np.concatenate([ak[:3], q2, np.zeros(6)])
            moved.append(x)
        return levels([p], *moved)[0]

    now = levels([p], *z, *a)[0]
    ahead, behind = at(h), at(-h)
    np.testing.assert_allclose((ahead[0] - behind[0]) / (2 * h), now[1], atol=1e-8)
    np.testing.assert_allclose((ahead[1] - behind[1]) / (2 * h), now[2], atol=1e-8)


def test_derivatives_of_all_levels_by_all_outputs():
    rng = np.random.default_rng(11)
    parts = [part(rng, code) for code in BASIC.values()]
    y = rng.normal(size=38)  # Euler parameters need not be normalised

    def g(y):
        return levels(parts, y[:13], y[19:32], y[13:19], y[32:])[0]

    J = levels(parts, y[:13], y[19:32], y[13:19], y[32:])[1]
    for k, e in enumerate(np.eye(38) * 1e-6):
        np.testing.assert_allclose((g(y + e) - g(y - e)) / 2e-6, J[:, :, k], atol=1e-7)
