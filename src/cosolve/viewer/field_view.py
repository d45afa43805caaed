"""Snapshots of fields to be looked at: the mesh once, as triangles, and then the numbers of one step after the other.

Everything is read when it is asked for, so that a file that is larger than the memory opens at once. What the page gets
is single precision, around the middle of the mesh; points are sent again only where they have moved. Points inside a
body are not sent at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.wording import counted
from cosolve.errors import SetupError
from cosolve.fields import FieldSeries, vtkhdf
from cosolve.fields.triangles import DRAWN, triangles
from cosolve.viewer.frames import packed, plain_dict

_LOOKS = 12  # snapshots that are read to find the ends of the colours
_HALVINGS = 12  # of the squares of a coarser mesh

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Field:
    """One field: its name, how many numbers it has in a place, and whether its places are cells."""

    name: str
    components: int
    per_cell: bool


@dataclass(frozen=True)
class Surface:
    """What is drawn of a mesh: points by their numbers in the file, triangles between them, cells by their numbers."""

    points: Rows
    corners: Rows
    cells: Rows
    owners: Rows
    origin: npt.NDArray[np.float64]
    plane: bool


class FieldView:
    """A file of snapshots with what is found out once to look at it.

    >>> import tempfile
    >>> import cosolve as cs
    >>> plate = cs.fields.FieldSnapshot(np.eye(3)[:, :2], {"triangle": np.array([[0, 1, 2]])}, {"v": np.ones((3, 2))})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = cs.fields.FieldSeries.write(folder + "/plate.vtkhdf", [0.0], [plate])
    ...     shown = FieldView(cs.fields.read_fields(file))
    ...     shown.about()["fields"], shown.limits(0)["high"][1:]
    ([{'name': 'v', 'components': 2, 'per_cell': False}], [1.0, 1.0])
    """

    def __init__(self, series: FieldSeries, most_points: int | None = None) -> None:
        self.label, self._most_points = series.path.name, most_points
        self._take(series)

    def _take(self, series: FieldSeries) -> None:
        if not len(series):
            raise SetupError(f"'{series.path}' holds no steps (yet), so there is nothing to show")
        first = series[0]
        cut, owners = triangles(first.cells)
        if not len(cut):
            kinds = ", ".join(first.cells) or "nothing"
            raise SetupError(f"'{series.path}' has cells of the kinds {kinds}; view draws {', '.join(DRAWN)}")
        #: Points of the file that a picture of all of it would have.
        self.all_points = len(np.unique(cut))
        if self._most_points is not None and self.all_points > self._most_points:
            cut, owners = coarser(first.points, cut, owners, self._most_points)
        points, corners = np.unique(cut, return_inverse=True)
        cells, owners = np.unique(owners, return_inverse=True)
        places = in_space(first.points[points])
        origin = 0.5 * (places.min(axis=0) + places.max(axis=0))
        plane = bool(first.points.shape[1] == 2 or not np.ptp(places[:, 2]))
        self._series = series
        self._surface = Surface(points, corners.ravel(), cells, owners, np.nan_to_num(origin), plane)
        self.fields = tuple(
            Field(name, 1 if np.ndim(values) == 1 else values.shape[1], per_cell)
            for data, per_cell in ((first.point_data, False), (first.cell_data, True))
            for name, values in data.items()
        )

    def about(self) -> dict[str, Any]:
        """Everything but numbers; steps that a run has added since are seen."""
        series = FieldSeries(self._series.path)
        if len(series) != len(self._series):
            self._take(series)
        return plain_dict(
            {
                "label": self.label,
                "of": series.name,
                "plane": self._surface.plane,
                "fields": [vars(one) for one in self.fields],
            }
        )

    def __len__(self) -> int:
        return len(self._series)

    @property
    def points(self) -> int:
        """How many points are drawn."""
        return len(self._surface.points)

    def numbers(self, field: int) -> int:
        """How many numbers a snapshot of a field has."""
        one, held = self.fields[field], self._surface
        return one.components * len(held.cells if one.per_cell else held.points)

    def places(self) -> Rows:
        """Where the points of every step begin in the file: the same number twice, they have not moved."""
        with vtkhdf.opened(self._series.path) as root:
            return np.array([vtkhdf.points_at(root, step) for step in range(len(self))])

    def mesh(self, steps: Rows | None = None) -> bytes:
        """Times (`t`, of some steps or all), triangles (`corners`, three points each), the cell of each (`owners`)."""
        held = self._surface
        t = self._series.t if steps is None else self._series.t[steps]
        head = {"origin": held.origin.tolist(), "points": len(held.points), "cells": len(held.cells)}
        corners, owners = held.corners.astype("<u4"), held.owners.astype("<u4")
        return packed(head, t=t.astype("<f8"), corners=corners, owners=owners)

    def frame(self, step: int, field: int, have: int = -1) -> bytes:
        """One step: `values` of a field (none where `field` is -1), and `points` unless the page has those `at`."""
        count, held = len(self._series), self._surface
        if not 0 <= step < count:
            raise SetupError(f"'{self.label}' holds {counted(count, 'step')}; there is none of number {step}")
        parts: dict[str, npt.NDArray[Any]] = {}
        with vtkhdf.opened(self._series.path) as root:
            at = vtkhdf.points_at(root, step)
            if at != have:
                places = in_space(vtkhdf.read_points(root, at)[held.points]) - held.origin
                parts["points"] = single(places)
            if field != -1:
                parts["values"] = single(self._read(root, step, field))
        return packed({"at": at}, **parts)

    def limits(self, field: int) -> dict[str, Any]:
        """Least and largest magnitude, then of each component, over a dozen snapshots spread over the series."""
        count = len(self._series)
        steps = np.unique(np.linspace(0, count - 1, min(_LOOKS, count)).astype(int))
        low, high = [], []
        with vtkhdf.opened(self._series.path) as root:
            for step in steps:
                values = self._read(root, int(step), field).astype(np.float64)
                with np.errstate(over="ignore"):  # values of a run that blew up
                    size = values if values.shape[1] == 1 else np.linalg.norm(values, axis=1, keepdims=True)
                both = np.hstack([size, values])
                both[~np.isfinite(both)] = np.nan
                low.append(np.fmin.reduce(both))
                high.append(np.fmax.reduce(both))
        found = {"low": np.fmin.reduce(low), "high": np.fmax.reduce(high), "looks": len(steps), "steps": count}
        return plain_dict(found)

    def _read(self, root: Any, step: int, field: int) -> npt.NDArray[Any]:
        """A field at the places that are drawn, one row each."""
        if not 0 <= field < len(self.fields):
            raise SetupError(
                f"'{self.label}' has {counted(len(self.fields), 'field')}; there is none of number {field}"
            )
        one, held = self.fields[field], self._surface
        values = vtkhdf.read_field(root, "CellData" if one.per_cell else "PointData", one.name, step)
        return values.reshape(len(values), -1)[held.cells if one.per_cell else held.points]


def coarser(points: npt.NDArray[np.float64], cut: Rows, owners: Rows, most: int) -> tuple[Rows, Rows]:
    """Fewer triangles between at most so many of the points: one point in each square of a grid, as fine as can be.

    >>> x, y = (a.ravel() for a in np.meshgrid(np.arange(9.0), np.arange(9.0)))
    >>> low = np.arange(72)[np.arange(72) % 9 < 8]
    >>> fine = np.vstack([np.column_stack([low, low + 1, low + 10]), np.column_stack([low, low + 10, low + 9])])
    >>> cut, owners = coarser(np.column_stack([x, y]), fine, np.arange(128), 25)
    >>> len(np.unique(cut)) <= 25, len(cut) == len(owners), 10 < len(cut) < 64
    (True, True, True)
    """
    used = np.unique(cut)
    used = np.concatenate([edge := _edge(cut), np.setdiff1d(used, edge)])  # in a square a point of the edge comes first
    places = np.nan_to_num(in_space(points[used]))
    places -= places.min(axis=0)
    extent = np.sort(places.max(axis=0))
    width = max(np.sqrt(extent[2] * extent[1] / most), extent[2] / most, 1e-300)
    for _ in range(_HALVINGS):  # a thin ring fills few squares of its box
        if len(_squares(places, width)[0]) > most:
            break
        width /= 2
    first, square = _squares(places, width)
    while len(first) > most:
        width *= 1.1
        first, square = _squares(places, width)
    stands_for = np.zeros(len(points), dtype=np.int64)
    stands_for[used] = used[first[square]]
    cut = stands_for[cut]
    whole = (cut[:, 0] != cut[:, 1]) & (cut[:, 1] != cut[:, 2]) & (cut[:, 2] != cut[:, 0])
    _, once = np.unique(np.sort(cut[whole], axis=1), axis=0, return_index=True)
    return cut[whole][once], owners[whole][once]


def _edge(cut: Rows) -> Rows:
    """The points at the edge of a surface, where triangles have no neighbour."""
    sides = np.sort(np.concatenate([cut[:, [0, 1]], cut[:, [1, 2]], cut[:, [2, 0]]]), axis=1)
    _, first, count = np.unique(sides @ [cut.max() + 1, 1], return_index=True, return_counts=True)
    return np.unique(sides[first[count == 1]])


def _squares(places: npt.NDArray[np.float64], width: float) -> tuple[Rows, Rows]:
    """The first point in every square of a grid where there is one, and the square of every point."""
    x, y, z = np.floor(places / width + 0.5).astype(np.int64).T
    _, first, square = np.unique((x * (y.max() + 1) + y) * (z.max() + 1) + z, return_index=True, return_inverse=True)
    return first, square.ravel()


def in_space(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Points with three coordinates; those of a plane get zeros."""
    return np.pad(points, ((0, 0), (0, 3 - points.shape[1])))


def single(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Numbers one after the other in single precision; what is too large for it is infinite."""
    with np.errstate(over="ignore"):
        return values.astype("<f4").ravel()
