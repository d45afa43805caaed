"""The processes that `mpiexec` has started, and messages between them: what `ranks.py` stands on.

mpi4py is imported here and nowhere else. MPI libraries wait by looking again and again, which takes a core from a
process that could use it. Here a wait looks for some microseconds and then sleeps: where the other rank is on the same
machine until a byte comes through a pipe (`wakeup_pipe.py`), otherwise for a tenth of the time waited so far, so that
messages between machines are late by that much at most.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from threading import Lock
from time import perf_counter, sleep
from typing import Any

from cosolve.basics.launcher import SIZES, is_launched, told_size
from cosolve.errors import SetupError
from cosolve.process.channel import TimedOut
from cosolve.process.wakeup_pipe import WakeupPipe, WakeupSender

_INSTALL = "pip install 'cosolve[mpi]' brings it and an MPI library; with the MPI of a cluster: pip install mpi4py"

_SPIN = 200e-6  # seconds of a wait in which the core is kept
_CALM = 20  # waits without that, after one in which it was in vain: others may need the core
_SHORTEST = 20e-6  # seconds of sleep
_SHARE, _LONGEST = 0.1, 10e-3  # without a pipe: part of the time waited so far, and seconds
_LONGEST_NEAR = 50e-3  # seconds with one, which double until it has woken
_ADDRESS = 256  # bytes
_LARGE = 1 << 14  # bytes from which on a message may need both sides to be at it
_HANDOVER = 20e-3  # seconds that the sender of a large message stays at it


class World:
    """All ranks of this job; one object per process (`world`), made on every rank at the same place of the program."""

    def __init__(self) -> None:
        self.taken = self.dismissed = False  # the other ranks serve; they were told to leave
        self.busy: set[int] = set()  # tags of messages that are still to be answered
        self._mpi = _library()
        self._comm = self._mpi.COMM_WORLD.Dup()  # messages of others do not come in between
        self.rank: int = self._comm.rank
        self.size: int = self._comm.size
        self._pipe, self._senders, near = self._connected()
        self._spin = _SPIN if near <= (os.cpu_count() or 1) else 0.0
        self._calm = 0  # waits that are still to come without spinning
        # a look lets one message in and finds those that are, and all others may have sent one to rank 0
        self._looks = 2 if self.rank else 1 + self.size
        self._lock = Lock()  # not every MPI may be called by several threads at once
        self._sent: list[tuple[Any, bytes, int]] = []  # messages that have not left yet, their memory, and to whom

    def _connected(self) -> tuple[WakeupPipe, dict[int, WakeupSender], int]:
        """The pipe of this rank, those it wakes (rank 0 all, others that of rank 0), and the ranks on its machine."""
        pipe = WakeupPipe()
        here = socket.gethostname().encode()[: _ADDRESS // 2]
        mine = here + b"\0" + pipe.address.encode()
        mine = mine if len(mine) <= _ADDRESS else here
        all_of_them = bytearray(_ADDRESS * self.size)
        byte = self._mpi.BYTE
        self._comm.Allgather([mine.ljust(_ADDRESS, b"\0"), byte], [all_of_them, byte])
        senders, near = {}, 0
        for rank in range(self.size):
            where, _, rest = bytes(all_of_them[_ADDRESS * rank : _ADDRESS * (rank + 1)]).partition(b"\0")
            near += where == here
            if rank != self.rank and 0 in (rank, self.rank):
                senders[rank] = WakeupSender(rest.rstrip(b"\0").decode() if where == here else "")
        self._comm.Barrier()  # all ranks know all addresses
        pipe.hide()
        return pipe, senders, near

    def send(self, parts: Sequence[bytes | memoryview], to: int, tag: int) -> None:
        """Send one message, given in one or several pieces; returns before it has arrived."""
        data = b"".join(parts)
        with self._lock:
            request = self._comm.Isend([data, self._mpi.BYTE], to, tag)
            if not request.Test():
                self._sent.append((request, data, to))
        self._senders[to].wake()
        if len(data) >= _LARGE:  # so that the other side has it before this one does something else
            until = perf_counter() + _HANDOVER
            while self._under_way() and perf_counter() < until:
                _give_way()

    def _under_way(self) -> bool:
        """Whether messages have not left yet; a rank that gets one now is notified again."""
        if not self._sent:
            return False
        with self._lock:
            left = [to for request, _, to in self._sent if request.Test()]
            self._sent = [sent for sent in self._sent if not sent[0].Test()]
        for to in left:
            self._senders[to].wake()
        return bool(self._sent)

    def receive(self, source: int, tag: int | None = None, timeout: float | None = None) -> tuple[int, memoryview]:
        """The next message of a rank (and with this tag, where one is given), and its tag; `TimedOut` without one."""
        mpi, probe = self._mpi, self._comm.Improbe
        wanted, status = mpi.ANY_TAG if tag is None else tag, mpi.Status()
        began = spin = woken = 0.0
        while True:
            before = self._pipe.wakeups
            with self._lock:
                message = next((found for _ in range(self._looks) if (found := probe(source, wanted, status))), None)
                if message is not None:
                    data = bytearray(status.Get_count(mpi.BYTE))
                    message.Recv([data, mpi.BYTE])
                    return status.Get_tag(), memoryview(data)
            now = perf_counter()
            if not began:
                began = woken = now
                spin = 0.0 if self._calm else self._spin
                self._calm = max(self._calm - 1, 0)
            waited = now - began
            if timeout is not None and waited > timeout:
                raise TimedOut
            if waited >= spin:
                if spin:
                    self._calm = _CALM
                if self._under_way():  # which needs this rank inside MPI
                    sleep(_SHORTEST)
                elif self._senders[source].is_near:
                    if self._pipe.sleep(min(max(now - woken, _SHORTEST), _LONGEST_NEAR), before):
                        woken = perf_counter()
                else:
                    sleep(min(max(_SHARE * waited, _SHORTEST), _LONGEST))

    def abort(self, code: int) -> None:
        """End all ranks now, whatever they do."""
        self._comm.Abort(code)


_worlds: list[World] = []


def world() -> World | None:
    """All ranks of this job; None where there is only this process."""
    if not is_launched() or (told_size() == 1 and any(name in os.environ for name in SIZES)):
        return None
    if not _worlds:
        _worlds.append(World())
    return _worlds[0] if _worlds[0].size > 1 else None


def _give_way() -> None:
    """Let another process have the core, where one wants it."""
    if hasattr(os, "sched_yield"):
        os.sched_yield()
    else:
        sleep(0.0)


def _library() -> Any:
    """mpi4py's MPI, initialised, once it is clear that it and the launcher belong together."""
    try:
        import mpi4py
    except ImportError:
        raise SetupError(f"mpiexec has started this process, but mpi4py is missing; {_INSTALL}") from None
    told = told_size()
    mpi4py.rc.initialize, mpi4py.rc.finalize = False, True  # only after a look at launcher and library
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise SetupError(f"mpi4py finds no MPI library ({' '.join(str(error).split())}); {_INSTALL}") from None
    if not MPI.Is_initialized():
        name = MPI.Get_library_version()
        # Open MPI's own launcher: an MPICH would end the process with a word about PMI
        if told > 1 and "OMPI_COMM_WORLD_SIZE" in os.environ and not name.startswith("Open MPI"):
            raise SetupError(_other_library(told, name))
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
    if told > 1 and MPI.COMM_WORLD.size == 1:
        raise SetupError(_other_library(told, MPI.Get_library_version()))
    if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
        raise SetupError("this MPI may be called by one thread only; build it with thread support, or take another")
    return MPI


def _other_library(told: int, library: str) -> str:
    name = " ".join(library.replace("\0", " ").split(",")[0].split()[:3])
    return (
        f"mpiexec has started {told} processes, but it belongs to another MPI than the library that mpi4py uses here "
        f"({name}), so that each of them would run alone; call the mpiexec of that library"
    )
