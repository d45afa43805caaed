"""Every argument of a run by a configuration file arrives where it is used."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cosolve.precice import running

USED = {  # argument, another value than the default: who is given it, and under which name
    "patience": (7.0, "serve", "patience"),
    "logs": (Path("logs"), "serve", "logs"),
    "tcp": (True, "serve", "tcp"),
    "listen": ("here:1", "serve", "listen"),
    "key": ("secret", "serve", "key"),
    "log": (Path("log.txt"), "serve", "log"),
    "state": (Path("state"), "Coupling", "state"),
    "state_every": (3, "Coupling", "every"),
    "resume": (Path("before"), "Coupling", "resume"),
}
DEFAULTS = {"state_every": 1}


def given(monkeypatch: pytest.MonkeyPatch, **arguments: Any) -> dict[str, dict[str, Any]]:
    """What is called with which arguments."""
    found: dict[str, dict[str, Any]] = {}
    configuration = SimpleNamespace(remarks=[], participants={"A": None}, file="c.xml")
    monkeypatch.setattr(running, "read_configuration", lambda path: configuration)
    for name in ("Coupling", "serve", "CommonResult"):

        def called(*values: Any, _name: str = name, **named: Any) -> None:
            found[_name] = named | {"note": values[2] if len(values) > 2 else None}

        monkeypatch.setattr(running, name, called)
    running.run_configuration("folder/c.xml", {"A": "a command"}, **arguments)
    return found


@pytest.mark.parametrize("argument", USED)
def test_an_argument(argument: str, monkeypatch: pytest.MonkeyPatch) -> None:
    value, where, name = USED[argument]
    usual = given(monkeypatch)
    assert usual[where].get(name) == DEFAULTS.get(argument)
    changed = given(monkeypatch, **{argument: value})
    assert changed[where][name] == value
    usual[where][name] = value
    assert changed == usual


def test_a_common_result_is_made_where_something_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = given(monkeypatch)
    assert "CommonResult" not in usual
    assert usual["serve"]["note"] == Path("folder/c.xml.hub").absolute()

    class Common:
        def __init__(self, *values: Any) -> None:
            made.append(values)

        def finish(self, error: str | None) -> None:
            ended.append(error)

    def told(fraction: float, words: str) -> None: ...

    for arguments in ({"out": Path("all.h5")}, {"told": told}):
        made: list[Any] = []
        ended: list[Any] = []
        found: dict[str, Any] = {}
        given(monkeypatch)
        monkeypatch.setattr(running, "CommonResult", Common)
        monkeypatch.setattr(running, "Coupling", lambda *values, _found=found, **named: _found.update(named))
        running.run_configuration("c.xml", {}, **arguments)
        assert made == [(arguments.get("out"), arguments.get("told"))]
        assert isinstance(found["common"], Common)
        assert ended == [None]
