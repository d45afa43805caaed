"""Pictures' numbers on their way to the browser: a short JSON head, then plain numbers, little end first."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.viewer.levels import Slots


@dataclass(frozen=True)
class Window:
    """Signals over a stretch of time: the time at which every slot begins, then lowest and highest values."""

    t: Vector
    slots: Slots
    rows: int  # that the whole run has

    def frame(self) -> bytes:
        """Head and numbers: `t`, then for each signal its values, or its lowest and its highest ones.

        >>> slots = Slots(np.arange(2), *(2 * [np.array([[1.0], [2.0]])]))
        >>> frame = Window(np.array([0.0, 0.5]), slots, 2).frame()
        >>> len(frame) % 8, np.frombuffer(frame[-32:], "<f8").tolist()
        (0, [0.0, 0.5, 1.0, 2.0])
        """
        low, high = self.slots.low, self.slots.high
        head = {"count": len(self.t), "signals": low.shape[1], "raw": self.slots.raw, "rows": self.rows}
        parts = [_head(head), self.t.astype("<f8").tobytes()]
        for k in range(low.shape[1]):
            parts.append(np.ascontiguousarray(low[:, k], "<f8").tobytes())
            if not self.slots.raw:
                parts.append(np.ascontiguousarray(high[:, k], "<f8").tobytes())
        return b"".join(parts)


def packed(head: dict[str, Any], **arrays: npt.NDArray[Any]) -> bytes:
    """A head and named arrays behind it, each of which begins at a multiple of 8 bytes.

    >>> frame = packed({"at": 3}, values=np.array([1.0, 2.0, 3.0], "<f4"))
    >>> frame[4:-16].decode().strip(), np.frombuffer(frame[-16:-4], "<f4").tolist()
    ('{"at": 3, "parts": [["values", "f4", 3]]}', [1.0, 2.0, 3.0])
    """
    told = [[name, values.dtype.str[1:], values.size] for name, values in arrays.items()]
    parts = [values.tobytes() for values in arrays.values()]
    return _head(head | {"parts": told}) + b"".join(part + b"\0" * (-len(part) % 8) for part in parts)


def _head(head: dict[str, Any]) -> bytes:
    text = json.dumps(head).encode()
    text += b" " * (-(len(text) + 4) % 8)  # numbers begin at multiples of 8 bytes
    return len(text).to_bytes(4, "little") + text


def plain_dict(value: dict[str, Any]) -> dict[str, Any]:
    """A dictionary as JSON takes it."""
    return {key: plain(entry) for key, entry in value.items()}


def plain(value: Any) -> Any:
    """As JSON takes it: numbers that are not finite become null, arrays lists, anything else text.

    >>> plain({"a": float("nan"), 1: np.arange(2), "b": (1.5, "x")})
    {'a': None, '1': [0, 1], 'b': [1.5, 'x']}
    """
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
