"""Plane four-node elements with large strains and lumped masses, for explicit dynamics of soft solids.

The mesh is made once; a right-hand side calls `foam_forces` for the forces of the nodes, adds loads and contact, and
divides by the masses. Nodes at which the motion is given simply get no acceleration: nothing has to be known about the
acceleration of a boundary, only its place and its speed.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from examples.elements.jit import Array, compiled

#: Corners of the square that all elements are images of.
_CORNERS = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])


def block_mesh(width: float, height: float, elements: tuple[int, int]) -> tuple[Array, Array]:
    """Make a rectangular mesh of four-node elements, with `x = 0` in its middle and `y = 0` at its base.

    Parameters
    ----------
    width : float
        Width in m.
    height : float
        Height in m.
    elements : tuple of (int, int)
        Number of elements along width and height.

    Returns
    -------
    tuple of (ndarray, ndarray)
        Positions of the nodes, in rows from the base up, and the corners of the elements.

    Examples
    --------
    >>> nodes, corners = block_mesh(2.0, 1.0, (2, 1))
    >>> nodes.tolist()
    [[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]]
    >>> corners.tolist()
    [[0, 1, 4, 3], [1, 2, 5, 4]]
    """
    nx, ny = elements
    x, y = np.meshgrid(np.linspace(-width / 2, width / 2, nx + 1), np.linspace(0, height, ny + 1))
    first = (np.arange(nx) + (nx + 1) * np.arange(ny)[:, np.newaxis]).ravel()
    corners = np.column_stack([first, first + 1, first + nx + 2, first + nx + 1])
    return np.column_stack([x.ravel(), y.ravel()]), corners


def shape_slopes(nodes: Array, corners: Array, depth: float = 1.0) -> tuple[Array, Array]:
    """Compute derivatives of the shape functions and volumes at the 2 x 2 integration points.

    Parameters
    ----------
    nodes : ndarray
        Positions of the nodes without strain in m.
    corners : ndarray of int
        Corners of the elements.
    depth : float, default 1.0
        Thickness in m.

    Returns
    -------
    tuple of (ndarray, ndarray)
        Derivatives, shape (elements, points, corners, 2), and volumes, shape (elements, points).

    Examples
    --------
    >>> slopes, volumes = shape_slopes(*block_mesh(2.0, 1.0, (2, 1)), depth=0.5)
    >>> round(float(volumes.sum()), 12), np.abs(slopes.sum(axis=2)).max() < 1e-15      # a shift is no strain
    (1.0, np.True_)
    """
    found, volumes = np.empty((len(corners), 4, 4, 2)), np.empty((len(corners), 4))
    for k, (s, t) in enumerate(_CORNERS / sqrt(3)):
        local = 0.25 * np.column_stack(
            [_CORNERS[:, 0] * (1 + _CORNERS[:, 1] * t), _CORNERS[:, 1] * (1 + _CORNERS[:, 0] * s)]
        )
        for e, corner in enumerate(corners):
            J = nodes[corner].T @ local
            found[e, k] = local @ np.linalg.inv(J)
            volumes[e, k] = np.linalg.det(J) * depth
    return found, volumes


def lumped_masses(corners: Array, volumes: Array, density: float) -> Array:
    """Compute the masses of the nodes: a quarter of each element at each corner.

    Parameters
    ----------
    corners : ndarray of int
        Corners of the elements.
    volumes : ndarray
        Volumes from `shape_slopes`.
    density : float
        Density in kg/m^3.

    Returns
    -------
    ndarray
        One mass per node in kg.

    Examples
    --------
    >>> nodes, corners = block_mesh(2.0, 1.0, (2, 1))
    >>> lumped_masses(corners, shape_slopes(nodes, corners)[1], 4.0).round(12).tolist()
    [1.0, 2.0, 1.0, 1.0, 2.0, 1.0]
    """
    found = np.zeros(int(corners.max()) + 1)
    for e, corner in enumerate(corners):
        found[corner] += 0.25 * density * volumes[e].sum()
    return found


@compiled
def foam_forces(
    u: Array, v: Array, corners: Array, slopes: Array, volumes: Array, shear: float, viscosity: float
) -> Array:
    """Compute the forces of a foam on its nodes.

    Parameters
    ----------
    u : ndarray
        Displacements of the nodes, shape (nodes, 2), in m.
    v : ndarray
        Their velocities in m/s.
    corners : ndarray of int
        Corners of the elements.
    slopes : ndarray
        Derivatives from `shape_slopes`.
    volumes : ndarray
        Volumes from `shape_slopes`.
    shear : float
        Shear modulus `mu` in Pa; for small strains Young's modulus is `2 mu`.
    viscosity : float
        Viscosity of the stress `viscosity * E'` in Pa s.

    Returns
    -------
    ndarray
        Forces, shape (nodes, 2), in N.

    Raises
    ------
    ValueError
        If an element is turned inside out.

    Notes
    -----
    Total Lagrangian, plane strain, no lateral contraction: the energy is `W = sum 2 mu / a^2 (l^a - 1 - a ln l)` over
    the principal stretches with `a = 8`, the stress `S = mu/4 (C^3 - C^-1)`.

    Examples
    --------
    >>> nodes, corners = block_mesh(1.0, 1.0, (1, 1))
    >>> stretched = np.column_stack([np.zeros(4), 1e-6 * nodes[:, 1]])
    >>> F = foam_forces(stretched, np.zeros((4, 2)), corners, *shape_slopes(nodes, corners), 0.5, 0.0)
    >>> float(round(-F[2:, 1].sum() * 1e6, 4))                                   # stress over strain
    1.0
    """
    force = np.zeros(u.shape)
    quarter = 0.25 * shear
    for e in range(len(corners)):
        for k in range(4):
            f00, f01, f10, f11 = 1.0, 0.0, 0.0, 1.0
            g00, g01, g10, g11 = 0.0, 0.0, 0.0, 0.0
            for a in range(4):
                i = corners[e, a]
                dx, dy = slopes[e, k, a, 0], slopes[e, k, a, 1]
                f00 += u[i, 0] * dx
                f01 += u[i, 0] * dy
                f10 += u[i, 1] * dx
                f11 += u[i, 1] * dy
                g00 += v[i, 0] * dx
                g01 += v[i, 0] * dy
                g10 += v[i, 1] * dx
                g11 += v[i, 1] * dy
            if not f00 * f11 - f01 * f10 > 0.0:
                raise ValueError(
                    "an element is turned inside out: strains have grown without bound; take shorter internal steps, "
                    "or shorter macro steps"
                )
            c00, c11, c01 = f00 * f00 + f10 * f10, f01 * f01 + f11 * f11, f00 * f01 + f10 * f11
            det = c00 * c11 - c01 * c01
            # C^2 and C^3; the inverse of C
            d00, d11, d01 = c00 * c00 + c01 * c01, c11 * c11 + c01 * c01, c01 * (c00 + c11)
            t00, t11, t01 = d00 * c00 + d01 * c01, d11 * c11 + d01 * c01, d00 * c01 + d01 * c11
            s00 = quarter * (t00 - c11 / det) + viscosity * (f00 * g00 + f10 * g10)
            s11 = quarter * (t11 - c00 / det) + viscosity * (f01 * g01 + f11 * g11)
            s01 = quarter * (t01 + c01 / det)
            s01 += viscosity * 0.5 * (f00 * g01 + f10 * g11 + g00 * f01 + g10 * f11)
            p00, p01 = f00 * s00 + f01 * s01, f00 * s01 + f01 * s11
            p10, p11 = f10 * s00 + f11 * s01, f10 * s01 + f11 * s11
            for a in range(4):
                i = corners[e, a]
                dx, dy = slopes[e, k, a, 0] * volumes[e, k], slopes[e, k, a, 1] * volumes[e, k]
                force[i, 0] -= p00 * dx + p01 * dy
                force[i, 1] -= p10 * dx + p11 * dy
    return force
