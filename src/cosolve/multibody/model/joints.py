"""The table of joints: what each kind consists of, inside a model and between subsystems (Lu (2015), 2.2.2, 3.2.2).

Every joint is a list of basic parts between the axes of two markers; the
joint axis is their z axis. Markers with the same axes satisfy every kind; a perpendicular part also admits the opposite
direction, and the initial position decides between the two. A new kind is one line in `KINDS`.

| kind | made of | free |
|---|---|---|
| spherical, atpoint | atpoint | 3 rotations |
| revolute | atpoint, z of the first perpendicular to x and y of the second | rotation about z |
| universal | atpoint, x of the first perpendicular to y of the second | 2 rotations |
| cylindrical | 2 inplane (x, y of the second), z perpendicular to x and y | rotation about and shift along z |
| translational | 2 inplane (x, y), 3 perpendicular | shift along z |
| planar | inplane (z), z perpendicular to x and y | 2 shifts, rotation about z |
| inline | 2 inplane (x, y) | shift along z, 3 rotations |
| orientation | 3 perpendicular | 3 shifts |
| fixed | atpoint, 3 perpendicular | nothing |
| inplane | inplane (z) | 2 shifts, 3 rotations |
| perpendicular | x of the first perpendicular to y of the second | 3 shifts, 2 rotations |
"""

from __future__ import annotations

from typing import NamedTuple

from cosolve.multibody.model.arrays import PERPENDICULAR, PLANE, POINT

#: Axes of a marker.
X, Y, Z = 0, 1, 2


class Basic(NamedTuple):
    """A basic part: its kind, the axis of the first marker (perpendicular) and of the second (all but atpoint).

    `pair`: users may choose both axes, each by itself (`axis`, `second_axis` of a joint between subsystems).
    """

    kind: int
    first: int = X
    second: int = X
    pair: bool = False


_AT = (Basic(POINT),)
_LINE = (Basic(PLANE, second=X), Basic(PLANE, second=Y))
_PLANE = (Basic(PLANE, second=Z),)
_ALONG = (Basic(PERPENDICULAR, Z, X), Basic(PERPENDICULAR, Z, Y))
_SAME = (*_ALONG, Basic(PERPENDICULAR, X, Y))
_PAIR = (Basic(PERPENDICULAR, X, Y, pair=True),)

#: Kind -> its basic parts.
KINDS: dict[str, tuple[Basic, ...]] = {
    "spherical": _AT,
    "revolute": _AT + _ALONG,
    "universal": _AT + _PAIR,
    "cylindrical": _LINE + _ALONG,
    "translational": _LINE + _SAME,
    "planar": _PLANE + _ALONG,
    "inline": _LINE,
    "orientation": _SAME,
    "fixed": _AT + _SAME,
    "inplane": _PLANE,
    "perpendicular": _PAIR,
    "atpoint": _AT,
}

#: Kinds for joints between subsystems only: basic parts by themselves.
_BETWEEN = ("inplane", "perpendicular", "atpoint")


class Row(NamedTuple):
    """One scalar condition: kind, axis (or component) of the first marker, axis of the second, and how it is called."""

    kind: int
    first: int
    second: int
    label: str


def _rows(part: Basic) -> list[Row]:
    if part.kind == POINT:
        return [Row(POINT, k, 0, f"atpoint {'xyz'[k]}") for k in range(3)]
    if part.kind == PLANE:
        return [Row(PLANE, 0, part.second, f"inplane {'xyz'[part.second]}")]
    return [Row(PERPENDICULAR, part.first, part.second, f"perpendicular {'xyz'[part.first]}-{'xyz'[part.second]}")]


#: Kind of a joint inside a model -> its rows.
JOINTS: dict[str, list[Row]] = {
    kind: [row for part in parts for row in _rows(part)] for kind, parts in KINDS.items() if kind not in _BETWEEN
}
