"""Checks of what users give for bodies, markers and force elements; every refusal is one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.errors import SetupError
from cosolve.multibody.equations.kinematics import parameters_of
from cosolve.multibody.model.arrays import Matrix, Vector


def numbers(where: str, what: str, value: npt.ArrayLike, *shapes: tuple[int, ...]) -> Vector:
    """`value` as finite doubles of one of the given shapes, otherwise a sentence that names `where` and `what`.

    >>> numbers("body 'rod'", "velocity", [1, 2, 3], (3,))
    array([1., 2., 3.])
    """
    expected = " or ".join("x".join(str(n) for n in shape) if shape else "one" for shape in shapes)
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise SetupError(f"{where}: {what} must be {expected} numbers, not {value!r}") from None
    if array.shape not in shapes:
        raise SetupError(f"{where}: {what} must be {expected} numbers, not an array of shape {array.shape}")
    if not np.isfinite(array).all():
        raise SetupError(f"{where}: {what} holds a NaN or an infinity")
    return array


def inertia_matrix(name: str, mass: Any, inertia: npt.ArrayLike) -> tuple[float, Matrix]:
    """Mass and 3 x 3 inertia of a body; refuses what no body can have.

    >>> inertia_matrix("rod", 2.0, [1.0, 2.0, 2.5])[1].diagonal()
    array([1. , 2. , 2.5])
    """
    where = f"body '{name}'"
    m = float(numbers(where, "mass", mass, ()))
    if m <= 0:
        raise SetupError(f"{where}: the mass must be positive, not {m:g}; drive the body if its motion is prescribed")
    J = numbers(where, "inertia", inertia, (3,), (3, 3))
    if J.ndim == 1:
        J = np.diag(J)
    if not np.allclose(J, J.T, rtol=1e-10, atol=1e-12 * max(float(np.abs(J).max()), 1e-300)):
        raise SetupError(
            f"{where}: the inertia matrix must be symmetric; give moments and products about the same axes"
        )
    J = 0.5 * (J + J.T)
    a, b, c = (float(value) for value in np.linalg.eigvalsh(J))
    if a <= 0 or a < 1e-14 * c:
        raise SetupError(
            f"{where}: the inertia must be positive definite, but its principal moments are {a:g}, {b:g}, {c:g}; "
            "give a thin rod a small moment about its axis instead of zero"
        )
    if a + b < c * (1 - 1e-9):
        raise SetupError(
            f"{where}: no body has the principal moments {a:g}, {b:g}, {c:g}, since the two smaller ones must add up "
            "to at least the largest; check the units and the reference point (the centre of mass)"
        )
    return m, J


def unit_parameters(where: str, orientation: npt.ArrayLike) -> Vector:
    """Euler parameters of length one from four numbers or a rotation matrix.

    >>> unit_parameters("body 'rod'", [[0, -1, 0], [1, 0, 0], [0, 0, 1]]).round(4)
    array([0.7071, 0.    , 0.    , 0.7071])
    """
    value = numbers(where, "orientation", orientation, (4,), (3, 3))
    if value.shape == (4,):
        length = float(np.linalg.norm(value))
        if abs(length - 1) > 1e-6:
            raise SetupError(f"{where}: Euler parameters must have length one, but these have {length:.6g}")
        return value / length
    T = rotation_axes(where, "orientation", value)
    q = np.empty(4)
    parameters_of(tuple(T.ravel()), q, 0)  # type: ignore[arg-type]
    return q / np.linalg.norm(q)


def rotation_axes(where: str, what: str, axes: npt.ArrayLike) -> Matrix:
    """A right-handed orthonormal 3 x 3 matrix.

    >>> rotation_axes("marker 'a'", "axes", np.eye(3))[0]
    array([1., 0., 0.])
    """
    T = numbers(where, what, axes, (3, 3))
    if not np.allclose(T.T @ T, np.eye(3), atol=1e-6) or np.linalg.det(T) < 0:
        raise SetupError(f"{where}: {what} must be a right-handed rotation matrix (orthonormal columns)")
    # the nearest rotation, so that printed digits do not stay as a shear
    U, _, V = np.linalg.svd(T)
    nearest: Matrix = U @ V
    return nearest


def positive(where: str, what: str, value: Any, *, zero: bool = False) -> float:
    """A positive number (or zero where allowed).

    >>> positive("spring 's'", "stiffness", 3)
    3.0
    """
    number = float(numbers(where, what, value, ()))
    if number < 0 or (number == 0 and not zero):
        raise SetupError(f"{where}: {what} must {'not be negative' if zero else 'be positive'}, not {number:g}")
    return number
