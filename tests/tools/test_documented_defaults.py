"""The default that a docstring names is the one that a call without the argument gets."""

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tools.docstrings import public_objects

numpydoc = pytest.importorskip("numpydoc.docscrape")

#: What a literal cannot say: the text in the docstring, and the value.
NAMED = {"inf": float("inf"), "-inf": -float("inf"), "print": print}


def documented() -> Iterator[tuple[str, str, Any]]:
    """Where, what the docstring says, and the value; of dataclasses not what is made anew for each of them."""
    for public in public_objects():
        try:
            parameters = inspect.signature(public.value).parameters
        except (TypeError, ValueError):
            continue
        for entry in numpydoc.get_doc_object(public.value)["Parameters"]:
            found = re.search(r"default (.+)$", entry.type)
            for name in re.findall(r"\w+", entry.name) if found else ():
                if name in parameters and "<factory>" not in str(parameters[name].default):
                    yield f"{public.where}({name})", found[1], parameters[name].default


def agree(told: str, value: Any) -> bool:
    if told in NAMED:
        return bool(NAMED[told] == value)
    if told == "nan":
        return bool(value != value)
    try:
        literal = ast.literal_eval(told)
    except (SyntaxError, ValueError):
        return told.rpartition(".")[2] == getattr(value, "__name__", None)
    if isinstance(value, float) and isinstance(literal, (int, float)):
        return literal == pytest.approx(value, rel=0.01)
    return type(literal) is type(value) and bool(literal == value)


def test_every_default() -> None:
    found = list(documented())
    assert len(found) > 600
    wrong = [f"{where}: default {told}, but {value!r}" for where, told, value in found if not agree(told, value)]
    assert not wrong, "\n".join(wrong)
