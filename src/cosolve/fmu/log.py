"""What an FMU says while it runs: into its own file, and the last lines kept for error messages."""

from __future__ import annotations

import ctypes
import logging
from collections import deque
from functools import cache
from pathlib import Path
from typing import IO, Any
from weakref import WeakValueDictionary, finalize

from cosolve.basics.wording import shown
from cosolve.errors import SetupError

STATUS = ("OK", "warning", "discard", "error", "fatal", "pending")
#: What is written to a log file, by the lowest status.
LEVELS = {"debug": 0, "warning": 1, "discard": 2, "error": 3, "fatal": 4}
FATAL = STATUS.index("fatal")
_LOGGER_2 = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
_LOGGER_3 = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)

_python_log = logging.getLogger("cosolve.fmu")


class _Callbacks2(ctypes.Structure):
    """`fmi2CallbackFunctions`."""

    _fields_ = (
        ("logger", ctypes.c_void_p),
        ("allocateMemory", ctypes.c_void_p),
        ("freeMemory", ctypes.c_void_p),
        ("stepFinished", ctypes.c_void_p),
        ("componentEnvironment", ctypes.c_void_p),
    )


class FmuLog:
    """Collects the messages of one instance. `file` None keeps only the last lines; `level` is the least to write."""

    def __init__(self, name: str, file: str | Path | None, level: str = "debug") -> None:
        if level not in LEVELS:
            raise SetupError(f"the log level must be one of {', '.join(LEVELS)}, not {shown(repr(level))}")
        self.name, self._least = name, LEVELS[level]
        self.file = None if file is None else Path(file)
        self.last: deque[tuple[int, str]] = deque(maxlen=20)
        self.time = 0.0
        self._stream: IO[str] | None = None
        if self.file is not None:
            try:
                self._stream = self.file.open("w", encoding="utf-8", buffering=1)
                finalize(self, self._stream.close)
            except OSError as error:
                raise SetupError(f"the log file '{file}' cannot be written: {error.strerror or error}") from None

    def add(self, status: int, category: str, message: str) -> None:
        """One message."""
        kind = STATUS[status] if 0 <= status < len(STATUS) else str(status)
        self.last.append((status, message))
        if self._stream is not None and status >= self._least:
            self._stream.write(f"t = {self.time:.9g}  {kind}  [{category}]  {message}\n")
        if status == 1:
            _python_log.warning("%s at t = %.9g: %s", self.name, self.time, message)

    def clear(self) -> None:
        """Forget the last lines (not the file)."""
        self.last.clear()

    @property
    def remark(self) -> str:
        """The last complaint for an error message, or nothing."""
        said = [message for status, message in self.last if status > 0] or [message for _, message in self.last]
        where = "" if self.file is None else f" (more in {self.file})"
        return f"; the FMU says: {said[-1]}{where}" if said else where

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def callback_3(self) -> Any:
        """The message callback of FMI 3.0; keep it alive as long as the instance."""

        def logged(environment: int, status: int, category: bytes | None, message: bytes | None) -> None:
            self.add(status, _text(category), _text(message))

        return _LOGGER_3(logged)

    def callbacks_2(self) -> Any:
        """The callback structure of FMI 2.0; keep it alive as long as the instance.

        The logger takes the arguments of `printf`, which Python cannot receive; `jit/variadic.py` formats the message
        first. One receiver serves all instances and finds each by its environment, or by its name.
        """
        from cosolve.jit.variadic import address_of, c_library, logger

        environment = id(self)
        _listening[environment] = self
        library = c_library()  # memory straight from C
        functions = logger(address_of(_logger_2())), address_of(library.calloc), address_of(library.free)
        return _Callbacks2(*functions, None, environment)


_listening: WeakValueDictionary[int, FmuLog] = WeakValueDictionary()


@cache
def _logger_2() -> Any:
    """The logger of all instances of FMI 2.0."""

    def logged(environment: int, name: bytes, status: int, category: bytes | None, message: bytes | None) -> None:
        log = _listening.get(environment or 0)
        if log is None:  # an FMU that does not hand on its environment
            log = next((each for each in _listening.values() if each.name == _text(name)), None)
        if log is not None:
            log.add(status, _text(category), _text(message))

    return _LOGGER_2(logged)


def _text(given: bytes | None) -> str:
    return "" if given is None else given.decode("utf-8", errors="replace").rstrip()
