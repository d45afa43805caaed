"""The surface of finite elements: which sides of elements belong to a set of nodes, as a mesh for coupling.

Elements are rows of node labels, corners first; midside nodes follow in the order of Abaqus, CalculiX and Kratos.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cosolve.mapping.mesh import Mesh


@dataclass(frozen=True)
class Shape:
    """A kind of element: its name in a snapshot with so many points, its sides by corners, midside nodes by edge."""

    kind: str
    points: int
    sides: tuple[tuple[int, ...], ...]
    mids: dict[tuple[int, int], int] = field(default_factory=dict)


def _mids(edges: str, first: int) -> dict[tuple[int, int], int]:
    """`01 12 20` with the first midside node: edge, in both directions, -> midside node."""
    found = {}
    for k, edge in enumerate(edges.split()):
        a, b = int(edge[0]), int(edge[1])
        found[a, b] = found[b, a] = first + k
    return found


_TRIANGLE = ((0, 1), (1, 2), (2, 0))
_SQUARE = ((0, 1), (1, 2), (2, 3), (3, 0))
_TETRA = ((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2))
_HEXA = ((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7))
#: By number of nodes and dimension.
SHAPES = {
    (3, 2): Shape("triangle", 3, _TRIANGLE),
    (6, 2): Shape("triangle6", 6, _TRIANGLE, _mids("01 12 20", 3)),
    (4, 2): Shape("quad", 4, _SQUARE),
    (8, 2): Shape("quad8", 8, _SQUARE, _mids("01 12 23 30", 4)),
    (4, 3): Shape("tetra", 4, _TETRA),
    (10, 3): Shape("tetra10", 10, _TETRA, _mids("01 12 20 03 13 23", 4)),
    (8, 3): Shape("hexahedron", 8, _HEXA),
    (20, 3): Shape("hexahedron", 8, _HEXA, _mids("01 12 23 30 45 56 67 74 04 15 26 37", 8)),
}


def outer_sides(
    elements: Sequence[Sequence[int]], labels: Sequence[int], points: npt.NDArray[np.float64], name: str
) -> Mesh:
    """The outer sides of elements whose nodes are all among `labels`, as a mesh of these nodes in their order.

    Sides with midside nodes become several linear cells. A node that no side belongs to stays a point without a cell.

    >>> square = [(1, 2, 3, 4)]
    >>> print(outer_sides(square, [2, 3, 4], np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), "edge"))
    edge: 3 points in 2 dimensions, 2 lines
    """
    cells = [cell for corners, mids in _outer(elements, labels, points.shape[1]) for cell in _linear(corners, mids)]
    by_corners = {n: [c for c in cells if len(c) == n] or None for n in (2, 3, 4)}
    return Mesh(points, lines=by_corners[2], triangles=by_corners[3], quadrilaterals=by_corners[4], name=name)


def quadratic_edges(elements: Sequence[Sequence[int]], labels: Sequence[int]) -> npt.NDArray[np.int64] | None:
    """The outer sides of plane elements as rows of first end, other end and middle, by place among `labels`.

    None where some have no midside node.

    >>> quadratic_edges([(1, 2, 3, 4, 5, 6, 7, 8)], [2, 6, 3]).tolist()
    [[0, 2, 1]]
    >>> quadratic_edges([(1, 2, 3, 4)], [2, 3]) is None
    True
    """
    sides = _outer(elements, labels, 2)
    if not sides or not all(mids for _, mids in sides):
        return None
    return np.array([[*corners, *mids] for corners, mids in sides], dtype=np.int64)


def _outer(
    elements: Sequence[Sequence[int]], labels: Sequence[int], dimension: int
) -> list[tuple[list[int], list[int]]]:
    """Corners and midside nodes, by place among `labels`, of outer sides whose nodes are all there."""
    number = {label: k for k, label in enumerate(labels)}
    sides: dict[frozenset[int], tuple[list[int], list[int]]] = {}
    twice: set[frozenset[int]] = set()  # between two elements
    for nodes in elements:
        shape = SHAPES.get((len(nodes), dimension))
        for side in () if shape is None else shape.sides:
            assert shape is not None
            corners = [nodes[k] for k in side]
            edges = zip(side, (*side[1:], side[0]), strict=True) if len(side) > 2 else [side]
            mids = [nodes[shape.mids[a, b]] for a, b in edges] if shape.mids else []
            if all(node in number for node in (*corners, *mids)):
                key = frozenset(corners)
                if key in sides:
                    twice.add(key)
                sides[key] = [number[n] for n in corners], [number[n] for n in mids]
    return [found for key, found in sides.items() if key not in twice]


def _linear(c: list[int], m: list[int]) -> list[list[int]]:
    """A side with midside nodes as linear cells between all of its nodes."""
    if not m:
        return [c]
    if len(c) == 2:
        return [[c[0], m[0]], [m[0], c[1]]]
    return [[c[k], m[k], m[k - 1]] for k in range(len(c))] + [m]
