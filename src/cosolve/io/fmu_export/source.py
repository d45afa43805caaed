"""Where an exported model comes from, which files it needs, and how it is built again inside the FMU.

A source is a system file, an SSP, `model.py:function`, or a `System` or `Subsystem` object carried by cloudpickle. The
FMU holds the files and a recipe, a small dict; `build` makes the model from them where it is imported.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from contextlib import chdir
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from math import isfinite
from os.path import commonpath
from pathlib import Path, PurePosixPath
from typing import Any

from cosolve.basics.imports import call, import_callable, importable
from cosolve.errors import SetupError
from cosolve.fmu.places import looking_in, watching
from cosolve.interface import System
from cosolve.io import named
from cosolve.io.assembly import hold_unconnected
from cosolve.io.fmu_export.needed import fmu_files, is_file, module_files, pickled_modules, strings_of
from cosolve.io.system_file import Description, load_system
from cosolve.io.tables import method_table, step_table
from cosolve.method import Jacobi, Method
from cosolve.method.named import as_method
from cosolve.run import Stepper
from cosolve.run.startup import Startup
from cosolve.stepsize import Adaptive
from cosolve.subsystem import Subsystem

PICKLED = "model.pickle"

#: How many folders up from the model's file things keep their places to each other.
_NEAR = 3

#: Longer than any communication step: each is one macro step.
_ONE_GO = 1e300


@dataclass
class Model:
    """What runs inside the FMU; `single` is the name of the only subsystem of an exported subsystem."""

    system: System
    method: Method
    step: float | Adaptive | None
    startup: Startup | None = None
    single: str = ""


def stepper(model: Model, t_start: float = 0.0) -> Stepper:
    """The model under way; a single subsystem without a step advances whatever it is asked to in one go."""
    step = _ONE_GO if model.single and model.step is None else model.step
    return Stepper(model.system, method=model.method, step=step, t_start=t_start, startup=model.startup)


@dataclass
class Source:
    """A recipe and the files it needs, by their names inside the FMU's `resources/model`."""

    recipe: dict[str, Any]
    files: dict[str, Path | bytes] = field(default_factory=dict)


def locate(
    source: Any,
    method: Method | None,
    step: float | Adaptive | None,
    files: Iterable[str | Path],
    parameters: Mapping[str, float],
) -> Source:
    """The recipe for a source, and the files that go with it; builds the model once to see which FMUs it takes."""
    recipe: dict[str, Any] = {
        "method": None if method is None else method_table(method),
        "step": step_table(step),
        "within": "",  # the folder of the model's file
        "fmus": {},  # where FMUs are, by their paths as the model has them
    }
    found = Source(recipe)
    if isinstance(source, (System, Subsystem)):
        data = _pickled(source)
        recipe |= {"kind": "pickle"}
        folder = base = Path.cwd()
        found.files |= {PICKLED: data, **pickled_modules(data)}
        with watching() as taken:
            pickle.loads(data)  # noqa: S301  what was packed a moment ago
    else:
        path = _described(str(source), recipe)
        folder = path.parent.resolve()
        with watching() as taken:
            if recipe["kind"] != "ssp":  # which holds its own
                _made(recipe, folder, parameters)
        base = _with_files_of(path, found, taken)
    packed, recipe["fmus"] = fmu_files(taken, base)
    found.files |= packed
    _add(found, files, folder, base)
    return found


def default_arguments(source: str) -> dict[str, float]:
    """The arguments of `model.py:function` whose default is a float."""
    recipe: dict[str, Any] = {}
    path = _described(source, recipe)
    function = import_callable(recipe["address"], path.parent.resolve())
    try:
        arguments = signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins have none
        return {}
    return {a.name: a.default for a in arguments if type(a.default) is float and isfinite(a.default)}


def _described(source: str, recipe: dict[str, Any]) -> Path:
    """The file behind a source; what it is goes into the recipe."""
    file, colon, function = source.rpartition(":")
    if colon and file.endswith(".py"):
        path = Path(file)
        recipe |= {"kind": "function", "address": f"{path.stem}:{function}"}
    elif source.endswith((".toml", ".ssp")):
        path = Path(source)
        recipe |= {"kind": "ssp" if path.suffix == ".ssp" else "system file", "file": path.name}
    else:
        raise SetupError(
            f"export: '{source}' is neither a system file (.toml), an SSP, 'model.py:function' nor a System"
        )
    if not path.is_file():
        raise SetupError(f"export: there is no file '{path}'")
    return path


