"""`cosolve doctor`: what is installed here, whether it can work, and what each missing extra would give.

What other packages register (docs/howto-extend.md) is listed too, and imported to see whether it can be used.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

import typer

from cosolve.basics import registry
from cosolve.cli.screen import JsonOption, print_json, say
from cosolve.errors import SetupError

Level = Literal["good", "note", "error"]

#: What each extra gives; `pip install 'cosolve[NAME]'` brings it.
EXTRAS: Mapping[str, str] = {
    "data": "sweeps (cs.sweep), and results as tables of pandas",
    "sundials": "the integrator CVODE of SUNDIALS: integrator='cvode'",
    "mesh": "meshes are read from files of Gmsh, VTK, Abaqus and others: cs.mapping.read_mesh",
    "exudyn": "multibody models built in Exudyn take part in a coupling",
    "validate": "cosolve inspect checks descriptions against their schema, and cosolve crosscheck compares with FMPy",
    "netcdf": "sweeps are kept in netCDF files",
    "cluster": "sweeps run on a cluster, with Dask",
    "jax": "subsystems are written in JAX, with their derivatives",
    "fem": "elastic solids (cs.fields.ElasticSolid), and the Thomson coil and the turbine blade as fields",
    "ngsolve": "flows and solids are computed by finite elements (Turek-Hron, the cylinder in a flow)",
    "kratos": "solvers of Kratos Multiphysics take part in a coupling: cs.fields.Kratos",
    "mpi": "subsystems lie on the ranks of an MPI job: mpiexec -n 4 cosolve run system.toml",
    "network": "subsystems run on other machines, encrypted: cs.remote.Remote and cosolve serve",
    "notebook": "results are shown in notebooks as widgets: cs.plot.widget",
}
#: Extras that are for work on cosolve itself.
OF_DEVELOPERS = ("dev", "docs")
_LIMIT = 10_000_000  # free bytes that a cache of machine code may well take
_COMPILERS = ("cc", "gcc", "clang", "cl")


@dataclass(frozen=True)
class Finding:
    """One line of the report: `about` names it for programs, `text` says it to people."""

    level: Level
    about: str
    text: str


def doctor(json: JsonOption = False) -> None:
    """Say what is installed here, whether it can work, and what each missing extra would give."""
    found = examine()
    ok = all(finding.level != "error" for finding in found)
    if json:
        extras = {name: missing_of(name) for name in EXTRAS}
        content = {
            "python": platform.python_version(),
            "system": platform.platform(),
            "packages": {name: version_of(name) for name in needed("")},
            "extras": {name: {"installed": not missing, "missing": missing} for name, missing in extras.items()},
            "findings": [asdict(finding) for finding in found],
        }
        print_json("doctor", content, ok=ok)
    else:
        marks = {"good": "[ok]  ", "note": "[--]  ", "error": "[FAIL]"}
        say("\n".join(f"{marks[finding.level]} {finding.text}" for finding in found), 7)
    if not ok:
        raise typer.Exit(1)


def examine() -> list[Finding]:
    """Everything there is to say, in the order in which it is said.

    >>> [finding.about for finding in examine()][:3]
    ['cosolve', 'packages', 'cache']
    """
    from cosolve import __version__

    where = f"cosolve {__version__} with Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    return [
        Finding("good", "cosolve", f"{where}, installed in {Path(__file__).parents[1]}"),
        _packages(),
        _cache(),
        _compiler(),
        *(_extra(name) for name in EXTRAS),
        *_of_other_packages(),
    ]


def needed(extra: str) -> dict[str, str]:
    """What an extra ("" for none) asks for: packages and their version bounds, as the installation says."""
    found = {}
    for line in metadata.requires("cosolve") or []:
        what, _, marker = line.partition(";")
        of = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", marker)
        if (of.group(1) if of else "") == extra:
            name = re.split(r"[\s\[<>=!~]", what.strip(), maxsplit=1)[0]
            bounds = re.search(r"[<>=!~].*", what)
            found[name] = bounds.group(0).strip(" ()") if bounds else ""
    return found


def version_of(package: str) -> str | None:
    """Of an installed package; None where it is missing.

    >>> version_of("a-package-that-does-not-exist") is None
    True
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def missing_of(extra: str) -> list[str]:
    """The packages of an extra that are not here."""
    return [name for name in needed(extra) if version_of(name) is None]


