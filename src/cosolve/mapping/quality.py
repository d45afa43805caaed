"""How well a mapping will do, point by point and before any run: what a look at two meshes alone can tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import SetupError
from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.mesh import Mesh
from cosolve.mapping.mesh_checks import check_pair
from cosolve.mapping.neighbours import nearest_cells, nearest_points


@dataclass(frozen=True)
class MappingQuality:
    """The quality of a mapping, one number per target point.

    Parameters
    ----------
    method : str
        Name of the method.
    points : ndarray
        The target points.
    distance : ndarray
        Distance from the source.
    row_sums : ndarray
        Row sums of `L`.
    linear : ndarray
        Largest error of the coordinates as fields, relative to their range over the source.
    quadratic : ndarray
        Largest error of their squares, from the middle of the source, likewise.

    Examples
    --------
    >>> import cosolve.mapping as cm
    >>> coarse, fine = cm.Mesh.line([0.0, 1.0, 2.0]), cm.Mesh.line([0.0, 0.5, 1.5, 2.0])
    >>> cm.mapping_quality(cm.barycentric(coarse, fine), coarse, fine).distance
    array([0., 0., 0., 0.])
    """

    method: str
    points: Matrix
    distance: Vector
    row_sums: Vector
    linear: Vector
    quadratic: Vector

    def __str__(self) -> str:
        lines = [f"{self.method}, at {len(self.points)} target points"]
        for name, values in self.columns().items():
            worst = int(np.argmax(values))
            place = ", ".join(f"{x:.4g}" for x in self.points[worst])
            lines.append(
                f"  {name:34}median {np.median(values):8.2e}  largest {values[worst]:8.2e} at point {worst} ({place})"
            )
        return "\n".join(lines)

    def columns(self) -> dict[str, Vector]:
        """Return the four measures by their names.

        Returns
        -------
        dict of str to ndarray
            Distance, `|row sum - 1|`, and errors of linear and quadratic fields; smaller is better.
        """
        return {
            "distance from the source": self.distance,
            "|row sum - 1|": np.abs(self.row_sums - 1.0),
            "error of linear fields": self.linear,
            "error of quadratic fields": self.quadratic,
        }


def mapping_quality(mapping: FieldMapping, source: Mesh, target: Mesh) -> MappingQuality:
    """Measure a mapping at every target point, before any run.

    Parameters
    ----------
    mapping : FieldMapping
        The mapping.
    source : Mesh
        Its source mesh.
    target : Mesh
        Its target mesh.

    Returns
    -------
    MappingQuality
        The measures; `draw_mapping` draws them.

    Examples
    --------
    >>> import cosolve.mapping as cm
    >>> coarse, fine = cm.Mesh.line([0.0, 1.0, 2.0]), cm.Mesh.line([0.0, 0.5, 1.5, 2.0])
    >>> print(mapping_quality(cm.barycentric(coarse, fine), coarse, fine))
    barycentric, at 4 target points
      distance from the source          median 0.00e+00  largest 0.00e+00 at point 0 (0)
      |row sum - 1|                     median 0.00e+00  largest 0.00e+00 at point 0 (0)
      error of linear fields            median 0.00e+00  largest 0.00e+00 at point 0 (0)
      error of quadratic fields         median 1.25e-01  largest 2.50e-01 at point 1 (0.5)
    """
    check_pair("mapping_quality", source, target)
    if (mapping.n_source, mapping.n_target) != (source.n_points, target.n_points):
        raise SetupError(
            f"mapping_quality: {source.name} and {target.name} have {source.n_points} and {target.n_points} points, "
            f"but the mapping is made of {mapping.n_source} and {mapping.n_target}"
        )
    distance = nearest_cells(source, target)[2] if source.n_cells else nearest_points(source, target, 1)[0][:, 0]
    low, high = source.points.min(axis=0), source.points.max(axis=0)
    size = float((high - low).max()) or 1.0
    x, y = ((mesh.points - (low + high) / 2) / size for mesh in (source, target))
    linear = np.abs(mapping.consistent(x) - y).max(axis=1)
    quadratic = np.abs(mapping.consistent(4.0 * x**2) - 4.0 * y**2).max(axis=1)
    sums = mapping.consistent(np.ones(source.n_points))
    return MappingQuality(mapping.method, target.points, distance, sums, linear, quadratic)
