"""SIGINT and SIGTERM held back while code runs that must not be interrupted.

Python runs a signal handler between two instructions of the main thread, whatever code that is: also that of an FMU
with an interpreter inside, in the middle of a call. The `KeyboardInterrupt` would be raised there.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_NUMBERS = (signal.SIGINT, signal.SIGTERM)

#: of the main thread, which is the only one that handlers run in
_depth = 0
_heard: dict[int, Any] = {}  # the handlers that wait
_noted: list[int] = []
_strict = False


def hold(*, strict: bool = False) -> bool:
    """Hold signals back until `release`; calls nest. False in other threads, where there is nothing to release.

    A second signal of a kind goes through all the same, unless `strict`: what is waited for may hang.
    """
    global _depth, _strict
    if threading.get_ident() != threading.main_thread().ident:
        return False
    _strict = _strict or strict
    if _depth == 0:
        for number in _NUMBERS:
            handler = signal.getsignal(number)
            if handler not in (None, signal.SIG_IGN, _note):  # the last: a `release` that a signal has cut short
                _heard[number] = handler
                signal.signal(number, _note)
    _depth += 1  # last, since a signal may end this function before its handler is exchanged
    return True


def release() -> None:
    """The end of `hold`: what came meanwhile is heard now."""
    global _depth, _strict
    _depth -= 1
    if _depth:
        return
    _strict = False
    for number, handler in _heard.items():
        signal.signal(number, handler)
    _heard.clear()
    came = list(dict.fromkeys(_noted))
    _noted.clear()
    for number in came:
        os.kill(os.getpid(), number)


def _note(number: int, frame: Any) -> None:
    if number in _noted and not _strict and callable(_heard[number]):
        _heard[number](number, frame)
    _noted.append(number)


@contextmanager
def signals_later(*, strict: bool = False) -> Iterator[None]:
    """SIGINT and SIGTERM are heard at the end; only the main thread can do that, and only it hears them.

    >>> import os, signal
    >>> try:
    ...     with signals_later():
    ...         os.kill(os.getpid(), signal.SIGINT)
    ...         print("goes on")
    ... except KeyboardInterrupt:
    ...     print("heard")
    goes on
    heard
    """
    held = hold(strict=strict)
    try:
        yield
    finally:
        if held:
            release()


class Terminated(KeyboardInterrupt):
    """SIGTERM came: like Ctrl-C, by another program."""


@contextmanager
def signals_raise() -> Iterator[list[signal.Signals]]:
    """Inside, SIGINT raises KeyboardInterrupt and SIGTERM `Terminated`, so that what has to be cleaned up is.

    Gives the list of signals that came. Only the main thread can do that. A signal is sent again where its exception
    is lost: Python drops what is raised in callbacks of weak references, in `__del__` and in callbacks from C.

    >>> import os, signal
    >>> with signals_raise() as came:
    ...     try:
    ...         os.kill(os.getpid(), signal.SIGTERM)
    ...     except Terminated:
    ...         print("asked to end by", *(number.name for number in came))
    asked to end by SIGTERM
    """
    came: list[signal.Signals] = []

    def end(number: int, frame: object) -> None:
        came.append(signal.Signals(number))
        raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    def lost(what: Any) -> None:
        if not issubclass(what.exc_type, KeyboardInterrupt):
            usual(what)
            return
        number = signal.SIGTERM if issubclass(what.exc_type, Terminated) else signal.SIGINT
        again = threading.Timer(0.01, os.kill, (os.getpid(), number))  # later: this, too, may be inside a callback
        again.daemon = True
        again.start()

    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    usual, handlers = sys.unraisablehook, {number: signal.getsignal(number) for number in _NUMBERS}
    before = {number: handler for number, handler in handlers.items() if handler not in (None, signal.SIG_IGN)}
    sys.unraisablehook = lost
    for number in before:
        signal.signal(number, end)
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, _leave_on_second if handler is leave_at_once else handler)
        sys.unraisablehook = usual


#: What is said of a command that a signal has ended, and its exit code.
ENDS = {signal.SIGINT: ("ended by Ctrl-C", 130), signal.SIGTERM: ("ended by SIGTERM", 143)}


def leave_at_once(number: int, frame: object = None) -> None:
    """A handler that says a sentence and ends the process, before a command and its `signals_raise` have begun.

    While modules are imported there is nothing to clean up, and C code would turn an exception into another one.
    """
    words, code = ENDS[signal.Signals(number)]
    os.write(2, f"cosolve: {words}\n".encode())
    os._exit(code)


def _leave_on_second(number: int, frame: object) -> None:
    """A handler for a command that is done already: the first signal changes nothing, a second one ends what hangs."""
    signal.signal(number, leave_at_once)


def uninterrupted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, with signals held back while it runs."""

    def call(*arguments: Any) -> Any:
        if not hold():
            return function(*arguments)
        try:
            return function(*arguments)
        finally:
            release()

    return call
