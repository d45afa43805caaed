"""Arrays of stand-ins, and what numpy's functions do with them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cosolve.trace.routines import FROM_C, OF_NUMBA, has_loop
from cosolve.trace.tape import Condition, Number, Tape, is_whole, power

_STAND_INS = (Number, Condition)


def _operators(ufunc: Any) -> tuple[Any, Any]:
    """The operator with an array on the left, and the one with it on the right."""

    def left(self: Array, other: Any) -> Any:
        return self._with(ufunc, other)

    def right(self: Array, other: Any) -> Any:
        return self._with(ufunc, other, True)

    return left, right


def _unary(ufunc: Any) -> Any:
    return lambda self: elementwise(self.tape, ufunc, self)


def _in_place(operation: Callable[[Any, Any], Any]) -> Any:
    def made(self: Array, other: Any) -> Array:
        self[...] = operation(self, other)
        return self

    return made


def _viewing(name: str) -> Any:
    """A method of numpy's arrays that moves entries about."""
    return lambda self, *arguments: self._view(getattr(self.data, name)(*arguments))


class Array:
    """An array of stand-ins and doubles; `data` is an array of objects.

    As in numpy all entries are of one kind: doubles, or whole numbers and conditions (`whole`).
    """

    def __init__(self, tape: Tape, data: Any) -> None:
        self.tape = tape
        self.data = np.asarray(data, dtype=object)

    # -- shape and entries -----------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths."""
        return self.data.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.data.ndim

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.data.size

    @property
    def T(self) -> Array:
        """The transpose; a view."""
        return self._view(self.data.T)

    @property
    def dtype(self) -> Any:
        """Doubles."""
        if self.whole:
            raise self.tape.refused("it asks for the type of an array of whole numbers")
        return np.dtype(np.float64)

    @property
    def whole(self) -> bool:
        """Whether the entries are whole numbers or conditions."""
        return self.data.size > 0 and is_whole(self.data.flat[0]) is True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # numpy and Python ask for such
            raise AttributeError(name)
        raise self.tape.refused(f"it uses .{name} of an array")

    def __hash__(self) -> int:
        raise self.tape.refused("it looks up an array")

    @property
    def flat(self) -> Iterator[Any]:
        """All entries."""
        return iter(self.ravel())

    def _view(self, data: Any) -> Array:
        made = Array.__new__(Array)
        made.tape, made.data = self.tape, data
        return made

    def _result(self, found: Any) -> Any:
        if isinstance(found, np.ndarray):
            return self._view(found)
        if isinstance(found, Number):  # another object each time, as in numpy
            return Number(self.tape, found.place, True, found.whole)
        return Condition(self.tape, found.place) if isinstance(found, Condition) else found

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self.data)))

    def __getitem__(self, place: Any) -> Any:
        return self._result(self.data[_places(place)])

    def __setitem__(self, place: Any, value: Any) -> None:
        if self.whole:
            raise self.tape.refused("it writes into an array of whole numbers")
        given = _doubles(of(self.tape, value).data)
        self.data[_places(place)] = given if given.ndim else given[()]

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("the truth value of an array with more than one element is ambiguous")
        return bool(self.data.ravel()[0])

    def __float__(self) -> float:
        if self.size != 1:
            raise TypeError("only arrays of one entry can be converted to Python scalars")
        return float(self.data.ravel()[0])

    def __str__(self) -> str:
        raise self.tape.refused("it writes values that are known in the run only")

    __repr__ = __str__

    # -- arithmetic --------------------------------------------------------------------------------------------

    def _with(self, ufunc: Any, other: Any, reverse: bool = False) -> Any:
        if not isinstance(other, (Array, *_STAND_INS, int, float, np.ndarray, np.number, np.bool_, list, tuple)):
            raise self.tape.refused(f"it computes with an array and a {type(other).__name__}")
        return elementwise(self.tape, ufunc, *((other, self) if reverse else (self, other)))

    __add__, __radd__ = _operators(np.add)
    __sub__, __rsub__ = _operators(np.subtract)
    __mul__, __rmul__ = _operators(np.multiply)
    __truediv__, __rtruediv__ = _operators(np.divide)
    __mod__, __floordiv__ = _operators(np.remainder)[0], _operators(np.floor_divide)[0]
    __rpow__ = _operators(np.power)[1]
    __lt__, __le__ = _operators(np.less)[0], _operators(np.less_equal)[0]
    __gt__, __ge__ = _operators(np.greater)[0], _operators(np.greater_equal)[0]
    __eq__, __ne__ = _operators(np.equal)[0], _operators(np.not_equal)[0]
    __and__ = __rand__ = _operators(np.bitwise_and)[0]
    __or__ = __ror__ = _operators(np.bitwise_or)[0]
    __xor__ = __rxor__ = _operators(np.bitwise_xor)[0]
    __neg__, __abs__, __invert__ = map(_unary, (np.negative, np.absolute, np.invert))
    __iadd__, __isub__, __imul__ = map(_in_place, (operator.add, operator.sub, operator.mul))
    __itruediv__, __ipow__ = map(_in_place, (operator.truediv, operator.pow))

    def __pow__(self, other: Any) -> Any:
        return array_power(self.tape, self, other)

    def __matmul__(self, other: Any) -> Any:
        return product(self.tape, self, other, scalars=False)

    def __rmatmul__(self, other: Any) -> Any:
        return product(self.tape, other, self, scalars=False)

    def __pos__(self) -> Any:
        return self.copy()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__":
            raise self.tape.refused(f"it uses numpy.{ufunc.__name__}.{method}")
        if ufunc is np.matmul:
            return product(self.tape, inputs[0], inputs[1], scalars=False, **options)
        return elementwise(self.tape, ufunc, *inputs, **options)

    def __array_function__(self, function: Any, kinds: Any, arguments: Any, options: Any) -> Any:
        return numpy_function(self.tape, function)(*arguments, **options)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.whole:
            raise self.tape.refused("it makes an array of numpy of whole numbers")
        return np.array([float(v) for v in self.data.ravel()]).reshape(self.shape)

    # -- methods of arrays ---------------------------------------------------------------------------------------

    copy, ravel, flatten, reshape, transpose, squeeze = map(
        _viewing, ("copy", "ravel", "flatten", "reshape", "transpose", "squeeze")
    )

    def astype(self, dtype: Any, copy: bool = True) -> Array:
        """Doubles stay doubles."""
        if _kind(dtype) != np.float64:
            raise self.tape.refused(f"it converts values to {_kind(dtype)}")
        return self._view(_doubles(self.data)) if copy or self.whole else self

    def item(self, *place: Any) -> Any:
        """One entry."""
        return _of_python(self.data.item(*place))

    def tolist(self) -> Any:
        """Entries in lists."""
        return _of_python(self.data.tolist())

    def fill(self, value: Any) -> None:
        """The same number in all entries."""
        self[...] = value

    def sum(self, axis: Any = None) -> Any:
        """Sum of all entries or along an axis."""
        return total(self.tape, self, axis)

    def mean(self, axis: Any = None) -> Any:
        """Mean of all entries or along an axis."""
        return mean(self.tape, self, axis)

    def prod(self) -> Any:
        """Product of all entries."""
        return along(self.tape, np.multiply, self)

    def max(self, axis: Any = None) -> Any:
        """Largest entry."""
        return along(self.tape, np.maximum, self, axis)

    def min(self, axis: Any = None) -> Any:
        """Smallest entry."""
        return along(self.tape, np.minimum, self, axis)

    def dot(self, other: Any) -> Any:
        """Matrix product."""
        return product(self.tape, self, other)

    def clip(self, least: Any = None, most: Any = None) -> Any:
        """Entries between bounds."""
        return clip(self.tape, self, least, most)


