"""Which quantities of a result are drawn, and how: one panel per port, long vectors and fields as their range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.result import Channel, Result

_MOST_PANELS = 12
_MOST_LINES = 6  # components of a vector drawn one by one; longer ones as lowest, mean and highest


@dataclass(frozen=True)
class Panel:
    """One small plot: labelled lines of one quantity."""

    name: str
    unit: str
    lines: list[tuple[str, Vector]]
    note: str = ""

    def describe(self) -> str:
        """What the plot shows, for those who cannot see it."""
        finite = np.concatenate([values[np.isfinite(values)] for _, values in self.lines])
        if not finite.size:
            return f"{self.name} over time: no finite values"
        ends = ", ".join(f"{values[-1]:.6g}" for _, values in self.lines)
        return f"{self.name} over time: between {finite.min():.4g} and {finite.max():.4g}, at the end {ends}"


def output_panels(result: Result) -> tuple[list[Panel], list[str]]:
    """Panels of outputs, every subsystem in turn, and the names of those left out."""
    by_subsystem: dict[str, list[str]] = {}
    for name, channel in result.channels.items():
        if channel.column == "y":
            by_subsystem.setdefault(name.split(".", 1)[0], []).append(name)
    count = sum(len(names) for names in by_subsystem.values())
    if count <= _MOST_PANELS:
        names = list(chain.from_iterable(by_subsystem.values()))
    else:  # the first output of every subsystem, then the second ...
        turns = zip_longest(*by_subsystem.values())
        names = [name for turn in turns for name in turn if name is not None]
    return _split(result, names)


def coupling_panels(result: Result) -> tuple[list[Panel], list[str]]:
    """Panels of the coupling variables that are not outputs anyway: those of laws and equations."""
    edges = (result.meta.get("graph") or {}).get("edges", [])
    copies = {
        target for edge in edges if edge["kind"] in ("connection", "constant", "driven") for target in edge["targets"]
    }
    names, seen = [], set()
    outputs = {name for name, channel in result.channels.items() if channel.column == "y"}
    candidates = [(n, c) for n, c in result.channels.items() if c.column == "z" and n not in copies | outputs]
    for name, channel in sorted(candidates, key=lambda item: "." in item[0]):  # named variables before inputs
        if channel.part not in seen and not _constant(channel):
            seen.add(channel.part)
            names.append(name)
    return _split(result, names)


def _constant(channel: Channel) -> bool:
    return bool(channel.factor) and not any(channel.factor)


def _split(result: Result, names: Sequence[str]) -> tuple[list[Panel], list[str]]:
    return [_panel(result, name) for name in names[:_MOST_PANELS]], list(names[_MOST_PANELS:])


def _panel(result: Result, name: str) -> Panel:
    channel, values = result.channels[name], result[name]
    if channel.scalar:
        return Panel(name, channel.unit, [("", values)])
    n = values.shape[1]
    if n <= _MOST_LINES:
        return Panel(name, channel.unit, [(f"[{i}]", values[:, i]) for i in range(n)])
    lines = [("highest", values.max(axis=1)), ("mean", values.mean(axis=1)), ("lowest", values.min(axis=1))]
    return Panel(name, channel.unit, lines, f"{n} values: their range and mean")
