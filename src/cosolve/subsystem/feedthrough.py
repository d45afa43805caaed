"""Direct feed-through: which outputs react at once to which inputs.

Probed by handing NaN to one input at a time: an output that depends on it becomes NaN. Comparisons may swallow a NaN,
so a finite change is tried as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.subsystem.base import Subsystem, has_capability
from cosolve.subsystem.port import Ports


def try_outputs(output: Callable[[float, Vector], Any], ports: Ports, t: float, u: Vector) -> Vector:
    """What `output(t, u)` gives for inputs some of which are NaN (unknown); all NaN where it cannot cope with that."""
    try:
        with np.errstate(all="ignore"):
            return np.array(ports.pack(output(t, u.copy())))  # the function may write into it
    except Exception:
        return np.full(ports.length, np.nan)


def feedthrough(subsystem: Subsystem, t: float, u: Vector) -> npt.NDArray[np.bool_]:
    """Boolean matrix (outputs x inputs) of direct feed-through at the present state.

    >>> import numpy as np
    >>> import cosolve as cs
    >>> spring = cs.Static(lambda t, u: [u[0] - u[1], 2 * u[1]], inputs=["a", "b"], outputs=["f", "g"])
    >>> feedthrough(spring, 0.0, np.zeros(2)).tolist()
    [[True, True], [False, True]]
    """
    ports = Ports(subsystem.outputs)
    if not has_capability(subsystem, "output"):
        return np.zeros((ports.length, len(u)), dtype=bool)
    given = getattr(subsystem, "feedthrough", None)
    if callable(given):
        return np.asarray(given(), dtype=bool)
    pattern = np.zeros((ports.length, len(u)), dtype=bool)
    base = try_outputs(subsystem.output, ports, t, u)
    for k in range(len(u)):
        for value in (np.nan, u[k] + 1e-3 * max(1.0, abs(u[k]))):
            probe = u.copy()
            probe[k] = value
            y = try_outputs(subsystem.output, ports, t, probe)
            pattern[:, k] |= ~(y == base) & np.isfinite(base)
    return pattern
