"""The process of an isolated subsystem: loads it, then answers calls until the run lets go of it.

Everything the subsystem prints goes to the log of the process, whose last lines are quoted when it ends badly. Saved
states stay here; only their numbers travel.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import pickle
import runpy
import socket
import sys
import traceback
import types
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cosolve.basics.arrays import real_array
from cosolve.basics.wording import text_of
from cosolve.errors import SetupError
from cosolve.process import message as m
from cosolve.process.channel import Channel, Disconnected, Pipe, Tcp
from cosolve.process.ending import end_with
from cosolve.process.shared_memory import SharedMemory
from cosolve.signal.polynomial import Polynomial
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import Ports

if TYPE_CHECKING:
    from cosolve.process.native_exchange import Served

#: True while a worker runs the user's script again to find a class or function that is defined in it.
importing_script = False


class Server:
    """Answers the calls for one subsystem; `answer` turns a request into the bytes of an answer."""

    def __init__(self) -> None:
        self.subsystem = Subsystem()
        self.outputs = Ports(())
        self.states: dict[int, Any] = {}
        self.saved = 0
        self.equations: tuple[Callable[..., Any], Callable[..., Any], Any] | None = None
        self.pipe: Pipe | None = None
        self.serving: Served | None = None  # who answers from compiled code after this call

    def answer(self, data: memoryview) -> m.Parts:
        """One call, whatever comes of it."""
        try:
            crossing = m.read_crossing(data)
            if crossing is not None:
                return m.write_vector(self.outputs.pack(self.subsystem.advance(*crossing)))
            r = m.read_request(data)
            for handle in r.free:
                self.states.pop(handle, None)
            return self._answer(r)
        except Exception as error:
            return m.write_answer(m.FAILURE, _failure(error))

    def serve(self) -> None:
        """Let compiled code answer, where the last call asked for that, until it is told to leave."""
        serving, self.serving = self.serving, None
        if serving is not None:
            serving.serve()

    def _answer(self, r: m.Request) -> m.Parts:
        subsystem = self.subsystem
        if r.call in (m.ADVANCE, m.REPLAY):
            cross = subsystem.advance if r.call == m.ADVANCE else subsystem.replay
            return self._outputs(cross(r.t0, r.t1, Polynomial(r.u_t0, r.u_H, r.coefficients)))
        if r.call == m.SAVE:
            self.saved += 1
            self.states[self.saved] = subsystem.save()
            return m.write_answer(m.NOTHING, handle=self.saved)
        if r.call == m.RESTORE:
            subsystem.restore(self.states[r.handle])
            return m.write_answer(m.NOTHING)
        if r.call == m.OUTPUT:
            return self._outputs(subsystem.output(r.t0, r.extra))
        if r.call == m.JACOBIAN:
            u = Polynomial(r.u_t0, r.u_H, r.coefficients)
            return _plain(subsystem.jacobian(r.t0, r.t1, u, r.extra), dimensions=2)
        if r.call == m.STEP:
            reached = subsystem.step(r.t0, r.t1, Polynomial(r.u_t0, r.u_H, r.coefficients))
            if isinstance(reached, (tuple, list)) and len(reached) == 2 and isinstance(reached[0], float):
                return m.write_answer(m.VECTOR, self.outputs.pack(reached[1]), t=reached[0])
            return m.write_answer(m.OBJECT, reached)  # for the run to complain about
        if r.call == m.GET_STATE:
            return _plain(subsystem.get_state(), dimensions=1)
        if r.call == m.SET_STATE:
            subsystem.set_state(r.extra)
            return m.write_answer(m.NOTHING)
        return self._rare(r)

    def _rare(self, r: m.Request) -> m.Parts:
        """Calls that come once, or seldom."""
        if r.call == m.START:
            self.equations = None
            first = self.subsystem.start(r.t0)
            return m.write_answer(m.NOTHING) if first is None else self._outputs(first)
        if r.call in (m.RHS, m.OUTPUT_FUNCTION):
            if self.equations is None:
                self.equations = self.subsystem.equations()
            function = self.equations[0] if r.call == m.RHS else self.equations[1]
            return _plain(function(r.t0, r.coefficients[0], r.extra), dimensions=1)
        if r.call == m.EQUATIONS:
            self.equations = self.subsystem.equations()
            return m.write_answer(m.OBJECT, self.equations[2])
        if r.call == m.ATTRIBUTE:
            return m.write_answer(m.OBJECT, getattr(self.subsystem, r.content))
        if r.call == m.CALL:
            name, arguments, named = r.content
            return m.write_answer(m.OBJECT, getattr(self.subsystem, name)(*arguments, **named))
        if r.call == m.LOAD:
            return m.write_answer(m.OBJECT, self._load(r.content))
        return self._compiled(r)

    def _compiled(self, r: m.Request) -> m.Parts:
        """Calls about crossings from compiled code, which are kept like states."""
        if r.call == m.NATIVE:
            from cosolve.process.native_exchange import Served

            H, degree, path, sizes = r.content
            native = self.subsystem.native(H, degree)
            if isinstance(native, str):
                return m.write_answer(m.OBJECT, native)
            assert self.pipe is not None
            self.saved += 1
            served = self.states[self.saved] = Served(native, path, sizes, self.pipe)
            return m.write_answer(m.OBJECT, served.about, handle=self.saved)
        served = self.states[r.handle]
        if r.call == m.ENTER:
            served.native.enter()
            self.serving = served
        elif r.call == m.LEFT:
            served.leave()
        elif r.call == m.EXPLAIN:
            served.explain(r.content)
        else:
            assert r.call == m.RESPONSE
            return _plain(served.native.jacobian(r.extra), dimensions=2)
        return m.write_answer(m.NOTHING)

    def _outputs(self, value: Any) -> m.Parts:
        return m.write_answer(m.VECTOR, self.outputs.pack(value))

    def _load(self, order: dict[str, Any]) -> dict[str, Any]:
        """Build the subsystem and describe it."""
        os.chdir(order["folder"])
        sys.argv = order["arguments"]
        if order["script"]:
            _import_script(*order["script"])
        made = order["source"]
        if isinstance(made, bytes):
            made = pickle.loads(made)
        elif isinstance(made, str):
            made = named_object(made)
        if not isinstance(made, Subsystem) and callable(made):
            made = made()
        if not isinstance(made, Subsystem):
            raise SetupError(f"the factory gave {made!r}, not a subsystem; it must return a cosolve.Subsystem")
        self.subsystem, self.outputs = made, Ports(made.outputs)
        methods = {
            name
            for name in dir(made)
            if not name.startswith("_") and name not in _NOT_METHODS and callable(getattr(made, name, None))
        }
        return {
            "inputs": Ports(made.inputs).ports,
            "outputs": self.outputs.ports,
            "methods": methods,
            "overshoots": made.overshoots,
            "stops_inside": made.stops_inside,
            "driven_as": made.driven_as,
            "concurrent": made.concurrent,
            "kind": type(made).__name__,
            "native": callable(getattr(made, "native", None)),
        }


#: not forwarded as methods: attributes that may be properties, and machine code, which only `Isolated` can reach
_NOT_METHODS = frozenset(
    {"noise", "inputs", "outputs", "overshoots", "stops_inside", "driven_as", "concurrent", "native"}
)


def named_object(name: str) -> Any:
    """What `"module:function"` or `"path/file.py:function"` names.

    >>> named_object("math:hypot")(3, 4)
    5.0
    """
    where, _, what = name.rpartition(":")
    if not where or not what:
        raise SetupError(f"a factory is named as 'module:function' or 'file.py:function', not {name!r}")
    try:
        if where.endswith(".py"):
            found: Any = types.SimpleNamespace(**runpy.run_path(where))
        else:
            found = importlib.import_module(where)
        for part in what.split("."):
            found = getattr(found, part)
    except (ImportError, OSError, AttributeError) as error:
        raise SetupError(f"the factory {name!r} cannot be loaded: {error}") from None
    return found


def _plain(value: Any, dimensions: int) -> m.Parts:
    """An array of doubles as it is; anything else for the other side to judge."""
    with suppress(TypeError, ValueError):
        array = real_array(value)
        if array.ndim == dimensions:
            return m.write_answer(m.VECTOR if dimensions == 1 else m.MATRIX, array)
    return m.write_answer(m.OBJECT, value)


def _failure(error: Exception) -> tuple[bytes | None, str, str, str]:
    """The exception itself where it can travel, its type and text, and where it came from."""
    where = "".join(traceback.format_exception(error))
    try:
        packed: bytes | None = pickle.dumps(error.with_traceback(None))
        pickle.loads(packed or b"")
    except Exception:  # exceptions with arguments of their own often cannot be rebuilt
        packed = None
    return packed, type(error).__name__, text_of(error), where


def _import_script(kind: str, name: str) -> None:
    """Make the names of the user's script known here, without running what it guards by `__name__`."""
    global importing_script
    importing_script = True
    try:
        run = runpy.run_module if kind == "module" else runpy.run_path
        content = run(name, run_name="__mp_main__")
    finally:
        importing_script = False
    script = types.ModuleType("__mp_main__")
    script.__dict__.update(content)
    sys.modules["__main__"] = sys.modules["__mp_main__"] = script


