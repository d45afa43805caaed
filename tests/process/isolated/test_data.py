"""Values as bytes for another machine: the same bits come back, and foreign bytes do nothing."""

import os
import pickle
import random
import struct
from contextlib import suppress

import msgpack
import numpy as np
import pytest

import cosolve as cs
from cosolve.process import data

PLAIN = [
    None,
    True,
    -(2**63),
    2**64 - 1,
    2**200,
    -(2**200),
    "angle ü",
    b"\x00\xff",
    2.5 - 1j,
    [1, [2, (3, ())]],
    {"a": {1: (2.0,), (1, 2): frozenset({"x"})}},
    {3, "b"},
]

ARRAYS = [
    np.array([0.1, -0.0, np.inf, 5e-324]),
    np.arange(6, dtype=np.int32).reshape(2, 3).T,
    np.zeros((0, 3)),
    np.array(4.5),
    np.array([True, False]),
    np.array(["a", "bcd"]),
    np.array([b"x", b"yz"]),
    np.array([1 + 2j], dtype=np.complex64),
    np.arange(4, dtype=">f8"),
    np.arange(10.0)[::3],
    np.float32(0.1),
    np.int8(-3),
    np.bool_(True),
    np.float64(0.1),
    np.str_("text"),
]


@pytest.mark.parametrize("value", PLAIN, ids=lambda value: type(value).__name__)
def test_plain_values_come_back_as_they_were(value):
    found = data.unpack(data.pack(value))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("value", ARRAYS, ids=repr)
def test_arrays_and_scalars_keep_bits_type_and_order(value):
    found = data.unpack(data.pack({"v": value}))["v"]
    assert type(found) is type(value)
    assert found.dtype == value.dtype
    assert found.shape == value.shape
    assert found.tobytes() == value.tobytes()
    if isinstance(value, np.ndarray):
        assert found.flags.writeable
        assert found.flags.f_contiguous == (value.flags.f_contiguous or not value.flags.forc)


def test_every_double_keeps_its_bits():
    """Also NaNs that carry something."""
    words = [random.Random(1).getrandbits(64) for _ in range(200)] + [0x7FF8DEADBEEF0001, 0x8000000000000000]
    doubles = [struct.unpack("<d", struct.pack("<Q", word))[0] for word in words]
    found = data.unpack(data.pack(doubles))
    assert [struct.pack("<d", number) for number in found] == [struct.pack("<d", number) for number in doubles]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (object(), "a value of type object cannot be sent"),
        (np.array([object()]), "an array of type object cannot be sent"),
        (np.zeros(1, dtype=[("a", float)]), "an array of type"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "an array of type"),
        (lambda: None, "a value of type function cannot be sent"),
        (cs.Port("x"), "a value of type Port cannot be sent"),
        ("\ud800", "cannot be sent"),
    ],
    ids=["object", "object array", "structured", "dates", "function", "class", "half a character"],
)
def test_what_does_not_travel_is_named(value, expected):
    with pytest.raises(cs.errors.SubsystemError, match=expected):
        data.pack([value])


