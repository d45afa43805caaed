"""OpenFOAM as a subsystem: the displacements of a patch go in, the forces of the fluid on it come out.

The case is the user's. Its application runs once per time step, as a process of its own: the boundary motion stands in
`pointDisplacement` of the time directory it begins from, and the directory that it writes holds everything to go on
from, history included. Rollback is therefore another run from the same directory.

A file of OpenFOAM is a dictionary in which later entries win over earlier ones. What is set here therefore stands at
the end of the user's file, and is taken back by cutting it off. Lists of numbers come and go as text or binary.
"""

from __future__ import annotations

import gzip
import math
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from cosolve.basics.checks import as_path, flag, positive
from cosolve.errors import SetupError, SubsystemError
from cosolve.fields.adapters.program import StoredState, WorkingFolder, field_ports, find_program, run_program
from cosolve.fields.field_subsystem import FieldSnapshot, FieldSubsystem
from cosolve.mapping.mesh import Mesh
from cosolve.signal.polynomial import InputSignal

_REMEDY = "install OpenFOAM (Debian and Ubuntu: apt install openfoam) or source its etc/bashrc before Python starts"
_NOT_COPIED = shutil.ignore_patterns("processor*", "postProcessing", "log.*", "dynamicCode")
Numbers = npt.NDArray[np.float64]
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FORCE = "cosolve:force"  # written by our function object


