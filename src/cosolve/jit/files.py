"""Files of machine code: with a checksum, and read only where no other user of the machine can have written them."""

from __future__ import annotations

import os
from pathlib import Path
from zlib import crc32

from cosolve.jit.sources import PACKAGE


def packed(code: bytes) -> bytes:
    """What a file of machine code holds.

    >>> len(packed(b"code"))
    8
    """
    return crc32(code).to_bytes(4, "little") + code


def read(file: Path) -> bytes:
    """The machine code in a file; `OSError` where there is none, or none to be run."""
    data = file.read_bytes()
    if data[:4] != crc32(data[4:]).to_bytes(4, "little"):
        raise OSError(f"{file} is damaged")
    refuse_foreign(file)
    return data[4:]


def refuse_foreign(file: Path) -> None:
    """`OSError` unless this user, root or the owner of the package has written a file, and only its owner's group can.

    Who owns the package can run code in it anyway.
    """
    found = file.stat()
    if hasattr(os, "geteuid") and (
        found.st_uid not in (os.geteuid(), 0, PACKAGE.stat().st_uid) or found.st_mode & 0o002
    ):
        raise OSError(f"{file} can have been written by another user")
