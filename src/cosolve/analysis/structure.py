"""The structure of a coupled system: who feeds whom, which outputs react at once, and where algebraic loops run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cosolve.interface import Plan, System
from cosolve.method import Crew
from cosolve.subsystem.feedthrough import feedthrough


@dataclass(frozen=True)
class Structure:
    """Feed-through and loops of a system at its initial state.

    `loops` lists algebraic loops as addresses in signal order; `in_cycle` marks the coupling variables that lie on any
    loop of the coupling graph (instantaneous or not).
    """

    plan: Plan
    feedthrough: tuple[npt.NDArray[np.bool_], ...]
    loops: tuple[tuple[str, ...], ...]
    in_cycle: npt.NDArray[np.bool_]


def structure(system: System, t: float = 0.0) -> Structure:
    """Find feed-through and algebraic loops (the subsystems are started for that).

    >>> import cosolve as cs
    >>> gain = lambda: cs.Static(lambda t, u: 0.5 * u, inputs=["u"], outputs=["y"])
    >>> system = cs.System({"a": gain(), "b": gain()})
    >>> system.connect("a.y", "b.u")
    >>> system.connect("b.y", "a.u")
    >>> cs.structure(system).loops
    (('b.u', 'b.y', 'a.u', 'a.y'),)
    """
    plan = system.plan()
    crew = Crew(plan)
    _, z = crew.start(t)
    patterns = tuple(feedthrough(s, t, plan.inputs(z, i)) for i, s in enumerate(plan.subsystems))
    # graph on coupling variables: z_a -> z_b when z_b's source output reacts to an input that z_a feeds
    direct: list[set[int]] = [set() for _ in range(plan.n_z)]
    indirect: list[set[int]] = [set() for _ in range(plan.n_z)]
    y_feeds = _rows_of_outputs(plan)
    for i, pattern in enumerate(patterns):
        u, y = plan.u_slices[i], plan.y_slices[i]
        for a in range(u.stop - u.start):
            source = int(plan.u_source[u.start + a])
            if source < 0:
                continue
            for b in range(y.stop - y.start):
                indirect[source].update(y_feeds[y.start + b])
                if pattern[b, a]:
                    direct[source].update(y_feeds[y.start + b])
    loops = tuple(_describe(plan, patterns, group) for group in _cycles(direct))
    in_cycle = np.zeros(plan.n_z, dtype=bool)
    for group in _cycles(indirect):
        in_cycle[list(group)] = True
    return Structure(plan, patterns, loops, in_cycle)


def _rows_of_outputs(plan: Plan) -> list[set[int]]:
    """For each output: the coupling variables computed from it."""
    feeds: list[set[int]] = [set() for _ in range(plan.n_y)]
    for row, source in zip(plan.copy_rows, plan.copy_from, strict=True):
        feeds[int(source)].add(int(row))
    for block in plan.blocks:
        for k in block.y_index:
            feeds[int(k)].update(int(row) for row in block.rows)
    return feeds


def _cycles(graph: list[set[int]]) -> Iterable[list[int]]:
    """Strongly connected groups with at least one edge inside."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(graph)
    edges = [(a, b) for a, targets in enumerate(graph) for b in targets]
    if not edges:
        return []
    rows, columns = np.array(edges).T
    matrix = coo_array((np.ones(len(edges)), (rows, columns)), shape=(n, n)).tocsr()
    count, label = connected_components(matrix, directed=True, connection="strong")
    groups: list[list[int]] = [[] for _ in range(count)]
    for node, group in enumerate(label):
        groups[group].append(node)
    return [g for g in groups if len(g) > 1 or g[0] in graph[g[0]]]


def _describe(plan: Plan, patterns: tuple[npt.NDArray[np.bool_], ...], group: list[int]) -> tuple[str, ...]:
    """One closed path through the group, as input and output addresses in signal order."""
    members, y_feeds = set(group), _rows_of_outputs(plan)
    hops: dict[int, list[tuple[str, str, int]]] = {m: [] for m in group}
    for i, pattern in enumerate(patterns):
        u, y = plan.u_slices[i], plan.y_slices[i]
        for b, a in zip(*np.nonzero(pattern), strict=True):
            source = int(plan.u_source[u.start + a])
            if source in members:
                into, out = plan.u_label(u.start + int(a)), plan.y_label(y.start + int(b))
                hops[source] += [(into, out, target) for target in y_feeds[y.start + int(b)] if target in members]
    path: list[str] = []
    seen: dict[int, int] = {}
    node = group[0]
    while node not in seen:
        seen[node] = len(path)
        into, out, node = hops[node][0]
        path += [into, out]
    return tuple(path[seen[node] :])