class OpenFoam(FieldSubsystem):
    """A flow computed by OpenFOAM.

    Parameters
    ----------
    case : str or Path
        Case folder with a mesh (or a `blockMeshDict`) whose motion follows `pointDisplacement`. It is copied, not
        changed.
    patch : str
        Patch that is coupled.
    density : float or None, default None
        Density in kg/m^3, for solvers whose pressure is divided by it. None takes the field `rho`.
    rigid : bool, default False
        Move the patch as one: one displacement in, the sum of the forces out.
    nominal : mapping of str to float or None, default None
        Nominal value of each port, for tolerances.
    application : str, Path or None, default None
        Solver. None: that of `controlDict`.
    timeout : float or None, default None
        Longest time of a program in seconds.
    keep : str, Path or None, default None
        Folder for the working files. None removes them.

    Raises
    ------
    SetupError
        If the case or the programs cannot be used.

    Notes
    -----
    Ports: `displacement` in (total, m), `force` out (of the fluid on the wall, N), point by point over the patch; two
    values per point and forces per metre of depth if the case is plane. The macro step is divided into whole steps no
    longer than `deltaT`; each is a process of its own. Rollback is another run from the same time directory.

    Examples
    --------
    >>> import cosolve as cs
    >>> def flow():
    ...     return cs.fields.OpenFoam("cylinder", patch="cylinder", density=1000.0, rigid=True, timeout=60.0)
    """

    variable_step = False

    def __init__(
        self,
        case: str | os.PathLike[str],
        patch: str,
        *,
        density: float | None = None,
        rigid: bool = False,
        nominal: Mapping[str, float] | None = None,
        application: str | os.PathLike[str] | None = None,
        timeout: float | None = None,
        keep: str | os.PathLike[str] | None = None,
    ) -> None:
        self._case, self._patch, self._rigid = as_path("OpenFoam", case), patch, flag("rigid", rigid)
        self._density = None if density is None else positive("OpenFoam", "density", density)
        self._timeout = None if timeout is None else positive("OpenFoam", "timeout", timeout)
        control = self._case / "system" / "controlDict"
        if not control.is_file():
            raise SetupError(f"'{self._case}' is no OpenFOAM case: it has no system/controlDict")
        self._control = control.read_text()
        self._deltaT = float(entry(self._control, "deltaT") or math.inf)
        self._application = find_program(application or entry(self._control, "application") or "pimpleFoam", _REMEDY)
        self._environment = _environment(self._application)
        self._first = _latest_time(self._case)
        if self._first is None or not _is_there(self._case / self._first / "pointDisplacement"):
            raise SetupError(
                f"the case '{self._case}' has no time directory with a field pointDisplacement; displacements need a "
                "motion solver for it in constant/dynamicMeshDict, such as displacementLaplacian"
            )
        self._folder = WorkingFolder("openfoam", keep)
        self._work = self._folder.path / "case"
        shutil.copytree(self._case, self._work, ignore=_NOT_COPIED, symlinks=False)
        for name in _times(self._work):
            shutil.rmtree(self._work / name)
        self._read_mesh()
        size = self._dim if self._rigid else self._dim * len(self._points)
        self.inputs, self.outputs = field_ports("OpenFoam", {"displacement": size}, {"force": size}, nominal)
        if not self._rigid:
            mesh = self._mesh()
            self.meshes = {"displacement": mesh, "force": mesh}

    # -- the contract -------------------------------------------------------------------------------------------------

    def start(self, t0: float) -> Any:
        assert self._first is not None
        shutil.copytree(self._case / self._first, self._work / self._first)
        self._offset = float(self._first) - t0  # of OpenFOAM's time
        self._state: tuple[str, StoredState] = self._first, self._folder.store(self._work / self._first)
        self._force = np.zeros((self._n_faces, 3))
        return self._outputs()

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        steps = max(1, math.ceil((t1 - t0) / self._deltaT * (1 - 1e-9)))
        for k in range(steps):
            end = t1 if k + 1 == steps else t0 + (t1 - t0) * (k + 1) / steps
            self._step((t1 - t0) / steps, end + self._offset, u(end))
        return self._outputs()

    def save(self) -> Any:
        return self._state, self._force

    def restore(self, state: Any) -> None:
        self._state, self._force = state

    def portable_state(self) -> Any:
        name, stored = self._state
        return name, stored.packed(), self._force

    def set_portable_state(self, state: Any) -> None:
        name, packed, self._force = state
        self._state = name, self._folder.unpack(packed)

    def snapshot(self) -> FieldSnapshot:
        """Plane cases: the cells as they lie now, with pressure and velocity. Others: the patch and its forces."""
        here = self._state[1].path
        moved = here / "polyMesh" / "points"
        points = read_points(moved) if _is_there(moved) else self._rest
        if self._dim == 3:
            faces, data = self._patch_faces, {"force": self._force}
        else:
            faces, n = self._plane, len(self._plane)
            cells = 1 + int(self._plane_owner.max())
            p = FoamFile(here / "p").field(rb"\ninternalField", 1, cells)
            U = FoamFile(here / "U").field(rb"\ninternalField", 3, cells)
            data = {"pressure": p[self._plane_owner[:n]], "velocity": U[self._plane_owner[:n], :2]}
        order = [k for corners in (3, 4) for k, face in enumerate(faces) if len(face) == corners]
        kinds = {"triangle": [f for f in faces if len(f) == 3], "quad": [f for f in faces if len(f) == 4]}
        used = np.unique(np.concatenate([faces[k] for k in order]))
        number = np.zeros(len(points), dtype=np.int64)
        number[used] = np.arange(len(used))
        return FieldSnapshot(
            points[used][:, : self._dim],
            {kind: number[np.array(cells)] for kind, cells in kinds.items() if cells},
            cell_data={name: values[order] for name, values in data.items()},
        )

    def close(self) -> None:
        """Remove the working folder now; otherwise it goes with this object."""
        self._folder.close()

    # -- one time step ------------------------------------------------------------------------------------------------

    def _step(self, dt: float, end: float, displacement: Numbers) -> None:
        """One process from the time directory that is the state to the next."""
        name, stored = self._state
        here = self._work / name
        (self._work / "system" / "controlDict").write_text(self._control + self._settings(name, dt, end))
        stored.path.rename(here)
        motion = here / "pointDisplacement"
        before = write_patch_values(motion, self._patch, self._everywhere(displacement))
        try:
            log = self._folder.path / f"log.{Path(self._application).name}"
            run_program([self._application], self._work, log, self._timeout, self._environment)
            found = [other for other in _times(self._work) if other != name]
            if not found:
                raise SubsystemError(f"{log.name[4:]} ended well but wrote no time directory after {name}")
            there = self._work / found[0]
            if len(found) > 1 or not math.isclose(float(found[0]), end, rel_tol=1e-9, abs_tol=1e-6 * dt):
                raise SubsystemError(f"{log.name[4:]} stopped at {', '.join(found)} s instead of {end:.12g} s")
            if not _is_there(there / _FORCE):
                raise SubsystemError(f"{log.name[4:]} wrote no forces on '{self._patch}'; it should know libforces.so")
            force = FoamFile(there / _FORCE).patch_field(self._patch, 3, self._n_faces)
            self._state, self._force = (found[0], self._folder.store(there)), force
        finally:
            os.truncate(motion, before)
            here.rename(stored.path)
            for other in _times(self._work):
                shutil.rmtree(self._work / other)

    def _settings(self, name: str, dt: float, end: float) -> str:
        """What one time step needs, at the end of the user's `controlDict`."""
        digits = max(17, int(entry(self._control, "writePrecision") or 6))
        rho = "rho rho;" if self._density is None else f"rho rhoInf; rhoInf {self._density:.17g};"
        return f"""
// one step of a coupled run
startFrom startTime; startTime {name}; stopAt endTime; endTime {end:.15g}; deltaT {dt:.17g}; adjustTimeStep no;
writeControl timeStep; writeInterval 1; purgeWrite 0; writePrecision {digits}; writeCompression off; timePrecision 12;
runTimeModifiable no;
functions
{{
    cosolve
    {{
        type forces; libs ("libforces.so"); patches ("{self._patch}"); {rho} CofR (0 0 0);
        writeFields yes; executeControl timeStep; writeControl writeTime;
    }}
}}
"""

    def _everywhere(self, displacement: Numbers) -> Numbers:
        """Displacements of the points of the patch in three dimensions, from those of the port."""
        found = np.zeros((len(self._of_point), 3))
        rows = np.asarray(displacement).reshape(-1, self._dim)
        found[:, : self._dim] = rows if self._rigid else rows[self._of_point]
        return found

    def _outputs(self) -> Numbers:
        plane: Numbers = self._force[:, : self._dim] / self._depth
        return plane.sum(axis=0) if self._rigid else np.asarray(self._share.T @ plane).ravel()

    # -- the mesh -----------------------------------------------------------------------------------------------------

    def _read_mesh(self) -> None:
        """The patch, its points in OpenFOAM's order, and whether the case is plane."""
        mesh = self._work / "constant" / "polyMesh"
        if not _is_there(mesh / "faces") and (self._work / "system" / "blockMeshDict").exists():
            # its own controlDict may name libraries that are for the solver
            blocks = find_program("blockMesh", _REMEDY)
            run_program([blocks], self._work, self._folder.path / "log.blockMesh", self._timeout, self._environment)
        patches = read_patches(mesh / "boundary")
        if self._patch not in patches:
            raise SetupError(f"the case '{self._case}' has no patch '{self._patch}'; it has {', '.join(patches)}")
        _, first, self._n_faces = patches[self._patch]
        faces, self._rest = read_faces(mesh / "faces"), read_points(mesh / "points")
        self._patch_faces = faces[first : first + self._n_faces]
        # OpenFOAM numbers the points of a patch as they come
        labels = np.array(list(dict.fromkeys(np.concatenate(self._patch_faces).tolist())))
        empty = [(start, n) for kind, start, n in patches.values() if kind == "empty"]
        heights = self._rest[:, 2]
        self._depth = float(np.ptp(heights))
        middle = heights.min() + self._depth / 2
        flat = np.isclose(np.abs(heights - middle), self._depth / 2, rtol=1e-6).all()
        self._dim = 2 if empty and flat else 3
        at = self._rest[labels]
        if self._dim == 3:
            self._depth = 1.0
            self._points, self._of_point = at, np.arange(len(labels))
        else:
            scale = np.ptp(self._rest, axis=0).max()
            keys = [tuple(key) for key in np.round(at[:, :2] / scale, 9).tolist()]
            number = {key: k for k, key in enumerate(dict.fromkeys(keys))}
            self._of_point = np.array([number[key] for key in keys])
            self._points = np.array([at[np.argmax(self._of_point == k), :2] for k in range(len(number))])
            owner_file = FoamFile(mesh / "owner")
            owner = owner_file.numbers(owner_file.body, whole=True)[0].astype(np.int64)
            front = [k for s, n in empty for k in range(s, s + n) if heights[faces[k]].max() < middle]
            self._plane, self._plane_owner = [faces[k] for k in front], owner[front]
        local = dict(zip(labels.tolist(), self._of_point.tolist(), strict=True))
        self._corners = [[local[p] for p in face.tolist()] for face in self._patch_faces]
        counts = np.array([len(corners) for corners in self._corners])
        rows, columns = np.repeat(np.arange(self._n_faces), counts), np.concatenate(self._corners)
        # of the force of a face for each of its points; two corners of a face in a plane are one point
        self._share = csr_array((np.repeat(1 / counts, counts), (rows, columns)), (self._n_faces, len(self._points)))

    def _mesh(self) -> Mesh:
        """The patch at rest: lines in a plane, else triangles and quadrilaterals (faces with more corners in a fan)."""
        if self._dim == 2:
            return Mesh(self._points, lines=[list(dict.fromkeys(face)) for face in self._corners], name=self._patch)
        quads = [face for face in self._corners if len(face) == 4]
        fans = [[f[0], f[k], f[k + 1]] for f in self._corners if len(f) != 4 for k in range(1, len(f) - 1)]
        return Mesh(self._points, triangles=fans or None, quadrilaterals=quads or None, name=self._patch)


def _times(case: Path) -> list[str]:
    """The time directories of a case, in order."""

    def is_time(path: Path) -> bool:
        try:
            return path.is_dir() and math.isfinite(float(path.name))
        except ValueError:
            return False

    return sorted((path.name for path in case.iterdir() if is_time(path)), key=float)


def _latest_time(case: Path) -> str | None:
    times = _times(case)
    return times[-1] if times else None


def _is_there(path: Path) -> bool:
    return path.exists() or path.with_name(path.name + ".gz").exists()


def _environment(program: str) -> dict[str, str]:
    """Packages of Linux distributions keep OpenFOAM's own settings where a program does not look by itself."""
    share = Path(program).resolve().parents[1] / "share" / "openfoam"
    return {"WM_PROJECT_DIR": str(share)} if (share / "etc" / "controlDict").exists() else {}


# -- files of OpenFOAM -------------------------------------------------------------------------------------------------


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
