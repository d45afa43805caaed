"""How a system shows itself: tables in a terminal that rich writes on, a picture of the coupling in a notebook.

Also the coupling graph of a system as plain data, so that a result file can still say and draw what was coupled.
"""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING, Any

from cosolve.drawing import notebook
from cosolve.drawing.diagram import diagram, edge_text
from cosolve.drawing.wording import count
from cosolve.interface.system import System

if TYPE_CHECKING:
    pass


#: how the ways of joining are called in the graph
_KINDS = {"connect": "connection", "law": "law", "equations": "equations", "constraint": "constraint"}


def graph(system: System) -> dict[str, Any]:
    """Subsystems and edges, made of strings, numbers, lists and dicts only (so it can be written as JSON).

    A subsystem has `name`, `kind`, `inputs` and `outputs`; an edge has `kind` ("connection", "law", "equations",
    "constraint", "constant" or "driven"), a `label` (the coupling variables it carries, or the constant), its `sources`
    (outputs), its `targets` (inputs) and one of the `factors` per target (and of the `offsets`, where units have
    different zeros).

    >>> import cosolve as cs
    >>> from cosolve.interface.representation import graph
    >>> mass = lambda: cs.Linear([[0, 1], [-1, 0]], [[0], [1]], [[1, 0]], x0=[1, 0], inputs=["f"], outputs=["x"])
    >>> system = cs.System({"one": mass(), "two": mass()})
    >>> system.law({"one.f": 1, "two.f": -1}, lambda x1, x2: x2 - x1, of=["one.x", "two.x"], name="spring")
    >>> graph(system)["edges"][0]["label"], graph(system)["edges"][0]["targets"]
    ('spring', ['one.f', 'two.f'])
    """
    subsystems = [
        {
            "name": name,
            "kind": type(subsystem).__name__,
            "inputs": system.inputs[name].names,
            "outputs": system.outputs[name].names,
        }
        for name, subsystem in system.subsystems.items()
    ]
    edges: list[dict[str, Any]] = []
    for join in system._joins:
        drives = [drive for _, _, inputs in join.variables for drive in inputs.items()]
        edges.append(
            {
                "kind": _KINDS[join.kind],
                "label": ", ".join(name for name, _, _ in join.variables),
                "sources": list(join.of),
                "targets": [target for target, _ in drives],
                "factors": [float(factor) for _, factor in drives],
                **({"offsets": [join.offsets.get(target, 0.0) for target, _ in drives]} if join.offsets else {}),
            }
        )
    for target, value in system._constants.items():
        label = f"{value[0]:g}" if (value == value[0]).all() else f"{value.size} numbers"
        edges.append({"kind": "constant", "label": label, "sources": [], "targets": [target], "factors": [1.0]})
    for target, drive in system._drives_of.items():
        edges.append({"kind": "driven", "label": drive.label, "sources": [], "targets": [target], "factors": [1.0]})
    return {"subsystems": subsystems, "edges": edges}


_MOST_NAMES = 6  # in the headline
_PLURALS = {"equations": "sets of equations", "driven": "driven inputs"}


def headline(system: System) -> str:
    """What it is in a line.

    >>> import cosolve as cs
    >>> tank = lambda: cs.Linear([[-1]], [[1]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(), "two": tank()})
    >>> system.connect("one.h", "two.q")
    >>> headline(system)
    'System of 2 subsystems (one, two), 1 connection'
    """
    names = list(system.subsystems)
    shown = ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")
    kinds = Counter(edge["kind"] for edge in graph(system)["edges"])
    joined = [f"{n} {_PLURALS.get(kind, kind + 's')}" if n > 1 else _single(kind) for kind, n in kinds.items()]
    listed = f" ({shown})" if names else ""
    return ", ".join([f"System of {count(len(names), 'subsystem')}{listed}", *joined])


def _single(kind: str) -> str:
    return {"equations": "1 set of equations", "driven": "1 driven input"}.get(kind, f"1 {kind}")


def as_rich(system: System) -> Any:
    """Subsystems with their ports, then what joins them, for rich."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table("subsystem", "kind", "inputs", "outputs", box=None, header_style="bold", pad_edge=False)
    for row in _subsystems(system):
        table.add_row(*(Text(cell) for cell in row))
    edges = [Text(f"  {edge_text(edge)}") for edge in graph(system)["edges"]]
    return Group(Text(headline(system), style="bold"), table, *edges)


def as_html(system: System) -> str:
    """The coupling diagram, and the same as a list to unfold, for notebooks."""
    data = graph(system)
    drawing, caption = diagram(data) if data["subsystems"] else ("", "")
    couplings = "".join(f"<li>{escape(edge_text(edge))}</li>" for edge in data["edges"])
    return notebook.page(
        notebook.paragraph(headline(system)),
        drawing,
        notebook.paragraph(caption, "muted"),
        notebook.details(
            "subsystems and couplings as a list",
            notebook.table(("subsystem", "kind", "inputs", "outputs"), _subsystems(system)),
            f"<ul>{couplings}</ul>",
        ),
    )


def _subsystems(system: System) -> list[tuple[str, str, str, str]]:
    """Name, kind, inputs and outputs of each, with sizes and units."""
    return [
        (name, type(subsystem).__name__, _ports(system.inputs[name]), _ports(system.outputs[name]))
        for name, subsystem in system.subsystems.items()
    ]


def _ports(ports: Any) -> str:
    shown = []
    for port in ports:
        size = "" if port.size is None else f"[{port.size}]"
        shown.append(f"{port.name}{size}" + (f" ({port.unit})" if port.unit else ""))
    return ", ".join(shown) or "–"
