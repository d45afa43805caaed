"""The page a report is written on: one HTML file with its style inside, and the few pieces it is made of.

Everything here returns strings of HTML. Colours are CSS variables, also inside the drawings, so that one file reads
well on a light screen, on a dark one and on paper.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np

from cosolve.errors import OutputFileError

#: Okabe and Ito's colours, told apart by readers with any colour vision, darkened and lightened a little.
LIGHT = ("#0072b2", "#d55e00", "#00886a", "#b0568f", "#a87400", "#3f97cc", "#6b6b00", "#5b4aa8")
DARK = ("#5ab4ec", "#ff9150", "#3fcfa8", "#e79ac8", "#e8b84b", "#9ad3f5", "#cfcf55", "#a99bf0")

_STYLE = """
:root { --paper: #ffffff; --panel: #f6f7f9; --ink: #1c2430; --muted: #5d6877; --rule: #d9dee5; --accent: #0072b2;
  --good: #00795c; --bad: #b3261e; --good-soft: #e4f4ef; --bad-soft: #fbeae8; LIGHT }
@media (prefers-color-scheme: dark) { :root { --paper: #14181e; --panel: #1c222a; --ink: #e4e8ee; --muted: #9aa6b4;
  --rule: #343d49; --accent: #5ab4ec; --good: #55d3a9; --bad: #ff9186; --good-soft: #16322b; --bad-soft: #3d201e; DARK } }
@media print { :root { --paper: #ffffff; --panel: #ffffff; --ink: #000000; --muted: #444444; --rule: #bbbbbb;
  --accent: #0072b2; --good: #00795c; --bad: #b3261e; --good-soft: #ffffff; --bad-soft: #ffffff; LIGHT }
  body { font-size: 10pt } figure, table, .verdict { break-inside: avoid } h2, h3 { break-after: avoid } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", Arial, sans-serif }
header, main, footer { max-width: 68rem; margin: 0 auto; padding: 0 1.5rem }
header { padding-top: 2.25rem }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; font-weight: 650; overflow-wrap: anywhere }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .5rem; padding-top: .9rem; border-top: 1px solid var(--rule); font-weight: 650 }
h3 { font-size: 1rem; margin: 1.6rem 0 .3rem; font-weight: 650 }
p { margin: .4rem 0 .8rem; max-width: 46rem } .muted, figcaption { color: var(--muted) }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .88em }
pre { background: var(--panel); border: 1px solid var(--rule); border-radius: .4rem; padding: .8rem 1rem; overflow-x: auto }
.verdict { border-left: .3rem solid var(--good); background: var(--good-soft); padding: .7rem 1rem; margin: 1.1rem 0;
  border-radius: 0 .4rem .4rem 0; overflow-wrap: anywhere }
.verdict.bad { border-color: var(--bad); background: var(--bad-soft) }
.verdict strong { color: var(--good) } .verdict.bad strong { color: var(--bad) } .verdict p { margin: .2rem 0; max-width: none }
dl.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: 1px; margin: 1rem 0;
  background: var(--rule); border: 1px solid var(--rule); border-radius: .4rem; overflow: hidden }
dl.facts div { background: var(--panel); padding: .55rem .8rem }
dl.facts dt { color: var(--muted); font-size: .8rem }
dl.facts dd { margin: 0; font-size: 1.1rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
figure { margin: 1rem 0 } figcaption { font-size: .85rem; margin-top: .15rem }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(26rem, 100%), 1fr)); gap: .4rem 1.6rem }
.grid figure { margin: .4rem 0; min-width: 0 }
svg { display: block; width: 100%; height: auto; stroke-linejoin: round } svg text { font-family: inherit; fill: var(--ink) }
.scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100%; margin: .6rem 0 1rem; font-size: .92rem; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--rule); vertical-align: top }
th { color: var(--muted); font-weight: 600; font-size: .82rem; vertical-align: bottom }
td.number, th.number { text-align: right } tbody th { color: var(--ink); font-size: inherit }
td.good { color: var(--good) } td.bad { color: var(--bad) }
td.bar { width: 30%; min-width: 8rem; padding-right: 0 }
td.bar span { display: block; height: .7rem; margin-top: .4rem; border-radius: .15rem; background: var(--accent);
  min-width: 1px; print-color-adjust: exact; -webkit-print-color-adjust: exact }
caption { text-align: left; color: var(--muted); font-size: .85rem; padding-bottom: .2rem }
.key { display: inline-block; width: 1.4em; height: .3em; border-radius: .15em; vertical-align: .2em; margin-right: .5em;
  print-color-adjust: exact; -webkit-print-color-adjust: exact }
