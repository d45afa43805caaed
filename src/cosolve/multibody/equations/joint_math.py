"""Vectors, rotations and orientation parameters for joints, in Python and compiled (Lu (2015), 2.2.1, App. C).

Vectors are tuples of three floats and rotation matrices tuples of nine (row by row), so that compiled loops allocate
nothing. A body's motion `z` is a row of 13 numbers: `r` (3, inertial frame K0), Euler parameters `q` (4), `v` (3, K0)
and `omega` (3, body frame). Orientation parameters are normalised wherever they are turned into a rotation.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cosolve.jit import chosen, formula

Vector: TypeAlias = npt.NDArray[np.float64]
Matrix: TypeAlias = npt.NDArray[np.float64]
Triple: TypeAlias = tuple[float, float, float]
Four: TypeAlias = tuple[float, float, float, float]
Eight: TypeAlias = tuple[float, float, float, float, float, float, float, float]
Nine: TypeAlias = tuple[float, float, float, float, float, float, float, float, float]


@formula
def triple(x: Vector, start: int) -> Triple:
    """Three consecutive entries of an array.

    >>> np.array(triple(np.arange(5.0), 1))
    array([1., 2., 3.])
    """
    return (x[start], x[start + 1], x[start + 2])


@formula
def cross(a: Triple, b: Triple) -> Triple:
    """`a x b`.

    >>> cross((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    (0.0, 0.0, 1.0)
    """
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@formula
def dot(a: Triple, b: Triple) -> float:
    """`a . b`.

    >>> dot((1.0, 2.0, 3.0), (1.0, 0.0, 1.0))
    4.0
    """
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@formula
def plus(a: Triple, b: Triple) -> Triple:
    """`a + b`.

    >>> plus((1.0, 2.0, 3.0), (1.0, 0.0, 1.0))
    (2.0, 2.0, 4.0)
    """
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@formula
def minus(a: Triple, b: Triple) -> Triple:
    """`a - b`.

    >>> minus((1.0, 2.0, 3.0), (1.0, 0.0, 1.0))
    (0.0, 2.0, 2.0)
    """
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@formula
def times(factor: float, a: Triple) -> Triple:
    """`factor * a`.

    >>> times(2.0, (1.0, 2.0, 3.0))
    (2.0, 4.0, 6.0)
    """
    return (factor * a[0], factor * a[1], factor * a[2])


@formula
def rotation(q: Vector, start: int) -> Nine:
    """`T_0q` of the Euler parameters at `q[start]`, normalised: body coordinates to K0; unknown (all zero): identity.

    >>> np.array(rotation(np.array([2.0, 0.0, 0.0, 0.0]), 0))
    array([1., 0., 0., 0., 1., 0., 0., 0., 1.])
    """
    a, b, c, d = q[start], q[start + 1], q[start + 2], q[start + 3]
    size = a * a + b * b + c * c + d * d
    known = size > 0.0
    s = chosen(known, 2.0 / chosen(known, size, 1.0), 0.0)
    return (
        1.0 - s * (c * c + d * d),
        s * (b * c - a * d),
        s * (b * d + a * c),
        s * (b * c + a * d),
        1.0 - s * (b * b + d * d),
        s * (c * d - a * b),
        s * (b * d - a * c),
        s * (c * d + a * b),
        1.0 - s * (b * b + c * c),
    )


@formula
def to_space(T: Nine, a: Triple) -> Triple:
    """`T a`: body coordinates to K0.

    >>> to_space((0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
    (0.0, 1.0, 0.0)
    """
    return (
        T[0] * a[0] + T[1] * a[1] + T[2] * a[2],
        T[3] * a[0] + T[4] * a[1] + T[5] * a[2],
        T[6] * a[0] + T[7] * a[1] + T[8] * a[2],
    )


@formula
def to_body(T: Nine, a: Triple) -> Triple:
    """`T^T a`: K0 to body coordinates.

    >>> to_body((0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0))
    (1.0, 0.0, 0.0)
    """
    return (
        T[0] * a[0] + T[3] * a[1] + T[6] * a[2],
        T[1] * a[0] + T[4] * a[1] + T[7] * a[2],
        T[2] * a[0] + T[5] * a[1] + T[8] * a[2],
    )


@formula
def parameter_rate(q: Vector, start: int, w: Triple) -> Four:
    """`q' = P^T w / 4` of the Euler parameters at `q[start]` for the body-frame angular velocity `w`.

    >>> np.array(parameter_rate(np.array([1.0, 0.0, 0.0, 0.0]), 0, (2.0, 4.0, 6.0)))[1:]
    array([1., 2., 3.])
    """
    a, b, c, d = q[start], q[start + 1], q[start + 2], q[start + 3]
    return (
        0.5 * (-b * w[0] - c * w[1] - d * w[2]),
        0.5 * (a * w[0] - d * w[1] + c * w[2]),
        0.5 * (d * w[0] + a * w[1] - b * w[2]),
        0.5 * (-c * w[0] + b * w[1] + a * w[2]),
    )


def rotation_matrix(q: npt.ArrayLike) -> Matrix:
    """`T_0q` as a 3 x 3 array.

    >>> rotation_matrix([0.5, 0.5, 0.5, 0.5]).round(12) @ [1, 0, 0]
    array([0., 1., 0.])
    """
    return np.array(rotation(np.asarray(q, dtype=np.float64).tolist(), 0)).reshape(3, 3)


def parameter_rates(q: npt.ArrayLike) -> Matrix:
    """`P(q)` with `omega = P q'` and `q' = P^T omega / 4` (3 x 4; App. C).

    >>> parameter_rates([1.0, 0.0, 0.0, 0.0])
    array([[-0.,  2.,  0., -0.],
           [-0., -0.,  2.,  0.],
           [-0.,  0., -0.,  2.]])
    """
    a, b, c, d = np.asarray(q, dtype=np.float64)
    return 2.0 * np.array([[-b, a, d, -c], [-c, -d, a, b], [-d, c, -b, a]])


def euler_angle_rotation(angles: npt.ArrayLike) -> Matrix:
    """`T_0q = R_z(psi) R_x(theta) R_z(phi)` of the z-x-z angles `(psi, theta, phi)` (Eq. 51).

    >>> euler_angle_rotation([0.0, np.pi / 2, 0.0]).round(12) @ [0, 1, 0]
    array([0., 0., 1.])
    """
    psi, theta, phi = np.asarray(angles, dtype=np.float64)

    def about_z(angle: float) -> Matrix:
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])

    c, s = np.cos(theta), np.sin(theta)
    about_x = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    turned: Matrix = about_z(psi) @ about_x @ about_z(phi)
    return turned


def euler_angle_rates(angles: npt.ArrayLike) -> Matrix:
    """`B` with `(psi, theta, phi)' = B omega`, Eq. 51 with its rows in the right order; singular at `sin theta = 0`.

    >>> euler_angle_rates([0.3, np.pi / 2, 0.0]).round(12)
    array([[ 0.,  1.,  0.],
           [ 1., -0.,  0.],
           [-0., -0.,  1.]])
    """
    _, theta, phi = np.asarray(angles, dtype=np.float64)
    s, c = np.sin(phi), np.cos(phi)
    return np.array(
        [
            [s / np.sin(theta), c / np.sin(theta), 0.0],
            [c, -s, 0.0],
            [-s / np.tan(theta), -c / np.tan(theta), 1.0],
        ]
    )
