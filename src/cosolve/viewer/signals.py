"""What can be drawn of a run: outputs, inputs, coupling variables, what each step took and where the time went.

Every number of a row has one whole number as its address, so that names, which come from files, never have to be
parsed or quoted: element `k` of a quantity is found at the quantity's `id + k`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.errors import SetupError
from cosolve.result.result import Channel

#: The columns about steps, with their names for people.
STEPS = {
    "H": "macro step H",
    "iterations": "corrections",
    "residual": "residual left",
    "error": "error estimate / tolerance",
    "rejected": "rejected attempts",
}

#: The column of what each step had to correct (`times.py`), which is computed from others, and its group.
RESIDUAL = "residuals"


@dataclass(frozen=True)
class Signal:
    """One quantity: where it stands in the recorded columns, and what it is called."""

    id: int
    name: str
    group: str
    column: str
    part: tuple[int, ...]
    scalar: bool = True
    factor: tuple[float, ...] = ()
    offset: tuple[float, ...] = ()
    unit: str = ""


class Signals:
    """All quantities of a run by their addresses.

    >>> signals = Signals({"a.x": Channel("y", (0, 1), False, unit="m")}, ["a"])
    >>> signals.listed()[0]["name"], signals.listed()[0]["size"], signals.find(1)[1]
    ('a.x', 2, 1)
    """

    def __init__(self, channels: Mapping[str, Channel], subsystems: Sequence[str], *, residuals: bool = False) -> None:
        self.all: list[Signal] = []
        self._next = 0
        for name, c in channels.items():
            self._add(name, _group(name, c), c.column, c.part, c.scalar, c.factor, c.offset, c.unit)
        for column, name in STEPS.items():
            self._add(name, "steps", column, (0,))
        for k, name in enumerate(subsystems):
            self._add(name, "seconds", "seconds", (k,), unit="s")
        for k, name in enumerate(subsystems):
            self._add(name, "calls", "calls", (k,))
        if residuals:  # one for each coupling variable, whatever it feeds; its own name is the best one
            coupled = [signal for signal in self.all if signal.column == "z"]
            known: set[tuple[int, ...]] = set()
            for one in sorted(coupled, key=lambda signal: signal.group != "coupling"):
                if one.part not in known:
                    known.add(one.part)
                    self._add(one.name, RESIDUAL, RESIDUAL, one.part, one.scalar)
        self._starts = [signal.id for signal in self.all]
        self.by_name = {signal.name: signal for signal in self.all if signal.group in ("outputs", "coupling", "inputs")}
        self.residuals = {signal.part: signal for signal in self.all if signal.group == RESIDUAL}

    def _add(self, name: str, group: str, column: str, part: tuple[int, ...], *rest: Any, **more: Any) -> None:
        self.all.append(Signal(self._next, name, group, column, part, *rest, **more))
        self._next += max(1, len(part))

    def find(self, address: int) -> tuple[Signal, int]:
        """The quantity and its element at an address."""
        if not 0 <= address < self._next:
            raise SetupError(f"there is no signal {address}; the addresses end at {self._next - 1}")
        signal = self.all[bisect_right(self._starts, address) - 1]
        return signal, address - signal.id

    def place(self, address: int) -> tuple[str, int, float, float]:
        """Column, index in it, factor and offset of one number."""
        signal, k = self.find(address)
        factor = signal.factor[k] if signal.factor else 1.0
        offset = signal.offset[k] if signal.offset else 0.0
        return signal.column, signal.part[k], factor, offset

    def label(self, address: int) -> str:
        """What an address is called."""
        signal, k = self.find(address)
        return signal.name if signal.scalar else f"{signal.name}[{k}]"

    def listed(self) -> list[dict[str, Any]]:
        """As plain data."""
        return [
            {"id": s.id, "name": s.name, "group": s.group, "unit": s.unit, "size": len(s.part), "scalar": s.scalar}
            for s in self.all
        ]


def _group(name: str, channel: Channel) -> str:
    if channel.column == "y":
        return "outputs"
    return "inputs" if channel.factor and "." in name else "coupling"


def factors(places: Sequence[tuple[str, int, float, float]]) -> tuple[Vector, Vector]:
    """The factors and the offsets of some places."""
    return np.array([p[2] for p in places]), np.array([p[3] for p in places])
