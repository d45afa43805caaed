"""The Python around `exchange.py`: the memory of both sides, entering and leaving compiled code, sleep and wake-up."""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import SubsystemError
from cosolve.jit import raising_address
from cosolve.process import exchange as x
from cosolve.process import message as m
from cosolve.process import shared_memory
from cosolve.process.channel import Disconnected, Pipe
from cosolve.process.isolated import Isolated
from cosolve.process.launch import LOADING
from cosolve.process.proxy import SavedState
from cosolve.subsystem.native import Native
from cosolve.subsystem.port import Ports

_LINE = 16  # words; what is written by different sides lies two cache lines apart, since some processors fetch pairs
_SPINS = 200  # loads of the counter, some 10 us, before yielding the core
_YIELDS = 500  # some 0.5 us each (or as long as the others take), before sleeping
_LONG = 1e-3  # after a sleep as long as this, the next one comes at once: another process is computing


def _callback(side: weakref.ref[_Side]) -> Any:
    """A C function for compiled code to call; it does not keep its side alive."""

    def callback(what: int, count: int) -> int:
        it = side()
        return x.OVER if it is None else it.called_back(what, count)

    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(callback)


class _Side:
    """One side's words, and its view of the memory that both see: request, answer, the flags of both."""

    def __init__(self, path: str, sizes: tuple[int, int], pipe: Pipe, near: bool) -> None:
        with open(path, "r+b") as file:
            self._shared = np.frombuffer(mmap.mmap(file.fileno(), 0), dtype=np.int64)
        self.words: npt.NDArray[np.int64] = np.zeros(x.WORDS, dtype=np.int64)
        self.pipe, self.data = pipe, int(self.words.ctypes.data)
        self._callback = _callback(weakref.ref(self))
        request = int(self._shared.ctypes.data)
        answer = request + 8 * _lines(x.COEFFICIENTS + sizes[0])
        flags = answer + 8 * _lines(x.OUTPUTS + sizes[1])
        mine, theirs = (flags, flags + 8 * _LINE) if near else (flags + 8 * _LINE, flags)
        w = self.words
        w[x.REQUEST], w[x.ANSWER], w[x.MINE], w[x.THEIRS] = request, answer, mine, theirs
        w[x.CALLBACK], w[x.YIELD] = ctypes.cast(self._callback, ctypes.c_void_p).value or 0, _yield()
        w[x.SPINS], w[x.YIELDS] = _SPINS if _cores() > 1 else 0, _YIELDS

    def called_back(self, what: int, count: int) -> int:
        """Called by compiled code; nothing may be raised through it."""
        try:
            if what == x.WAKE:
                with suppress(Disconnected):  # told about when the answer is awaited
                    self.pipe.wake()
                return x.DONE
            began = monotonic()
            if what == x.SLEEP and not self.pipe.wait(self.timeout(count)):
                return self.gave_up(None)
            if self.pipe.length():
                raise RuntimeError("a message came through the pipe out of turn")
            self.words[x.YIELDS] = _YIELDS if monotonic() - began < _LONG else 0
            return x.DONE
        except BaseException as error:
            return self.gave_up(error)

    def timeout(self, count: int) -> float | None:
        """Seconds to sleep at most while waiting for this count."""
        return None

    def gave_up(self, error: BaseException | None) -> int:
        """The other side is late (None) or gone, or something happened here, like Ctrl-C."""
        return x.OVER


class _RunSide(_Side):
    """The side of the run."""

    def __init__(self, apart: Isolated, path: str, shape: tuple[int, int, int]) -> None:
        rows, width, gives = shape
        self._worker = apart._worker
        super().__init__(path, (rows * width, gives), self._worker.pipe, near=True)
        self.words[[x.MAX_ROWS, x.WIDTH, x.GIVES]] = shape
        self._apart = apart
        self._awaited, self._began, self._entered = 0, 0.0, False
        self.state: SavedState | None = None  # what the far side keeps for this subsystem step

    def timeout(self, count: int) -> float | None:
        if self._worker.timeout is None:
            return None
        if count != self._awaited:
            self._awaited, self._began = count, monotonic()
        return max(0.0, self._began + self._worker.timeout - monotonic())

    def gave_up(self, error: BaseException | None) -> int:
        worker = self._worker
        if error is None:
            error = worker.late()
        elif isinstance(error, Disconnected):
            error = worker.gone()
        else:
            worker.kill()
        worker.owed = error
        return x.OVER

    def call(self, what: int) -> None:
        """A call of the ordinary kind; what goes wrong is raised by the next one, where the run expects it."""
        worker = self._worker
        try:
            self._apart._read(worker.call(m.write_request(what, handle=self._handle)))
        except BaseException as error:
            worker.owed = error

    @property
    def _handle(self) -> int:
        assert self.state is not None
        return self.state.handle

    def enter(self) -> None:
        """Compiled code at the far side from here on; no other caller may use it meanwhile."""
        apart, worker = self._apart, self._worker
        apart._lock.acquire()
        if apart._worker is worker and worker.owed is None:
            self.call(m.ENTER)
            self._entered = worker.owed is None
        self.words[x.READY] = self._entered
        apart._inside = self.leave

    def leave(self) -> None:
        """Back to Python."""
        apart, worker = self._apart, self._worker
        if apart._inside is None:
            return
        apart._inside = None
        if self.words[x.LOST] and worker.owed is None:
            self.gave_up(KeyboardInterrupt())
        self.words[x.LOST] = 0
        if self._entered and worker.owed is None:
            x.dismiss(self.data)
            if worker.owed is None:
                self.call(m.LEFT)
        self._entered = False
        self.words[[x.READY, x.ASKED, x.KEPT]] = 0
        apart._lock.release()

    def explain(self, status: int) -> None:
        """Raise the error of the process that failed."""
        self._apart._ask(m.EXPLAIN, handle=self._handle, content=status)

    def jacobian(self, weight: Vector) -> Matrix:
        """The same in every step of this size."""
        J: Matrix = self._apart._ask(m.RESPONSE, handle=self._handle, extra=np.asarray(weight, np.float64)).value
        return J


