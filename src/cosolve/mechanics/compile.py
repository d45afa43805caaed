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


def _jit(function: Any, **options: bool | str) -> Any:
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

    Called from Python it leaves the interpreter to other threads meanwhile.

    >>> @compiled
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> twice(1.5)
    3.0
    """
    return cast(F, _jit(function, nogil=True))


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


def inlined(function: F) -> F:
    """Like `internal`, for functions that become part of each function that calls them: large, with few callers.

    Code of a called function is optimised once for itself and once more in every caller.

    >>> @inlined
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> @compiled
    ... def four_times(x: float) -> float:
    ...     return twice(twice(x))
    >>> four_times(1.5)
    6.0
    """
    return cast(F, _jit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, inline="always"))


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


def by_address(signature: Any) -> Any:
    """A function for compiled code that calls what is at an address (its first argument) with this signature.

    >>> from numba import types
    >>> unary = types.float64(types.float64)
    >>> @compiled
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> call = by_address(unary)
    >>> @compiled
    ... def four_times(at: int, x: float) -> float:
    ...     return call(at, call(at, x))
    >>> four_times(address(twice, unary), 1.5)
    6.0
    """
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types
    from numba.extending import intrinsic

    gathered: Any = types.StarArgTuple

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        arguments = [context.get_value_type(kind) for kind in signature.args]
        kind = ir.FunctionType(context.get_value_type(signature.return_type), arguments).as_pointer()
        given = [builder.extract_value(values[1], k) for k in range(len(arguments))]
        return builder.call(builder.inttoptr(values[0], kind), given)

    def call(typing: Any, at: Any, *arguments: Any) -> Any:
        return signature.return_type(types.int64, gathered.from_types(signature.args)), generate

    return intrinsic(call)
