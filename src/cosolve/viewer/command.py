"""`cosolve view`: results side by side, fields in motion, a system before it runs, or maps of a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cosolve.cli.options import DegreeOption, MethodOption, StepOption, read_file
from cosolve.errors import CosolveError, SetupError

if TYPE_CHECKING:
    from cosolve.viewer.viewer_session import ViewerSession

_RESULTS = (".h5", ".hdf5")
_SYSTEMS = (".toml", ".ssp", ".ssd", ".fmu")


def view(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Result files (.h5) and fields (.vtkhdf), one system file (TOML, SSP, FMU), or a sweep (.nc).",
        ),
    ],
    method: MethodOption = None,
    degree: DegreeOption = None,
    step: StepOption = None,
    host: Annotated[
        str, typer.Option("--host", help="Serve to others as well, at this address of the computer.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Serve at this port; 0 takes a free one.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the browser, or only print the address.")
    ] = True,
) -> None:
    """Look at results in the browser, several side by side with their difference, at fields, a system or a sweep.

    The page comes from this computer and is for it alone, unless --host says otherwise; Ctrl-C ends it.
    """
    from cosolve.viewer.host import serve

    page = serve(_shown(files, method, degree, step), host=host, port=port, open_browser=browser, told=_told)
    try:
        page.wait()
    finally:
        page.close()


def _told(line: str) -> None:
    typer.echo(line)


def _shown(files: list[Path], method: str | None, degree: int | None, step: float | None) -> ViewerSession:
    from cosolve.viewer.viewer_session import ViewerSession
    from cosolve.viewer.viewing import NETCDF, VTKHDF, results_and_fields, session_of

    if any(file.suffix.lower() in NETCDF for file in files):
        return session_of(tuple(files), None, None)
    described = [file for file in files if file.suffix.lower() not in (*_RESULTS, *VTKHDF)]
    if not described:
        return results_and_fields(tuple(files))
    if len(files) > 1:
        raise SetupError(
            f"view shows one system at a time, or results (.h5) and fields (.vtkhdf); '{described[0]}' is a system"
        )
    (file,) = files
    if not file.exists():
        raise SetupError(f"there is no file '{file}'; check the path")
    if file.is_file() and file.suffix.lower() not in _SYSTEMS:
        raise SetupError(f"'{file}' is nothing to view: results end in .h5, fields in .vtkhdf, systems in .toml")
    try:
        return _system(file, method, degree, step)
    except CosolveError as error:  # the page says it, too: with the line of the file
        typer.echo(f"cosolve: {error}", err=True)
        return ViewerSession(problem=str(error), title=file.name)


def _system(file: Path, method: str | None, degree: int | None, step: float | None) -> ViewerSession:
    from cosolve.method.named import as_method
    from cosolve.viewer.system_view import described
    from cosolve.viewer.viewer_session import ViewerSession

    found = read_file(file, method=method, degree=degree, step=step)
    taken, H = found.options.method, found.options.step
    about = described(found.system, None if taken is None else as_method(taken), H if isinstance(H, float) else None)
    return ViewerSession(system={**about, "title": file.name}, title=file.name)
