"""Plain values as bytes and back, for what comes from another machine: msgpack, with arrays of numpy and nothing else.

Reading executes nothing: the bytes become None, Booleans, numbers, text, bytes, lists, tuples, dicts, sets and arrays
of numbers, Booleans or text, or they are refused (`Malformed`). Doubles and arrays keep their bits, type and order in
memory. Objects of a few named classes travel where both sides say how (`Objects`). Lengths are checked before memory is
taken, and how deep things may lie inside each other is limited.
"""

from __future__ import annotations

import re
import struct
from functools import partial
from typing import Any, Protocol

import numpy as np

from cosolve.basics.packages import optional
from cosolve.basics.wording import shortened, text_of
from cosolve.errors import CosolveError, SetupError, SubsystemError

ARRAY, SCALAR, TUPLE, COMPLEX, INTEGER, SET, FROZEN_SET, OBJECT = range(1, 9)  # extension types, never renumbered

_TYPES = re.compile(r"[<>|](b1|i[1248]|u[1248]|f[248]|c8|c16|U[1-9]\d{0,6}|S[1-9]\d{0,6})")
_DEPTH = 24  # tuples, sets and objects inside each other; lists and maps have the 1024 of msgpack
_DIMENSIONS = 32
_DIGITS = 512  # bytes of an integer beyond 64 bits
_KEYS = 10_000  # of a set, or of a dict whose keys are no text: numbers can be chosen to have equal hashes
_COLLECTIONS: dict[type, int] = {tuple: TUPLE, set: SET, frozenset: FROZEN_SET}
_COMPLEX = struct.Struct("<dd")


class Malformed(Exception):
    """These bytes are nothing that `pack` writes."""


class Objects(Protocol):
    """How objects of named classes are taken apart and put together."""

    def taken_apart(self, value: Any) -> tuple[str, Any] | None:
        """Name of the class and what the object consists of; None for a class that does not travel."""

    def put_together(self, name: str, content: Any) -> Any:
        """The object; raises for a name that is not known and for content that does not fit."""


def pack(value: Any, objects: Objects | None = None) -> bytes:
    """`value` as bytes; a sentence for what does not travel.

    >>> unpack(pack({"t": 0.5, "y": (1, None, np.arange(3.0))}))
    {'t': 0.5, 'y': (1, None, array([0., 1., 2.]))}
    >>> pack({"model": object()})
    Traceback (most recent call last):
    ...
    cosolve.errors.SubsystemError: a value of type object cannot be sent to another machine; numbers, text, bytes,
    arrays, and lists, tuples, dicts and sets of these can
    """
    try:
        return _packed(value, objects)
    except CosolveError:
        raise
    except (ValueError, OverflowError, RecursionError) as error:
        raise SubsystemError(f"{shortened(value)} cannot be sent to another machine: {error}") from None


def unpack(data: bytes | memoryview, objects: Objects | None = None) -> Any:
    """The value in `data`, or `Malformed`.

    >>> unpack(b"no data")
    Traceback (most recent call last):
    ...
    cosolve.process.data.Malformed: not the data of cosolve (unpack(b) received extra data.)
    """
    try:
        return _unpacked(data, objects, 0)
    except (Malformed, SetupError):
        raise
    except Exception as error:  # whatever msgpack, numpy and classes make of foreign bytes
        raise Malformed(f"not the data of cosolve ({text_of(error) or type(error).__name__})") from None


def library(name: str) -> Any:
    """A library that only subsystems on other machines need.

    >>> library("no_such_library")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: a subsystem on another machine needs no_such_library, which is not installed; run: pip
    install 'cosolve[network]'
    """
    return optional(name, "network", "a subsystem on another machine")


# -- writing ----------------------------------------------------------------------------------------------------------


def _packed(value: Any, objects: Objects | None) -> bytes:
    write = library("msgpack").packb
    data: bytes = write(value, default=partial(_extension, objects=objects), strict_types=True, use_bin_type=True)
    return data


