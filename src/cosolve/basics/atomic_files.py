"""Files that appear as a whole or not at all: what was there before stays until the new one is complete.

That holds for a power cut as well. A disk may write the new name of a file before its content, so the content is
brought to the disk first, and the folder, which holds the name, afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def draft_of(path: Path) -> Path:
    """Where a file is written before it takes its place; of a link, beside what it leads to."""
    return path.with_name(path.name + ".part")


def placed(path: Path) -> Path:
    """The file itself where `path` is a link, which stays one."""
    return path.resolve() if path.is_symlink() else path.absolute()


def take_place(draft: Path, target: Path) -> None:
    """Give a complete draft its name, on the disk itself."""
    file = os.open(draft, os.O_RDWR)
    try:
        os.fsync(file)
    finally:
        os.close(file)
    os.replace(draft, target)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk itself, where the system can."""
    with suppress(OSError):  # Windows does not open folders, and some network drives do not sync them
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A draft to write inside, which takes the place of `path` at the end, unless something is raised.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.txt")
    ...     _ = file.write_text("old")
    ...     try:
    ...         with replacing(file) as draft:
    ...             _ = draft.write_text("ne")
    ...             raise KeyboardInterrupt
    ...     except KeyboardInterrupt:
    ...         print(file.read_text(), len(list(Path(folder).iterdir())))
    old 1
    """
    target = placed(Path(path))
    if target.exists() and not target.is_file():  # a device, a named pipe
        yield target
        return
    draft = draft_of(target)
    try:
        yield draft
        take_place(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
