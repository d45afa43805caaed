"""What a coupling leaves in files beside a participant: logs of iterations, watch points, watch integrals, exports.

The files, their names and columns are those that tools for solvers adapted to preCICE 3 read. A recorder also carries
out the actions of a participant, which change data on the way.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.mapping import FieldMapping, Mesh
from cosolve.mapping.projection import nearest_projection
from cosolve.participants.client import Waveform
from cosolve.precice.acceleration import Samples
from cosolve.precice.config import Configuration, Export, ParticipantTag, Watch
from cosolve.precice.export import write_export
from cosolve.precice.fields import Geometry, shares

if TYPE_CHECKING:
    from cosolve.precice.coupling import Member, Side


class Recorder:
    """Writes the files of one participant into `folder`; nothing where that is None."""

    def __init__(self, folder: str | None, tag: ParticipantTag, configuration: Configuration) -> None:
        self.folder = None if folder is None else Path(folder)
        self.tag, self.configuration = tag, configuration
        self._files: dict[str, IO[str]] = {}
        self._watches: list[tuple[Watch, FieldMapping | None, Vector, IO[str] | None]] = []
        self._last: dict[tuple[str, str], Vector] = {}
        self._areas: dict[str, Vector] = {}
        self.counts: list[int] = []  # iterations of each window
        self._iterations = 0
        #: False when nothing is watched or exported: then no value is looked at
        self.active = bool(tag.watches or tag.exports)
        self.geometries: dict[str, Geometry] = {}

    def begin(self, geometries: dict[str, Geometry]) -> None:
        """All meshes are there."""
        self.geometries = geometries
        for action in self.tag.actions:
            if action.kind.endswith("area"):
                self._areas[action.mesh] = shares(geometries[action.mesh], volume=False)
        if self.folder is None:
            return
        for watch in self.tag.watches:
            self._watches.append(self._watch(watch, geometries[watch.mesh]))

    # -- actions

    def acted(self, raw: dict[tuple[str, str], Any], reading: bool) -> dict[tuple[str, str], Any]:
        """Written data after the actions on them."""
        if not (self.tag.actions or self.active):
            return raw
        for action in self.tag.actions:
            if action.reading is not reading:
                continue
            key = (action.mesh, action.target)
            if action.kind == "summation":
                total = sum(raw[action.mesh, name][0] for name in action.sources)
                raw = {**raw, key: (total, None)}
            elif key in raw:
                raw = {**raw, key: (self._by_area(action.kind, action.mesh, raw[key][0]), raw[key][1])}
        if self.active and not reading:
            self._last.update({key: values for key, (values, _) in raw.items()})
        return raw

    def acted_on_reading(self, member: Member, mesh: str, name: str, samples: Samples) -> Samples:
        """Data to be read after the actions on them."""
        if not self.tag.actions:
            return samples
        for action in self.tag.actions:
            if not action.reading or (action.mesh, action.target) != (mesh, name):
                continue
            if action.kind == "summation":
                parts = [member.current(mesh, source, -1) for source in action.sources]
                longest = max(parts, key=len)
                waves = [Waveform([t for t, _ in part], [v for _, v in part]) for part in parts]
                samples = [(t, np.sum([wave.at(t) for wave in waves], axis=0)) for t, _ in longest]
            else:
                samples = [(t, self._by_area(action.kind, mesh, v)) for t, v in samples]
        return samples

    def _by_area(self, kind: str, mesh: str, values: Vector) -> Vector:
        area = self._areas[mesh]
        rows = values.reshape(len(area), -1)
        return (rows * area[:, None] if kind.startswith("multiply") else rows / area[:, None]).ravel()

    # -- iterations

    def _log(self, kind: str, header: str) -> IO[str]:
        assert self.folder is not None
        if kind not in self._files:
            file = (self.folder / f"precice-{self.tag.name}-{kind}.log").open("w", encoding="utf-8")
            file.write(header + "\n")
            self._files[kind] = file
        return self._files[kind]

    def iteration(self, side: Side) -> None:
        """The one who decides has measured."""
        if self.folder is None:
            return
        measures = side.scheme.measures
        file = self._log("convergence", "  ".join(["TimeWindow", "Iteration", *measures.titles]))
        shown = "  ".join(f"{value:.8e}" for value in measures.residuals)
        file.write(f"{side.window:6d}  {side.iteration:6d}  {shown}\n".rstrip() + "\n")

    def iterations(self, side: Side, converged: bool, columns: int | None) -> None:
        """A window of an implicit scheme is complete (not yet counted in `side`)."""
        self.counts.append(side.iteration)
        if self.folder is None:
            return
        header = ["TimeWindow", "TotalIterations", "Iterations", "Convergence"]
        row = [side.window, side.total + side.iteration, side.iteration, int(converged)]
        if columns is not None:
            header += ["QNColumns", "DeletedQNColumns", "DroppedQNColumns"]
            row += [columns, 0, 0]
        self._log("iterations", "  ".join(header)).write("  ".join(f"{value:6d}" for value in row) + "\n")

    # -- values

    def window(self, member: Member, ended: list[Side]) -> None:
        """A window is complete: write what is watched and exported."""
        if self.folder is None or not self.active:
            return
        number = max(side.window - 1 for side in ended) if ended else 0
        values = self._values(member)
        for watch in self._watches:
            self._write_watch(watch, member.time, values)
        for export in self.tag.exports:
            if number % max(export.every, 1) == 0:
                self._export(export, "init" if number == 0 else f"dt{number}", values)

    def iterated(self, member: Member) -> None:
        """A window was advanced once more, for good or not."""
        exports = [export for export in self.tag.exports if export.every_iteration]
        if self.folder is None or not exports:
            return
        self._iterations += 1
        values = self._values(member)
        for export in exports:
            self._export(export, f"it{self._iterations}", values)

    def _values(self, member: Member) -> dict[tuple[str, str], Vector]:
        found = dict(self._last)
        for mesh, name, components, _ in member.data:
            if (mesh, name) in member.tag.read:
                found[mesh, name] = member.current(mesh, name, components)[0 if member.complete else -1][1]
        for mesh, use in member.tag.meshes.items():
            for name in self.configuration.meshes[mesh][1]:
                if use.provided and (mesh, name) not in found:
                    n = len(self.geometries[mesh].points)
                    found[mesh, name] = np.zeros(n * self.configuration.components(name, mesh))
        return found

    def _titles(self, mesh: str) -> list[str]:
        titles = []
        for name in self.configuration.meshes[mesh][1]:
            n = self.configuration.components(name, mesh)
            titles += [name] if n == 1 else [f"{name}{k}" for k in range(n)]
        return titles

    def _watch(self, watch: Watch, where: Geometry) -> Any:
        assert self.folder is not None
        if watch.coordinates is not None:
            operator = nearest_projection(where.celled(), Mesh([watch.coordinates]))
            file = (self.folder / f"precice-{self.tag.name}-watchpoint-{watch.name}.log").open("w", encoding="utf-8")
            axes = [f"Coordinate{k}" for k in range(where.points.shape[1])]
            file.write("  ".join(["Time", *axes, *self._titles(watch.mesh)]) + "\n")
            self._files[f"watch {watch.name}"] = file
            return watch, operator, operator.consistent(where.points.ravel()), file
        file = (self.folder / f"precice-{self.tag.name}-watchintegral-{watch.name}.log").open("w", encoding="utf-8")
        has_cells = any(len(cells) for cells in where.cells.values())
        weights = shares(where, volume=False) if has_cells and watch.scaled else np.ones(len(where.points))
        file.write("  ".join(["Time", *self._titles(watch.mesh), *(["SurfaceArea"] if has_cells else [])]) + "\n")
        self._files[f"watch {watch.name}"] = file
        return watch, None, weights, file

    def _write_watch(self, entry: Any, t: float, values: dict[tuple[str, str], Vector]) -> None:
        watch, operator, place, file = entry
        row = [t]
        if operator is not None:
            row += place.tolist()
        for name in self.configuration.meshes[watch.mesh][1]:
            field = values[watch.mesh, name]
            if operator is not None:
                row += np.atleast_1d(operator.consistent(field)).tolist()
            else:
                row += (place @ field.reshape(len(place), -1)).tolist()
        if operator is None:
            where = self.geometries[watch.mesh]
            if any(len(cells) for cells in where.cells.values()):
                row.append(float(shares(where, volume=False).sum()))
        file.write("  ".join(f"{value:.8e}" for value in row) + "\n")

    def _export(self, export: Export, step: str, values: dict[tuple[str, str], Vector]) -> None:
        assert self.folder is not None
        folder = self.folder / export.directory
        folder.mkdir(parents=True, exist_ok=True)
        for mesh, use in self.tag.meshes.items():
            if use.provided:
                data = {
                    name: values[mesh, name].reshape(len(self.geometries[mesh].points), -1)
                    for name in self.configuration.meshes[mesh][1]
                }
                write_export(folder / f"{mesh}-{self.tag.name}.{step}.{export.kind}", self.geometries[mesh], data)

    def close(self) -> None:
        """All files are complete."""
        for file in self._files.values():
            file.close()
