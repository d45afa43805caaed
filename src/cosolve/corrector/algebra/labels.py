"""Which rows belong to one coupling variable: the entries of a field, recognised by their labels."""

from __future__ import annotations

from collections.abc import Sequence


def variables_of(labels: Sequence[str]) -> list[str]:
    """The variable of every row: `field[0]`, `field[1]`, ... in a row are one, whatever else has brackets is its own.

    Scalars of FMUs may have brackets in their names (`e[1]` and `e[2]` may be a force and a temperature), but those
    of Modelica count from 1 and stand for themselves.

    >>> variables_of(["a.x", "a.u[0]", "a.u[1]", "c.e[1]", "c.e[2]"])
    ['a.x', 'a.u', 'a.u', 'c.e[1]', 'c.e[2]']
    """
    names: list[str] = []
    field, count = "", 0
    for label in labels:
        base = label.rpartition("[")[0] if label.endswith("]") else ""
        if base and label == f"{base}[0]":
            field, count = base, 0
        if field and label == f"{field}[{count}]":
            names.append(field)
            count += 1
        else:
            names.append(label)
            field = ""
    return names
