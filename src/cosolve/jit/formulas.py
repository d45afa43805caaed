"""Formulas on a few numbers that compiled code takes as instructions, without a function of their own.

Numba compiles each function by itself, optimises it and once more in every caller: for a cross product that takes
longer than for the instructions it consists of. A formula is a plain Python function of numbers, tuples of numbers and
arrays, without branches. Python calls it as it stands; where compiled code calls it, it is run once
on stand-ins that write down the instructions.
"""

# mypy: disable-error-code="no-untyped-call, no-untyped-def"

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from operator import add, mul
from typing import Any, TypeVar, cast

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import infer, infer_global, make_intrinsic_template
from numba.np.arrayobj import load_item, make_array, store_item

F = TypeVar("F", bound=Callable[..., object])

_F64 = ir.DoubleType()


class _Number:
    """A double in the making; without a builder nothing is written down."""

    def __init__(self, builder: Any, value: Any = None) -> None:
        self.builder, self.value = builder, value

    def _of(self, other: Any) -> Any:
        return other.value if isinstance(other, _Number) else ir.Constant(_F64, float(other))

    def _made(self, instruction: str, *operands: Any) -> _Number:
        if self.builder is None:
            return self
        values = [self._of(operand) for operand in operands]
        return _Number(self.builder, getattr(self.builder, instruction)(*values))

    def __add__(self, other: Any) -> _Number:
        return self._made("fadd", self, other)

    def __radd__(self, other: Any) -> _Number:
        return self._made("fadd", other, self)

    def __sub__(self, other: Any) -> _Number:
        return self._made("fsub", self, other)

    def __rsub__(self, other: Any) -> _Number:
        return self._made("fsub", other, self)

    def __mul__(self, other: Any) -> _Number:
        return self._made("fmul", self, other)

    def __rmul__(self, other: Any) -> _Number:
        return self._made("fmul", other, self)

    def __truediv__(self, other: Any) -> _Number:
        return self._made("fdiv", self, other)

    def __rtruediv__(self, other: Any) -> _Number:
        return self._made("fdiv", other, self)

    def __neg__(self) -> _Number:
        return self._made("fneg", self)

    def __gt__(self, other: Any) -> _Condition:
        return self._compared(">", other)

    def __lt__(self, other: Any) -> _Condition:
        return self._compared("<", other)

    def __eq__(self, other: object) -> _Condition:  # type: ignore[override]
        return self._compared("==", other)

    __hash__ = None  # type: ignore[assignment]

    def _compared(self, how: str, other: Any) -> _Condition:
        if self.builder is None:
            return _Condition(None)
        return _Condition(self.builder, self.builder.fcmp_ordered(how, self.value, self._of(other)))


class _Condition:
    """A condition in the making, for `chosen`; Python cannot branch on it."""

    def __init__(self, builder: Any, value: Any = None) -> None:
        self.builder, self.value = builder, value

    def __bool__(self) -> bool:
        raise TypeError("a formula has no branches: use chosen(condition, a, b) in place of 'a if condition else b'")


