"""The page of figures, docs/validation/campaigns.md: a section per campaign, rewritten by the run that measured it."""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "validation" / "campaigns.md"


@dataclass
class Outcome:
    """What a campaign found: rows of a table, sentences beneath it, and whether it is as it should be."""

    head: Sequence[str]
    rows: list[Sequence[object]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    good: bool = True

    def table(self) -> str:
        """The rows in Markdown."""
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def section(name: str, command: str, outcome: Outcome) -> str:
    """The text of one section.

    >>> print(section("soak", "make campaign NAME=soak", Outcome(["what", "count"], [["steps", 3]])).splitlines()[0])
    <!-- soak -->
    """
    system = f"{platform.system()} {platform.machine()}"
    where = f"{date.today():%Y-%m-%d}, commit {_commit()}, Python {platform.python_version()}, {system}"
    notes = "\n".join(f"- {note}" for note in outcome.notes)
    parts = [f"`{command}` ({where})", outcome.table(), notes]
    return f"<!-- {name} -->\n" + "\n\n".join(part for part in parts if part) + f"\n<!-- /{name} -->"


def _commit() -> str:
    """What was tried."""
    asked = ["git", "-C", str(PAGE.parent), "rev-parse", "--short=8", "HEAD"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return found or "unknown"


def write(name: str, command: str, outcome: Outcome, page: Path = PAGE) -> None:
    """Put the section in its place, which the page must have."""
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(rf"<!-- {name} -->.*?<!-- /{name} -->", re.DOTALL)
    assert pattern.search(text), f"{page} has no place for the figures of {name}"
    page.write_text(pattern.sub(lambda _: section(name, command, outcome), text), encoding="utf-8")
