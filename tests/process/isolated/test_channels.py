"""The channels by themselves: two ends in two threads, with and without watching the memory."""

import os
import random
import threading

import pytest

from cosolve.process import shared_memory
from cosolve.process.channel import Disconnected, Pipe, ThreadedPipe, TimedOut


def _pipes(kind=Pipe):
    (a, b), (c, d) = os.pipe(), os.pipe()
    return kind(a, d), kind(c, b)


def _shared(capacity=4096):
    near, far = _pipes()
    path = shared_memory.create(capacity)
    ends = shared_memory.SharedMemory(path, near, side=0), shared_memory.SharedMemory(path, far, side=1)
    os.unlink(path)
    return ends


@pytest.fixture(params=["pipe", "threaded", "watching", "announced"])
def ends(request, monkeypatch):
    """The two ends of a channel; "announced" is for processors without ordered stores, "threaded" for Windows."""
    if request.param == "announced":
        monkeypatch.setattr(shared_memory, "_SPINS", 0)
    elif request.param == "watching":
        monkeypatch.setattr(shared_memory, "_SPINS", 20)
    kinds = {"pipe": Pipe, "threaded": ThreadedPipe}
    pair = _pipes(kinds[request.param]) if request.param in kinds else _shared()
    yield pair
    for end in pair:
        end.close()


def test_messages_of_all_sizes_arrive_whole_and_in_order(ends):
    """Echoes of 400 messages, short ones and some far beyond the shared memory, from sleeping and waking readers."""
    near, far = ends
    numbers = random.Random(5)
    sizes = [numbers.choice([1, 8, 100, 4000, 4096, 5000, 300_000]) for _ in range(400)]

    def echo():
        for _ in sizes:
            far.send([bytes(far.receive())[::-1]])

    thread = threading.Thread(target=echo)
    thread.start()
    for size in sizes:
        message = numbers.randbytes(size)
        near.send([message[: size // 2], message[size // 2 :]])
        assert bytes(near.receive(30.0))[::-1] == message
    thread.join()


def test_waiting_ends_in_time_or_with_the_other_side(ends):
    near, far = ends
    with pytest.raises(TimedOut):
        near.receive(0.05)
    far.close()
    with pytest.raises(Disconnected):
        near.receive(5.0)


def test_memory_is_claimed_at_once(monkeypatch):
    """A full memory disk is an error when the file is made, and leaves no file behind."""
    made = []

    def full(handle, start, size):
        made.append(size)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    before = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    with pytest.raises(OSError, match="No space left"):
        shared_memory.create(10**6)
    assert made
    assert made[0] >= 2 * 10**6
    if os.path.isdir("/dev/shm"):
        assert not {name for name in set(os.listdir("/dev/shm")) - before if name.startswith("cosolve-")}
