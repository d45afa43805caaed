"""Force laws of flexible joints and their derivatives, without a run: numbers in, numbers out."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cosolve.multibody.coupling import laws

C, D = np.array([2.0, 3.0, 5.0, 7.0, 11.0]), np.array([0.2, 0.3, 0.5, 0.7, 1.1])
#: One atpoint part (three forces) and two perpendicular ones (a torque each), the second one per sine of the angle
PARTS = np.zeros((3, 20))
PARTS[0, 13:16], PARTS[0, 16:19] = C[:3], D[:3]
PARTS[1:, 0] = 2.0
PARTS[1:, 13], PARTS[1:, 16] = C[3:], D[3:]
PARTS[1, 7:10], PARTS[1, 10:13] = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
PARTS[2, 7:10], PARTS[2, 10:13] = [0.0, 0.0, 1.0], [0.0, 0.6, 0.8]
PARTS[2, 19] = 1.0


def fitted(law=None, g=None, J=None):
    return SimpleNamespace(
        joint=SimpleNamespace(law=law, name="j"),
        n_force=3,
        count=5,
        constants=np.concatenate([np.zeros(6), PARTS.ravel()]),
        conditions=lambda one, two: (g, J),
    )


def motion(rng):
    """`r, q, v, w` of an end."""
    return [
        rng.normal(size=3),
        np.roll(Rotation.from_quat(rng.normal(size=4)).as_quat(), 1),
        rng.normal(size=3),
        rng.normal(size=3),
    ]


def test_springs_and_dampers_pull_back():
    g, rate = np.random.default_rng(0).normal(size=(2, 5))
    assert laws.multipliers(fitted(), g, rate) == pytest.approx(-C * g - D * rate)
    by_g, by_rate = laws._law_partials(fitted(), g, rate)
    assert by_g == pytest.approx(-np.diag(C))
    assert by_rate == pytest.approx(-np.diag(D))


def test_derivatives_of_a_law_of_ones_own():
    """`F = -A (g + g^3) - B g' |g'|`, each row mixed from all deflections."""
    rng = np.random.default_rng(1)
    A, B = rng.normal(size=(2, 5, 5))
    joint = fitted(law=lambda g, rate: -A @ (g + g**3) - B @ (rate * np.abs(rate)))
    g, rate = 30.0 * rng.normal(size=(2, 5))
    by_g, by_rate = laws._law_partials(joint, g, rate)
    assert by_g == pytest.approx(-A * (1 + 3 * g**2), rel=1e-6)
    assert by_rate == pytest.approx(-2 * B * np.abs(rate), rel=1e-6)


def test_forces_torques_and_their_derivatives_by_the_outputs():
    """The chain rule over deflections and rates; columns of accelerations are left out."""
    rng = np.random.default_rng(2)
    g, J = rng.normal(size=(3, 5)), rng.normal(size=(3, 5, 38))
    ends = [*motion(rng), *motion(rng)]
    force = -C * g[0] - D * g[1]
    slopes = -C[:, None] * J[0] - D[:, None] * J[1]
    columns = np.r_[0:13, 19:32]
    for rows in (slice(0, 3), slice(3, 5)):
        assert laws.force_law(fitted(g=g), rows)(*ends) == pytest.approx(force[rows])
        assert laws.force_law_jacobian(fitted(g=g, J=J), rows)(*ends) == pytest.approx(slopes[rows][:, columns])


def test_torques_become_one_vector():
    """`sum (a x n) Y` in K0, one per length of its product: `a` turns with the first body, `n` with the other."""
    rng = np.random.default_rng(3)
    g = rng.normal(size=(3, 5))
    one, two = motion(rng), motion(rng)
    T, S = (Rotation.from_quat(np.roll(end[1], -1)).as_matrix() for end in (one, two))
    Y = -C[3:] * g[0, 3:] - D[3:] * g[1, 3:]
    first, second = (np.cross(T @ part[7:10], S @ part[10:13]) for part in PARTS[1:])
    expected = Y[0] * first + Y[1] * second / np.linalg.norm(second)
    assert laws.torque_vector_law(fitted(g=g))(*one, *two) == pytest.approx(expected)
