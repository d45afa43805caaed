"""What is known about the coupling error of a run; `run/error_bar.py` finds it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan

import numpy as np

from cosolve.basics.arrays import Vector


@dataclass(frozen=True)
class ErrorBar:
    """The coupling error of a run: `bar[output]` over the times `t`, in the unit of that output.

    There is one number per macro point: of a vector, that of its worst entry.
    `estimate[output]` is the shadow's distance without safety factor. `worst` is the largest bar relative to the
    largest magnitude of its output (NaN unless every output has one). `reason` says why a bar is missing (None where
    none is), `reasons` for each output; `notes` say which estimates are below the accuracy of the subsystems. `ratio`
    compares the differences of the signals with the next higher ones: from 0.5 on, the steps do not resolve them.
    `cost` counts how often each subsystem was crossed for all this, `jacobians` how often it was asked for its own.
    `sure` says that three grids of steps agree about it. `unproven` holds, for outputs without a bar, the largest
    estimate relative to the output's largest value: what it might be, and nothing that can be relied on.
    """

    t: Vector
    bar: Mapping[str, Vector] = field(default_factory=dict)
    estimate: Mapping[str, Vector] = field(default_factory=dict)
    worst: float = nan
    reason: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    ratio: float = nan
    cost: Mapping[str, int] = field(default_factory=dict)
    jacobians: Mapping[str, int] = field(default_factory=dict)
    sure: bool = False
    unproven: Mapping[str, float] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """All of it in a line.

        >>> import numpy as np
        >>> ErrorBar(np.zeros(0), reason="nothing is exchanged").sentence
        'no estimate of the coupling error: nothing is exchanged'
        """
        if self.reason is None:
            if len(self.notes) == len(self.bar):
                return f"no coupling error to be seen, {next(iter(self.notes.values()), 'nothing moves')}"
            return f"coupling error at most about {self.worst:.1e} of an output's largest value"
        if not self.bar:
            guess = f"; unproven: about {max(self.unproven.values()):.1e}" if self.unproven else ""
            return f"no estimate of the coupling error: {self.reason}{guess}"
        return f"no estimate of the coupling error for {len(self.reasons)} outputs ({self.reason})"

    def __str__(self) -> str:
        if not self.bar:
            return self.sentence
        lines = []
        for name, bar in self.bar.items():
            if name in self.notes:
                lines.append(f"{name}: no coupling error to be seen, {self.notes[name]}")
            else:
                lines.append(f"{name}: coupling error at most about {np.max(bar):.1e}")
        for name, why in self.reasons.items():
            guess = f" (unproven: about {self.unproven[name]:.1e} of it)" if name in self.unproven else ""
            lines.append(f"{name}: no estimate of the coupling error, {why}{guess}")
        return "\n".join(lines)
