"""Numbers and arrays by address, so that compiled functions hand on one number; and what keeps short loops short.

`row_products` adds up products of whole rows with vector registers, strictly from left to right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.np import arrayobj

from cosolve.jit.calls import cgutils, fixed, intrinsic

_types: Any = types
_make_array: Any = arrayobj.make_array
_I64, _F64 = ir.IntType(64), ir.DoubleType()


def _load(kind: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(builder.gep(builder.inttoptr(values[0], kind.as_pointer()), [values[1]]))

    return generate


def _store(kind: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], builder.gep(builder.inttoptr(values[0], kind.as_pointer()), [values[1]]))
        return context.get_dummy_value()

    return generate


def _pointer(kind: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], kind.as_pointer())

    return generate


_WORD, _NUMBER = types.int64, types.float64

#: A whole number, and a double, at the place `index` behind an address; setting them.
word_at: Callable[[int, int], int] = fixed(_WORD(_WORD, _WORD), _load(_I64))
double_at: Callable[[int, int], float] = fixed(_NUMBER(_WORD, _WORD), _load(_F64))
put_word_at: Callable[[int, int, int], None] = fixed(types.void(_WORD, _WORD, _WORD), _store(_I64))
put_double_at: Callable[[int, int, float], None] = fixed(types.void(_WORD, _WORD, _NUMBER), _store(_F64))
#: Pointers to doubles and to 64-bit words from an address.
doubles_at: Callable[[int], Any] = fixed(_types.CPointer(_NUMBER)(types.intp), _pointer(_F64))
words_at: Callable[[int], list[int]] = fixed(_types.CPointer(_WORD)(types.intp), _pointer(_I64))


def _array(kind: Any, dimensions: int) -> tuple[Any, Any]:
    """An array over memory without a reference count: what `carray` makes, without a function of its own."""
    array_type = types.Array(kind, dimensions, "C")

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        model, size = context.data_model_manager[array_type], ir.Constant(_I64, 8)
        fixed = {"meminfo": None, "parent": None, "itemsize": 8, "strides": [ir.Undefined] * (dimensions - 1) + [8]}
        fields = zip(model._fields, model.get_value_type().elements, strict=True)
        array = ir.Constant(
            model.get_value_type(), [_constant(entry, fixed.get(name, ir.Undefined)) for name, entry in fields]
        )
        rows, *columns = values[1:]
        pointer = builder.inttoptr(values[0], context.get_data_type(kind).as_pointer())
        parts = [("data", [], pointer), ("shape", [0], rows)]
        parts.append(("nitems", [], builder.mul(rows, *columns) if columns else rows))
        if columns:
            parts += [("shape", [1], *columns), ("strides", [0], builder.mul(size, *columns))]
        for name, place, value in parts:
            array = builder.insert_value(array, value, [model.get_field_position(name), *place])
        return array

    return array_type(*[types.intp] * (1 + dimensions)), generate


def _constant(kind: Any, value: Any) -> Any:
    if isinstance(value, list):
        return ir.Constant(kind, [_constant(kind.element, entry) for entry in value])
    return ir.Constant(kind, value)


def _field(kind: Any, dimensions: int) -> tuple[Any, Any]:
    """The same for field `k` of a table, which holds an address and a number of rows for each field."""
    signature, array = _array(kind, dimensions)

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        table, k, *width = values
        pair = _place(builder, table, builder.shl(k, ir.Constant(_I64, 1)))
        address, rows = builder.load(pair), builder.load(builder.gep(pair, [ir.Constant(_I64, 1)]))
        return array(context, builder, signature, [address, rows, *width])

    return signature.return_type(*signature.args), generate


#: Doubles, and whole numbers, at an address as an array (address, size) or as rows (address, rows, columns).
vector_at, matrix_at = fixed(*_array(_NUMBER, 1)), fixed(*_array(_NUMBER, 2))
index_at, index_rows_at = fixed(*_array(_WORD, 1)), fixed(*_array(_WORD, 2))
#: Field `k` of a table as an array of doubles, as rows of doubles (table, k, columns), and as whole numbers.
vector_field, matrix_field = fixed(*_field(_NUMBER, 1)), fixed(*_field(_NUMBER, 2))
index_field = fixed(*_field(_WORD, 1))

#: For `fields_of`: as many columns as rows.
SQUARE = -1


def fields_of(kind: Any, first: int, *shapes: tuple[Any, int | None]) -> Any:
    """A function for compiled code that gives the fields of a table from `first` on as a named tuple of this kind.

    A shape is the type of the entries and the number of columns, None for an array with one dimension.

    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> from cosolve.jit import entry
    >>> class Pair(NamedTuple):
    ...     weights: np.ndarray
    ...     points: np.ndarray
    >>> pair_at = fields_of(Pair, 0, (types.float64, None), (types.float64, 2))
    >>> @entry
    ... def mean(table: int) -> float:
    ...     pair = pair_at(table)
    ...     return pair.weights[0] * pair.points[0, 1] + pair.weights[1] * pair.points[1, 1]
    >>> weights, points = np.array([0.25, 0.75]), np.array([[0.0, 4.0], [0.0, 8.0]])
    >>> table = np.array([(field.ctypes.data, len(field)) for field in (weights, points)])
    >>> mean(table.ctypes.data)
    7.0
    """

    def fields_at(typing: Any, table: Any) -> Any:
        arrays = [types.Array(entry, 1 if columns is None else 2, "C") for entry, columns in shapes]
        gives = _types.BaseTuple.from_types(arrays, kind)

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            made = []
            for k, (entry, columns) in enumerate(shapes, first):
                _, field = _field(entry, 1 if columns is None else 2)
                width = [] if columns is None else [ir.Constant(_I64, columns)]
                if columns == SQUARE:
                    width = [builder.load(_place(builder, values[0], ir.Constant(_I64, 2 * k + 1)))]
                made.append(field(context, builder, None, [values[0], ir.Constant(_I64, k), *width]))
            return context.make_tuple(builder, gives, made)

        return gives(types.int64), generate

    return intrinsic(fields_at)


def _place(builder: Any, table: Any, word: Any) -> Any:
    return builder.gep(builder.inttoptr(table, _I64.as_pointer()), [word])


def _size(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    place = builder.add(builder.shl(values[1], ir.Constant(_I64, 1)), ir.Constant(_I64, 1))
    return builder.load(_place(builder, values[0], place))


#: How many entries field `k` of a table has.
field_size: Callable[[int, int], int] = fixed(_WORD(_WORD, _WORD), _size)


def _address_of(typing: Any, array: Any) -> Any:
    """Where the numbers of an array are, which lie side by side."""
    if not isinstance(array, types.Array) or array.layout != "C":
        return None

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.ptrtoint(_make_array(array)(context, builder, values[0]).data, _I64)

    return types.intp(array), generate


def _row_of(typing: Any, matrix: Any, i: Any) -> Any:
    """Row `i`, counted from the beginning, of rows that lie side by side, as an array without a reference count."""
    if not isinstance(matrix, types.Array) or matrix.layout != "C" or matrix.ndim != 2:
        return None
    signature, array = _array(matrix.dtype, 1)

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        rows = _make_array(matrix)(context, builder, values[0])
        columns = builder.extract_value(rows.shape, 1)
        start = builder.ptrtoint(builder.gep(rows.data, [builder.mul(values[1], columns)]), _I64)
        return array(context, builder, signature, [start, columns])

    return signature.return_type(matrix, types.intp), generate


address_of: Callable[[Any], int] = intrinsic(_address_of)
row_of: Callable[[Any, int], Any] = intrinsic(_row_of)


def _whole(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.fptosi(values[0], _I64)


def _finite(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.fcmp_ordered("==", builder.fsub(values[0], values[0]), ir.Constant(_F64, 0.0))


def _short_loop(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    call = builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], True)
    call.attributes.add("convergent")
    return context.get_dummy_value()


#: A double that is a whole number, as one.
whole: Callable[[float], int] = fixed(_WORD(_NUMBER), _whole)
#: Neither a NaN nor an infinity.
finite: Callable[[float], bool] = fixed(types.boolean(_NUMBER), _finite)
#: Keeps the loop it stands in as it is written: unrolling and vectorising cost more than a few numbers take. No machine
#: code comes of it, but a convergent call must not be copied.
short_loop: Callable[[], None] = fixed(types.void(), _short_loop)


_LANES, _VECTORS = 8, 4  # numbers in a vector, vectors that are added up at the same time


def row_products(width: int) -> Any:
    """`dot(coefficients, registers, terms, count, target)` for compiled code, on rows of `width` doubles.

    `row at target = sum over terms of coefficient row * register row`; addresses of bytes, `count` >= 1 terms. A term
    is two words: where its coefficients begin and where its register begins. `width` is a multiple of 32.
    """
    signature = types.void(*[types.intp] * 5)
    word, number = ir.IntType(64), ir.DoubleType()
    vector = ir.VectorType(number, _LANES)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        base_c, base_r, terms, count, target = arguments
        sums = [cgutils.alloca_once(builder, vector) for _ in range(_VECTORS)]
        at_terms = builder.inttoptr(terms, word.as_pointer())
        whole = width // (_LANES * _VECTORS)

        def load(address: Any, part: int) -> Any:
            place = builder.add(address, ir.Constant(word, part * _LANES * 8))
            return builder.load(builder.inttoptr(place, vector.as_pointer()), align=8)

        def products(k: Any, shift: Any) -> list[Any]:
            two = builder.shl(k, ir.Constant(word, 1))
            c = builder.load(builder.gep(at_terms, [two]))
            r = builder.load(builder.gep(at_terms, [builder.add(two, ir.Constant(word, 1))]))
            c = builder.add(builder.add(base_c, c), shift)
            r = builder.add(builder.add(base_r, r), shift)
            return [builder.fmul(load(c, m), load(r, m)) for m in range(_VECTORS)]

        with cgutils.for_range(builder, ir.Constant(word, whole), intp=word) as part:
            shift = builder.mul(part.index, ir.Constant(word, _LANES * _VECTORS * 8))
            for place, value in zip(sums, products(ir.Constant(word, 0), shift), strict=True):
                builder.store(value, place)
            with cgutils.for_range(builder, count, start=ir.Constant(word, 1), intp=word) as term:
                for place, value in zip(sums, products(term.index, shift), strict=True):
                    builder.store(builder.fadd(builder.load(place), value), place)
            into = builder.add(builder.add(base_r, target), shift)
            for m, place in enumerate(sums):
                address = builder.add(into, ir.Constant(word, m * _LANES * 8))
                builder.store(builder.load(place), builder.inttoptr(address, vector.as_pointer()), align=8)
        return context.get_dummy_value()

    return fixed(signature, generate)
