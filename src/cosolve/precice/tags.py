"""The tags of configuration files for solvers adapted to preCICE 3: which stand where, and the attributes they take.

They are a table, `tags.toml`, so that whatever it does not hold is refused by name and line and never ignored. An
attribute is a kind (`text`, `real`, `whole`, `flag`), its default where it may be missing, and the values it may have.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

REQUIRED: Final = object()


@dataclass(frozen=True)
class Attribute:
    """One attribute: its kind, its default (`REQUIRED` where there is none) and the values it may have."""

    kind: str
    default: Any = REQUIRED
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tag:
    """One tag: its attributes, what may stand inside, and the sentence with which it is refused, if it is."""

    attributes: dict[str, Attribute] = field(default_factory=dict)
    inside: tuple[str, ...] = ()
    refused: str = ""


_DEFAULTS: dict[str, Callable[[str], Any]] = {"text": str, "real": float, "whole": int, "flag": "true".__eq__}


def _attribute(words: str) -> Attribute:
    """One attribute as the table writes it.

    >>> _attribute("text = fixed : fixed | first-participant")
    Attribute(kind='text', default='fixed', choices=('fixed', 'first-participant'))
    """
    known, _, choices = words.partition(" : ")
    kind, given, default = known.partition(" =")
    value = default.strip()
    return Attribute(
        kind,
        REQUIRED if not given else None if value == "none" else _DEFAULTS[kind](value),
        tuple(choices.split(" | ")) if choices else (),
    )


def _tags() -> dict[str, Tag]:
    found = {}
    for entry in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["tags"]:
        attributes = {name: _attribute(words) for name, words in entry.get("attributes", {}).items()}
        for name in entry["names"]:
            found[name] = Tag(attributes, tuple(entry.get("inside", ())), entry.get("refused", ""))
    return found


#: Every tag; one that has another meaning inside another tag stands as "outer/inner".
TAGS: Final[dict[str, Tag]] = _tags()
