"""A process for one run: started, waited for, ended when it takes too long, and asked how far it came.

FMUs are foreign machine code: they crash, hang, write to the terminal and leave files. All of that stays in a process
and a folder of their own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cosolve.basics.processes import end_with, python_call, start

STAGES = ("before the first run", "in the first run", "in the second run", "when it was freed")


@dataclass(frozen=True)
class Outcome:
    """What came of a run: its traces (one for each run that was finished), and what ended it."""

    traces: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""
    crash: str = ""
    late: bool = False

    @property
    def ran(self) -> bool:
        """True when there is a first run to compare."""
        return bool(self.traces)


def run(tool: str, job: dict[str, Any], timeout: float) -> Outcome:
    """Run a job with a tool in a process of its own, for at most `timeout` seconds."""
    with tempfile.TemporaryDirectory(prefix="cosolve-cross-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "job.json").write_text(json.dumps(job))
        (folder / "tmp").mkdir()
        environment = {**os.environ, **{key: str(folder / "tmp") for key in ("TMPDIR", "TEMP", "TMP")}}
        with (folder / "said").open("wb") as said:
            command = python_call("cosolve_crosscheck.worker:main", tool, os.getpid())
            process = start(command, said, cwd=folder, env=environment)
            try:
                process.wait(timeout)
                late = False
            except subprocess.TimeoutExpired:
                late = True
            finally:
                _end(process)
        return _outcome(folder, process.returncode, late, timeout)


def _end(process: subprocess.Popen[bytes]) -> None:
    """The process and whatever it has started."""
    if os.name != "nt":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _outcome(folder: Path, code: int, late: bool, timeout: float) -> Outcome:
    traces, error, stage, finished = [], "", 0, False
    for k in range(2):
        with suppress(FileNotFoundError), np.load(folder / f"trace{k}.npz") as stored:
            names = json.loads(str(stored["names"]))
            traces.append({name: stored[f"c{i}"] for i, name in enumerate(names)})
    with suppress(FileNotFoundError):
        stage = int((folder / "stage").read_text() or 0)
    with suppress(FileNotFoundError):
        error, finished = (folder / "error").read_text(errors="replace"), True
        error = error.replace(f"{folder}{os.sep}", "")
    where = STAGES[stage]
    if late:
        return Outcome(traces, error, late=True, crash=f"not finished within {timeout:g} s, {where}")
    if code:
        return Outcome(traces, error, crash=f"{_how(code)} {STAGES[-1] if finished else where}")
    return Outcome(traces, error)


def _how(code: int) -> str:
    if code < 0:
        with suppress(ValueError):
            return f"died of {signal.Signals(-code).name}"
    return f"ended with code {code}"


def main(tool: str, parent: int) -> None:
    """In the process: run the job of the working folder, and leave behind how far it came."""
    end_with(parent)
    from cosolve_crosscheck.tools import TOOLS

    job = json.loads(Path("job.json").read_text(encoding="utf-8"))
    here = Path.cwd()  # an FMU may change it
    error = ""
    try:
        runs = TOOLS[tool](job)
        (here / "stage").write_text("1")
        for k, trace in enumerate(runs):
            names = list(trace)
            stored = {f"c{i}": trace[name] for i, name in enumerate(names)}
            np.savez(here / "partial.npz", names=np.array(json.dumps(names)), **stored)
            (here / "partial.npz").replace(here / f"trace{k}.npz")
            (here / "stage").write_text(str(min(k + 2, 3)))
    except (Exception, SystemExit) as problem:
        error = _sentence(problem)
    (here / "error").write_text(error)


def _sentence(problem: BaseException) -> str:
    text = " ".join(str(problem).split()) or type(problem).__name__
    kind = type(problem).__name__
    return text if kind.endswith(("Refused", "SetupError", "SimulationError", "SubsystemError")) else f"{kind}: {text}"
