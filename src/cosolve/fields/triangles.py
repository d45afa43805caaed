"""Cells as triangles, which is what pictures are made of.

Plane cells are cut between their points, those of second order along their edge points too, so that a curved boundary
and a quadratic field look as they are. Of cells in space only the faces that no other cell has are left: the surface.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

_Table = npt.NDArray[np.int64]

#: Kind of plane cell -> triangles between its points.
_PLANE = {
    "triangle": [[0, 1, 2]],
    "triangle6": [[0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5]],
    "quad": [[0, 1, 2], [0, 2, 3]],
    "quad8": [[0, 4, 7], [4, 1, 5], [5, 2, 6], [6, 3, 7], [4, 5, 7], [5, 6, 7]],
    "quad9": [[0, 4, 8], [4, 1, 8], [1, 5, 8], [5, 2, 8], [2, 6, 8], [6, 3, 8], [3, 7, 8], [7, 0, 8]],
}
#: Kind of cell in space -> the kind of its faces, and their points.
_SPACE = {
    "tetra": ("triangle", [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]),
    "tetra10": ("triangle6", [[0, 2, 1, 6, 5, 4], [0, 1, 3, 4, 8, 7], [1, 2, 3, 5, 9, 8], [2, 0, 3, 6, 7, 9]]),
    "hexahedron": ("quad", [[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6], [3, 0, 4, 7]]),
}
#: Kinds of cells that triangles are made of.
DRAWN = (*_PLANE, *_SPACE)


def triangles(cells: Mapping[str, _Table]) -> tuple[_Table, _Table]:
    """Triangles (rows of three points) and the cell that each belongs to; lines have none.

    >>> triangles({"triangle6": np.arange(6)[np.newaxis]})[0].tolist()
    [[0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5]]
    >>> two = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
    >>> corners, owners = triangles({"tetra": two})              # the face that both have is inside
    >>> len(corners), owners.tolist()
    (6, [0, 0, 1, 1, 0, 1])
    """
    corners: list[_Table] = []
    owners: list[_Table] = []
    first = 0
    for kind, rows in cells.items():
        numbers = first + np.arange(len(rows))
        if kind in _SPACE:
            face, places = _SPACE[kind]
            rows, numbers = _outside(np.concatenate([rows[:, one] for one in places]), np.tile(numbers, len(places)))
        else:
            face = kind
        for cut in _PLANE.get(face, ()):
            corners.append(rows[:, cut])
            owners.append(numbers)
        first += len(cells[kind])
    if not corners:
        return np.zeros((0, 3), dtype=np.int64), np.zeros(0, dtype=np.int64)
    return np.concatenate(corners), np.concatenate(owners)


def _outside(faces: _Table, owners: _Table) -> tuple[_Table, _Table]:
    """The faces that occur once, and their cells."""
    _, place, count = np.unique(np.sort(faces, axis=1), axis=0, return_inverse=True, return_counts=True)
    once = count[place.ravel()] == 1
    return faces[once], owners[once]
