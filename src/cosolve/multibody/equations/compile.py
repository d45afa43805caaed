"""Decorators for the compiled equations of motion, and calls by address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from cosolve.jit import njit

F = TypeVar("F", bound=Callable[..., object])


def _jit(function: Any, **options: bool | str) -> Any:
    return njit(cache=True, error_model="numpy", **options)(function)


def compiled(function: F) -> F:
    """`numba.njit`, kept on disk; division by zero gives an infinity, as in numpy.

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
