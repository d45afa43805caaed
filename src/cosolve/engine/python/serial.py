"""Serial sweeps: which coupling variables become known after each subsystem, and which are read before."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from cosolve.basics.arrays import Index, Vector
from cosolve.interface.plan import Block, Plan
from cosolve.method.base import Method
from cosolve.method.explicit import in_order


def serial_note(method: Method, plan: Plan) -> str:
    """One sentence where a serial sweep hands nothing on from one subsystem to the next; empty where it does.

    >>> import cosolve as cs
    >>> one, two = (cs.Linear([[-1]], [[1]], [[1]], x0=[x], inputs=["f"], outputs=["x"]) for x in (0, 1))
    >>> system = cs.System({"one": one, "two": two})
    >>> system.law({"one.f": 1, "two.f": -1}, lambda a, b: b - a, of=["one.x", "two.x"], name="f")
    >>> serial_note(cs.GaussSeidel(1), system.plan()).split(",")[0]
    'GaussSeidel(1) does what Jacobi does here'
    """
    declaration = method.declaration
    if declaration is None or not method.serial:
        return ""
    if Serial(plan, in_order(plan, declaration.order)).hands_on:
        return ""
    read_by_others, best = _handed_on(plan)
    if not len(read_by_others):
        return ""
    what = f"{method.label} does what Jacobi does here, since "
    if best:
        giver, taker = best
        return f"{what}every subsystem runs before those that it reads; let '{giver}' run before '{taker}' (order=...)"
    label = plan.z_labels[int(read_by_others[0])]
    return (
        f"{what}'{label}' is known only after all its readers have run, in any order; use Jacobi, which can run them "
        "side by side, or let one of them compute the value and give it to the other"
    )


def _handed_on(plan: Plan) -> tuple[Index, tuple[str, str] | None]:
    """Coupling variables that depend on another subsystem than their reader, and two names that show how to hand on."""
    sources: list[set[int]] = [set() for _ in range(plan.n_z)]
    for row, source in zip(plan.copy_rows, plan.copy_from, strict=True):
        sources[row].add(int(plan.y_owner[source]))
    for block in plan.blocks:
        if not block.implicit:
            for row in np.arange(plan.n_z)[block.rows]:
                sources[row].update(plan.owners(block))
    found = set()
    for i in range(plan.n_subsystems):
        for row in plan.reads(i):
            if sources[row] and i not in sources[row]:
                return np.array([row]), (plan.names[min(sources[row])], plan.names[i])
            if sources[row] - {i}:
                found.add(int(row))
    return np.array(sorted(found), dtype=np.intp), None


class Serial:
    """Subsystems advance over the step in `sequence`.

    `lagging` marks the coupling variables that are read before they are known: only their residual can be
    different from zero after a sweep.
    """

    def __init__(self, plan: Plan, sequence: Sequence[int]) -> None:
        self.plan, self.sequence = plan, tuple(sequence)
        place = {i: k for k, i in enumerate(sequence)}
        # after each subsystem: the connections and laws whose sources have then all run
        copies_at = np.array([place[int(i)] for i in plan.y_owner[plan.copy_from]], dtype=np.intp)
        by_place = np.argsort(copies_at, kind="stable")
        ends = np.searchsorted(copies_at[by_place], np.arange(len(sequence) + 1))
        self._copies = [by_place[a:b] for a, b in pairwise(ends)]
        self._laws: list[list[Block]] = [[] for _ in sequence]
        known_at = np.full(plan.n_z, len(sequence))
        known_at[plan.copy_rows] = copies_at
        for block in plan.blocks:
            if not block.implicit:
                at = max((place[i] for i in plan.owners(block)), default=0)
                self._laws[at].append(block)
                known_at[block.rows] = at
        first_read = np.full(plan.n_z, len(sequence))
        for i in range(plan.n_subsystems):
            first_read[plan.reads(i)] = np.minimum(first_read[plan.reads(i)], place[i])
        self.lagging = first_read <= known_at
        self._known_at, self._place = known_at, place
        last_read = np.full(plan.n_z, -1)
        for i in range(plan.n_subsystems):
            last_read[plan.reads(i)] = np.maximum(last_read[plan.reads(i)], place[i])
        #: whether values that have become known are read
        self.hands_on = bool((last_read > known_at).any())

    def seen(self, i: int, guessed: Vector, known: Vector) -> Vector:
        """The values that subsystem `i` advances with: those `known` once others have run before it, else guesses."""
        return np.where(self._known_at < self._place[i], known, guessed)

    def know(self, place: int, y: Vector, z: Vector) -> Index:
        """Write into `z` what the outputs `y` make known once this place has advanced; the rows."""
        plan, copies = self.plan, self._copies[place]
        rows = plan.copy_rows[copies]
        z[rows] = y[plan.copy_from[copies]]
        for block in self._laws[place]:
            z[block.rows] = block.call(z[block.rows], y[block.y_index])
            rows = np.concatenate([rows, block.rows])
        return rows
