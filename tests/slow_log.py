"""A pytest plug-in: writes what came of each test into a file at once, for `tools/slow.py`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

_log: list[Path] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow-log", type=Path, help="file that a line is appended to for every phase of a test")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--slow-log")
    if path is not None and not hasattr(config, "workerinput"):  # workers report to the first process
        _log.append(path)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for path in _log:
        line = {"test": report.nodeid, "when": report.when, "outcome": report.outcome, "seconds": report.duration}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
