"""Serial sweeps: subsystems cross the step one after the other (Gauss-Seidel), each with the newest values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.engine.readable.crew import Crew, Window
from cosolve.errors import SetupError
from cosolve.interface.plan import Block, Plan
from cosolve.signal import end_values


class Serial:
    """Runs subsystems in `sequence`; whatever is known at the end of the step is interpolated for those that follow.

    `lagging` marks the coupling variables that somebody reads before they are known: only their residual can be
    different from zero after a sweep.
    """

    def __init__(self, crew: Crew, sequence: Sequence[int]) -> None:
        self.crew, self.sequence = crew, tuple(sequence)
        plan = crew.plan
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

    def run(
        self,
        window: Window,
        given: Matrix,
        base: Matrix,
        weight: Vector,
        ready: Mapping[int, Vector] | None = None,
    ) -> tuple[Vector, Vector]:
        """Outputs and coupling variables at the end of the step.

        `given` holds the signals to start with; a variable that becomes known is replaced by the polynomial that ends
        in it, `base + weight * value`. `ready` holds outputs that are there already.
        """
        plan = self.crew.plan
        coefficients = np.zeros((max(len(base), len(given)), plan.n_z))
        coefficients[: len(given)] = given
        y, z = np.empty(plan.n_y), end_values(given)
        for k, i in enumerate(self.sequence):
            known = None if ready is None else ready.get(i)
            y[plan.y_slices[i]] = self.crew.advance(i, window, coefficients) if known is None else known
            rows = plan.copy_rows[self._copies[k]]
            z[rows] = y[plan.copy_from[self._copies[k]]]
            for block in self._laws[k]:
                z[block.rows] = block.call(z[block.rows], y[block.y_index])
                rows = np.concatenate([rows, block.rows])
            if len(rows):
                coefficients[:, rows] = 0.0
                coefficients[: len(base), rows] = base[:, rows] + weight[:, np.newaxis] * z[rows]
        return y, z


def in_order(plan: Plan, names: Sequence[str]) -> list[int]:
    """Indices of the named subsystems, then of all others in the order of the system."""
    place = {name: i for i, name in enumerate(plan.names)}
    return [place[name] for name in dict.fromkeys((*names, *place))]


def checked_order(method: str, order: Sequence[str]) -> tuple[str, ...]:
    """`order` as a tuple of distinct names."""
    if isinstance(order, str):
        raise SetupError(f"{method}: order is a list of subsystem names; write order=[{order!r}]")
    if len(set(order)) != len(order):
        raise SetupError(f"{method}: order {list(order)} names a subsystem twice")
    return tuple(order)


def unknown_in_order(method: str, order: Sequence[str], plan: Plan) -> list[str]:
    """A sentence for every name in `order` that is no subsystem."""
    known = set(plan.names)
    unknown = [name for name in order if name not in known]
    return [f"{method}: order names {name!r}, but the subsystems are {listed(plan.names)}" for name in unknown]


def listed(names: Sequence[str]) -> str:
    """Names for a message, not too many."""
    return ", ".join(f"'{n}'" for n in names[:8]) + (f", ... ({len(names)} in all)" if len(names) > 8 else "")
