"""What a row of the benchmark hands back, and RESULTS.md made of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness import Ratio, Sample


@dataclass
class Verdict:
    """One target: what was reached, and what that means."""

    id: str
    what: str
    reached: str
    target: str
    met: bool | None  # None: not measured
    why: str = ""  # where it is missed or not measured

    @property
    def mark(self) -> str:
        return {True: "met", False: "**missed**", None: "not measured"}[self.met]


@dataclass
class Section:
    """A row: its tables, its verdicts, its pictures."""

    title: str
    text: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    pictures: list[Path] = field(default_factory=list)


def judge(
    id: str, what: str, found: Ratio | None, target: str, good: Callable[[float], bool], miss: str, absent: str = ""
) -> Verdict:
    """A verdict on a ratio; `miss` says why it is missed and what would get there."""
    if found is None:
        return Verdict(id, what, "-", target, None, absent or "the peer is missing")
    met = good(found.median)
    return Verdict(id, what, str(found), target, met, "" if met else miss)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A markdown table; the first column is text, the others numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def duration(seconds: float) -> str:
    """With a unit that reads well."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def timed(sample: Sample) -> list[str]:
    """Median and range, or why there is none."""
    if sample.missing:
        return [sample.missing, ""]
    low, high = sample.spread()
    return [duration(sample.seconds()), f"{duration(low)} to {duration(high)}"]


def distance(answer: Sequence[float], right: Sequence[float]) -> float:
    """The largest difference."""
    return max(abs(a - b) for a, b in zip(answer, right, strict=True))


def agrees(answer: Sequence[float], right: Sequence[float], tol: float = 1e-7) -> str:
    """Whether the answers are the same, as a cell of a table."""
    off = distance(answer, right)
    return f"yes ({off:.0e})" if off <= tol * max(1.0, *(abs(v) for v in right)) else f"**no** ({off:.0e})"


def _grouped(verdicts: Sequence[Verdict]) -> dict[tuple[str, str], list[str]]:
    """What has the same reason, once."""
    found: dict[tuple[str, str], list[str]] = {}
    for verdict in verdicts:
        found.setdefault((verdict.id, verdict.why), []).append(verdict.what)
    return found


def write(path: Path, sections: Sequence[Section], facts: dict[str, str], versions: dict[str, str], note: str) -> None:
    """RESULTS.md."""
    lines = [
        "# Benchmark results",
        "",
        "Written by `make bench`. Only ratios inside one run count: repeats of all tools are interleaved, a figure is",
        "the median over repeats, the range behind it goes from the smallest to the largest. How things are measured,",
        "and what each peer is: [README.md](README.md). Profiles of our own hot paths: [profiles](profiles/README.md).",
        "",
        note,
        "",
        *(f"- {key}: {value}" for key, value in facts.items()),
        "- versions: " + ", ".join(f"{name} {version}" for name, version in sorted(versions.items())),
        "",
        "## Targets",
        "",
        "| id | what | reached (range) | target | |",
        "|---|---|--:|--:|---|",
    ]
    verdicts = [verdict for section in sections for verdict in section.verdicts]
    lines += [f"| {v.id} | {v.what} | {v.reached} | {v.target} | {v.mark} |" for v in verdicts]
    missed = [v for v in verdicts if v.met is not True and v.why]
    if missed:
        lines += ["", "### Where it is missed or not measured, why, and what would get there", ""]
        for (id, why), what in _grouped(missed).items():
            lines.append(f"- **{id}**, {'; '.join(what)}: {why}")
    for section in sections:
        lines += ["", f"## {section.title}", "", *section.text]
        for picture in section.pictures:
            lines += ["", f"![{section.title}]({picture.name})"]
    while lines[-1] == "":
        lines.pop()
    path.write_text("\n".join(lines) + "\n")
