"""Runs a configuration file with programs: the hub, the programs, and their common end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from cosolve.basics.processes import how_it_ended
from cosolve.basics.signals import signals_raise
from cosolve.basics.wording import suggest
from cosolve.errors import CosolveError, SetupError
from cosolve.participants.gateway import Gateway, gateway
from cosolve.participants.hub import Hub, HubCoupling, ListeningSocket
from cosolve.participants.programs import CommonLog, Programs
from cosolve.precice.common_result import CommonResult
from cosolve.precice.config import Configuration, read_configuration
from cosolve.precice.coupling import Coupling

#: The folder that makes `import precice` find cosolve's module.
OPT_IN = Path(__file__).parent / "opt_in"


def python_path() -> dict[str, str]:
    """What lets `import precice` find cosolve's module."""
    path = os.environ.get("PYTHONPATH", "")
    return {"PYTHONPATH": os.pathsep.join([str(OPT_IN), *([path] if path else [])])}


def refuse_unknown_programs(names: Mapping[str, object], configuration: Configuration) -> None:
    """Refuse names that the file does not have."""
    for name in names:
        if name not in configuration.participants:
            raise SetupError(
                f"{configuration.file} has no participant '{name}'; {suggest(name, configuration.participants)}"
            )


def run_configuration(
    path: str | Path,
    commands: Mapping[str, str],
    *,
    state: Path | None = None,
    state_every: int = 1,
    resume: Path | None = None,
    out: Path | None = None,
    told: Callable[[float, str], None] | None = None,
    **hub: Any,
) -> Coupling:
    """Couple programs as a configuration file says; those without a command are started elsewhere.

    `state` is where the state of the coupling is kept after every `state_every` windows, `resume` a state to go on
    from; participants restore themselves. `out` is a result file (.h5) of all participants, and
    `told(fraction, words)` hears how far they are. `hub` are options of `serve`.
    """
    configuration = read_configuration(path)
    refuse_unknown_programs(commands, configuration)
    for remark in configuration.remarks:
        sys.stderr.write(f"cosolve: {configuration.file}, {remark}\n")
    common = None if out is None and told is None else CommonResult(out, told)
    coupling = Coupling(configuration, state=state, every=state_every, resume=resume, common=common)
    note = Path(f"{os.path.abspath(path)}.hub")
    error: str | None = None
    try:
        serve(coupling, commands, note, **hub)
    except BaseException as failure:
        error = str(failure) or f"ended by {type(failure).__name__}"
        raise
    finally:
        if common is not None:
            common.finish(error)
    return coupling


def serve(
    coupling: HubCoupling, commands: Mapping[str, str], note: Path, *, patience: float = 60.0, **options: Any
) -> None:
    """Start the programs, be their hub, and end with all of them; `options` are those of `Session`."""
    session, why = Session(options.pop("tcp", False)), ""
    try:
        with signals_raise():
            programs = session.start(coupling.names, commands, note, **options)
            Hub(coupling, session.listener, patience=patience, watch=session.failure).serve()
            for name, code in programs.wait(3600.0).items():
                if code != 0:
                    how = f"participant '{name}' {how_it_ended(code)} after the coupling"
                    raise CosolveError(f"{how}{programs.words(name)}")
    except BaseException as error:
        why = str(error) or f"the hub was ended ({type(error).__name__})"
        if session.common_log is not None:
            session.common_log.say(why)
        raise
    finally:
        session.close(why)


class Session:
    """The socket of a hub, its gateway for other machines, and the programs of participants; they end together."""

    def __init__(self, tcp: bool) -> None:
        self.listener = ListeningSocket(tcp)
        self.common_log: CommonLog | None = None
        self._gate: Gateway | None = None
        self._programs: Programs | None = None

    def start(
        self,
        names: Collection[str],
        commands: Mapping[str, str],
        note: Path,
        *,
        logs: str | Path | None = None,
        log: str | Path | None = None,
        listen: str | None = None,
        key: str | None = None,
    ) -> Programs:
        """Start the programs; participants without a command find the hub by `note`, or come in at `listen`.

        `logs` is a folder for what the programs print, `log` one file for it; participants elsewhere have `key`.
        """
        absent = [name for name in names if name not in commands]
        self._gate = gateway(self.listener, listen, key, os.getcwd(), absent)
        if absent:
            self.listener.leave_note(note)
        self.common_log = None if log is None else CommonLog(Path(log))
        where = {"COSOLVE_HUB": self.listener.address, **python_path()}
        folder = None if logs is None else Path(logs)
        self._programs = Programs(commands, where, folder, log=self.common_log, left=self.listener.left)
        return self._programs

    def failure(self, name: str | None) -> str:
        """How a program has ended that is gone, here or on another machine."""
        return (self._programs and self._programs.failure(name)) or (self._gate and self._gate.failure(name)) or ""

    def end_programs(self, patience: float = 0.0) -> None:
        """Let the programs finish by themselves for so many seconds, then end them."""
        if self._programs is not None:
            if patience:
                self._programs.wait(patience)
            self._programs.end()
            self._programs = None

    def close(self, why: str) -> None:
        """End all of it; `why` goes to other machines."""
        self.listener.close()
        if self._gate is not None:
            self._gate.close(why)
        self.end_programs()
