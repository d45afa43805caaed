"""Contents of rare calls as plain data: for what another machine sends, which may not run anything here.

Beyond what `data.py` knows, ports, input signals and the memories of some solvers travel, each class by a name in the
lists below. An exception travels as the name of its class and its text; it is rebuilt where the class is one of cosolve
or a plain one of Python, and is a `SubsystemError` with the same words otherwise.
"""

from __future__ import annotations

import builtins
import traceback
from importlib import import_module
from typing import Any

import numpy as np

from cosolve import errors
from cosolve.basics.wording import shown, text_of
from cosolve.errors import CosolveError, SubsystemError
from cosolve.process.data import Malformed, pack, unpack
from cosolve.signal.polynomial import Polynomial
from cosolve.subsystem.port import Port
from cosolve.subsystem.units import Unit

#: memories that states of subsystems hold: their names here, which stay, and where they live now
_MEMORIES = {
    "History": "cosolve.signal.history",
    "Counts": "cosolve.integrator.bdf_control",
    "AcceptedSteps": "cosolve.subsystem.interpolated_outputs",
    "Past": "cosolve.structures.integrators",
}

#: exceptions that are rebuilt from their text; KeyError is not among them, which shows it in quotes
_ERRORS: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, CosolveError)
} | {
    name: getattr(builtins, name)
    for name in (
        *("ArithmeticError", "AssertionError", "AttributeError", "ConnectionError", "EOFError", "Exception"),
        *("FileExistsError", "FileNotFoundError", "FloatingPointError", "ImportError", "IndexError"),
        *("LookupError", "MemoryError", "ModuleNotFoundError", "NotADirectoryError", "NotImplementedError"),
        *("OSError", "OverflowError", "PermissionError", "RecursionError", "RuntimeError", "TimeoutError"),
        *("TypeError", "ValueError", "ZeroDivisionError"),
    )
}
_FIELDS = ("time", "subsystem", "outputs")  # of errors of cosolve
_LONGEST = 2000  # characters of a text
_TRACEBACK = 20_000


class Content:
    """The `Format` between machines.

    >>> Content().unpack(Content().pack((Port("x", unit="N"), Polynomial(0.0, 1.0, np.ones((1, 1)))))) [0]
    Port(name='x', size=None, unit='N', nominal=1.0, definition=None)
    >>> str(Content().unpack_error(Content().pack_error(ZeroDivisionError("no flow left"))))
    'no flow left'
    """

    def pack(self, value: Any) -> bytes:
        return pack(value, self)

    def unpack(self, data: bytes | memoryview) -> Any:
        return unpack(data, self)

    # -- objects -------------------------------------------------------------------------------------------------------

    def taken_apart(self, value: Any) -> tuple[str, Any] | None:
        """Name of the class and what the object consists of."""
        if isinstance(value, Polynomial):  # whatever its columns follow inside the step stays here
            return "Polynomial", (float(value.t0), float(value.H), np.asarray(value.coefficients, np.float64))
        if type(value) is Port:
            return "Port", (value.name, value.size, value.unit, value.nominal, value.definition)
        if type(value) is Unit:
            return "Unit", (value.name, value.factor, value.offset, value.exponents)
        name = type(value).__name__
        return (name, value.__getstate__()) if _MEMORIES.get(name) == type(value).__module__ else None

    def put_together(self, name: str, content: Any) -> Any:
        """The object of a class that is listed here."""
        if name == "Polynomial":
            t0, H, coefficients = content
            if type(t0) is not float or type(H) is not float or not _is_matrix(coefficients):
                raise Malformed("a signal that is none")
            return Polynomial(t0, H, coefficients)
        if name == "Port":
            return Port(*content)
        if name == "Unit":
            title, factor, offset, exponents = content
            if type(title) is not str or type(factor) is not float or type(offset) is not float:
                raise Malformed("a unit that is none")
            return Unit(title, factor, offset, dict(exponents))
        if name not in _MEMORIES:
            raise Malformed(f"an object of the unknown class {shown(name)}")
        kind = getattr(import_module(_MEMORIES[name]), name)
        made = object.__new__(kind)
        if hasattr(kind, "__setstate__"):
            made.__setstate__(content)
        else:
            vars(made).update(content)
        return made

    # -- exceptions ----------------------------------------------------------------------------------------------------

    def pack_error(self, error: Exception) -> bytes:
        """The name of its class, its text, where it came from, and what errors of cosolve hold."""
        where = "".join(traceback.format_exception(error))[-_TRACEBACK:]
        words: dict[str, Any] = {"kind": type(error).__name__, "text": text_of(error), "where": where}
        if isinstance(error, CosolveError):
            words["fields"] = {name: getattr(error, name) for name in _FIELDS if hasattr(error, name)}
        try:
            return self.pack(words)
        except CosolveError:  # outputs of a class that does not travel, or odd characters
            return self.pack({name: shown(words[name], _LONGEST) for name in ("kind", "text", "where")})

    def unpack_error(self, data: bytes | memoryview) -> Exception:
        """The exception, with the traceback of the other side as a note."""
        words = self.unpack(data)
        if type(words) is not dict or not all(type(words.get(key)) is str for key in ("kind", "text", "where")):
            raise Malformed("a failure without words")
        kind, text = shown(words["kind"]), shown(words["text"], _LONGEST)
        error = _ERRORS[kind](text) if kind in _ERRORS else SubsystemError(f"{text} ({kind})")
        fields = words.get("fields")
        if isinstance(error, CosolveError) and type(fields) is dict:
            for name in _FIELDS:
                if hasattr(error, name) and _fits(name, fields.get(name)):
                    setattr(error, name, fields.get(name))
        lines = [shown(line, _LONGEST) for line in words["where"][-_TRACEBACK:].splitlines()]
        error.add_note("\n".join(["In the process of the subsystem:", *lines]))
        return error


def _is_matrix(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype == np.float64 and value.ndim == 2


def _fits(name: str, value: Any) -> bool:
    kinds: dict[str, tuple[type, ...]] = {"time": (float, int), "subsystem": (str,)}
    return value is None or name not in kinds or type(value) in kinds[name]
