"""Processes that tests start: they hear Ctrl-C wherever the suite runs, have a hard limit, and leave nothing behind.

A suite that is started in the background (`nohup`, `&`, some automatic runs) ignores SIGINT, and so would whatever it
starts: a test that sends one would wait for ever.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

LIMIT = 240.0  # seconds; what is started takes one to ten on an idle machine
ROOT = Path(__file__).parents[1]


@contextmanager
def started(command: Sequence[str], *, limit: float = LIMIT, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process in a group of its own, killed after `limit` seconds (reading from it then comes to its end)."""
    with _hearing_ctrl_c():
        process = subprocess.Popen(command, text=True, process_group=0, **options)
    watchdog = threading.Timer(limit, kill, [process])
    watchdog.daemon = True
    watchdog.start()
    try:
        yield process
    finally:
        watchdog.cancel()
        kill(process)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with suppress(OSError):  # unsent text for a process that is gone
                    stream.close()


def run(
    command: Sequence[str], *, limit: float = LIMIT, input: str | None = None, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Like `subprocess.run` with what was printed, in `started`."""
    stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
    pipes = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    began = time.monotonic()
    with started(command, limit=limit, **pipes, **options) as process:
        said, errors = process.communicate(input)
    assert time.monotonic() - began < limit, f"not finished within {limit:g} s: {command}\n{said}\n{errors}"
    assert not check or process.returncode == 0, f"ended with {process.returncode}: {command}\n{said}\n{errors}"
    return subprocess.CompletedProcess(command, process.returncode, said, errors)


def kill(process: subprocess.Popen[str]) -> None:
    """The process and everything in its group, now."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def _hearing_ctrl_c() -> Iterator[None]:
    """SIGINT has its default meaning for what is started inside; a handler here is not inherited, "ignore" would be."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def environment(**more: str) -> dict[str, str]:
    """For a Python that imports this source tree and its tests."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), **more}


def ends(pid: int, patience: float = 60.0) -> bool:
    """True as soon as a process is gone (or is a zombie, which only its new parent can collect)."""
    return until(lambda: not runs(pid), patience)


def runs(pid: int) -> bool:
    """True while a process exists and is no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    return True


def children(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *children(child)]
    return found


def until(condition: Any, patience: float = 60.0) -> bool:
    """Wait for a condition; False when it does not come true in time."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
