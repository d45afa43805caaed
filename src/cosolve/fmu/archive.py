"""FMU archives on disk: unpacked once per content, safely, into a folder that goes when the process ends.

An archive may come from anywhere, so nothing in it is trusted: no entry leaves the folder, links and encrypted entries
are refused, and size and number of entries are limited. All instances of one FMU share one folder: unpacking again over
a loaded shared library would crash the process.
"""

from __future__ import annotations

import atexit
import errno
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from platform import machine
from threading import Lock

from cosolve.basics.plain_file import refuse_no_file
from cosolve.basics.wording import listed, shown
from cosolve.errors import SetupError, warn

#: Limits on what one archive may unpack to. Shared libraries shrink to a half or a quarter when packed and tables to a
#: twentieth, while deflate packs zeros a thousandfold: a large archive that grows beyond `MAX_RATIO` holds nothing that
#: a model needs. Up to `FREE_BYTES` the ratio does not matter: a small file may well hold a table of zeros.
MAX_ENTRIES = 50_000
MAX_BYTES = 4 * 1024**3
FREE_BYTES = 256 * 1024**2
MAX_RATIO = 200
_PIECE = 1024**2

_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_SUFFIXES = {"win32": ".dll", "darwin": ".dylib"}

_unpacked: dict[str, Path] = {}  # digest of the content -> folder
_origins: dict[Path, Path] = {}  # folder -> the file it was last asked for by
_misnamed: set[Path] = set()  # folders whose library has another name, which was said
_lock = Lock()


def unpack(file: str | Path, holds: str = "modelDescription.xml", what: str = "FMU") -> Path:
    """The folder with the content of an FMU (or another archive); a folder that holds one already is taken as it is.

    >>> unpack("missing.fmu")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: there is no file 'missing.fmu'; give the path of an FMU
    """
    if not isinstance(file, (str, Path)) or not str(file):
        raise SetupError(f"an FMU is given by the path of its file, not by {file!r}")
    path = Path(file)
    refuse_no_file(path, folder=True)
    if path.is_dir():
        if not (path / holds).is_file():
            raise SetupError(f"'{path}' is a folder without {holds}, so it is not an unpacked {what}")
        return path.resolve()
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        raise SetupError(f"there is no file '{path}'; give the path of an {what}") from None
    except OSError as error:
        raise SetupError(f"'{path}' cannot be read: {error.strerror or error}") from None
    with _lock:
        if digest not in _unpacked:
            _unpacked[digest] = _extract(path, digest, holds, what)
        folder = _unpacked[digest]
        if not (folder / holds).is_file():  # unpacked as something else before, as an SSP for example
            raise SetupError(f"'{path}' holds no {holds} at its top level, so it is not an {what}")
        _origins[folder] = path
        return folder


def origin(folder: Path) -> Path:
    """The file that a folder was unpacked from; the folder itself where there was none.

    >>> str(origin(Path("plain")))
    'plain'
    """
    return _origins.get(folder, folder)


def _extract(path: Path, digest: str, holds: str, what: str) -> Path:
    try:
        archive = zipfile.ZipFile(path)
    except Exception:  # zipfile meets damaged bytes with many kinds of error
        raise SetupError(
            f"'{path}' is not a zip archive, or it is damaged; an {what} is one: export or download it again"
        ) from None
    with archive:
        entries = _safe_entries(path, archive.infolist())
        if (holds,) not in entries:
            inside = next((parts for parts in entries if parts[-1] == holds and len(parts) == 2), None)
            hint = f" (it lies in '{inside[0]}': pack what is in that folder, not the folder)" if inside else ""
            raise SetupError(f"'{path}' holds no {holds} at its top level, so it is not an {what}{hint}")
        folder = _root() / digest[:16]
        folder.mkdir()
        try:
            _write(archive, entries, folder, path)
        except SetupError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise _not_written(path, error) from None
        except Exception as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise SetupError(f"'{path}' is damaged: {shown(error)}; export or download it again") from None
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return folder


_Entries = Mapping[tuple[str, ...], zipfile.ZipInfo]


def _write(archive: zipfile.ZipFile, entries: _Entries, folder: Path, path: Path) -> None:
    """Unpack, counting what is really written: sizes in the archive's list need not be true."""
    packed, written = max(path.stat().st_size, 1), 0
    for parts, entry in entries.items():
        target = folder.joinpath(*parts)
        if _is_folder(entry):
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(entry) as source, target.open("xb") as sink:
            while piece := source.read(_PIECE):
                written += len(piece)
                _refuse_growth(path, written, packed)
                sink.write(piece)
        target.chmod(0o600 | (entry.external_attr >> 16 & 0o111))


def _refuse_growth(path: Path, size: int, packed: int) -> None:
    if size > MAX_BYTES:
        raise SetupError(f"'{path}' would unpack to more than {_measured(MAX_BYTES)}, which is refused")
    if size > FREE_BYTES and size > MAX_RATIO * packed:
        raise SetupError(
            f"'{path}' has {_measured(packed)} and would unpack to {_measured(size)} or more; archives that grow more "
            f"than {MAX_RATIO} times are refused: unpack it yourself and give the folder if you trust it"
        )


def _not_written(path: Path, error: OSError) -> SetupError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SetupError(f"'{path}' cannot be unpacked: no space is left in '{_root().parent}'; set TMPDIR to another")
    return SetupError(f"'{path}' cannot be unpacked: {shown(error.strerror or error)}; export or download it again")


