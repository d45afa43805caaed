"""The process of an isolated subsystem: loads it, then answers calls until the run lets go of it.

Everything the subsystem prints goes to the log of the process, whose last lines are quoted when it ends badly. Only the
run that started the process can reach it, so what travels may be pickles.
"""

from __future__ import annotations

import os
import runpy
import sys
import types
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cosolve.basics.processes import end_with, print_to_log
from cosolve.process import message as m
from cosolve.process.channel import Channel, Disconnected, Pipe, pipe
from cosolve.process.factory import built
from cosolve.process.pickles import Pickles
from cosolve.process.server import Server
from cosolve.process.shared_memory import SharedMemory
from cosolve.subsystem.base import Subsystem

if TYPE_CHECKING:
    from cosolve.process.native_exchange import SubsystemSide

#: True while a worker runs the user's script again to find a class or function that is defined in it.
importing_script = False


class LocalServer(Server):
    """Answers a run on this machine, also about subsystem steps from compiled code."""

    def __init__(self, pipe: Pipe | None = None) -> None:
        super().__init__(Pickles())
        self.pipe = pipe
        self.serving: SubsystemSide | None = None  # who answers from compiled code after this call

    def serve(self) -> None:
        """Let compiled code answer, where the last call asked for that, until it is told to leave."""
        serving, self.serving = self.serving, None
        if serving is not None:
            serving.serve()

    def load(self, content: dict[str, Any]) -> Subsystem:
        os.chdir(content["folder"])
        sys.argv = content["arguments"]
        if content["script"]:
            _import_script(*content["script"])
        source = content["source"]
        return built(self.contents.unpack(source) if isinstance(source, bytes) else source)

    def further(self, r: m.Request) -> m.Parts:
        """Calls about subsystem steps from compiled code, which are kept like states."""
        if r.call == m.NATIVE:
            from cosolve.process.native_exchange import SubsystemSide

            H, degree, path, sizes = self.contents.unpack(r.content)
            native = self.subsystem.native(H, degree)
            if isinstance(native, str):
                return self.object(native)
            assert self.pipe is not None
            self.saved += 1
            served = self.states[self.saved] = SubsystemSide(native, path, sizes, self.pipe)
            return m.write_answer(m.OBJECT, self.contents.pack(served.about), handle=self.saved)
        served = self.states[r.handle]
        if r.call == m.ENTER:
            served.native.enter()
            self.serving = served
        elif r.call == m.LEFT:
            served.leave()
        elif r.call == m.EXPLAIN:
            served.explain(self.contents.unpack(r.content))
        else:
            assert r.call == m.RESPONSE
            return self.plain(served.native.jacobian(r.extra), dimensions=2)
        return m.write_answer(m.NOTHING)


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


def main(parent: int) -> None:
    """Serve the run that started this process, through its pipes."""
    first = pipe(os.dup(0), os.dup(1))
    channel: Channel = first
    print_to_log()
    end_with(parent)
    server = LocalServer(first if isinstance(first, Pipe) else None)
    with suppress(Disconnected):
        while True:
            data = channel.receive()
            if isinstance(channel, Pipe) and m.read_call(data) == m.ATTACH:
                channel, reply = _attach(data, channel)
                first.send(reply)
            else:
                channel.send(server.answer(data))
                if server.serving is not None:
                    server.serve()


def _attach(data: memoryview, pipe: Pipe) -> tuple[Channel, m.Parts]:
    """Turn to shared memory from the next message on, where it can be had."""
    contents = Pickles()
    try:
        path = contents.unpack(m.read_request(data).content)
        return SharedMemory(path, pipe, side=1), m.write_answer(m.NOTHING)
    except OSError as error:
        return pipe, m.write_answer(m.FAILURE, contents.pack_error(error))
