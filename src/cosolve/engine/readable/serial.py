"""Serial sweeps: which coupling variables become known after each subsystem, and which are read before."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from cosolve.basics.arrays import Index, Vector
from cosolve.interface.plan import Block, Plan


class Serial:
    """Subsystems cross the step in `sequence`.

    `lagging` marks the coupling variables that somebody reads before they are known: only their residual can be
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

    def know(self, place: int, y: Vector, z: Vector) -> Index:
        """Write into `z` what the outputs `y` make known once this place has crossed; the rows."""
        plan, copies = self.plan, self._copies[place]
        rows = plan.copy_rows[copies]
        z[rows] = y[plan.copy_from[copies]]
        for block in self._laws[place]:
            z[block.rows] = block.call(z[block.rows], y[block.y_index])
            rows = np.concatenate([rows, block.rows])
        return rows
