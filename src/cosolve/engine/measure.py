"""How large coupling variables have been so far, and what their residuals are measured against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.wording import did_you_mean
from cosolve.errors import SetupError
from cosolve.interface.plan import Plan
from cosolve.method.base import Script
from cosolve.stepsize.control import grow_floor

#: A variable that runs away must not excuse its residual by its own size: beyond `GROWTH` times what the step began
#: with, size no longer counts, and beyond `LOST` times there is no use in going on.
GROWTH, LOST = 1e6, 1e12

#: Nothing is measured against less.
TINY = 1e-300

#: An iteration whose norm grows by this factor is given up.
DIVERGED = 1e6


class Measure:
    """What a run notes of sizes: `size` holds the largest magnitude of every coupling variable, at least a floor.

    The floor is the nominal value of its port. Where nobody gave one, it is the largest magnitude of all coupling
    variables so far, at most 1: the same system in nanometres is measured as it is in metres.

    `plain` marks rows that are measured against 1, `least` holds the sizes at which absolute tolerances take over.
    `fields` holds the first entries of vector ports that are measured as one (see `Implicit`), and where they end.
    """

    fields: Sequence[tuple[int, int]] = ()  # also of states in files that were written before there were any

    def __init__(self, plan: Plan, script: Script) -> None:
        self._nominal, self.open = plan.z_nominal, plan.z_open.astype(np.int64)
        self.size = np.where(plan.z_open, 0.0, plan.z_nominal)
        self.least = absolute_tolerances(plan, script.atol) / script.tol
        self.plain = np.full(plan.n_z, script.absolute)
        for block in plan.blocks:
            if block.implicit:
                self.plain[block.rows] = True
        if script.norm == "fields":
            parts = [part for part, scalar in plan.z_ports.values() if not scalar]
            self.fields = [(p.start, p.stop) for p in parts if p.stop > p.start + 1 and not self.plain[p].any()]
        self._start = 1.0

    @property
    def unknown(self) -> bool:
        """True as long as nothing has been seen that sizes could be measured by."""
        return not self.size.all()

    def see(self, z: Vector, r: Vector) -> None:
        """Take note of the first values that are seen, and of what is asked for."""
        self._fold(max(float(np.abs(v).max(initial=0.0)) for v in (z, z - r, self.size)))

    def _fold(self, magnitude: float) -> None:
        grow_floor(self.size, self._nominal, self.open, magnitude)

    @property
    def row_size(self) -> Vector:
        """What a residual of each row is measured against, at least."""
        return np.where(self.plain, 1.0, np.maximum(self.size, TINY))

    def begin(self, z: Vector, r: Vector) -> None:
        """Take note of what the step begins with."""
        self._start = float(sum(np.abs(v).max(initial=0.0) for v in (self.size, z, r)))

    def lost(self, z: Vector) -> bool:
        """True when there is no way back."""
        return bool(np.abs(z).max(initial=0.0) > LOST * self._start)

    def rows(self, z: Vector) -> Vector:
        """What a residual of each row at `z` is measured against."""
        size = np.maximum(self.size, np.minimum(np.abs(z), GROWTH * self._start))
        for first, end in self.fields:
            size[first:end] = min(_root_mean_square(z[first:end]), GROWTH * self._start)
        return np.maximum(np.where(self.plain, 1.0, size), np.maximum(self.least, TINY))

    def unit(self, z: Vector, r: Vector) -> Vector:
        """The same for the residual `r` of a step that is not iterated, so that nothing can run away in it."""
        size = np.maximum(self.size, np.maximum(np.abs(z), np.abs(z - r)))
        return np.where(self.plain, 1.0, np.maximum(size, TINY))

    def norm(self, r: Vector, z: Vector) -> float:
        """The largest residual, each row in its own unit; fields count with the root of their mean square."""
        if not self.fields:
            return float((np.abs(r) / self.rows(z)).max(initial=0.0))
        # what a field is asked to be is `z - r`: from rest, where there is nothing to measure against but that
        size, missed = self.rows(z), np.abs(r)
        for first, end in self.fields:
            part = slice(first, end)
            missed[part] = _root_mean_square(r[part])
            size[part] = max(size[first], min(_root_mean_square(z[part] - r[part]), GROWTH * self._start))
        missed[size == 0.0] = 0.0
        return float((missed / np.where(size == 0.0, 1.0, size)).max(initial=0.0))

    def remember(self, z: Vector) -> None:
        """Let the sizes grow."""
        np.maximum(self.size, np.abs(z), out=self.size)
        self._fold(float(self.size.max(initial=0.0)))


def _root_mean_square(values: Vector) -> float:
    return float(np.sqrt(values @ values / len(values)))


def absolute_tolerances(plan: Plan, atol: float | Mapping[str, float]) -> Vector:
    """The absolute tolerance of every row."""
    if not isinstance(atol, Mapping):
        return np.full(plan.n_z, float(atol))
    allowed = np.zeros(plan.n_z)
    for name, value in atol.items():
        if name not in plan.z_ports:
            hint = did_you_mean(name, plan.z_ports)
            raise SetupError(f"Implicit: atol names '{name}', which is no coupling variable; {hint}")
        allowed[plan.z_ports[name][0]] = value
    return allowed
