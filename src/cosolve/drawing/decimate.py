"""Fewer points for a picture: the lowest and the highest value of every time slot, so that no peak is lost."""

from __future__ import annotations

import numpy as np

from cosolve.basics.arrays import Vector


def envelope(t: Vector, values: Vector, points: int = 4000) -> tuple[Vector, Vector]:
    """At most `points` points of a series that look like all of them.

    Time is cut into equal slots; each keeps its lowest and its highest value, in their order. The first and the last
    point always stay. A series that is short enough comes back as it is.

    >>> import numpy as np
    >>> t = np.linspace(0.0, 1.0, 1_000_001)
    >>> peak = np.where(np.arange(t.size) == 123_456, 7.0, np.sin(t))      # one point out of a million
    >>> t_few, few = envelope(t, peak, 1000)
    >>> len(few) <= 1000, float(few.max())
    (True, 7.0)
    """
    if len(t) <= points:
        return t, values
    slots = max(1, (points - 2) // 2)
    edges = np.searchsorted(t, np.linspace(t[0], t[-1], slots + 1)[1:-1])
    starts = np.unique(np.concatenate([[0], edges]))
    ends = np.append(starts[1:], len(t))
    kept = [0, len(t) - 1]
    for start, end in zip(starts, ends, strict=True):
        inside = values[start:end]
        kept += [start + int(np.argmin(inside)), start + int(np.argmax(inside))]
    few = np.unique(kept)
    return t[few], values[few]


def band(t: Vector, values: Vector, half: Vector, points: int = 2000) -> tuple[Vector, Vector, Vector]:
    """Times, lower and upper limits of a band around a series; of long ones the widest of so many points each.

    >>> import numpy as np
    >>> band(np.arange(3.0), np.ones(3), np.array([0.0, 0.5, 0.25]))
    (array([0., 1., 2.]), array([1.  , 0.5 , 0.75]), array([1.  , 1.5 , 1.25]))
    """
    first = np.arange(0, len(t), max(1, len(t) // points))
    return t[first], np.minimum.reduceat(values - half, first), np.maximum.reduceat(values + half, first)
