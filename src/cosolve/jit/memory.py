"""Numbers and arrays by address, so that compiled functions hand on one number; and what keeps short loops short."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic as _intrinsic
from numba.np.arrayobj import make_array

intrinsic: Any = _intrinsic  # its functions are typed by what they give to compiled code
_I64, _F64 = ir.IntType(64), ir.DoubleType()


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


def _array(kind, dimensions):
    """An array over memory that nobody counts references to: what `carray` makes, without a function of its own."""
    array_type = types.Array(kind, dimensions, "C")

    def generate(context, builder, signature, values):
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


def _constant(kind, value):
    if isinstance(value, list):
        return ir.Constant(kind, [_constant(kind.element, entry) for entry in value])
    return ir.Constant(kind, value)


def _field(kind, dimensions):
    """The same for field `k` of a table, which holds an address and a number of rows for each field."""
    signature, array = _array(kind, dimensions)

    def generate(context, builder, _, values):
        table, k, *width = values
        pair = _place(builder, table, builder.shl(k, ir.Constant(_I64, 1)))
        address, rows = builder.load(pair), builder.load(builder.gep(pair, [ir.Constant(_I64, 1)]))
        return array(context, builder, signature, [address, rows, *width])

    return signature.return_type(*signature.args), generate


@intrinsic
def vector_at(typing, address, size):
    """The doubles at an address as an array."""
    return _array(types.float64, 1)


@intrinsic
def matrix_at(typing, address, rows, columns):
    """The doubles at an address as rows."""
    return _array(types.float64, 2)


@intrinsic
def index_at(typing, address, size):
    """The whole numbers at an address as an array."""
    return _array(types.int64, 1)


@intrinsic
def index_rows_at(typing, address, rows, columns):
    """The whole numbers at an address as rows."""
    return _array(types.int64, 2)


@intrinsic
def vector_field(typing, table, k):
    """Field `k` of a table as an array of doubles."""
    return _field(types.float64, 1)


@intrinsic
def matrix_field(typing, table, k, columns):
    """Field `k` of a table as rows of doubles."""
    return _field(types.float64, 2)


@intrinsic
def index_field(typing, table, k):
    """Field `k` of a table as an array of whole numbers."""
    return _field(types.int64, 1)


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

    @intrinsic
    def fields_at(typing, table):
        arrays = [types.Array(entry, 1 if columns is None else 2, "C") for entry, columns in shapes]
        gives = types.BaseTuple.from_types(arrays, kind)

        def generate(context, builder, signature, values):
            made = []
            for k, (entry, columns) in enumerate(shapes, first):
                _, field = _field(entry, 1 if columns is None else 2)
                width = [] if columns is None else [ir.Constant(_I64, columns)]
                if columns == SQUARE:
                    width = [builder.load(_place(builder, values[0], ir.Constant(_I64, 2 * k + 1)))]
                made.append(field(context, builder, None, [values[0], ir.Constant(_I64, k), *width]))
            return context.make_tuple(builder, gives, made)

        return gives(types.int64), generate

    return fields_at


def _place(builder, table, word):
    return builder.gep(builder.inttoptr(table, _I64.as_pointer()), [word])


@intrinsic
def field_size(typing, table, k):
    """Rows of field `k` of a table."""

    def generate(context, builder, signature, values):
        place = builder.add(builder.shl(values[1], ir.Constant(_I64, 1)), ir.Constant(_I64, 1))
        return builder.load(_place(builder, values[0], place))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def address_of(typing, array):
    """Where the numbers of an array are, which lie side by side."""
    if not isinstance(array, types.Array) or array.layout != "C":
        return None

    def generate(context, builder, signature, values):
        return builder.ptrtoint(make_array(array)(context, builder, values[0]).data, _I64)

    return types.intp(array), generate


@intrinsic
def row_of(typing, matrix, i):
    """Row `i`, counted from the beginning, of rows that lie side by side, as an array that nobody counts."""
    if not isinstance(matrix, types.Array) or matrix.layout != "C" or matrix.ndim != 2:
        return None
    signature, array = _array(matrix.dtype, 1)

    def generate(context, builder, _, values):
        rows = make_array(matrix)(context, builder, values[0])
        columns = builder.extract_value(rows.shape, 1)
        start = builder.ptrtoint(builder.gep(rows.data, [builder.mul(values[1], columns)]), _I64)
        return array(context, builder, signature, [start, columns])

    return signature.return_type(matrix, types.intp), generate


@intrinsic
def whole(typing, x):
    """The whole part of a double, as a whole number."""

    def generate(context, builder, signature, values):
        return builder.fptosi(values[0], _I64)

    return types.int64(types.float64), generate


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
