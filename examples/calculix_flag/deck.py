"""The elastic flag of Turek and Hron as an input deck of CalculiX: nodes, elements, sets, one step.

The flag is clamped to the cylinder of radius 5 cm around (0.2, 0.2) m and ends at x = 0.6 m. Plane strain, elements of
eight nodes, large displacements; with Lagrangian strains, CalculiX's `*ELASTIC` is the material of St. Venant and
Kirchhoff that the benchmark asks for.
"""

from __future__ import annotations

from math import sqrt
from pathlib import Path

WET = "WET"  # the node set on the surface, from the clamp along the lower side around the tip
TIP = (0.6, 0.2)


def write_deck(
    path: Path,
    *,
    mu: float = 0.5e6,
    nu: float = 0.4,
    density: float = 1000.0,
    gravity: float = 0.0,
    step: float | None = None,
    along: int = 35,
    across: int = 2,
) -> Path:
    """Write the deck: static without `step`, else dynamic with increments of that length."""
    label: dict[tuple[int, int], int] = {}
    nodes, elements = [], []
    for i in range(2 * along + 1):
        for j in range(2 * across + 1):
            if i % 2 and j % 2:
                continue  # no node in the middle of an element
            y = 0.19 + 0.02 * j / (2 * across)
            clamp = 0.2 + sqrt(0.05**2 - (y - 0.2) ** 2)
            label[i, j] = len(nodes) + 1
            nodes.append(f"{label[i, j]}, {clamp + (0.6 - clamp) * i / (2 * along):.12f}, {y:.12f}, 0.")
    around = ((0, 0), (2, 0), (2, 2), (0, 2), (1, 0), (2, 1), (1, 2), (0, 1))
    for i in range(0, 2 * along, 2):
        for j in range(0, 2 * across, 2):
            corners = ", ".join(str(label[i + a, j + b]) for a, b in around)
            elements.append(f"{len(elements) + 1}, {corners}")
    clamped = [label[0, j] for j in range(2 * across + 1)]
    wet = [label[i, 0] for i in range(2 * along)] + [label[2 * along, j] for j in range(2 * across)]
    wet += [label[i, 2 * across] for i in range(2 * along, -1, -1)]
    weight = ["*DLOAD" + (", AMPLITUDE=AT_ONCE" if step else ""), f"FLAG, GRAV, {gravity}, 0., -1., 0."]
    lines = [
        "*NODE", *nodes,
        "*ELEMENT, TYPE=CPE8, ELSET=FLAG", *elements,
        "*NSET, NSET=CLAMP", *(f"{n}," for n in clamped),
        f"*NSET, NSET={WET}", *(f"{n}," for n in wet),
        "*MATERIAL, NAME=RUBBER", "*ELASTIC", f"{2 * mu * (1 + nu)}, {nu}", "*DENSITY", f"{density}",
        "*SOLID SECTION, ELSET=FLAG, MATERIAL=RUBBER", "1.",
        "*BOUNDARY", "CLAMP, 1, 2",
        "*AMPLITUDE, NAME=AT_ONCE", "0., 1., 1., 1.",
        "*STEP, NLGEOM, INC=10000", *(("*DYNAMIC, DIRECT", f"{step}, 1.") if step else ("*STATIC", "0.1, 1.")),
        *(weight if gravity else ()),
        "*END STEP", "",
    ]  # fmt: skip
    path.write_text("\n".join(lines))
    return path
