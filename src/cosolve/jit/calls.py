"""Calls by address from compiled code, so that loops are compiled once and cached whatever they call."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_I64, _I32, _I8, _F64 = ir.IntType(64), ir.IntType(32), ir.IntType(8), ir.DoubleType()

#: The status of a function that raised an exception.
RAISED = 1

#: Signature of a crossing, for functions that are compiled to be called by address.
CROSS = types.int64(
    types.intp, types.int64, types.float64, types.float64, types.float64, types.int64, types.intp, types.intp
)
#: Of a law, `law(arguments, values)`, and of its derivatives, `partials(arguments, nominal, values, slopes)`.
LAW = types.int64(types.intp, types.intp)
PARTIALS = types.int64(*[types.intp] * 4)


def _call(result: Any, arguments: list[Any]) -> Any:
    """Code that calls the function at the address in the first argument."""

    def generate(context, builder, signature, values):
        kind = ir.FunctionType(result, arguments).as_pointer()
        return builder.call(builder.inttoptr(values[0], kind), values[1:])

    return generate


@intrinsic
def call_cross(typing, address, data, mode, t0, t1, H, n, coefficients, outputs):
    """`cross(data, mode, t0, t1, H, n, coefficients, outputs)` at an address."""
    signature = types.int64(types.intp, *CROSS.args)
    return signature, _call(_I64, [_I64, _I64, _F64, _F64, _F64, _I64, _I64, _I64])


@intrinsic
def call_two(typing, address, first, second):
    """`f(first, second)` at an address, all of them words."""
    return types.int64(*[types.intp] * 3), _call(_I64, [_I64] * 2)


def address(function: Any) -> int:
    """Where the machine code of a function is that numba has jitted for one signature; for the calls below.

    >>> from cosolve.jit import njit
    >>> address(njit("int64(int64, int64)")(lambda a, b: a + b)) > 0
    True
    """
    (made,) = function.overloads.values()
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))


def _call_jitted(arguments: list[Any]) -> Any:
    """Code that calls by such an address; the result, or RAISED.

    Numba's own convention: the result and the exception go to the first two arguments, the status is returned.
    """

    def generate(context, builder, signature, values):
        result, raised = cgutils.alloca_once(builder, _I64), cgutils.alloca_once(builder, _I8.as_pointer())
        kind = ir.FunctionType(_I32, [_I64.as_pointer(), _I8.as_pointer().as_pointer(), *arguments]).as_pointer()
        status = builder.call(builder.inttoptr(values[0], kind), [result, raised, *values[1:]])
        good = builder.icmp_signed("==", status, ir.Constant(_I32, 0))
        return builder.select(good, builder.load(result), ir.Constant(_I64, RAISED))

    return generate


@intrinsic
def call_jitted_cross(typing, address, data, mode, t0, t1, H, n, coefficients, outputs):
    """A crossing jitted by numba, which may raise."""
    signature = types.int64(types.intp, *CROSS.args)
    return signature, _call_jitted([_I64, _I64, _F64, _F64, _F64, _I64, _I64, _I64])


@intrinsic
def call_law(typing, address, arguments, values):
    """`law(arguments, values)`."""
    return types.int64(*[types.intp] * 3), _call_jitted([_I64] * 2)


@intrinsic
def call_partials(typing, address, arguments, nominal, values, slopes):
    """`partials(arguments, nominal, values, slopes)`."""
    return types.int64(*[types.intp] * 5), _call_jitted([_I64] * 4)


@intrinsic
def call_one(typing, address, first):
    """`f(first)` at an address."""
    return types.int64(*[types.intp] * 2), _call(_I64, [_I64])


@intrinsic
def call_six(typing, address, a, b, c, d, e, f):
    """A library routine with six pointer arguments."""
    return types.void(*[types.intp] * 7), _without_result(6)


@intrinsic
def call_nine(typing, address, a, b, c, d, e, f, g, h, i):
    """A library routine with nine pointer arguments."""
    return types.void(*[types.intp] * 10), _without_result(9)


def _without_result(count: int) -> Any:
    call = _call(ir.VoidType(), [_I64] * count)

    def generate(context, builder, signature, values):
        call(context, builder, signature, values)
        return context.get_dummy_value()

    return generate


@intrinsic
def doubles_at(typing, address):
    """A pointer to doubles from an address."""

    def generate(context, builder, signature, values):
        return builder.inttoptr(values[0], _F64.as_pointer())

    return types.CPointer(types.float64)(types.intp), generate


@intrinsic
def words_at(typing, address):
    """A pointer to 64-bit words from an address."""

    def generate(context, builder, signature, values):
        return builder.inttoptr(values[0], _I64.as_pointer())

    return types.CPointer(types.int64)(types.intp), generate


@intrinsic
def call_status_2(typing, address, a, b):
    """A C function of two words that returns an `int`."""
    return types.int32(*[types.intp] * 3), _call(_I32, [_I64] * 2)


@intrinsic
def call_status_4(typing, address, a, b, c, d):
    """A C function of four words that returns an `int`."""
    return types.int32(*[types.intp] * 5), _call(_I32, [_I64] * 4)


@intrinsic
def call_status_5(typing, address, a, b, c, d, e):
    """A C function of five words that returns an `int`."""
    return types.int32(*[types.intp] * 6), _call(_I32, [_I64] * 5)


@intrinsic
def call_step_2(typing, address, instance, t, h, flag):
    """`fmi2DoStep`."""
    signature = types.int32(types.intp, types.intp, types.float64, types.float64, types.int32)
    return signature, _call(_I32, [_I64, _F64, _F64, _I32])


@intrinsic
def call_step_3(typing, address, instance, t, h, flag, a, b, c, d):
    """`fmi3DoStep`; its four results go to the last arguments."""
    signature = types.int32(types.intp, types.intp, types.float64, types.float64, types.int8, *[types.intp] * 4)
    return signature, _call(_I32, [_I64, _F64, _F64, _I8, *[_I64] * 4])


# -- numbers by the address of their array, so that compiled functions hand on one number -----------------------------


def _load(kind):
    def generate(context, builder, signature, values):
        return builder.load(builder.gep(builder.inttoptr(values[0], kind.as_pointer()), [values[1]]))

    return generate


def _store(kind):
    def generate(context, builder, signature, values):
        builder.store(values[2], builder.gep(builder.inttoptr(values[0], kind.as_pointer()), [values[1]]))
        return context.get_dummy_value()

    return generate


@intrinsic
def word_at(typing, address, index):
    """A whole number."""
    return types.int64(types.int64, types.int64), _load(_I64)


@intrinsic
def put_word_at(typing, address, index, value):
    """Set a whole number."""
    return types.void(types.int64, types.int64, types.int64), _store(_I64)


@intrinsic
def double_at(typing, address, index):
    """A double."""
    return types.float64(types.int64, types.int64), _load(_F64)


@intrinsic
def put_double_at(typing, address, index, value):
    """Set a double."""
    return types.void(types.int64, types.int64, types.float64), _store(_F64)


@intrinsic
def finite(typing, x):
    """False for NaN and infinities: only of finite numbers the difference to themselves is 0."""

    def generate(context, builder, signature, values):
        return builder.fcmp_ordered("==", builder.fsub(values[0], values[0]), ir.Constant(_F64, 0.0))

    return types.boolean(types.float64), generate


@intrinsic
def short_loop(typing):
    """Keeps the loop it stands in as it is written: unrolling and vectorising cost more than a few numbers take.

    No machine code comes of it, but a convergent call must not be copied.
    """

    def generate(context, builder, signature, values):
        call = builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], True)
        call.attributes.add("convergent")
        return context.get_dummy_value()

    return types.void(), generate