def _safe_entries(path: Path, found: list[zipfile.ZipInfo]) -> _Entries:
    """What is to be written, by the parts of its name; raises for what is not unpacked."""
    if len(found) > MAX_ENTRIES:
        raise SetupError(f"'{path}' holds {len(found)} entries; more than {MAX_ENTRIES} are not unpacked")
    _refuse_growth(path, sum(entry.file_size for entry in found), max(path.stat().st_size, 1))
    entries: dict[tuple[str, ...], zipfile.ZipInfo] = {}
    for entry in found:
        name = shown(entry.filename)
        parts = _parts(entry.filename)
        if parts is None:
            raise SetupError(
                f"'{path}' holds an entry '{name}' that would be written outside its folder; it is refused"
            )
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise SetupError(f"'{path}' holds a link, '{name}'; archives with links are refused")
        if entry.flag_bits & 0x1:
            raise SetupError(f"'{path}' is encrypted ('{name}'); export the FMU without a password")
        if entry.compress_type not in _PLAIN:
            raise SetupError(
                f"'{path}' packs '{name}' by zip method {entry.compress_type}; FMI has deflate only: pack it with that"
            )
        if not parts:
            continue
        first = entries.setdefault(parts, entry)
        # some tools list a folder, or a file, twice; only where the two differ is it open which one counts
        if not (_is_folder(first) and _is_folder(entry)) and _content(first) != _content(entry):
            raise SetupError(
                f"'{path}' holds the entry '{name}' twice with different content, and which one counts is not known; "
                "pack it again"
            )
    return entries


def _content(entry: zipfile.ZipInfo) -> tuple[bool, int, int]:
    return _is_folder(entry), entry.file_size, entry.CRC


def _parts(name: str) -> tuple[str, ...] | None:
    r"""The name of an entry as names of folders and a file, None when it leaves its folder.

    Some tools on Windows write backslashes; they mean what slashes mean.

    >>> _parts("binaries\\win64/x.dll"), _parts("a/../../b"), _parts("C:/b")
    (('binaries', 'win64', 'x.dll'), None, None)
    """
    name = name.replace("\\", "/")
    parts = name.split("/")
    if not name or name.startswith("/") or ".." in parts or ":" in parts[0] or "\0" in name:
        return None
    return tuple(part for part in parts if part not in ("", "."))


def _is_folder(entry: zipfile.ZipInfo) -> bool:
    return entry.filename.endswith(("/", "\\"))


def _measured(size: int) -> str:
    """A number of bytes as one reads it.

    >>> _measured(4 * 1024**2), _measured(900)
    ('4.0 MiB', '900 B')
    """
    for unit, one in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if size >= one:
            return f"{size / one:.1f} {unit}"
    return f"{size} B"


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


def is_file_name(identifier: str) -> bool:
    """True when a model identifier can name a library in the FMU; a path would name one anywhere on the machine.

    >>> is_file_name("Tank_2"), is_file_name("/usr/lib/libm"), is_file_name("../other")
    (True, False, False)
    """
    return identifier not in ("", ".", "..") and identifier.isprintable() and not any(c in identifier for c in "/\\:")


def library(folder: Path, fmi: int, identifier: str, shown: str | Path = "the FMU") -> Path:
    """The shared library of an unpacked FMU for this platform, or a sentence that says which ones there are.

    FMI says that it has the name of the model identifier. Where another tool did not keep to that and there is only one
    library, that one is meant and taken, with a warning; the FMU itself compares its token with the description's.
    """
    if not is_file_name(identifier):
        raise SetupError(f"'{shown}' has the model identifier {identifier!r}, which is no name of a library in it")
    _refuse_draft(folder, shown)
    suffix = _SUFFIXES.get(sys.platform, ".so")
    here = platform_folder(fmi)
    wanted = f"{identifier}{suffix}"
    found = folder / "binaries" / here / wanted
    if found.is_file():
        return found
    sources = (folder / "sources").is_dir()
    hint = "compile its sources with 'fmpy compile FILE'" if sources else "export it for this one"
    others = _libraries(folder / "binaries" / here)
    if len(others) == 1:
        if folder not in _misnamed:
            _misnamed.add(folder)
            warn(
                f"'{shown}' has no library {wanted}, as its modelIdentifier says; {others[0]}, the only one in "
                f"binaries/{here}, is taken instead",
                UserWarning,
            )
        return folder / "binaries" / here / others[0]
    if others:
        raise SetupError(
            f"'{shown}' has no library {wanted} for this platform: binaries/{here} holds "
            f"{listed(others, 4, quote=False)}, but its modelIdentifier is '{identifier}'; "
            "rename one of them, or export it again"
        )
    there = sorted(p.name for p in (folder / "binaries").glob("*") if _libraries(p))
    has = f"only for {listed(there, 4, quote=False)}" if there else "for no platform"
    named = [p for p in there if any(Path(name).stem == identifier for name in _libraries(folder / "binaries" / p))]
    if there and not named:
        has += f" (there as {listed(_libraries(folder / 'binaries' / there[0]), 4, quote=False)})"
    raise SetupError(f"'{shown}' has no binary for this platform ({here}/{wanted}), {has}; {hint}")


_DRAFT = re.compile(rb"fmiVersion\s*=\s*[\"']\s*(([0-9.]+)-(?:alpha|beta)[.0-9]*)")


def _refuse_draft(folder: Path, shown: str | Path) -> None:
    """Libraries made for drafts of FMI 3.0 have functions of the same names with other arguments."""
    try:
        with (folder / "modelDescription.xml").open("rb") as file:
            said = _DRAFT.search(file.read(4096))
    except OSError:
        return
    if said is not None:
        raise SetupError(
            f"'{shown}' was made for FMI {said[1].decode()}, a draft whose functions differ from those of FMI "
            f"{said[2].decode()}; export it for FMI 2.0 or 3.0"
        )


def _libraries(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.glob("*") if p.suffix in (".so", ".dll", ".dylib"))
