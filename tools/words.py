"""Do retired words come back? `tools/retired_words.toml` lists them, with what to say instead (docs/glossary.md).

    python -m tools.words            each place with a retired word, a line each; fails where there is any
    python -m tools.words --count    how often each of them stands in the tree, allowed or not

Names, comments, docstrings, messages and pages are read alike: a line is taken apart into words, also inside names, so
that `crossing` is found in `test_a_crossing` and in `CrossingCount`. A file in which a word is right is listed with its
reason; one that has the word no longer fails the check, so that the list stays short.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIST = Path(__file__).with_name("retired_words.toml")
_READ = (".py", ".pyi", ".md", ".toml", ".js", ".css", ".f90", ".h", ".cpp", ".c")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True)
class Retired:
    """Words or phrases with one meaning, what to say instead, and files in which they are right, with the reason."""

    words: tuple[str, ...]
    instead: str
    allowed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A retired word in a line of a file; `allowed` is the pattern that allows it there."""

    file: str
    line: int
    word: str
    instead: str
    allowed: str = ""


def read_list(path: Path = LIST) -> tuple[list[Retired], list[str], list[str]]:
    """The retired words, the retired names of classes, and the files that are not read."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    retired = [Retired(tuple(one["words"]), one["instead"], one.get("allowed", {})) for one in data["retired"]]
    return retired, data["classes"], data["not_read"]


def words_of(line: str) -> str:
    """The words of a line, also those inside of names.

    >>> words_of("def cross_all(self): return NativeCrew(1)")
    ' def cross all self return native crew '
    """
    return f" {' '.join(_WORD.findall(line)).lower()} "


def look(file: str, text: str, retired: Sequence[Retired], classes: Sequence[str]) -> Iterator[Found]:
    """Every retired word in a text.

    >>> [found.word for found in look("a.py", "class Crew:", [Retired(("crew",), "caller")], ["Crew"])]
    ['crew', 'class Crew']
    """
    phrases = [(f" {word} ", word, one) for one in retired for word in one.words]
    for number, line in enumerate(text.splitlines(), 1):
        words = words_of(line)
        for phrase, word, one in phrases:
            if phrase in words:
                allowed = next((pattern for pattern in one.allowed if fnmatch(file, pattern)), "")
                yield Found(file, number, word, one.instead, allowed)
    if file.endswith((".py", ".pyi")):
        for match in re.finditer(rf"^\s*class _?({'|'.join(classes)})\b", text, re.MULTILINE):
            number = text.count("\n", 0, match.start(1)) + 1
            yield Found(file, number, f"class {match[1]}", "a name that says what it is")


def sources(root: Path, not_read: Sequence[str]) -> Iterator[str]:
    """The files that git tracks and a reader reads."""
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    for file in listed:
        if file.endswith(_READ) and not any(fnmatch(file, pattern) for pattern in not_read):
            yield file


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is found; 1 where a retired word stands, or an allowance is not used."""
    parser = argparse.ArgumentParser(description="Do retired words come back?")
    parser.add_argument("--count", action="store_true", help="how often each word stands in the tree")
    given = parser.parse_args(arguments)
    retired, classes, not_read = read_list()
    found = [
        one
        for file in sources(ROOT, not_read)
        for one in look(file, (ROOT / file).read_text(encoding="utf-8"), retired, classes)
    ]
    if given.count:
        for word in [word for one in retired for word in one.words]:
            here = [one for one in found if one.word == word]
            print(f"{len(here):5d}  {word}  (allowed {sum(bool(one.allowed) for one in here)})")
    bad = [one for one in found if not one.allowed]
    for one in bad:
        print(f"{one.file}:{one.line}: '{one.word}' is retired; say: {one.instead}")
    used = {(one.word, one.allowed) for one in found}
    unused = [
        f"{one.words[0]}: {pattern}"
        for one in retired
        for pattern in one.allowed
        if not any((word, pattern) in used for word in one.words)
    ]
    for line in unused:
        print(f"{LIST.name}: nothing to allow any more: {line}")
    return 1 if bad or unused else 0


if __name__ == "__main__":
    sys.exit(main())
