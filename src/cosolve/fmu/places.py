"""Where the files of FMUs are looked for.

A path in a Python script is relative to the current folder. A path in a file (a system file, a module that was exported
as an FMU) belongs to that file, wherever it is run from: builders of a system from a file declare it with `looking_in`.
`watching` tells which FMUs were taken, so that an export can pack them; `moved` gives those that were packed under
another name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_folders: ContextVar[tuple[Path, ...]] = ContextVar("folders", default=())
_moved: ContextVar[Mapping[str, Path]] = ContextVar("moved")
_taken: ContextVar[dict[str, Path] | None] = ContextVar("taken", default=None)


def found_file(file: str | Path) -> str | Path:
    """The path of an FMU: as given, or in one of the folders that count now.

    Anything that is no path, and paths that lead nowhere, come back unchanged for others to complain about.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "wheel.fmu").write_bytes(b"")
    ...     with looking_in(folder):
    ...         found_file("wheel.fmu") == Path(folder, "wheel.fmu")
    True
    """
    if not isinstance(file, (str, Path)):
        return file
    path = _moved.get({}).get(str(file))
    if path is None:
        path = next((f / file for f in _folders.get() if (f / file).exists()), None)
    taken = _taken.get()
    if taken is not None and (path or Path(file)).exists():
        taken[str(file)] = (path or Path(file)).resolve()
    return file if path is None else path


@contextmanager
def looking_in(folder: str | Path, moved: Mapping[str, Path] | None = None) -> Iterator[None]:
    """Look in this folder first; `moved` says where paths lead that are not below it."""
    before = _folders.set((Path(folder).absolute(), *_folders.get()))
    map_before = _moved.set({**_moved.get({}), **(moved or {})})
    try:
        yield
    finally:
        _moved.reset(map_before)
        _folders.reset(before)


@contextmanager
def watching(tell_outside: bool = False) -> Iterator[dict[str, Path]]:
    """The FMUs taken inside: the path as it was written, and the file it led to; who watches outside may know too."""
    taken: dict[str, Path] = {}
    before = _taken.set(taken)
    try:
        yield taken
    finally:
        _taken.reset(before)
        outside = _taken.get()
        if tell_outside and outside is not None:
            outside.update(taken)
