"""Where an exported model comes from, which files it needs, and how it is built again inside the FMU.

A source is a system file, an SSP, `model.py:function`, or a `System` or `Subsystem` object carried by cloudpickle. The
FMU holds the files and a recipe, a small dict; `build(recipe, folder)` makes the model from them where it is imported.
"""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.io import named
from cosolve.io.imports import call, import_callable, importable
from cosolve.io.system_file import Description, load_system
from cosolve.io.tables import method_table, step_table
from cosolve.method import Jacobi, Method
from cosolve.method.startup import RisingDegree
from cosolve.stepper import Stepper
from cosolve.stepsize import Adaptive
from cosolve.subsystem import Subsystem

PICKLED = "model.pickle"

#: Longer than any communication step: each is one macro step.
_ONE_GO = 1e300


@dataclass
class Model:
    """What runs inside the FMU; `single` is the name of the only subsystem of an exported subsystem."""

    system: System
    method: Method
    step: float | Adaptive | None
    startup: RisingDegree | None = None
    single: str = ""


def stepper(model: Model, t_start: float = 0.0) -> Stepper:
    """The model under way; a single subsystem without a step crosses whatever it is asked to in one go."""
    step = _ONE_GO if model.single and model.step is None else model.step
    return Stepper(model.system, method=model.method, step=step, t_start=t_start, startup=model.startup)


@dataclass
class Source:
    """A recipe and the files it needs, by their names inside the FMU's `resources/model`."""

    recipe: dict[str, Any]
    files: dict[str, Path | bytes] = field(default_factory=dict)


def locate(source: Any, method: Method | None, step: float | Adaptive | None, files: Iterable[str | Path]) -> Source:
    """The recipe for a source, and the files that go with it."""
    given = {
        "method": None if method is None else method_table(method),
        "step": step_table(step),
    }
    if isinstance(source, (System, Subsystem)):
        found = Source({"kind": "pickle", **given}, {PICKLED: _pickled(source)})
        folder = Path.cwd()
    else:
        found, folder = _from_file(str(source), given)
    for extra in map(Path, files):
        if not extra.exists():
            raise SetupError(f"export: there is no file '{extra}' to put into the FMU")
        for path in [extra] if extra.is_file() else sorted(p for p in extra.rglob("*") if p.is_file()):
            inside = path.resolve().is_relative_to(folder.resolve())
            name = path.resolve().relative_to(folder.resolve() if inside else extra.resolve().parent).as_posix()
            if "__pycache__" not in name:
                found.files[name] = path
    return found


def _from_file(source: str, given: dict[str, Any]) -> tuple[Source, Path]:
    file, colon, function = source.rpartition(":")
    if colon and file.endswith(".py"):
        path = Path(file)
        recipe = {"kind": "function", "address": f"{path.stem}:{function}", **given}
        modules = [path.stem]
    elif source.endswith((".toml", ".ssp")):
        path = Path(source)
        kind = "ssp" if path.suffix == ".ssp" else "system file"
        recipe, modules = {"kind": kind, "file": path.name, **given}, []
    else:
        raise SetupError(
            f"export: '{source}' is neither a system file (.toml), an SSP, 'model.py:function' nor a System"
        )
    if not path.is_file():
        raise SetupError(f"export: there is no file '{path}'")
    folder = path.parent
    files: dict[str, Path | bytes] = {path.name: path}
    if recipe["kind"] == "system file":
        texts = _texts(path)
        modules = [text.partition(":")[0] for text in texts if ":" in text]
        files |= {text: folder / text for text in texts if not Path(text).is_absolute() and (folder / text).is_file()}
    for found in _with_imports(modules, folder):
        files[found.relative_to(folder).as_posix()] = found
    return Source(recipe, files), folder


def _texts(path: Path) -> list[str]:
    """All texts in a system file: among them names of modules (`module:function`) and of further files."""
    import tomllib

    found: list[str] = []

    def look(value: Any) -> None:
        if isinstance(value, Mapping):
            for inside in value.values():
                look(inside)
        elif isinstance(value, list):
            for inside in value:
                look(inside)
        elif isinstance(value, str):
            found.append(value)

    try:
        look(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        load_system(path)  # says what is wrong, and where
    return found


def _with_imports(modules: list[str], folder: Path) -> list[Path]:
    """Files of these modules below `folder`, and of the modules they import from there."""
    todo, files = list(modules), dict[Path, None]()
    while todo:
        parts = todo.pop().split(".")
        for depth in range(1, len(parts) + 1):
            base = folder.joinpath(*parts[:depth])
            for path in (base.with_suffix(".py"), base / "__init__.py"):
                if path.is_file() and path not in files:
                    files[path] = None
                    todo += _imports(path, parts if path.name == "__init__.py" else parts[:-1])
    return list(files)


def _imports(path: Path, package: list[str]) -> list[str]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError) as error:
        raise SetupError(f"export: '{path}' is not a Python file that can be read: {error}") from None
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            found += [start, *(f"{start}.{name.name}" if start else name.name for name in node.names)]
    return [name for name in found if name]


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


def build(recipe: Mapping[str, Any], folder: Path, parameters: Mapping[str, float] | None = None) -> Model:
    """The model behind a recipe whose files lie in `folder`."""
    method = None if recipe["method"] is None else named.method(recipe["method"], folder)
    given = recipe["step"]
    step = named.step_control(given, folder) if isinstance(given, Mapping) else given
    startup: RisingDegree | None = None
    made: Any
    if recipe["kind"] == "pickle":
        with importable(folder):  # its functions may live in modules that travel with it
            made = pickle.loads((folder / PICKLED).read_bytes())
    elif recipe["kind"] == "system file":
        made = load_system(folder / recipe["file"])
    elif recipe["kind"] == "ssp":
        from cosolve.io.ssp import read_ssp

        made = read_ssp(folder / recipe["file"])
    else:
        address = recipe["address"]
        made = call(address, import_callable(address, folder), dict(parameters or {}))
    if isinstance(made, Description):
        made, method, step, startup = made.system, method or made.method, step or made.step, made.startup
    elif isinstance(made, (tuple, list)) and len(made) == 3:
        made, method, step = made[0], method or made[1], step or made[2]
    if isinstance(made, Subsystem):
        system = System({"model": made})
        _hold_the_rest(system)
        return Model(system, method or Jacobi(degree=0), step, single="model")
    if not isinstance(made, System):
        raise SetupError(
            f"export: '{recipe.get('address')}' returned a {type(made).__name__}, not a System or Subsystem"
        )
    if method is None:
        raise SetupError("export: a System needs a method; give method= and step=, or return (system, method, step)")
    _hold_the_rest(system=made)
    return Model(made, method, step, startup)


def _hold_the_rest(system: System) -> None:
    """Inputs that nothing feeds are inputs of the FMU: held at 0 until somebody sets them."""
    for address in system.unfed():
        system.set(address, 0.0)
