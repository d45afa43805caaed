"""One order of sets in all processes of a run of the tests, another one in the next run.

Test processes compare the names of what they collected, and a name that shows a set is different in each of them unless
they share the seed of Python's hashes. `PYTHONHASHSEED=N make test` repeats a run.
"""

import os
import random

import pytest


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # test processes are started by this one, after this
        os.environ.setdefault("PYTHONHASHSEED", str(random.randrange(2**32)))


def pytest_report_header() -> str:
    return f"PYTHONHASHSEED={os.environ.get('PYTHONHASHSEED', 'random')} in test processes"
