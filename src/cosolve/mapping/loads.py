"""From a field to its nodal loads and back: `f = M t` with the mass matrix `M = int N N^T` of a mesh.

Solvers exchange a distributed load as values at points (a traction in N/m^2, a heat flux) or as what it comes to there
(forces in N). Values are mapped consistently, loads conservatively; these two turn one into the other.
"""

from __future__ import annotations

from typing import Any

from scipy.sparse import csr_array, eye_array

from cosolve.mapping.l2_projection import mortar
from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Mesh
from cosolve.mapping.mesh_checks import check_cells


def field_to_loads(mesh: Mesh) -> FieldMapping:
    """Make the mapping from a field on a mesh to its nodal loads, `f = M t` with the mass matrix `M`.

    Parameters
    ----------
    mesh : Mesh
        The mesh.

    Returns
    -------
    FieldMapping
        From values at points (a traction in N/m^2) to loads (N), whose sum is the integral of the field.

    Examples
    --------
    >>> field_to_loads(Mesh.line([0.0, 1.0, 3.0])).consistent([2.0, 2.0, 2.0])
    array([1., 3., 2.])
    """
    return FieldMapping("field to loads", csr_array(_mass("field_to_loads", mesh)))


def loads_to_field(mesh: Mesh) -> FieldMapping:
    """Make the mapping from nodal loads to the field that has them, the inverse of `field_to_loads`.

    Parameters
    ----------
    mesh : Mesh
        The mesh.

    Returns
    -------
    FieldMapping
        From loads (N) to values at points (N/m^2).

    Examples
    --------
    >>> loads_to_field(Mesh.line([0.0, 1.0, 3.0])).consistent([1.0, 3.0, 2.0]).round(12)
    array([2., 2., 2.])
    """
    mass = _mass("loads_to_field", mesh)
    return FieldMapping("loads to field", csr_array(eye_array(mesh.n_points)), mass=mass)


def _mass(where: str, mesh: Mesh) -> Any:
    check_cells(where, mesh)
    near = 1e-6 * float(mesh.diameters.min())  # a cell meets itself and its neighbours, no other layer of a thin body
    return mortar(mesh, mesh, normals="same", max_distance=near).mass