def _print_to_log() -> None:
    """Whatever is printed, also by compiled code, goes to the log, line by line."""
    os.dup2(2, 1)
    with suppress(OSError, ValueError, AttributeError):
        library = ctypes.CDLL(None)
        library.setvbuf(ctypes.c_void_p.in_dll(library, "stdout"), None, 1, 0)


def main(parent: int, port: int = 0) -> None:
    """Serve the run that started this process: through its pipes, or through TCP when `port` is given."""
    channel: Channel
    pipe = Pipe(os.dup(0), os.dup(1)) if os.name != "nt" else None
    if pipe is None or port:
        token = os.read(0, 32) if pipe is None else bytes(pipe.body(32))
        channel = Tcp(socket.create_connection(("127.0.0.1", port), timeout=60.0))
        channel.send([token])
    else:
        channel = pipe
    _print_to_log()
    end_with(parent)
    server = Server()
    server.pipe = pipe
    with suppress(Disconnected):
        while True:
            data = channel.receive()
            if pipe is not None and channel is pipe and m.read_call(data) == m.ATTACH:
                channel, reply = _attach(data, pipe)
                pipe.send(reply)
            else:
                channel.send(server.answer(data))
                if server.serving is not None:
                    server.serve()


def _attach(data: memoryview, pipe: Pipe) -> tuple[Channel, m.Parts]:
    """Turn to shared memory from the next message on, where it can be had."""
    try:
        return SharedMemory(m.read_request(data).content, pipe, side=1), m.write_answer(m.NOTHING)
    except OSError as error:
        return pipe, m.write_answer(m.FAILURE, _failure(error))
