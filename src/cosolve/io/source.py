"""Where a run comes from: the file that describes it, what was said otherwise, and whether that is the same still.

A run that keeps states writes its source into them, so that `cosolve resume run.h5` needs nothing but the result file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.interface.driving import Table
from cosolve.io.system_file import Description, load_system
from cosolve.method.named import as_method
from cosolve.run.choose import tolerance


def is_fmu(file: Path) -> bool:
    """True for an FMU, packed or unpacked."""
    return file.suffix.lower() == ".fmu" or (file / "modelDescription.xml").is_file()


def read_any(file: Path, options: Mapping[str, Any], load: Callable[[Path], Description] = load_system) -> Description:
    """A system file, an SSP or one FMU as a run; `options` are what is said otherwise than in the file.

    Those are `method` (a name), `degree`, `step`, `rtol`, `t_end`, `inputs` (`a.u=2.5` or `a.u=drive.csv:column`); for
    an FMU also `kind`, `values` (by name), `outputs`, `tolerance`. Others are kept for whoever gave them.
    `load` reads a system file.
    """
    step, t_end = options.get("step"), options.get("t_end")
    if is_fmu(file):
        from cosolve.io.fmu_run import read_fmu

        own = {key: options.get(key) for key in ("kind", "values", "outputs", "tolerance")}
        described = read_fmu(file, step=step, t_end=t_end, **own)
    elif file.suffix in (".ssp", ".ssd"):
        from cosolve.io.ssp import read_ssp

        described = read_ssp(file, t_end=t_end)
    else:
        described = load(file)
    method, rtol = options.get("method"), options.get("rtol")
    if rtol is not None or method == "auto":  # what is not given is left open
        described = replace(described, method=None, step=None, rtol=tolerance(method, step, rtol))
    if method is not None and method != "auto":
        described = replace(described, method=as_method(method))
    if options.get("degree") is not None:
        if described.method is None:
            raise SetupError("--degree goes with a method, and this one is to be chosen; write --method jacobi:2")
        described = replace(described, method=replace(described.method, degree=options["degree"]))
    if step is not None:
        described = replace(described, step=step)
    if t_end is not None:
        described = replace(described, t_end=t_end)
    for words in options.get("inputs") or []:
        table = _set_input(described.system, words)
        described = replace(described, files=(*described.files, *table))
    return replace(described, options={key: value for key, value in options.items() if value is not None})


def _set_input(system: System, words: str) -> Sequence[Path]:
    """`a.u=2.5` or `a.u=drive.csv:column`; the file that was read."""
    target, equals, given = words.partition("=")
    if not equals or not given:
        raise SetupError(f"--input {words}: write it as a.u=2.5 or a.u=drive.csv:column")
    try:
        system.set(target, float(given))
        return []
    except ValueError:
        pass  # no number
    path, _, column = given.rpartition(":")
    if not path or Path(given).exists():
        path, column = given, ""
    system.set(target, Table.read(path, column or None))
    return [Path(path)]


def source_of(described: Description, pace: float | None) -> dict[str, Any]:
    """What a state says about where its run comes from."""
    files = dict.fromkeys(path.absolute() for path in (described.path, *described.files))
    return {
        "file": str(described.path.absolute()),
        "digests": {str(path): digest(path) for path in files if path.exists()},
        "options": dict(described.options),
        "csv": described.output.csv,
        "plot": list(described.output.plot),
        "pace": pace,
    }


def read_source(source: Mapping[str, Any], result: Path) -> Description:
    """The run behind a state, whose result is in that file; a sentence where something it was made from has changed."""
    for name, before in source["digests"].items():
        if not Path(name).exists():
            raise SetupError(f"the run was made from '{name}', which is not there any more; put it back, or run anew")
        if digest(Path(name)) != before:
            raise SetupError(
                f"'{name}' has changed since the run began, so it would not go on as the same run; put it back as it "
                "was, or run anew"
            )
    described = read_any(Path(source["file"]), source["options"])
    output = replace(described.output, file=result, csv=source["csv"], plot=tuple(source["plot"]))
    return replace(described, output=output)


def digest(path: Path) -> str:
    """Of the content of a file, or of all files in a folder."""
    found = hashlib.sha256()
    inside = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    for each in inside:
        found.update(f"{each.relative_to(path).as_posix()}\n".encode())
        with each.open("rb") as file:
            while block := file.read(1 << 20):
                found.update(block)
    return found.hexdigest()
