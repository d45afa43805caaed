"""What travels between a run and the process of a subsystem: one fixed header, then arrays of doubles as they are.

The frequent calls (advancing over a step, rollback, outputs) hold nothing else, so a small message costs about a
microsecond to write or to read and every double arrives with the bits it left with. What the rare ones hold besides is
bytes here; a `Format` makes them: pickles for a process of ours (`pickles.py`), plain data for another machine
(`content.py`). Sizes are compared with the bytes that came before anything is read: what does not fit is `Malformed`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.process.data import Malformed
from cosolve.signal.polynomial import InputSignal, Polynomial

# calls
LOAD, ATTACH, START, ADVANCE, REPLAY, STEP, JACOBIAN, OUTPUT, SAVE, RESTORE, GET_STATE, SET_STATE = range(12)
EQUATIONS, RHS, OUTPUT_FUNCTION, CALL, NOISE = range(12, 17)
NATIVE, ENTER, LEFT, EXPLAIN, RESPONSE = range(17, 22)  # about subsystem steps from compiled code
COST = 22  # to a rank of an MPI job
_BY_COLUMNS = 1 << 16  # flag: the coefficients lie column by column, as they did in the caller's memory

# notes: what is to be done with a state before a call
FORGET, KEEP, GO_BACK = range(3)

# what an answer holds
NOTHING, VECTOR, MATRIX, OBJECT, FAILURE = range(5)

_REQUEST = struct.Struct("<IIqddddIIII")
_ANSWER = struct.Struct("<IIqdII")
_NO_ARRAY = np.zeros(0)
_DOUBLE = np.dtype(np.float64)
_LONG = 1024  # numbers: shorter arrays are cheaper to copy than to pass on piece by piece

Parts: TypeAlias = list[bytes | memoryview]


class Format(Protocol):
    """How the contents of rare calls, and what was raised, become bytes and are read again."""

    def pack(self, value: Any) -> bytes:
        """Any content; a sentence where it cannot travel."""

    def unpack(self, data: bytes | memoryview) -> Any:
        """The content, or `Malformed`."""

    def pack_error(self, error: Exception) -> bytes:
        """What was raised."""

    def unpack_error(self, data: bytes | memoryview) -> Exception:
        """Something to raise here, or `Malformed`."""


class Request(NamedTuple):
    """One call: its times, an input signal or a matrix, a further vector, and notes of what is to be done before."""

    call: int
    handle: int
    t0: float
    t1: float
    u_t0: float
    u_H: float
    coefficients: Matrix
    extra: Vector
    notes: tuple[int, ...]
    content: memoryview


class Answer(NamedTuple):
    """What came back: `form` says which of the fields count; an object or a failure is still bytes."""

    form: int
    handle: int
    t: float
    value: Any


def write_request(
    call: int,
    *,
    handle: int = 0,
    times: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0),
    coefficients: Matrix | None = None,
    extra: Vector | None = None,
    notes: Sequence[int] = (),
    content: bytes = b"",
) -> Parts:
    """The bytes of a request, in one piece or (long arrays as they lie in memory) several.

    >>> parts = write_request(OUTPUT, times=(0.5, 0, 0, 0), extra=np.array([1.0, 2.0]))
    >>> r = read_request(memoryview(b"".join(parts)))
    >>> r.call == OUTPUT, r.t0, r.extra
    (True, 0.5, array([1., 2.]))
    """
    rows = columns = n_extra = 0
    arrays: list[Vector] = []
    if coefficients is not None:
        rows, columns = coefficients.shape
        if coefficients.flags.f_contiguous and not coefficients.flags.c_contiguous:
            call |= _BY_COLUMNS
            coefficients = coefficients.T
        arrays.append(coefficients)
    if extra is not None:
        n_extra = extra.size
        arrays.append(extra)
    head = _REQUEST.pack(call, len(notes), handle, *times, rows, columns, n_extra, len(content))
    return _parts(head, arrays, (struct.pack(f"<{len(notes)}q", *notes) if notes else b"") + content)


def write_note(handle: int, what: int) -> int:
    """What is to be done with a state before the call that carries the note.

    >>> read_note(write_note(12, KEEP)) == (12, KEEP)
    True
    """
    return 4 * handle + what


def read_note(note: int) -> tuple[int, int]:
    """The handle, and what is to be done."""
    handle, what = divmod(note, 4)
    if what not in (FORGET, KEEP, GO_BACK):
        raise Malformed(f"a note of the unknown kind {what}")
    return handle, what


def read_call(data: memoryview) -> int:
    """Which call a request is."""
    return int(_head(_REQUEST, data)[0]) & ~_BY_COLUMNS


def read_request(data: memoryview) -> Request:
    """The request in `data`; its arrays are copies of their own."""
    call, n_notes, handle, t0, t1, u_t0, u_H, rows, columns, n_extra, n_content = _head(_REQUEST, data)
    at = _REQUEST.size
    _refuse_other_size(data, at + 8 * (rows * columns + n_extra + n_notes) + n_content)
    coefficients = _array(data, at, rows * columns)
    at += 8 * rows * columns
    if call & _BY_COLUMNS:
        call &= ~_BY_COLUMNS
        coefficients = coefficients.reshape(columns, rows).T
    else:
        coefficients = coefficients.reshape(rows, columns)
    extra = _array(data, at, n_extra)
    at += 8 * n_extra
    notes = struct.unpack_from(f"<{n_notes}q", data, at) if n_notes else ()
    at += 8 * n_notes
    return Request(call, handle, t0, t1, u_t0, u_H, coefficients, extra, notes, data[at:])


def write_advance(t0: float, t1: float, u: InputSignal) -> Parts:
    """The request that comes once per macro step: to advance, with a signal and nothing else.

    >>> from cosolve.signal.polynomial import Polynomial
    >>> u = Polynomial(0.5, 0.1, np.array([[1.0, 2.0]]))
    >>> write_advance(0.5, 0.6, u) == write_request(ADVANCE, times=(0.5, 0.6, 0.5, 0.1), coefficients=u.coefficients)
    True
    """
    coefficients = u.coefficients
    if coefficients.size >= _LONG or not coefficients.flags.c_contiguous:
        return write_request(ADVANCE, times=(t0, t1, u.t0, u.H), coefficients=coefficients)
    head = _REQUEST.pack(ADVANCE, 0, 0, t0, t1, u.t0, u.H, *coefficients.shape, 0, 0)
    return [head + coefficients.tobytes()]


def read_advance(data: memoryview) -> tuple[float, float, Polynomial] | None:
    """Times and signal of such a request; None for any other.

    >>> t0, t1, u = read_advance(memoryview(write_advance(0.5, 0.6, Polynomial(0.5, 0.1, np.array([[1.0, 2.0]])))[0]))
    >>> t0, t1, u.H, u.coefficients
    (0.5, 0.6, 0.1, array([[1., 2.]]))
    """
    call, n_notes, _, t0, t1, u_t0, u_H, rows, columns, n_extra, n_content = _head(_REQUEST, data)
    if call != ADVANCE or n_notes or n_extra or n_content or not columns:
        return None
    _refuse_other_size(data, _REQUEST.size + 8 * rows * columns)
    return t0, t1, Polynomial(u_t0, u_H, np.ndarray((rows, columns), _DOUBLE, data, _REQUEST.size).copy())


def write_vector(value: Vector) -> Parts:
    """The answer that comes once per macro step.

    >>> write_vector(np.array([1.0, 2.0])) == write_answer(VECTOR, np.array([1.0, 2.0]))
    True
    """
    if value.size >= _LONG:
        return write_answer(VECTOR, value)
    return [_ANSWER.pack(VECTOR, 0, 0, 0.0, value.size, 1) + value.tobytes()]


def read_vector(data: memoryview) -> Vector | None:
    """The vector in such an answer; None for any other.

    >>> read_vector(memoryview(write_vector(np.array([1.0, 2.0]))[0]))
    array([1., 2.])
    """
    form, _, _, _, rows, _ = _head(_ANSWER, data)
    if form != VECTOR:
        return None
    _refuse_other_size(data, _ANSWER.size + 8 * rows)
    return np.ndarray(rows, _DOUBLE, data, _ANSWER.size).copy()


def write_answer(form: int, value: Any = None, *, handle: int = 0, t: float = 0.0) -> Parts:
    """The bytes of an answer, in one or several pieces; an object and a failure are given as bytes.

    >>> read_answer(memoryview(b"".join(write_answer(VECTOR, np.array([1.0]), t=0.5))))
    Answer(form=1, handle=0, t=0.5, value=array([1.]))
    """
    if form in (VECTOR, MATRIX):
        shape = (value.size, 1) if form == VECTOR else value.shape
        return _parts(_ANSWER.pack(form, 0, handle, t, *shape), [value], b"")
    return [_ANSWER.pack(form, 0, handle, t, 0, 0) + (b"" if form == NOTHING else value)]


def _parts(head: bytes, arrays: list[Vector], tail: bytes) -> Parts:
    """Short messages in one piece; long arrays without a copy."""
    if sum(array.size for array in arrays) < _LONG:
        return [head + b"".join([array.tobytes() for array in arrays]) + tail]
    pieces: Parts = [head]
    pieces += [np.ascontiguousarray(array).data.cast("B") for array in arrays if array.size]
    return [*pieces, tail] if tail else pieces


def read_answer(data: memoryview) -> Answer:
    """The answer in `data`; its arrays are copies of their own."""
    form, _, handle, t, rows, columns = _head(_ANSWER, data)
    value: Any = None
    if form in (VECTOR, MATRIX):
        count = rows if form == VECTOR else rows * columns
        _refuse_other_size(data, _ANSWER.size + 8 * count)
        value = _array(data, _ANSWER.size, count)
        if form == MATRIX:
            value = value.reshape(rows, columns)
    elif form in (OBJECT, FAILURE):
        value = data[_ANSWER.size :]
    elif form != NOTHING:
        raise Malformed(f"an answer of the unknown form {form}")
    return Answer(form, handle, t, value)


def _head(form: struct.Struct, data: memoryview) -> tuple[Any, ...]:
    if len(data) < form.size:
        raise Malformed(f"a message of {len(data)} bytes, shorter than its head")
    return form.unpack_from(data)


def _refuse_other_size(data: memoryview, size: int) -> None:
    if len(data) != size:
        raise Malformed(f"a message of {len(data)} bytes that says it has {size}")


def _array(data: memoryview, at: int, count: int) -> Vector:
    if not count:
        return _NO_ARRAY
    return np.frombuffer(data, dtype=np.float64, count=count, offset=at).copy()
