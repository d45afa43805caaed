"""Series as pictures of the size of a word: letters for a terminal, an SVG for a notebook."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.drawing.decimate import envelope

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDE, _HIGH = 150.0, 26.0  # px
_MOST_POINTS = 300


def blocks(t: Vector, values: Vector, width: int = 24) -> str:
    """A series over evenly spaced times as blocks of different height; blank where it is not finite.

    A block shows of the values around its time the one farthest from the median of the series, so that no peak is lost.

    >>> import numpy as np
    >>> t = np.linspace(0.0, 1.0, 101)
    >>> blocks(t, t, 8), blocks(t, 0 * t, 4), blocks(t[:0], t[:0]), blocks(t, 1.0 * (t == 0.4), 8)
    ('▁▂▃▄▅▆▇█', '▁▁▁▁', '', '▁▁▁█▁▁▁▁')
    """
    if not len(t):
        return ""
    times = np.linspace(t[0], t[-1], width)
    shown = np.interp(times, t, values)
    finite = values[np.isfinite(values)]
    middle = float(np.median(finite)) if len(finite) else 0.0
    edges = np.searchsorted(t, 0.5 * (times[1:] + times[:-1]))
    for k, (begin, end) in enumerate(pairwise([0, *edges, len(t)])):
        inside = values[begin:end]
        inside = inside[np.isfinite(inside)]
        if len(inside):
            far = inside[np.argmax(np.abs(0.5 * inside - 0.5 * middle))]
            if not abs(0.5 * shown[k] - 0.5 * middle) >= abs(0.5 * far - 0.5 * middle):
                shown[k] = far
    low, span = _range(shown)
    heights = np.nan_to_num((shown - low) / span) if span else np.zeros(width)
    levels = np.rint(heights * (len(_BLOCKS) - 1)).astype(int)
    return "".join(_BLOCKS[level] if np.isfinite(value) else " " for level, value in zip(levels, shown, strict=True))


def line(t: Vector, values: Vector) -> str:
    """A series as a small SVG; a long one shows the lowest and highest value of every part of a pixel.

    >>> import numpy as np
    >>> line(np.array([0.0, 1.0]), np.array([2.0, 3.0]))  # doctest: +ELLIPSIS
    '<svg class="spark" viewBox="0 0 150 26" ...><path d="M2.0 24.0L148.0 2.0"/></svg>'
    """
    finite = np.isfinite(values)
    t, values = envelope(t[finite], values[finite], _MOST_POINTS)
    path = ""
    if len(t):
        low, span = _range(values)
        x = 2.0 + (_WIDE - 4.0) * (t - t[0]) / ((t[-1] - t[0]) or 1.0)
        y = _HIGH - 2.0 - (_HIGH - 4.0) * ((values - low) / span if span else 0.0 * t)
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
    return f'<svg class="spark" viewBox="0 0 {_WIDE:g} {_HIGH:g}" aria-hidden="true"><path d="{path}"/></svg>'


def _range(values: Vector) -> tuple[float, float]:
    """The lowest finite value, and how far the highest is from it; infinitely far counts as nothing to see."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 0.0
    span = float(finite.max()) - float(finite.min())
    return float(finite.min()), span if np.isfinite(span) else 0.0
