"""Which files a model needs: Python modules with what they import, FMUs, and what a system file names.

Modules of installed packages stay where they are; everything else that the model was seen to use travels with it.
"""

from __future__ import annotations

import ast
import pickletools
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cosolve.errors import SetupError
from cosolve.io.system_file import load_system


def strings_of(path: Path) -> list[str]:
    """All strings in a system file about its system: names of modules (`module:function`) and of further files."""
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
        look({key: table for key, table in tomllib.loads(path.read_text(encoding="utf-8")).items() if key != "output"})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        load_system(path)  # says what is wrong, and where
    return found


def is_file(path: Path) -> bool:
    """True for a file; a text that cannot be a path is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long, or with a NUL in it
        return False


def module_files(modules: Iterable[str], roots: Sequence[Path]) -> dict[str, Path]:
    """Files of these modules below the first of the folders that has them, and of the modules they import from there.

    By their names relative to that folder.
    """
    todo, files = list(modules), dict[str, Path]()
    while todo:
        parts = todo.pop().split(".")
        if parts[0] == "cosolve" or parts[0] in sys.stdlib_module_names:
            continue
        root = next((r for r in roots if _has_module(r, parts[0])), None)
        for depth in range(1, len(parts) + 1) if root else ():
            assert root is not None
            base = root.joinpath(*parts[:depth])
            for path in (base.with_suffix(".py"), base / "__init__.py"):
                name = path.relative_to(root).as_posix()
                if is_file(path) and name not in files:
                    files[name] = path
                    todo += _imports(path, parts[:depth] if path.name == "__init__.py" else parts[: depth - 1])
    return files


def _has_module(root: Path, name: str) -> bool:
    return is_file(root / f"{name}.py") or (root / name).is_dir()


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


def pickled_modules(data: bytes) -> dict[str, Path]:
    """Files of the modules that a pickle refers to by name and that belong to no installed package."""
    named = {text for _, text, _ in pickletools.genops(data) if isinstance(text, str) and text in sys.modules}
    files: dict[str, Path] = {}
    for name in sorted(named):
        module = sys.modules[name]
        if is_installed(module) or name == "__main__":
            continue
        path = Path(str(module.__file__)).resolve()
        depth = name.count(".") + (path.name == "__init__.py")
        files |= module_files([name], [path.parents[depth]])
    return files


def is_installed(module: object) -> bool:
    """True for modules of Python, of installed packages and of cosolve, and for those without a file."""
    file, name = getattr(module, "__file__", None), str(getattr(module, "__name__", ""))
    if file is None or name.partition(".")[0] == "cosolve":
        return True
    homes = {Path(sysconfig.get_path(kind)).resolve() for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(Path(file).resolve().is_relative_to(home) for home in homes)


def fmu_files(taken: Mapping[str, Path], base: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """Files of the FMUs that were taken, by their names inside, and where each path leads as it was written.

    What lies below `base` keeps its place; others get one in a folder of their own.
    """
    files: dict[str, Path] = {}
    places: dict[Path, str] = {}
    for path in taken.values():
        if path in places:
            continue
        name = path.relative_to(base).as_posix() if path.is_relative_to(base) else f"fmus/{path.name}"
        while name in places.values():
            name = f"fmus/{len(places)}/{path.name}"
        places[path] = name
        if path.is_file():
            files[name] = path
        else:  # an unpacked FMU
            files |= {f"{name}/{p.relative_to(path).as_posix()}": p for p in sorted(path.rglob("*")) if p.is_file()}
    return files, {written: places[path] for written, path in taken.items()}
