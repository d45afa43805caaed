"""Programs without the token against a run that is watched and a hub of participants; pages that send nonsense.

Each case is a process that computes beside a flood from this one. It must end by itself, with the bits of a run that
was left alone, and have taken little memory.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import urlsplit

import numpy as np

import cosolve as cs
from campaigns.page import Outcome
from campaigns.read_more import CONFIGURATION

FILES, LIMIT, SECONDS = 256, 120.0, 3.0  # open files of the process, seconds until it must have ended, of the flood
MEMORY = 200  # MB that a flood may cost

WATCHED = """
import resource, sys
import cosolve as cs
from campaigns.disks import build
resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files}))
system = build()
live = cs.Live(open_browser=False, told=lambda text: print(text, live.address, flush=True))
result = cs.simulate(
    system, t_end=60.0, step=0.01, method=cs.Jacobi(1), observers=[live], pace=10.0, save="run.h5", state_every="1 s"
)
print("finished", len(result.t), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, flush=True)
"""

SOLVER = """
import sys, time
import numpy as np, precice
name = sys.argv[1]
mesh, write, read = ("Rod", "Temperature", "Heat") if name == "Solid" else ("Bath", "Heat", "Temperature")
participant = precice.Participant(name, "config.xml", 0, 1)
ids = participant.set_mesh_vertices(mesh, [[0.0, 0.0], [1.0, 0.0]])
T = np.array([100.0, 80.0]) if name == "Solid" else np.zeros(2)
if participant.requires_initial_data():
    participant.write_data(mesh, write, ids, T)
participant.initialize()
kept = T
while participant.is_coupling_ongoing():
    if participant.requires_writing_checkpoint():
        kept = T
    dt = participant.get_max_time_step_size()
    time.sleep(0.01)
    x = participant.read_data(mesh, read, ids, dt)
    T = T + dt * x / 2.0 if name == "Solid" else -0.5 * (x - 20)
    participant.write_data(mesh, write, ids, T)
    participant.advance(dt)
    if participant.requires_reading_checkpoint():
        T = kept
