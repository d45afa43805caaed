"""Messages of C programs in the manner of `printf`: every kind of argument, in registers and on the stack."""

import ctypes
import sys

import pytest

from cosolve.jit.variadic import LONGEST, address_of, logger

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="ctypes cannot call variadic functions there")

KIND = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
HEARD: list[tuple] = []


@KIND
def hear(environment, name, status, category, text):
    HEARD.append((environment, name, status, category, text))


def said(message, *arguments):
    """What arrives of a message; numbers go in as C has them after promotion."""
    HEARD.clear()
    log = ctypes.CFUNCTYPE(None)(logger(address_of(hear)))
    given = [ctypes.c_double(a) if isinstance(a, float) else a for a in arguments]
    log(ctypes.c_void_p(42), b"pump", 3, b"events", message, *given)
    ((environment, name, status, category, text),) = HEARD
    assert (environment, name, status, category) == (42, b"pump", 3, b"events")
    return text


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("nothing to fill in", ()),
        ("100 %%", ()),
        ("%s is %d of %i", (b"level", -3, 7)),
        ("%.3e %g %10.4f|", (1.5e-8, 0.25, -3.0)),
        ("%x %o %c %u", (255, 8, ord("A"), 12)),
        ("%-8s|%08.3f|%+d", (b"ab", 3.14159, 5)),
        ("%*d|%.*f", (6, 42, 2, 2.71828)),
        (" ".join(["%d"] * 12), tuple(range(12))),  # more than fit into registers
        (" ".join(["%g"] * 12), tuple(k / 4 for k in range(12))),
        (" ".join(["%d %g %s"] * 5), tuple(x for k in range(5) for x in (k, k / 8, b"t%d" % k))),
    ],
)
def test_formats(message, arguments):
    """Python's own formatting knows the same rules."""
    shown = tuple(a.decode() if isinstance(a, bytes) else a for a in arguments)
    assert said(message.encode(), *arguments).decode() == message % shown


def test_long_numbers():
    assert (
        said(b"%lld %llu", ctypes.c_longlong(-(2**40)), ctypes.c_ulonglong(2**63))
        == b"-1099511627776 9223372036854775808"
    )


def test_a_message_that_is_too_long_is_cut_off():
    assert said(b"%s!", b"x" * (2 * LONGEST)) == b"x" * (LONGEST - 1)


def test_no_message():
    assert said(ctypes.c_char_p(None)) == b""
