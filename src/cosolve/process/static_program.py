"""Static subsystems that live in another program: one line of JSON out, one line of JSON back.

Request: `{"t": 0.1, "inputs": {"x": 1.0, "field": [1.0, 2.0]}}`. Answer: `{"outputs": {"force": 3.0}}`, or
`{"error": "sentence"}`. The program reads requests from its standard input until that ends, and flushes every answer.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread
from typing import IO, Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import positive
from cosolve.basics.processes import start
from cosolve.errors import SetupError, SubsystemError
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.port import PortLike, Ports
from cosolve.subsystem.static import Stateless


class StaticProgram(Stateless):
    r"""An algebraic subsystem `y(t, u)` computed by another program.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    inputs : sequence of str, (str, int) or Port
        Input ports.
    outputs : sequence of str, (str, int) or Port
        Output ports.
    timeout : float, default 60.0
        Longest time of a call in seconds.
    keep : bool, default True
        Keep the program alive between calls. False starts it for each one.

    Raises
    ------
    SubsystemError
        During a run, if the program ends early, takes too long or answers in another form.

    Notes
    -----
    One line of JSON to its standard input, `{"t": 0.1, "inputs": {"x": 1.0}}`, one line back, `{"outputs": {"force":
    3.0}}` or `{"error": "sentence"}`. Perturbed calls may run at the same time, each in a process of its own.

    Examples
    --------
    >>> import sys, numpy as np
    >>> program = ("import sys, json\n"
    ...            "for line in sys.stdin:\n"
    ...            "    x = json.loads(line)['inputs']['x']\n"
    ...            "    print(json.dumps({'outputs': {'y': 2 * x}}), flush=True)\n")
    >>> double = StaticProgram([sys.executable, "-c", program], inputs=["x"], outputs=["y"])
    >>> double.output(0.0, np.array([4.0])).tolist()
    [8.0]
    >>> double.close()
    """

    concurrent = True

    variable_step = False  # there is nothing inside: outputs follow the inputs at its end

    def __init__(
        self,
        command: Sequence[str],
        *,
        inputs: Sequence[PortLike],
        outputs: Sequence[PortLike],
        timeout: float = 60.0,
        keep: bool = True,
    ) -> None:
        if not isinstance(command, (list, tuple)) or not command or not all(isinstance(part, str) for part in command):
            raise SetupError(f"StaticProgram: command is a list such as ['python', 'film.py'], not {command!r}")
        positive("StaticProgram", "timeout", timeout, " of seconds")
        self.command, self.timeout, self.keep = list(command), timeout, keep
        self.inputs, self.outputs = inputs, outputs
        self._in, self._out = Ports(inputs), Ports(outputs)
        self._child: _Child | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> StaticProgram:
        return StaticProgram(
            self.command, inputs=self.inputs, outputs=self.outputs, timeout=self.timeout, keep=self.keep
        )

    def start(self, t0: float) -> Any:
        return self.output(t0, np.zeros(0)) if self._in.length == 0 else None

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        return self.output(t1, u.end)

    def output(self, t: float, u: Vector) -> Any:
        if not np.isfinite(u).all():  # inputs that are not known yet, at the start of a run
            return np.full(self._out.length, np.nan)
        values = {port.name: u[self._in.slice(port.name)].tolist() for port in self._in}
        given = {port.name: values[port.name][0] if port.size is None else values[port.name] for port in self._in}
        if self._child is None:
            self._child = _Child(self.command)
        try:
            answer = self._child.ask(json.dumps({"t": t, "inputs": given}), self.timeout)
            return self._read(answer)
        except SubsystemError:
            self.close()
            raise
        finally:
            if not self.keep:
                self.close()

    def _read(self, answer: str) -> Vector:
        try:
            found = json.loads(answer)
        except json.JSONDecodeError:
            found = None
        if isinstance(found, dict) and "error" in found:
            raise SubsystemError(f"the program {self.command[0]} reports: {found['error']}")
        if not isinstance(found, dict) or "outputs" not in found:
            raise SubsystemError(
                f"the program {self.command[0]} answered {answer[:80]!r}; expected one line of JSON with 'outputs'"
            )
        return self._out.pack(found["outputs"])

    def close(self) -> None:
        """End the child process (a later call starts a new one)."""
        if self._child is not None:
            self._child.end()
            self._child = None


class _Child:
    """A running program, its answers collected by a thread so that waiting for one can be limited."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        try:
            self.process = start(command, self.errors, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=-1)
        except OSError as error:
            self.errors.close()
            raise SubsystemError(f"cannot run the program {command[0]!r}: {error}") from None
        self.answers: Queue[str] = Queue()
        self.reader = Thread(target=_collect, args=(self.process, self.answers), daemon=True)
        self.reader.start()
        self.end = weakref.finalize(self, _end, self.process, self.reader, self.errors)

    def ask(self, line: str, timeout: float) -> str:
        """The answer to one line."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.flush()
            answer = self.answers.get(timeout=timeout)
        except Empty:
            raise SubsystemError(
                f"the program {self.command[0]} gave no answer within {timeout:g} s; raise timeout, or let it flush "
                "its output after every line"
            ) from None
        except OSError:
            answer = ""
        if not answer:
            raise SubsystemError(self._exit_report())
        return answer

    def _exit_report(self) -> str:
        code = self.process.wait(timeout=5.0)
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace").strip().splitlines()
        last = f"; its last output: {said[-1][:200]}" if said else ""
        return f"the program {self.command[0]} ended with code {code} instead of answering{last}"


def _collect(process: subprocess.Popen[bytes], answers: Queue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        answers.put(line.decode(errors="replace"))
    answers.put("")


def _end(process: subprocess.Popen[bytes], reader: Thread, errors: IO[bytes]) -> None:
    process.kill()
    process.wait()
    reader.join(timeout=5.0)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # unsent text for a program that is gone
                stream.close()
    errors.close()