def is_within(version: str, bounds: str) -> bool:
    """Whether a version satisfies bounds such as `>=0.60,<0.69`, by its numbers.

    >>> is_within("0.61.2", ">=0.60,<0.69"), is_within("0.69", "<0.69,>=0.60"), is_within("9.0", "")
    (True, False, True)
    """
    given = _numbers(version)
    for bound in filter(None, bounds.split(",")):
        sign, limit = re.match(r"\s*([<>=!~]+)", bound), _numbers(bound)
        if sign is not None and sign.group(1) in _HOLDS:
            most = max(len(given), len(limit))
            one, two = (numbers + (0,) * (most - len(numbers)) for numbers in (given, limit))
            if not _HOLDS[sign.group(1)](one, two):
                return False
    return True


_HOLDS = {
    ">=": lambda one, two: one >= two,
    "<=": lambda one, two: one <= two,
    "<": lambda one, two: one < two,
    ">": lambda one, two: one > two,
    "==": lambda one, two: one == two,
}


def _numbers(text: str) -> tuple[int, ...]:
    release = re.search(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in release.group(0).split(".")) if release else ()


def _packages() -> Finding:
    wrong, right = [], []
    for name, bounds in needed("").items():
        version = version_of(name)
        if version is None:
            wrong.append(f"{name} is missing")
        elif not is_within(version, bounds):
            wrong.append(f"{name} {version} is not {bounds}")
        else:
            right.append(f"{name} {version}")
    if wrong:
        return Finding("error", "packages", f"{'; '.join(wrong)}: run pip install --upgrade cosolve")
    return Finding("good", "packages", f"all that it needs: {', '.join(right)}")


def _cache() -> Finding:
    """Where numba writes machine code: without it every process compiles anew."""
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parents[1])
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not os.access(folder, os.W_OK):
        other = "numba then writes it to your home folder if it can; NUMBA_CACHE_DIR=/some/folder chooses a place"
        return Finding("note", "cache", f"machine code cannot be kept in {folder}: {other}")
    if shutil.disk_usage(folder).free < _LIMIT:
        return Finding("note", "cache", f"machine code cannot be kept in {folder}, whose disk is full")
    return Finding("good", "cache", f"machine code is compiled once and kept in {folder}")


def _compiler() -> Finding:
    found = [shutil.which(name) for name in _COMPILERS]
    path = next((path for path in found if path), None)
    use = "only needed to build the FMUs of cosolve's own tests"
    if path is None:
        return Finding("note", "compiler", f"no C compiler; it is {use}")
    return Finding("good", "compiler", f"a C compiler, {path}: {use}")


def _extra(name: str) -> Finding:
    packages = needed(name)
    missing = missing_of(name)
    if missing or not packages:
        what = ", ".join(missing) or "unknown to this installation"
        return Finding(
            "note", name, f"{name}: not here ({what}); with it {EXTRAS[name]}: pip install 'cosolve[{name}]'"
        )
    versions = ", ".join(f"{package} {version_of(package)}" for package in packages)
    return Finding("good", name, f"{name}: {EXTRAS[name]} ({versions})")


def _of_other_packages() -> list[Finding]:
    """What other packages register, a line each; a package that cannot be imported is no reason to fail."""
    good: dict[str, list[str]] = {}
    bad = []
    for entry in registry.entries():
        group, owner = entry.group.removeprefix("cosolve."), registry.package(entry)
        try:
            registry.load(group, entry)
        except SetupError as error:
            bad.append(Finding("note", owner, str(error)))
        else:
            good.setdefault(owner, []).append(f"{registry.GROUPS[group]} '{entry.name}'")
    return [Finding("good", owner, f"{owner} registers {', '.join(names)}") for owner, names in good.items()] + bad
