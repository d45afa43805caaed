"""Dual numbers for compiled code: a value with its derivatives by `n` variables (forward-mode differentiation).

A jitted function that is compiled for dual arguments instead of doubles gives its exact derivatives, through its
branches, loops and calls. What has no rule here (tables, arrays, rounding) does not compile for duals; differences
are taken instead, and nothing loses its derivative on the way.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc, attr-defined, type-arg"

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic as _intrinsic
from numba.extending import lower_builtin, lower_cast, models, register_model

intrinsic: Any = _intrinsic
_F64 = types.float64
_ZERO = ir.Constant(ir.DoubleType(), 0.0)


class Dual(types.Type):
    """A double and its derivatives by `n` variables; plain numbers turn into it, and never back."""

    def __init__(self, n: int) -> None:
        self.n = n
        super().__init__(name=f"Dual({n})")

    def can_convert_from(self, typingctx, other):
        from numba.core.typeconv import Conversion

        return Conversion.safe if isinstance(other, (types.Float, types.Integer)) else None

    def unify(self, typingctx, other):
        return self if isinstance(other, (types.Float, types.Integer)) else None


@register_model(Dual)
class _DualModel(models.StructModel):
    def __init__(self, manager, of):
        super().__init__(manager, of, [("value", _F64), ("slopes", types.UniTuple(_F64, of.n))])


def _made(context, builder, of, value, slopes):
    made = cgutils.create_struct_proxy(of)(context, builder)
    made.value, made.slopes = value, cgutils.pack_array(builder, slopes)
    return made._getvalue()


def _taken(context, builder, of, value):
    """The value and the derivatives; a plain number has none."""
    if not isinstance(of, Dual):
        return value, None
    found = cgutils.create_struct_proxy(of)(context, builder, value=value)
    return found.value, cgutils.unpack_tuple(builder, found.slopes, of.n)


@lower_cast(types.Float, Dual)
@lower_cast(types.Integer, Dual)
def _from_number(context, builder, given, wanted, value):
    return _made(context, builder, wanted, context.cast(builder, value, given, _F64), [_ZERO] * wanted.n)


def _is_number(of) -> bool:
    return isinstance(of, (types.Float, types.Integer))


def _typed(function: Any, count: int, gives: Callable[[Any], Any]) -> None:
    """`function` takes so many numbers, some of them dual; plain ones are doubles."""

    @infer_global(function)
    class _Template(AbstractTemplate):
        def generic(self, args, kws):
            found = [a for a in args if isinstance(a, Dual)]
            if kws or len(args) != count or not found or not all(isinstance(a, Dual) or _is_number(a) for a in args):
                return None
            if any(a != found[0] for a in found):
                return None
            return signature(gives(found[0]), *(a if isinstance(a, Dual) else _F64 for a in args))


def _sides(count: int) -> list[tuple[Any, ...]]:
    return [(Dual,)] if count == 1 else [(Dual, Dual), (Dual, types.Float), (types.Float, Dual)]


# -- arithmetic ------------------------------------------------------------------------------------------------------


def _add(builder, x, y):
    return builder.fadd(x, y), lambda a, b: _sum(builder, a, b)


def _subtract(builder, x, y):
    return builder.fsub(x, y), lambda a, b: _sum(builder, a, None if b is None else builder.fneg(b))


def _multiply(builder, x, y):
    def slope(a, b):
        return _sum(builder, _times(builder, a, y), _times(builder, b, x))

    return builder.fmul(x, y), slope


def _divide(builder, x, y):
    quotient = builder.fdiv(x, y)

    def slope(a, b):
        above = _sum(builder, a, None if b is None else builder.fneg(builder.fmul(quotient, b)))
        return builder.fdiv(above, y)

    return quotient, slope


def _sum(builder, a, b):
    return b if a is None else a if b is None else builder.fadd(a, b)


def _times(builder, a, by):
    return None if a is None else builder.fmul(a, by)


def _arithmetic(functions: tuple[Any, ...], rule: Any) -> None:
    def lower(context, builder, sig, args):
        (x, a), (y, b) = (_taken(context, builder, of, value) for of, value in zip(sig.args, args, strict=True))
        value, slope = rule(builder, x, y)
        n = sig.return_type.n
        slopes = [slope(None if a is None else a[k], None if b is None else b[k]) for k in range(n)]
        return _made(context, builder, sig.return_type, value, slopes)

    for function in functions:
        _typed(function, 2, lambda dual: dual)
        for side in _sides(2):
            lower_builtin(function, *side)(lower)


_arithmetic((operator.add, operator.iadd), _add)
_arithmetic((operator.sub, operator.isub), _subtract)
_arithmetic((operator.mul, operator.imul), _multiply)
_arithmetic((operator.truediv, operator.itruediv), _divide)


# -- comparisons, which see values only ------------------------------------------------------------------------------


def _comparison(function: Any, sign: str) -> None:
    def lower(context, builder, sig, args):
        (x, _), (y, _) = (_taken(context, builder, of, value) for of, value in zip(sig.args, args, strict=True))
        return (builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered)(sign, x, y)

    _typed(function, 2, lambda dual: types.boolean)
    for side in _sides(2):
        lower_builtin(function, *side)(lower)


for _function, _sign in (
    *((operator.lt, "<"), (operator.le, "<="), (operator.gt, ">"), (operator.ge, ">=")),
    *((operator.eq, "=="), (operator.ne, "!=")),
):
    _comparison(_function, _sign)


# -- functions, each with its value and its derivatives --------------------------------------------------------------


def _chain(functions: tuple[Any, ...], value: Any, *rules: Any) -> None:
    """Functions of numbers: `rules` are the derivatives by each argument."""
    count = len(rules)

    def lower(context, builder, sig, args):
        parts = [_taken(context, builder, of, given) for of, given in zip(sig.args, args, strict=True)]
        plain, numbers = signature(_F64, *[_F64] * count), [x for x, _ in parts]
        slopes: list[Any] = [None] * sig.return_type.n
        for rule, (_, inner) in zip(rules, parts, strict=True):
            if inner is None:
                continue
            outer = context.compile_internal(builder, rule, plain, numbers)
            for k, slope in enumerate(inner):  # a variable that does not matter has no derivative that is not finite
                share = builder.fmul(outer, slope)
                none = builder.fcmp_ordered("==", slope, _ZERO)
                slopes[k] = _sum(builder, slopes[k], builder.select(none, _ZERO, share))
        return _made(
            context, builder, sig.return_type, context.compile_internal(builder, value, plain, numbers), slopes
        )

    for function in functions:
        _typed(function, count, lambda dual: dual)
        for side in _sides(count):
            lower_builtin(function, *side)(lower)


@intrinsic
def _over(typing, a, b):
    """A quotient that may be an infinity."""
    return _F64(_F64, _F64), lambda context, builder, sig, args: builder.fdiv(*args)


def _tangent_slope(x):
    t = math.tan(x)
    return 1.0 + t * t


def _tanh_slope(x):
    t = math.tanh(x)
    return 1.0 - t * t


_chain((operator.neg,), lambda x: -x, lambda x: -1.0)
_chain((operator.pos, float), lambda x: x, lambda x: 1.0)
_chain((abs, np.abs, np.fabs, math.fabs), lambda x: abs(x), lambda x: 1.0 if x >= 0.0 else -1.0)
_chain((np.sign,), lambda x: np.sign(x), lambda x: 0.0)
_chain((math.sin, np.sin), lambda x: math.sin(x), lambda x: math.cos(x))
_chain((math.cos, np.cos), lambda x: math.cos(x), lambda x: -math.sin(x))
_chain((math.tan, np.tan), lambda x: math.tan(x), _tangent_slope)
_chain((math.asin, np.arcsin), lambda x: math.asin(x), lambda x: _over(1.0, math.sqrt(1.0 - x * x)))
_chain((math.acos, np.arccos), lambda x: math.acos(x), lambda x: _over(-1.0, math.sqrt(1.0 - x * x)))
_chain((math.atan, np.arctan), lambda x: math.atan(x), lambda x: 1.0 / (1.0 + x * x))
_chain((math.sinh, np.sinh), lambda x: math.sinh(x), lambda x: math.cosh(x))
_chain((math.cosh, np.cosh), lambda x: math.cosh(x), lambda x: math.sinh(x))
_chain((math.tanh, np.tanh), lambda x: math.tanh(x), _tanh_slope)
_chain((math.exp, np.exp), lambda x: math.exp(x), lambda x: math.exp(x))
_chain((math.expm1, np.expm1), lambda x: math.expm1(x), lambda x: math.exp(x))
_chain((math.log, np.log), lambda x: math.log(x), lambda x: _over(1.0, x))
_chain((math.log1p, np.log1p), lambda x: math.log1p(x), lambda x: _over(1.0, 1.0 + x))
_chain((math.log10, np.log10), lambda x: math.log10(x), lambda x: _over(0.4342944819032518, x))
_chain((math.sqrt, np.sqrt), lambda x: math.sqrt(x), lambda x: _over(0.5, math.sqrt(x)))


def _power(x, y):
    return x**y


def _power_by_base(x, y):
    return y * x ** (y - 1.0)


def _power_by_exponent(x, y):
    return x**y * math.log(x)


_chain((operator.pow, operator.ipow, pow, math.pow, np.power), _power, _power_by_base, _power_by_exponent)
_chain(
    (math.hypot, np.hypot),
    lambda x, y: math.hypot(x, y),
    lambda x, y: _over(x, math.hypot(x, y)),
    lambda x, y: _over(y, math.hypot(x, y)),
)
_chain(
    (math.copysign, np.copysign),
    lambda x, y: math.copysign(x, y),
    lambda x, y: math.copysign(1.0, x) * math.copysign(1.0, y),
    lambda x, y: 0.0,
)
_chain(
    (math.atan2, np.arctan2),
    lambda y, x: math.atan2(y, x),
    lambda y, x: _over(x, x * x + y * y),
    lambda y, x: _over(-y, x * x + y * y),
)
_chain(
    (max, np.maximum),
    lambda x, y: max(x, y),
    lambda x, y: 1.0 if x >= y else 0.0,
    lambda x, y: 0.0 if x >= y else 1.0,
)
_chain(
    (min, np.minimum),
    lambda x, y: min(x, y),
    lambda x, y: 1.0 if x <= y else 0.0,
    lambda x, y: 0.0 if x <= y else 1.0,
)


# -- in and out ------------------------------------------------------------------------------------------------------


def variable(n: int, k: int) -> Any:
    """A function for compiled code: the number it is given, as variable `k` of `n`."""
    of = Dual(n)

    @intrinsic
    def made(typing, x):
        def generate(context, builder, sig, args):
            slopes = [ir.Constant(ir.DoubleType(), float(j == k)) for j in range(n)]
            return _made(context, builder, of, args[0], slopes)

        return of(_F64), generate

    return made


def slope_by(k: int) -> Any:
    """A function for compiled code: the derivative by variable `k` of what it is given; 0 of a plain number."""

    @intrinsic
    def found(typing, x):
        def generate(context, builder, sig, args):
            slopes = _taken(context, builder, sig.args[0], args[0])[1]
            return _ZERO if slopes is None else slopes[k]

        if isinstance(x, Dual) or _is_number(x):
            return _F64(x if isinstance(x, Dual) else _F64), generate
        return None

    return found
