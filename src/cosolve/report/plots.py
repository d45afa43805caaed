"""Plots over time as inline SVG, drawn by matplotlib without a display and without global state.

Colours go in as placeholders and come out as CSS variables of the page; texts stay texts. Lines are decimated to what
a screen can show, keeping every peak.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any, Literal, cast
from zlib import crc32

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.drawing.decimate import band, envelope
from cosolve.report.page import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Points per line: about two per pixel column of a wide screen.
POINTS = 2000
#: A line ends where its values exceed this: matplotlib's margins would overflow.
_LARGEST = 1e150
#: A linear axis shows nothing but the blow-up when the largest value is this many times the typical one.
_WILD = 1e4

_TITLE, _INK, _RULE = "#010100", "#010101", "#020202"
_SERIES = tuple(f"#0304{i:02d}" for i in range(COLOURS))
_VARIABLES = {_TITLE: "var(--ink)", _INK: "var(--muted)", _RULE: "var(--rule)"} | {
    c: f"var(--c{i})" for i, c in enumerate(_SERIES)
}
_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "cosolve",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.edgecolor": _RULE,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _RULE,
    "grid.linewidth": 0.6,
    "xtick.color": _RULE,
    "ytick.color": _RULE,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "text.color": _INK,
    "lines.linewidth": 1.4,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}

Scale = Literal["linear", "log", "auto"]


@dataclass(frozen=True)
class Line:
    """One line of a plot; `colour` is a place in the palette, or None for the reference (pale, in the background).

    `band` is shaded, so far to both sides.
    """

    t: Vector
    values: Vector
    label: str = ""
    colour: int | None = 0
    style: str = "-"
    marker: str = ""
    width: float = 1.4
    band: Vector | None = None


def plot(
    lines: Sequence[Line],
    *,
    title: str,
    scale: Scale = "linear",
    limits: tuple[float, float] | None = None,
    steps: bool = False,
    mark: float | None = None,
    size: tuple[float, float] = (6.0, 2.5),
    describe: str = "",
    time_unit: str = "s",
) -> str:
    """Lines over time as SVG.

    `scale="auto"` turns to a symmetric logarithmic axis when a few values dwarf all others; `limits` cut the axis;
    `steps` draws values that hold over the macro step before their time; `mark` draws a horizontal line.
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(cast(Any, _SETTINGS)):
        drawing = Figure(figsize=size, layout="constrained")
        axes = drawing.add_subplot()
        for line in lines:
            _draw(axes, line, scale, steps)
        if mark is not None:
            axes.axhline(mark, color=_INK, linewidth=0.8, linestyle=":")
        _set_scale(axes, [line.values for line in lines], scale, limits)
        _set_time(axes, [line.t for line in lines])
        ends = [t for t in map(_end, lines) if t is not None]
        time = f"t [{time_unit}]" if time_unit else "t"
        axes.set_xlabel(f"{time} (values exceed {power(_LARGEST)} from t = {min(ends):.4g} on)" if ends else time)
        axes.set_title(title, fontsize=10, loc="left", color=_TITLE)
        if any(line.label for line in lines):
            drawing.legend(loc="outside upper left", ncols=4, handlelength=1.6, columnspacing=1.2)
        return _inline(drawing, describe or _describe(lines, title))