def _places(place: Any) -> Any:
    """An index in which stand-ins are numbers."""
    if isinstance(place, tuple):
        return tuple(map(_places, place))
    if isinstance(place, Number):
        return place.__index__()
    if isinstance(place, Array):
        if any(isinstance(v, Condition) for v in place.data.ravel()):
            raise place.tape.refused("it chooses entries by a condition; use numpy.where")
        return np.array([int(v) for v in place.data.ravel()], dtype=np.intp).reshape(place.shape)
    return place


def _entry(value: Any) -> Any:
    """What stands in an array of doubles."""
    if isinstance(value, _STAND_INS):
        return value.tape.plain(value, True)
    return np.float64(value)


def _doubles(data: Any) -> Any:
    """A copy of the entries as doubles."""
    made = np.empty_like(data, dtype=object)
    for at, value in np.ndenumerate(data):
        made[at] = _entry(value)
    return made


def _uniform(tape: Tape, data: Any) -> Any:
    """Entries of one kind, as numpy makes arrays of: whole numbers stay where all are such."""
    kinds = {is_whole(value) for value in data.flat}
    if kinds == {True}:
        if any(isinstance(v, (Condition, bool, np.bool_)) for v in data.flat) and not all(
            isinstance(v, (Condition, bool, np.bool_)) for v in data.flat
        ):
            raise tape.refused("it makes an array of conditions and whole numbers")
        return data
    if kinds and False not in kinds:
        raise tape.refused("it makes an array of what may be a whole number; write 0.0 for 0")
    return _doubles(data)


def _of_python(value: Any) -> Any:
    """Numbers of Python's kind instead of numpy's."""
    if isinstance(value, list):
        return [_of_python(v) for v in value]
    if isinstance(value, Number):
        return Number(value.tape, value.place, False, value.whole)
    if isinstance(value, Condition):
        return Condition(value.tape, value.place, False)
    return value.item() if isinstance(value, np.generic) else value


