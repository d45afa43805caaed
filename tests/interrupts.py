"""Ctrl-C reaches the tests' processes, also where the shell that started them ignores it (`nohup`, `&` in a script)."""

import signal

import pytest


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # inherited by everything that a test starts
        signal.signal(signal.SIGINT, signal.default_int_handler)