def _draw(axes: Axes, line: Line, scale: Scale, steps: bool) -> None:
    values = np.asarray(line.values, dtype=np.float64)
    if scale == "log":
        values = np.where(values > 0, values, np.nan)
    shown = np.isfinite(values)
    end = _end(line)
    if end is not None:
        shown &= line.t < end
    if not shown.any():
        return
    t, values = envelope(line.t[shown], values[shown], POINTS)
    colour = _INK if line.colour is None else _SERIES[line.colour % len(_SERIES)]
    marker = line.marker or ("o" if len(t) == 1 else "")
    axes.plot(
        t,
        values,
        color=colour,
        label=line.label or None,
        linestyle=line.style,
        marker=marker,
        markersize=3.5,
        markevery=max(1, len(t) // 120),
        linewidth=line.width,
        alpha=0.35 if line.colour is None else 1.0,
        drawstyle="steps-pre" if steps else "default",
    )
    if line.band is not None and shown.all():
        axes.fill_between(*band(line.t, line.values, line.band), color=colour, alpha=0.3, linewidth=0)


def _end(line: Line) -> float | None:
    """The time at which a line ends since its values are too large to be drawn."""
    beyond = np.flatnonzero(np.abs(line.values) > _LARGEST)
    return float(line.t[beyond[0]]) if len(beyond) else None


def _set_scale(axes: Axes, series: Sequence[Vector], scale: Scale, limits: tuple[float, float] | None) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    if limits is not None:
        axes.set_ylim(*limits)
    if scale == "log":
        positive = [v[np.isfinite(v) & (v > 0)] for v in series]
        if any(v.size for v in positive):
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: power(value)))
            axes.yaxis.set_minor_formatter(NullFormatter())
    elif scale == "auto":
        threshold = wild(series)
        if threshold is not None:
            axes.set_yscale("symlog", linthresh=threshold, linscale=0.5)
            low, high = axes.get_ylim()
            decades = max(1, int(np.ceil(np.log10(max(-low, high) / threshold) / 3)))
            ticks = [threshold * 10.0 ** (decades * k) for k in range(1, 5)]
            axes.set_yticks([v for v in (*(-tick for tick in ticks), 0.0, *ticks) if low <= v <= high])
            axes.minorticks_off()
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: power(value)))
    elif limits is None and series and all(v.dtype.kind == "i" for v in series):
        from matplotlib.ticker import MaxNLocator

        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axes.set_ylim(0, max(1, max(int(v.max(initial=0)) for v in series)) * 1.12)


def _set_time(axes: Axes, times: Sequence[Vector]) -> None:
    times = [t for t in times if len(t)]
    first, last = min((t[0] for t in times), default=0.0), max((t[-1] for t in times), default=0.0)
    if last > first:
        axes.set_xlim(first, last)


def wild(series: Iterable[Vector]) -> float | None:
    """A power of ten above the typical magnitude, when the largest is far beyond it; None for a tame series."""
    magnitudes = np.concatenate([np.abs(v[np.isfinite(v)]).ravel() for v in series])
    magnitudes = magnitudes[magnitudes > 0]
    if not magnitudes.size:
        return None
    early = magnitudes[: max(3, magnitudes.size // 5)]
    typical = float(min(np.median(magnitudes), early.max()))
    if magnitudes.max() <= _WILD * typical:
        return None
    return float(10.0 ** np.ceil(np.log10(typical)))


def power(value: float) -> str:
    """A power of ten with superscript digits; other numbers plainly."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    exponent = np.log10(abs(value))
    if abs(exponent - round(exponent)) > 1e-6:
        return f"{value:g}"
    if -3 <= round(exponent) <= 3:
        return f"{value:g}".replace("-", "−")
    raised = str(round(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{'−' if value < 0 else ''}10{raised}"


def _describe(lines: Sequence[Line], title: str) -> str:
    finite = [v[np.isfinite(v)] for v in (line.values for line in lines)]
    finite = [v for v in finite if v.size]
    if not finite:
        return f"{title} over time: no finite values"
    low, high = min(float(v.min()) for v in finite), max(float(v.max()) for v in finite)
    names = ", ".join(dict.fromkeys(line.label for line in lines if line.label))
    return f"{title} over time{f' ({names})' if names else ''}: between {low:.4g} and {high:.4g}"


def _inline(drawing: Figure, describe: str) -> str:
    """The figure as an SVG element for the page: no namespaces, own ids, CSS variables for colours, short numbers."""
    buffer = StringIO()
    drawing.savefig(buffer, format="svg", metadata=dict.fromkeys(["Creator", "Date", "Format", "Type"]))
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    view = re.search(r'viewBox="[^"]*"', text)
    assert view is not None
    text = text[text.index(">") + 1 :]
    text = re.sub(r"<style[^>]*>.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="legend[^"]*">', '<g class="legend">', text)
    text = re.sub(r'<g id="[^"]*">', "<g>", text)
    text = re.sub(r'\b(d|x|y|transform)="[^"]*"', _shorten, text)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
    for placeholder, variable in _VARIABLES.items():
        text = text.replace(placeholder, variable)
    text = re.sub(r"\n\s*", "\n", text)
    prefix = f"p{crc32(text.encode()):08x}-"  # ids are unique in the page, and the same in every run
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r'(url\(#|href="#)', rf"\1{prefix}", text)
    return f'<svg {view.group()} role="img" aria-label="{escape(describe)}">{text.strip()}'


def _shorten(attribute: re.Match[str]) -> str:
    """Coordinates with two digits."""
    return re.sub(r"\s*\n\s*", "", re.sub(r"(\d\.\d{2})\d+", r"\1", attribute.group()))
