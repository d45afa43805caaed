"""Participants are asked for cells of the meshes whose cells something uses, and of no other."""

from types import SimpleNamespace
from typing import Any

import pytest

from cosolve.precice.fields import needs_cells


def asked(**tags: Any) -> set[str]:
    """The meshes that a configuration with these tags of one participant asks cells for."""
    participant = SimpleNamespace(**{"mappings": [], "watches": [], "actions": []} | tags)
    other = SimpleNamespace(mappings=[], watches=[], actions=[])
    configuration: Any = SimpleNamespace(participants={"A": participant, "B": other})
    return {mesh for mesh in ("from", "to", "third") if needs_cells(configuration, mesh)}


@pytest.mark.parametrize(
    ("kind", "constraint", "meshes"),
    [
        ("nearest-neighbor", "consistent", set()),
        ("rbf", "conservative", set()),
        ("nearest-projection", "consistent", {"from"}),
        ("nearest-projection", "conservative", {"to"}),
        ("linear-cell-interpolation", "consistent", {"from"}),
        ("linear-cell-interpolation", "conservative", {"to"}),
        ("rbf", "scaled-consistent-surface", {"from", "to"}),
        ("nearest-neighbor", "scaled-consistent-volume", {"from", "to"}),
    ],
)
def test_mappings(kind: str, constraint: str, meshes: set[str]) -> None:
    tag = SimpleNamespace(kind=kind, constraint=constraint, source="from", target="to")
    assert asked(mappings=[tag]) == meshes


def test_watches_and_actions() -> None:
    assert asked() == set()
    assert asked(watches=[SimpleNamespace(mesh="third")]) == {"third"}
    assert asked(actions=[SimpleNamespace(mesh="to", kind="divide-by-area")]) == {"to"}
    assert asked(actions=[SimpleNamespace(mesh="to", kind="summation")]) == set()