def near_native(apart: Isolated, H: float, degree: int) -> Native | str:
    """The subsystem step of a subsystem in another process, or why there is none."""
    shape = degree + 1, Ports(apart.inputs).length, Ports(apart.outputs).length
    sizes = shape[0] * shape[1], shape[2]
    words = _lines(x.COEFFICIENTS + sizes[0]) + _lines(x.OUTPUTS + sizes[1]) + 2 * _LINE
    if 8 * words > shared_memory.LARGEST:
        return "its ports are too long for the shared memory"
    try:
        path = shared_memory.create(8 * words)
    except OSError as error:
        return f"there is no shared memory for it ({error})"
    try:
        near = _RunSide(apart, path, shape)
        request = m.write_request(m.NATIVE, content=apart._contents.pack((H, degree, path, sizes)))
        with apart._lock:
            answer = apart._read(apart._call_far(request, LOADING))
    finally:
        os.unlink(path)
    if isinstance(answer.value, str):
        return answer.value
    near.state = SavedState(answer.handle, apart._holder(), apart._notes)
    about: dict[str, Any] = answer.value
    native = Native(raising_address(x.advance), near.data, enter=near.enter, leave=near.leave, explain=near.explain)
    native.begin, native.any_step, native.keep = raising_address(x.begin), about["any step"], (near,)
    native.hands_back = about["hands back"]
    if about["undoes"]:
        native.save, native.restore = raising_address(x.save), raising_address(x.restore)
        native.state = np.zeros(about["cheaply"])  # not empty where that is cheap; the numbers themselves are there
    if about["jacobian"]:
        native.jacobian = near.jacobian
    return native


class SubsystemSide(_Side):
    """The side of the subsystem."""

    def __init__(self, native: Native, path: str, sizes: tuple[int, int], pipe: Pipe) -> None:
        super().__init__(path, sizes, pipe, near=False)
        self.native, self._slot = native, np.zeros(max(1, len(native.state)))
        w = self.words
        w[x.INNER], w[x.BEGIN], w[x.DATA] = native.advance, native.begin, native.data
        w[x.SAVE], w[x.RESTORE] = native.save, native.restore
        w[x.STATE], w[x.SIZE], w[x.SLOT] = native.state.ctypes.data, len(native.state), self._slot.ctypes.data

    @property
    def about(self) -> dict[str, Any]:
        """What the other side has to know."""
        native = self.native
        return {
            "any step": native.any_step,
            "hands back": native.hands_back,
            "undoes": bool(native.save or len(native.state)),
            "cheaply": int(len(native.state) > 0),
            "jacobian": native.jacobian is not None,
        }

    def serve(self) -> None:
        """Answer from compiled code until told to leave; raises `Disconnected`."""
        if x.serve(self.data):
            raise Disconnected

    def leave(self) -> None:
        """Back in Python, with the state where the last subsystem step left it."""
        self.native.leave()
        status = int(self.words[x.STATUS])  # of the last way back
        self.explain(status)
        if status:
            raise SubsystemError(f"going back to a saved state failed with status {status}")

    def explain(self, status: int) -> None:
        """Raise with the words for a bad status, where there are any."""
        if status and self.native.explain is not None:
            self.native.explain(status)


def _lines(words: int) -> int:
    """So many words, rounded up."""
    return -(-words // _LINE) * _LINE


def _cores() -> int:
    found: Callable[[int], Any] | None = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if found is None else len(found(0))


def _yield() -> int:
    """The address of `sched_yield`, where there is one."""
    with suppress(OSError, AttributeError, TypeError):
        return ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0
    return 0
