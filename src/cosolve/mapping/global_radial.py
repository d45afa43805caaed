"""Radial basis functions on all source points at once, as one dense matrix (Wendland (2004)).

With the values `u` at the source points the interpolant is a polynomial of degree one plus radial functions. The
polynomial is either fitted first by least squares, with radial functions for what it leaves (`"separate"`),

    L = P Q^+ + A C^-1 (I - Q Q^+),      C_ij = phi(|x_i - x_j|),  A_ij = phi(|y_i - x_j|),  Q, P = (1, x) at x and y,

or part of the interpolation (`"on"`), or left out (`"off"`). Meant for up to some thousand points; `partition_of_unity`
does the same in clusters and has no such limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np
from scipy.sparse import csr_array

from cosolve.basics.arrays import Matrix
from cosolve.errors import SetupError
from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Mesh
from cosolve.mapping.mesh_checks import check_pair

Polynomial = Literal["separate", "on", "off"]
GlobalBasis = Literal[
    "thin_plate", "volume", "multiquadric", "inverse_multiquadric", "gaussian", "wendland_c0", "wendland_c2",
    "wendland_c4", "wendland_c6", "wendland_c8", "compact_thin_plate",
]  # fmt: skip

#: Points of the source that a dense matrix (400 MB) is made of at most.
LARGEST = 7000
_COMPACT: dict[str, Callable[[Matrix], Matrix]] = {
    "wendland_c0": lambda r: (1 - r) ** 2,
    "wendland_c2": lambda r: (1 - r) ** 4 * (4 * r + 1),
    "wendland_c4": lambda r: (1 - r) ** 6 * ((35 * r + 18) * r + 3),
    "wendland_c6": lambda r: (1 - r) ** 8 * (((32 * r + 25) * r + 8) * r + 1),
    "wendland_c8": lambda r: (1 - r) ** 10 * ((((1287 * r + 1350) * r + 630) * r + 150) * r + 15),
    "compact_thin_plate": lambda r: (
        1 - 30 * r**2 - 10 * r**3 + 45 * r**4 - 6 * r**5 - 60 * r**3 * np.log(np.where(r > 0, r, 1.0))
    ),
}


def global_radial_basis(
    source: Mesh,
    target: Mesh,
    *,
    basis: GlobalBasis = "wendland_c6",
    support: float | None = None,
    shape: float | None = None,
    polynomial: Polynomial = "separate",
    axes: Sequence[int] | None = None,
) -> FieldMapping:
    """Map by the radial basis functions of all source points, one dense matrix; for up to 7000 points.

    Parameters
    ----------
    source : Mesh
        Mesh that has the field.
    target : Mesh
        Mesh that gets it.
    basis : str, default "wendland_c6"
        "thin_plate", "volume", "multiquadric", "inverse_multiquadric", "gaussian", "wendland_c0", "wendland_c2",
        "wendland_c4", "wendland_c6", "wendland_c8" or "compact_thin_plate".
    support : float or None, default None
        Radius of the compact bases and of a "gaussian" (which is 1e-9 there, and zero beyond).
    shape : float or None, default None
        Parameter of "multiquadric" (`sqrt(shape^2 + r^2)`), of its inverse, and of a "gaussian" (`exp(-(shape r)^2)`).
    polynomial : {"separate", "on", "off"}, default "separate"
        Linear polynomial: fitted first by least squares, part of the interpolation, or left out.
    axes : sequence of int or None, default None
        Coordinates that count. None: all.

    Returns
    -------
    FieldMapping
        The mapping.

    References
    ----------
    .. [1] H. Wendland, Scattered Data Approximation, Cambridge University Press, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 6)
    >>> mapping = global_radial_basis(Mesh.line(x), Mesh.line([0.3, 0.5]), support=2.0)
    >>> mapping.consistent(2 * x + 1).round(12)         # linear fields are reproduced
    array([1.6, 2. ])
    """
    check_pair("global_radial_basis", source, target)
    if polynomial not in get_args(Polynomial):
        raise SetupError(f"global_radial_basis: polynomial is 'separate', 'on' or 'off', not {polynomial!r}")
    if source.n_points > LARGEST:
        raise SetupError(
            f"global_radial_basis: {source.name} has {source.n_points} points, more than {LARGEST}; use "
            "partition_of_unity or radial_basis"
        )
    phi = radial_function(basis, support, shape)
    chosen = list(range(source.points.shape[1])) if axes is None else list(axes)
    x, y = source.points[:, chosen], target.points[:, chosen]
    centre = x.mean(axis=0)
    C, A = phi(_distances(x, x)), phi(_distances(y, x))
    Q = np.column_stack([np.ones(len(x)), x - centre])
    P = np.column_stack([np.ones(len(y)), y - centre])
    try:
        if polynomial == "off":
            L = np.linalg.solve(C.T, A.T).T
        elif polynomial == "separate":
            pseudo = np.linalg.pinv(Q, rcond=1e-10)
            L = P @ pseudo + np.linalg.solve(C.T, A.T).T @ (np.eye(len(x)) - Q @ pseudo)
        else:
            L = _saddle(C, A, Q, P)
    except np.linalg.LinAlgError:
        raise SetupError(
            f"global_radial_basis: the points of {source.name} give a singular system for the basis {basis!r}; two of "
            "them coincide, or the support is too large"
        ) from None
    return FieldMapping(f"global radial basis ({basis})", csr_array(L))


def radial_function(basis: str, support: float | None, shape: float | None) -> Callable[[Matrix], Matrix]:
    """`phi(r)` of a basis with its radius or parameter.

    >>> float(radial_function("wendland_c2", 2.0, None)(np.array(1.0)))
    0.1875
    """
    if basis not in get_args(GlobalBasis):
        raise SetupError(f"global_radial_basis: basis is one of {', '.join(get_args(GlobalBasis))}, not {basis!r}")
    if basis == "gaussian" and shape is None and support is not None and support > 0:
        cut, steep = support, math.sqrt(-math.log(1e-9)) / support
        return lambda r: np.where(r < cut, np.exp(-((steep * r) ** 2)), 0.0)
    if basis in _COMPACT:
        if support is None or not support > 0:
            raise SetupError(f"global_radial_basis: the basis {basis!r} needs a support above 0, not {support!r}")
        radius, compact = support, _COMPACT[basis]
        return lambda r: np.where(r < radius, compact(np.minimum(r / radius, 1.0)), 0.0)
    if basis == "thin_plate":
        return lambda r: r**2 * np.log(np.where(r > 0, r, 1.0))
    if basis == "volume":
        return np.abs
    if shape is None or not shape > 0:
        raise SetupError(f"global_radial_basis: the basis {basis!r} needs a shape above 0, not {shape!r}")
    s = shape
    if basis == "gaussian":
        return lambda r: np.exp(-((s * r) ** 2))
    if basis == "multiquadric":
        return lambda r: np.sqrt(s**2 + r**2)
    return lambda r: 1.0 / np.sqrt(s**2 + r**2)


def _saddle(C: Matrix, A: Matrix, Q: Matrix, P: Matrix) -> Matrix:
    """The weights with the polynomial inside; directions in which the source has no extent are left out."""
    turn = np.linalg.svd(Q, full_matrices=False)
    kept = turn[1] > 1e-10 * turn[1][0]
    Q, P = Q @ turn[2][kept].T, P @ turn[2][kept].T
    n, m = Q.shape
    whole = np.block([[C, Q], [Q.T, np.zeros((m, m))]])
    weights: Matrix = np.linalg.solve(whole.T, np.concatenate([A, P], axis=1).T).T[:, :n]
    return weights


def _distances(y: Matrix, x: Matrix) -> Matrix:
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(y, x))
