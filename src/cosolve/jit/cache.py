"""Machine code on disk that is made anew whenever what it was made from changes.

Numba keeps the machine code of a function as long as the function's own file stays the same. But what the function
calls is compiled into it: after an update, code from one version would call code from another. For functions of this
package numba is therefore told a fingerprint of all sources that they are made from (`sources.py`). A file that is
damaged or can be of another user is made anew (`files.py`), and where none can be written, the code stays in memory.
"""

from __future__ import annotations

import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba import types
from numba.core import caching
from numba.core.sigutils import normalize_signature

from cosolve.jit import files
from cosolve.jit.sources import PACKAGE, stamp

_normalize: Any = normalize_signature
_OURS = "cosolve"  # marks fingerprints
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
                located.get_source_stamp = lambda: (_OURS, stamp(source, *also))
                return located
        return None


_LOCATORS.insert(0, Locator)


_replaced: Any = caching.IndexDataCacheFile
_Files: Any = getattr(_replaced, "original", _replaced)  # once only, also where this module is imported anew


class Checked(_Files):  # type: ignore[misc]
    """The files of one function of this package."""

    def save(self, key: Any, data: Any) -> None:
        """Keep machine code, if there is room for it."""
        with suppress(OSError):
            super().save(key, data)

    def _load_index(self) -> Any:
        try:
            if Path(self._index_path).exists():
                files.refuse_foreign(Path(self._index_path))
            return super()._load_index()
        except Exception:  # pickle meets damaged bytes with many kinds of error
            return {}

    def _load_data(self, name: str) -> Any:
        code = files.read(Path(self._data_path(name)))  # numba compiles after an OSError
        return pickle.loads(code)  # noqa: S301  of this user only

    def _save_data(self, name: str, data: Any) -> None:
        with self._open_for_write(self._data_path(name)) as file:
            file.write(files.packed(self._dump(data)))


def _files(cache_path: str, filename_base: str, source_stamp: Any) -> Any:
    """Those of functions of this package, which have our fingerprint, and numba's own for all others.

    Other functions are also read by programs that do not load this package.
    """
    ours = isinstance(source_stamp, tuple) and source_stamp[0] == _OURS
    return (Checked if ours else _Files)(cache_path, filename_base, source_stamp)


_caching: Any = caching
_caching.IndexDataCacheFile = _files
_caching.IndexDataCacheFile.original = _Files


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
