"""Numbers and arrays by address, so that compiled functions hand on one number; and what keeps short loops short."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic as _intrinsic
from numba.np.arrayobj import make_array, populate_array

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
        array = make_array(array_type)(context, builder)
        size = context.get_constant(types.intp, 8)
        strides = [size] if dimensions == 1 else [builder.mul(size, values[2]), size]
        pointer = builder.inttoptr(values[0], context.get_data_type(kind).as_pointer())
        populate_array(array, data=pointer, shape=values[1:], strides=strides, itemsize=size, meminfo=None)
        return array._getvalue()

    return array_type(*[types.intp] * (1 + dimensions)), generate


def _field(kind, dimensions):
    """The same for field `k` of a table, which holds an address and a number of rows for each field."""
    signature, array = _array(kind, dimensions)

    def generate(context, builder, _, values):
        table, k, *width = values
        pair = builder.gep(builder.inttoptr(table, _I64.as_pointer()), [builder.shl(k, ir.Constant(_I64, 1))])
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


@intrinsic
def index_rows_field(typing, table, k, columns):
    """Field `k` of a table as rows of whole numbers."""
    return _field(types.int64, 2)


@intrinsic
def field_size(typing, table, k):
    """Rows of field `k` of a table."""

    def generate(context, builder, signature, values):
        place = builder.add(builder.shl(values[1], ir.Constant(_I64, 1)), ir.Constant(_I64, 1))
        return builder.load(builder.gep(builder.inttoptr(values[0], _I64.as_pointer()), [place]))

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
