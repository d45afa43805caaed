"""Every n-th macro point and the last one, where not all of them are written down."""

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
        self._left: tuple[dict[str, Any], Counts | None] | None = None  # the newest rows, where the last was left out

    @property
    def memory(self) -> dict[str, Any]:
        """How many rows came, and what of those that were left out is still wanted."""
        left = None if self._left is None else _picked(*self._left, slice(-1, None))
        return {"seen": self._seen, "carried": dict(self._carried), "left": left}

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        self._seen, self._carried, self._left = saved["seen"], saved["carried"], saved["left"]

    def extend(self, block: dict[str, Any], counts: Counts | None) -> None:
        """Some more rows, as a recorder takes them."""
        length, first = len(block["t"]), (-1 - self._seen) % self._every
        self._seen += length
        known = [name for name in _TAKEN if name != "seconds" or np.ndim(block[name])]  # fast engines do not measure
        block = block | {name: self._taken(name, block, first) for name in known}
        left = self._seen % self._every != 0
        self._carried = {name: block[name][-1] for name in known if left}
        self._left = (block, counts) if left else None
        if first < length:
            self._recorder.extend(*_picked(block, counts, slice(first, None, self._every)))

    def _taken(self, name: str, block: dict[str, Any], first: int) -> Any:
        """Calls, rejections or seconds; in rows that are written down and in the last, those since the one before."""
        shape = np.shape(block["t"]) if name == "rejected" else (len(block["t"]), np.shape(block["calls"])[-1])
        taken = np.broadcast_to(block[name], shape).cumsum(axis=0) + self._carried.get(name, 0)
        written = taken[first :: self._every]
        if len(written) and self._seen % self._every:
            taken[-1] -= written[-1]
        written[1:] -= written[:-1].copy()
        return taken

    def finish(self) -> None:
        """There are no more rows."""
        if self._left is not None:
            self._recorder.extend(*_picked(*self._left, slice(-1, None)))
            self._left = None


def _picked(block: dict[str, Any], counts: Counts | None, rows: slice) -> tuple[dict[str, Any], Counts | None]:
    """Some rows of a block, and how many norms they have."""
    norms = block["norms"]
    if counts is not None and len(norms):
        ends = np.cumsum(counts)
        norms = np.concatenate([norms[end - count : end] for end, count in zip(ends[rows], counts[rows], strict=True)])
    picked = {n: value[rows] if np.ndim(value) else value for n, value in block.items() if n != "norms"}
    return picked | {"norms": norms}, None if counts is None else counts[rows]