def chosen(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition (`<`, `>` or `==` of numbers) holds, else `b`; in formulas, where both are worked out.

    >>> chosen(2.0 > 1.0, 5.0, 6.0)
    5.0
    """
    if not isinstance(condition, _Condition):
        return a if condition else b
    if condition.builder is None:
        return _Number(None)
    of = _Number(condition.builder)._of
    return _Number(condition.builder, condition.builder.select(condition.value, of(a), of(b)))


class _Integer:
    """A whole number in the making, for places in arrays."""

    def __init__(self, builder: Any, value: Any = None) -> None:
        self.builder, self.value = builder, value

    def _made(self, instruction: str, known: Callable[[int, int], int], other: int | _Integer) -> _Integer:
        if self.builder is None:
            return self
        a, b = self.value, _word(other)
        if isinstance(a, ir.Constant) and isinstance(b, ir.Constant):
            return _Integer(self.builder, _word(known(a.constant, b.constant)))
        return _Integer(self.builder, getattr(self.builder, instruction)(a, b))

    def __add__(self, other: int | _Integer) -> _Integer:
        return self._made("add", add, other)

    def __mul__(self, other: int | _Integer) -> _Integer:
        return self._made("mul", mul, other)

    __radd__, __rmul__ = __add__, __mul__


class _Array:
    """An array that is read from and written to; places count from its beginning.

    Where a row begins is worked out once: most instructions of a formula would be about places otherwise.
    """

    def __init__(self, builder: Any, context: Any = None, kind: Any = None, value: Any = None) -> None:
        self.builder, self.context, self.kind, self.value = builder, context, kind, value
        self._rows: dict[Any, Any] = {}

    def _pointer(self, place: Any) -> Any:
        places = [_word(k) for k in (place if isinstance(place, tuple) else (place,))]
        if self.kind.layout == "C" and len(places) <= 2:
            return self.builder.gep(self._row(places[:-1]), places[-1:])
        array = make_array(self.kind)(self.context, self.builder, self.value)
        return cgutils.get_item_pointer(self.context, self.builder, self.kind, array, places, wraparound=False)

    def _row(self, places: list[Any]) -> Any:
        """A pointer to the row at a place, to all for no place."""
        key = tuple(place.constant if isinstance(place, ir.Constant) else place for place in places)
        if key not in self._rows:
            if places:
                width = self.builder.extract_value(self.value, [self._field("shape"), 1])
                self._rows[key] = self.builder.gep(self._row([]), [self.builder.mul(*places, width)])
            else:
                self._rows[key] = self.builder.extract_value(self.value, self._field("data"))
        return self._rows[key]

    def _field(self, name: str) -> int:
        return int(self.context.data_model_manager[self.kind].get_field_position(name))

    def __getitem__(self, place: Any) -> _Number:
        if self.builder is None:
            return _Number(None)
        return _Number(self.builder, load_item(self.context, self.builder, self.kind, self._pointer(place)))

    def __setitem__(self, place: Any, value: Any) -> None:
        if self.builder is not None:
            number = _Number(self.builder)._of(value)
            store_item(self.context, self.builder, self.kind, number, self._pointer(place))


def _word(value: Any) -> Any:
    return value.value if isinstance(value, _Integer) else ir.Constant(ir.IntType(64), value)


def _taken(kind: Any) -> Any:
    """The type in which a formula takes an argument; None for what it cannot take."""
    kind = types.unliteral(kind)
    if isinstance(kind, types.Integer):
        return types.intp
    if isinstance(kind, types.Float):
        return types.float64
    if isinstance(kind, types.BaseTuple):
        entries: Any = kind
        if all(isinstance(entry, types.Number) for entry in entries):
            return types.UniTuple(types.float64, len(entries))
    return kind if isinstance(kind, types.Array) and kind.dtype == types.float64 else None


def _stand_in(kind: Any, builder: Any = None, context: Any = None, value: Any = None) -> Any:
    if kind == types.intp:
        return _Integer(builder, value)
    if kind == types.float64:
        return _Number(builder, value)
    if isinstance(kind, types.Array):
        return _Array(builder, context, kind, value)
    entries = range(len(kind))
    return tuple(_Number(builder, None if builder is None else builder.extract_value(value, k)) for k in entries)


def formula(function: F) -> F:
    """Compiled code may call this function of numbers, tuples and arrays of doubles.

    It gives a number, a tuple of numbers, or nothing where it writes into arrays. Loops are those of Python, written
    out turn by turn.

    `+`, `-`, `*` and `/` are what there is (division by zero gives an infinity), `chosen` and other formulas. Whole
    arguments are places in arrays, counted from the beginning.

    >>> from cosolve.jit import compiled
    >>> @formula
    ... def middle(a, b):
    ...     return tuple(0.5 * (x + y) for x, y in zip(a, b, strict=True))
    >>> middle((0.0, 1.0), (4.0, 4.0))
    (2.0, 2.5)
    >>> compiled(lambda x: middle((x, 1.0), (4.0, x))[1])(3.0)
    2.0
    """

    def typed(typing: Any, *given: Any) -> Any:
        kinds = [_taken(kind) for kind in given]
        if None in kinds:
            return None
        result = function(*map(_stand_in, kinds))
        many = isinstance(result, tuple)
        gives: Any = types.UniTuple(types.float64, len(result)) if many else types.float64  # type: ignore[arg-type]
        if result is None:
            gives = types.void

        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            given = (_stand_in(kind, builder, context, value) for kind, value in zip(kinds, values, strict=True))
            made: Any = function(*given)
            if made is None:
                return context.get_dummy_value()
            of = _Number(builder)._of
            return context.make_tuple(builder, gives, [of(entry) for entry in made]) if many else of(made)

        return gives(*kinds), generate

    own = signature(function)
    context = Parameter("typing", Parameter.POSITIONAL_OR_KEYWORD)
    typed.__signature__ = own.replace(parameters=[context, *own.parameters.values()])  # type: ignore[attr-defined]
    template = make_intrinsic_template(function, typed, function.__name__)
    infer(template)
    infer_global(function, types.Function(template))
    return function


@formula
def larger(a: float, b: float) -> float:
    """`max(a, b)` as Python has it.

    >>> larger(1.0, 2.0)
    2.0
    """
    return cast(float, chosen(b > a, b, a))


@formula
def smaller(a: float, b: float) -> float:
    """`min(a, b)` as Python has it.

    >>> smaller(1.0, 2.0)
    1.0
    """
    return cast(float, chosen(b < a, b, a))
