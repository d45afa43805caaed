"""One decorator for the compiled equations of motion, cached on disk where that is possible.

Numba looks only at the file of the function itself when it decides whether a cached version is still good. Our
functions call each other across files, so the files below count as the source of every function too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])

_NAMES = (
    *(
        "arrays",
        "compile",
        "constraints",
        "coupling_loads",
        "dynamics",
        "entries",
        "forces",
        "joint_math",
        "kinematics",
    ),
    *("observe", "radau", "sensitivity", "stepping"),
)
_FILES = [path.stat() for name in _NAMES if (path := Path(__file__).with_name(f"{name}.py")).exists()]
_STAMP = (max((s.st_mtime for s in _FILES), default=0.0), sum(s.st_size for s in _FILES))


def _jit(function: Any, **options: bool) -> Any:
    njit: Any = numba.njit  # its stubs do not know all options
    try:
        dispatcher = njit(cache=True, error_model="numpy", **options)(function)
        cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
        if hasattr(cache_file, "_source_stamp"):
            own = Path(function.__code__.co_filename).stat()
            cache_file._source_stamp = (*_STAMP, own.st_mtime, own.st_size)
    except RuntimeError:  # numba found no directory to write to
        dispatcher = njit(error_model="numpy", **options)(function)
    return dispatcher


def compiled(function: F) -> F:
    """`numba.njit` with the cache next to the source or, where that is read-only, in memory.

    >>> @compiled
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> twice(1.5)
    3.0
    """
    return cast(F, _jit(function))


def internal(function: F) -> F:
    """Like `compiled`, for functions that only compiled functions call: no entry from Python, which compiles faster.

    >>> @internal
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> @compiled
    ... def four_times(x: float) -> float:
    ...     return twice(twice(x))
    >>> four_times(1.5)
    6.0
    """
    return cast(F, _jit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True))


def address(function: Callable[..., object], signature: Any) -> int:
    """Where the machine code of a `compiled` function of plain numbers is, for callers without Python.

    >>> from numba import types
    >>> @compiled
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> address(twice, types.float64(types.float64)) > 0
    True
    """
    dispatcher: Any = function
    dispatcher.compile(signature)
    found = dispatcher.overloads[tuple(signature.args)]
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name))
