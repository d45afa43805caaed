"""The limit on the number of macro steps that a run may take."""

from __future__ import annotations

import sys
from math import isfinite

from cosolve.errors import StepSizeError


def steps_left(most: int | None, taken: int, t: float, t_end: float) -> int:
    """How many macro steps a run may still take that stands at `t`; raises when there are none.

    >>> steps_left(100, 30, 0.3, 1.0)
    70
    """
    if most is None:
        return sys.maxsize
    if taken >= most:
        to = f" of {t_end:.9g}" if isfinite(t_end) else ""
        raise StepSizeError(
            f"the run has taken its max_steps = {most} macro steps and stands at t = {t:.9g}{to}; allow more, take "
            "longer steps or a looser rtol, or another method",
            time=t,
        )
    return most - taken
