"""One decorator for compiled loops: cached on disk where that is possible, in memory otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """`numba.njit` with the cache next to the source or, where that is read-only, in the user's cache directory.

    Division by zero gives an infinity, as in numpy; a test at every division would keep loops from being vectorised.

    >>> @compiled
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> twice(1.5)
    3.0
    """
    try:
        return cast(F, numba.njit(cache=True, error_model="numpy")(function))
    except RuntimeError:  # numba found no directory to write to
        return cast(F, numba.njit(error_model="numpy")(function))