def of(tape: Tape, values: Any) -> Array:
    """An array of stand-ins of anything that numpy makes an array of numbers of."""
    if isinstance(values, Array):
        return values
    if isinstance(values, np.ndarray):
        if values.dtype not in (np.float64, np.int64, np.bool_):
            raise tape.refused(f"it computes with an array of {values.dtype}")
        made = np.empty_like(values, dtype=object)
        for at in np.ndindex(values.shape):
            made[at] = values[at]
        return Array(tape, made)
    if isinstance(values, (list, tuple)):
        rows = [of(tape, value).data if not _is_number(value) else value for value in values]
        if rows and all(isinstance(row, np.ndarray) for row in rows):
            return Array(tape, _uniform(tape, np.stack(rows)))
        made = np.empty(len(rows), dtype=object)
        for k, row in enumerate(rows):
            if isinstance(row, np.ndarray):
                if row.ndim:
                    raise tape.refused("it makes an array of rows of different lengths")
                row = row[()]
            made[k] = row
        return Array(tape, _uniform(tape, made))
    if _is_number(values):
        made = np.empty((), dtype=object)
        made[()] = values
        return Array(tape, _uniform(tape, made))
    raise tape.refused(f"it makes an array of a {type(values).__name__}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (*_STAND_INS, bool, int, float, np.integer, np.bool_))


def is_traced(value: Any) -> bool:
    """Whether there are stand-ins in it."""
    if isinstance(value, (list, tuple)):
        return any(map(is_traced, value))
    if isinstance(value, dict):
        return any(map(is_traced, value.values()))
    return isinstance(value, (Array, *_STAND_INS))


# -- elementwise functions -------------------------------------------------------------------------------------------


def _ties() -> str | None:
    """Which of two equal numbers, such as 0.0 and -0.0, `numpy.maximum` takes on this machine; None: not always one."""
    second = np.signbit(np.maximum([0.0, -0.0], [-0.0, 0.0])).tolist()
    return {(True, False): "gt", (False, True): "ge"}.get(tuple(second))


_TIES = _ties()


def _extreme(name: str, less: bool, keeps_nan: bool) -> Callable[..., Any]:
    """`numpy.maximum` and the like."""

    def rule(tape: Tape, a: Any, b: Any) -> Any:
        ties = "ge" if tape.jitted else _TIES
        if ties is None:
            return tape.call(("numpy", name), a, b)
        nan = a if keeps_nan else b
        first = tape.compare("o" + (ties.replace("g", "l") if less else ties), a, b)
        condition = Condition(tape, tape.node("or", first.place, tape.compare("une", nan, nan).place).place)
        return tape.select(condition, a, b)

    return rule


def _sign(tape: Tape, x: Any) -> Any:
    zero = x if tape.jitted else tape.apply("add", x, 0.0)  # NaN or a zero without a sign
    return tape.select(tape.compare("ogt", x, 0.0), 1.0, tape.select(tape.compare("olt", x, 0.0), -1.0, zero))


def _instruction(kind: str) -> Callable[..., Any]:
    return lambda tape, *operands: tape.apply(kind, *operands)


def _comparing(how: str) -> Callable[..., Any]:
    return lambda tape, a, b: tape.compare(how, a, b)


def _logical(kind: str) -> Callable[..., Any]:
    return lambda tape, a, b: Condition(tape, tape.node(kind, tape.truth(a), tape.truth(b)).place)


def _bitwise(kind: str) -> Callable[..., Any]:
    def rule(tape: Tape, *operands: Any) -> Any:
        if not all(isinstance(v, (Condition, bool, np.bool_)) for v in operands):
            raise tape.refused("it uses &, |, ^ or ~ of other things than conditions")
        return Condition(tape, tape.node(kind, *map(tape.truth, operands)).place)

    return rule


def _by_name(rule: Callable[[str], Any], **kinds: str) -> dict[Any, Any]:
    """Rules of numpy's functions of these names."""
    return {getattr(np, name): rule(kind) for name, kind in kinds.items()}


_RULES: dict[Any, Callable[..., Any]] = {
    **_by_name(_instruction, add="add", subtract="sub", multiply="mul", divide="div", negative="neg", absolute="abs"),
    **_by_name(_instruction, fabs="abs", sqrt="sqrt", floor="floor", ceil="ceil", trunc="trunc", rint="rint"),
    **_by_name(_comparing, less="olt", less_equal="ole", greater="ogt", greater_equal="oge"),
    **_by_name(_comparing, equal="oeq", not_equal="une"),
    **_by_name(_logical, logical_and="and", logical_or="or", logical_xor="xor"),
    **_by_name(_bitwise, bitwise_and="and", bitwise_or="or", bitwise_xor="xor"),
    np.positive: lambda tape, x: tape.number(x),
    np.square: lambda tape, x: tape.apply("mul", x, x),
    np.reciprocal: lambda tape, x: tape.apply("div", 1.0, x),
    np.maximum: _extreme("maximum", False, True),
    np.minimum: _extreme("minimum", True, True),
    np.fmax: _extreme("fmax", False, False),
    np.fmin: _extreme("fmin", True, False),
    np.sign: _sign,
    np.logical_not: lambda tape, x: ~Condition(tape, tape.truth(x)),
    np.invert: lambda tape, x: _bitwise("xor")(tape, x, True),
}

#: Arithmetic, for which numba has rules of its own where all are whole numbers.
_RULES_OF_NUMBERS = frozenset({np.add, np.subtract, np.multiply, np.negative, np.absolute})

#: What of these is the same for whole numbers as for doubles.
_FOR_WHOLE = frozenset(
    {
        *(np.add, np.subtract, np.multiply, np.negative, np.absolute, np.divide, np.maximum, np.minimum),
        *(np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal),
        *(np.logical_and, np.logical_or, np.logical_xor, np.logical_not),
        *(np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert),
    }
)


def elementwise(tape: Tape, ufunc: Any, *inputs: Any, out: Any = None, **options: Any) -> Any:
    """A function of numpy that takes arrays entry by entry."""
    if options:
        raise tape.refused(f"it uses numpy.{ufunc.__name__} with {', '.join(options)}")
    if len(inputs) > ufunc.nin:
        *inputs, out = inputs  # type: ignore[assignment]
    rule = _RULES.get(ufunc)
    if rule is None:
        name = ufunc.__name__
        if tape.jitted and name in OF_NUMBA:
            routine = "c", OF_NUMBA[name]
        elif not tape.jitted and getattr(np, name, None) is ufunc and has_loop(ufunc):
            routine = "numpy", name
        else:
            raise tape.refused(f"it uses numpy.{name}")

        def rule(tape: Tape, *operands: Any) -> Any:
            return tape.call(routine, *operands)

    arrays = np.broadcast_arrays(*(of(tape, value).data for value in inputs))
    made = np.empty(arrays[0].shape, dtype=object)
    for at in np.ndindex(made.shape):
        operands = [_of_numpy(array[at]) for array in arrays]
        if (ufunc not in _FOR_WHOLE or (tape.jitted and ufunc in _RULES_OF_NUMBERS)) and all(
            is_whole(v) is True for v in operands
        ):
            raise tape.refused(f"it uses numpy.{ufunc.__name__} of whole numbers or conditions")
        made[at] = rule(tape, *operands)
    found = Array(tape, made) if made.ndim else made[()]
    if out is not None:
        target = out[0] if isinstance(out, tuple) else out
        if not isinstance(target, Array):
            raise tape.refused(f"it writes results of numpy.{ufunc.__name__} into an array that it did not make")
        target[...] = found
        return target
    return found


def _of_numpy(value: Any) -> Any:
    """A number or a condition as numpy's."""
    if isinstance(value, Number):
        return Number(value.tape, value.place, True, value.whole)
    return Condition(value.tape, value.place) if isinstance(value, Condition) else value


def array_power(tape: Tape, base: Any, exponent: Any) -> Any:
    """`base ** exponent` of arrays: numpy has shorter ways for some single exponents."""
    known = isinstance(exponent, Number) and tape.is_fixed(exponent.place)
    if (known or isinstance(exponent, (bool, int, float, np.integer))) and not tape.jitted:
        short = {2.0: np.square, 1.0: np.positive, 0.5: np.sqrt, -1.0: np.reciprocal}.get(float(exponent))
        if short is not None:
            return elementwise(tape, short, base)
    if tape.jitted and _is_number(exponent):
        made = of(tape, base)
        data = np.empty(made.shape, dtype=object)
        for at in np.ndindex(data.shape):
            data[at] = power(tape, made.data[at], exponent)
        return Array(tape, data) if data.ndim else data[()]
    return elementwise(tape, np.power, base, exponent)


# -- sums and products -----------------------------------------------------------------------------------------------


def pairwise(values: list[Any], add: Callable[[Any, Any], Any]) -> Any:
    """The sum of numbers in the order in which numpy adds them up.

    >>> pairwise([1.0, 2.0, 3.0], lambda a, b: a + b)
    6.0
    """
    n = len(values)
    if n > 128:
        half = n // 2 - n // 2 % 8
        return add(pairwise(values[:half], add), pairwise(values[half:], add))
    if n < 8:
        found = values[0]
        for value in values[1:]:
            found = add(found, value)
        return found
    sums = values[:8]
    whole = n - n % 8
    for i in range(8, whole, 8):
        sums = [add(a, b) for a, b in zip(sums, values[i : i + 8], strict=True)]
    while len(sums) > 1:
        sums = [add(sums[k], sums[k + 1]) for k in range(0, len(sums), 2)]
    found = sums[0]
    for value in values[whole:]:
        found = add(found, value)
    return found


def _one_after_the_other(values: list[Any], function: Callable[[Any, Any], Any]) -> Any:
    found = values[0]
    for value in values[1:]:
        found = function(found, value)
    return found


def added(tape: Tape, values: list[Any], in_pairs: bool = True) -> Any:
    """The sum of numbers; conditions count as 1, and a sum of zeros has no sign."""
    values = [tape.number(value) for value in values]

    def add(a: Any, b: Any) -> Any:
        return tape.apply("add", a, b)

    if tape.jitted or not in_pairs or not values:
        return _one_after_the_other([np.float64(0.0), *values], add)
    return add(pairwise(values, add), 0 if is_whole(values[0]) is True else 0.0)


def total(tape: Tape, values: Any, axis: Any = None) -> Any:
    """`numpy.sum`."""
    array = of(tape, values)
    if axis is None:
        if array.ndim > 1 and not array.data.flags.c_contiguous:
            raise tape.refused("it adds up all entries of a transposed array")
        return added(tape, list(array.data.ravel()))
    moved = np.moveaxis(array.data, axis, -1)
    plain = array.data.flags.c_contiguous and min(array.shape, default=1) > 1
    if array.ndim > 1 and not (tape.jitted or plain or moved.shape[-1] < 8):
        raise tape.refused("it adds up along an axis of a part of an array, or of one that is transposed or one row")
    inner = array.ndim == 1 or axis in (-1, array.ndim - 1)  # rows pairwise, columns one after the other
    made = np.empty(moved.shape[:-1], dtype=object)
    for at in np.ndindex(made.shape):
        made[at] = added(tape, list(moved[at]), inner)
    return Array(tape, made) if made.ndim else made[()]


def mean(tape: Tape, values: Any, axis: Any = None) -> Any:
    """`numpy.mean`."""
    array = of(tape, values)
    return total(tape, array, axis) / float(array.size if axis is None else array.shape[axis])


def along(tape: Tape, ufunc: Any, values: Any, axis: Any = None) -> Any:
    """One entry after the other."""
    array = of(tape, values)
    if axis is not None and array.ndim > 1:
        raise tape.refused(f"it reduces by numpy.{ufunc.__name__} along an axis")
    if array.ndim > 1 and not array.data.flags.c_contiguous:
        raise tape.refused(f"it reduces by numpy.{ufunc.__name__} over a transposed array")
    if array.whole:
        raise tape.refused(f"it reduces by numpy.{ufunc.__name__} over whole numbers")
    entries = list(array.data.ravel())
    if tape.jitted or ufunc is np.multiply or len(entries) == 1:
        return _one_after_the_other(entries, lambda a, b: elementwise(tape, ufunc, a, b))
    return tape.reduced(("numpy", ufunc.__name__), entries)


def product(tape: Tape, a: Any, b: Any, scalars: bool = True) -> Any:
    """`a @ b` by numpy's own loop, which adds up in an order of its own; with `scalars` numbers are factors."""
    a, b = of(tape, a), of(tape, b)
    if a.whole and b.whole:
        raise tape.refused("it multiplies matrices of whole numbers")
    if a.ndim == 0 or b.ndim == 0:
        if not scalars:
            raise ValueError("matmul: an operand has no dimensions")
        return elementwise(tape, np.multiply, a, b)
    if tape.jitted or a.ndim > 2 or b.ndim > 2:
        raise tape.refused("it multiplies arrays of more than two dimensions, or of a jitted function")
    if a.shape[-1] != b.shape[0]:
        raise ValueError(f"matmul: shapes {a.shape} and {b.shape} do not fit")
    if not a.shape[-1]:
        return _made(False, 0.0)(tape, a.shape[:-1] + b.shape[1:])
    rows, columns = (1 if a.ndim == 1 else a.shape[0]), (1 if b.ndim == 1 else b.shape[1])
    if any(stride < 0 for array in (a, b) for stride in array.data.strides):
        raise tape.refused("it multiplies a reversed array")
    strides = [0] * (2 - a.ndim) + _layout(a.data) + _layout(b.data) + [0] * (2 - b.ndim)
    size = rows, a.shape[-1], columns
    operands = [tape.number(v).place for v in (*a.data.ravel(), *b.data.ravel())]
    tape.need(("numpy", "matmul"))
    found = tape.node("product", (*size, *strides, a.ndim > 1, b.ndim > 1), *operands)
    made = np.empty(rows * columns, dtype=object)
    made[:] = [tape.node("entry", k, found.place) for k in range(rows * columns)]
    shape = a.shape[:-1] + b.shape[1:]
    return Array(tape, made.reshape(shape)) if shape else made[0]


def _inner(tape: Tape, a: Any, b: Any) -> Any:
    if of(tape, a).ndim > 1 or of(tape, b).ndim > 1:
        raise tape.refused("it uses numpy.inner of matrices; use @")
    return product(tape, a, b)


def _layout(data: Any) -> list[int]:
    """Distances of entries, in entries; loops of numpy choose their way by them."""
    distances = [stride // data.itemsize for stride in data.strides]
    near = min(distances) > 0 and max(distances) <= 4096
    return distances if near else list(np.empty(data.shape, dtype="i1").strides)


def where(tape: Tape, condition: Any, *values: Any) -> Any:
    """`numpy.where` with two alternatives."""
    if len(values) != 2:
        raise tape.refused("it looks for the places where a condition holds")
    found = [of(tape, value) for value in (condition, *values)]
    kinds = [array.whole for array in found[1:]]
    if all(kinds) and any(isinstance(v, (Condition, np.bool_, bool)) for array in found[1:] for v in array.data.flat):
        raise tape.refused("it uses numpy.where of conditions")
    data = [array.data if all(kinds) or k == 0 else _doubles(array.data) for k, array in enumerate(found)]
    arrays = np.broadcast_arrays(*data)
    made = np.empty(arrays[0].shape, dtype=object)
    for at in np.ndindex(made.shape):
        made[at] = _of_numpy(tape.select(*(array[at] for array in arrays)))
    return Array(tape, made) if made.ndim else made[()]


def clip(tape: Tape, values: Any, least: Any = None, most: Any = None) -> Any:
    """`numpy.clip`: the value where it is equal to a bound."""
    if tape.jitted:
        ways = np.maximum, np.minimum
        for ufunc, bound in zip(ways, (least, most), strict=True):
            values = values if bound is None else elementwise(tape, ufunc, values, bound)
        return values
    for how, bound in (("oge", least), ("ole", most)):
        if bound is None:
            continue
        arrays = np.broadcast_arrays(*(_doubles(of(tape, v).data) for v in (values, bound)))
        made = np.empty(arrays[0].shape, dtype=object)
        for at in np.ndindex(made.shape):
            value, limit = (array[at] for array in arrays)
            inside, nan = tape.compare(how, value, limit), tape.compare("une", value, value)
            made[at] = tape.select(Condition(tape, tape.node("or", inside.place, nan.place).place), value, limit)
        values = Array(tape, made) if made.ndim else made[()]
    return values


def _norm(tape: Tape, values: Any) -> Any:
    array = of(tape, values)
    if not array.data.flags.c_contiguous and array.ndim > 1:
        raise tape.refused("it uses numpy.linalg.norm of a transposed array")
    array = array.ravel()
    return elementwise(tape, np.sqrt, product(tape, array, array))


def _cross(tape: Tape, a: Any, b: Any) -> Any:
    a, b = of(tape, a), of(tape, b)
    if a.shape != (3,) or b.shape != (3,):
        raise tape.refused("it uses numpy.cross of other vectors than those of three numbers")
    return of(tape, [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))])


