"""`cosolve resume`: go on with a run that was ended, from the last state that it has kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cosolve.cli.flags import run_flags
from cosolve.cli.run import carry_out, span
from cosolve.cli.screen import INDENT, JsonOption, print_json, say
from cosolve.errors import SetupError


@run_flags("state_every", "max_steps", after="file")
def resume(
    file: Annotated[
        Path, typer.Argument(metavar="RESULT", help="Result file (.h5) of the run; its .state lies beside it.")
    ],
    json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless something is wrong.")] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run what the state names, although you have not written it here.")
    ] = False,
    **options: Any,
) -> None:
    """Go on with a run that was killed, interrupted or failed, and complete its result.

    For runs started with 'cosolve run --state-every': system, method, step and options are known from the state. The
    result is the same, bit for bit, as if nothing had happened. Runs made by a Python program are resumed there:
    cosolve.resume('run.h5', system).
    """
    from cosolve.basics.launcher import told_size
    from cosolve.io.resume import description_behind, left_behind
    from cosolve.io.resume import resume as go_on

    if told_size() > 1:  # all of them would write the same file
        raise SetupError("resume goes on in one process; call it without mpiexec, the bits are the same")
    found, kept = left_behind(file)
    if kept is None:
        if json:
            print_json("resume", {"file": file, "points": len(found), "finished_before": True}, ok=True)
        elif not quiet:
            say(f"{file} has finished already: {span(found)}")
        return
    described = description_behind(file, kept, trust)
    report = described.changes.get("report") or (described.beside(".html") if described.output.report else None)
    if not (quiet or json):
        steps = kept.run["stats"]["steps"]
        say(f"resume  {file} from t = {kept.snapshot.t:.9g}, after {steps} macro steps", INDENT)
    carry_out(
        described,
        lambda show: go_on(file, progress=show, trust=trust, **options),
        "",
        None if report is None else Path(report),
        quiet,
        json,
        "resume",
    )
