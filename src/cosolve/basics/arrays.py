"""Flat arrays of doubles: their types, whether all numbers in one are finite, what counts as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Vector: TypeAlias = npt.NDArray[np.float64]
Matrix: TypeAlias = npt.NDArray[np.float64]
Index: TypeAlias = npt.NDArray[np.intp]

#: So many numbers are handled faster one by one in Python than as an array.
FEW = 16

_DOUBLE = np.dtype(np.float64)


def all_finite(values: Vector) -> bool:
    """No NaN and no infinity. A finite sum says so at once; one that is not may have overflowed.

    >>> all_finite(np.array([1e308, 1e308])), all_finite(np.array([1.0, np.inf]))
    (True, False)
    """
    total = sum(values.tolist()) if len(values) <= FEW else values.dot(values)
    return isfinite(total) or bool(np.isfinite(values).all())


def doubles(given: Any, size: int | None = None) -> npt.NDArray[np.float64]:
    """What a user gave, as doubles, also one number for `size` of them; a single NaN for what is not that.

    >>> doubles([1, 2]), doubles(0.5, 2), doubles("a")
    (array([1., 2.]), array([0.5, 0.5]), array([nan]))
    """
    try:
        found = np.array(given, dtype=np.float64)
        return found if size is None else np.broadcast_to(found.reshape(-1), (size,)).copy()
    except (TypeError, ValueError):
        return np.array([np.nan])


def finite_doubles(numbers: Sequence[float] | Vector) -> Vector | None:
    """An array of them; None when they are not all finite numbers.

    >>> finite_doubles([1.0, 2.0]), finite_doubles([1.0, float("nan")]), finite_doubles([1.0, "2"])
    (array([1., 2.]), None, None)
    """
    try:
        values = np.asarray(numbers)
    except ValueError:  # one is an array
        return None
    if values.dtype is not _DOUBLE or values.ndim != 1:
        return None
    # `all_finite` without a call, in the most frequent of all checks
    total = sum(values.tolist()) if len(values) <= FEW else values.dot(values)
    return values if isfinite(total) or np.isfinite(values).all() else None


def magnitude(values: Vector) -> float:
    """The largest absolute value; 0 where there are none, NaN where one is NaN.

    >>> magnitude(np.array([1.0, -3.0])), magnitude(np.zeros(0)), magnitude(np.array([1.0, np.nan]))
    (3.0, 0.0, nan)
    """
    if len(values) <= FEW:
        numbers = values.tolist()
        if isfinite(sum(numbers)):  # `max` would pass over a NaN
            return max(map(abs, numbers), default=0.0)
    return float(np.maximum.reduce(np.abs(values), initial=0.0))


def real_array(given: Any) -> npt.NDArray[np.float64]:
    """What a user gave, as doubles; a `TypeError` for what is not plainly real numbers, which NumPy would convert.

    >>> real_array([1, 2.5])
    array([1. , 2.5])
    >>> real_array("1.0")
    Traceback (most recent call last):
    ...
    TypeError: text instead of real numbers
    """
    array = np.asarray(given)
    if array.dtype.kind not in "fiub":
        kind = {"U": "text", "S": "text", "c": "complex numbers", "M": "dates", "m": "durations"}
        raise TypeError(f"{kind.get(array.dtype.kind, 'other objects')} instead of real numbers")
    return array.astype(np.float64)
