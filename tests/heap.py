"""Keeps the garbage collector away from what stays: modules, collected tests, compiled functions.

A test process holds millions of objects after a while, most of them the compiler's. Each full collection would look at
all of them again, and took longer than many tests (a `gc.collect()` 0.01 s at first and 1 s in the end). So after each
test file what is garbage is collected, and what is left is not looked at any more.
"""

import gc

import pytest


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()
