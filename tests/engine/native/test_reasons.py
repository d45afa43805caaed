"""Why a run is not compiled: each reason stands in one list, and every place that gives one takes it from there."""

import ast
from pathlib import Path

import pytest
from tests.engine.native.test_fallback import linear_pair

import cosolve as cs
from cosolve.engine import native
from cosolve.engine.native.reasons import REASONS, reason

SOURCES = sorted(Path(native.__file__).parent.glob("*.py"))


def _given() -> dict[str, set[str]]:
    """Reasons that the sources give, with the names of what is filled in."""
    calls = [
        node
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "reason"
    ]
    return {call.args[0].value: {word.arg for word in call.keywords} for call in calls}


def test_every_reason_of_the_list_is_given_and_complete():
    given = _given()
    assert set(given) == set(REASONS)
    for which, names in given.items():
        said = reason(which, **dict.fromkeys(names, "NAME"))
        assert "{" not in said
        assert said.count("NAME") == len(names), which
        assert len(said) < 200
        assert not said.endswith(".")


def test_no_other_place_writes_a_reason():
    """`reason` attributes of compiled runs are set by these functions, never by a sentence on the spot."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assign) and any(getattr(t, "attr", "") == "reason" for t in node.targets):
                assert not isinstance(node.value, (ast.Constant, ast.JoinedStr)), (path.name, node.lineno)


def test_an_option_that_keeps_a_run_in_python_is_named():
    with pytest.raises(
        cs.errors.SetupError, match="compiled=True: workers were asked for; compiled runs use one thread"
    ):
        cs.simulate(linear_pair(), t_end=1.0, method=cs.Jacobi(1), step=0.1, compiled=True, workers=2)
