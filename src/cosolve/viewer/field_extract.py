"""Fields for a report: as many snapshots of a file as one page can carry, with a coarser mesh where it is fine.

All files of a page share a number of bytes. Each gives its fields one after the other as long as some snapshots of them
fit, and then as many snapshots as fit, spread over the file. What was left out is said in a sentence.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.drawing.wording import number
from cosolve.viewer.viewing import field_view_of

if TYPE_CHECKING:
    from cosolve.fields import FieldSeries
    from cosolve.viewer.field_view import FieldView

_BYTES = 6_000_000  # of numbers, of all files together; as text a third more
_POINTS = 10_000  # of one file
_SNAPSHOTS = 60
_SOME = 8  # snapshots that there shall be of every field


def extract(files: Sequence[FieldSeries | str | Path], most_bytes: int = _BYTES) -> tuple[dict[str, Any], list[str]]:
    """What a page needs to show the fields by itself, and a sentence about each file.

    >>> import tempfile
    >>> import cosolve as cs
    >>> plate = cs.fields.FieldSnapshot(np.eye(3)[:, :2], {"triangle": np.array([[0, 1, 2]])}, {"v": np.ones((3, 2))})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     held, said = extract([cs.fields.FieldSeries.write(folder + "/plate.vtkhdf", np.arange(99.0), [plate] * 99)])
    >>> said
    ['plate.vtkhdf: 60 of 99 snapshots; cosolve view plate.vtkhdf shows all of it.']
    >>> len(held["fields"][0]["values"]), len(held["fields"][0]["points"])       # nothing moves
    (60, 1)
    """
    result_views = [field_view_of(one, _POINTS) for one in files]
    about = {"title": "fields", "problem": "", "live": False, "results": [], "system": None, "sweep": None}
    kept = [_kept(one, most_bytes // len(result_views)) for one in result_views]
    held = {"about": about | {"fields": [one for one, _, _ in kept]}, "frames": [], "fields": [d for _, d, _ in kept]}
    return held, [sentence for _, _, sentence in kept]


def _kept(result_view: FieldView, most_bytes: int) -> tuple[dict[str, Any], dict[str, Any], str]:
    """About one file, its numbers, and what was left out of them."""
    places = result_view.places()
    per_step = 12 * result_view.points if len(np.unique(places)) > 1 else 0
    least = min(_SOME, len(result_view))
    fields: list[int] = []
    for field in range(len(result_view.fields)):
        size = 4 * result_view.numbers(field)
        if not fields or least * (per_step + size) <= most_bytes:
            fields.append(field)
            per_step += size
    count = min(len(result_view), _SNAPSHOTS, max(2, most_bytes // max(per_step, 1)))
    steps = np.unique(np.linspace(0, len(result_view) - 1, count).astype(np.int64))
    about = result_view.about()
    about["fields"] = [about["fields"][field] for field in fields]
    data = {
        "mesh": _text(result_view.mesh(steps)),
        "at": [int(places[step]) for step in steps],
        "points": {str(places[step]): _text(result_view.frame(int(step), -1)) for step in steps},
        "values": [[_text(result_view.frame(int(k), field, int(places[k]))) for field in fields] for k in steps],
        "limits": [result_view.limits(field) for field in fields],
    }
    return about, data, _sentence(result_view, len(steps), len(fields))


def _sentence(result_view: FieldView, steps: int, fields: int) -> str:
    shown = [
        (steps, len(result_view), "snapshots"),
        (fields, len(result_view.fields), "fields"),
        (result_view.points, result_view.all_points, "points"),
    ]
    parts = [f"{number(some)} of {number(all_of)} {what}" for some, all_of, what in shown if some < all_of]
    if not parts:
        return f"{result_view.label}: everything that is drawn of the file."
    return f"{result_view.label}: {', '.join(parts)}; cosolve view {result_view.label} shows all of it."


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")
