"""Algebraic loops: closed paths through outputs that react at once to inputs.

Explicit methods do not solve them: their values lag one macro step, and a loop that amplifies grows however small the
step is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.interface.plan import Plan
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.feedthrough import feedthrough

Pattern = npt.NDArray[np.bool_]

#: Inputs up to which feed-through is probed unasked at the start of a run.
_FEW_INPUTS = 200


def first_loop(caller: SubsystemCaller, t: float, z: Vector) -> tuple[str, ...]:
    """An algebraic loop at the start of a run, as addresses in signal order; empty where there is none.

    Subsystems that do not say what reacts to what are probed, and put back where they can be.
    """
    plan = caller.plan
    if not caller.may_loop:
        return ()
    patterns = []
    for i, subsystem in enumerate(plan.subsystems):
        u = plan.inputs(z, i)
        said = callable(getattr(subsystem, "feedthrough", None)) or not has_capability(subsystem, "output")
        if not said and len(u) > _FEW_INPUTS:
            return ()
        probed = not said and has_capability(subsystem, "rollback")
        states = {i: caller.save_one(i)} if probed else {}
        patterns.append(feedthrough(subsystem, t, u))
        if probed:
            caller.restore_one(i, states)
    groups = cycles(reactions(plan, patterns)[0])
    return describe(plan, patterns, groups[0]) if groups else ()


def reactions(plan: Plan, patterns: Sequence[Pattern]) -> tuple[list[set[int]], list[set[int]]]:
    """The graph of coupling variables: which others each of them reaches at once, and which at all."""
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
    return direct, indirect


def _rows_of_outputs(plan: Plan) -> list[set[int]]:
    """For each output: the coupling variables computed from it."""
    feeds: list[set[int]] = [set() for _ in range(plan.n_y)]
    for row, source in zip(plan.copy_rows, plan.copy_from, strict=True):
        feeds[int(source)].add(int(row))
    for block in plan.blocks:
        for k in block.y_index:
            feeds[int(k)].update(int(row) for row in block.rows)
    return feeds


def cycles(graph: list[set[int]]) -> list[list[int]]:
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


def describe(plan: Plan, patterns: Sequence[Pattern], group: list[int]) -> tuple[str, ...]:
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
