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
