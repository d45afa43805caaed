"""The coupling graph of a system as plain data, so that a result file can still say and draw what was coupled."""

from __future__ import annotations

from typing import Any

from cosolve.interface.system import System

#: how the ways of joining are called in the graph
_KINDS = {"connect": "connection", "law": "law", "equations": "equations", "constraint": "constraint"}


def graph(system: System) -> dict[str, Any]:
    """Subsystems and edges, made of strings, numbers, lists and dicts only (so it can be written as JSON).

    A subsystem has `name`, `kind`, `inputs` and `outputs`; an edge has `kind` ("connection", "law", "equations",
    "constraint", "constant" or "driven"), a `label` (the coupling variables it carries, or the constant), its `sources`
    (outputs), its `targets` (inputs) and one of the `factors` per target (and of the `offsets`, where units have
    different zeros).

    >>> import cosolve as cs
    >>> from cosolve.interface.graph import graph
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