class _Deed:
    """What a pickle can do when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def _ext(code, *content):
    return msgpack.packb(msgpack.ExtType(code, msgpack.packb(content[0] if len(content) == 1 else list(content))))


def _nested(levels, code):
    inner = msgpack.packb([])
    for _ in range(levels):
        inner = msgpack.packb([msgpack.ExtType(code, inner)])
    return inner


HOSTILE = {
    "nothing": b"",
    "length beyond the data": b"\xdd\xff\xff\xff\xff",
    "text beyond the data": b"\xdb\x7f\xff\xff\xff",
    "many lists that claim many items": b"\xdd\x00\x00\xf0\x00" * 1000 + bytes(2**16),
    "lists inside each other": b"\x91" * 10_000,
    "lists inside each other, closed": b"\x91" * 10_000 + b"\xc0",
    "tuples inside each other": _nested(60, data.TUPLE),
    "trailing bytes": msgpack.packb(1) + b"x",
    "unknown extension": _ext(77, []),
    "objects array": _ext(data.ARRAY, "|O", False, [1], b"12345678"),
    "structured array": _ext(data.ARRAY, "i4,f8", False, [1], bytes(12)),
    "void array": _ext(data.ARRAY, "|V8", False, [1], bytes(8)),
    "dtype of no text": _ext(data.ARRAY, 8, False, [1], bytes(8)),
    "huge text items": _ext(data.ARRAY, "<U99999999", False, [0], b""),
    "shape beyond the data": _ext(data.ARRAY, "<f8", False, [2**40], bytes(8)),
    "shape that wraps around": _ext(data.ARRAY, "<f8", False, [2**32, 2**32], b""),
    "negative shape": _ext(data.ARRAY, "<f8", False, [-1, -1], bytes(8)),
    "shape of text": _ext(data.ARRAY, "<f8", False, ["1"], bytes(8)),
    "too many dimensions": _ext(data.ARRAY, "<f8", False, [1] * 100, bytes(8)),
    "odd Booleans": _ext(data.ARRAY, "|b1", False, [1], b"\x07"),
    "characters that do not exist": _ext(data.ARRAY, "<U1", False, [1], b"\xff\xff\xff\x7f"),
    "array without content": _ext(data.ARRAY, []),
    "integer without end": msgpack.packb(msgpack.ExtType(data.INTEGER, bytes(10**5))),
    "keys that cannot be keys": b"\x81\x90\x01",
    "keys with equal hashes": msgpack.packb({(2**61 - 1) * k: 0 for k in range(8)} | dict.fromkeys(range(20_000), 0)),
    "a set of lists": _ext(data.SET, [[1]]),
    "a tuple of no list": _ext(data.TUPLE, 5),
    "an object where none is expected": _ext(data.OBJECT, "os.system", "true"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_refused(name):
    with pytest.raises(data.Malformed):
        data.unpack(HOSTILE[name])


@pytest.mark.parametrize(
    ("make", "most"),
    [
        (lambda n: _nested(n, data.TUPLE), 24),
        (lambda n: _ext(data.ARRAY, "<f8", False, [1] * n, bytes(8)), 32),
        (lambda n: msgpack.packb(msgpack.ExtType(data.INTEGER, bytes(n))), 512),
        (lambda n: _ext(data.SET, list(range(n))), 10_000),
        (lambda n: msgpack.packb(dict.fromkeys(range(n), 0)), 10_000),
        (lambda n: _ext(data.ARRAY, "|b1", False, [2], bytes([n, 0])), 1),
        (lambda n: _ext(data.ARRAY, "<U1", False, [2], struct.pack("<II", n, 65)), 0x10FFFF),
    ],
    ids=["depth", "dimensions", "digits", "set", "keys", "Booleans", "characters"],
)
def test_the_largest_of_everything_is_read(make, most):
    data.unpack(make(most))
    with pytest.raises(data.Malformed):
        data.unpack(make(most + 1))


def test_pickles_are_bytes_like_any_others(tmp_path):
    """At every level of the protocol, bare and inside of each extension."""
    there = tmp_path / "deed"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        code = pickle.dumps(_Deed(there), protocol=protocol)
        with pytest.raises(data.Malformed):
            data.unpack(code)
        for kind in range(20):
            with suppress(data.Malformed):
                assert type(data.unpack(msgpack.packb(msgpack.ExtType(kind, code)))) is int  # a long one
    assert not there.exists()


def test_random_and_spoilt_bytes_are_read_or_refused():
    """Nothing but `Malformed`, and whatever is read can be written again."""
    numbers = random.Random(3)
    whole = data.pack([PLAIN, ARRAYS])
    for _ in range(3000):
        spoilt = bytearray(whole if numbers.random() < 0.5 else numbers.randbytes(numbers.randrange(1, 60)))
        for _ in range(numbers.randrange(1, 4)):
            spoilt[numbers.randrange(len(spoilt))] = numbers.randrange(256)
        try:
            found = data.unpack(bytes(spoilt[: numbers.randrange(1, len(spoilt) + 1)]))
        except data.Malformed:
            continue
        data.pack(found)


def test_objects_travel_where_both_sides_say_how():
    class Ports:
        def taken_apart(self, value):
            return ("port", value.name) if isinstance(value, cs.Port) else None

        def put_together(self, name, content):
            assert name == "port"
            return cs.Port(content)

    code = data.pack([cs.Port("x")], Ports())
    assert data.unpack(code, Ports()) == [cs.Port("x")]
    with pytest.raises(data.Malformed, match="an object where none is expected"):
        data.unpack(code)
    with pytest.raises(data.Malformed):
        data.unpack(_ext(data.OBJECT, "subprocess.Popen", ["true"]), Ports())


def test_a_missing_library_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "msgpack", None)
    with pytest.raises(cs.errors.SetupError, match=r"needs msgpack, which is not installed; run: pip install 'cosolve"):
        data.pack(1)