participant.finalize()
"""

Flood = Callable[[str, int, str], None]


def _connections(count: int, data: bytes, again: bool = False) -> Flood:
    """So many connections that send this, and nothing more."""

    def flood(host: str, port: int, path: str) -> None:
        until, open_ones = monotonic() + SECONDS, []
        while monotonic() < until:
            for _ in range(count):
                one = socket.socket()
                one.setblocking(False)
                open_ones.append(one)
                with suppress(OSError):
                    one.connect((host, port))
            sleep(0.1)
            for one in open_ones:
                with suppress(OSError):
                    one.send(data)
            if again:
                for one in open_ones:
                    one.close()
                open_ones.clear()
            else:
                sleep(max(0.0, until - monotonic()))
        for one in open_ones:
            one.close()

    return flood


def _endless(host: str, port: int, path: str) -> None:
    """One connection that never stops to send, behind the head of a record of 8 GB, or of a header."""
    head = struct.pack("<IIQ", 0x4C4F5300 + 1, 1, 1 << 33) if not path else b"GET / HTTP/1.1\r\nX: "
    until = monotonic() + SECONDS
    while monotonic() < until:
        with suppress(OSError), socket.create_connection((host, port), timeout=1.0) as one:
            one.sendall(head)
            while monotonic() < until:
                one.sendall(b"x" * (1 << 20))


def _orders(host: str, port: int, path: str) -> None:
    """A page with the token that sends what no page of ours sends."""
    import websockets

    odd = [{"do": "set", "name": "a.q", "value": 10**400}, {"do": ["set"]}, {"do": "step", "n": 1e9}, {}, []]
    texts = [json.dumps(order) for order in odd]
    texts += ["[" * 1900, '{"do":"set","name":"a.q","value":NaN}', "\0", "x" * 10**6, '{"do":1' + "0" * 1900 + "}"]

    async def requests() -> None:
        until = monotonic() + SECONDS
        while monotonic() < until:
            with suppress(OSError, websockets.WebSocketException, asyncio.TimeoutError):
                address = f"ws://{host}:{port}{path}live"
                async with websockets.connect(address, origin=f"http://{host}:{port}", open_timeout=2.0) as page:
                    for text in texts:
                        await page.send(text)
                    await asyncio.sleep(0.1)

    asyncio.run(requests())


_GARBAGE = bytes(range(256)) * 4
FLOODS: dict[str, tuple[str, Flood]] = {
    "idle connections": ("both", _connections(600, b"")),
    "connections opened and closed": ("both", _connections(50, b"", again=True)),
    "garbage": ("both", _connections(50, _GARBAGE, again=True)),
    "half a request": ("watched", _connections(200, b"GET / HTTP/1.1\r\nHost: 127")),
    "requests without the token": (
        "watched",
        _connections(50, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", again=True),
    ),
    "data without end": ("both", _endless),
    "a wrong token": ("hub", _connections(50, struct.pack("<IIQ", 0x4C4F5300 + 1, 77, 0) * 20, again=True)),
    "orders that make no sense, with the token": ("watched", _orders),
}


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))


def watched(home: Path, flood: Flood | None) -> tuple[str, str, int]:
    """A run with a page: the verdict, why, and MB."""
    program = WATCHED.format(files=FILES)
    environment = dict(os.environ, PYTHONPATH=str(Path(__file__).parents[1]))
    child = subprocess.Popen(
        [sys.executable, "-c", program], cwd=home, env=environment, stdout=subprocess.PIPE, stderr=-2, text=True
    )
    assert child.stdout is not None
    found = None
    while found is None and (line := child.stdout.readline()):
        found = re.search(r"http://\S+", line)
    if found is None:
        return "BARE", child.communicate()[0][-300:], 0
    address = urlsplit(found[0])
    if flood is not None:
        assert address.hostname is not None
        assert address.port is not None
        flood(address.hostname, address.port, address.path)
    said = _ended(child)
    if said is None:
        return "HANG", f"no end within {LIMIT:g} s", 0
    words = said.split()
    if child.returncode or "finished" not in words:
        return ("CRASH" if child.returncode < 0 else "ENDED"), said[-300:], 0
    if not np.array_equal(cs.load_result(home / "run.h5")["a.h"], _alone()):
        return "SILENT", "other numbers", 0
    return "right", "", int(words[words.index("finished") + 2])


def _alone() -> np.ndarray:
    from campaigns.disks import build

    return cs.simulate(build(), t_end=60.0, step=0.01, method=cs.Jacobi(1), compiled=False)["a.h"]


def hub(home: Path, flood: Flood | None) -> tuple[str, str, int]:
    """Two participants under `cosolve precice run --tcp`: the verdict, why, and MB."""
    command = str(Path(sys.executable).with_name("cosolve"))
    (home / "config.xml").write_text(CONFIGURATION.replace('"40"', '"12"'))
    (home / "solver.py").write_text(SOLVER)
    module = subprocess.run([command, "precice", "path"], capture_output=True, text=True, check=True).stdout.strip()
    programs = [f"-p{name}={sys.executable} solver.py {name}" for name in ("Solid", "Fluid")]
    child = subprocess.Popen(
        [command, "precice", "run", "config.xml", *programs, "--tcp", "--out", "run.h5"],
        cwd=home,
        env=dict(os.environ, PYTHONPATH=module, OPENBLAS_NUM_THREADS="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=_limit,
    )
    most = [0]
    looking = threading.Thread(target=_look, args=(child, most))
    looking.start()
    until, port = monotonic() + LIMIT, None
    while port is None and child.poll() is None and monotonic() < until:
        sleep(0.05)
        port = _port(child.pid)
    if flood is not None and port is not None:
        flood("127.0.0.1", port, "")
    said = _ended(child)
    looking.join()
    if said is None:
        return "HANG", f"no end within {LIMIT:g} s", 0
    if child.returncode:
        return ("CRASH" if child.returncode < 0 else "ENDED"), said[-300:], 0
    return "right", "", most[0]


def _look(child: subprocess.Popen[str], most: list[int]) -> None:
    """The most memory that a process had, in MB."""
    while child.poll() is None:
        with suppress(OSError, AttributeError):
            text = Path(f"/proc/{child.pid}/status").read_text()
            found = re.search(r"VmHWM:\s+(\d+)", text)
            most[0] = max(most[0], int(found[1]) >> 10 if found else 0)
        sleep(0.2)


def _port(pid: int) -> int | None:
    """Where a process listens."""
    with suppress(OSError):
        inodes = {os.readlink(one) for one in Path(f"/proc/{pid}/fd").iterdir()}
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                return int(words[1].split(":")[1], 16)
    return None


def _ended(child: subprocess.Popen[str]) -> str | None:
    """What a process says until it ends; None where it does not."""
    try:
        return child.communicate(timeout=LIMIT)[0]
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return None


def run(quick: bool = False) -> Outcome:
    """The campaign."""
    outcome = Outcome(["flood", "at", "tried", "right", "ENDED", "SILENT", "HANG", "CRASH", "memory more (MB)"])
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    for where, target in (("watched", watched), ("hub", hub)):
        reference: np.ndarray | None = None
        usual = 0
        kinds: dict[str, Flood | None] = {"none": None}
        kinds |= {name: flood for name, (which, flood) in FLOODS.items() if which in (where, "both")}
        for name, flood in list(kinds.items())[: 3 if quick else None]:
            with tempfile.TemporaryDirectory(prefix="cosolve-floods-") as folder:
                found, why, memory = target(Path(folder), flood)
                if where == "hub" and found == "right":
                    result = cs.load_result(Path(folder, "run.h5"))
                    values = np.concatenate([np.ravel(result[one]) for one in result.channels])
                    reference = values if reference is None else reference
                    found = found if np.array_equal(values, reference) else "SILENT"
                shutil.rmtree(folder, ignore_errors=True)
                Path(folder).mkdir()
            usual = memory if flood is None else usual
            more = max(0, memory - usual)
            if found != "right" or more > MEMORY:
                outcome.good = False
                outcome.notes.append(f"**{found}**: {name} at {where}: {why} {more} MB")
            at = "a run with a page" if where == "watched" else "a hub with --tcp"
            counts = [int(found == word) or "" for word in ("right", "ENDED", "SILENT", "HANG", "CRASH")]
            outcome.rows.append([name, at, 1, *counts, more])
    return outcome
