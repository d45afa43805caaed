"""Calls by address from compiled code, so that loops are compiled once and cached whatever they call."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

_I64, _F64 = ir.IntType(64), ir.DoubleType()

#: Signature of a crossing, for functions that are compiled to be called by address.
CROSS = types.int64(
    types.intp, types.int64, types.float64, types.float64, types.float64, types.int64, types.intp, types.intp
)
#: And of a law: `law(arguments, values) -> status`.
LAW = types.int64(types.intp, types.intp)


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


_I32, _I8 = ir.IntType(32), ir.IntType(8)


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


# -- tables: words that are addresses of arrays, so that compiled functions hand on one number ------------------------


def _element(builder, values, kind):
    """Where element `values[2]` of the array in field `values[1]` of the table at `values[0]` is."""
    fields = builder.inttoptr(values[0], _I64.as_pointer())
    start = builder.load(builder.gep(fields, [values[1]]))
    return builder.gep(builder.inttoptr(start, kind.as_pointer()), [values[2]])


@intrinsic
def word(typing, table, field, index):
    """A whole number of a table's array."""

    def generate(context, builder, signature, values):
        return builder.load(_element(builder, values, _I64))

    return types.int64(*[types.int64] * 3), generate


@intrinsic
def real(typing, table, field, index):
    """A double of a table's array."""

    def generate(context, builder, signature, values):
        return builder.load(_element(builder, values, _F64))

    return types.float64(*[types.int64] * 3), generate


@intrinsic
def put_word(typing, table, field, index, value):
    """Set a whole number of a table's array."""

    def generate(context, builder, signature, values):
        builder.store(values[3], _element(builder, values, _I64))
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


@intrinsic
def put_real(typing, table, field, index, value):
    """Set a double of a table's array."""

    def generate(context, builder, signature, values):
        builder.store(values[3], _element(builder, values, _F64))
        return context.get_dummy_value()

    return types.void(*[types.int64] * 3, types.float64), generate


@intrinsic
def double_at(typing, address, index):
    """A double by the address of its array."""

    def generate(context, builder, signature, values):
        return builder.load(builder.gep(builder.inttoptr(values[0], _F64.as_pointer()), [values[1]]))

    return types.float64(types.int64, types.int64), generate


@intrinsic
def put_double_at(typing, address, index, value):
    """Set a double by the address of its array."""

    def generate(context, builder, signature, values):
        builder.store(values[2], builder.gep(builder.inttoptr(values[0], _F64.as_pointer()), [values[1]]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float64), generate
