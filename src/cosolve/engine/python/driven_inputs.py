"""Driven inputs of one subsystem over a macro step: beside the coupling variables, as exact polynomials.

Where a driven input has a kink or a jump inside the step, a subsystem that can be stopped there advances over the step
in parts, each with exact inputs; the others get one polynomial with the same ends and the same mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix
from cosolve.interface.driven_inputs import Driven, Function, Piece, cubic, shifted, summary
from cosolve.interface.plan import Plan
from cosolve.signal.polynomial import DrivenPolynomial, Local
from cosolve.subsystem.base import Subsystem

_AHEAD = 16  # usual steps: so far ahead a function is looked at for a subsystem that steps as it likes


@dataclass(frozen=True)
class Part:
    """A part of a macro step, and the inputs there."""

    t0: float
    t1: float
    u: DrivenPolynomial


class DrivenInputs:
    """The driven inputs of one subsystem; `values` are coefficients of all its inputs, zero where they are driven."""

    def __init__(self, subsystem: Subsystem, groups: list[tuple[npt.NDArray[np.intp], Driven]]) -> None:
        self._groups = groups
        self._exact = [(columns, one.value) for columns, one in groups]
        self._functions = [
            (columns, one.drive.function, one.target) for columns, one in groups if isinstance(one.drive, Function)
        ]
        self._stops, self._as = subsystem.variable_step, subsystem.input_form

    def whole(self, t0: float, t1: float, H: float, values: Matrix) -> DrivenPolynomial:
        """The inputs over the whole step as one polynomial."""
        return self._polynomial(t0, t1, H, values, [one.drive.pieces(t0, t1) for _, one in self._groups])

    def parts(self, t0: float, t1: float, H: float, values: Matrix) -> list[Part]:
        """The inputs over the parts of the step, between the points where a driven one is not smooth."""
        pieces = [one.drive.pieces(t0, t1) for _, one in self._groups]
        cuts = sorted({piece.b for row in pieces for piece in row[:-1]}) if self._stops else []
        if not cuts:
            return [Part(t0, t1, self._polynomial(t0, t1, H, values, pieces))]
        found = []
        for a, b in pairwise([t0, *cuts, t1]):
            middle = 0.5 * (a + b)
            here = [next(p for p in row if middle <= p.b or p is row[-1]) for row in pieces]
            inside = [[Piece(a, b, piece.between(a, b))] for piece in here]
            coupled = shifted(values, (a - t0) / (t1 - t0), (b - a) / (t1 - t0))
            found.append(Part(a, b, self._polynomial(a, b, b - a, coupled, inside)))
        return found

    def cuts(self, t0: float, t1: float) -> bool:
        """True when the step is advanced in parts."""
        return self._stops and any(len(one.drive.pieces(t0, t1)) > 1 for _, one in self._groups)

    def smooth_until(self, t0: float, t1: float, usual: float) -> float:
        """How far one polynomial reaches from `t0`, at most to `t1`."""
        t1 = min(t1, t0 + _AHEAD * usual)
        return min([t1, *(one.drive.pieces(t0, t1)[0].b for _, one in self._groups)])

    def _polynomial(
        self, t0: float, t1: float, H: float, values: Matrix, pieces: list[list[Piece]]
    ) -> DrivenPolynomial:
        shapes = [self._shape(row) for row in pieces]
        rows = max([len(values), *(len(shape) for shape in shapes)])
        coefficients = np.zeros((rows, values.shape[1]))
        coefficients[: len(values)] = values
        scale = H / (t1 - t0)
        for (columns, one), shape in zip(self._groups, shapes, strict=True):
            if abs(scale - 1.0) > 1e-9:
                shape = shape * scale ** np.arange(len(shape))[:, np.newaxis]
            coefficients[: len(shape), columns] = one.spread(shape)
        return DrivenPolynomial(t0, H, coefficients, t1, self._exact, partial(self._local, t0, t1), self._functions)

    def _local(self, t0: float, t1: float) -> list[Local]:
        """What the driven inputs are from `t0` to `t1`, in numbers alone, as far as that can be said."""
        found = []
        for columns, one in self._groups:
            local = one.drive.local(t0, t1)
            if local is not None:
                found.append((columns, local[0], one.spread(local[1])))
        return found

    def _shape(self, pieces: list[Piece]) -> Matrix:
        if self._as == "mean":
            return summary(pieces)
        if self._as == "cubic":
            return cubic(pieces)
        return pieces[0].coefficients if len(pieces) == 1 else summary(pieces)


def driven_inputs(plan: Plan) -> list[DrivenInputs | None]:
    """Per subsystem, its driven inputs; None where it has none."""
    found: list[DrivenInputs | None] = []
    for part, subsystem in zip(plan.u_slices, plan.subsystems, strict=True):
        mine = [one for one in plan.driven if part.start <= one.entries[0] < part.stop]
        groups = [(one.entries - part.start, one) for one in mine]
        found.append(DrivenInputs(subsystem, groups) if groups else None)
    return found
