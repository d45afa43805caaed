"""How large coupling variables have been so far, and what their residuals are measured against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector, magnitude
from cosolve.basics.scale import grow_floor
from cosolve.basics.wording import did_you_mean
from cosolve.errors import SetupError
from cosolve.interface.plan import Plan
from cosolve.method.base import Declaration

#: A variable that runs away must not excuse its residual by its own size: beyond `GROWTH` times what the step began
#: with, size no longer counts, and beyond `LOST` times there is no use in going on.
GROWTH, LOST = 1e6, 1e12

#: Nothing is measured against less.
TINY = 1e-300

#: An iteration whose norm grows by this factor is given up.
DIVERGED = 1e6


class Measure:
    """What a run notes of sizes: `size` holds the largest magnitude of every coupling variable, at least a floor.

    The floor is the nominal value of its port. Where none is given, it follows the largest magnitude of all
    coupling variables so far (`basics/scale.py`): the same system in nanometres is measured as it is in metres.

    `y_size` holds the same of the outputs, which are the arguments of laws.

    Rows of user equations (`equations`) are measured against what is added up in them, `terms`. `plain` marks rows that
    are measured against 1 (constraints, and everything where that is asked for), `least` holds the sizes at which
    absolute tolerances take over.
    `fields` holds the first entries of vector ports that are measured as one (see `Implicit`), and where they end.
    """

    fields: Sequence[tuple[int, int]] = ()  # also of states in files that were written before there were any
    _folded = _y_folded = -1.0  # the largest magnitudes that floors have followed
    _differences = False

    def __init__(self, plan: Plan, declaration: Declaration) -> None:
        self.open = plan.z_open.astype(np.int64)
        self.size = np.where(plan.z_open, 0.0, plan.z_nominal)
        self.y_open, self.y_size = (plan.y_given == 0.0).astype(np.int64), plan.y_given.copy()
        self.least = absolute_tolerances(plan, declaration.atol) / declaration.tol
        self.plain = np.full(plan.n_z, declaration.absolute)
        self.equations, self.terms = np.zeros(plan.n_z, dtype=bool), np.zeros(plan.n_z)
        self.known = False  # whether all sizes can be measured by something; what is unknown is looked at in each step
        self._reads_outputs = bool(plan.blocks)  # laws and equations are differenced by them
        self._summed = 0.0  # the largest accepted magnitude when terms were summed last
        self._constrained = np.zeros(plan.n_z, dtype=bool)
        for block in plan.blocks:
            self._constrained[block.rows] |= block.levels is not None
            if block.implicit:
                (self.plain if block.levels is not None or declaration.absolute else self.equations)[block.rows] = True
        self.has_equations = bool(self.equations.any())
        self._differences = not (self.has_equations or self.plain.any())  # all rows are of coupling variables
        if declaration.norm == "fields":
            parts = [part for part, scalar in plan.z_ports.values() if not scalar]
            solved = np.zeros(plan.n_z, dtype=bool)
            for block in plan.blocks:
                solved[block.rows] |= block.implicit
            self.fields = [(p.start, p.stop) for p in parts if p.stop > p.start + 1 and not solved[p].any()]
        self._start = 1.0

    def take_over(self, saved: dict[str, Any]) -> None:
        """Go on with saved sizes; `ValueError` where they do not fit, since machine code reads them by address."""
        own = vars(self)
        for name, value in saved.items():
            there, here = np.asarray(value), np.asarray(own.get(name, 0.0))
            if there.shape != here.shape or there.dtype.kind not in "biuf" or (here.ndim and there.dtype != here.dtype):
                raise ValueError(f"its sizes ('{name}') are those of another run")
        own.update(deepcopy(saved))

    @property
    def unknown(self) -> bool:
        """True as long as nothing has been seen that sizes could be measured by."""
        self.known = bool(self.size.all()) and (not self._reads_outputs or bool(self.y_size.all()))
        return not self.known

    def see(self, z: Vector, r: Vector, y: Vector) -> None:
        """Take note of the first values that are seen, and of what is asked for."""
        self._see_outputs(y)
        asked = np.where(self._constrained, z, z - r)  # a constraint says nothing of how large its force is
        self._fold(max(magnitude(v) for v in (z, asked, self.size)))

    def _fold(self, largest: float) -> None:
        if largest > self._folded:  # floors only grow with it
            self._folded = largest
            grow_floor(self.size, self.open, largest)

    def _see_outputs(self, y: Vector) -> None:
        if not self._reads_outputs:
            return
        np.maximum(self.y_size, np.abs(y), out=self.y_size)
        largest = magnitude(self.y_size)
        if largest > self._y_folded:
            self._y_folded = largest
            grow_floor(self.y_size, self.y_open, largest)

    @property
    def least_size(self) -> float:
        """All rows are measured against at least this; 0 where some are no differences of coupling variables."""
        return float(np.minimum.reduce(self.size, initial=np.inf)) if self._differences else 0.0

    @property
    def row_size(self) -> Vector:
        """What a residual of each row is measured against, at least."""
        return self._in_units(self.size)

    def begin(self, z: Vector, r: Vector) -> None:
        """Take note of what the step begins with."""
        self._start = magnitude(self.size) + magnitude(z) + magnitude(r)

    def lost(self, z: Vector) -> bool:
        """True when there is no way back."""
        return magnitude(z) > LOST * self._start

    def rows(self, z: Vector) -> Vector:
        """What a residual of each row at `z` is measured against."""
        size = np.maximum(self.size, np.minimum(np.abs(z), GROWTH * self._start))
        for first, end in self.fields:
            size[first:end] = min(_root_mean_square(z[first:end]), GROWTH * self._start)
        return np.maximum(self._in_units(size), self.least)

    def unit(self, z: Vector, r: Vector) -> Vector:
        """The same for the residual `r` of a step that is not iterated, so that nothing can run away in it."""
        size = np.maximum(self.size, np.maximum(np.abs(z), np.abs(z - r)))
        return self._in_units(size)

    def _in_units(self, size: Vector) -> Vector:
        """What rows are measured against, for these sizes of the coupling variables."""
        units: Vector = np.maximum(np.where(self.plain, 1.0, np.where(self.equations, self.terms, size)), TINY)
        return units

    @property
    def seen(self) -> tuple[Vector, Vector]:
        """The sizes of coupling variables and outputs so far."""
        return self.size, self.y_size

    @property
    def wants_terms(self) -> bool:
        """True in the first step of a run with equations: their slopes are known where they are evaluated only."""
        return self.has_equations and not self._summed

    def take_terms(self, terms: Vector, r: Vector) -> None:
        """What is added up in each row now; of constants only the residual that they leave is known."""
        self.terms[:] = np.where(self.equations, np.where(terms > 0.0, terms, np.abs(r)), 0.0)

    def outgrows_terms(self, z: Vector, y: Vector) -> bool:
        """Whether values that are accepted are so large that what is added up in equations is to be summed again."""
        largest = max(magnitude(z), magnitude(y)) if self.has_equations else 0.0
        grown = largest > 2.0 * self._summed
        if grown:
            self._summed = largest
        return grown

    def keep_terms(self, terms: Vector) -> None:
        """Let what is added up in the rows grow."""
        self.terms[:] = np.maximum(self.terms, np.where(self.equations, terms, 0.0))

    def norm(self, r: Vector, z: Vector) -> float:
        """The largest residual, each row in its own unit; fields count with the root of their mean square."""
        if not self.fields:
            return float((np.abs(r) / self.rows(z)).max(initial=0.0))
        # what a field is asked to be is `z - r`: from rest, where there is nothing to measure against but that
        size, missed = self.rows(z), np.abs(r)
        for first, end in self.fields:
            part = slice(first, end)
            missed[part] = _root_mean_square(r[part])
            if not self.plain[first]:
                size[part] = max(size[first], min(_root_mean_square(z[part] - r[part]), GROWTH * self._start))
        missed[size == 0.0] = 0.0
        return float((missed / np.where(size == 0.0, 1.0, size)).max(initial=0.0))

    def record_scales(self, z: Vector, y: Vector) -> None:
        """Let the sizes grow."""
        self._see_outputs(y)
        np.maximum(self.size, np.abs(z), out=self.size)
        self._fold(magnitude(self.size))


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
