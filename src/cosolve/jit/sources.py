"""Which sources machine code is made from: a module's own file and, from there, all that it imports of this package.

Found by reading the import lines, without importing anything. What a module imports only for type checkers is left out,
what a function imports when it is called is not.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from pathlib import Path

#: The package's folder.
PACKAGE = Path(__file__).parents[1]

_NAME = PACKAGE.name
_REMARK = re.compile(r"[ \t]*#[^\n]*")
_FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+\S.*\n|[ \t]*\n)*", re.MULTILINE)
_IMPORT = re.compile(
    rf"^[ \t]*(?:from[ \t]+({_NAME}(?:\.\w+)*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+({_NAME}\b[^\n]*))",
    re.MULTILINE,
)


def stamp(*paths: Path) -> bytes:
    """A fingerprint of all sources that the machine code of functions in these files is made from.

    >>> len(stamp(Path(__file__)))
    32
    """
    found = sha256()
    for source in sorted(frozenset().union(*map(sources, paths))):
        found.update(source.relative_to(PACKAGE).as_posix().encode() + b"\0" + _digest(source))
    return found.digest()


@cache
def sources(path: Path) -> frozenset[Path]:
    """The file, and the files of the package that it imports, that these import, and so on.

    >>> sorted(source.name for source in sources(Path(__file__)))
    ['sources.py']
    """
    found: set[Path] = set()
    new = [path]
    while new:
        source = new.pop()
        if source not in found:
            found.add(source)
            new.extend(imports(source))
    return frozenset(found)


@cache
def imports(path: Path) -> frozenset[Path]:
    """The files of the package that the import lines of a file name.

    A package's own `__init__` counts where something is taken from it that is no module.
    """
    text = _FOR_TYPES.sub("", _REMARK.sub("", path.read_text(encoding="utf-8")))
    found: set[Path | None] = set()
    for module, names, plain in _IMPORT.findall(text):
        if plain:
            found.update(_file(name.split()[0]) for name in plain.split(","))
            continue
        for name in names.strip("()").split(","):
            if name.strip():
                found.add(_file(f"{module}.{name.split()[0]}") or _file(module))
    return frozenset(source for source in found if source is not None)


@cache
def _file(module: str) -> Path | None:
    """Where a module of the package is; None where there is no such module."""
    place = PACKAGE.joinpath(*module.split(".")[1:])
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def _digest(path: Path) -> bytes:
    return sha256(path.read_bytes()).digest()
