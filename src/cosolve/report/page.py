"""The page a report is written on: one HTML file with its style (`style.css`) inside, and the pieces it is made of.

Everything here returns strings of HTML. Colours are CSS variables, also inside the drawings, so that one file reads
well on a light screen, on a dark one and on paper.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path

import numpy as np

from cosolve.basics.atomic_files import replacing
from cosolve.drawing.wording import count as count
from cosolve.drawing.wording import number as number
from cosolve.errors import OutputFileError

#: How many series colours the style has (`--c0`, `--c1`, ...).
COLOURS = 8


def page(title: str, lead: str, sections: Iterable[str], footer: str) -> str:
    """The whole document; `lead` (the header below the title) and `sections` are HTML, the rest is text."""
    style = resources.files("cosolve.report").joinpath("style.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header>\n<h1>{escape(title)}</h1>\n{lead}\n</header>\n<main>\n"
        + "\n".join(sections)
        + f"\n</main>\n<footer>\n<p>{escape(footer)}</p>\n</footer>\n</body>\n</html>\n"
    )


def as_page(path: str | Path) -> Path:
    """The path of a page; raises where its name is that of something else.

    >>> as_page("report.html").name
    'report.html'
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise OutputFileError(f"'{path}' is not the name of a page: reports are HTML; choose a name that ends in .html")
    return path


def write_page(path: str | Path, text: str) -> Path:
    """Write the document, making the folder if needed."""
    path = as_page(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputFileError(f"the report cannot be written to '{path}': {reason}; choose another path") from error
    return path


def section(heading: str, *content: str, kind: str = "") -> str:
    """A section with its heading; empty content is left out. One of the kind `screen` is not printed."""
    return (
        f"<section{_class(kind)}>\n<h2>{escape(heading)}</h2>\n"
        + "\n".join(part for part in content if part)
        + "\n</section>"
    )


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f"<p{_class(kind)}>{escape(text)}</p>"


def figure(drawing: str, caption: str = "") -> str:
    """A drawing (SVG) with its caption (text)."""
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{drawing}{below}</figure>"


def grid(figures: Sequence[str]) -> str:
    """Figures next to each other where the window is wide enough."""
    return f'<div class="grid">{"".join(figures)}</div>' if figures else ""


def facts(values: Mapping[str, str]) -> str:
    """Short facts, name over value."""
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in values.items())
    return f'<dl class="facts">{cells}</dl>'


def verdict(headline: str, *sentences: str, level: str = "good") -> str:
    """What came of it, in a coloured box; `level` is good, doubtful or bad."""
    rest = "".join(paragraph(sentence) for sentence in sentences if sentence)
    return f'<div class="verdict {level}"><p><strong>{escape(headline)}</strong></p>{rest}</div>'


class Cell(str):
    """Text of a table cell that is good or bad news, or a share (0 to 1) drawn as a bar."""

    kind: str = ""
    share: float | None = None

    @classmethod
    def judged(cls, text: str, good: bool) -> Cell:
        """Good or bad news."""
        cell = cls(text)
        cell.kind = "good" if good else "bad"
        return cell

    @classmethod
    def bar(cls, share: float) -> Cell:
        """A bar of this share of the cell."""
        cell = cls("")
        cell.share = min(1.0, max(0.0, share)) if np.isfinite(share) else 0.0
        return cell


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "", keys: bool = False) -> str:
    """A table; numbers are right-aligned, the first column heads its row (after a colour `key` per row if asked)."""
    body = [[_text(value) for value in row] for row in rows]
    raw = [_is_number_column([row[i] for row in body]) for i in range(len(columns))]
    head = "".join(
        f'<th scope="col"{_class("number" if numeric else "")}>{escape(name)}</th>'
        for name, numeric in zip(columns, raw, strict=True)
    )
    lines = []
    for index, row in enumerate(body):
        key = f'<span class="key" style="background: var(--c{index % COLOURS})"></span>' if keys else ""
        cells = [f'<th scope="row">{key}{escape(row[0])}</th>']
        for value, numeric in zip(row[1:], raw[1:], strict=True):
            if isinstance(value, Cell) and value.share is not None:
                cells.append(f'<td class="bar"><span style="width: {100 * value.share:.1f}%"></span></td>')
            else:
                kind = value.kind if isinstance(value, Cell) else ""
                cells.append(
                    f"<td{_class(' '.join(filter(None, ['number' if numeric else '', kind])))}>{escape(value)}</td>"
                )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll"><table>{title}<thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
    )


def listing(text: str) -> str:
    """Text as it is, letter by letter."""
    return f"<pre>{escape(text)}</pre>"


def details(summary: str, *content: str) -> str:
    """Something to unfold."""
    return f"<details><summary>{escape(summary)}</summary>{''.join(content)}</details>"


def seconds(value: float) -> str:
    """A duration for people."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def signature() -> str:
    """The line at the foot of the page."""
    from cosolve import __version__

    return f"Written by cosolve {__version__}. This file needs nothing else to open."


def tidy(text: str) -> str:
    """A representation without memory addresses: `<a.b.Newton object at 0x7f..>` becomes `Newton()`."""
    return re.sub(r"<(?:[\w.]*\.)?(\w+) object at 0x[0-9a-f]+>", r"\1()", text)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "–"
    return number(value) if isinstance(value, (int, float)) else str(value)


def _is_number_column(texts: Sequence[str]) -> bool:
    pattern = r"[-−+]?[\d\u202f.]+(e[-+]?\d+)?( ?(%|s|ms|µs|times))?|inf|–"
    filled = [text for text in texts if text]
    return bool(filled) and all(re.fullmatch(pattern, text) for text in filled)


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
