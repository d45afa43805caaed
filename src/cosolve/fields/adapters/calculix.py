"""CalculiX as a subsystem: forces on the nodes of a set go in, their displacements come out, one `ccx` per crossing.

The deck is the user's: a model and one `*STEP` with `*DYNAMIC` or `*STATIC` in it. A dynamic step begins again from the
restart file of the last macro point (`*RESTART`), so that rollback is another run from the same file. A static one has
no memory and is solved from rest every time.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.checks import as_path, positive
from cosolve.errors import SubsystemError
from cosolve.fields.adapters.calculix_deck import ALL_NODES, read_deck
from cosolve.fields.adapters.ports import field_ports
from cosolve.fields.adapters.program import StoredState, WorkingFolder, find_program, run_program
from cosolve.fields.adapters.sides import SHAPES
from cosolve.fields.field_subsystem import FieldSnapshot, FieldSubsystem
from cosolve.signal.polynomial import InputSignal

_REMEDY = "install CalculiX (Debian and Ubuntu: apt install calculix-ccx), or name it by program='/path/to/ccx'"
_JOB = "job"  # name of the files of ccx in the working folder


class CalculiX(FieldSubsystem):
    """A solid computed by CalculiX (`ccx`, a program of its own): port `force` in, port `displacement` out.

    `deck` is an input deck, `nodes` the name of the node set that is coupled. Values go node by node in the order of
    the set, two per node where the elements are plane, three otherwise; forces of plane elements are for the thickness
    of their `*SOLID SECTION`. Element sides whose nodes are all in the set become the cells of the mesh of both ports.

    Within a macro step forces go linearly from those of the last step to those of its end. So does every other load
    of the step (`AMPLITUDE=RAMP`) unless it has an `*AMPLITUDE` of its own or the `*STEP` card says otherwise; times of
    amplitudes count from the start of each macro step unless they say `TIME=TOTAL TIME`. Where the deck says `DIRECT`,
    its increment is shortened to a whole fraction of the macro step. CalculiX prints seven digits, which `noise` tells.

    `nominal={"displacement": 1e-2}` says what is large, for tolerances. `timeout` is for one crossing, in seconds;
    `keep` names a folder for deck, log and results of the last crossing, which are removed otherwise.

    ```python
    flag = cs.CalculiX("flag.inp", nodes="WET", timeout=60.0)
    system = cs.System({"fluid": fluid, "flag": flag})
    ```
    """

    noise = 1e-6
    stops_inside = False

    def __init__(
        self,
        deck: str | os.PathLike[str],
        nodes: str,
        *,
        nominal: Mapping[str, float] | None = None,
        program: str | os.PathLike[str] = "ccx",
        timeout: float | None = None,
        keep: str | os.PathLike[str] | None = None,
    ) -> None:
        self._deck = read_deck(as_path("CalculiX", deck))
        self._timeout = None if timeout is None else positive("CalculiX", "timeout", timeout)
        self._program = find_program(program, _REMEDY)
        self._dim = self._deck.dimension
        ours = self._deck.node_set(nodes)
        self._labels = np.array(sorted(self._deck.nodes))
        self._ours = np.searchsorted(self._labels, ours)  # rows of the coupled nodes among all
        self._points = np.array([self._deck.nodes[label] for label in self._labels.tolist()])
        mesh = self._deck.sides_of(ours, nodes)
        size = self._dim * len(ours)
        self.inputs, self.outputs = field_ports("CalculiX", {"force": size}, {"displacement": size}, nominal)
        self.meshes = {"force": mesh, "displacement": mesh}
        self._keep = keep
        self._folder: WorkingFolder | None = None

    # -- the contract -------------------------------------------------------------------------------------------------

    def start(self, t0: float) -> Any:
        if self._folder is None:
            self._folder = WorkingFolder("calculix", self._keep)
        self._t0 = t0  # CalculiX counts from 0
        self._restart: StoredState | None = None
        self._u = np.zeros((len(self._labels), self._dim))
        return self._u[self._ours].ravel()

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        assert self._folder is not None
        folder = self._folder.path
        self._clear(folder)
        begun = self._restart is not None
        (folder / f"{_JOB}.inp").write_text(self._deck.job(begun, t1 - t0, self._loads(u(t1))))
        if self._restart is not None:
            shutil.copyfile(self._restart.path, folder / f"{_JOB}.rin")
        run_program([self._program, _JOB], folder, folder / "log.ccx", self._timeout)
        self._u = self._displacements(folder / f"{_JOB}.dat", t1 - t0 if self._deck.static else t1 - self._t0)
        if not self._deck.static:
            written = folder / f"{_JOB}.rout"
            if not written.exists():
                raise SubsystemError(f"ccx wrote no restart file {written.name}, from which the next step would begin")
            self._restart = self._folder.store(written)
        return self._u[self._ours].ravel()

    def save(self) -> Any:
        return self._restart, self._u

    def restore(self, state: Any) -> None:
        self._restart, self._u = state

    def portable_state(self) -> Any:
        return None if self._restart is None else self._restart.packed(), self._u

    def set_portable_state(self, state: Any) -> None:
        assert self._folder is not None
        packed, self._u = state
        self._restart = None if packed is None else self._folder.unpack(packed)

    def snapshot(self) -> FieldSnapshot:
        """All nodes where they are now, with their displacements; elements by their corners where they have more."""
        cells: dict[str, list[npt.NDArray[np.int64]]] = {}
        for element in self._deck.elements:
            shape = SHAPES[len(element.nodes), self._dim]
            rows = np.searchsorted(self._labels, element.nodes[: shape.points])
            cells.setdefault(shape.kind, []).append(rows)
        points = self._points[:, : self._dim] + self._u
        return FieldSnapshot(points, {k: np.array(c) for k, c in cells.items()}, {"displacement": self._u.copy()})

    def close(self) -> None:
        """Remove the working folder now; otherwise it goes with this object."""
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    # -- files of CalculiX --------------------------------------------------------------------------------------------

    def _loads(self, force: npt.NDArray[np.float64]) -> str:
        """Data lines of `*CLOAD`: every component of every node, so that none is left over from the last step."""
        labels = self._labels[self._ours]
        rows = force.reshape(-1, self._dim)
        return "\n".join(
            f"{label}, {axis + 1}, {value:.12e}"
            for label, row in zip(labels.tolist(), rows.tolist(), strict=True)
            for axis, value in enumerate(row)
        )

    def _displacements(self, path: Path, time: float) -> npt.NDArray[np.float64]:
        """The last displacements of all nodes in a `.dat` file."""
        text = path.read_text(errors="replace") if path.exists() else ""
        _, found, rest = text.rpartition(f"for set {ALL_NODES} and time")
        if not found:
            raise SubsystemError(f"ccx ended well but wrote no displacements into {path.name}")
        try:
            reached, _, body = rest.partition("\n")
            rows = np.array([line.split()[: 1 + self._dim] for line in body.splitlines() if line.strip()], dtype=float)
            complete = rows.shape == (len(self._labels), 1 + self._dim) and bool((rows[:, 0] == self._labels).all())
            on_time = math.isclose(float(reached), time, rel_tol=1e-5)
        except ValueError:  # not numbers, lines of different lengths
            complete, on_time = False, True
        if not complete:
            raise SubsystemError(f"{path.name} of ccx ends in the middle or holds something else than displacements")
        if not on_time:
            raise SubsystemError(f"ccx stopped at {reached.strip()} s of its own time instead of {time:.7g} s")
        return rows[:, 1:]

    @staticmethod
    def _clear(folder: Path) -> None:
        for path in folder.glob(f"{_JOB}.*"):
            path.unlink()
