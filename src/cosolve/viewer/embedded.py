"""The viewer inside a report: its script and style, and some thousand points of every signal, in one HTML file."""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from importlib import resources
from typing import Any

from cosolve.result import Result
from cosolve.viewer.exhibit import Exhibit
from cosolve.viewer.signals import RESIDUAL

_SLOTS = 1200
_MOMENTS, _MOST_IN_MOTION = 300, 60_000  # of what moves: moments, and numbers in all
_NOTHING_ELSE: dict[str, Any] = {"fields": [], "system": None, "sweep": None}
_MOST_NUMBERS = 40  # signals, elements of vectors included: what a report of one file can carry


def embedded(result: Result, label: str) -> str:
    """HTML that shows the signals, steps and couplings of a run to whoever opens the file; nothing is loaded.

    >>> import cosolve as cs
    >>> clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    >>> text = embedded(cs.simulate(clock, t_end=1.0, method=cs.Jacobi(), step=0.1), "</script><b>")
    >>> text.count("<script"), "</script><b>" in text
    (2, False)
    """
    exhibit = Exhibit(result, label)
    about = exhibit.about()
    held: list[int] = []
    signals = []
    order = sorted(
        about["signals"], key=lambda s: (s["group"] not in ("steps", "outputs", "coupling"), not s["scalar"])
    )
    for signal in order:
        size = min(signal["size"], _MOST_NUMBERS - len(held))
        if size > 0 and signal["group"] not in ("calls", RESIDUAL):
            held += range(signal["id"], signal["id"] + size)
            signals.append({**signal, "size": size})
    window = exhibit.window(held, -1e300, 1e300, _SLOTS)
    about |= {"signals": sorted(signals, key=lambda s: s["id"]), "system": "", "meta": {}}
    data = {
        "about": {"title": label, "problem": "", "live": False, "results": [about]} | _NOTHING_ELSE,
        "frames": [{"ids": held, "data": b64encode(window.frame()).decode("ascii")}],
    }
    data |= _motion(exhibit, about["scene"])
    return (
        f"<style>{bundle('viewer.css')}</style>\n"
        f'<script type="application/json" class="cosolve-data">{as_script(data)}</script>\n'
        f'<script type="module">{bundle("viewer.js")}</script>'
    )


def _motion(exhibit: Exhibit, scene: dict[str, Any] | None) -> dict[str, Any]:
    """Positions of what moves at some hundred moments, and the script that draws them; nothing where nothing moves."""
    if not scene:
        return {}
    parts = [(one["position"], 3) for one in scene["frames"]]
    parts += [(one["orientation"], 4) for one in scene["frames"] if one["orientation"] is not None]
    parts += [(one["id"], one["size"]) for one in scene["fields"]]
    ids = [first + k for first, count in parts for k in range(count)]
    sample = exhibit.sample(ids, min(_MOMENTS, max(16, _MOST_IN_MOTION // len(ids))))
    return {
        "motion": {"ids": ids, "data": b64encode(sample.frame()).decode("ascii")},
        "scene": bundle("scene.js"),
    }


def as_script(data: Any) -> str:
    """JSON inside HTML: no text in it can end the element."""
    return json.dumps(data).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def bundle(name: str) -> str:
    """A file of the bundle, as text."""
    return resources.files("cosolve.viewer").joinpath("bundle", name).read_text(encoding="utf-8")
