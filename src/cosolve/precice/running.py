"""Runs a configuration file with programs: the hub, the programs, and their common end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

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


def environment(listener: ListeningSocket) -> dict[str, str]:
    """What programs need to find the hub and the module `precice`."""
    return {"COSOLVE_HUB": listener.address, **python_path()}


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
    patience: float = 60.0,
    logs: Path | None = None,
    tcp: bool = False,
    state: Path | None = None,
    state_every: int = 1,
    resume: Path | None = None,
    listen: str | None = None,
    key: str | None = None,
    out: Path | None = None,
    log: Path | None = None,
    told: Callable[[float, str], None] | None = None,
) -> Coupling:
    """Couple programs as a configuration file says; those without a command are started elsewhere.

    `state` is where the state of the coupling is kept after every `state_every` windows, `resume` a state to go on
    from; participants restore themselves. `listen` ("host:port") is where participants on other machines come in, if
    they have the `key`. `out` is a result file (.h5) of all participants, `log` one log of what their programs print,
    and `told(fraction, words)` hears how far they are.
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
        serve(coupling, commands, patience=patience, logs=logs, tcp=tcp, note=note, listen=listen, key=key, log=log)
    except BaseException as failure:
        error = str(failure) or f"ended by {type(failure).__name__}"
        raise
    finally:
        if common is not None:
            common.finish(error)
    return coupling


def serve(
    coupling: HubCoupling,
    commands: Mapping[str, str],
    *,
    patience: float,
    logs: Path | None,
    tcp: bool,
    note: Path,
    listen: str | None = None,
    key: str | None = None,
    log: Path | None = None,
) -> None:
    """Start the programs, be their hub, and end with all of them."""
    listener = ListeningSocket(tcp)
    programs: Programs | None = None
    gate: Gateway | None = None
    common_log: CommonLog | None = None
    why = ""
    try:
        with signals_raise():
            absent = [name for name in coupling.names if name not in commands]
            gate = gateway(listener, listen, key, os.getcwd(), absent)
            if set(commands) < set(coupling.names):
                listener.leave_note(note)
            common_log = None if log is None else CommonLog(log)
            programs = Programs(commands, environment(listener), logs, log=common_log, left=listener.left)
            Hub(coupling, listener, patience=patience, watch=watching(programs, gate)).serve()
            for name, code in programs.wait(3600.0).items():
                if code != 0:
                    how = f"participant '{name}' {how_it_ended(code)} after the coupling"
                    raise CosolveError(f"{how}{programs.words(name)}")
    except BaseException as error:
        why = str(error) or f"the hub was ended ({type(error).__name__})"
        if common_log is not None:
            common_log.say(why)
        raise
    finally:
        listener.close()
        if gate is not None:
            gate.close(why)
        if programs is not None:
            programs.end()


def watching(programs: Programs, gate: Gateway | None) -> Callable[[str | None], str]:
    """How a program has ended that is gone, here or on another machine."""
    return lambda name: programs.failure(name) or ("" if gate is None else gate.failure(name))
