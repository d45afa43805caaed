"""Power cuts: what a run has promised to be on the disk is there, whatever the disk had not written yet.

Everything that a run writes is recorded (power_cut.c). Then the power is cut at many random moments: of each file there
is what its last `fsync` brought to the disk, and of what was written later any part, sector by sector, with lengths
that may or may not have followed; of the names in a folder there are those at its last `fsync`, and of later changes
the first so many. In what is left the result must be readable, with the rows that were promised and their bits, a run
with states must go on to the numbers of the undisturbed one, and a file that was there before must be whole until the
new one is.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import cosolve as cs
from campaigns.disks import build, run_of, sweep_of
from campaigns.page import Outcome

SEED, SECTOR = 20261120, 512
MODES = ("readable", "compiled", "over an older one", "saved states", "sweep", "result.save")
BAD = ("LOST", "BARE", "SILENT")
_HEAD = struct.Struct("<QQqQ")
_STEPS = {"readable": 600, "compiled": 20_000, "over an older one": 600, "saved states": 600, "result.save": 300}
_OLD = 0.25  # rate of the run that was there before


@dataclass(frozen=True)
class Entry:
    """One thing that was done to the folder."""

    kind: str
    file: int
    offset: int
    data: bytes


def promise(folder: Path, words: str) -> None:
    """What a power cut from here on must leave; part of the record, since it is written below the folder."""
    with (folder / "promises").open("ab", buffering=0) as file:
        file.write(words.encode() + b"\n")


def recorded(mode: str, folder: Path) -> None:
    """What is done in the process whose writing is recorded."""
    from cosolve.result.store import Stream

    secure, file = Stream.secure, folder / "run.h5"

    def secured(self: Stream) -> int:
        rows = secure(self)
        promise(folder, f"rows {rows}")
        return rows

    Stream.secure = secured  # type: ignore[method-assign]
    if mode == "sweep":
        sweep_of(folder / "a.sweep")
        promise(folder, "cases all")
        return
    kind = "compiled" if mode == "compiled" else "readable"
    options: dict[str, Any] = {"t_end": _STEPS[mode] * 0.01}
    if mode == "saved states":
        options["state_every"] = 50
    if mode == "result.save":
        run_of(kind, **options).save(file)
    else:
        run_of(kind, save=file, **options)
    promise(folder, f"rows {_STEPS[mode] + 1}")


def record(mode: str, folder: Path, shim: Path) -> tuple[list[Entry], dict[str, bytes]]:
    """What a run of its own process does to its folder, and the files that were there before."""
    home = folder / mode.replace(" ", "-")
    home.mkdir()
    if mode == "over an older one":
        older = cs.simulate(build(_OLD), t_end=1.0, step=0.01, method=cs.Jacobi(1))
        older.save(home / "run.h5")
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    log = folder / f"{home.name}.log"
    environment = os.environ | {"LD_PRELOAD": str(shim), "POWER_FOLDER": str(home), "POWER_LOG": str(log)}
    program = f"from campaigns.power import *; recorded({mode!r}, Path({str(home)!r}))"
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    data, entries, at = log.read_bytes(), [], 0
    while at < len(data):
        kind, file, offset, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        entries.append(Entry(chr(kind), file, offset, data[at : at + length]))
        at += length
    return entries, before


def after(entries: list[Entry], before: dict[str, bytes], random: Random) -> tuple[dict[str, bytes], list[str]]:
    """What is in the folder when the power comes back, and what had been promised when it went."""
    content = [bytearray(data) for data in before.values()]
    names = {name: number for number, name in enumerate(before)}
    now: dict[int, int] = {}  # the numbers of files are used again when a file is gone
    waiting: dict[int, list[Entry]] = {}
    changes: list[Entry] = []
    promised: list[str] = []
    marks: set[int] = set()
    for entry in entries:
        if entry.kind == "c":
            if entry.data.endswith(b"/promises"):
                marks.add(entry.file)
                continue
            now[entry.file] = len(content)
            content.append(bytearray())
            changes.append(replace(entry, file=now[entry.file]))
            marks.discard(entry.file)
        elif entry.kind in "ru":
            changes.append(entry)
        elif entry.file in marks:
            promised += entry.data.decode().splitlines()
        elif entry.kind == "d":
            for change in changes:
                _rename(names, change)
            changes.clear()
        elif entry.file in now:
            later = waiting.setdefault(now[entry.file], [])
            if entry.kind != "s":
                later.append(entry)
                continue
            for one in later:
                _apply(content[now[entry.file]], one)
            later.clear()
    for change in changes[: random.randrange(len(changes) + 1)]:
        _rename(names, change)
    share = random.choice((0.0, 0.1, 0.5, 0.9, 1.0))
    for file, later in waiting.items():
        for one in later:
            _apply_partly(content[file], one, random, share)
    return {name: bytes(content[file]) for name, file in names.items()}, promised


def _rename(names: dict[str, int], entry: Entry) -> None:
    """A change of the names in the folder."""
    one, _, other = entry.data.partition(b"\0")
    name = Path(one.decode()).name
    if entry.kind == "c":
        names[name] = entry.file
    elif entry.kind == "u":
        names.pop(name, None)
    elif name in names:
        names[Path(other.decode()).name] = names.pop(name)


def _apply(content: bytearray, entry: Entry) -> None:
    """A write or a change of length."""
    if entry.kind == "t":
        del content[entry.offset :]
        content.extend(bytes(entry.offset - len(content)))
        return
    content.extend(bytes(max(0, entry.offset + len(entry.data) - len(content))))
    content[entry.offset : entry.offset + len(entry.data)] = entry.data


def _apply_partly(content: bytearray, entry: Entry, random: Random, share: float) -> None:
    """What of it has come to the disk: any of its sectors, and perhaps the length of the file."""
    if entry.kind == "t":
        if random.random() < share:
            _apply(content, entry)
        return
    begin = entry.offset
    while begin < entry.offset + len(entry.data):
        end = min((begin // SECTOR + 1) * SECTOR, entry.offset + len(entry.data))
        if random.random() < share:
            _apply(content, Entry("w", entry.file, begin, entry.data[begin - entry.offset : end - entry.offset]))
        begin = end
    if random.random() < share:
        content.extend(bytes(max(0, entry.offset + len(entry.data) - len(content))))


def judged(mode: str, left: dict[str, bytes], promised: list[str], home: Path) -> tuple[str, str]:
    """The verdict on what is left, and why."""
    for name, data in left.items():
        (home / name).write_bytes(data)
    try:
        return _judged(mode, promised, home)
    except cs.CosolveError as error:
        return "LOST", f"{promised[-1:]}: {error}"
    except Exception as error:
        return "BARE", f"{type(error).__name__}: {error}"


def _judged(mode: str, promised: list[str], home: Path) -> tuple[str, str]:
    if mode == "sweep":
        again = sweep_of(home / "a.sweep")
        same = np.array_equal(again["a.h"].values, REFERENCES["sweep"])
        return ("right", "") if same else ("SILENT", "the sweep came to other numbers")
    rows = max((int(words.split()[1]) for words in promised), default=0)
    file, reference = home / "run.h5", REFERENCES["compiled" if mode == "compiled" else "readable"]
    if not rows and mode != "over an older one":
        try:
            found = cs.load_result(file)["a.h"]
        except cs.errors.OutputFileError:  # nothing was promised yet
            return "nothing yet", ""
        return ("right", "") if np.array_equal(found, reference[: len(found)]) else ("SILENT", "other rows")
    found = cs.load_result(file)["a.h"]
    if np.array_equal(found, reference[: len(found)]) and len(found) >= rows:
        if mode == "saved states" and (home / "run.h5.state").exists() and rows < _STEPS[mode] + 1:
            again = cs.resume(file, build(), max_steps=10**6)["a.h"]
            if not np.array_equal(again, reference[: _STEPS[mode] + 1]):
                return "SILENT", "the run came to other numbers when it was resumed"
        return "right", ""
    if mode == "over an older one" and not rows and np.array_equal(found, REFERENCES["older"]):
        return "the older one", ""
    return ("LOST", f"{len(found)} rows of {rows}") if len(found) < rows else ("SILENT", "other rows")


REFERENCES: dict[str, Any] = {}


def run(quick: bool = False) -> Outcome:
    """The campaign."""
    amount = 12 if quick else 100
    outcome = Outcome(["mode", "entries", "power cuts", "right", "the older one", "nothing yet", *BAD])
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler or not sys.platform.startswith("linux"):
        outcome.notes.append("not tried: it takes a C compiler and Linux")
        return outcome
    REFERENCES["readable"] = run_of("readable", t_end=6.0)["a.h"]
    REFERENCES["compiled"] = run_of("compiled", t_end=200.0)["a.h"]
    REFERENCES["older"] = cs.simulate(build(_OLD), t_end=1.0, step=0.01, method=cs.Jacobi(1))["a.h"]
    REFERENCES["sweep"] = sweep_of(None)["a.h"].values
    with tempfile.TemporaryDirectory(prefix="cosolve-power-") as name:
        folder = Path(name).resolve()
        shim = folder / "power_cut.so"
        source = Path(__file__).with_name("power_cut.c")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
        for mode in MODES:
            entries, before = record(mode, folder, shim)
            counts: Counter[str] = Counter()
            for n in range(amount):
                random = Random(f"{SEED} {mode} {n}")
                # half of the moments lie just behind something that promises, where most can be lost
                moment = random.randrange(len(entries) + 1)
                if n % 2:
                    marks = [k + 1 for k, entry in enumerate(entries) if entry.kind in "sdr"] or [moment]
                    moment = min(random.choice(marks) + random.randrange(3), len(entries))
                left, promised = after(entries[:moment], before, random)
                home = folder / f"left{n}"
                home.mkdir()
                verdict, why = judged(mode, left, promised, home)
                shutil.rmtree(home)
                counts[verdict] += 1
                if verdict in BAD:
                    outcome.good = False
                    outcome.notes.append(f"**{verdict}**: {mode}, cut {n} at entry {moment}: {why}")
            outcome.rows.append([mode, len(entries), amount, *(counts[word] or "" for word in outcome.head[3:])])
    outcome.notes.append(f"seed {SEED}")
    return outcome
