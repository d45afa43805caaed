"""Checks of what users give."""

from __future__ import annotations

import numpy as np


def is_number(value: object) -> bool:
    """True for one finite real number (not a Boolean, not a string).

    >>> is_number(0.1), is_number(float("nan")), is_number("0.1"), is_number(True)
    (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    return bool(np.isfinite(value))
