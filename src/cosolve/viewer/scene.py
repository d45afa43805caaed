"""What of a result moves in space: frames with position and orientation, and fields, found by their shapes and names.

Multibody subsystems give out positions and Euler parameters of markers (`tip_position`, `tip_orientation`) and of the
bodies at joint ends (`end_r`, `end_q`). The shapes of such bodies are in the result, too, where a subsystem has told
them (`body_shapes`). Long vectors are fields: what they look like over their places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cosolve.viewer.signals import Signals

_PAIRS = (("_position", "_orientation"), ("_r", "_q"))
_FIELD = 8  # numbers in a vector from which on it is drawn as a field
_MOST_FRAMES, _MOST_FIELDS, _MOST_NUMBERS = 60, 6, 500


def scene(signals: Signals, shapes: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """Frames and fields by their addresses; None where nothing moves. `shapes` are those of bodies.

    >>> from cosolve.result import Channel
    >>> channels = {"a.tip_position": Channel("y", (0, 1, 2), False), "a.x": Channel("y", (3,), True)}
    >>> scene(Signals(channels, ["a"]))
    {'frames': [{'name': 'a.tip', 'owner': 'a', 'position': 0, 'orientation': None, 'shape': None}], 'fields': []}
    """
    known_shapes = shapes if isinstance(shapes, Mapping) else {}
    frames, fields = [], []
    for signal in signals.all:
        if signal.group != "outputs" or signal.scalar:
            continue
        for place, turn in _PAIRS:
            if len(signal.part) == 3 and signal.name.endswith(place):
                stem = signal.name.removesuffix(place)
                turned = signals.by_name.get(stem + turn)
                known = turned is not None and len(turned.part) == 4
                if place == "_r" and not known:
                    continue
                frames.append(
                    {
                        "name": stem,
                        "owner": stem.partition(".")[0],
                        "position": signal.id,
                        "orientation": turned.id if turned is not None and known else None,
                        "shape": _shape(known_shapes.get(stem)),
                    }
                )
        if _FIELD <= len(signal.part) <= _MOST_NUMBERS:
            fields.append({"name": signal.name, "id": signal.id, "size": len(signal.part), "unit": signal.unit})
    if not frames and not fields:
        return None
    return {"frames": frames[:_MOST_FRAMES], "fields": fields[:_MOST_FIELDS]}


def _shape(told: Any) -> dict[str, Any] | None:
    """The shape of a body as a file tells it; None where that makes no sense."""
    try:
        body, centre = str(told["body"]), np.asarray(told["centre"], np.float64).reshape(3)
        points = np.asarray(told["points"], np.float64).reshape(-1, 3)
    except (TypeError, KeyError, ValueError):
        return None
    return {"body": body, "centre": np.nan_to_num(centre).tolist(), "points": np.nan_to_num(points).tolist()}
