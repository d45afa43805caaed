"""One decorator for compiled loops: cached on disk where that is possible, in memory otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from cosolve.jit import njit

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """`njit`, kept on disk.

    Division by zero gives an infinity, as in numpy; a test at every division would keep loops from being vectorised.

    >>> @compiled
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> twice(1.5)
    3.0
    """
    return cast(F, njit(cache=True, error_model="numpy")(function))
