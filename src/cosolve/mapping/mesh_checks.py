"""Checks that several mappings share: meshes that suit the method and lie at the same place."""

from __future__ import annotations

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import positive
from cosolve.errors import SetupError
from cosolve.mapping.mesh import Mesh
from cosolve.mapping.neighbours import ORIENTATIONS, nearest_points


def check_pair(where: str, source: Mesh, target: Mesh) -> None:
    """Refuse what is no mesh, and meshes in spaces of different dimension."""
    for role, mesh in (("source", source), ("target", target)):
        if not isinstance(mesh, Mesh):
            raise SetupError(
                f"{where}: the {role} is a {type(mesh).__name__}, not a Mesh; make one of its points and cells"
            )
    if source.points.shape[1] != target.points.shape[1]:
        raise SetupError(
            f"{where}: {source.name} lies in {source.points.shape[1]} dimensions and {target.name} in "
            f"{target.points.shape[1]}; give both the same number of coordinates"
        )


def check_cells(where: str, mesh: Mesh) -> None:
    """Refuse a cloud of points where cells are needed."""
    if not mesh.n_cells:
        raise SetupError(
            f"{where}: {mesh.name} has no cells; give lines, triangles or quadrilaterals, or use nearest_neighbour or "
            "radial_basis"
        )


def check_limit(where: str, max_distance: float | None) -> None:
    """Refuse a distance that is none."""
    if max_distance is not None:
        positive(where, "max_distance", max_distance, " or None")


def check_normals(where: str, target: Mesh, normals: str) -> None:
    """Refuse an orientation that is none, and one that points alone cannot have."""
    if normals not in ORIENTATIONS:
        raise SetupError(f"{where}: normals is one of {', '.join(ORIENTATIONS)}, not {normals!r}")
    if normals != "any" and not target.n_cells:
        raise SetupError(f"{where}: {target.name} has no cells, so that its points face nowhere; leave normals='any'")


def check_faced(where: str, source: Mesh, target: Mesh, distances: Vector, normals: str) -> None:
    """Refuse target points that no cell of the source faces."""
    alone = np.flatnonzero(np.isinf(distances))
    if len(alone):
        raise SetupError(
            f"{where}: no cell of {source.name} has the {normals} orientation as those at point {alone[0]} of "
            f"{target.name} ({len(alone)} such points); is one of the meshes turned inside out? normals='any' takes all"
        )


def check_distances(
    where: str, source: Mesh, target: Mesh, distances: Vector, max_distance: float | None, typical: float
) -> None:
    """Refuse targets too far from the source: any beyond `max_distance`; without one, all beyond `typical`."""
    if max_distance is None:
        if distances.min() > typical:
            raise SetupError(
                f"{where}: {source.name} and {target.name} do not overlap; the nearest points are "
                f"{distances.min():.3g} apart, more than an element ({typical:.3g}); "
                "check units and positions, or give max_distance"
            )
        return
    far = np.flatnonzero(distances > max_distance)
    if len(far):
        worst = int(np.argmax(distances))
        raise SetupError(
            f"{where}: {len(far)} of {target.n_points} points of {target.name} are further than {max_distance:g} from "
            f"{source.name} (point {worst}: {distances[worst]:.3g}); check the meshes or raise max_distance"
        )


def element_size(mesh: Mesh) -> float:
    """The largest cell, or in a cloud the largest distance of a point from its nearest neighbour.

    >>> element_size(Mesh([[0.0], [1.0], [3.0]]))
    2.0
    """
    if mesh.n_cells:
        return float(mesh.diameters.max())
    if mesh.n_points == 1:
        return float("inf")
    return float(nearest_points(mesh, mesh, k=2)[0][:, 1].max())
