"""Numba, with machine code on disk that is made anew whenever what it was made from changes.

Numba keeps the machine code of a function as long as the function's own file stays the same. But what the function
calls is compiled into it: after an update, code from one version would call code from another. Modules that keep
machine code import numba from here.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from numba import carray, types  # type: ignore[attr-defined]
from numba.core import caching

__all__ = ["carray", "cfunc", "njit", "types"]

_LOCATORS: list[Any] = caching.CacheImpl._locator_classes  # asked one after the other
_PACKAGE = Path(__file__).parents[1]
_SOURCES = (
    *("basics", "engine", "fmu", "integrator", "jit", "mapping", "multibody", "process", "signal", "structures"),
    "subsystem",
)


@cache
def stamp() -> bytes:
    """A fingerprint of all sources that machine code may be made from.

    >>> len(stamp())
    32
    """
    found = sha256()
    for folder in _SOURCES:
        for path in sorted((_PACKAGE / folder).rglob("*.py")):
            found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.digest()


class _Locator:
    """Where numba keeps the machine code of this package's functions: where it always does, under our fingerprint."""

    @classmethod
    def from_function(cls, function: Any, path: str) -> Any:
        """None for functions of others."""
        if not Path(path).is_relative_to(_PACKAGE):
            return None
        for kind in _LOCATORS:
            located = None if kind is cls else kind.from_function(function, path)
            if located is not None:
                located.get_source_stamp = stamp
                return located
        return None


_LOCATORS.insert(0, _Locator)


def njit(*arguments: Any, **options: Any) -> Any:
    """`numba.njit`; with `cache=True` machine code is kept on disk, or in memory where no folder can be written.

    >>> @njit(cache=True)
    ... def twice(x):
    ...     return 2 * x
    >>> twice(1.5)
    3.0
    """
    return _kept(numba.njit, arguments, options)


def cfunc(*arguments: Any, **options: Any) -> Any:
    """`numba.cfunc`, likewise.

    >>> @cfunc("float64(float64)", cache=True)
    ... def twice(x):
    ...     return 2 * x
    >>> twice.ctypes(1.5)
    3.0
    """
    return _kept(numba.cfunc, arguments, options)


def _kept(decorator: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if not options.get("cache"):
        return decorator(*arguments, **options)

    def decorate(function: Any) -> Any:
        try:
            return decorator(*arguments, **options)(function)
        except RuntimeError:  # numba found no folder
            return decorator(*arguments, **{**options, "cache": False})(function)

    return decorate
