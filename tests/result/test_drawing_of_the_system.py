"""What a file says of its system is drawn only where every part of it makes sense."""

from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest

import cosolve as cs
from cosolve.result.file_about import meta_of


def graph() -> dict[str, Any]:
    """Two kinds of subsystems, a law and a connection, as a run writes them."""
    tank = cs.Linear([[-1]], [[1]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    system = cs.System({"one": tank, "two": cs.Static(lambda t, u: 2.0 * u, inputs=["q"], outputs=["h"])})
    system.law({"two.q": -1.0}, lambda h: -h, of="one.h")
    system.connect("two.h", "one.q")
    found: dict[str, Any] = cs.simulate(system, t_end=1.0, step=0.5, method=cs.Jacobi(0)).meta["graph"]
    return found


def read(drawing: Any) -> Any:
    columns: Any = SimpleNamespace(about={"meta": {"graph": drawing}}, path="run.h5", name="run.h5")
    return meta_of(columns)["graph"]


def leaves(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all numbers and texts."""
    if not isinstance(value, (dict, list)):
        return [way]
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    return [found for key, held in inside for found in leaves(held, (*way, key))]


def changed(drawing: Any, way: tuple[Any, ...], value: Any) -> Any:
    made = deepcopy(drawing)
    at = made
    for key in way[:-1]:
        at = at[key]
    at[way[-1]] = value
    return made


def test_each_part_that_is_spoilt_is_refused() -> None:
    good = graph()
    assert read(good) == good
    ways = leaves(good)
    assert len(ways) > 15
    for way in ways:
        wrong = [None, float("nan"), [], {}, float("inf")] + (["x"] if "factors" in way else [3])
        for value in wrong:
            with pytest.raises(cs.errors.OutputFileError, match="drawing of its system makes no sense"):
                read(changed(good, way, value))


def test_each_part_that_is_missing_is_refused() -> None:
    good = graph()
    for path in {leaf[: k + 1] for leaf in leaves(good) for k in range(len(leaf)) if isinstance(leaf[k], str)}:
        made = deepcopy(good)
        at: Any = made
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]
        with pytest.raises(cs.errors.OutputFileError, match="drawing of its system makes no sense"):
            read(made)
    for edge in good["edges"]:
        for ports in ("sources", "targets"):
            at = changed(good, ("edges", good["edges"].index(edge), ports), ["three.h"])
            with pytest.raises(cs.errors.OutputFileError):
                read(at)
    with pytest.raises(cs.errors.OutputFileError):
        read(changed(good, ("edges", 1, "sources"), []))
    with pytest.raises(cs.errors.OutputFileError):
        read(changed(good, ("edges", 0, "factors"), [1.0, 2.0]))
