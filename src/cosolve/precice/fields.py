"""Mappings of a configuration file as operators between the meshes of participants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.error_location import complaints_about
from cosolve.errors import SetupError
from cosolve.mapping import FieldMapping, Mesh
from cosolve.mapping.global_radial import LARGEST, global_radial_basis
from cosolve.mapping.nearest import NearestGradient, ScaledToIntegral, point_shares
from cosolve.mapping.partition import partition_of_unity
from cosolve.mapping.projection import linear_in_tetrahedra, nearest_projection, tetrahedron_shares
from cosolve.precice.config import Configuration, MappingTag

#: What turns values (and, where it is used, their gradient) on one mesh into values on another.
Field = Callable[[Vector, Any], Vector]

_BASES = {
    "thin-plate-splines": "thin_plate",
    "volume-splines": "volume",
    "multiquadrics": "multiquadric",
    "inverse-multiquadrics": "inverse_multiquadric",
    "gaussian": "gaussian",
    "compact-tps-c2": "compact_thin_plate",
    **{f"compact-polynomial-c{k}": f"wendland_c{k}" for k in (0, 2, 4, 6, 8)},
}


@dataclass
class Geometry:
    """The points of a mesh, and cells by kind."""

    name: str
    points: Matrix
    cells: dict[str, Any]

    def mesh(self, kind: str = "") -> Mesh:
        """The points with the cells of one kind, or alone."""
        if not len(self.points):
            raise SetupError(f"mesh '{self.name}' has no points, so nothing can be mapped from it or to it")
        if kind and len(self.cells[kind]):
            return Mesh(self.points, name=self.name, **{f"{kind}s": self.cells[kind]})
        return Mesh(self.points, name=self.name)

    def celled(self) -> list[Mesh]:
        """One mesh for each kind of cells that there is, surfaces first."""
        return [self.mesh(kind) for kind in ("triangle", "line") if len(self.cells[kind])] or [self.mesh()]

    def part(self, points: Any) -> Geometry:
        """Some of the points, without cells."""
        return Geometry(self.name, self.points[points], {kind: cells[:0] for kind, cells in self.cells.items()})


def geometry(name: str, points: Matrix, cells: dict[str, Any]) -> Geometry:
    """The mesh that a participant provides."""
    return Geometry(name, points, cells)


def needs_cells(configuration: Configuration, mesh: str) -> bool:
    """True where a mapping, a watch or a scaling makes use of the cells of a mesh."""
    for participant in configuration.participants.values():
        for tag in participant.mappings:
            conservative = tag.constraint == "conservative"
            if tag.kind in ("nearest-projection", "linear-cell-interpolation") and mesh == (
                tag.target if conservative else tag.source
            ):
                return True
            if tag.constraint.startswith("scaled") and mesh in (tag.source, tag.target):
                return True
        if any(watch.mesh == mesh for watch in participant.watches):
            return True
        if any(action.mesh == mesh and action.kind.endswith("area") for action in participant.actions):
            return True
    return False


def mapped_field(tag: MappingTag, source: Geometry, target: Geometry, file: str) -> Field:
    """The operator of a mapping tag."""
    with complaints_about(f"{file}, line {tag.line}: <mapping:{tag.kind}>"):
        return _mapped_field(tag, source, target)


def _mapped_field(tag: MappingTag, source: Geometry, target: Geometry) -> Field:
    if tag.kind == "nearest-neighbor-gradient":
        steep = NearestGradient(source.mesh(), target.mesh())

        def carried(values: Vector, gradient: Any) -> Vector:
            if gradient is None:  # received data come without one
                gradient = np.zeros((len(source.points), source.points.shape[1], len(values) // len(source.points)))
            return steep.consistent(values, gradient)

        return carried
    if tag.constraint == "conservative":
        backward = _operator(tag, target, source)
        return lambda values, _: backward.conservative(values)
    forward = _operator(tag, source, target)
    if tag.constraint == "consistent":
        nearest = _only_copies(forward)
        if nearest is not None:
            return _copied(nearest, len(source.points))
        return lambda values, _: forward.consistent(values)
    volume = tag.constraint.endswith("volume")
    scaled = ScaledToIntegral(forward, shares(source, volume), shares(target, volume))
    return lambda values, _: scaled.consistent(values)


def _only_copies(mapping: FieldMapping) -> Any:
    """The source point of each target point, where a mapping takes values as they are."""
    matrix = mapping.matrix
    alone = mapping.mass is None and mapping.scale is None and (np.diff(matrix.indptr) == 1).all()
    return matrix.indices.copy() if alone and (matrix.data == 1.0).all() else None


def _copied(rows: Any, points: int) -> Field:
    if np.array_equal(rows, np.arange(points)):  # the same points in the same order
        return lambda values, _: values

    def copy(values: Vector, _: Any) -> Vector:
        found: Vector = values[rows] if len(values) == points else values.reshape(points, -1)[rows].ravel()
        return found

    return copy


def shares(of: Geometry, volume: bool) -> Vector:
    """The part of the surface (or volume) that belongs to each point."""
    dims = of.points.shape[1]
    if volume and dims == 3:
        found = tetrahedron_shares(of.points, of.cells["tetrahedron"])
    else:
        found = point_shares(of.mesh("triangle" if (dims == 3) != volume else "line"))
    if not found.any():
        raise SetupError(f"mesh '{of.name}' has no cells to integrate over; set them at the participant")
    return found


def _operator(tag: MappingTag, source: Geometry, target: Geometry) -> FieldMapping:
    """The consistent operator."""
    if tag.kind == "nearest-neighbor":
        return nearest_projection([source.mesh()], target.mesh())
    if tag.kind == "nearest-projection":
        return nearest_projection(source.celled(), target.mesh())
    if tag.kind == "linear-cell-interpolation":
        if len(source.cells["tetrahedron"]):
            return linear_in_tetrahedra(source.mesh(), source.cells["tetrahedron"], target.mesh())
        return nearest_projection(source.celled(), target.mesh())
    alive = [axis for axis in range(source.points.shape[1]) if not tag.options[f"{'xyz'[axis]}-dead"]]
    given: dict[str, Any] = {
        "basis": _BASES[tag.basis],
        "support": tag.basis_options.get("support-radius"),
        "shape": tag.basis_options.get("shape-parameter"),
        "polynomial": tag.options["polynomial"],
        "axes": alive,
    }
    clusters = tag.kind == "rbf-pum-direct"
    if not clusters and (tag.kind != "rbf" or len(source.points) <= LARGEST):
        return global_radial_basis(source.mesh(), target.mesh(), **given)
    if clusters:
        given |= {"per_cluster": max(5, tag.options["vertices-per-cluster"])}
        given |= {"overlap": tag.options["relative-overlap"]}
    apart = float(np.ptp(np.concatenate([source.points, target.points]), axis=0).sum()) or 1.0  # any distance will do
    return partition_of_unity(source.mesh(), target.mesh(), **given, max_distance=apart)


class JustInTime:
    """A mapping between a received mesh and points that are named when it is used; the last operator is kept."""

    def __init__(self, tag: MappingTag, mesh: Geometry) -> None:
        self.tag, self.mesh = tag, mesh
        self._made: dict[str, tuple[bytes, FieldMapping]] = {}

    def values(self, points: Matrix, field: Matrix) -> Vector:
        """The field of the mesh at the points."""
        return self._operator(points).consistent(field.ravel())

    def loads(self, points: Matrix, values: Matrix) -> Vector:
        """Loads at the points, on the mesh."""
        return self._operator(points).conservative(values.ravel())

    def _operator(self, points: Matrix) -> FieldMapping:
        fingerprint = points.tobytes()
        kept = self._made.get("last")
        if kept is None or kept[0] != fingerprint:
            nowhere = {kind: cells[:0] for kind, cells in self.mesh.cells.items()}
            kept = fingerprint, _operator(self.tag, self.mesh, Geometry("points on the spot", points, nowhere))
            self._made["last"] = kept
        return kept[1]
