"""One writer per file: a lock that the operating system takes back from a process that was killed."""

from __future__ import annotations

import io
import os
from pathlib import Path
from types import ModuleType
from typing import IO

from cosolve.errors import SetupError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


def claim(file: IO[bytes], path: Path, shared: bool = False) -> None:
    """Hold an open file until it is closed; raises where another run, in this process or another, does."""
    if fcntl is None:
        return
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SetupError(
            f"the run that writes '{path}' is still going on; wait, end it, or give this one another file"
        ) from None
    except OSError:  # a file system without locks
        return


def refuse_claimed(path: Path) -> None:
    """Raise where a run that goes on writes this file."""
    try:
        file = io.FileIO(path, "r+")
    except OSError:  # none, or none that can be written: the writer raises the error
        return
    with file:
        claim(file, path, shared=True)  # programs that read HDF5 hold it in this way


def claimed_draft(draft: Path, target: Path) -> io.FileIO:
    """An empty file that will take the place of `target`, held; raises where another run writes either."""
    refuse_claimed(target)
    while True:
        file = io.FileIO(os.open(draft, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666), "r+")
        try:
            claim(file, target)
            if draft.exists() and os.path.samestat(os.fstat(file.fileno()), draft.stat()):
                refuse_claimed(target)  # another run may have moved its draft there in the meantime
                file.truncate(0)
                return file
        except BaseException:
            file.close()
            raise
        file.close()
