"""A pilot whose coupling variables are far below their nominal values controls nothing: it is run again."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

import cosolve as cs
from cosolve.accuracy.auto.choice import SMALL, Search


@dataclass(frozen=True)
class Pilot:
    largest: float
    why: str = ""


def piloted(first: Pilot) -> tuple[Any, list[Any], list[str]]:
    """What comes of it, with which controls pilots were run, and why trials were left."""
    controls: list[Any] = []
    search: Any = Search.__new__(Search)

    def pilot(method: cs.Method, control: Any, most: int) -> Pilot:
        controls.append(control)
        return first if len(controls) == 1 else Pilot(1.0)

    search._runner, search.trials = SimpleNamespace(pilot=pilot), []
    search.control = lambda rtol, scale=1.0: (rtol, scale)
    return search._piloted(cs.Jacobi(1), 1e-3, 100), controls, [trial.why for trial in search.trials]


@pytest.mark.parametrize("largest", [1e-9, 0.5 * SMALL, 0.99 * SMALL])
def test_small_ones_are_run_again_with_their_own_scale(largest: float) -> None:
    found, controls, left = piloted(Pilot(largest))
    assert found == Pilot(1.0)
    assert controls == [(1e-3, 1.0), (1e-3, largest)]
    assert left == ["its coupling variables are far below their nominal values"]


@pytest.mark.parametrize("first", [Pilot(SMALL), Pilot(1.0), Pilot(1e6), Pilot(0.0), Pilot(1e-9, "it failed")])
def test_others_are_not(first: Pilot) -> None:
    found, controls, left = piloted(first)
    assert found is first
    assert controls == [(1e-3, 1.0)]
    assert left == []
