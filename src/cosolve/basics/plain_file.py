"""Paths given by users: refused before anything is opened when they lead to no plain file.

Opening a named pipe waits for a writer, and reading `/dev/zero` never ends, so what stands behind a path
is looked at first.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cosolve.basics.wording import shown
from cosolve.errors import SetupError

_OTHERS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def refuse_no_file(path: str | Path, folder: bool = False) -> None:
    """Raise for what is there but is no file, and for text that cannot be a path; a missing file passes.

    With `folder` a folder passes too. Opening a missing file raises `FileNotFoundError` and says what was wanted.

    >>> refuse_no_file("/dev/null")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: '/dev/null' cannot be read: it is a device, not a file
    """
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise SetupError(f"'{shown(path)}' cannot be read: {error.strerror or error}") from None
    except ValueError:  # a NUL, or half of a character
        raise SetupError(f"'{shown(path)}' is not a path: it holds a character that no path has") from None
    for is_kind, word in _OTHERS:
        if is_kind(mode) and not (folder and stat.S_ISDIR(mode)):
            raise SetupError(f"'{shown(path)}' cannot be read: it is {word}, not a file")
