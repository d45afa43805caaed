"""A process behind a channel ends with the object that stands for it."""

import gc
import sys

import pytest

from cosolve.process import launch

READS = "import sys; sys.stdin.read()"  # ends when its channel is closed
COMPUTES = "while True: pass"


@pytest.mark.parametrize("how", ["closed", "forgotten"])
@pytest.mark.parametrize(("program", "timeout", "killed"), [(READS, 60.0, False), (COMPUTES, 0.2, True)])
def test_it_ends_by_itself_or_is_killed(program, timeout, killed, how, monkeypatch):
    """First its channel is closed, which most programs take for the end; one that goes on is killed."""
    monkeypatch.setattr(launch, "_SHUTDOWN_TIMEOUT", timeout)
    child = launch.Child([sys.executable, "-c", program])
    process, log = child.process, child.log
    if how == "closed":
        child.close()
        assert child.closed
    del child
    gc.collect()
    assert (process.returncode != 0) is killed
    assert log.closed
