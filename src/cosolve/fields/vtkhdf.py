"""Snapshots in one file, step after step: VTKHDF, the format in which VTK and ParaView keep meshes over time in HDF5.

The file is an unstructured grid of one part. Cells are written once; points where they have moved; fields in every
step. `Steps` says where each step begins in the arrays, and its attribute `NSteps` how many steps count. That is raised
only after everything else of a step is in the file, in HDF5's mode for readers beside one writer, and between two steps
the file is closed: a run that is killed at any moment leaves all steps that it has written.

VTK knows points and vectors in three dimensions only, so that those in a plane get zeros; attributes of the arrays say
how many numbers there were (`components`). Bounds on the version of the format keep the file readable for older HDF5.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.hdf5 import written_hdf5
from cosolve.basics.plain_file import refuse_no_file
from cosolve.errors import OutputFileError, SetupError
from cosolve.fields.field_subsystem import CELL_POINTS, FieldSnapshot

if TYPE_CHECKING:
    import h5py

    from cosolve.fields.field_series import FieldSeries

#: Kind of cell -> its number in VTK; the order of points in a cell is the same.
VTK_CELLS = {
    "line": 3,
    "line3": 21,
    "triangle": 5,
    "triangle6": 22,
    "quad": 9,
    "quad8": 23,
    "quad9": 28,
    "tetra": 10,
    "tetra10": 24,
    "hexahedron": 12,
}
_KINDS = {number: kind for kind, number in VTK_CELLS.items()}
_ROOT = "VTKHDF"
_COUNTS = ("NumberOfPoints", "NumberOfCells", "NumberOfConnectivityIds")
_GROUPS = {"PointData": "PointDataOffsets", "CellData": "CellDataOffsets"}
_STEPS = ("Values", "NumberOfParts", "PartOffsets", "PointOffsets", "CellOffsets", "ConnectivityIdOffsets")
_ROOM = 1 << 20  # bytes that HDF5 may take beside the arrays
_MOST = 1100  # times smaller than its numbers is what is packed, at most
_CHUNK = 1 << 16  # numbers in one compressed piece
_PACKED = {"compression": "gzip", "compression_opts": 1, "shuffle": True}


def create(path: Path, first: FieldSnapshot, name: str) -> None:
    """A file without steps, for snapshots like the first; `name` says whose they are."""
    with _reporting_failures(path), written_hdf5(path, libver=("v110", "v110")) as file:
        _lay_out(file, first, name)


def append(path: Path, t: float, snapshot: FieldSnapshot) -> None:
    """One more step; its mesh must have the cells of the first, and its fields the same names and shapes."""
    import h5py

    arrays = snapshot.points, *snapshot.point_data.values(), *snapshot.cell_data.values()
    with _reporting_failures(path):
        _reserve(path, sum(2 * np.asarray(array).nbytes for array in arrays))
    with _reporting_failures(path), h5py.File(path, "r+", libver=("v110", "v110"), locking=False) as file:
        root = file[_ROOT]
        points, fields = _checked(path, root, snapshot)
        file.swmr_mode = True
        _append(root, t, points, fields)
        file.flush()
        _count(root, n_steps(root) + 1)
        file.flush()


def _reserve(path: Path, n_bytes: int) -> None:
    """Room on the disk for one more step, or `OSError`: HDF5 would end the process. What is left over it gives back."""
    if not hasattr(os, "posix_fallocate"):
        return
    with path.open("rb+") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            os.posix_fallocate(file.fileno(), size, n_bytes + _ROOM)
        except OSError:
            file.truncate(size)
            raise


def secure(path: Path) -> None:
    """Bring what was written to the disk itself."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def keep_first(path: Path, steps: int) -> None:
    """Forget all but the first so many steps.

    They are copied to a new file, which takes the place of the old one: one that was left in the middle of writing can
    be read, but not written any further.
    """
    from cosolve.fields.field_series import FieldSeries

    if not steps:
        path.unlink(missing_ok=True)
        return
    series = FieldSeries(path)
    if len(series) < steps:
        raise OutputFileError(
            f"'{path}' holds {len(series)} steps, but the saved state was written after {steps}; was the file cut, or "
            "copied while the run went on? Run anew"
        )
    whole = path.with_name(path.name + ".part")
    _copy(series, whole, steps)
    whole.replace(path)


