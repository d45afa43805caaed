"""Flat arrays of doubles: their types, and whether all numbers in one are finite."""

from __future__ import annotations

from math import isfinite
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Vector: TypeAlias = npt.NDArray[np.float64]
Matrix: TypeAlias = npt.NDArray[np.float64]
Index: TypeAlias = npt.NDArray[np.intp]

#: So many numbers are handled faster one by one in Python than as an array.
FEW = 16


def all_finite(values: Vector) -> bool:
    """No NaN and no infinity. A finite sum says so at once; one that is not may have overflowed.

    >>> all_finite(np.array([1e308, 1e308])), all_finite(np.array([1.0, np.inf]))
    (True, False)
    """
    total = sum(values.tolist()) if len(values) <= FEW else values.dot(values)
    return isfinite(total) or bool(np.isfinite(values).all())
