"""Convergence measures: when the values at the end of a window count as converged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.precice.config import Measure

Key = tuple[str, str]  # mesh, data


class Measures:
    """All measures of a scheme over the iterations of a window.

    >>> from cosolve.precice.config import Measure
    >>> import numpy as np
    >>> measures = Measures([Measure("relative", "T", "M", 1e-2)])
    >>> [measures.met({("M", "T"): (np.array([new]), np.array([old]))}) for new, old in ((2.0, 1.0), (2.0, 1.99))]
    [False, True]
    """

    def __init__(self, measures: Sequence[Measure]) -> None:
        self.measures = tuple(measures)
        self._first: list[float | None] = [None] * len(self.measures)
        #: what the log shows of the last call: the left side of each inequality
        self.residuals: list[float] = [math.nan] * len(self.measures)
        self.failed_strict: list[str] = []

    def start_window(self) -> None:
        """First residuals are measured anew."""
        self._first = [None] * len(self.measures)

    def met(self, pairs: Mapping[Key, tuple[Vector, Vector]]) -> bool:
        """True when all measures hold (or one that suffices, unless a strict one does not); `pairs` are (new, old)."""
        held = []
        for k, measure in enumerate(self.measures):
            new, old = pairs[measure.mesh, measure.data]
            change, size = float(np.linalg.norm(new - old)), float(np.linalg.norm(new))
            held.append(self._one(k, measure, change, size))
        self.failed_strict = [m.data for m, ok in zip(self.measures, held, strict=True) if m.strict and not ok]
        enough = any(ok for m, ok in zip(self.measures, held, strict=True) if m.suffices)
        return bool(self.measures) and (all(held) or (enough and not self.failed_strict))

    def _one(self, k: int, measure: Measure, change: float, size: float) -> bool:
        relative = change / size if size > 0 else (0.0 if change == 0 else math.inf)
        if measure.kind == "absolute":
            self.residuals[k] = change
            return change <= measure.limit
        if measure.kind == "relative":
            self.residuals[k] = relative
            return change <= measure.limit * size
        if measure.kind == "absolute-or-relative":
            self.residuals[k] = change
            return change <= measure.limit or change <= measure.relative_limit * size
        if self._first[k] is None:
            self._first[k] = change
        first = self._first[k] or 0.0
        self.residuals[k] = change / first if first > 0 else 0.0
        return change < measure.limit * first or change == 0.0

    @property
    def titles(self) -> list[str]:
        """Column titles of the convergence log."""
        short = {"absolute": "ResAbs", "relative": "ResRel", "residual-relative": "ResDrop",
                 "absolute-or-relative": "ResAbsOrRel"}  # fmt: skip
        return [f"{short[m.kind]}({m.data})" for m in self.measures]
