"""`@pytest.mark.sample(n)`: n cases of a test, spread evenly, run with the quick tests, the others with the long ones.

For tests with many cases of one kind, each of which takes long: the first and the last are always among the quick ones.
"""

from collections import defaultdict

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sample") and not item.get_closest_marker("slow"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for group in cases.values():
        (wanted,) = group[0].get_closest_marker("sample").args
        kept = chosen(len(group), wanted)
        for place, item in enumerate(group):
            if place not in kept:
                item.add_marker(pytest.mark.slow)


def chosen(count: int, wanted: int) -> set[int]:
    """Places of `wanted` cases among `count`."""
    if wanted == 1:
        return {0}
    return {round(k * (count - 1) / (wanted - 1)) for k in range(wanted)}
