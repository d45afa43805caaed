"""Every so-many-th macro point and the last one, where not all of them are written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.result import Recorder

Counts = npt.NDArray[np.int64]

_TAKEN = "calls", "rejected", "seconds"


class Thinning:
    """Hands each `every`-th row on to a recorder, and the last one; what a row took includes those left out before it.

    >>> from cosolve.result import Layout, Memory
    >>> memory = Memory(Layout(0, 0, 1))
    >>> thinning = Thinning(memory, 3)
    >>> same = {"y": np.zeros((4, 0)), "z": np.zeros((4, 0)), "H": 1.0, "iterations": 0, "residual": 0.0, "error": 0.0}
    >>> same |= {"rejected": 0, "calls": np.array([2]), "seconds": np.nan, "norms": []}
    >>> thinning.extend({"t": np.arange(1.0, 5.0), **same}, None)
    >>> thinning.extend({"t": np.arange(5.0, 9.0), **same}, None)
    >>> thinning.finish()
    >>> memory.columns()["t"], memory.columns()["calls"].ravel()
    (array([3., 6., 8.]), array([6, 6, 4]))
    """

    def __init__(self, recorder: Recorder, every: int) -> None:
        self._recorder, self._every = recorder, every
        self._seen = 0
        self._carried: dict[str, Any] = {}  # what rows took that were left out
        self._left: tuple[dict[str, Any], Counts | None] | None = None  # the newest row, where it was left out

    def extend(self, block: dict[str, Any], counts: Counts | None) -> None:
        """Some more rows, as a recorder takes them."""
        length = len(block["t"])
        rows = np.flatnonzero(np.arange(self._seen + 1, self._seen + length + 1) % self._every == 0)
        self._seen += length
        last = np.arange(rows[-1] + 1 if len(rows) else 0, length)[-1:]  # where it is left out
        known = [name for name in _TAKEN if name != "seconds" or np.ndim(block[name])]  # fast engines do not measure
        block = block | {name: self._taken(name, block, np.append(rows, last)) for name in known}
        self._carried = {name: block[name][-1] for name in known if len(last)}
        if len(rows):
            self._recorder.extend(*_picked(block, counts, rows))
        self._left = _picked(block, counts, last) if len(last) else None

    def _taken(self, name: str, block: dict[str, Any], rows: Counts) -> Any:
        """Calls, rejections or seconds; in these rows, those since the one before it."""
        shape = np.shape(block["t"]) if name == "rejected" else (len(block["t"]), np.shape(block["calls"])[-1])
        taken = np.broadcast_to(block[name], shape).cumsum(axis=0) + self._carried.get(name, 0)
        taken[rows[1:]] -= taken[rows[:-1]]
        return taken

    def finish(self) -> None:
        """There are no more rows."""
        if self._left is not None:
            self._recorder.extend(*self._left)
            self._left = None


def _picked(block: dict[str, Any], counts: Counts | None, rows: Counts) -> tuple[dict[str, Any], Counts | None]:
    """Some rows of a block, and how many norms they have."""
    norms = block["norms"]
    if counts is not None:
        ends = np.cumsum(counts)
        norms = np.concatenate([norms[ends[k] - counts[k] : ends[k]] for k in rows])
        counts = counts[rows]
    picked = {n: value[rows] if np.ndim(value) else value for n, value in block.items() if n != "norms"}
    return picked | {"norms": norms}, counts
