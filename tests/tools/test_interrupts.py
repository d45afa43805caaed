"""Ctrl-C and SIGTERM at random moments of some commands, as `python -m tools.interrupts` tries all of them."""

import signal
import sys
from pathlib import Path

import pytest

from tools import interrupts


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("name", ["run, FMUs", "live run, FMUs", "check", "demo NAME"])
def test_at_random_moments(name, tmp_path):
    """The project of getting started; more commands and moments: the table of docs/validation/first-use.md."""
    scripts = Path(sys.executable).parent
    arguments = [str(scripts), name, "-n", "3", "--log", str(tmp_path / "log")]
    assert interrupts.main(arguments) == 0, (tmp_path / "log").read_text()


def test_what_is_wrong_is_said(tmp_path):
    case = interrupts.Case("run", ".", "run system.toml", 1.0, endless=True)

    def wrong(code, said, begun=True, left=()):
        return interrupts.Outcome(0.1, signal.SIGINT, code, said, 0.1, left, begun).wrong(case, tmp_path)

    good = "\x1b[?25l 3 steps \x1b[?25h cosolve: ended by Ctrl-C"
    assert wrong(130, good) == []
    assert wrong(-2, "KeyboardInterrupt", begun=False) == []
    assert wrong(-11, "") == ["killed by SIGSEGV"]
    assert wrong(0, "finished") == ["exit code 0"]
    assert wrong(130, "") == ["'ended by Ctrl-C' said 0 times"]
    assert wrong(130, f"Traceback (most recent call last) {good}") == ["traceback"]
    assert wrong(130, "cosolve: ended by Ctrl-C \x1b[?25l") == ["cursor hidden"]
    assert wrong(130, good, left=("python worker",)) == ["left behind: python worker"]
    assert wrong(130, f"{good}; what was computed so far is in\r\nlong.h5")[0].startswith("long.h5 cannot be read")
