"""The only package that knows numba's inside: machine code on disk, calls and arrays by address, atomics, formulas.

The rest of the package takes plain names from here. What they stand on in numba is not documented there, so
`tests/jit/test_numba_facts.py` checks each such fact by itself, and `pyproject.toml` bounds the version.
"""

from numba import carray, types  # type: ignore[attr-defined]
from numba.core.errors import NumbaError

from cosolve.jit.assembly import assembled
from cosolve.jit.atomics import exchange, load, pause, store
from cosolve.jit.calls import (
    ADVANCE_CALL,
    KEEPING,
    LAW,
    PARTIALS,
    RAISED,
    RESPONSE,
    c_address,
    c_call,
    call_advance,
    call_keep,
    call_law,
    call_nine,
    call_nothing,
    call_one,
    call_partials,
    call_response,
    call_six,
    call_status_2,
    call_status_4,
    call_status_5,
    call_step_2,
    call_step_3,
    call_two,
    raising_address,
    raising_call,
)
from cosolve.jit.decorators import allocating, bare, called, compiled, entry, inlined, internal, njit, part
from cosolve.jit.formulas import chosen, formula, larger, smaller
from cosolve.jit.memory import (
    SQUARE,
    address_of,
    double_at,
    doubles_at,
    field_size,
    fields_of,
    finite,
    index_at,
    index_field,
    index_rows_at,
    matrix_at,
    matrix_field,
    put_double_at,
    put_word_at,
    row_of,
    row_products,
    short_loop,
    vector_at,
    vector_field,
    whole,
    word_at,
    words_at,
)
from cosolve.jit.records import record_at
