"""How a result shows itself: what was run, what went wrong, and each quantity in a line with a sparkline."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.drawing import notebook
from cosolve.drawing.diagram import diagram
from cosolve.drawing.sparkline import blocks, line
from cosolve.drawing.wording import number

if TYPE_CHECKING:
    from cosolve.basics.arrays import Vector
    from cosolve.result.result import Result

_MOST_ROWS = 12
_COLUMNS = ("quantity", "unit", "start", "end", "lowest", "highest")
_NUMBERS = ("start", "end", "lowest", "highest")


@dataclass(frozen=True)
class _Row:
    """A quantity; `series` None for a vector, of which lowest and highest are over all entries."""

    cells: tuple[str, ...]
    series: Vector | None


def method_label(result: Result) -> str:
    """The method with its degree, also of a result from a file, which holds the method as text.

    >>> import cosolve as cs
    >>> clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    >>> method_label(cs.simulate(clock, t_end=1.0, method=cs.Jacobi(2), step=0.1))
    'Jacobi(2)'
    """
    if result.method is not None:
        return str(result.method.label)
    text = str(result.meta.get("method", "unknown method"))
    name, degree = text.partition("(")[0], re.search(r"\bdegree=(\d+)", text)
    return f"{name}({degree[1]})" if degree else name


def as_text(result: Result) -> str:
    """Lines for `print`.

    >>> import cosolve as cs
    >>> clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    >>> print(cs.simulate(cs.System({"clock": clock}), t_end=1.0, method=cs.Jacobi(), step=0.1))
    <Result of Jacobi(degree=1, outputs='as_used'): 11 macro points, t = 0 ... 1, finished>
    quantity  unit  start  end  lowest  highest
    clock.t             0    1       0        1  ▁▁▂▂▂▂▃▃▃▄▄▄▅▅▅▆▆▆▇▇▇▇██
    10 macro steps, 0 rejected, 0 corrections, 10 subsystem calls; ...
    not compiled: nothing is coupled
    """
    rows, more = _rows(result)
    table = [_COLUMNS, *(row.cells for row in rows)]
    widths = [max(len(cells[k]) for cells in table) for k in range(len(_COLUMNS))]
    sparks = ["", *("" if row.series is None else blocks(result.t, row.series) for row in rows)]
    lines = [repr(result)]
    if rows:
        for cells, spark in zip(table, sparks, strict=True):
            aligned = [
                cell.rjust(w) if name in _NUMBERS else cell.ljust(w)
                for name, cell, w in zip(_COLUMNS, cells, widths, strict=True)
            ]
            lines.append("  ".join([*aligned, spark]).rstrip())
    return "\n".join(
        [*lines, *([more] if more else []), _work(result), *_engine(result), *_bar(result), *_warnings(result)]
    )


def as_rich(result: Result) -> Any:
    """The same as a table for rich."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows, more = _rows(result)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in _COLUMNS:
        table.add_column(name, justify="right" if name in _NUMBERS else "left")
    table.add_column("")
    for row in rows:
        spark = "" if row.series is None else blocks(result.t, row.series)
        table.add_row(*(Text(cell) for cell in row.cells), Text(spark, style="cyan"))
    parts: list[Any] = [Text(repr(result), style="bold" if result.finished else "bold red")]
    parts += [table] if rows else []
    parts += [Text(text, style="dim") for text in (more, _work(result), *_engine(result), *_bar(result)) if text]
    return Group(*parts, *(Text(text, style="yellow") for text in _warnings(result)))


def as_html(result: Result) -> str:
    """A table with sparklines, and the coupling diagram to unfold, for notebooks."""
    rows, more = _rows(result)
    t = result.t
    body = [
        (*row.cells, notebook.Html("" if row.series is None else line(t, np.asarray(row.series, dtype=np.float64))))
        for row in rows
    ]
    graph = result.meta.get("graph") or {}
    return notebook.page(
        notebook.paragraph(repr(result).strip("<>"), "" if result.finished else "bad"),
        notebook.table((*_COLUMNS, ""), body, _NUMBERS) if body else "",
        notebook.paragraph(more, "muted") if more else "",
        notebook.paragraph(_work(result), "muted"),
        *(notebook.paragraph(text, "muted") for text in _bar(result)),
        *(notebook.paragraph(text, "bad") for text in _warnings(result)),
        notebook.details("what was coupled", diagram(graph)[0]) if graph.get("subsystems") else "",
    )


def _rows(result: Result) -> tuple[list[_Row], str]:
    """The first quantities, outputs before others, and a line about the rest."""
    names = sorted(result.channels, key=lambda name: result.channels[name].column != "y")
    rows = [_row(result, name) for name in names[:_MOST_ROWS]] if len(result.t) else []
    left = names[len(rows) :]
    shown = ", ".join(left[:4]) + (", ..." if len(left) > 4 else "")
    return rows, f"and {len(left)} more: {shown}" if left else ""


def _row(result: Result, name: str) -> _Row:
    channel, values = result.channels[name], result[name]
    finite = values[np.isfinite(values)]
    ends = ("", "") if not channel.scalar else (number(float(values[0])), number(float(values[-1])))
    limits = (number(float(finite.min())), number(float(finite.max()))) if finite.size else ("", "")
    shown = name if channel.scalar else f"{name}[{values.shape[1]}]"
    return _Row((shown, channel.unit, *ends, *limits), values if channel.scalar else None)


def _work(result: Result) -> str:
    """What it took, in a line."""
    return "; ".join(str(result.stats).splitlines()[:2])


def _engine(result: Result) -> list[str]:
    """Which engine ran, in a line."""
    return [result.stats.engine] if result.stats.engine else []


def _bar(result: Result) -> list[str]:
    """How method and step were chosen, and what is known about the coupling error, where it was asked for."""
    chosen = [f"chosen: {result.meta['choice']}"] if "choice" in result.meta else []
    return [*chosen, *([] if result.error_bar is None else [result.error_bar.sentence])]


def _warnings(result: Result) -> list[str]:
    return [str(note) for note in result.stats.notes]
