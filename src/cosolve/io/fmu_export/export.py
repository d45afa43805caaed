"""Writing the FMU: model files, recipe, description, and the wrapper library of pythonfmu or pythonfmu3.

The FMU runs cosolve in the Python of the importing process: it holds the model, not cosolve itself.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from hashlib import sha256
from html import escape
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from cosolve.basics.atomic_files import replacing
from cosolve.basics.checks import as_path
from cosolve.errors import CosolveError, OutputFileError, SetupError
from cosolve.interface import System
from cosolve.io.fmu_export.interface import Variable, dependencies, variables
from cosolve.io.fmu_export.model_description import Facts, model_description
from cosolve.io.fmu_export.needed import is_installed
from cosolve.io.fmu_export.source import Model, Source, build, default_arguments, locate, stepper
from cosolve.method.named import MethodLike, as_method
from cosolve.stepsize import Adaptive
from cosolve.subsystem import Subsystem

Version = Literal["2.0", "3.0"]

_MODEL = "resources/model/"
_WRAPPERS = {"2.0": ("pythonfmu", "Fmi2Slave"), "3.0": ("pythonfmu3", "Fmi3Slave")}


def export_fmu(
    source: str | Path | System | Subsystem,
    path: str | Path,
    *,
    version: Version = "2.0",
    method: MethodLike | None = None,
    step: float | Adaptive | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    parameters: Mapping[str, float] | None = None,
    files: Iterable[str | Path] = (),
    name: str | None = None,
) -> Path:
    """Write a coupled system or a Python subsystem as one co-simulation FMU.

    Parameters
    ----------
    source : str, Path, System or Subsystem
        A system file (`.toml`), an SSP, "model.py:function" with a function that returns a `Subsystem`, a `System` or
        `(system, method, step)`; or an object, which needs cloudpickle.
    path : str or Path
        The FMU to write, ending in `.fmu`.
    version : {"2.0", "3.0"}, default "2.0"
        Version of FMI.
    method : Method, str, dict or None, default None
        Coupling method. None: that of the source.
    step : float, Adaptive or None, default None
        Macro step in seconds, or error control. None: that of the source.
    inputs : sequence of str or None, default None
        Inputs of the FMU. None: those that nothing feeds and those that `System.set` holds.
    outputs : sequence of str or None, default None
        Outputs of the FMU. None: all outputs.
    parameters : mapping of str to float or None, default None
        Arguments of the function and their start values. None: all arguments whose default is a float.
    files : iterable of str or Path, optional
        Data files that the model reads. FMUs, modules and named files travel with it anyway.
    name : str or None, default None
        Name of the model. None: that of the file.

    Returns
    -------
    Path
        The FMU.

    Raises
    ------
    SetupError
        If the model cannot be exported.

    Notes
    -----
    The importer's steps must be whole multiples of the macro step, else they are discarded with a message; a single
    subsystem, `Adaptive` steps and methods that choose their own steps take any. The importing process needs a Python
    with cosolve.

    Examples
    --------
    >>> import tempfile, cosolve as cs
    >>> text = '''
    ... import cosolve as cs
    ... def tank(area=2.0):
    ...     return cs.Ode(lambda t, x, u: u / area, lambda t, x, u: x, x0=[1.0], inputs=["q"], outputs=["h"])
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "model.py").write_text(text)
    ...     made = cs.fmi.export_fmu(f"{folder}/model.py:tank", f"{folder}/tank.fmu", parameters={"area": 2.0})
    ...     made.name
    'tank.fmu'
    """
    path = as_path("export", path)
    if not isinstance(version, str) or version not in _WRAPPERS:
        raise SetupError(f"export: version must be '2.0' or '3.0', not {version!r}")
    if path.suffix != ".fmu":
        raise SetupError(f"export: '{path}' must end in .fmu")
    libraries = _libraries(version)
    if parameters and not _is_function(source):
        raise SetupError("export: parameters are arguments of a function; export 'model.py:function'")
    given = {name: _number(name, value) for name, value in (parameters or {}).items()}
    loaded = dict(sys.modules)
    if parameters is None and _is_function(source):
        given = default_arguments(str(source))
    located = locate(source, None if method is None else as_method(method), step, files, given)
    with _tried(located, given, loaded) as model:
        if parameters is None:  # a port of that name comes first
            given = {name: value for name, value in given.items() if name not in _port_names(model)}
        shown = variables(model, version == "3.0", inputs, outputs, given)
        saves, serialises, depends = _states(model, shown)
    recipe = {
        **located.recipe,
        "variables": [variable.table() for variable in shown],
        "single": model.single,
        "serialises": serialises,
    }
    identifier = re.sub(r"\W", "_", name or path.stem)
    identifier = f"m_{identifier}" if not identifier[:1].isalpha() else identifier
    content = {_MODEL + inside: _read(file) for inside, file in located.files.items()}
    content["resources/cosolve.json"] = json.dumps(recipe, indent=1).encode()
    token = sha256(b"".join(key.encode() + value for key, value in sorted(content.items()))).hexdigest()[:32]
    module = f"cosolve_fmu{version[0]}_{token}"  # two FMUs in one process must not share a module
    content[f"resources/{module}.py"] = _slave(version).encode()
    content["resources/slavemodule.txt"] = module.encode()
    facts = Facts(
        name or path.stem,
        identifier,
        token if version == "3.0" else "{" + token + "}",
        f"{model.method.label} of {', '.join(model.system.subsystems)}" if not model.single else "one subsystem",
        "cosolve",
        saves,
        serialises,
        model.step if isinstance(model.step, float) else None,
        depends,
    )
    content["modelDescription.xml"] = model_description(version, facts, shown)
    content["documentation/index.html"] = _page(facts, model, shown).encode()
    for folder, library in libraries.items():
        content[f"binaries/{folder}/{identifier}{library.suffix}"] = library.read_bytes()
    _write(path, content)
    return path


def packed_files(path: str | Path) -> list[str]:
    """The files of the model that an exported FMU holds, by their names in its `resources/model`."""
    with ZipFile(path) as file:
        inside = [name.removeprefix(_MODEL) for name in file.namelist() if name.startswith(_MODEL)]
    return [name for name in inside if name]


def _libraries(version: str) -> dict[str, Path]:
    """The wrapper libraries by platform folder."""
    package, _ = _WRAPPERS[version]
    home = Path(str(import_module(package).__file__)).parent
    found = {
        library.parent.name: library
        for library in sorted((home / "resources" / "binaries").rglob("*"))
        if library.suffix in (".so", ".dll", ".dylib")
    }
    if not found:
        raise SetupError(f"export: {package} has no wrapper library in it; install it anew")
    return found


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SetupError(f"export: the parameter '{name}' must be a number, not {value!r}")
    return float(value)


def _port_names(model: Model) -> set[str]:
    ports = [*model.system.inputs.values(), *model.system.outputs.values()]
    return {port.name for some in ports for port in some} if model.single else set()


def _is_function(source: object) -> bool:
    return isinstance(source, (str, Path)) and ".py:" in str(source)


@contextmanager
def _tried(located: Source, parameters: Mapping[str, float], loaded: Mapping[str, ModuleType]) -> Iterator[Model]:
    """The model built from the very files that the FMU will hold, and nothing else: elsewhere there is no more."""
    with tempfile.TemporaryDirectory() as home:
        folder, empty = Path(home, "model"), Path(home, "empty")
        empty.mkdir()
        for inside, file in located.files.items():
            target = folder / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_read(file))
        for name in set(sys.modules) - set(loaded):  # imported from the model's own folder a moment ago
            if not is_installed(sys.modules[name]):
                del sys.modules[name]
        try:
            with chdir(empty):
                yield _built(located.recipe, folder, parameters)
        finally:
            _forget_modules(Path(home), loaded)


def _built(recipe: Mapping[str, Any], folder: Path, parameters: Mapping[str, float]) -> Model:
    """The model, which could be built in its own place a moment ago."""
    try:
        return build(recipe, folder, parameters)
    except SetupError as error:
        if str(error).startswith("export:"):
            raise
        raise SetupError(
            f"export: the model cannot be built from the files that would be in the FMU: {error}; name what is missing "
            "in files= (--file on the command line)"
        ) from error


def _forget_modules(home: Path, loaded: Mapping[str, ModuleType]) -> None:
    """The user's own modules again, not the copies in a folder that is about to go."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).is_relative_to(home):
            del sys.modules[name]
            if name in loaded:
                sys.modules[name] = loaded[name]


def _read(file: Path | bytes) -> bytes:
    return file if isinstance(file, bytes) else file.read_bytes()


def _states(model: Model, shown: Sequence[Variable]) -> tuple[bool, bool, dict[int, list[int]]]:
    """Whether the model's state can be saved, whether as bytes too, and which outputs react at once to which inputs.

    The last is known of a single subsystem only. Starts the model once.
    """
    with stepper(model) as running:
        depends = dependencies(model, shown)
        try:
            running.save()
        except CosolveError:
            return False, False, depends
        try:
            running.save(portable=True).to_bytes()
        except CosolveError:
            return True, False, depends
    return True, True, depends


def _slave(version: str) -> str:
    _, base = _WRAPPERS[version]
    return (
        f'"""Written by cosolve, which the Python that runs this must have."""\n\n'
        f"from cosolve.io.fmu_export.runtime import {base}, keep\n\n"
        f"keep(globals())\n\n\n"
        f"class Model({base}):\n"
        f"    def __init__(self, **options):\n"
        f"        keep(globals())\n"
        f"        super().__init__(**options)\n"
    )


def _page(facts: Facts, model: Model, shown: Sequence[Variable]) -> str:
    rows = "".join(
        f"<tr><td>{escape(v.name)}</td><td>{v.causality}</td><td>{escape(v.unit)}</td></tr>\n" for v in shown
    )
    step = "any step" if facts.step is None else f"whole multiples of {facts.step:g}"
    return (
        f"<!DOCTYPE html>\n<html><head><title>{escape(facts.name)}</title></head><body>\n"
        f"<h1>{escape(facts.name)}</h1>\n<pre>{escape(str(model.system))}\n{escape(repr(model.method))}</pre>\n"
        f"<p>Communication steps: {step}.</p>\n"
        "<p>This FMU runs cosolve in the importing process: it needs a Python with cosolve in it, whose library the "
        "process has loaded (FMPy has, being Python itself).</p>\n"
        f"<table>\n{rows}</table>\n</body></html>\n"
    )


def _write(path: Path, content: Mapping[str, bytes]) -> None:
    try:
        with replacing(path) as draft, ZipFile(draft, "w") as file:
            for inside, data in content.items():
                file.writestr(ZipInfo(inside), data, ZIP_DEFLATED)  # no time stamps: same model, same bytes
    except OSError as error:
        raise OutputFileError(f"export: '{path}' cannot be written: {error.strerror or error}") from None
