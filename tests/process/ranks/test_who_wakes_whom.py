"""Ranks on one machine wake each other; those on another are found by looking. No MPI is needed for that."""

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from cosolve.process import mpi

HERE = socket.gethostname().encode()[: mpi._ADDRESS // 2]


def connected(rank: int, machines: list[bytes], monkeypatch: pytest.MonkeyPatch) -> tuple[dict[int, str], int]:
    """The addresses that a rank wakes, and how many ranks are on its machine."""
    monkeypatch.setattr(mpi, "WakeupPipe", lambda: SimpleNamespace(address=f"pipe-{rank}", hide=lambda: None))
    monkeypatch.setattr(mpi, "WakeupSender", lambda address: address)

    def gather(mine: list[Any], into: list[Any]) -> None:
        assert mine[0].rstrip(b"\0") == HERE + b"\0" + f"pipe-{rank}".encode()
        said = [machine + b"\0" + f"pipe-{k}".encode() for k, machine in enumerate(machines)]
        into[0][:] = b"".join(one.ljust(mpi._ADDRESS, b"\0") for one in said)

    world = mpi.World.__new__(mpi.World)
    world.rank, world.size = rank, len(machines)
    world._mpi = SimpleNamespace(BYTE="byte")
    world._comm = SimpleNamespace(Allgather=gather, Barrier=lambda: None)
    _, senders, near = world._connected()
    found: Any = senders
    return found, near


def test_rank_0_wakes_all_on_its_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    machines = [HERE, b"elsewhere", HERE, HERE]
    assert connected(0, machines, monkeypatch) == ({1: "", 2: "pipe-2", 3: "pipe-3"}, 3)


def test_others_wake_rank_0_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert connected(2, [HERE, b"elsewhere", HERE, HERE], monkeypatch) == ({0: "pipe-0"}, 3)
    assert connected(1, [b"elsewhere", HERE], monkeypatch) == ({0: ""}, 1)
