"""Every cited publication is in the bibliography; pages name capabilities in words, not by ids."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEYS = re.findall(r"\*\*(.+? \(\d{4}\))\*\*", (ROOT / "docs" / "bibliography.md").read_text())
_OURS = [
    path for folder in ("src", "tests", "examples", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))
]
FILES = [
    *(path for path in _OURS if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "README.md",
]
_NAME = r"(?:de |van )?[A-ZÄÖÜ][\w'-]+"
CITATION = re.compile(rf"((?:{_NAME}, )*{_NAME}(?: and {_NAME}| et al\.)?) \(((?:19|20)\d\d)\)")


def test_keys_are_unique_and_look_alike():
    assert len(KEYS) > 30
    assert len(set(KEYS)) == len(KEYS)
    assert all(CITATION.fullmatch(key) for key in KEYS)


def test_every_citation_is_in_the_bibliography():
    unknown, found = [], set()
    for path in FILES:
        for names, year in CITATION.findall(" ".join(path.read_text().split())):
            cited = f"{names} ({year})"
            key = next((key for key in KEYS if cited == key or cited.endswith(f" {key}")), None)
            if key is None:
                unknown.append(f"{path.relative_to(ROOT)}: {cited}")
            elif path.name != "bibliography.md":
                found.add(key)
    assert not unknown
    assert {"Schmoll (2015)", "Schweizer and Lu (2014)", "Lu (2015)", "Sicklinger (2014)"} <= found


def test_pages_have_words_where_lists_have_ids():
    """Ids of the checklist stand in markers of tests and in the table made from them."""
    for path in (path for path in FILES if path.suffix == ".md" and path.name != "coverage.md"):
        found = re.findall(r"\b(?:SC|SL|LU|DR|IJ|AP)-\d\d", path.read_text())
        assert not found, f"{path.relative_to(ROOT)} names {found[0]}"