def _outer(tape: Tape, a: Any, b: Any) -> Any:
    a, b = of(tape, a).ravel(), of(tape, b).ravel()
    return elementwise(tape, np.multiply, a[:, None], b[None, :])


def _diff(tape: Tape, values: Any) -> Any:
    array = of(tape, values)
    if array.ndim != 1:
        raise tape.refused("it uses numpy.diff of a matrix")
    return array[1:] - array[:-1]


def _cumsum(tape: Tape, values: Any) -> Any:
    array = of(tape, values).ravel()
    if array.whole:
        raise tape.refused("it uses numpy.cumsum of whole numbers")
    found = [tape.apply("add", 0.0, array.data[0]) if tape.jitted else array.data[0]]
    for value in array.data[1:]:
        found.append(tape.apply("add", found[-1], value))
    return of(tape, found)


def _polyval(tape: Tape, coefficients: Any, x: Any) -> Any:
    found: Any = np.float64(0.0)
    for value in of(tape, coefficients):
        found = found * x + value
    return found


def _interpolated(tape: Tape, x: Any, points: Any, values: Any, **sides: Any) -> Any:
    """`numpy.interp` of a number between given points, as numpy computes it."""
    if sides or not _is_number(x) or tape.jitted:
        raise tape.refused("it uses numpy.interp of other things than a number, known points and known values")
    points, values = (np.array(_doubles(of(tape, v).data), dtype=float) for v in (points, values))
    if not 2 <= points.size <= 64 or points.shape != values.shape or points.ndim != 1:
        raise tape.refused("it uses numpy.interp between one or more than 64 points")
    if not (np.diff(points) > 0).all() or not np.isfinite([points, values]).all():
        raise tape.refused("it uses numpy.interp between points that do not grow")
    found: Any = float(values[0])
    for j in range(len(points) - 1):
        slope = float((values[j + 1] - values[j]) / (points[j + 1] - points[j]))
        piece = slope * (x - float(points[j])) + float(values[j])
        at_point = tape.select(tape.compare("oeq", x, float(points[j])), float(values[j]), piece)
        found = tape.select(tape.compare("oge", x, float(points[j])), at_point, found)
    found = tape.select(tape.compare("oge", x, float(points[-1])), float(values[-1]), found)
    return _of_numpy(tape.select(tape.compare("une", x, x), tape.plain(x, True), found))  # NaN


