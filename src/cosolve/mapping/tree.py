"""A tree of bounding boxes over the cells of a mesh, for "which cell is nearest" and "which cells are around here".

Cells are sorted along the Morton curve and every four form a leaf; the leaves are the lowest row of a complete binary
tree in heap order (children of node `i` are `2 i` and `2 i + 1`, the root is 1). Built by numpy in one pass per level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosolve.basics.arrays import Matrix
from cosolve.mapping.mesh import Index, Mesh

LEAF = 4
_BITS = 16


class CellTree(NamedTuple):
    """Boxes `low`, `high` of shape (2 leaves, 3) in heap order; `order` lists the cells leaf by leaf."""

    low: Matrix
    high: Matrix
    order: Index


def cell_tree(mesh: Mesh) -> CellTree:
    """The tree over the cells of `mesh`.

    >>> tree = cell_tree(Mesh.line([[0.0, 1.0], [1.0, 3.0], [2.0, 0.0]]))
    >>> tree.low[1].tolist(), tree.high[1].tolist()
    ([0.0, 0.0, 0.0], [2.0, 3.0, 0.0])
    """
    low, high = mesh.corner_points.min(axis=1), mesh.corner_points.max(axis=1)
    order = along_curve(low + high)
    starts = np.arange(0, mesh.n_cells, LEAF)
    leaves = 1 << int(len(starts) - 1).bit_length()
    lows, highs = np.full((2 * leaves, 3), np.inf), np.full((2 * leaves, 3), -np.inf)
    lows[leaves : leaves + len(starts)] = np.minimum.reduceat(low[order], starts)
    highs[leaves : leaves + len(starts)] = np.maximum.reduceat(high[order], starts)
    while leaves > 1:
        children, leaves = slice(leaves, 2 * leaves), leaves // 2
        lows[leaves : 2 * leaves] = lows[children].reshape(-1, 2, 3).min(axis=1)
        highs[leaves : 2 * leaves] = highs[children].reshape(-1, 2, 3).max(axis=1)
    return CellTree(lows, highs, order)


def along_curve(points: Matrix) -> Index:
    """The points in the order of the Morton curve: the bits of their coordinates interleaved.

    >>> along_curve(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.9, 1.0, 1.0]]))
    array([1, 2, 0])
    """
    corner = points.min(axis=0)
    extent = float((points - corner).max()) or 1.0
    cell = ((points - corner) * ((2**_BITS - 1) / extent)).astype(np.int64)
    code = _spread(cell[:, 0]) | _spread(cell[:, 1]) << 1 | _spread(cell[:, 2]) << 2
    return np.argsort(code, kind="stable").astype(np.int64)


def _spread(bits: Index) -> Index:
    """Two zeros between any two of 16 bits: gaps are opened by halves."""
    for shift, mask in ((16, 0xFF0000FF), (8, 0xF00F00F00F), (4, 0xC30C30C30C3), (2, 0x249249249249)):
        bits = (bits | bits << shift) & mask
    return bits
