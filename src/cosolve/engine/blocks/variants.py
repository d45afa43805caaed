"""The numbers of many systems that are alike, one array per matrix, and what they are at the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.engine.blocks.program import Matrices
from cosolve.interface import Plan, System
from cosolve.subsystem import Linear


def alike(system: System, template: System) -> bool:
    """True when a system differs from the template only in the numbers of its linear subsystems and constants."""
    if list(system.subsystems) != list(template.subsystems) or system._joins != template._joins:
        return False
    if system._constants.keys() != template._constants.keys() or system._drivers() or template._drivers():
        return False
    for ours, theirs in zip(system.subsystems.values(), template.subsystems.values(), strict=True):
        if type(ours) is not Linear or not isinstance(theirs, Linear) or len(ours.x0) != len(theirs.x0):
            return False
        if list(ours.inputs) != list(theirs.inputs) or list(ours.outputs) != list(theirs.outputs):
            return False
    return True


@dataclass(frozen=True)
class Ensemble:
    """The numbers of all variants: matrices of every subsystem, and every input's constant."""

    count: int
    parts: list[Matrices]
    offsets: list[Any]  # per input: a number for all variants, or one for each
    odd: npt.NDArray[np.bool_]  # variants with a NaN or an infinity, which others need not suffer from


def gather(systems: Sequence[System]) -> Ensemble:
    """The numbers of systems that are alike."""

    def stacked(name: str, matrix: str) -> Matrix:
        found = np.array([getattr(s.subsystems[name], matrix) for s in systems])
        return np.ascontiguousarray(np.moveaxis(found, 0, -1))

    template = systems[0]
    plan = template.plan()
    parts = [Matrices(*(stacked(name, m) for m in ("A", "B", "C", "D", "x0"))) for name in template.subsystems]
    offsets: list[Any] = [float(value) for value in plan.u_offset]
    for target in template._constants:
        name, port = target.split(".", 1)
        i = plan.names.index(name)
        first = plan.u_slices[i].start + plan.input_ports[i].slice(port).start
        values = np.array([s._constants[target] for s in systems])
        for k in range(values.shape[1]):
            offsets[first + k] = values[:, k].copy()
    return Ensemble(len(systems), parts, offsets, np.zeros(len(systems), dtype=bool))


def join(pieces: Sequence[Ensemble]) -> Ensemble:
    """Variants of several ensembles one after the other."""

    def joined(arrays: Sequence[Any]) -> Any:
        return np.concatenate(arrays, axis=-1) if isinstance(arrays[0], np.ndarray) else arrays[0]

    parts = [
        Matrices(*(joined([getattr(m, key) for m in same]) for key in ("A", "B", "C", "D", "x0")))
        for same in zip(*(piece.parts for piece in pieces), strict=True)
    ]
    offsets = [joined(same) for same in zip(*(piece.offsets for piece in pieces), strict=True)]
    return Ensemble(sum(p.count for p in pieces), parts, offsets, joined([p.odd for p in pieces]))


def settled(plan: Plan, parts: list[Matrices], offsets: list[Any]) -> tuple[list[Vector], list[Vector]] | None:
    """Outputs and coupling variables at the start, one row each; None when feed-through runs in a loop."""
    count = parts[0].x0.shape[-1]
    states = []
    for m in parts:  # in the order of products.product
        total = m.C[:, 0] * m.x0[0]
        for k in range(1, len(m.x0)):
            total += m.C[:, k] * m.x0[k]
        states.append(total)
    y = np.concatenate(states)
    fed = [(i, m) for i, m in enumerate(parts) if m.D.any()]
    for _ in range(plan.n_subsystems + 1):
        same = True
        for i, m in fed:
            u = np.empty((m.B.shape[1], count))
            for k in range(len(u)):
                at = plan.u_slices[i].start + k
                source = int(plan.u_source[at])
                u[k] = offsets[at] if source < 0 else plan.u_factor[at] * y[origin(plan, source)] + offsets[at]
            # as Linear.output: products side by side, so that the sum is formed the same way
            through = np.where(m.D != 0.0, m.D * u[np.newaxis], 0.0)
            found = states[i] + np.ascontiguousarray(np.moveaxis(through, 2, 0)).sum(axis=2).T
            same &= np.array_equal(y[plan.y_slices[i]], found, equal_nan=True)
            y[plan.y_slices[i]] = found
        if same:
            return list(y), [y[origin(plan, q)] for q in range(plan.n_z)]
    return None


def origin(plan: Plan, q: int) -> int:
    """The output that coupling variable `q` copies."""
    return int(plan.copy_from[int(np.flatnonzero(plan.copy_rows == q)[0])])
