"""HDF5 files that are written whole or not at all.

The HDF5 library may end the process when a write fails, at once or when Python exits. So it writes through a file
object that takes whatever it is given, and tells afterwards whether everything got there.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class _Target(io.FileIO):
    """Writes until one fails, which `failure` tells, and takes the rest silently."""

    failure: OSError | None = None

    def write(self, data: Any) -> int:
        """All of it, as far as HDF5 knows."""
        left = memoryview(data).cast("B")
        size, at = len(left), self.tell()
        try:
            while left and self.failure is None:
                left = left[super().write(left) or 0 :]
        except OSError as failure:
            self.failure = failure
        if self.failure is not None:
            self.seek(at + size)
        return size

    def truncate(self, size: int | None = None) -> int:
        """To the length that HDF5 asks for."""
        try:
            return super().truncate(size)
        except OSError as failure:
            self.failure = self.failure or failure
            return size or 0


@contextmanager
def written_hdf5(path: Path, mode: str = "w", **options: Any) -> Iterator[Any]:
    """An open HDF5 file, new ("w") or to be changed ("r+"); at the end it is on the disk, or `OSError` is raised.

    >>> import tempfile, h5py
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_hdf5(Path(folder, "a.h5")) as file:
    ...         file["x"] = [1.0, 2.0]
    ...     with h5py.File(Path(folder, "a.h5")) as file:
    ...         file["x"][:]
    array([1., 2.])
    """
    import h5py

    with _Target(path, "w+" if mode == "w" else mode) as target:
        with h5py.File(target, mode, **options) as file:
            yield file
        if target.failure is not None:
            raise target.failure
        os.fsync(target.fileno())
