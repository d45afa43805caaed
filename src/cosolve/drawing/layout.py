"""Where the boxes of a coupling diagram stand: on a grid, so that nothing overlaps, with linked boxes close together.

The cost of a placement is the length of its links, links that run behind foreign boxes, and links that cross. Pairs of
cells are swapped while that helps, from several starts on a few grid shapes; the best one wins. Deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix

_BEHIND = 8.0  # cost of a link behind a box, in squared cell lengths
_INTERSECTION = 1.5
_EMPTY = 0.6  # cost of an empty cell
_MOST_COLUMNS = 5
_ROUNDS = 12
_STARTS = 6


def place(count: int, links: Sequence[tuple[int, int]]) -> Matrix:
    """Column and row of every one of `count` boxes, given which pairs are linked.

    >>> place(3, [(0, 1), (1, 2)]).tolist()          # a chain of three stays in a row
    [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]
    """
    pairs = np.array(sorted({(min(a, b), max(a, b)) for a, b in links if a != b}), dtype=np.intp).reshape(-1, 2)
    found: list[tuple[float, Matrix]] = []
    for columns in range(max(1, round((0.7 * count) ** 0.5)), min(count, _MOST_COLUMNS) + 1):
        rows = -(-count // columns)
        if rows <= columns or columns == min(count, _MOST_COLUMNS):
            random = np.random.default_rng(0)
            for start in range(_STARTS if count > 3 else 1):
                found.append(_improve(count, pairs, columns, rows, random if start else None))
    return min(found, key=lambda candidate: candidate[0])[1]


def _improve(
    count: int, pairs: npt.NDArray[np.intp], columns: int, rows: int, random: np.random.Generator | None
) -> tuple[float, Matrix]:
    cells = np.array(
        [[c if r % 2 == 0 else columns - 1 - c, r] for r in range(rows) for c in range(columns)], dtype=np.float64
    )
    home = np.arange(len(cells)) if random is None else random.permutation(len(cells))  # box or gap -> cell
    best = _cost(cells[home[:count]], pairs)
    for _ in range(_ROUNDS):
        before = best
        for i, j in combinations(range(len(cells)), 2):
            if i >= count:
                break  # two empty cells
            home[i], home[j] = home[j], home[i]
            cost = _cost(cells[home[:count]], pairs)
            if cost < best - 1e-9:
                best = cost
            else:
                home[i], home[j] = home[j], home[i]
        if best == before:
            break
    places = cells[home[:count]]
    return best + _EMPTY * (len(cells) - count), places - places.min(axis=0)


def _cost(places: Matrix, pairs: npt.NDArray[np.intp]) -> float:
    if not len(pairs):
        return 0.0
    a, b = places[pairs[:, 0]], places[pairs[:, 1]]
    along = b - a
    squared = (along**2).sum(axis=1)
    # boxes on the way: their centre is close to the inner part of the link
    to_box = places[np.newaxis] - a[:, np.newaxis]
    share = (to_box * along[:, np.newaxis]).sum(axis=2) / squared[:, np.newaxis]
    gap = np.abs(to_box - share[..., np.newaxis] * along[:, np.newaxis])
    behind = (share > 0.05) & (share < 0.95) & (gap[..., 0] < 0.3) & (gap[..., 1] < 0.3)
    side_a = _side(a, b, a)
    side_b = _side(a, b, b)
    apart = (side_a * side_b < 0) & (side_a.T * side_b.T < 0)
    return float(squared.sum() + _BEHIND * behind.sum() + _INTERSECTION * apart.sum() / 2)


def _side(a: Matrix, b: Matrix, points: Matrix) -> Matrix:
    """On which side of link i (row) point j (column) lies."""
    along, to_point = b - a, points[np.newaxis] - a[:, np.newaxis]
    side: Matrix = along[:, :1] * to_point[..., 1] - along[:, 1:] * to_point[..., 0]
    return side
