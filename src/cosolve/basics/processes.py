"""Processes of a run or a server: how they are started, where they print, and how they end.

On SIGTERM at once, and with the process that started them.

A run ends its processes when it ends. One that is killed cannot: its processes have to notice by themselves, also while
they compute. Nothing is cleaned up then, because what they compute may hang.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

_LOOK = 0.5  # seconds between two looks at the parent
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux


def start(
    command: Sequence[str],
    log: IO[bytes] | int,
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: IO[bytes] | int | None = None,
    **options: Any,
) -> subprocess.Popen[bytes]:
    """Start a program in a process group of its own: Ctrl-C reaches this process only, which then ends the program.

    Errors go to `log`, and so does what it prints, unless `stdout` says otherwise. `options` are those of `Popen`.
    """
    options.setdefault("bufsize", 0)
    if os.name == "nt":
        options["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP  # type: ignore[attr-defined,unused-ignore]
    else:
        options["process_group"] = 0
    out = log if stdout is None else stdout
    return subprocess.Popen(command, stdin=stdin, stdout=out, stderr=log, **options)


def python_call(function: str, *arguments: Any) -> list[str]:
    """The command of a new interpreter, with the path of this one, that calls "package.module:function".

    >>> subprocess.run(python_call("math:hypot", 3, 4)).returncode
    0
    """
    module, _, name = function.partition(":")
    path = [os.path.abspath(entry) for entry in sys.path]
    call = f"{name}({', '.join(map(repr, arguments))})"
    return [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}; from {module} import {name}; {call}"]


def end_with(parent: int) -> None:
    """End this process, whatever it does, when the process `parent` that started it is gone, and on SIGTERM."""
    end_on_sigterm()
    threading.Thread(target=_watch, args=(parent,), name="parent watch", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)


def end_on_sigterm() -> None:
    """Hear SIGTERM again where the process that started this one ignores it."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def end_with_thread() -> None:
    """On Linux: be killed as soon as the *thread* that started this process ends, even inside machine code.

    Only for processes that this thread outlives, as those of a sweep. Elsewhere nothing happens.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)


@contextmanager
def ctrl_c_later() -> Iterator[None]:
    """Ctrl-C is heard at the end; processes started inside do not hear it until they call `hear_ctrl_c_but_go_on`."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def hear_ctrl_c_but_go_on() -> None:
    """Ctrl-C at a terminal reaches a run and its processes alike: here nothing happens, since the run ends them.

    Programs that this process starts hear it as usual, which they would not if it were ignored here.
    """
    signal.signal(signal.SIGINT, lambda number, frame: None)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End the process and whatever it started."""
    with suppress(OSError):
        if os.name == "nt":
            process.kill()
        elif process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def how_it_ended(code: int) -> str:
    """Words for the exit code of a process.

    >>> how_it_ended(3), how_it_ended(-11)
    ('ended with exit code 3', 'crashed (signal 11, SIGSEGV)')
    """
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    what = {"SIGSEGV": "crashed", "SIGBUS": "crashed", "SIGABRT": "aborted", "SIGFPE": "crashed"}
    return f"{what.get(name, 'was ended')} (signal {-code}, {name})"


def print_to_log() -> None:
    """Whatever is printed, also by compiled code, goes to the log, line by line."""
    os.dup2(2, 1)
    with suppress(OSError, ValueError, AttributeError):
        library = ctypes.CDLL(None)
        library.setvbuf(ctypes.c_void_p.in_dll(library, "stdout"), None, 1, 0)
