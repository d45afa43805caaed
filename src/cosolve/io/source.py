"""Where a run comes from: the file that describes it, what was said otherwise, and whether that is the same still.

A run that keeps states writes its source into them, so that `cosolve resume run.h5` needs nothing but the result file.

A saved state names a program, which is run without a question only where this user has written the state: it is signed.
The key is 32 random bytes in a file that only this user can read.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from secrets import token_bytes
from typing import Any, NamedTuple

from cosolve.accuracy.auto.choose import tolerance
from cosolve.basics.wording import shown, suggest
from cosolve.errors import SetupError
from cosolve.interface.driven_inputs import Table
from cosolve.io import named
from cosolve.io.system_file import Description, load_system
from cosolve.method.named import as_method
from cosolve.options import RunOptions, known_options
from cosolve.run.naming import as_observers
from cosolve.run.pace import Pace


def seal(content: Mapping[str, Any]) -> str:
    """Of plain values; empty where no key can be kept.

    >>> seal({"file": "a.toml"}) == seal({"file": "b.toml"})
    False
    """
    key = _key()
    text = json.dumps(content, sort_keys=True, default=str).encode()
    return hmac.new(key, text, "sha256").hexdigest() if key else ""


def is_sealed(content: Mapping[str, Any], mark: object) -> bool:
    """True for the seal of this user."""
    made = seal(content)
    return bool(made) and isinstance(mark, str) and hmac.compare_digest(made.encode(), mark.encode())


def _key() -> bytes:
    try:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state", "cosolve")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "seal"
        if not path.exists():
            draft = folder / f"seal.{os.getpid()}"
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(token_bytes(32))
            if path.exists():
                draft.unlink()
            else:
                os.replace(draft, path)
        key = path.read_bytes()
    except (OSError, RuntimeError):  # no home
        return b""
    return key if len(key) == 32 else b""


def is_fmu(file: Path) -> bool:
    """True for an FMU, packed or unpacked."""
    return file.suffix.lower() == ".fmu" or (file / "modelDescription.xml").is_file()


#: Changes that are no run options, or become one only here.
_OWN = ("method", "degree", "step", "rtol", "startup", "observers", "resume", "save", "meta")
#: What changes nothing about the model and the solution.
_NO_CHANGE = ("report", "resume", "save", "save_state", "state_every", "logs")


def read_any(file: Path, changes: Mapping[str, Any], load: Callable[..., Description] = load_system) -> Description:
    """A system file, an SSP or one FMU as a run; `changes` are what is said otherwise than in the file.

    Those are run options with plain values (`method`, `startup` and `observers` are names), `degree`, `inputs`
    (`a.u=2.5` or `a.u=drive.csv:column`), `values` (by key of a system file, address in an SSP, name in an FMU),
    `isolated`, `logs` (file and level by FMU); for an FMU also `kind`, `outputs`, `tolerance`. Others are kept. `load`
    reads a system file.
    """
    given = {key: value for key, value in changes.items() if value is not None}
    method, step, rtol, t_end = (given.get(name) for name in ("method", "step", "rtol", "t_end"))
    inputs = dict(map(_driven, given.get("inputs", [])))
    if is_fmu(file):
        from cosolve.io.fmu_run import read_fmu

        own = {key: given.get(key) for key in ("kind", "values", "outputs", "tolerance")}
        options_of = _fmu_options(given, {file.stem: ""})
        _refuse_unknown(options_of, file.stem)
        described = read_fmu(file, step=step, t_end=t_end, options=options_of.get("", {}), **own)
        (name,) = described.system.subsystems
        inputs = {u if u.startswith(f"{name}.") else f"{name}.{u}": drive for u, drive in inputs.items()}
    elif file.suffix in (".ssp", ".ssd"):
        from cosolve.io.ssp import read_ssp

        options_of = _fmu_options(given)
        described = read_ssp(file, t_end=t_end, values=given.get("values"), fmu_options=options_of)
        _refuse_unknown(options_of, *described.system.subsystems)
    else:
        values = dict(given.get("values", {}))
        for name, of_name in _fmu_options(given).items():
            values |= {f"{name}.options.{key}": each for key, each in of_name.items() if name}
        for target, drive in inputs.items():
            if isinstance(drive, float):
                values[f"constants.{target}"] = drive
            else:
                values[f"inputs.{target}"] = {k: each for k, each in drive._asdict().items() if each is not None}
        described, inputs = load(file, changes=values, isolated=given.get("isolated", False)), {}
    for target, drive in inputs.items():
        described.system.set(target, drive if isinstance(drive, float) else Table.read(drive.table, drive.column))
    files = [Path(drive.table) for drive in inputs.values() if not isinstance(drive, float)]
    options = described.options
    if rtol is not None or method == "auto":  # what is not given is left open
        options = replace(options, method=None, step=None, rtol=tolerance(method, step, rtol))
    if method is not None and method != "auto":
        options = replace(options, method=as_method(method))
    if "degree" in given:
        if options.method is None:
            raise SetupError("--degree goes with a method, and this one is to be chosen; write --method jacobi:2")
        options = replace(options, method=replace(as_method(options.method), degree=given["degree"]))
    if step is not None:
        options = replace(options, step=step)
    if "startup" in given:
        options = replace(options, startup=named.startup(given["startup"]))
    if "observers" in given:
        options = replace(options, observers=[*options.observers, *as_observers(given["observers"])])
    names = known_options(RunOptions).keys() - set(_OWN)
    options = replace(options, **{name: value for name, value in given.items() if name in names})
    if changed := {key: value for key, value in given.items() if value and key not in _NO_CHANGE}:
        options = replace(options, meta={"changes": changed})
    files = [*described.files, *files]
    return replace(described, options=options, files=tuple(files), changes=given)


def _refuse_unknown(options_of: Mapping[str, object], *known: str) -> None:
    for name in options_of:
        if name and name not in known:
            raise SetupError(f"--log {name}: there is no FMU of that name; {suggest(name, known)}")


class _Column(NamedTuple):
    """A column of a file that drives an input; None where there is only one."""

    table: str
    column: str | None


def _driven(words: str) -> tuple[str, float | _Column]:
    """`a.u=2.5` or `a.u=drive.csv:column`: the input, and what drives it.

    >>> _driven("a.u=2.5")
    ('a.u', 2.5)
    """
    target, equals, given = words.partition("=")
    if not equals or not given:
        raise SetupError(f"--input {words}: write it as a.u=2.5 or a.u=drive.csv:column")
    try:
        return target, float(given)
    except ValueError:
        pass  # no number
    path, _, column = given.rpartition(":")
    if not path or Path(given).exists():
        path, column = given, ""
    if not Path(path).is_file():
        raise SetupError(
            f"--input {words}: '{path}' is neither a number nor a file that is there; write {target}=2.5, or "
            f"{target}=drive.csv:column"
        )
    return target, _Column(str(Path(path).absolute()), column or None)


def _fmu_options(given: Mapping[str, Any], names: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """Further arguments of `load_fmu` by FMU (its other name in `names`), those for all of them under ""."""
    found: dict[str, dict[str, Any]] = {"": {"isolated": True}} if given.get("isolated") else {}
    for name, (log, level) in given.get("logs", {}).items():
        found.setdefault((names or {}).get(name, name), {}).update(log=log, log_level=level)
    return found


def source_of(described: Description, options: RunOptions) -> dict[str, Any]:
    """What a state says about where its run comes from; `options` are those of the run."""
    files = dict.fromkeys(path.absolute() for path in (described.path, *described.files))
    source = {
        "file": str(described.path.absolute()),
        "digests": {str(path): digest(path) for path in files if path.exists()},
        "options": dict(described.changes),
        "csv": described.output.csv,
        "plot": list(described.output.plot),
        "pace": options.pace.rate if isinstance(options.pace, Pace) else options.pace,
    }
    return source | {"seal": seal(source)}


def read_source(source: Mapping[str, Any], result: Path, trust: bool) -> Description:
    """The run behind a state, whose result is in that file; a sentence where something it was made from has changed.

    What a state names is run, so a state that this user has not written here needs `trust`.
    """
    content = {key: value for key, value in source.items() if key != "seal"}
    if not trust and not is_sealed(content, source.get("seal")):
        raise SetupError(
            f"the state of '{result.name}' would run '{shown(content.get('file'))}', and was not written by you on "
            "this computer; if you trust it, resume with --trust (in Python: cosolve.resume(file, trust=True))"
        )
    for name, before in source["digests"].items():
        if not Path(name).exists():
            raise SetupError(f"the run was made from '{name}', which is not there any more; put it back, or run anew")
        if digest(Path(name)) != before:
            raise SetupError(
                f"'{name}' has changed since the run began, so it would not go on as the same run; put it back as it "
                "was, or run anew"
            )
    described = read_any(Path(source["file"]), source["options"])
    output = replace(described.output, csv=source["csv"], plot=tuple(source["plot"]))
    options = replace(described.options, save=result, pace=source["pace"])
    return replace(described, output=output, options=options)


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
