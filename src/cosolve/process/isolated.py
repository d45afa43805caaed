"""`Isolated`: any subsystem, running in a process of its own, seen from the run like the subsystem itself."""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosolve.basics.checks import choice, positive
from cosolve.errors import SetupError, SubsystemError
from cosolve.process import message as m
from cosolve.process import worker as far_side
from cosolve.process.launch import Worker
from cosolve.process.pickles import Pickles
from cosolve.process.proxy import Proxy, told_as_setup
from cosolve.subsystem.base import Subsystem

if TYPE_CHECKING:
    from cosolve.subsystem.native import Native

TRANSPORTS = ("shared_memory", "pipe")
_KILLED = 9  # SIGKILL: the process did not end by itself but was ended (timeout, Ctrl-C)
_DEGREES = 4  # signals up to this many coefficients fit into the shared memory


class Isolated(Proxy):
    """A subsystem in a process of its own: a crash, a hang or a leak there cannot take the run along.

    It has the capabilities of the subsystem and gives the same bits. With `simulate(workers=n)` several of them compute
    at the same time.

    Parameters
    ----------
    subsystem : callable, Subsystem or str
        A function without arguments that builds it, its name as "module:function" or "file.py:function", or a subsystem
        that can be pickled.
    transport : {"shared_memory", "pipe"}, default "shared_memory"
        How messages are carried.
    timeout : float or None, default None
        Longest time of a call in seconds; after that the process is ended and the run stops. None waits forever.
    name : str, default ""
        Name for messages.
    log : str, Path or None, default None
        File for what the process prints. None keeps the last lines for messages.

    Examples
    --------
    >>> import cosolve as cs
    >>> decay = cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
    >>> apart = cs.remote.Isolated(decay, timeout=60.0)
    >>> apart.start(0.0)
    array([1.])
    >>> cs.capabilities(apart) >= {"rollback", "jacobian", "output", "state"}
    True
    >>> apart.close()
    """

    def __init__(
        self,
        subsystem: Callable[[], Subsystem] | Subsystem | str,
        *,
        transport: str = "shared_memory",
        timeout: float | None = None,
        name: str = "",
        log: str | Path | None = None,
    ) -> None:
        choice("Isolated", "transport", transport, TRANSPORTS)
        if timeout is not None:
            positive("Isolated", "timeout", timeout, " of seconds or None")
        if far_side.importing_script:
            raise SetupError(
                "Isolated: this script builds subsystems as soon as it is imported, and their processes must import "
                "it; put what it runs under `if __name__ == '__main__':`, or the factory into a module of its own"
            )
        self._arguments = (subsystem, transport, timeout, name, log)
        self._order = _order(subsystem)
        self._name, self._timeout = name, timeout
        self._log = None if log is None else Path(log)
        self._wanted = "pipe" if os.name == "nt" else transport  # shared memory needs a pipe to sleep on
        super().__init__(Pickles())
        self._inside: Callable[[], None] | None = None  # how to get back from compiled code
        self._worker = self._launch()
        self._used = False  # by an earlier run

    def __reduce__(self) -> Any:
        return _again, self._arguments

    # -- the process -----------------------------------------------------------------------------------

    def _launch(self) -> Worker:
        """Start a process; the subsystem loads there while the run goes on here."""
        return Worker(self._order, self._wanted, self._timeout, self._log)

    def _loaded(self) -> dict[str, Any]:
        label = f" '{self._name}'" if self._name else ""
        with told_as_setup(f"Isolated{label}"):
            about = self._worker.loaded()
        if self._wanted == "shared_memory":
            numbers = sum(port.length for port in (*about["inputs"], *about["outputs"]))
            failure = self._worker.share_memory(8 * _DEGREES * numbers + 1024)
            if failure:
                self._worker.transport = "pipe"
                warnings.warn(
                    f"Isolated{label}: no shared memory ({failure}); using pipes", RuntimeWarning, stacklevel=4
                )
        return about

    @property
    def transport(self) -> str:
        """What carries the messages: `"shared_memory"` or `"pipe"`."""
        self._about()
        return self._worker.transport

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._worker.process.pid

    def close(self) -> None:
        """End the process (done anyway when this object goes away); `start` begins a new one."""
        with self._lock:
            self._worker.close()

    def _call_far(self, request: m.Parts, extra: float = 0.0) -> memoryview:
        if self._inside is not None:
            self._inside()
        return self._worker.call(request, extra)

    def __getattr__(self, name: str) -> Any:
        if name == "native" and self._about()["native"]:
            return self._native
        return super().__getattr__(name)

    def _native(self, H: float, degree: int) -> Native | str:
        if self.transport != "shared_memory":
            return "its process is reached through pipes, and compiled code needs shared memory"
        from cosolve.process.native_exchange import near_native

        return near_native(self, H, degree)

    def _holder(self) -> int:
        return self._worker.process.pid

    def start(self, t0: float) -> Any:
        self._about()
        with self._lock:
            self._worker.owed = None
            if not self._worker.alive:  # a new run after a crash gets a new process
                self._renew()
            used, self._used = self._used, True
        try:
            return super().start(t0)
        except SetupError:
            if not used:
                raise
        except SubsystemError:
            if not used or self._worker.alive or self._worker.process.returncode == -_KILLED:
                raise
        # What an earlier run left behind is not the fault of this one: an FMU that can be instantiated once in the life
        # of a process, or that crashes when its old instance is freed.
        with self._lock:
            self._worker.close()
            self._renew()
            self._used = True
        return super().start(t0)

    def _renew(self) -> None:
        """Another process from here on."""
        self._begin_anew()
        self._worker = self._launch()
        self._used = False


def _again(subsystem: Any, transport: str, timeout: float | None, name: str, log: Any) -> Isolated:
    """A copy has a process of its own."""
    return Isolated(subsystem, transport=transport, timeout=timeout, name=name, log=log)


def _order(subsystem: Any) -> dict[str, Any]:
    """What the worker needs to build the subsystem."""
    order = {"folder": os.getcwd(), "arguments": sys.argv, "script": None, "source": subsystem}
    if isinstance(subsystem, str):
        if ":" not in subsystem:
            raise SetupError(
                f"Isolated: a factory is named as 'module:function' or 'file.py:function', not {subsystem!r}"
            )
        return order
    if not callable(subsystem) and not isinstance(subsystem, Subsystem):
        raise SetupError(f"Isolated runs a subsystem or a function that builds one, not {subsystem!r}")
    try:
        order["source"] = pickle.dumps(subsystem, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # pickle raises many kinds
        raise SetupError(
            f"Isolated: {_shown(subsystem)} cannot be sent to another process ({error}); give a function defined at "
            "the top level of a module that builds the subsystem there, not one with a lambda or an inner function"
        ) from None
    if b"__main__" in order["source"]:
        order["script"] = _script(subsystem)
    return order


def _script(subsystem: Any) -> tuple[str, str]:
    """How another process can import what the user's script defines."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return "module", spec.name
    path = getattr(main, "__file__", None)
    if path is None or not os.path.exists(path):
        raise SetupError(
            f"Isolated: {_shown(subsystem)} is defined in an interactive session, which another process cannot "
            "import; put it into a module"
        )
    return "path", os.path.abspath(path)


def _shown(subsystem: Any) -> str:
    if isinstance(subsystem, Subsystem):
        return f"this {type(subsystem).__name__}"
    return str(getattr(subsystem, "__qualname__", repr(subsystem)))
