"""A program of the system that advances over macro steps: how it is found, run and ended, and where its files live.

It is run once per subsystem step, in a process group of its own, and its end is waited for: one that fails, hangs or is
killed becomes a sentence with the last lines of its log. Its files are in a working folder that goes when the subsystem
goes. What it needs to begin again at a macro point is a `StoredState`, a file or folder that stays as long as an object
holds it, however often the step after it is repeated.

Its ports are vectors over the nodes of a mesh, with magnitudes that tolerances are measured against.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from cosolve.basics.processes import how_it_ended, kill_group, start
from cosolve.errors import SetupError, SubsystemError
from cosolve.process.launch import log_tail
from cosolve.subsystem.port import Port


def field_ports(
    owner: str, inputs: Mapping[str, int], outputs: Mapping[str, int], nominal: Mapping[str, float] | None
) -> tuple[list[Port], list[Port]]:
    """Input and output ports of these lengths; `nominal` gives the magnitudes of some of them, the others have 1.

    >>> takes, gives = field_ports("Panel", {"force": 6}, {"displacement": 6}, {"displacement": 1e-3})
    >>> takes[0].nominal, gives[0].nominal
    (1.0, 0.001)
    """
    sizes = dict(nominal or {})
    for name in sizes:
        if name not in inputs and name not in outputs:
            known = ", ".join([*inputs, *outputs])
            raise SetupError(f"{owner}: nominal names the port '{name}', but there are {known}")

    def made(lengths: Mapping[str, int]) -> list[Port]:
        return [Port(name, size, nominal=sizes.get(name, 1.0)) for name, size in lengths.items()]

    return made(inputs), made(outputs)


#: One thread each: the threads of several solvers on the same cores mostly wait for each other.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "CCX_NPROC_STIFFNESS", "NUMBER_OF_PROCESSORS")


def find_program(name: str | os.PathLike[str], remedy: str) -> str:
    """Where a program is, on PATH or by its own path; a sentence with the remedy where it is not.

    >>> find_program("no-such-solver", "install it")
    Traceback (most recent call last):
        ...
    cosolve.errors.SetupError: the program 'no-such-solver' is not there; install it
    """
    path = shutil.which(name)
    if path is None:
        raise SetupError(f"the program '{os.fspath(name)}' is not there; {remedy}")
    return os.path.abspath(path)


def run_program(
    command: Sequence[str],
    folder: Path,
    log: Path,
    timeout: float | None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run a program in a folder to its end; everything it prints goes to `log`.

    `environment` is for variables that the user has not set.

    It is ended after `timeout` seconds, by Ctrl-C, and (on Linux) with this process.

    >>> import sys, tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     log = Path(name, "log")
    ...     run_program([sys.executable, "-c", "print('solved')"], Path(name), log, timeout=60.0)
    ...     print(log.read_text(), end="")
    solved
    """
    name = os.path.basename(command[0])
    with_parent = shutil.which("setpriv")  # of util-linux; the thread that waits here lives as long as the program
    guarded = [with_parent, "--pdeathsig", "KILL", "--", *command] if with_parent else [*command]
    variables = {**dict.fromkeys(THREADS, "1"), **(environment or {}), **os.environ}
    with log.open("w+b") as printed:
        process = start(guarded, printed, cwd=folder, env=variables)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            kill_group(process)
            raise SubsystemError(
                f"{name} was not ready within {timeout:g} s and was ended{log_tail(printed)}; raise timeout if a "
                "step may take that long"
            ) from None
        except BaseException:
            kill_group(process)
            raise
        if code:
            raise SubsystemError(f"{name} {how_it_ended(code)}{log_tail(printed)}")


class WorkingFolder:
    """Where a program works: a folder of its own that is removed with this object, or one that the user keeps.

    >>> folder = WorkingFolder("flag")
    >>> path = folder.path
    >>> path.is_dir()
    True
    >>> folder.close()
    >>> path.exists()
    False
    """

    def __init__(self, name: str, keep: str | os.PathLike[str] | None = None) -> None:
        self.kept = keep is not None
        if keep is None:
            self.path = Path(tempfile.mkdtemp(prefix=f"cosolve-{name}-"))
        else:
            self.path = Path(keep).absolute()
            if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
                raise SetupError(f"keep: '{self.path}' is there already; name a folder that is new or empty")
            self.path.mkdir(parents=True, exist_ok=True)
        self._states = self.path / "states"
        self._states.mkdir()
        self._count = 0
        self._end = weakref.finalize(self, _remove, self.path, os.getpid()) if keep is None else lambda: None

    def store(self, path: Path) -> StoredState:
        """Take a file or folder that the program has written out of its way; it stays while the state is held."""
        place = self._next()
        path.rename(place)
        return StoredState(place)

    def unpack(self, archive: bytes) -> StoredState:
        """A state that `StoredState.packed` gave, perhaps in another process."""
        place = self._next()
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r") as tar:
            members = [member for member in tar.getmembers() if member.isfile() or member.isdir()]
            for member in members:
                member.name = place.name + member.name.removeprefix("state")
            tar.extractall(self._states, members, filter="data")
        return StoredState(place)

    def _next(self) -> Path:
        self._count += 1
        return self._states / str(self._count)

    def close(self) -> None:
        """Remove the folder now (one that the user keeps stays)."""
        self._end()


class StoredState:
    """A file or folder to begin again from, removed with the last reference to it; copies are the same state."""

    def __init__(self, path: Path) -> None:
        self.path = path
        weakref.finalize(self, _remove, path, os.getpid())

    def packed(self) -> bytes:
        """All of it as bytes, for files and other processes."""
        with io.BytesIO() as buffer:
            with tarfile.open(fileobj=buffer, mode="w") as tar:
                tar.add(self.path, "state", filter=_undated)
            return buffer.getvalue()

    def __copy__(self) -> StoredState:
        return self

    def __deepcopy__(self, memo: object) -> StoredState:
        return self


def _remove(path: Path, owner: int) -> None:
    if os.getpid() != owner:  # a fork of the run
        return
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _undated(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime = 0  # same state, same bytes
    return member
