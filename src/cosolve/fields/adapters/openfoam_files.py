"""What the adapter reads and writes of OpenFOAM's files: lists of numbers, as text or binary, and single entries.

A file is a dictionary in which later entries win over earlier ones. What the adapter sets therefore stands at the end
of the user's file, and is taken back by cutting it off.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cosolve.errors import SetupError, SubsystemError

Numbers = npt.NDArray[np.float64]
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def entry(text: str, name: str) -> str | None:
    """The value of the last entry `name value;`, or None.

    >>> entry("deltaT 0.1; /* first */ deltaT 0.2;", "deltaT")
    '0.2'
    """
    found = re.findall(rf"(?:^|[\s;{{}}]){name}\s+([^;{{}}]*);", _COMMENT.sub("", text))
    return found[-1].strip() if found else None


class FoamFile:
    """A file of OpenFOAM in memory: text, or binary with lists as they are in memory."""

    def __init__(self, path: Path) -> None:
        packed = path.with_name(path.name + ".gz")
        self.name = path.name
        if not path.exists() and not packed.exists():
            raise SetupError(f"OpenFOAM's file {path.name} is not in {path.parent}")
        self.data = path.read_bytes() if path.exists() else gzip.decompress(packed.read_bytes())
        header = re.search(rb"FoamFile\s*\{(.*?)\}", self.data, re.DOTALL)
        words = header.group(1).decode(errors="replace") if header else ""
        self.binary = entry(words, "format") == "binary"
        arch = entry(words, "arch") or ""
        self._label = np.dtype("<i8" if "label=64" in arch else "<i4")
        self._scalar = np.dtype("<f4" if "scalar=32" in arch else "<f8")
        self.body = header.end() if header else 0

    def numbers(self, at: int, columns: int = 1, *, whole: bool = False) -> tuple[npt.NDArray[np.generic], int]:
        """The list `N(...)` that begins at a place, and where it ends; rows of `columns` numbers."""
        head = re.compile(rb"[^(0-9]*(\d+)\s*\(").match(self.data, at)
        if head is None:
            raise SubsystemError(f"OpenFOAM's file {self.name} is incomplete: a list of numbers is missing")
        n, kind = int(head.group(1)), self._label if whole else self._scalar
        if self.binary:
            end = head.end() + n * columns * kind.itemsize
            held = self.data[head.end() : end]
            values = np.frombuffer(held[: len(held) // kind.itemsize * kind.itemsize], kind)
        else:
            end = self.data.find(b"\n)" if columns > 1 else b")", head.end())
            end = len(self.data) if end < 0 else end
            inside = self.data[head.end() : end].translate(None, b"()")
            try:
                values = np.array(inside.split(), dtype=kind)
            except ValueError:  # half a number
                values = np.zeros(0, kind)
        if values.size != n * columns:
            raise SubsystemError(f"OpenFOAM's file {self.name} is incomplete: a list should have {n} entries")
        return values.reshape(n, columns) if columns > 1 else values, end + 1

    def field(self, part: bytes, columns: int, n: int) -> Numbers:
        """The values behind `part` (a regular expression that ends before `uniform` or `nonuniform`), for n places."""
        value = rb"\s+(nonuniform\s+List<\w+>|uniform\s+(\([^)]*\)|[^;]*);)"
        found = re.compile(part + value).search(self.data, self.body)
        if found is None:
            raise SubsystemError(f"OpenFOAM's file {self.name} is incomplete: a field is missing")
        if found.group(2) is not None:
            one = np.array(found.group(2).strip(b"()").split(), dtype=float)
            return np.tile(one, (n, 1)) if columns > 1 else np.full(n, one[0])
        values, _ = self.numbers(found.end(), columns)
        if len(values) != n:
            raise SubsystemError(f"OpenFOAM's file {self.name} has {len(values)} values where {n} are expected")
        return values.astype(np.float64)

    def patch_field(self, patch: str, columns: int, n: int) -> Numbers:
        """The `value` of a field on a patch of n faces or points."""
        name = rf'\n\s*"?{re.escape(patch)}"?\s*\{{[^}}]*?\bvalue'.encode()
        return self.field(rb"boundaryField(?s:.*?)" + name, columns, n)


def read_faces(path: Path) -> list[npt.NDArray[np.int64]]:
    """Point numbers of all faces of `polyMesh/faces`."""
    file = FoamFile(path)
    if file.binary:  # where each face begins, then all points
        offsets, end = file.numbers(file.body, whole=True)
        labels, _ = file.numbers(end, whole=True)
        return np.split(labels.astype(np.int64), offsets.astype(np.int64)[1:-1])
    first = re.compile(rb"[^(0-9]*\d+\s*\(").match(file.data, file.body)
    assert first is not None
    rows = re.findall(rb"\d+\(([\d\s]+)\)", file.data[first.end() :])
    return [np.array(row.split(), dtype=np.int64) for row in rows]


def read_points(path: Path) -> Numbers:
    """The points of a mesh, (n, 3)."""
    file = FoamFile(path)
    points, _ = file.numbers(file.body, 3)
    return points.astype(np.float64)


def read_patches(path: Path) -> dict[str, tuple[str, int, int]]:
    """Patch -> kind, first face, number of faces, of `polyMesh/boundary`."""
    text = _COMMENT.sub("", FoamFile(path).data.decode(errors="replace"))
    found = {}
    for name, inside in re.findall(r'([\w".]+)\s*\{([^{}]*)\}', text):
        if name != "FoamFile":
            start, size = entry(inside, "startFace"), entry(inside, "nFaces")
            found[name.strip('"')] = (entry(inside, "type") or "", int(start or 0), int(size or 0))
    return found


def write_patch_values(path: Path, patch: str, values: Numbers) -> int:
    """Fix the values of a patch at the end of a field file; returns the length of the file before."""
    if not path.exists() and path.with_name(path.name + ".gz").exists():
        raise SetupError(f"{path.name}.gz is compressed; unpack it in the first time directory of the case")
    if FoamFile(path).binary:
        listed = b"(" + np.ascontiguousarray(values, dtype="<f8").tobytes() + b")"
    else:
        listed = b"(\n" + b"\n".join(b"(%.17g %.17g %.17g)" % tuple(row) for row in values.tolist()) + b"\n)"
    head = f"\nboundaryField\n{{\n    {patch}\n    {{\n        type fixedValue;\n        value nonuniform List<vector> "
    before = path.stat().st_size
    with path.open("ab") as out:
        out.write(head.encode() + b"%d" % len(values) + listed + b";\n    }\n}\n")
    return before