def _kind(dtype: Any) -> Any:
    """A type of numbers, which stands for itself or is what stands for it in the sandbox."""
    return np.dtype(_original(dtype))


def _original(value: Any) -> Any:
    """What stands for functions and types of numpy and Python while tracing is replaced by them."""
    known = {"_float": float, "_int": int}.get(getattr(value, "__name__", ""))
    return known if known is not None and callable(value) else getattr(value, "original", value)


def _made(shape_like: bool, value: float | None) -> Callable[..., Any]:
    def make(tape: Tape, given: Any, *rest: Any, dtype: Any = float, order: Any = "K", **other: Any) -> Any:
        if (value is None and not rest) or other:
            raise tape.refused(f"it makes an array with {', '.join(other) or 'no value'}")
        filled = rest[0] if value is None else value
        kind = rest[0] if rest and value is not None else dtype
        shape = np.shape(given.data if isinstance(given, Array) else given) if shape_like else _places(given)
        if _kind(kind) != np.float64 or (value is None and is_whole(filled) is not False):
            raise tape.refused(f"it makes an array of {_kind(kind)} of whole numbers or of other types than float")
        if shape_like and of(tape, given).whole:
            raise tape.refused("it makes an array like one of whole numbers")
        data = np.empty(shape, dtype=object)
        data[...] = _doubles(of(tape, filled).data)[()]
        return Array(tape, data)

    return make


