"""Ctrl-C in a run and in the processes that it starts."""

import signal
from collections.abc import Iterator

import pytest

from cosolve.basics.processes import ctrl_c_later, hear_ctrl_c_but_go_on


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """How often the usual handler was called; afterwards all is as before."""
    times: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: times.append(number))
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    yield times
    signal.signal(signal.SIGINT, before)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def test_it_is_heard_at_the_end(heard: list[int]) -> None:
    with ctrl_c_later():
        signal.raise_signal(signal.SIGINT)
        assert heard == []
    assert heard == [signal.SIGINT]


def test_a_process_that_goes_on(heard: list[int]) -> None:
    """It does nothing there, but is not ignored either: programs that it starts would inherit that."""
    with ctrl_c_later():  # a process starts with the mask of the one that starts it
        hear_ctrl_c_but_go_on()
        assert signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())
        assert signal.SIGINT not in signal.sigpending()
    assert heard == []
