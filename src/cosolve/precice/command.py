"""`cosolve precice`: couples solvers adapted to preCICE 3."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from cosolve.cli.screen import progress
from cosolve.errors import SetupError

app = typer.Typer(no_args_is_help=True, help="Couple solvers adapted to preCICE 3.")


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="CONFIG", help="Configuration file (XML).", show_default=False)],
    participants: Annotated[
        list[str] | None,
        typer.Option("--participant", "-p", metavar="NAME=COMMAND", help="A participant and its command; repeat it."),
    ] = None,
    patience: Annotated[
        float, typer.Option("--patience", help="Seconds that participants may take to connect.")
    ] = 60.0,
    logs: Annotated[Path | None, typer.Option("--logs", help="Folder for what the programs print.")] = None,
    tcp: Annotated[
        bool, typer.Option("--tcp", help="Use a TCP port of this machine instead of a local socket.")
    ] = False,
    method: Annotated[
        str | None,
        typer.Option("--method", help="Use this cosolve method instead of the file's schemes: name, or name:degree."),
    ] = None,
    step: Annotated[float | None, typer.Option("--step", help="With --method: the macro step.")] = None,
    t_end: Annotated[float | None, typer.Option("--t-end", help="With --method: the end time.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Result file of all participants (.h5).")] = None,
    log: Annotated[
        Path | None, typer.Option("--log", help="One log of what all programs print, each line with its name.")
    ] = None,
    save_state: Annotated[
        Path | None, typer.Option("--save-state", help="Keep the state of the coupling here, after every window.")
    ] = None,
    state_every: Annotated[int, typer.Option("--state-every", help="Keep it after every so many windows only.")] = 1,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Go on from this state; participants restore themselves.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="HOST:PORT", help="Let in participants on other machines here, encrypted."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", help="With --listen: what they must know.", show_default="COSOLVE_KEY, or a random one"),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless something is wrong.")] = False,
) -> None:
    """Couple participants as their configuration file says, or by a cosolve method.

    Those without a command are started elsewhere; they find the hub beside the file.
    """
    from cosolve.basics.signals import Terminated
    from cosolve.precice.running import run_configuration

    commands = named_commands(participants or [])
    if method is not None and (save_state is not None or resume is not None):
        raise SetupError("--save-state and --resume belong to the schemes of the file, not to --method")
    given = {"--step": step, "--t-end": t_end}
    if method is None and any(value is not None for value in given.values()):
        word = next(option for option, value in given.items() if value is not None)
        raise SetupError(f"{word} belongs to --method; without one the file says how it runs")
    hub: dict[str, Any] = {"patience": patience, "logs": logs, "log": log, "tcp": tcp, "listen": listen, "key": key}
    try:
        if method is not None:
            by_method(file, commands, method, step, t_end, out, quiet, hub)
            return
        with progress(quiet, "waiting for participants") as bar:
            keep: dict[str, Any] = {"state": save_state, "state_every": state_every, "resume": resume, "out": out}
            coupling = run_configuration(file, commands, **keep, told=None if bar is None else bar.say, **hub)
    except Terminated:
        typer.echo("cosolve: ended by SIGTERM, and so were the participants", err=True)
        raise typer.Exit(143) from None
    if not quiet:
        for name, member in coupling.members.items():
            counts = member.recorder.counts
            taken = f", {sum(counts)} iterations" if counts else ""
            typer.echo(f"{name}: t = {member.time:.9g}, {max(side.window for side in member.sides) - 1} windows{taken}")
        if out is not None:
            typer.echo(f"result  {out}")


def by_method(
    file: Path,
    commands: dict[str, str],
    name: str,
    step: float | None,
    t_end: float | None,
    out: Path | None,
    quiet: bool,
    hub: dict[str, Any],
) -> None:
    """The participants as subsystems of a coupling method."""
    from cosolve.basics.signals import signals_raise
    from cosolve.method.named import as_method
    from cosolve.precice.subsystems import Participants
    from cosolve.run.simulate import simulate

    method = as_method(name)
    repeats = "rollback" in method.needs
    with signals_raise(), Participants(file, commands, rollback=repeats, **hub) as all_:
        H, end = step or all_.window, t_end or all_.end
        if not H > 0 or end == float("inf"):
            what, option = ("how long a window is", "--step") if not H > 0 else ("when it ends", "--t-end")
            raise SetupError(f"{file.name} does not say {what}; give {option}")
        result = simulate(all_.system, t_end=end, method=method, step=H, workers=len(all_.subsystems), save=out)
        runs = {who: subsystem.subsystem_steps for who, subsystem in all_.subsystems.items()}
    if not quiet:
        typer.echo(f"{method.label} finished: t = {end:.9g}, {len(result.t) - 1} macro steps\n{result.stats}")
        typer.echo("solver runs: " + ", ".join(f"{who} {count}" for who, count in runs.items()))
        if out is not None:
            typer.echo(f"result  {out}")


@app.command()
def connect(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="Where the hub listens.", show_default=False)],
    participants: Annotated[
        list[str] | None,
        typer.Option("--participant", "-p", metavar="NAME=COMMAND", help="A program to start here; repeat it."),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="What the hub has printed.", show_default="COSOLVE_KEY")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="Participants started by hand find the hub beside this configuration file."),
    ] = None,
    logs: Annotated[Path | None, typer.Option("--logs", help="Folder for what the programs print.")] = None,
    patience: Annotated[float, typer.Option("--patience", help="Seconds to wait for the hub.")] = 60.0,
) -> None:
    """Connect participants on this machine to the hub of 'cosolve precice run ... --listen' on another."""
    from cosolve.basics.signals import Terminated, signals_raise
    from cosolve.participants.relay import Relay
    from cosolve.precice.running import python_path
    from cosolve.process.remote import KEY

    secret = key or os.environ.get(KEY)
    commands = named_commands(participants or [])
    if not secret:
        raise SetupError(f"connect: give the key that the hub at {address} has printed, as --key or in {KEY}")
    if not commands and config is None:
        raise SetupError("connect: give -p NAME='COMMAND' to start a program, or --config FILE for those by hand")
    note = None if config is None else Path(f"{os.path.abspath(config)}.hub")
    try:
        with signals_raise():
            Relay(address, secret, commands, environment=python_path(), logs=logs, note=note, patience=patience).run()
    except Terminated:
        typer.echo("cosolve: ended by SIGTERM, and so were the participants here", err=True)
        raise typer.Exit(143) from None


@app.command()
def library(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where it goes.", show_default=False)],
    compiler: Annotated[str | None, typer.Option("--compiler", help="C++ compiler; default: $CXX, or c++.")] = None,
) -> None:
    """Compile the participant library for C, C++ and Fortran, with the names that adapted solvers look for."""
    from cosolve.participants.compiled_client import build_participant_library

    root = build_participant_library(folder, precice=True, compiler=compiler)
    typer.echo(
        f"library    {root / 'lib'} (headers in {root / 'include'}, Fortran module in {root / 'fortran'})\n"
        f"executables that ask for libprecice.so.3: LD_LIBRARY_PATH={root / 'precice' / 'lib'}\n"
        f"to compile against it: PKG_CONFIG_PATH={root / 'precice' / 'lib' / 'pkgconfig'}, or in CMake "
        f"CMAKE_PREFIX_PATH={root / 'precice'}"
    )


@app.command()
def path() -> None:
    """Print the folder that makes `import precice` find cosolve: PYTHONPATH=$(cosolve precice path)."""
    from cosolve.precice.running import OPT_IN

    typer.echo(str(OPT_IN))


def named_commands(words: list[str]) -> dict[str, str]:
    """`NAME=COMMAND` by name."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, command = word.partition("=")
        if not (name.strip() and equals and command.strip()):
            raise SetupError(f"-p {word}: write it as -p NAME='COMMAND'")
        if name.strip() in found:
            raise SetupError(f"-p {word}: '{name.strip()}' has two commands")
        found[name.strip()] = command.strip()
    return found
