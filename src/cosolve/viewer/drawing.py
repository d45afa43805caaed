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
            "residuals": [] if signals is None else _residuals_of(edge, signals),
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


def _residuals_of(edge: Mapping[str, Any], signals: Signals) -> list[dict[str, int]]:
    """Of an edge's coupling variables: the addresses of their values and of what each step had to correct in them."""
    if edge["kind"] in ("constant", "driven"):
        return []
    carried = [name.strip() for name in str(edge["label"]).split(",")]
    found = {}
    for name in [*carried, *edge["targets"]]:
        one = signals.by_name.get(name)
        if one is not None and one.column == "z" and one.part in signals.residuals:
            residual = signals.residuals[one.part]
            found[residual.id] = {"value": one.id, "residual": residual.id, "size": len(one.part)}
    return list(found.values())[:12]