def _array(tape: Tape, values: Any, dtype: Any = None, copy: Any = True, **other: Any) -> Any:
    if other or not copy:
        raise tape.refused("it uses numpy.array with " + (", ".join(other) or "copy"))
    made = of(tape, values).copy()
    if dtype is not None and _kind(dtype) != np.float64:
        raise tape.refused(f"it makes an array of {_kind(dtype)}")
    return made if dtype is None else Array(tape, _doubles(made.data))


def _asarray(tape: Tape, values: Any, dtype: Any = None, **other: Any) -> Any:
    same = (
        isinstance(values, Array) and not other and (dtype is None or (_kind(dtype) == np.float64 and not values.whole))
    )
    return values if same else _array(tape, values, dtype, **other)


def _contiguous(tape: Tape, values: Any, dtype: Any = None) -> Any:
    made = _asarray(tape, values, dtype)
    return made if made.data.flags.c_contiguous else made.copy()


def _structural(function: Any) -> Callable[..., Any]:
    """A function that moves entries about: numpy does it, with objects as entries."""

    def moved(tape: Tape, *arguments: Any, **options: Any) -> Any:
        found = function(*(_objects(tape, a) for a in arguments), **{k: _objects(tape, v) for k, v in options.items()})
        if isinstance(found, (list, tuple)):
            return [_of_objects(tape, one) for one in found]
        return _of_objects(tape, found) if isinstance(found, np.ndarray) else _of_numpy(found)

    return moved