def _with_files_of(path: Path, found: Source, fmus: Mapping[str, Path]) -> Path:
    """Put in the model's file, its modules and the files it names; the folder that all of these lie in."""
    folder, cwd = path.parent.resolve(), Path.cwd()
    modules, data = [path.stem] if path.suffix == ".py" else [], []
    if path.suffix == ".toml":
        texts = strings_of(path)
        modules = [text.partition(":")[0] for text in texts if ":" in text]
        for text in texts:
            if text not in fmus and is_file(folder / text):
                if Path(text).is_absolute():
                    raise SetupError(
                        f"export: '{path}' names '{text}' by its full path, which leads nowhere on another machine; "
                        "write it relative to the file"
                    )
                data.append((folder / text).resolve())
    base = Path(commonpath([folder, *(file.parent for file in data)]))
    for fmu in fmus.values():  # a module may look for FMUs beside its own folder
        above = Path(commonpath([base, fmu.parent]))
        if above in [base, *folder.parents[:_NEAR]]:
            base = above
    found.recipe["within"] = within = "" if base == folder else folder.relative_to(base).as_posix()
    found.files[PurePosixPath(within, path.name).as_posix()] = path
    found.files |= {file.relative_to(base).as_posix(): file for file in data}
    for name, module in module_files(modules, [folder, cwd]).items():
        found.files[PurePosixPath(within, name).as_posix()] = module
    return base


def _add(found: Source, files: Iterable[str | Path], folder: Path, base: Path) -> None:
    """What the user names besides: below the model's folder it keeps its place, else it comes to lie next to it."""
    for extra in map(Path, files):
        if not extra.exists():
            raise SetupError(f"export: there is no file '{extra}' to put into the FMU")
        for path in [extra] if extra.is_file() else sorted(p for p in extra.rglob("*") if p.is_file()):
            inside = path.resolve().is_relative_to(base)
            name = path.resolve().relative_to(base if inside else extra.resolve().parent).as_posix()
            if "__pycache__" not in name:
                found.files[name if inside else PurePosixPath(found.recipe["within"], name).as_posix()] = path


def _pickled(source: System | Subsystem) -> bytes:
    try:
        cloudpickle: Any = import_module("cloudpickle")
    except ImportError:
        raise SetupError(
            "export: a System object travels by cloudpickle, which is not installed; install cloudpickle, or export a "
            "system file or 'model.py:function'"
        ) from None
    try:
        data: bytes = cloudpickle.dumps(source)
    except Exception as error:
        raise SetupError(
            f"export: this {type(source).__name__} cannot be carried by cloudpickle ({error}); write a function that "
            "builds it and export 'model.py:function'"
        ) from None
    return data


# -- building it again ---------------------------------------------------------------------------------------


def build(recipe: Mapping[str, Any], folder: Path, parameters: Mapping[str, float]) -> Model:
    """The model behind a recipe whose files lie in `folder`.

    The folder of the model's file is the current one meanwhile, so that it finds its data wherever it is imported.
    """
    here = folder.absolute() / recipe["within"]
    moved = {written: folder.absolute() / inside for written, inside in recipe["fmus"].items()}
    with chdir(here), looking_in(here, moved):
        return _model(recipe, _made(recipe, here, parameters), here)


def _made(recipe: Mapping[str, Any], folder: Path, parameters: Mapping[str, float]) -> Any:
    """What the model's file gives."""
    if recipe["kind"] == "pickle":
        with importable(folder):  # its functions may live in modules that travel with it
            return pickle.loads((folder / PICKLED).read_bytes())  # noqa: S301  of the FMU, whose model is a program
    if recipe["kind"] == "system file":
        return load_system(folder / recipe["file"], complete=False)
    if recipe["kind"] == "ssp":
        from cosolve.io.ssp import read_ssp

        return read_ssp(folder / recipe["file"])
    with looking_in(folder):
        return call(recipe["address"], import_callable(recipe["address"], folder), dict(parameters))


def _model(recipe: Mapping[str, Any], made: Any, folder: Path) -> Model:
    """With the method and the step of the recipe, or its own."""
    method = None if recipe["method"] is None else as_method(recipe["method"], folder)
    given = recipe["step"]
    step = named.step_control(given, folder) if isinstance(given, Mapping) else given
    startup: Startup | None = None
    if isinstance(made, Description):
        run = made.options
        if method is None and run.method is None:
            raise SetupError(f"'{made.path.name}' leaves the method open; give one: export_fmu(..., method=...)")
        startup, step = run.startup, step or run.step
        made, method = made.system, method or as_method(run.method or "")
    elif isinstance(made, (tuple, list)) and len(made) == 3:
        made, method, step = made[0], method or made[1], step or made[2]
    if isinstance(made, Subsystem):
        system = System({"model": made})
        hold_unconnected(system)
        return Model(system, method or Jacobi(degree=0), step, single="model")
    if not isinstance(made, System):
        raise SetupError(
            f"export: '{recipe.get('address')}' returned a {type(made).__name__}, not a System or Subsystem"
        )
    if method is None:
        raise SetupError("export: a System needs a method; give method= and step=, or return (system, method, step)")
    hold_unconnected(made)
    return Model(made, as_method(method), step, startup)
