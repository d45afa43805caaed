"""What has a name: methods, correctors, kinds of subsystems and so on, from the entry points of installed packages.

cosolve and other packages register in the same way, by entry points in their metadata (docs/howto-extend.md). A name is
that of the entry point or of the class behind it, in any spelling; `package.module:Class` needs no registration.

Metadata is read when a name is looked up for the first time, that of other packages only if cosolve has no such name
(1 ms against 20 ms with 170 packages). cosolve's own names cannot be taken by others.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from cosolve.basics.imports import failed_import, import_callable
from cosolve.basics.wording import did_you_mean, listed, shown
from cosolve.errors import SetupError

#: The groups of entry points, `cosolve.methods` and so on, and what messages call one object of each.
GROUPS = {
    "methods": "method",
    "correctors": "corrector",
    "treatments": "constraint treatment",
    "startups": "startup",
    "subsystems": "kind",
    "adapters": "adapter",
    "commands": "command",
    "observers": "observer",
    "builders": "builder of subsystems",
    "screens": "screen of pages",
    "states": "class in saved states",
}

_OWN = "cosolve"


def kebab(name: str) -> str:
    """A name as it stands in files.

    >>> kebab("SemiImplicit"), kebab("StabilisedIndex2"), kebab("iqn_ils")
    ('semi-implicit', 'stabilised-index2', 'iqn-ils')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).replace("_", "-").lower()


@lru_cache(maxsize=4)
def _own(path: tuple[str, ...]) -> metadata.EntryPoints:
    """The entry points of cosolve with this `sys.path`."""
    try:
        found = metadata.distribution(_OWN).entry_points
    except metadata.PackageNotFoundError:
        found = metadata.EntryPoints()
    if not found.select(group="cosolve.methods"):
        raise SetupError(
            "cosolve finds none of its own names, since its metadata is missing or older than its source; install it "
            "again, with pip or make install"
        )
    return found


@lru_cache(maxsize=4)
def _others(path: tuple[str, ...]) -> metadata.EntryPoints:
    """The entry points of all other packages with this `sys.path`."""
    found = [entry for group in GROUPS for entry in metadata.entry_points(group=f"cosolve.{group}")]
    return metadata.EntryPoints(entry for entry in found if package(entry) != _OWN)


def package(entry: metadata.EntryPoint) -> str:
    """The name of the package that registers an entry point."""
    return entry.dist.name if entry.dist is not None else "unknown"


def _entries(group: str) -> Iterator[metadata.EntryPoint]:
    """The entry points of a group, those of cosolve first; other packages are read when these are used up."""
    for read in (_own, _others):
        yield from read(tuple(sys.path)).select(group=f"cosolve.{group}")


def entries(group: str | None = None) -> list[metadata.EntryPoint]:
    """All entry points of a group, each name once; without a group those of other packages, each with its own name."""
    if group is None:
        return list(_others(tuple(sys.path)))
    return list({kebab(entry.name): entry for entry in reversed(list(_entries(group)))}.values())[::-1]


def names(group: str) -> list[str]:
    """The names of a group, cosolve's first.

    >>> names("treatments")[:3]
    ['baumgarte', 'stabilised-index2', 'weighted-multipliers']
    """
    return [entry.name for entry in entries(group)]


def entry_of(group: str, name: str) -> metadata.EntryPoint | None:
    """The entry point of a name, or of the class of that name; None if there is none.

    >>> entry_of("methods", "SemiImplicit").value
    'cosolve.method.semi_implicit:SemiImplicit'
    """
    wanted = kebab(name)
    for read in (_own, _others):
        group_entries = read(tuple(sys.path)).select(group=f"cosolve.{group}")
        fitting = [entry for entry in group_entries if wanted in (kebab(entry.name), kebab(entry.attr or ""))]
        packages = list(dict.fromkeys(map(package, fitting)))
        if len(packages) > 1:
            ways = " or ".join(f"'{entry.value}'" for entry in fitting)
            raise SetupError(
                f"the {GROUPS[group]} '{shown(name)}' is registered by the packages {listed(packages)}; write {ways}"
            )
        if fitting:
            return fitting[0]
    return None


def load(group: str, entry: metadata.EntryPoint) -> Any:
    """The object behind an entry point; a sentence that names its package if it cannot be imported."""
    try:
        return entry.load()
    except (Exception, SystemExit) as error:
        raise SetupError(
            f"the {GROUPS[group]} '{entry.name}' of the package '{package(entry)}' cannot be used: "
            f"{failed_import(entry.value, error)}; repair or uninstall that package"
        ) from error


def lookup(group: str, name: str, folder: Path | None = None, *, also: Sequence[str] = ()) -> Any:
    """The object behind a name or `module:Class`; modules are looked for in `folder` first.

    The error of an unknown name offers the nearest ones, and those of `also`.

    >>> lookup("correctors", "iqn_ils").__name__, lookup("methods", "math:hypot").__name__
    ('IqnIls', 'hypot')
    """
    if ":" in name:
        return import_callable(name, folder or Path())
    entry = entry_of(group, name)
    if entry is None:
        role = GROUPS[group]
        near = did_you_mean(kebab(name), [*names(group), *also], intro="known are", cutoff=0.5, most=20, quote=False)
        end = " Others are written as module:Class" if near.endswith("?") else "; others are written as module:Class"
        raise SetupError(f"there is no {role} '{shown(name)}'; {near}{end}")
    return load(group, entry)


def usable(group: str) -> dict[str, Any]:
    """All objects of a group by name; those of a package that cannot be imported are left out.

    >>> sorted(usable("treatments"))[0]
    'baumgarte'
    """
    found = {}
    for entry in entries(group):
        try:
            found[kebab(entry.name)] = load(group, entry)
        except SetupError:
            continue
    return found


def name_of(group: str, kind: type) -> str | None:
    """The name under which a class is registered, None if it is not."""
    root = kind.__module__.partition(".")[0]
    for entry in _entries(group):
        likely = entry.attr == kind.__qualname__ and entry.module.partition(".")[0] == root
        if likely and (entry.module == kind.__module__ or load(group, entry) is kind):
            return entry.name
    return None


def address_of(kind: type) -> str | None:
    """`module:Class` of a class, None if it cannot be imported from there.

    >>> address_of(dict), address_of(type("Local", (), {"__module__": "__main__"}))
    ('builtins:dict', None)
    """
    if kind.__module__ == "__main__" or "<" in kind.__qualname__:
        return None
    return f"{kind.__module__}:{kind.__qualname__}"
