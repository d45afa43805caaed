"""What is known about the coupling error of a run; `accuracy/error_bar.py` finds it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan

import numpy as np

from cosolve.basics.arrays import Vector


@dataclass(frozen=True)
class ErrorBar:
    """The coupling error of a run, over its macro points.

    Parameters
    ----------
    t : ndarray
        Macro points in seconds.
    bar : mapping of str to ndarray
        Bound of the coupling error of each output in its own unit, one number per macro point; of a vector, that of its
        worst entry.
    estimate : mapping of str to ndarray
        The estimate without safety factor.
    worst : float, default nan
        Largest bar relative to the largest magnitude of its output; NaN unless every output has a bar.
    reason : str or None, default None
        Why a bar is missing; None if none is.
    reasons : mapping of str to str
        The reason for each output without a bar.
    notes : mapping of str to str
        Outputs whose estimate is below the accuracy of the subsystems, and why.
    ratio : float, default nan
        Ratio of consecutive differences of the signals; from 0.5 on the macro steps do not resolve them.
    cost : mapping of str to int
        Subsystem steps that the estimate took.
    jacobians : mapping of str to int
        Calls of the subsystems' `jacobian` that it took.
    sure : bool, default False
        True if three grids of steps agree.
    unproven : mapping of str to float
        For outputs without a bar, the largest estimate relative to the output's largest value. Not to be relied on.

    Examples
    --------
    >>> import numpy as np
    >>> print(ErrorBar(np.array([0.0, 1.0]), {"a.x": np.array([0.0, 1e-3])}, worst=1e-4))
    a.x: coupling error at most about 1.0e-03
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
