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
    order = np.argsort(_morton(low + high), kind="stable").astype(np.int64)
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


def _morton(centres: Matrix) -> Index:
    """Position of each centre along the Morton curve: the bits of its coordinates interleaved."""
    corner = centres.min(axis=0)
    extent = float((centres - corner).max()) or 1.0
    cell = ((centres - corner) * ((2**_BITS - 1) / extent)).astype(np.int64)
    code = np.zeros(len(centres), dtype=np.int64)
    for axis in range(3):
        for bit in range(_BITS):
            code |= ((cell[:, axis] >> bit) & 1) << (3 * bit + axis)
    return code