def _copy(series: FieldSeries, path: Path, steps: int) -> None:
    create(path, series[0], series.name)
    for i in range(steps):
        append(path, float(series.t[i]), series[i])


@contextmanager
def opened(path: Path) -> Iterator[h5py.Group]:
    """The root of a file to be read, also while it is written, and after its writer was killed."""
    from cosolve.result.file_columns import attribute, hdf5_read, written_now

    refuse_no_file(path)
    if not path.exists():
        raise SetupError(f"there is no file '{path}'")
    # a file that is being written, or whose writer was killed, is read in HDF5's mode for that; it is a slow one
    with hdf5_read(path, swmr=written_now(path), locking=False) as file:
        if _ROOT not in file:
            raise SetupError(f"'{path}' is an HDF5 file, but not of the kind VTKHDF")
        kind = attribute(file[_ROOT], "Type")
        if kind != "UnstructuredGrid" or "Steps" not in file[_ROOT]:
            raise SetupError(f"'{path}' holds {kind or 'something else'}; read_fields reads unstructured grids in time")
        _refuse_strange(path, file[_ROOT])
        yield file[_ROOT]


def _refuse_strange(path: Path, root: h5py.Group) -> None:
    """Raise where an array lies in another file, or is larger than the file can hold; counts are whole numbers."""
    from cosolve.result.file_columns import dataset

    whole = [(root, (*_COUNTS, "Types", "Offsets", "Connectivity")), (root["Steps"], _STEPS[1:])]
    others = [(root, ("Points",)), (root["Steps"], _STEPS[:1])]
    for group, offsets in _GROUPS.items():
        whole.append((root["Steps"][offsets], tuple(root[group])))
        others.append((root[group], tuple(root[group])))
    most = _MOST * path.stat().st_size
    for kinds, places in (("iu", whole), ("fiu", others)):
        for held, keys in places:
            for key in keys:
                found = dataset(held, path, key)
                if found.size * found.dtype.itemsize > most or found.dtype.kind not in kinds or not found.ndim:
                    raise SetupError(f"'{path}': its array '{key}' makes no sense; was it damaged?")
    count = root["Steps"].attrs["NSteps"]
    if np.ndim(count) or not 0 <= int(count) <= min(len(root["Steps"][key]) for key in _STEPS):
        raise SetupError(f"'{path}' has {count} steps, but not all of what they hold; was it damaged?")


def name_of(root: h5py.Group) -> str:
    """The subsystem whose fields they are."""
    from cosolve.result.file_columns import attribute

    return attribute(root, "subsystem")


def n_steps(root: h5py.Group) -> int:
    """How many steps count."""
    return int(root["Steps"].attrs["NSteps"])


def read(root: h5py.Group, step: int) -> FieldSnapshot:
    """The snapshot of one step."""
    data = {group: {name: read_field(root, group, name, step) for name in names(root, group)} for group in _GROUPS}
    return FieldSnapshot(read_points(root, points_at(root, step)), cells_of(root), data["PointData"], data["CellData"])


def points_at(root: h5py.Group, step: int) -> int:
    """Where the points of a step begin among all; the same number in two steps: they have not moved."""
    return int(root["Steps"]["PointOffsets"][step])


def read_points(root: h5py.Group, start: int) -> npt.NDArray[np.float64]:
    """The points that begin there."""
    found: npt.NDArray[np.float64] = root["Points"][start : start + int(root["NumberOfPoints"][0])]
    return found[:, : int(root["Points"].attrs.get("components", 3))]


def names(root: h5py.Group, group: str) -> list[str]:
    """The fields at points (`PointData`) or of cells (`CellData`), in their order."""
    return sorted(root[group], key=lambda one: int(root[group][one].attrs.get("place", 0)))


