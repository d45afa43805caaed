"""Machine code on disk that is made anew whenever what it was made from changes.

Numba keeps the machine code of a function as long as the function's own file stays the same. But what the function
calls is compiled into it: after an update, code from one version would call code from another. For functions of this
package numba is therefore told a fingerprint of all sources that they are made from (`sources.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numba import types
from numba.core import caching
from numba.core.sigutils import normalize_signature

from cosolve.jit.sources import PACKAGE, stamp

_normalize: Any = normalize_signature
_LOCATORS: list[Any] = caching.CacheImpl._locator_classes  # asked one after the other


class Locator:
    """Where numba keeps the machine code of this package's functions: where it always does, under our fingerprint."""

    @classmethod
    def from_function(cls, function: Any, path: str) -> Any:
        """None for functions of others."""
        source = Path(path)
        if not source.is_relative_to(PACKAGE):
            return None
        also = function.__globals__.get("__sources__", ())  # of a function that got other globals than its file has
        for kind in _LOCATORS:
            located = None if kind is cls else kind.from_function(function, path)
            if located is not None:
                located.get_source_stamp = lambda: stamp(source, *also)
                return located
        return None


_LOCATORS.insert(0, Locator)


def found_at_once(dispatcher: Any) -> Any:
    """Load machine code of a function of plain numbers that counts no references without the compiler.

    Numba makes ready for compiling first, which takes longer than loading; what compiles later does so then.
    """
    kept: Any = dispatcher._cache
    load = kept.load_overload

    def found(signature: Any, context: Any) -> Any:
        arguments, _ = _normalize(signature)
        if not all(isinstance(kind, types.Number) for kind in arguments):
            return load(signature, context)
        with kept._guard_against_spurious_io_errors():
            return kept._load_overload(signature, context)

    if hasattr(kept, "_load_overload"):  # not where no folder can be written
        kept.load_overload = found
    return dispatcher