def _of_objects(tape: Tape, data: Any) -> Array:
    """An array of what numpy has moved; a view stays one."""
    kinds = {is_whole(value) for value in data.flat}
    return Array(tape, data if len(kinds) < 2 else _uniform(tape, data))


def _objects(tape: Tape, value: Any) -> Any:
    if isinstance(value, Array):
        return value.data
    if isinstance(value, (list, tuple)) and is_traced(value):
        return [_objects(tape, v) for v in value]
    return value


#: Functions of numpy by identity; what is not here and no elementwise function is refused.
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.array: _array,
    np.asarray: _asarray,
    np.ascontiguousarray: _contiguous,
    np.atleast_1d: lambda tape, x: of(tape, x) if of(tape, x).ndim else of(tape, x).reshape(1),
    np.copy: _array,
    np.zeros: _made(False, 0.0),
    np.ones: _made(False, 1.0),
    np.empty: _made(False, 0.0),
    np.full: _made(False, None),
    np.zeros_like: _made(True, 0.0),
    np.ones_like: _made(True, 1.0),
    np.empty_like: _made(True, 0.0),
    np.full_like: _made(True, None),
    np.sum: total,
    np.mean: mean,
    np.prod: lambda tape, x: along(tape, np.multiply, x),
    np.max: lambda tape, x, axis=None: along(tape, np.maximum, x, axis),
    np.min: lambda tape, x, axis=None: along(tape, np.minimum, x, axis),
    np.dot: product,
    np.matmul: product,
    np.inner: _inner,
    np.vdot: lambda tape, a, b: product(tape, of(tape, a).ravel(), of(tape, b).ravel()),
    np.linalg.norm: _norm,
    np.cross: _cross,
    np.outer: _outer,
    np.diff: _diff,
    np.cumsum: _cumsum,
    np.polyval: _polyval,
    np.where: where,
    np.clip: clip,
    np.interp: _interpolated,
    np.shape: lambda tape, x: np.shape(x.data if isinstance(x, Array) else x),
    np.size: lambda tape, x: x.size,
    np.ndim: lambda tape, x: x.ndim,
    np.float64: lambda tape, x: _entry(x) if isinstance(x, _STAND_INS) else _array(tape, x, float),
    **{
        function: _structural(function)
        for function in (
            *(np.concatenate, np.hstack, np.vstack, np.stack, np.column_stack, np.append, np.roll),
            *(np.reshape, np.ravel),
            *(np.transpose, np.flip, np.flipud, np.fliplr, np.tile, np.repeat, np.diag, np.squeeze, np.expand_dims),
            *(np.broadcast_to, np.split, np.array_split, np.take, np.swapaxes, np.moveaxis, np.delete, np.insert),
            *(np.diagonal, np.rot90, np.atleast_2d),
        )
    },
}

