"""FMU archives on disk: unpacked once per content, safely, into a folder that goes when the process ends.

An archive may come from anywhere, so nothing in it is trusted: no entry leaves the folder, links and encrypted entries
are refused, and size and number of entries are limited. All instances of one FMU share one folder: unpacking again over
a loaded shared library would crash the process.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from platform import machine
from threading import Lock

from cosolve.errors import SetupError

#: Limits on what one archive may unpack to.
MAX_ENTRIES = 50_000
MAX_BYTES = 4 * 1024**3

_unpacked: dict[str, Path] = {}  # digest of the content -> folder
_lock = Lock()


def unpack(file: str | Path, holds: str = "modelDescription.xml", what: str = "FMU") -> Path:
    """The folder with the content of an FMU (or another archive); a folder that holds one already is taken as it is.

    >>> unpack("missing.fmu")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: there is no file 'missing.fmu'; give the path of an FMU
    """
    if not isinstance(file, (str, Path)):
        raise SetupError(f"an FMU is given by the path of its file, not by {file!r}")
    path = Path(file)
    if path.is_dir():
        if not (path / holds).is_file():
            raise SetupError(f"'{path}' is a folder without {holds}, so it is not an unpacked {what}")
        return path.resolve()
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise SetupError(f"there is no file '{path}'; give the path of an {what}") from None
    except OSError as error:
        raise SetupError(f"'{path}' cannot be read: {error.strerror or error}") from None
    with _lock:
        if digest not in _unpacked:
            _unpacked[digest] = _extract(path, digest, holds, what)
        return _unpacked[digest]


def _extract(path: Path, digest: str, holds: str, what: str) -> Path:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, ValueError, OSError):
        raise SetupError(
            f"'{path}' is not a zip archive, or it is damaged; an {what} is one: export or download it again"
        ) from None
    with archive:
        entries = archive.infolist()
        _refuse_unsafe(path, entries)
        if holds not in archive.namelist():
            raise SetupError(f"'{path}' holds no {holds} at its top level, so it is not an {what}")
        folder = _root() / digest[:16]
        folder.mkdir()
        try:
            for entry in entries:
                target = folder.joinpath(*PurePosixPath(entry.filename).parts)
                if entry.is_dir():
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as source, target.open("xb") as sink:
                    shutil.copyfileobj(source, sink)
                target.chmod(0o600 | (entry.external_attr >> 16 & 0o111))
        except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise SetupError(f"'{path}' cannot be unpacked: {error}; export or download it again") from None
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if type(error).__name__ == "error":  # zlib.error and lzma's, which share no base class
                raise SetupError(f"'{path}' is damaged: {error}; export or download it again") from None
            raise
    return folder


def _refuse_unsafe(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > MAX_ENTRIES:
        raise SetupError(f"'{path}' holds {len(entries)} entries; more than {MAX_ENTRIES} are not unpacked")
    size = sum(entry.file_size for entry in entries)
    if size > MAX_BYTES:
        raise SetupError(
            f"'{path}' would unpack to {size / 1024**3:.1f} GiB; more than {MAX_BYTES // 1024**3} are refused"
        )
    seen: set[str] = set()
    for entry in entries:
        name = entry.filename
        parts = name.split("/")
        # zipfile turns backslashes into slashes on Windows only; nobody needs them, nor drive letters
        if not name or name.startswith("/") or ".." in parts or "\\" in name or ":" in parts[0] or "\0" in name:
            raise SetupError(
                f"'{path}' holds an entry '{name}' that would be written outside its folder; it is refused"
            )
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise SetupError(f"'{path}' holds a link, '{name}'; archives with links are refused")
        if entry.flag_bits & 0x1:
            raise SetupError(f"'{path}' is encrypted ('{name}'); export the FMU without a password")
        if name in seen:
            raise SetupError(f"'{path}' holds the entry '{name}' twice; it is refused")
        seen.add(name)


_folders: list[Path] = []


def _root() -> Path:
    """The temporary folder of this process; made when first needed, removed at exit."""
    if not _folders:
        folder = Path(tempfile.mkdtemp(prefix="cosolve-fmu-"))
        _folders.append(folder)
        atexit.register(_remove, folder, os.getpid())
    return _folders[0]


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # not in a forked child
        shutil.rmtree(folder, ignore_errors=True)


def platform_folder(fmi: int) -> str:
    """The folder of this platform's binaries: FMI 2 says `linux64`, FMI 3 `x86_64-linux`."""
    system, old = {"win32": ("windows", "win"), "darwin": ("darwin", "darwin")}.get(sys.platform, ("linux", "linux"))
    arm = machine().lower() in ("aarch64", "arm64")
    wide = sys.maxsize > 2**32
    if fmi == 2:
        return f"{old}{64 if wide else 32}"
    return f"{'aarch64' if arm else 'x86_64' if wide else 'x86'}-{system}"


def library(folder: Path, fmi: int, identifier: str, shown: str | Path = "the FMU") -> Path:
    """The shared library of an unpacked FMU for this platform, or a sentence that says which ones there are."""
    suffix = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    here = platform_folder(fmi)
    found = folder / "binaries" / here / f"{identifier}{suffix}"
    if found.is_file():
        return found
    there = sorted(p.parent.name for p in (folder / "binaries").glob("*/*") if p.stem == identifier)
    has = f"only for {', '.join(there)}" if there else "for no platform"
    sources = (folder / "sources").is_dir()
    hint = "compile its sources with 'fmpy compile FILE'" if sources else "export it for this one"
    raise SetupError(f"'{shown}' has no binary for this platform ({here}/{identifier}{suffix}), {has}; {hint}")
