"""How large a number has to be to count.

A nominal value that is given counts. Where there is none, the magnitudes seen so far do: the same system in metres and
in nanometres takes the same steps, to the last bit where the units differ by a power of two. What a number counts at
least, so that one that is still zero has a size, is the largest magnitude beside it as long as that is below 1, and
1/8192 of it from 8192 on. In between it is 1: small numbers beside large ones of another kind are the rule there, and
published counts of steps and iterations rest on it.
"""

from __future__ import annotations

from math import frexp, isfinite
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector, magnitude

#: Of the largest magnitude so far: what a number without a nominal value counts at least, where that is more than 1.
SHARE = 2.0**-13


def floor_of(largest: Any) -> Any:
    """What numbers without a nominal value count at least beside a largest magnitude.

    >>> [floor_of(largest) for largest in (1e-9, 1.0, 500.0, 8192.0e9)]
    [1e-09, 1.0, 1.0, 1000000000.0]
    """
    return min(largest, max(1.0, SHARE * largest))


def grow_floor(floor: Any, is_open: Any, magnitude: float) -> None:
    """Let the least sizes of variables without a nominal value follow the largest magnitude of all.

    >>> floor = np.array([0.0, 5.0])
    >>> grow_floor(floor, np.array([1, 0]), 1e-9)
    >>> floor
    array([1.e-09, 5.e+00])
    """
    for q in range(len(floor)):
        if is_open[q] != 0:
            floor[q] = max(floor[q], min(magnitude, max(1.0, SHARE * magnitude)))


def is_unseen(floor: Any) -> bool:
    """True as long as nothing has been seen that a size could follow from.

    >>> is_unseen([0.0, 5.0]), is_unseen([1e-9, 5.0])
    (True, False)
    """
    unseen = False
    for least in floor:
        unseen = unseen or least == 0.0
    return unseen


def sizes_at(x: Vector, given: Vector, seen: Vector | None = None) -> Vector:
    """What counts as one for each of these numbers: as `given` (0: not), as `seen` in a run, or as they are at hand.

    1 where nothing is known but zeros.

    >>> sizes_at(np.array([20.0, 0.0, 3.0]), np.array([0.0, 0.0, 5.0]))
    array([20.,  1.,  5.])
    >>> sizes_at(np.zeros(2), np.zeros(2)), sizes_at(np.zeros(2), np.zeros(2), np.array([1e-9, 0.0]))
    (array([1., 1.]), array([1.e-09, 1.e+00]))
    """
    if seen is None:
        own = np.abs(x)
        least = floor_of(float(np.maximum(own, given).max(initial=0.0)))
        seen = np.where(given > 0.0, given, np.maximum(own, least))
    sizes: Vector = np.where(seen > 0.0, seen, 1.0)
    return sizes


def to_unit(v: Vector) -> float:
    """The power of two that brings the largest entry to between 1/2 and 1: its squares are numbers, its bits stay.

    >>> to_unit(np.array([0.0, -3.0])), to_unit(np.zeros(2)), to_unit(np.array([3e160])) * 3e160 < 1.0
    (0.25, 1.0, True)
    """
    largest = magnitude(v)
    if largest == 0.0 or not isfinite(largest):
        return 1.0
    return float(2.0 ** -max(-1000, frexp(largest)[1]))


def state_tolerance(atol: float | None, x0: Vector) -> float:
    """The absolute tolerance of a solver: as given, or 1e-10 of the smallest start value that counts.

    Start values of zero do not count, nor those below a small share of the largest; 1e-10 where all are zero.

    >>> [state_tolerance(None, np.array(x0)) for x0 in ([2.0, 0.0], [0.0], [1e5, 2.0])]
    [2e-10, 1e-10, 1.220703125e-09]
    """
    if atol is not None:
        return atol
    sizes = np.abs(x0)
    least = SHARE * sizes.max(initial=0.0)
    return 1e-10 * float(max(sizes[sizes > 0.0].min(initial=np.inf), least)) if least > 0.0 else 1e-10