def cells_of(root: h5py.Group) -> dict[str, npt.NDArray[np.int64]]:
    """The cells, by kind, in the order of the file."""
    types, offsets, corners = root["Types"][:], root["Offsets"][:], root["Connectivity"][:]
    cells, at = {}, 0
    while at < len(types):
        kind = _KINDS.get(int(types[at]))
        same = int(np.argmax(types[at:] != types[at])) or len(types) - at
        if kind is None or kind in cells:
            raise SetupError(f"cells of type {int(types[at])} of VTK are not read, or not sorted by their kind")
        part = corners[offsets[at] : offsets[at + same]]
        cells[kind] = part.reshape(same, CELL_POINTS[kind]).astype(np.int64)
        at += same
    return cells


def read_field(root: h5py.Group, group: str, name: str, step: int) -> npt.NDArray[Any]:
    """One field at one step."""
    dataset, n = root[group][name], int(root["NumberOfPoints" if group == "PointData" else "NumberOfCells"][0])
    start = int(root["Steps"][_GROUPS[group]][name][step])
    values: npt.NDArray[Any] = dataset[start : start + n]
    return values[:, : int(dataset.attrs.get("components", values.shape[1]))] if values.ndim == 2 else values


def _lay_out(file: h5py.File, first: FieldSnapshot, name: str) -> None:
    root = file.create_group(_ROOT)
    root.attrs["Version"] = np.array([2, 0], dtype=np.int64)
    root.attrs.create("Type", np.bytes_("UnstructuredGrid"))
    root.attrs["subsystem"] = np.bytes_(name.encode())
    corners = [cells.ravel() for cells in first.cells.values()]
    sizes = [np.full(len(cells), CELL_POINTS[kind]) for kind, cells in first.cells.items()]
    types = [np.full(len(cells), VTK_CELLS[kind], dtype=np.uint8) for kind, cells in first.cells.items()]
    joined = np.concatenate(corners) if corners else np.zeros(0, dtype=np.int64)
    ends = np.cumsum(np.concatenate(sizes)) if sizes else np.zeros(0, dtype=np.int64)
    root["NumberOfPoints"], root["NumberOfCells"] = np.array([first.n_points]), np.array([first.n_cells])
    root["NumberOfConnectivityIds"] = np.array([len(joined)])
    for key, values in (
        ("Connectivity", joined.astype(np.int64)),
        ("Offsets", np.concatenate([[0], ends]).astype(np.int64)),
        ("Types", np.concatenate(types) if types else np.zeros(0, dtype=np.uint8)),
    ):
        root.create_dataset(key, data=values, chunks=(min(_CHUNK, max(1, len(values))),), **_PACKED)
    _growing(root, "Points", np.asarray(first.points, dtype=np.float64), three=True)
    steps = root.create_group("Steps")
    steps.attrs["NSteps"] = np.int64(0)
    for key in _STEPS:
        kind = np.float64 if key == "Values" else np.int64
        tail = (1,) if key in ("CellOffsets", "ConnectivityIdOffsets") else ()
        steps.create_dataset(key, (0, *tail), kind, maxshape=(None, *tail), chunks=(1024, *tail))
    for (group, offsets), data in zip(_GROUPS.items(), (first.point_data, first.cell_data), strict=True):
        into, places = root.create_group(group), steps.create_group(offsets)
        for place, (key, values) in enumerate(data.items()):
            if "/" in key or not key:
                raise SetupError(f"the field {key!r} cannot be written to a file under that name; one without '/' can")
            _growing(into, key, np.asarray(values)).attrs["place"] = place
            places.create_dataset(key, (0,), np.int64, maxshape=(None,), chunks=(1024,))


