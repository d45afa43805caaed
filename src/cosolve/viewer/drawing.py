"""The coupling of a run as the page draws it: boxes, wires, and which signals belong to each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cosolve.drawing.diagram import edge_text, geometry
from cosolve.viewer.signals import Signals


def coupling(graph: Mapping[str, Any] | None, signals: Signals | None) -> dict[str, Any] | None:
    """Where boxes and wires stand, and for each edge its text and its signals; None without a graph."""
    if not graph or not graph.get("subsystems"):
        return None
    edges = [
        {
            "text": edge_text(edge),
            "kind": edge["kind"],
            "sources": edge["sources"],
            "targets": edge["targets"],
            "signals": [] if signals is None else _signals_of(edge, signals),
        }
        for edge in graph["edges"]
    ]
    boxes = [
        {"name": s["name"], "kind": s["kind"], "inputs": s["inputs"], "outputs": s["outputs"]}
        for s in graph["subsystems"]
    ]
    return {"subsystems": boxes, "edges": edges, "drawing": geometry(graph)}


def _signals_of(edge: Mapping[str, Any], signals: Signals) -> list[int]:
    """The addresses of what an edge carries: its coupling variables, or else what it reads and drives."""
    carried = [name.strip() for name in str(edge["label"]).split(",")]
    names = [*carried, *edge["sources"], *edge["targets"]]
    found = [signals.by_name[name].id for name in dict.fromkeys(names) if name in signals.by_name]
    return found[:12]
