"""Large rigid rotations taken out of the displacements of a field, so that what deforms is left.

A blade that turns and pitches moves by metres and bends by millimetres. With reference positions `x` relative to a
centre on the axis and the rotation `R`, the rigid part of a displacement `u` is `(R - 1) x`, and what is left,
`u - (R - 1) x`, is the elastic part in the axes of space, or `R^T (x + u) - x` in those that turn with the body.
(Sicklinger (2014), Eq. 5.26 takes `R u` for the rigid part, which does not vanish for a body that only turns.)
Rotations follow each other from right to left: pitch first, then the rotor, is `R_rotor R_pitch`.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, doubles
from cosolve.basics.checks import choice
from cosolve.errors import SetupError

#: How far `R^T R` may be from the unit matrix.
_ORTHOGONAL = 1e-9


def elastic_part(
    points: npt.ArrayLike,
    displacements: npt.ArrayLike,
    rotation: Any,
    *,
    centre: npt.ArrayLike = (0.0, 0.0, 0.0),
    axes: Literal["space", "body"] = "space",
) -> Matrix:
    """Subtract a rigid rotation from displacements.

    Parameters
    ----------
    points : array_like
        Shape (n, 3).
    displacements : array_like
        Displacements of the points, shape (n, 3).
    rotation : array_like or scipy.spatial.transform.Rotation
        The rotation, a matrix of shape (3, 3).
    centre : array_like, default (0, 0, 0)
        Centre of the rotation.
    axes : {"space", "body"}, default "space"
        Axes of the result: fixed in space, or turning with the body.

    Returns
    -------
    ndarray
        Shape (n, 3).

    Examples
    --------
    >>> from scipy.spatial.transform import Rotation
    >>> turn = Rotation.from_euler("y", 90, degrees=True) * Rotation.from_euler("x", 30, degrees=True)
    >>> blade = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0]])
    >>> bent = blade + [[0.0, 0.01, 0.0], [0.0, 0.03, 0.0]]          # in the axes of the blade
    >>> moved = turn.apply(bent) - blade
    >>> elastic_part(blade, moved, turn, axes="body").round(12)[:, 1]
    array([0.01, 0.03])
    """
    x, u = _rows("points", points), _rows("displacements", displacements)
    if x.shape != u.shape:
        raise SetupError(f"elastic_part: {len(x)} points, but displacements of {len(u)}")
    choice("elastic_part", "axes", axes, ("space", "body"))
    R = _matrix(rotation)
    arms = x - np.asarray(centre, dtype=np.float64)
    left: Matrix = arms + u - arms @ R.T
    return left if axes == "space" else left @ R


def rigid_part(points: npt.ArrayLike, rotation: Any, *, centre: npt.ArrayLike = (0.0, 0.0, 0.0)) -> Matrix:
    """Compute the displacements of points that turn about a centre as one body.

    Parameters
    ----------
    points : array_like
        Shape (n, 3).
    rotation : array_like or scipy.spatial.transform.Rotation
        The rotation, a matrix of shape (3, 3).
    centre : array_like, default (0, 0, 0)
        Centre of the rotation.

    Returns
    -------
    ndarray
        Shape (n, 3).

    Examples
    --------
    >>> rigid_part([[1.0, 0.0, 0.0]], [[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    array([[-1., 1., 0.]])
    """
    arms = _rows("points", points) - np.asarray(centre, dtype=np.float64)
    moved: Matrix = arms @ _matrix(rotation).T - arms
    return moved


def _rows(name: str, given: npt.ArrayLike) -> Matrix:
    rows = doubles(given)
    if rows.ndim != 2 or rows.shape[1] != 3 or not np.isfinite(rows).all():
        raise SetupError(f"elastic_part: {name} must be rows of three finite numbers")
    return rows


def _matrix(rotation: Any) -> Matrix:
    as_matrix = getattr(rotation, "as_matrix", None)
    R = doubles(rotation if as_matrix is None else as_matrix())
    off = np.abs(R.T @ R - np.eye(3)).max() if R.shape == (3, 3) else np.inf
    if not off < _ORTHOGONAL or np.linalg.det(R) < 0:
        raise SetupError("elastic_part: rotation must be a rotation matrix of three rows, or a scipy Rotation")
    return R
