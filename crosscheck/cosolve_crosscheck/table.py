"""The table of a cross-check: on the terminal, as Markdown and as plain values."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

VERDICTS = ("equal", "close", "differs", "both refuse", "only FMPy", "only cosolve", "crash", "timeout")
_STYLES = {
    "equal": "green",
    "close": "green",
    "differs": "red",
    "crash": "red",
    "timeout": "red",
    "only FMPy": "yellow",
}
_LONGEST = 300  # letters of a reason in a table


@dataclass(frozen=True)
class Row:
    """One FMU in one of its kinds, or one SSP."""

    file: str
    kind: str
    fmi: str
    t0: float
    t_end: float
    step: float
    verdict: str
    difference: float | None
    reason: str
    repeat: str
    libcosim: str
    omsimulator: str
    copies: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """True where nothing speaks against cosolve: no difference, no crash, and a second run like the first."""
        return self.verdict not in ("differs", "crash", "timeout") and self.repeat in ("", "same bits")


@dataclass(frozen=True)
class CrossCheck:
    """What `crosscheck` found; `print` it, take `rows`, or write it with `markdown` and `to_dict`."""

    folder: str
    rows: tuple[Row, ...]
    versions: dict[str, str]

    @property
    def counts(self) -> dict[str, int]:
        """How many rows have each verdict."""
        found = Counter(row.verdict for row in self.rows)
        return {word: found[word] for word in VERDICTS if found[word]}

    @property
    def good(self) -> bool:
        """True when every row is."""
        return all(row.good for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rows = [asdict(row) for row in self.rows]
        for row in rows:
            if row["difference"] is not None and not isfinite(row["difference"]):
                row["difference"] = "infinite"
        return {"folder": self.folder, "versions": self.versions, "counts": self.counts, "rows": rows}

    def summary(self) -> str:
        """The counts in one line."""
        files = len({row.file for row in self.rows})
        copies = sum(len(row.copies) for row in {row.file: row for row in self.rows}.values())
        words = ", ".join(f"{number} {word}" for word, number in self.counts.items())
        repeat = Counter(row.repeat == "same bits" for row in self.rows if row.repeat)
        again = f"; second run: {repeat[True]} same bits, {repeat[False]} not" if repeat else ""
        return f"{files} files ({copies} copies of them), {len(self.rows)} cases: {words or 'none'}{again}"

    def markdown(self) -> str:
        """The table as Markdown."""
        lines = [self.summary(), "", f"{', '.join(f'{name} {version}' for name, version in self.versions.items())}", ""]
        heads = [*_HEADS]
        lines += [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
        for row in self.rows:
            cells = [cell.replace("|", "\\|").replace("\n", " ") for cell in _cells(row)]
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"

    def show(self, console: Console) -> None:
        """Print it as a table."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        heads = list(_HEADS[:6])
        places = [0, 1, 2, 3, 4, 5]
        for place, words in ((6, {row.libcosim for row in self.rows}), (7, {row.omsimulator for row in self.rows})):
            if words != {"not installed"}:
                heads.append(_HEADS[place])
                places.append(place)
        for heading in heads:
            table.add_column(heading, overflow="fold", no_wrap=heading not in ("file", "second run"))
        for row in self.rows:
            texts = _cells(row)
            cells = [Text(texts[k] if k < 5 else _brief(texts[k])) for k in places]
            cells[3].stylize(_STYLES.get(row.verdict, ""))
            table.add_row(*cells)
        console.print(table)
        for row in self.rows:
            said = [row.reason] if row.reason and row.verdict != "equal" else []
            said += [f"second run: {row.repeat}"] if row.repeat not in ("", "same bits") else []
            if said:
                head = Text(f"{row.file}, {row.kind}: {row.verdict}", style=_STYLES.get(row.verdict, ""))
                lines = [head, *(Text("    " + _short(text)) for text in said)]
                console.print(*lines, sep="\n", soft_wrap=True)
        missing = [name for name, number in self.versions.items() if number == "not installed" and name != "cosolve"]
        console.print(Text(self.summary() + (f"\nnot installed: {', '.join(missing)}" if missing else "")))

    def __str__(self) -> str:
        from io import StringIO

        from rich.console import Console

        text = StringIO()
        self.show(Console(file=text, width=160))
        return text.getvalue().rstrip()


_HEADS = ("file", "kind", "FMI", "verdict", "difference", "second run", "libcosim", "OMSimulator", "why")


def _cells(row: Row) -> list[str]:
    gap = "" if row.difference is None else "0" if row.difference == 0 else f"{row.difference:.1e}"
    third = [_short(text) for text in (row.libcosim, row.omsimulator, row.reason)]
    return [row.file, row.kind, row.fmi, row.verdict, gap, row.repeat, *third]


def _brief(text: str) -> str:
    """For a narrow column: the verdict without its details."""
    for word in ("same bits", "not installed", "equal", "close", "differs", "died", "runs", ""):
        if text.startswith(word):
            return word or ("-" if text else "")
    return text


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
