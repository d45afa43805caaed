"""Snapshots of a run as they are in a file, one by one: a file may be larger than the memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cosolve.basics.checks import as_path
from cosolve.errors import SetupError
from cosolve.fields import vtkhdf
from cosolve.fields.field_subsystem import FieldSnapshot


def read_fields(path: str | Path) -> FieldSeries:
    """Read the snapshots that a run with `fields=FieldFile(...)` wrote, or still writes.

    Parameters
    ----------
    path : str or Path
        The file, also of a run that was killed.

    Returns
    -------
    FieldSeries
        The snapshots.

    Examples
    --------
    >>> import tempfile
    >>> from cosolve.fields import FieldSeries
    >>> still = FieldSnapshot(np.zeros((3, 2)), {"triangle": np.array([[0, 1, 2]])}, {"p": np.array([1.0, 2.0, 3.0])})
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = FieldSeries.write(folder.name + "/p.vtkhdf", [0.0, 0.5], [still, still])
    >>> series = read_fields(path)
    >>> len(series), series.t, series.at(0.5).point_data["p"]
    (2, array([0. , 0.5]), array([1., 2., 3.]))
    >>> folder.cleanup()
    """
    return FieldSeries(as_path("read_fields", path))


class FieldSeries:
    """A file of field snapshots.

    `series[i]` reads the snapshot of step `i`. Steps that are added to the file later are not seen.

    Parameters
    ----------
    path : Path
        The file.

    Attributes
    ----------
    t : ndarray
        Times of the steps in seconds.
    name : str
        Name of the subsystem.

    Examples
    --------
    >>> import tempfile
    >>> from cosolve.fields import FieldSeries
    >>> still = FieldSnapshot(np.zeros((3, 2)), {"triangle": np.array([[0, 1, 2]])}, {"p": np.array([1.0, 2.0, 3.0])})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     len(FieldSeries(FieldSeries.write(folder + "/p.vtkhdf", [0.0, 0.5], [still, still])))
    2
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path).absolute()
        with vtkhdf.opened(self.path) as root:
            count = vtkhdf.n_steps(root)
            # Times of the steps.
            self.t: npt.NDArray[np.float64] = root["Steps"]["Values"][:count]
            self.name = vtkhdf.name_of(root)

    @staticmethod
    def write(path: str | Path, t: npt.ArrayLike, snapshots: list[FieldSnapshot], name: str = "") -> Path:
        """Write snapshots to a file.

        Parameters
        ----------
        path : str or Path
            The file.
        t : array_like
            Times in seconds, one per snapshot.
        snapshots : list of FieldSnapshot
            Snapshots of the same cells and fields.
        name : str, default ""
            Name of the subsystem.

        Returns
        -------
        Path
            The file.
        """
        path, times = as_path("FieldSeries.write", path), np.asarray(t, dtype=np.float64)
        if not snapshots or times.shape != (len(snapshots),):
            raise SetupError(f"a file of fields takes one time per snapshot, not {times.shape} for {len(snapshots)}")
        vtkhdf.create(path, snapshots[0], name)
        for when, snapshot in zip(times, snapshots, strict=True):
            vtkhdf.append(path, float(when), snapshot)
        return path

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, step: int) -> FieldSnapshot:
        if not -len(self) <= step < len(self):
            raise IndexError(f"'{self.path.name}' holds {len(self)} steps; there is none of number {step}")
        with vtkhdf.opened(self.path) as root:
            return vtkhdf.read(root, step % len(self))

    def __iter__(self) -> Iterator[FieldSnapshot]:
        return (self[i] for i in range(len(self)))

    def at(self, t: float) -> FieldSnapshot:
        """Read the snapshot nearest to a time.

        Parameters
        ----------
        t : float
            Time in seconds.

        Returns
        -------
        FieldSnapshot
            The snapshot.
        """
        if not len(self):
            raise SetupError(f"'{self.path.name}' holds no steps")
        return self[int(np.argmin(np.abs(self.t - t)))]

    def mend(self) -> None:
        """Write the file anew with its complete steps.

        Only a file whose writer was killed in the middle of a step needs that: other programs refuse it.
        """
        vtkhdf.keep_first(self.path, len(self))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the fields: those at points first."""
        first = self[0]
        return (*first.point_data, *first.cell_data)

    def __repr__(self) -> str:
        span = f", t = {self.t[0]:.6g} to {self.t[-1]:.6g}" if len(self) else ""
        return f"FieldSeries('{self.path.name}': {len(self)} steps{span})"
