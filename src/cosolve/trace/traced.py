"""A function of a user as a list of operations, and as machine code that gives the same numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from cosolve.basics.wording import raised
from cosolve.trace.arrays import Array
from cosolve.trace.code import entry_code, function_code, loops_code, table_of, table_words
from cosolve.trace.sandbox import Sandbox
from cosolve.trace.tape import Condition, Number, Refusal, Tape, TracedPath, place_of, ways

#: Numbers in and out at most.
_MOST = 500

#: How far the machine code may be from Python, relative to the largest number: sums are added up in another order.
_CLOSE = 1e-9


class Traced:
    """The trace of one function.

    `hands_back` says that it may ask Python to do a step instead, `captures` that it has captured what can change.
    """

    def __init__(self, function: Callable[..., Any], tape: Tape, sandbox: Sandbox, found: list[TracedPath]) -> None:
        self.function, self.tape, self.ways = function, tape, found
        self._sandbox = sandbox
        self.captures = sandbox.captures
        self.hands_back = any(way.gives is None or way.checked for way in found)

    def code(self, name: str) -> str:
        """A function `name` in LLVM's language (`code.py`)."""
        return function_code(name, self.tape, self.ways)

    def words(self) -> list[Any]:
        """Its table."""
        return table_of(self.tape)

    @property
    def size(self) -> int:
        """Words of its table."""
        return table_words(self.tape)

    def unchanged(self) -> bool:
        """Whether the function would still be traced like this."""
        return self._sandbox.unchanged()


def plain_function(function: Any) -> tuple[Any, bool]:
    """The Python function, and whether numba has jitted it."""
    jitted = hasattr(function, "py_func") and hasattr(function, "nopython_signatures")
    return (function.py_func if jitted else function), jitted


def trace(
    function: Callable[..., Any], takes: Sequence[tuple[str, int | None]], gives: int, ports: Any = None
) -> Traced | str:
    """Run a function on stand-ins.

    Parameters
    ----------
    function : callable
        The function.
    takes : sequence of (str, int or None)
        Its arguments: "t" for the time, or the name of a vector ("x", "u") and the number of entries that come from it;
        None for a single number.
    gives : int
        How many numbers it gives.
    ports : Ports or None, default None
        For functions that may give a dict, its names in order.

    Returns
    -------
    Traced or str
        The trace, or why there is none.

    Examples
    --------
    >>> found = trace(lambda t, x: [x[1], -4.0 * x[0]], [("t", None), ("x", 2)], 2)
    >>> len(found.ways), found.hands_back
    (1, False)
    >>> trace(lambda t, x: print(x), [("t", None), ("x", 2)], 2)
    'it uses print (<doctest ...>, line 1)'
    """
    plain, jitted = plain_function(function)
    for option in ("fastmath", "parallel"):
        if getattr(function, "targetoptions", {}).get(option):
            return f"it is compiled with {option}"
    own = vars(type(plain)).get("__call__")
    if not isinstance(plain, (FunctionType, MethodType, partial)) and not isinstance(own, FunctionType):
        return f"it is a {type(plain).__name__} and not made of Python"
    tape = Tape(jitted)
    sandbox = Sandbox(tape)
    total = sum(1 if size is None else size for _, size in takes)
    if max(total, gives) > _MOST:
        return f"it has more than {_MOST} numbers"
    try:
        copy = sandbox.copy(plain, getattr(plain, "__name__", "the function"))

        def run() -> list[int]:
            return _flat(tape, copy(*_arguments(tape, takes)), gives, ports)

        found = ways(tape, run, sandbox.changed)
    except Refusal as refusal:
        return str(refusal)
    except Exception as error:
        return f"{raised(error)}{_line(tape, error)}"
    return Traced(function, tape, sandbox, found)


def _line(tape: Tape, error: BaseException) -> str:
    """The line of the function in which an error was raised."""
    found, at = "", error.__traceback__
    while at is not None:
        if at.tb_frame.f_code in tape.codes:
            found = f" ({place_of(at.tb_frame.f_code, at.tb_lineno)})"
        at = at.tb_next
    return found


