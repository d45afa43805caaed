"""Joints inside a model as lists of basic constraints (Lu (2015), 2.2.2, 3.2.2).

The joint axis is the z axis of the markers. Markers with the same axes satisfy every kind; a perpendicular condition
also admits the opposite direction, and the initial position decides between the two.

| kind | made of | free |
|---|---|---|
| spherical | atpoint | 3 rotations |
| revolute | atpoint, z of the first perpendicular to x and y of the second | rotation about z |
| universal | atpoint, x of the first perpendicular to y of the second | 2 rotations |
| cylindrical | 2 inplane (x, y of the second), z perpendicular to x and y | rotation about and shift along z |
| translational | 2 inplane (x, y), 3 perpendicular | shift along z |
| planar | inplane (z), z perpendicular to x and y | 2 shifts, rotation about z |
| inline | 2 inplane (x, y) | shift along z, 3 rotations |
| orientation | 3 perpendicular | 3 shifts |
| fixed | atpoint, 3 perpendicular | nothing |
"""

from __future__ import annotations

from typing import NamedTuple

from cosolve.multibody.model.arrays import PERPENDICULAR, PLANE, POINT


class Row(NamedTuple):
    """One scalar condition: kind, axis (or component) of the first marker, axis of the second, and how it is called."""

    kind: int
    first: int
    second: int
    label: str


_X, _Y, _Z = 0, 1, 2


def _atpoint() -> list[Row]:
    return [Row(POINT, k, 0, f"atpoint {'xyz'[k]}") for k in range(3)]


def _inplane(*axes: int) -> list[Row]:
    return [Row(PLANE, 0, k, f"inplane {'xyz'[k]}") for k in axes]


def _perpendicular(*pairs: tuple[int, int]) -> list[Row]:
    return [Row(PERPENDICULAR, a, b, f"perpendicular {'xyz'[a]}-{'xyz'[b]}") for a, b in pairs]


_ALONG = ((_Z, _X), (_Z, _Y))
_SAME = (*_ALONG, (_X, _Y))

#: Kind -> its rows.
JOINTS: dict[str, list[Row]] = {
    "spherical": _atpoint(),
    "revolute": _atpoint() + _perpendicular(*_ALONG),
    "universal": _atpoint() + _perpendicular((_X, _Y)),
    "cylindrical": _inplane(_X, _Y) + _perpendicular(*_ALONG),
    "translational": _inplane(_X, _Y) + _perpendicular(*_SAME),
    "planar": _inplane(_Z) + _perpendicular(*_ALONG),
    "inline": _inplane(_X, _Y),
    "orientation": _perpendicular(*_SAME),
    "fixed": _atpoint() + _perpendicular(*_SAME),
}
