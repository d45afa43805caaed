"""A hard limit for every test, without a plug-in from outside: a hang fails one test and does not stop the suite.

First the test is interrupted where it is and fails like any other, with its traceback, and its fixtures clean up. Where
that does not help, because it hangs in machine code, the interpreter prints where all threads are and ends: the other
test process reports the test as crashed and goes on with the rest. The second way needs no Python to run, so nothing
can hold it up.

The limits are far above what any test needs, so that a busy machine does not reach them.
"""

import faulthandler
import math
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

LIMIT, LIMIT_OF_SLOW = 300.0, 3600.0  # seconds
GRACE = 60.0  # seconds to fail and clean up
_stderr: list[int] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--limit", type=float, help=f"seconds a test may take (quick {LIMIT:g}, slow {LIMIT_OF_SLOW:g})")
    parser.addoption("--grace", type=float, default=GRACE, help="seconds after its limit until a test is killed")


def pytest_configure(config: pytest.Config) -> None:
    _stderr.append(os.dup(2))  # the real one: nothing is captured yet


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(_stderr.pop())


def pytest_enter_pdb() -> None:
    _let_go()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with _limited(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with _limited(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    with _limited(item):
        return (yield)


@contextmanager
def _limited(item: pytest.Item) -> Iterator[None]:
    """A limit for what happens inside; with a debugger at work there is none."""
    limit = item.config.getoption("limit") or (LIMIT_OF_SLOW if item.get_closest_marker("slow") else LIMIT)

    def fail(number: int, frame: object) -> None:
        pytest.fail(f"not finished within {limit:g} s")

    if item.config.getoption("usepdb", False) or threading.current_thread() is not threading.main_thread():
        yield
        return
    faulthandler.dump_traceback_later(limit + item.config.getoption("grace"), exit=True, file=_stderr[-1])
    alarms = hasattr(signal, "setitimer")  # not on Windows
    if alarms:
        before = signal.signal(signal.SIGALRM, fail)
        signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        _let_go()
        if alarms:
            signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True, scope="session")
def trials_take_their_time() -> None:
    """What `check` finds does not depend on how busy the machine is; a test that is about it gives `seconds`."""
    from cosolve.analysis import advice

    advice.SECONDS = math.inf


def _let_go() -> None:
    faulthandler.cancel_dump_traceback_later()
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0.0)
