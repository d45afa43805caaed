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


class FieldExhibit:
    """A file of snapshots with what is found out once to look at it.

    >>> import tempfile
    >>> import cosolve as cs
    >>> plate = cs.FieldSnapshot(np.eye(3)[:, :2], {"triangle": np.array([[0, 1, 2]])}, {"v": np.ones((3, 2))})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shown = FieldExhibit(cs.read_fields(cs.FieldSeries.write(folder + "/plate.vtkhdf", [0.0], [plate])))
    ...     shown.about()["fields"], shown.limits(0)["high"][1:]
    ([{'name': 'v', 'components': 2, 'per_cell': False}], [1.0, 1.0])
    """

    def __init__(self, series: FieldSeries) -> None:
        self.label = series.path.name
        self._take(series)

    def _take(self, series: FieldSeries) -> None:
        if not len(series):
            raise SetupError(f"'{series.path}' holds no steps (yet), so there is nothing to show")
        first = series[0]
        cut, owners = triangles(first.cells)
        if not len(cut):
            kinds = ", ".join(first.cells) or "nothing"
            raise SetupError(f"'{series.path}' has cells of the kinds {kinds}; view draws {', '.join(DRAWN)}")
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

    def mesh(self) -> bytes:
        """Times (`t`), triangles (`corners`, three points each) and the cell of each (`owners`)."""
        held = self._surface
        head = {"origin": held.origin.tolist(), "points": len(held.points), "cells": len(held.cells)}
        corners, owners = held.corners.astype("<u4"), held.owners.astype("<u4")
        return packed(head, t=self._series.t.astype("<f8"), corners=corners, owners=owners)

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


def in_space(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Points with three coordinates; those of a plane get zeros."""
    return np.pad(points, ((0, 0), (0, 3 - points.shape[1])))


def single(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Numbers one after the other in single precision; what is too large for it is infinite."""
    with np.errstate(over="ignore"):
        return values.astype("<f4").ravel()
