"""The viewer inside a report: its script and style, and what it shows, in one HTML file.

`signals` holds some thousand points of every signal of a run and what moves, `fields` snapshots of fields. Each becomes
an `element` where it shall be seen; the `program` comes once, for all of them. Reports find this module by its entry
point, `cosolve.screens`.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from cosolve.result import Result
from cosolve.viewer.result_view import ResultView
from cosolve.viewer.signals import RESIDUAL

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
    """Snapshots of fields, and a sentence about each file, see `field_extract.extract`."""
    from cosolve.viewer.field_extract import extract

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