def _growing(group: h5py.Group, key: str, values: npt.NDArray[Any], three: bool = False) -> h5py.Dataset:
    """An empty dataset for rows like these."""
    wide = values.shape[1] if values.ndim == 2 else 0
    if values.ndim > 2 or values.dtype.kind not in "fiub":
        raise SetupError(f"the field '{key}' has shape {values.shape} of {values.dtype}; a file takes numbers in rows")
    width = 3 if three or wide == 2 else wide
    tail = (width,) if wide else ()
    rows = max(1, min(len(values), _CHUNK // max(1, width)))
    made = group.create_dataset(
        key, (0, *tail), _stored(values).dtype, maxshape=(None, *tail), chunks=(rows, *tail), **_PACKED
    )
    if wide:
        made.attrs["components"] = wide
    return made


def _stored(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values.astype(np.uint8) if values.dtype.kind == "b" else values


def _checked(
    path: Path, root: h5py.Group, snapshot: FieldSnapshot
) -> tuple[npt.NDArray[np.float64] | None, Mapping[tuple[str, str], npt.NDArray[Any]]]:
    """Points, unless they are where they were, and fields, as they are written; a sentence where they do not fit."""
    there = cells_of(root)
    same = list(there) == list(snapshot.cells) and all(np.array_equal(there[k], snapshot.cells[k]) for k in there)
    if not same or snapshot.n_points != int(root["NumberOfPoints"][0]):
        raise SetupError(f"'{path}': the cells of a snapshot are not those of the first; a file takes one mesh only")
    points = _padded(np.asarray(snapshot.points, dtype=np.float64), 3)
    last, count = 0, n_steps(root)
    if count:
        last = int(root["Steps"]["PointOffsets"][count - 1])
    moved = not count or not np.array_equal(root["Points"][last : last + len(points)], points)
    fields = {}
    for group, data in (("PointData", snapshot.point_data), ("CellData", snapshot.cell_data)):
        if set(data) != set(root[group]):
            raise SetupError(f"'{path}': a snapshot has the fields {sorted(data)}, the first had {sorted(root[group])}")
        for name, values in data.items():
            dataset, rows = root[group][name], _stored(np.asarray(values))
            if rows.ndim == 2 and dataset.ndim == 2 and rows.shape[1] == dataset.attrs["components"]:
                rows = _padded(rows, dataset.shape[1])
            if rows.shape[1:] != dataset.shape[1:]:
                raise SetupError(f"'{path}': the field '{name}' has another shape than at first, {rows.shape}")
            fields[group, name] = rows
    return points if moved else None, fields


def _padded(rows: npt.NDArray[Any], width: int) -> npt.NDArray[Any]:
    missing = width - rows.shape[1]
    return np.concatenate([rows, np.zeros((len(rows), missing), rows.dtype)], axis=1) if missing else rows


def _append(root: h5py.Group, t: float, points: Any, fields: Mapping[tuple[str, str], npt.NDArray[Any]]) -> None:
    """Rows behind those that count: what a killed writer has left there is overwritten."""
    steps, count = root["Steps"], n_steps(root)
    n = int(root["NumberOfPoints"][0])
    at = int(steps["PointOffsets"][count - 1]) if count else 0
    if points is not None:
        at = at + n if count else 0
        _put(root["Points"], at, points)
    here = {"Values": t, "NumberOfParts": 1, "PointOffsets": at}
    for key in _STEPS:
        steps[key].resize(count + 1, axis=0)
        steps[key][count] = here.get(key, 0)
    for (group, name), rows in fields.items():
        _put(root[group][name], count * len(rows), rows)
        places = steps[_GROUPS[group]][name]
        places.resize(count + 1, axis=0)
        places[count] = count * len(rows)


def _put(dataset: h5py.Dataset, at: int, rows: npt.NDArray[Any]) -> None:
    dataset.resize(at + len(rows), axis=0)
    dataset[at:] = rows


def _count(root: h5py.Group, steps: int) -> None:
    root["Steps"].attrs.modify("NSteps", np.int64(steps))


@contextmanager
def _reporting_failures(path: Path) -> Iterator[None]:
    """Turn failures of the operating system or of HDF5 into a sentence about `path`."""
    try:
        yield
    except OSError as failure:
        from cosolve.result.file_columns import reason

        raise OutputFileError(
            f"cannot write the fields to '{path}': {reason(failure)}; choose a path in a folder you can write to"
        ) from failure
