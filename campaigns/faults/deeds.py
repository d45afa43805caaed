"""The bad things that a function of a user can do: what it returns instead of the right value, or what it raises.

A `Deed` stands in front of a good function and acts from its call number `at` on, or at that call only.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import cosolve as cs


class Unprintable(Exception):
    """An exception that cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def _raiser(make: Callable[[], BaseException]) -> Callable[[Any], Any]:
    def deed(value: Any) -> Any:
        raise make()

    return deed


def _endless(value: Any) -> Any:
    time.sleep(1e4)


def _deep(value: Any) -> Any:
    return _deep(value)


def _part(value: Any, at: int, new: float) -> Any:
    changed = np.array(value, dtype=np.float64).reshape(-1)
    if changed.size:
        changed[at] = new
    return changed


#: name -> what becomes of the good value
RAISED: dict[str, Callable[[Any], Any]] = {
    "raises": _raiser(lambda: ZeroDivisionError("no flow left")),
    "raises nothing to say": _raiser(ValueError),
    "raises two lines": _raiser(lambda: RuntimeError("first line\nsecond line")),
    "raises unprintable": _raiser(Unprintable),
    "raises StopIteration": _raiser(StopIteration),
    "raises MemoryError": _raiser(MemoryError),
    "raises SystemExit": _raiser(lambda: SystemExit(3)),
    "raises KeyboardInterrupt": _raiser(KeyboardInterrupt),
    "raises a cosolve error": _raiser(lambda: cs.errors.SubsystemError("the tank is empty")),
    "raises a warning": _raiser(lambda: UserWarning("as filters do")),
    "recurses": _deep,
    "asks for the end": _raiser(lambda: cs.errors.EndOfSimulation("enough")),
}
RETURNED: dict[str, Callable[[Any], Any]] = {
    "nan": lambda y: np.full(np.size(y), np.nan),
    "one nan": lambda y: _part(y, -1, np.nan),
    "inf": lambda y: _part(y, 0, np.inf),
    "-inf": lambda y: _part(y, -1, -np.inf),
    "huge": lambda y: _part(y, 0, 1e300),
    "too short": lambda y: np.asarray(y, dtype=np.float64).reshape(-1)[:-1],
    "too long": lambda y: np.append(y, 0.0),
    "empty": lambda y: np.zeros(0),
    "one number": lambda y: 1.5,
    "a column": lambda y: np.asarray(y, dtype=np.float64).reshape(-1, 1),
    "two rows": lambda y: np.vstack([y, y]),
    "None": lambda y: None,
    "None inside": lambda y: [None] * np.size(y),
    "text": lambda y: "1.0",
    "texts": lambda y: ["1.0"] * np.size(y),
    "complex": lambda y: np.asarray(y) * (1 + 1j),
    "masked": lambda y: np.ma.masked_array(np.asarray(y, dtype=np.float64).reshape(-1) + 1.0, mask=True),
    "objects": lambda y: np.array([object()] * np.size(y)),
    "ragged": lambda y: [[1.0], [1.0, 2.0]],
    "a dict of others": lambda y: {"other": 1.0},
    "a set": lambda y: {1.0, 2.0},
    "a function": lambda y: _part,
    "dates": lambda y: np.array(["2020-01-01"] * np.size(y), dtype="datetime64[s]"),
    "a generator": lambda y: (value for value in np.asarray(y).reshape(-1)),
}
#: finite numbers of the right shape that are wrong: for Jacobians and saved states, which a run can check
WRONG: dict[str, Callable[[Any], Any]] = {
    "the negative": lambda y: -np.asarray(y),
    "zero": lambda y: np.zeros_like(y),
    "ten times": lambda y: 10.0 * np.asarray(y),
}
#: where a subsystem that takes its own steps says it arrived
TIMES: dict[str, Callable[[Any], Any]] = {
    "stands still": lambda t: 0.0,
    "goes back": lambda t: -1.0,
    "arrives at nan": lambda t: np.nan,
    "arrives at inf": lambda t: np.inf,
    "arrives at None": lambda t: None,
    "arrives at text": lambda t: "1.0",
    "arrives at complex": lambda t: t + 1j,
    "arrives at a list": lambda t: [t],
}
#: still right: another type of number, or a list
HARMLESS: dict[str, Callable[[Any], Any]] = {
    "a list": lambda y: np.asarray(y, dtype=np.float64).reshape(-1).tolist(),
    "long doubles": lambda y: np.asarray(y, dtype=np.longdouble),
    "read-only": lambda y: _frozen(y),
    "objects of numbers": lambda y: np.array([float(v) for v in np.asarray(y).reshape(-1)], dtype=object),
    "backwards": lambda y: np.asarray(y, dtype=np.float64).reshape(-1)[::-1].copy()[::-1],
}
#: ends or blocks the process that it happens in, so only where that is another one
FATAL: dict[str, Callable[[Any], Any]] = {
    "never returns": _endless,
    "exits": lambda y: os._exit(3),
    "sys.exit": lambda y: sys.exit(4),
    "is killed": lambda y: os.kill(os.getpid(), 9),
    "aborts": lambda y: os.abort(),
    "closes its pipes": lambda y: os.closerange(3, 64),
}
DEEDS = {"nothing": lambda y: y, **RAISED, **RETURNED, **WRONG, **TIMES, **HARMLESS, **FATAL}


def _frozen(y: Any) -> Any:
    y = np.array(y, dtype=np.float64)
    y.setflags(write=False)
    return y


@dataclass
class Deed:
    """What happens at (or, unless `once`, from) call number `at` of a function."""

    name: str = "nothing"
    at: int = 1
    once: bool = False
    calls: int = 0

    def __call__(self, value: Any) -> Any:
        """The value, or what this deed makes of it."""
        self.calls += 1
        due = self.calls == self.at if self.once else self.calls >= self.at
        return DEEDS[self.name](value) if due else value