details { margin: .6rem 0 } summary { cursor: pointer; color: var(--accent) }
footer { color: var(--muted); font-size: .82rem; padding-top: 2.5rem; padding-bottom: 2rem }
.box { fill: var(--panel); stroke: var(--muted) } .pill { fill: var(--paper); stroke: var(--accent) }
.wire { fill: none; stroke: var(--accent); stroke-width: 1.4 } .wire.law { stroke-dasharray: none }
.head { fill: var(--accent) } .cells { fill: var(--accent) } .frame { fill: none; stroke: var(--rule) }
svg text.name { font-weight: 600 } svg text.kind { fill: var(--muted) }
svg text.tag { paint-order: stroke; stroke: var(--paper); stroke-width: 5px; stroke-linejoin: round }
svg text.pilltext { fill: var(--accent); font-weight: 600 }
"""


def page(title: str, lead: str, sections: Iterable[str], footer: str) -> str:
    """The whole document; `lead` (the header below the title) and `sections` are HTML, the rest is text."""
    colours = {
        name: " ".join(f"--c{i}: {colour};" for i, colour in enumerate(palette))
        for name, palette in (("LIGHT", LIGHT), ("DARK", DARK))
    }
    style = _STYLE.replace("LIGHT", colours["LIGHT"]).replace("DARK", colours["DARK"])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header>\n<h1>{escape(title)}</h1>\n{lead}\n</header>\n<main>\n"
        + "\n".join(sections)
        + f"\n</main>\n<footer>\n<p>{escape(footer)}</p>\n</footer>\n</body>\n</html>\n"
    )


def write_page(path: str | Path, text: str) -> Path:
    """Write the document, making the folder if needed."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputFileError(f"the report cannot be written to '{path}': {reason}; choose another path") from error
    return path


def section(heading: str, *content: str) -> str:
    """A section with its heading; empty content is left out."""
    return f"<section>\n<h2>{escape(heading)}</h2>\n" + "\n".join(part for part in content if part) + "\n</section>"


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


def verdict(headline: str, *sentences: str, good: bool) -> str:
    """What came of it, in a coloured box."""
    rest = "".join(paragraph(sentence) for sentence in sentences if sentence)
    return f'<div class="verdict{"" if good else " bad"}"><p><strong>{escape(headline)}</strong></p>{rest}</div>'


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
    raw = [any(row[i] and _is_number(row[i]) for row in body) for i in range(len(columns))]
    head = "".join(
        f'<th scope="col"{_class("number" if numeric else "")}>{escape(name)}</th>'
        for name, numeric in zip(columns, raw, strict=True)
    )
    lines = []
    for index, row in enumerate(body):
        key = f'<span class="key" style="background: var(--c{index % len(LIGHT)})"></span>' if keys else ""
        cells = [f'<th scope="row">{key}{escape(row[0])}</th>']
        for value, numeric in zip(row[1:], raw[1:], strict=True):
            if isinstance(value, Cell) and value.share is not None:
                cells.append(f'<td class="bar"><span style="width: {100 * value.share:.1f}%"></span></td>')
            else:
                kind = value.kind if isinstance(value, Cell) else ""
                cells.append(f"<td{_class(' '.join(filter(None, ['number' if numeric else '', kind])))}>{escape(value)}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll"><table>{title}<thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def details(summary: str, *content: str) -> str:
    """Something to unfold."""
    return f"<details><summary>{escape(summary)}</summary>{''.join(content)}</details>"


def number(value: float, digits: int = 4) -> str:
    """A number for people: whole ones in full, others with a few digits."""
    if isinstance(value, (int, np.integer)) or (float(value).is_integer() and abs(value) < 1e6):
        whole = int(value)
        return f"{whole:,}".replace(",", "\u202f") if abs(whole) >= 10_000 else str(whole)
    return f"{value:.{digits}g}"


def tidy(text: str) -> str:
    """A representation without memory addresses: `<a.b.Newton object at 0x7f..>` becomes `Newton()`."""
    return re.sub(r"<(?:[\w.]*\.)?(\w+) object at 0x[0-9a-f]+>", r"\1()", text)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "–"
    return number(value) if isinstance(value, (int, float, np.number)) else str(value)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-−+]?[\d\u202f.]+(e[-+]?\d+)?( ?(%|s|ms|µs))?|inf|–", text) is not None


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
