"""Calls by address from compiled code, so that loops are compiled once and cached whatever they call.

Two kinds of addresses, and no way from one to the other. *C*: where the code is of a C function, or of a jitted
function behind the C entry that numba makes for it (`c_address`); `c_call` calls it, and an exception in it is
lost. *Raising*: where the code of a jitted function itself is (`raising_address`), which says whether it raised;
`raising_call` hears that. Calling one kind as the other is a crash, so the names say which is which.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic as _intrinsic

#: numba is typed in part only.
cgutils: Any = _cgutils
intrinsic: Any = _intrinsic
_STATUS, _BYTES = ir.IntType(32), ir.IntType(8).as_pointer()

#: The status of a function that raised an exception.
RAISED = 1

#: Signature of a subsystem step, for functions that are compiled to be called by address.
ADVANCE_CALL: object = types.int64(
    types.intp, types.int64, types.float64, types.float64, types.float64, types.int64, types.intp, types.intp
)
#: Of a Jacobian, `response(data, t0, t1, H, n, coefficients, weight, stride, result)`.
RESPONSE: object = types.int64(
    types.intp,
    *[types.float64] * 3,
    *(types.int64, types.intp, types.intp, types.int64, types.intp),
)
#: Of saving and restoring, `keep(data)`.
KEEPING: object = types.int64(types.intp)
#: Of a law, `law(arguments, values)`, and of its derivatives, `partials(arguments, nominal, values, slopes)`.
LAW: object = types.int64(types.intp, types.intp)
PARTIALS: object = types.int64(*[types.intp] * 4)


def c_address(function: Callable[..., object], signature: Any) -> int:
    """Where the C entry of a `compiled` function of plain numbers is, for `c_call` and for callers without Python.

    >>> from cosolve.jit import compiled
    >>> @compiled
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> c_address(twice, types.float64(types.float64)) > 0
    True
    """
    dispatcher: Any = function
    dispatcher.compile(signature)
    found = dispatcher.overloads[tuple(signature.args)]
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name))


def raising_address(function: Any, signature: Any = None) -> int:
    """Where the code of a jitted function is, for `raising_call`; without a signature: it has been jitted for one only.

    >>> from cosolve.jit import njit
    >>> raising_address(njit("int64(int64, int64)")(lambda a, b: a + b)) > 0
    True
    """
    if signature is not None:
        function.compile(signature)
        made = function.overloads[tuple(signature.args)]
    else:
        (made,) = function.overloads.values()
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))


def c_call(signature: Any) -> Callable[..., int]:
    """A function for compiled code that calls what is at a C address (its first argument) with this signature.

    >>> from cosolve.jit import compiled
    >>> unary = types.float64(types.float64)
    >>> @compiled
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> call = c_call(unary)
    >>> @compiled
    ... def four_times(at: int, x: float) -> float:
    ...     return call(at, call(at, x))
    >>> four_times(c_address(twice, unary), 1.5)
    6.0
    """
    nothing = signature.return_type == types.void

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        gives = ir.VoidType() if nothing else context.get_value_type(signature.return_type)
        takes = [context.get_value_type(kind) for kind in signature.args]
        result = builder.call(builder.inttoptr(values[0], ir.FunctionType(gives, takes).as_pointer()), values[1:])
        return context.get_dummy_value() if nothing else result

    call: Callable[..., int] = fixed(signature.return_type(types.intp, *signature.args), generate)
    return call


def raising_call(signature: Any) -> Callable[..., int]:
    """The same for a raising address and functions that give a whole number: the result, or `RAISED`.

    Numba's own convention: the result and the exception go to the first two arguments, the status is returned.

    >>> from cosolve.jit import njit
    >>> unary = types.int64(types.int64)
    >>> def third(n):
    ...     if n == 0:
    ...         raise ValueError
    ...     return 3 * n
    >>> call, at = raising_call(unary), raising_address(njit(unary)(third))
    >>> [njit(lambda at, n: call(at, n))(at, n) for n in (5, 0)]
    [15, 1]
    """

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        word = context.get_value_type(signature.return_type)
        takes = [context.get_value_type(kind) for kind in signature.args]
        result, raised = cgutils.alloca_once(builder, word), cgutils.alloca_once(builder, _BYTES)
        kind = ir.FunctionType(_STATUS, [word.as_pointer(), _BYTES.as_pointer(), *takes]).as_pointer()
        status = builder.call(builder.inttoptr(values[0], kind), [result, raised, *values[1:]])
        good = builder.icmp_signed("==", status, ir.Constant(_STATUS, 0))
        return builder.select(good, builder.load(result), ir.Constant(word, RAISED))

    call: Callable[..., int] = fixed(signature.return_type(types.intp, *signature.args), generate)
    return call


def fixed(signature: Any, generate: Callable[..., Any]) -> Any:
    """A function for compiled code with this signature; `generate(context, builder, signature, values)` is its code."""

    def call(typing: Any, *_: Any) -> Any:
        return signature, generate

    names = ("typing", *(f"argument{k}" for k in range(len(signature.args))))
    call.__signature__ = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])  # type: ignore[attr-defined]
    return intrinsic(call)


_INT, _WORD = types.int32, types.intp

call_advance, call_response, call_keep = raising_call(ADVANCE_CALL), raising_call(RESPONSE), raising_call(KEEPING)
call_law, call_partials = raising_call(LAW), raising_call(PARTIALS)
#: Functions of one and of two words that give a word, of no argument, and library routines of six and nine pointers.
call_one, call_two = c_call(types.int64(_WORD)), c_call(types.int64(_WORD, _WORD))
call_nothing, call_six, call_nine = (c_call(types.void(*[_WORD] * n)) for n in (0, 6, 9))
#: C functions of words that return an `int`.
call_status_2, call_status_4, call_status_5 = (c_call(_INT(*[_WORD] * n)) for n in (2, 4, 5))
#: `fmi2DoStep`, and `fmi3DoStep` with its four results in the last arguments.
call_step_2 = c_call(_INT(_WORD, types.float64, types.float64, _INT))
call_step_3 = c_call(_INT(_WORD, types.float64, types.float64, types.int8, *[_WORD] * 4))
