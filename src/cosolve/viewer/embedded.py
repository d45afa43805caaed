"""The viewer inside a report: its script and style, and what it shows, in one HTML file.

`signals` holds some thousand points of every signal of a run and what moves, `fields` snapshots of fields. Each becomes
an `element` where it shall be seen; the `program` comes once, for all of them. Reports find this module by its entry
point, `cosolve.screens`.

Of fields it holds as many snapshots of a file as one page can carry, with a coarser mesh where it is fine.

All files of a page share a number of bytes. Each gives its fields one after the other as long as some snapshots of them
fit, and then as many snapshots as fit, spread over the file. What was left out is said in a sentence.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.drawing.wording import number
from cosolve.result import Result
from cosolve.viewer.result_view import ResultView
from cosolve.viewer.signals import RESIDUAL
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


_SLOTS = 1200
_MOMENTS, _MOST_IN_MOTION = 300, 60_000  # of what moves: moments, and numbers in all
_NOTHING_ELSE: dict[str, Any] = {"fields": [], "system": None, "sweep": None}
_MOST_NUMBERS = 40  # signals, elements of vectors included: what a report of one file can carry


def signals(result: Result, label: str) -> dict[str, Any]:
    """The signals, steps and couplings of a run, and what moves, as the script in the page reads them.

    >>> import cosolve as cs
    >>> clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    >>> held = signals(cs.simulate(clock, t_end=1.0, method=cs.Jacobi(), step=0.1), "</script><b>")
    >>> text = element(held) + program([held])
    >>> text.count("<script"), "</script><b>" in text
    (2, False)
    """
    result_view = ResultView(result, label)
    about = result_view.about()
    held: list[int] = []
    listed = []
    order = sorted(
        about["signals"], key=lambda s: (s["group"] not in ("steps", "outputs", "coupling"), not s["scalar"])
    )
    for signal in order:
        size = min(signal["size"], _MOST_NUMBERS - len(held))
        if size > 0 and signal["group"] not in ("calls", RESIDUAL):
            held += range(signal["id"], signal["id"] + size)
            listed.append({**signal, "size": size})
    window = result_view.window(held, -1e300, 1e300, _SLOTS)
    about |= {"signals": sorted(listed, key=lambda s: s["id"]), "system": "", "meta": {}}
    data = {
        "about": {"title": label, "problem": "", "live": False, "results": [about]} | _NOTHING_ELSE,
        "frames": [{"ids": held, "data": b64encode(window.frame()).decode("ascii")}],
    }
    return data | _motion(result_view, about["scene"])


def fields(files: Sequence[Any]) -> tuple[dict[str, Any], list[str]]:
    """Snapshots of fields, and a sentence about each file, see `extract`."""
    return extract(files)


def element(held: dict[str, Any]) -> str:
    """HTML of what is shown; it needs the `program` somewhere in the same page."""
    return f'<script type="application/json" class="cosolve-data">{as_script(held)}</script>'


def program(all_held: Sequence[dict[str, Any]]) -> str:
    """HTML of style and script, with those for things in space where any of what is shown needs them."""
    space = any("motion" in held or "fields" in held for held in all_held)
    text = as_script(bundle("scene.js")) if space else ""
    return (
        f"<style>{bundle('viewer.css')}</style>\n"
        + (f'<script type="application/json" class="cosolve-scene">{text}</script>\n' if space else "")
        + f'<script type="module">{bundle("viewer.js")}</script>'
    )


def _motion(result_view: ResultView, scene: dict[str, Any] | None) -> dict[str, Any]:
    """Positions of what moves at some hundred moments; nothing where nothing moves."""
    if not scene:
        return {}
    parts = [(one["position"], 3) for one in scene["frames"]]
    parts += [(one["orientation"], 4) for one in scene["frames"] if one["orientation"] is not None]
    parts += [(one["id"], one["size"]) for one in scene["fields"]]
    ids = [first + k for first, count in parts for k in range(count)]
    sample = result_view.sample(ids, min(_MOMENTS, max(16, _MOST_IN_MOTION // len(ids))))
    return {"motion": {"ids": ids, "data": b64encode(sample.frame()).decode("ascii")}}


def as_script(data: Any) -> str:
    """JSON inside HTML: no text in it can end the element."""
    return json.dumps(data).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def bundle(name: str) -> str:
    """A file of the bundle, as text."""
    return resources.files("cosolve.viewer").joinpath("bundle", name).read_text(encoding="utf-8")
