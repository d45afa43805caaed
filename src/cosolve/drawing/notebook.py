"""What a notebook shows of an object: HTML in the colours of the notebook, light or dark, that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def _colour(jupyter: str, vscode: str, otherwise: str) -> str:
    return f"var(--jp-{jupyter}, var(--vscode-{vscode}, {otherwise}))"


_STYLE = (
    ".cosolve { "
    f"--paper: {_colour('layout-color0', 'editor-background', '#ffffff')}; "
    f"--panel: {_colour('layout-color1', 'editorWidget-background', '#f6f7f9')}; "
    f"--ink: {_colour('content-font-color0', 'editor-foreground', '#1c2430')}; "
    f"--muted: {_colour('content-font-color2', 'descriptionForeground', '#5d6877')}; "
    f"--rule: {_colour('border-color2', 'editorWidget-border', '#d9dee5')}; "
    f"--accent: {_colour('brand-color1', 'textLink-foreground', '#0072b2')}; "
    f"--bad: {_colour('error-color1', 'errorForeground', '#b3261e')}; "
    "color: var(--ink); font-size: 13px; line-height: 1.45 } "
    ".cosolve p { margin: .3em 0 } .cosolve .muted { color: var(--muted) } .cosolve .bad { color: var(--bad) } "
    ".cosolve svg { display: block; width: 100%; height: auto; margin: .4em 0 } "
    ".cosolve svg text { font-family: inherit; fill: var(--ink) } "
    ".cosolve .box { fill: var(--panel); stroke: var(--muted) } "
    ".cosolve .pill { fill: var(--paper); stroke: var(--accent) } .cosolve .blank { fill: var(--paper) } "
    ".cosolve .wire { fill: none; stroke: var(--accent); stroke-width: 1.4 } "
    ".cosolve .head, .cosolve .cells { fill: var(--accent) } .cosolve .frame { fill: none; stroke: var(--rule) } "
    ".cosolve svg text.name { font-weight: 600 } .cosolve svg text.kind { fill: var(--muted) } "
    ".cosolve svg text.pilltext { fill: var(--accent); font-weight: 600 } "
    ".cosolve svg.spark { width: 150px; height: 26px; margin: 0 } "
    ".cosolve svg.spark path { fill: none; stroke: var(--accent); stroke-width: 1.3; stroke-linejoin: round } "
    ".cosolve table { border-collapse: collapse; margin: .4em 0; font: inherit; color: inherit; "
    "font-variant-numeric: tabular-nums } "
    ".cosolve th, .cosolve td { text-align: left; padding: .15em 1em .15em 0; border-bottom: 1px solid var(--rule) } "
    ".cosolve th.number, .cosolve td.number { text-align: right } .cosolve summary { cursor: pointer; "
    "color: var(--accent) }"
)


class Html(str):
    """Text that is HTML already."""


def page(*parts: str) -> str:
    """The whole of it; `parts` are HTML, empty ones are left out.

    >>> page("<p>one</p>")  # doctest: +ELLIPSIS
    '<div class="cosolve"><style>...</style><p>one</p></div>'
    """
    return f'<div class="cosolve"><style>{_STYLE}</style>{"".join(part for part in parts if part)}</div>'


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of text."""
    return f"<p{_class(kind)}>{_html(text)}</p>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str] = ()) -> str:
    """A table of texts; the columns in `numbers` are aligned to the right."""
    kinds = ["number" if name in numbers else "" for name in columns]
    head = "".join(f"<th{_class(kind)}>{_html(name)}</th>" for name, kind in zip(columns, kinds, strict=True))
    body = (
        "".join(f"<td{_class(kind)}>{_html(value)}</td>" for value, kind in zip(row, kinds, strict=True))
        for row in rows
    )
    lines = "".join(f"<tr>{cells}</tr>" for cells in body)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def details(summary: str, *content: str, opened: bool = False) -> str:
    """Something to unfold."""
    return f"<details{' open' if opened else ''}><summary>{_html(summary)}</summary>{''.join(content)}</details>"


def _html(text: str) -> str:
    return text if isinstance(text, Html) else escape(text)


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
