"""Cases of a parametrised test: one of each kind runs with the quick tests, the others with the long studies."""

from collections.abc import Iterable
from typing import Any

import pytest


def quick(cases: Iterable[Any], *chosen: Any) -> list[Any]:
    """Cases for `parametrize`; all but the `chosen` ones are slow. A tuple stands for several arguments."""
    listed = list(cases)
    assert all(case in listed for case in chosen), "no such case"
    marks = [() if case in chosen else (pytest.mark.slow,) for case in listed]
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=mark)
        for case, mark in zip(listed, marks, strict=True)
    ]
