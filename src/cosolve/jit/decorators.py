"""Decorators for functions that numba compiles: with machine code on disk, or in memory where no folder can be written.

Those from `entry` on count no references to arrays (`_nrt=False`), which is much of the time that numba takes to
compile functions on views, and most of the time that short ones take to run. Such functions make no arrays and give
none back but those of an address; numba says so where one tries.

Functions that only compiled code calls are not kept on disk: they are in the machine code of those that call them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast, overload

import numba

from cosolve.jit.cache import found_at_once
from cosolve.jit.linking import EntryCompiler, PartCompiler, of_any_value

F = TypeVar("F", bound=Callable[..., object])


@overload
def njit(function: F, /) -> F: ...  # type: ignore[overload-overlap]
@overload
def njit(*signature: object, **options: Any) -> Callable[[F], F]: ...
def njit(*arguments: Any, **options: Any) -> Any:
    """`numba.njit`; with `cache=True` machine code is kept on disk, or in memory where no folder can be written.

    >>> @njit(cache=True)
    ... def twice(x):
    ...     return 2 * x
    >>> twice(1.5)
    3.0
    """
    return _kept(numba.njit, arguments, options)


def called(signature: object, cache: bool = True) -> Callable[[F], F]:
    """For functions that are called by address only (`raising_address`): compiled at once, without any entry.

    A C entry would cost a short function half of its time, and lose its exceptions.

    >>> from cosolve.jit import raising_address
    >>> @called("int64(int64)")
    ... def twice(n):
    ...     return 2 * n
    >>> raising_address(twice) > 0
    True
    """
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": EntryCompiler}
    return njit(signature, cache=cache, _nrt=False, **options)


def _kept(decorator: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if not options.get("cache"):
        return decorator(*arguments, **options)

    def decorate(function: Any) -> Any:
        try:
            return decorator(*arguments, **options)(function)
        except RuntimeError:  # numba found no folder
            return decorator(*arguments, **{**options, "cache": False})(function)

    return decorate


_NO_ENTRY = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": PartCompiler}


def compiled(function: F) -> F:
    """Kept on disk; division by zero gives an infinity, as in numpy: a test at each would keep loops from vectors.

    Called from Python it leaves the interpreter to other threads meanwhile.

    >>> @compiled
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> twice(1.5)
    3.0
    """
    return njit(cache=True, error_model="numpy", nogil=True)(function)


def allocating(function: F) -> F:
    """Like `compiled`, for functions that only compiled functions call: code for these, and no machine code.

    >>> @allocating
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> @compiled
    ... def four_times(x: float) -> float:
    ...     return twice(twice(x))
    >>> four_times(1.5)
    6.0
    """
    return cast(F, of_any_value(njit(error_model="numpy", **_NO_ENTRY)(function)))


def inlined(function: F) -> F:
    """Like `allocating`, for functions that become part of each function that calls them: large, with few callers.

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
    return njit(error_model="numpy", inline="always", **_NO_ENTRY)(function)


def entry(function: F) -> F:
    """Like `compiled`, counting no references.

    >>> @entry
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> twice(1.5)
    3.0
    """
    options = {"error_model": "numpy", "nogil": True, "_nrt": False, "pipeline_class": EntryCompiler}
    return cast(F, found_at_once(njit(cache=True, **options)(function)))


def internal(function: F) -> F:
    """Like `allocating`, counting no references.

    >>> @internal
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> @compiled
    ... def four_times(x: float) -> float:
    ...     return twice(twice(x))
    >>> four_times(1.5)
    6.0
    """
    return cast(F, of_any_value(njit(error_model="numpy", _nrt=False, **_NO_ENTRY)(function)))


def part(function: F) -> F:
    """For short parts of loops, which go into the loops that use them; likewise without an entry.

    >>> @part
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> @compiled
    ... def four_times(x: float) -> float:
    ...     return twice(twice(x))
    >>> four_times(1.5)
    6.0
    """
    return njit(forceinline=True, _nrt=False, **_NO_ENTRY)(function)


def bare(function: F) -> F:
    """The same for functions that are called as they are.

    >>> @bare
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> @compiled
    ... def four_times(x: float) -> float:
    ...     return twice(twice(x))
    >>> four_times(1.5)
    6.0
    """
    return njit(_nrt=False, **_NO_ENTRY)(function)
