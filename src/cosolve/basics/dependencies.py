"""Orders in which everything comes after what it depends on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter


def levels(sources: Mapping[int, Iterable[int]]) -> tuple[list[list[int]], list[int]]:
    """Groups that depend on earlier groups only; and those that are left, in loops or behind them, ascending.

    Inside a group come first those whose last source came first.

    >>> levels({1: [3], 2: [3], 3: [], 4: [1, 2]})
    ([[3], [1, 2], [4]], [])
    >>> levels({1: [2], 2: [1], 3: [1], 4: []})
    ([[4]], [1, 2, 3])
    """
    sorter = TopologicalSorter(dict.fromkeys(sources, ()))  # all of them first, so that they keep their order
    for one, its_sources in sources.items():
        sorter.add(one, *its_sources)
    with suppress(CycleError):
        sorter.prepare()
    found = []
    while ready := sorter.get_ready():
        found.append(list(ready))
        sorter.done(*ready)
    done = {one for group in found for one in group}
    return found, sorted(one for one in sources if one not in done)