def _extension(value: Any, objects: Objects | None) -> Any:
    """What msgpack does not know by itself."""
    kind = type(value)
    if kind in _COLLECTIONS:
        return _ext(_COLLECTIONS[kind], _packed(list(value), objects))
    if kind is int and value.bit_length() < 8 * _DIGITS:  # smaller ones are known
        return _ext(INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
    if kind is complex:
        return _ext(COMPLEX, _COMPLEX.pack(value.real, value.imag))
    if kind is np.ndarray or isinstance(value, np.generic):
        return _numbers(value)
    found = None if objects is None else objects.taken_apart(value)
    if found is None:
        raise SubsystemError(
            f"a value of type {kind.__name__} cannot be sent to another machine; numbers, text, bytes, arrays, and "
            "lists, tuples, dicts and sets of these can"
        )
    return _ext(OBJECT, _packed(list(found), objects))


def _numbers(value: Any) -> Any:
    """An array or a scalar of numpy."""
    array = np.asarray(value)
    if not _TYPES.fullmatch(array.dtype.str):
        raise SubsystemError(
            f"an array of type {array.dtype} cannot be sent to another machine; Booleans, integers, floating-point "
            "numbers of up to 64 bits, complex numbers and text can"
        )
    by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
    data = array.tobytes("F" if by_columns else "C")
    head = [array.dtype.str, by_columns, list(array.shape), data]
    return _ext(ARRAY if isinstance(value, np.ndarray) else SCALAR, library("msgpack").packb(head))


def _ext(code: int, data: bytes) -> Any:
    return library("msgpack").ExtType(code, data)


# -- reading ----------------------------------------------------------------------------------------------------------


def _unpacked(data: bytes | memoryview, objects: Objects | None, depth: int) -> Any:
    if depth > _DEPTH:
        raise Malformed(f"values lie inside each other more than {_DEPTH} deep")
    hook = partial(_read_extension, objects=objects, depth=depth + 1)
    read = library("msgpack").unpackb
    return read(data, ext_hook=hook, object_pairs_hook=_read_dict, raw=False, strict_map_key=False, timestamp=1)


def _read_dict(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    if len(pairs) > _KEYS and not all(type(key) is str for key, _ in pairs):
        raise Malformed(f"{len(pairs)} keys that are no text; at most {_KEYS} are read")
    return dict(pairs)


def _read_extension(code: int, data: bytes, objects: Objects | None, depth: int) -> Any:
    if code in (ARRAY, SCALAR):
        return _read_numbers(code, data)
    if code == COMPLEX:
        return complex(*_COMPLEX.unpack(data))
    if code == INTEGER:
        if len(data) > _DIGITS:
            raise Malformed(f"an integer of {len(data)} bytes")
        return int.from_bytes(data, "little", signed=True)
    if code not in (TUPLE, SET, FROZEN_SET, OBJECT):
        raise Malformed(f"an unknown extension type {code}")
    items = _unpacked(data, objects, depth)
    if type(items) is not list:
        raise Malformed(f"extension type {code} without a list")
    if code == TUPLE:
        return tuple(items)
    if code == OBJECT:
        name, content = items
        if objects is None or type(name) is not str:
            raise Malformed("an object where none is expected")
        return objects.put_together(name, content)
    if len(items) > _KEYS:
        raise Malformed(f"a set of {len(items)} values; at most {_KEYS} are read")
    return set(items) if code == SET else frozenset(items)


def _read_numbers(code: int, data: bytes) -> Any:
    kind, by_columns, shape, raw = library("msgpack").unpackb(data, raw=False)
    if type(kind) is not str or type(raw) is not bytes or type(shape) is not list or not _TYPES.fullmatch(kind):
        raise Malformed("an array of an unknown type")
    if len(shape) > _DIMENSIONS or any(type(n) is not int or n < 0 for n in shape):
        raise Malformed("an array of an impossible shape")
    dtype, count = np.dtype(kind), 1
    for n in shape:
        count *= n
    if count * dtype.itemsize != len(raw):
        raise Malformed(f"an array of {count} values in {len(raw)} bytes")
    if dtype.kind == "b" and raw and max(raw) > 1:  # other bytes are undefined behaviour inside numpy
        raise Malformed("Booleans that are neither true nor false")
    if dtype.kind == "U" and raw and int(np.frombuffer(raw, f"{kind[0]}u4").max()) > 0x10FFFF:
        raise Malformed("text with characters that do not exist")
    order: Any = "F" if by_columns else "C"
    array = np.ndarray(shape, dtype, raw, order=order).copy(order)
    return array if code == ARRAY else array[()]