def _arguments(tape: Tape, takes: Sequence[tuple[str, int | None]]) -> list[Any]:
    given: list[Any] = []
    used: dict[str, int] = {}
    for name, size in takes:
        if name == "t":
            given.append(tape.plain(tape.node("input", "t"), None))  # integrators give numbers of both kinds
            continue
        first = used.get(name, 0)
        used[name] = first + (1 if size is None else size)
        entries = [tape.node("input", name, k) for k in range(first, used[name])]
        data = np.empty(len(entries), dtype=object)
        data[:] = entries
        given.append(tape.plain(entries[0], False) if size is None else Array(tape, data))
    return given


def _flat(tape: Tape, given: Any, count: int, ports: Any) -> list[int]:
    """The nodes of what a function gave."""
    if isinstance(given, Mapping):
        if ports is None or set(given) != set(ports.names):
            raise tape.refused("it gives a dict with other names than those of the ports")
        given = [given[name] for name in ports.names]
    found = [tape.number(value).place for value in _entries(tape, given)]
    if len(found) != count:
        raise tape.refused(f"it gives {len(found)} numbers instead of {count}")
    return found


def _entries(tape: Tape, given: Any) -> list[Any]:
    if isinstance(given, Array):
        return list(given.data.ravel())
    if isinstance(given, np.ndarray):
        return given.ravel().tolist()
    if isinstance(given, (list, tuple)):
        return [entry for value in given for entry in _entries(tape, value)]
    if isinstance(given, (Number, Condition, bool, int, float, np.number)):
        return [given]
    raise tape.refused(f"it gives a {type(given).__name__}")


class Module:
    """Machine code of some traced functions and of what is around them, in memory.

    `more(places)` gives the code around; `places` says where in `@table` the table of each function begins, and last
    where the power function is. Each function can be called with arrays: `module.call(name, t, x, u, count)`.
    """

    def __init__(self, functions: Mapping[str, Traced], more: Callable[[list[int]], str] = lambda places: "") -> None:
        from cosolve.jit.assembly import kept, loaded
        from cosolve.trace.routines import addresses

        self.functions = dict(functions)
        places: list[int] = []
        words: list[Any] = []
        for traced in functions.values():
            places.append(len(words))
            words += traced.words()
        places.append(len(words))
        words.append(addresses(("c", "pow"))[0])
        parts = [f"@table = global [{len(words)} x i64] zeroinitializer, align 8", loops_code()]
        for (name, traced), place in zip(functions.items(), places, strict=False):
            parts += [traced.code(name), entry_code(f"call_{name}", name, place)]
        self._engine = loaded(kept("\n".join([*parts, more(places)])))
        at = int(self._engine.get_global_value_address("table"))
        self._table = np.ctypeslib.as_array((ctypes.c_double * len(words)).from_address(at))
        whole = self._table.view(np.int64)
        for k, word in enumerate(words):
            if isinstance(word, int):
                whole[k] = word
            else:
                self._table[k] = word

    def address(self, name: str) -> int:
        """Where a function is."""
        return int(self._engine.get_function_address(name))

    def unchanged(self) -> bool:
        """Whether the functions have captured what they had captured when they were traced."""
        return all(traced.unchanged() for traced in self.functions.values())

    def call(self, name: str, t: float, x: Any, u: Any, count: int) -> Any:
        """What a function gives, None where it asks Python."""
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, *[ctypes.c_void_p] * 3)
        x, u, y = np.array(x, dtype=np.float64), np.array(u, dtype=np.float64), np.zeros(count)
        status = kind(self.address(f"call_{name}"))(t, x.ctypes.data, u.ctypes.data, y.ctypes.data)
        return y if status == 0 else None

    def differs(self, name: str, expected: Any, t: float, x: Any, u: Any) -> str | None:
        """How the machine code of a function differs from what Python gave; None where it does not."""
        expected = np.asarray(expected, dtype=np.float64).reshape(-1)
        found = self.call(name, t, x, u, len(expected))
        if found is None or not np.isfinite(expected).all():
            return None  # Python takes such steps
        size = max(float(np.abs(expected).max(initial=0.0)), 1e-300)
        off = float(np.abs(found - expected).max(initial=0.0))
        if off <= _CLOSE * size:
            return None
        return f"its machine code gave {found.tolist()} where Python gives {expected.tolist()}"