#: What numpy leaves in these is zero while tracing.
_EMPTY = (np.empty, np.empty_like)

#: Functions that give the same whenever they are called; they may be called with plain numbers while tracing.
_PLAIN = (np.arange, np.linspace, np.eye, np.identity, np.isscalar, np.tri)


def numpy_function(tape: Tape, function: Any) -> Callable[..., Any]:
    """What stands for a function of numpy while tracing."""
    name = getattr(function, "__name__", str(function))
    if isinstance(function, np.ufunc):

        def called(*arguments: Any, **options: Any) -> Any:
            if not (is_traced(arguments) or is_traced(options)) and getattr(np, name, None) is function:
                return _real(tape, function, arguments, options)
            if function is np.matmul:
                return product(tape, arguments[0], arguments[1], scalars=False, **options)
            if function is np.power and len(arguments) == 2:
                return _power(tape, *arguments, **options)
            return elementwise(tape, function, *arguments, **options)

        called.original = function  # type: ignore[attr-defined]
        return called
    rule = _FUNCTIONS.get(function)
    if rule is None:
        if function in _PLAIN:

            def plain(*arguments: Any, **options: Any) -> Any:
                return _real(tape, function, _known(arguments), options)

            return plain

        def refused(*_: Any, **__: Any) -> Any:
            raise tape.refused(f"it uses numpy.{name}")

        refused.original = function  # type: ignore[attr-defined]
        return refused

    def ruled(*arguments: Any, **options: Any) -> Any:
        if function not in _EMPTY and not is_traced(arguments) and not is_traced(options):
            return _real(tape, function, arguments, options)
        return rule(tape, *arguments, **options)

    ruled.original = function  # type: ignore[attr-defined]
    return ruled


def _real(tape: Tape, function: Any, arguments: Any, options: dict[str, Any]) -> Any:
    """What numpy gives for arguments that are known: arrays of doubles can be written to like others."""
    made = function(*map(_original, arguments), **{k: _original(v) for k, v in options.items()})
    return of(tape, made) if type(made) is np.ndarray and made.dtype == np.float64 else made


def _power(tape: Tape, base: Any, exponent: Any, **options: Any) -> Any:
    """`numpy.power`, which multiplies where the exponent of an array is 2."""
    if tape.jitted and _is_number(exponent) and not options:
        return array_power(tape, of(tape, base), tape.plain(exponent, True))
    single = _is_number(exponent) or (isinstance(exponent, (Array, np.ndarray)) and exponent.ndim == 0)
    known: Any = exponent if not isinstance(exponent, Array) else exponent.data[()] if single else None
    if single and (not isinstance(known, Number) or tape.is_fixed(known.place)) and float(known) == 2.0:
        return elementwise(tape, np.square, base, **options)
    return elementwise(tape, np.power, base, exponent, **options)


def _known(arguments: Any) -> list[Any]:
    return [float(v) if isinstance(v, Number) else v for v in arguments]


def math_function(tape: Tape, name: str) -> Any:
    """What stands for a function (or a number) of `math` while tracing."""
    function = getattr(math, name)
    if not callable(function):
        return function
    exact = {"sqrt": np.sqrt, "fabs": np.fabs}

    def called(*arguments: Any) -> Any:
        if not is_traced(arguments):
            return function(*arguments)
        if name == "log" and len(arguments) == 2:
            raise tape.refused("it uses math.log with a base")
        arguments = tuple(v.item() if isinstance(v, Array) and v.size == 1 else v for v in arguments)
        if name in exact:
            return tape.plain(_RULES[exact[name]](tape, *arguments), False)
        if name in ("radians", "degrees"):
            factor = math.pi / 180.0 if name == "radians" else 180.0 / math.pi
            return tape.plain(tape.apply("mul", tape.plain(arguments[0], False), factor), False)
        if name in FROM_C or (tape.jitted and name == "hypot"):
            return tape.plain(tape.call(("c", FROM_C.get(name, name)), *arguments), False)
        raise tape.refused(f"it uses math.{name}")

    return called
