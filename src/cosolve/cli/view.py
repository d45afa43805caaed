"""`cosolve view`: results side by side, fields in motion, a system before it runs, or maps of a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cosolve.cli.options import DegreeOption, MethodOption, StepOption, is_fmu, read_file
from cosolve.errors import CosolveError, SetupError

if TYPE_CHECKING:
    from cosolve.viewer.exhibition import Exhibition

_RESULTS = (".h5", ".hdf5")


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
    from cosolve.viewer.hosting import serve

    page = serve(_shown(files, method, degree, step), host=host, port=port, open_browser=browser, told=_told)
    try:
        page.wait()
    except KeyboardInterrupt:
        pass
    finally:
        page.close()


def _told(line: str) -> None:
    typer.echo(line)


def _shown(files: list[Path], method: str | None, degree: int | None, step: float | None) -> Exhibition:
    from cosolve.viewer.exhibition import Exhibition
    from cosolve.viewer.viewing import NETCDF, VTKHDF, exhibition_of, results_and_fields

    if any(file.suffix.lower() in NETCDF for file in files):
        return exhibition_of(tuple(files), None, None)
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
    try:
        return _system(file, method, degree, step)
    except CosolveError as error:  # the page says it, too: with the line of the file
        typer.echo(f"cosolve: {error}", err=True)
        return Exhibition(problem=str(error), title=file.name)


def _system(file: Path, method: str | None, degree: int | None, step: float | None) -> Exhibition:
    from cosolve.viewer.before import described
    from cosolve.viewer.exhibition import Exhibition

    if is_fmu(file):
        found = read_file(file, method, degree, step, None, kind=None, values={}, outputs=None, tolerance=None)
    else:
        found = read_file(file, method, degree, step, None)
    about = described(found.system, found.method, found.step if isinstance(found.step, float) else None)
    return Exhibition(system={**about, "title": file.name}, title=file.name)
