"""Files with one to three faults in them, as another tool, an editor or a bad disk makes them.

`mutant(text, seed, change)` gives the same text for the same seed; the values put in are those that readers stumble
over: nothing, signs, numbers too large, other scripts, paths, other kinds of value.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from io import BytesIO
from random import Random

NASTY = (
    *("", " ", "0", "-1", "1", "2", "3", "99", "4294967295", "4294967296", "-4294967297", "1e400", "-0.0", "1e-320"),
    *("nan", "inf", "-INF", "1_0", "\u0663", "0x10", "1.5", "true", "False", "yes", "None", "x", "..", "../../x"),
    *(
        "/etc/passwd",
        "a b",
        "{}",
        "[]",
        "http://[",
        "file:///dev/zero",
        "%00",
        "1 2 3",
        "1 x",
        "\u00e9\u4e2d",
        "a" * 300,
    ),
    *("99999999999999999999999999", "input", "output", "parameter", "independent", "Real", "Boolean", "#", "a.b.c"),
)


def mutant(text: str, seed: object, change: Callable[[Random, str], str]) -> str:
    """The text with one to three changes."""
    random = Random(f"mutant {seed}")
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        text = change(random, text)
    return text


def xml(random: Random, text: str) -> str:
    """One fault in XML: an attribute, an element, or the characters themselves."""
    values = list(re.finditer(r'(\w[\w:.]*)="([^"]*)"', text))
    elements = list(re.finditer(r"<(\w[\w:.]*)[^<>]*/>", text)) or values
    tags = list(re.finditer(r"</?(\w[\w:.]*)", text)) or values
    if not values:
        return text
    one, element, tag = random.choice(values), random.choice(elements), random.choice(tags)
    kind = random.randrange(12)
    if kind < 5:
        return _put(text, *one.span(2), random.choice(NASTY))
    if kind == 5:
        return _put(text, *one.span(2), random.choice(values)[2])  # the value of another place
    if kind == 6:
        return _put(text, *one.span(), "")
    if kind == 7:
        return _put(text, *element.span(), "")
    if kind == 8:
        return _put(text, element.start(), element.start(), element[0])
    if kind == 9:
        name = random.choice(tags)[1]
        return re.sub(rf"(</?){re.escape(tag[1])}\b", rf"\g<1>{name}", text)
    if kind == 10:
        name = random.choice(values)[1]
        return _put(text, *one.span(1), name)
    return characters(random, text)


def toml(random: Random, text: str) -> str:
    """One fault in TOML: a value, a key, a line, or the characters themselves."""
    values = list(re.finditer(r'"[^"\n]*"|(?<=[\[ =,])-?[\d.]+(?:e-?\d+)?|(?<== )\{.*\}|(?<== )\[.*\]', text))
    keys = list(re.finditer(r"(?m)^\w+(?= =)|(?<=\[)[\w.]+(?=\])|(?<=[{ ])\w+(?= =)", text)) or values
    lines = text.split("\n")
    if not values:
        return text
    one, key, n = random.choice(values), random.choice(keys), random.randrange(len(lines))
    kind = random.randrange(10)
    if kind < 3:
        plain = random.choice(
            (*NASTY, '"x"', "[]", "{}", "[[1]]", "[1, [2]]", "1979-05-27", "{a = 1}", "-1e999", "[nan]")
        )
        return _put(text, *one.span(), plain)
    if kind < 5:
        return _put(text, *one.span(), json.dumps(random.choice(NASTY)))
    if kind == 5:
        return _put(text, *one.span(), random.choice(values)[0])
    if kind == 6:
        return _put(text, *key.span(), random.choice(keys)[0])
    if kind == 7:
        return "\n".join(lines[:n] + lines[n + 1 :])
    if kind == 8:
        return "\n".join([*lines[:n], lines[n], *lines[n:]])
    return characters(random, text)


NUMBERS = (0, 0.0, -1, 1, 2, 3, 0.5, 1e-320, 1e308, float("nan"), float("inf"), float("-inf"), 2**63 - 1, 10**30, True)


def table(random: Random, value: object, words: list[str]) -> object:
    """One value in a tree of tables changed, mostly into another of its kind; `words` are texts that may fit."""
    if random.random() < 0.06:
        return random.choice([*NUMBERS, *NASTY, [], {}, [[1.0]], [1, [2]], {"a": 1}])
    if isinstance(value, dict) and value:
        key = random.choice(list(value))
        kind = random.randrange(12)
        if kind == 0:
            return {k: v for k, v in value.items() if k != key}
        if kind == 1:
            return {(random.choice(words) if k == key else k): v for k, v in value.items()}
        if kind == 2:
            return {**value, random.choice(words): random.choice([1.0, "x", value[key]])}
        return {**value, key: table(random, value[key], words)}
    if isinstance(value, list) and value:
        n, kind = random.randrange(len(value)), random.randrange(6)
        middle = [] if kind == 0 else [value[n]] * 2 if kind == 1 else [table(random, value[n], words)]
        return [*value[:n], *middle, *value[n + 1 :]]
    if isinstance(value, str):
        return random.choice([*words, random.choice(NASTY)])
    return random.choice(NUMBERS)


def as_toml(value: object) -> str:
    """A tree of tables as TOML, each top-level entry on a line of its own."""
    if not isinstance(value, dict):
        return _inline(value)
    return "".join(f"{json.dumps(str(key))} = {_inline(inside)}\n" for key, inside in value.items())


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {_inline(inside)}" for key, inside in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value) if isinstance(value, (str, bool)) else repr(value)


def strings(value: object) -> list[str]:
    """All texts in a tree, keys included."""
    if isinstance(value, dict):
        return [text for key, inside in value.items() for text in (key, *strings(inside))]
    if isinstance(value, list):
        return [text for inside in value for text in strings(inside)]
    return [value] if isinstance(value, str) else []


def characters(random: Random, text: str) -> str:
    """A character taken away, put in or changed, or the end cut off."""
    where = random.randrange(len(text)) if text else 0
    other = random.choice("<>&\"'[]{}=#,.\\/\0\n\ud7ff 0-:")
    kind = random.randrange(8)
    if kind == 0:
        return text[:where]
    return _put(text, where, where + (kind < 5), "" if kind < 3 else other)


def data(random: Random, content: bytes) -> bytes:
    """A byte changed, a piece taken out, or the end cut off."""
    changed = bytearray(content)
    where = random.randrange(len(changed)) if changed else 0
    kind = random.randrange(6)
    if kind < 4 and changed:
        changed[where] = random.randrange(256)
    elif kind == 4:
        del changed[where : where + random.randrange(1, 40)]
    else:
        del changed[where:]
    return bytes(changed)


def tree(random: Random, value: object) -> object:
    """One value somewhere in a tree of JSON values changed, or an entry taken out."""
    if isinstance(value, dict) and value and random.random() < 0.95:
        key = random.choice(list(value))
        if random.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if random.random() < 0.1:
            return {(random.choice(NASTY) if k == key else k): v for k, v in value.items()}
        return {**value, key: tree(random, value[key])}
    if isinstance(value, list) and value and random.random() < 0.95:
        n = random.randrange(len(value))
        return value[:n] + ([] if random.random() < 0.1 else [tree(random, value[n])]) + value[n + 1 :]
    return random.choice([None, True, 0, -1, 1e308, 10**30, "", "0", "x", [], {}, [1], {"a": 1}, {"array": "0"}])


def repacked(content: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
    """A zip archive whose entries went through `change(name, data)`."""
    buffer = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as old, zipfile.ZipFile(buffer, "w") as new:
        for entry in old.infolist():
            new.writestr(entry.filename, change(entry.filename, old.read(entry)))
    return buffer.getvalue()


def _put(text: str, start: int, end: int, what: str) -> str:
    return text[:start] + what + text[end:]
