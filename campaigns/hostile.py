"""Archives made to do harm.

FMUs, SSPs and saved states that would fill the disk, write elsewhere, or load what is not theirs.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import cosolve as cs
from campaigns.fuzz import verdict
from campaigns.page import Outcome
from cosolve.fmu import archive
from cosolve.run import Snapshot

_HEAD = '<fmiModelDescription fmiVersion="2.0" modelName="m" guid="g"><CoSimulation modelIdentifier="{}"/>'
_TAIL = "<ModelVariables/><ModelStructure/></fmiModelDescription>"
OUTSIDE = ("../evil", "a/../../evil", "/evil", "//evil", "..\\evil", "\\evil", "c:\\evil", "c:/evil", "\\\\host\\evil")
IDENTIFIERS = ("/usr/lib/evil", "../evil", "..\\evil", "a/b", "a\\b", "c:evil", ".", "..", "", "a\0b", "evil.so/../x")
Reader = Callable[[Path], object]


def _packed(file: Path, *entries: tuple[str | zipfile.ZipInfo, bytes], identifier: str = "m") -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("modelDescription.xml", _HEAD.format(identifier.replace("\0", "&#0;")) + _TAIL)
        for name, data in entries:
            info = zipfile.ZipInfo(name) if isinstance(name, str) else name
            zipped.writestr(info, data, zipfile.ZIP_DEFLATED)
    return file


def _special(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


def _lying(file: Path) -> Path:
    """Says that an entry has 10 bytes, and unpacks to 2 GB."""
    deflated = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = b"".join([*(deflated.compress(bytes(2**20)) for _ in range(2048)), deflated.flush()])
    _packed(file, ("resources/bomb", b"0123456789"))
    whole = bytearray(file.read_bytes())
    with zipfile.ZipFile(file) as zipped:
        info = zipped.getinfo("resources/bomb")
        start = info.header_offset + 30 + len(info.filename)
        old = info.compress_size
        listing = zipped.start_dir
    whole[start : start + old] = data
    shift = len(data) - old
    where = listing + shift
    for sign, offset in ((b"PK\x01\x02", 20), (b"PK\x03\x04", 18)):
        at = -1
        while (at := whole.find(sign, at + 1)) >= 0:
            name = at + (46 if sign == b"PK\x01\x02" else 30)
            if whole[name : name + 14] == b"resources/bomb":
                whole[at + offset : at + offset + 4] = len(data).to_bytes(4, "little")
    end = whole.rfind(b"PK\x05\x06")
    whole[end + 16 : end + 20] = where.to_bytes(4, "little")
    file.write_bytes(whole)
    return file


def cases(folder: Path) -> Iterator[tuple[str, Path, Reader, str]]:
    """What, the file, who reads it, and what has to become of it ("refused", or "either")."""
    fmu = folder / "m.fmu"
    for name in OUTSIDE:
        yield "an entry outside", _packed(fmu, (name, b"evil")), archive.unpack, "refused"
    for target in (b"/etc/passwd", b"../..", b"resources"):
        link = _special("resources/link", stat.S_IFLNK | 0o777)
        through = ("resources/link/evil", b"evil")
        yield (
            "a symbolic link, and an entry through it",
            _packed(fmu, (link, target), through),
            archive.unpack,
            "either",
        )
    for mode in (stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK):
        yield (
            "a device, pipe or socket",
            _packed(fmu, (_special("resources/x", mode | 0o666), b"")),
            archive.unpack,
            "either",
        )
    for mode in (0o4777, 0o2777):
        setuid = (_special("binaries/x", stat.S_IFREG | mode), b"x")
        yield "setuid bits", _packed(fmu, setuid), archive.unpack, "either"
    for identifier in IDENTIFIERS:
        yield "a library elsewhere", _packed(fmu, identifier=identifier), cs.load_fmu, "refused"
    yield "4 GB of zeros in one entry", _bomb(fmu, 1), archive.unpack, "refused"
    yield "4 GB of zeros in many entries", _bomb(fmu, 64), archive.unpack, "refused"
    yield "an entry longer than it says", _lying(fmu), archive.unpack, "refused"
    many = ((f"resources/{n}", b"") for n in range(200_000))
    yield "200 000 entries", _packed(fmu, *many), archive.unpack, "either"
    yield "a name of 60 000 characters", _packed(fmu, ("a" * 60_000, b"x")), archive.unpack, "refused"
    yield "folders 2000 deep", _packed(fmu, ("d/" * 2000 + "x", b"x")), archive.unpack, "refused"
    billion = "<!DOCTYPE x [" + _entities() + ']><fmiModelDescription fmiVersion="2.0" modelName="&e9;"/>'
    for text in (
        billion,
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><fmiModelDescription>&e;</fmiModelDescription>',
    ):
        with zipfile.ZipFile(fmu, "w") as zipped:
            zipped.writestr("modelDescription.xml", text)
        yield "XML entities", fmu, cs.load_fmu, "refused"
    ssp = folder / "s.ssp"
    for source in ("../../../etc/passwd", "/etc/passwd", "file:///dev/zero", "http://127.0.0.1:1/x"):
        with zipfile.ZipFile(ssp, "w") as zipped:
            zipped.writestr("SystemStructure.ssd", _structure(source))
        yield "an SSP with a component elsewhere", ssp, cs.fmi.read_ssp, "refused"
    for entry in OUTSIDE:
        with zipfile.ZipFile(ssp, "w") as zipped:
            zipped.writestr("SystemStructure.ssd", _structure("resources/m.fmu"))
            zipped.writestr(zipfile.ZipInfo(entry), b"evil")
        yield "an SSP with an entry outside", ssp, cs.fmi.read_ssp, "refused"
    state = folder / "s.state"
    with zipfile.ZipFile(state, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("state.json", b"[" * 100_000)
    yield "a saved state nested 100 000 deep", state, Snapshot.read, "refused"
    for special in ("/dev/zero", "/dev/full", "/proc/self/mem", str(folder)):
        for reader in (cs.load_fmu, cs.fmi.read_ssp, Snapshot.read, cs.load_result, cs.load_system):
            yield "a device or folder instead of a file", Path(special), reader, "refused"
    fifo = folder / "fifo.fmu"
    os.mkfifo(fifo)
    for reader in (cs.load_fmu, cs.fmi.read_ssp, Snapshot.read, cs.load_result, cs.load_system):
        yield "a pipe instead of a file", fifo, reader, "refused"


def _bomb(file: Path, entries: int) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as zipped:
        zipped.writestr("modelDescription.xml", _HEAD.format("m") + _TAIL)
        for n in range(entries):
            with zipped.open(zipfile.ZipInfo(f"resources/{n}"), "w", force_zip64=True) as entry:
                for _ in range(4096 // entries):
                    entry.write(bytes(2**20))
    return file


def _entities() -> str:
    return '<!ENTITY e0 "ha">' + "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))


def _structure(source: str) -> str:
    return (
        '<ssd:SystemStructureDescription xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" '
        'version="1.0" name="x"><ssd:System name="top"><ssd:Elements><ssd:Component name="a" '
        f'type="application/x-fmu-sharedlibrary" source="{source}"/></ssd:Elements></ssd:System>'
        "</ssd:SystemStructureDescription>"
    )


def run(quick: bool = False) -> Outcome:
    """The campaign; the quick run leaves the large ones out."""
    outcome = Outcome(["what", "cases", "refused", "unpacked safely", "bad"])
    rows: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "inside", "deep")
        folder.mkdir(parents=True)
        free = shutil.disk_usage(name).free
        for what, file, reader, expected in _cases(folder, quick):
            row = rows.setdefault(what, [0, 0, 0, 0])
            found, text = verdict(lambda reader=reader, file=file: reader(file))
            escaped = [p for p in (Path(name, "evil"), Path(name, "inside", "evil"), Path("/evil")) if p.exists()]
            if not quick:
                print(f"{what}: {found}: {text:.100}", flush=True)
            bad = found not in ("read", "refused") or escaped or (expected == "refused" and found == "read")
            row[0] += 1
            row[3 if bad else 1 if found == "refused" else 2] += 1
            if bad:
                outcome.good = False
                outcome.notes.append(f"**{found}**: {what} ({file.name}): {text}{' ESCAPED' if escaped else ''}")
        spent = free - shutil.disk_usage(name).free
    outcome.rows = [[what, *row] for what, row in rows.items()]
    outcome.rows.append(["all", *(sum(row[k] for row in rows.values()) for k in range(4))])
    if spent > 2**30:
        outcome.good = False
        outcome.notes.append(f"{spent / 2**30:.1f} GB of disk were taken")
    return outcome


def _cases(folder: Path, quick: bool) -> Iterator[tuple[str, Path, Reader, str]]:
    """Without those that take seconds to make, where it should be quick."""
    if not quick:
        yield from cases(folder)
        return
    fmu = folder / "m.fmu"
    for name in OUTSIDE:
        yield "an entry outside", _packed(fmu, (name, b"evil")), archive.unpack, "refused"
    for identifier in IDENTIFIERS:
        yield "a library elsewhere", _packed(fmu, identifier=identifier), cs.load_fmu, "refused"
