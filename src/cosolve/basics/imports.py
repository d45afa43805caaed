"""The user's own functions, named in a system file as `package.module:name`."""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from cosolve.basics.wording import suggest, text_of
from cosolve.errors import SetupError

_used: ContextVar[list[Path] | None] = ContextVar("used", default=None)


def import_callable(address: str, folder: Path) -> Callable[..., Any]:
    """The callable behind `package.module:name`; modules are looked for in `folder` and the current folder first.

    >>> import_callable("math:hypot", Path("."))(3, 4)
    5.0
    """
    module_name, colon, name = address.partition(":")
    if not (module_name and colon and name):
        raise SetupError(f"'{address}' does not name a function; write it as 'package.module:function'")
    root, package = _package(folder, module_name)
    with importable(folder, root):
        try:
            module = importlib.import_module(package + module_name)
        except ModuleNotFoundError as error:
            missing = (error.name or "").removeprefix(package)
            if missing and (module_name == missing or module_name.startswith(missing + ".")):
                raise SetupError(
                    f"there is no module '{missing}' for '{address}'; modules are looked for in '{folder}', "
                    "in the current folder, and among the installed packages"
                ) from None
            raise failed_import(module_name, error) from error
        except (Exception, SystemExit) as error:  # a script that ends itself, too
            raise failed_import(module_name, error) from error
    used, file = _used.get(), getattr(module, "__file__", None)
    if used is not None and file is not None and not _is_installed(module_name, file):
        used.append(Path(file))
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            public = [n for n, value in vars(found).items() if callable(value) and not n.startswith("_")]
            raise SetupError(f"'{module_name}' has no '{part}'; {suggest(part, public)}")
        found = getattr(found, part)
    if not callable(found):
        raise SetupError(f"'{address}' is a {type(found).__name__}, which cannot be called")
    return found  # type: ignore[no-any-return]


@contextmanager
def modules_used() -> Iterator[list[Path]]:
    """The files of the user's own modules that functions are taken from inside."""
    used: list[Path] = []
    before = _used.set(used)
    try:
        yield used
    finally:
        _used.reset(before)


def refuse_bad_arguments(address: str, function: Callable[..., Any], parameters: Mapping[str, Any]) -> None:
    """Raise when keyword arguments do not fit a function that is called with nothing else."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have none
        return
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    for name in parameters:
        if name not in signature.parameters and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise SetupError(f"'{address}' has no parameter '{name}'; {suggest(name, list(signature.parameters))}")
    try:
        signature.bind(**parameters)
    except TypeError as error:
        raise SetupError(f"the parameters do not fit '{address}{signature}': {error}") from None


def call(address: str, function: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    """What a factory makes of its parameters."""
    refuse_bad_arguments(address, function, parameters)
    try:
        return function(**parameters)
    except SetupError:
        raise
    except (Exception, SystemExit) as error:
        raise SetupError(f"'{address}' raised {type(error).__name__}: {text_of(error)} ({_origin(error)})") from error


def failed_import(module_name: str, error: BaseException) -> SetupError:
    """The sentence about a module that cannot be imported."""
    return SetupError(f"importing '{module_name}' raised {type(error).__name__}: {_text(error)} ({_origin(error)})")


def _text(error: BaseException) -> str:
    """What an error says, without the place, which is said besides."""
    return str(error.msg) if isinstance(error, SyntaxError) and error.filename else text_of(error)


def _origin(error: BaseException) -> str:
    """File and line where an error came from."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}, line {error.lineno}"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}, line {last.lineno}"


def _package(folder: Path, module_name: str) -> tuple[Path, str]:
    """Where the package of a folder lies, and its name with a dot; nothing where the module belongs to none.

    A file then has one name in all importers: machine code that numba keeps on disk for it asks for that name.
    """
    root, name = folder.resolve(), ""
    if not (root / f"{module_name.partition('.')[0]}.py").exists():
        return folder, ""
    while (root / "__init__.py").exists() and root.name.isidentifier() and root != root.parent:
        root, name = root.parent, f"{root.name}.{name}"
    loaded = sys.modules.get(name.partition(".")[0])
    if loaded is not None and str(root / loaded.__name__) not in map(str, getattr(loaded, "__path__", [])):
        return folder, ""  # another package has its name
    return root, name


@contextmanager
def importable(folder: Path, root: Path | None = None) -> Iterator[None]:
    """`folder` and the current folder come first while importing; the `root` of its package next.

    Modules of another system file that happen to have the same name (`model.py` is a popular one) are forgotten, so
    that each file gets its own.
    """
    for name in [n for n, module in list(sys.modules.items()) if _is_homonym(n, module, folder)]:  # others import too
        for loaded in [n for n in list(sys.modules) if n == name or n.startswith(name + ".")]:
            sys.modules.pop(loaded, None)
    before = list(sys.path)
    sys.path[:0] = [str(root)] if root not in (None, folder) else []
    sys.path[:0] = [str(folder), str(Path.cwd())]
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before


def _is_homonym(name: str, module: Any, folder: Path) -> bool:
    """True for a loaded top-level module, not an installed one, that `folder` has another file for."""
    file = getattr(module, "__file__", None)
    if "." in name or file is None or _is_installed(name, file):
        return False
    here = [path for path in (folder / f"{name}.py", folder / name / "__init__.py") if path.exists()]
    return bool(here) and Path(file).resolve() not in [path.resolve() for path in here]


def _is_installed(name: str, file: str) -> bool:
    return name.partition(".")[0] in (*sys.stdlib_module_names, "cosolve") or "site-packages" in file
