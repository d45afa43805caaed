"""The participant library for C, C++ and Fortran: compiled on the user's machine, by the compiler that is there.

A wheel that fits every compiler and every C++ library does not exist, and a solver that is linked to it has a compiler
at hand. `build_participant_library` makes a folder as solvers expect one: `lib`, `include`, files for pkg-config and
CMake.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from cosolve.errors import SetupError
from cosolve.version import VERSION

SOURCES = Path(__file__).parent / "library"
_NAME = "cosolve_participant"


def build_participant_library(
    folder: str | os.PathLike[str], *, precice: bool = False, compiler: str | None = None
) -> Path:
    """Compile the participant library, for programs in C, C++ and Fortran.

    Parameters
    ----------
    folder : str or Path
        Where it is installed: `lib`, `include`, and files for pkg-config and CMake. A folder that holds one is refused.
    precice : bool, default False
        Also install it as preCICE 3 (`libprecice.so.3` and its headers), so that solvers adapted to preCICE use it.
    compiler : str or None, default None
        C++ compiler. None: `$CXX`, c++, g++ or clang++.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    SetupError
        If there is no compiler or the library exists.

    Examples
    --------
    >>> import cosolve as cs
    >>> cs.remote.build_participant_library("/nowhere", compiler="no-such-compiler")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: there is no C++ compiler 'no-such-compiler'; install g++, or name one with compiler=...
    """
    command = (
        compiler or os.environ.get("CXX") or next((c for c in ("c++", "g++", "clang++") if shutil.which(c)), "c++")
    )
    if shutil.which(command.split()[0]) is None:
        raise SetupError(f"there is no C++ compiler '{command}'; install g++, or name one with compiler=...")
    root = Path(folder).absolute()
    library = root / "lib" / f"lib{_NAME}.so"
    if library.exists():
        raise SetupError(f"{library} is there already; choose another folder or remove it")
    (root / "lib" / "pkgconfig").mkdir(parents=True, exist_ok=True)
    (root / "include").mkdir(exist_ok=True)
    _compile(command, library)
    for name in (f"{_NAME}.h", f"{_NAME}.hpp"):
        shutil.copy(SOURCES / name, root / "include" / name)
    (root / "fortran").mkdir(exist_ok=True)
    shutil.copy(SOURCES / f"{_NAME}.f90", root / "fortran")
    _describe(root, _NAME, _NAME, VERSION, "${prefix}/include")
    if precice:
        _as_precice(root, library)
    return root


def _compile(command: str, library: Path) -> None:
    sources = [str(SOURCES / f"{name}.cpp") for name in ("participant", "c_interface", "precice_interface")]
    flags = [
        "-std=c++17",
        "-O2",
        "-fPIC",
        "-shared",
        "-s",
        "-pthread",
        f"-I{SOURCES}",
        f'-DCOSOLVE_VERSION="{VERSION}"',
    ]
    made = subprocess.run(
        [*command.split(), *flags, *sources, "-o", str(library)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        words = [line for line in made.stderr.splitlines() if "error" in line] or made.stderr.splitlines()
        raise SetupError(f"{command} could not compile the library: {' '.join(words[:3])}")


def _as_precice(root: Path, library: Path) -> None:
    """The names that solvers adapted to preCICE 3 look for, in a folder of their own, not found by accident."""
    other = root / "precice"
    (other / "lib" / "pkgconfig").mkdir(parents=True, exist_ok=True)
    shutil.copytree(SOURCES / "precice", other / "include" / "precice", dirs_exist_ok=True)
    for name in ("libprecice.so.3", "libprecice.so"):
        (other / "lib" / name).symlink_to(os.path.relpath(library, other / "lib"))
    _describe(other, "libprecice", "precice", "3.4.1", "${prefix}/include")


def _describe(root: Path, module: str, library: str, version: str, include: str) -> None:
    """Files for pkg-config and CMake."""
    (root / "lib" / "pkgconfig" / f"{module}.pc").write_text(
        f"prefix={root}\n\nName: {module}\nDescription: participant of a coupling by cosolve\nVersion: {version}\n"
        f"Libs: -L${{prefix}}/lib -l{library}\nCflags: -I{include}\n"
    )
    package = library
    there = root / "lib" / "cmake" / package
    there.mkdir(parents=True, exist_ok=True)
    (there / f"{package}Config.cmake").write_text(
        f"if(NOT TARGET {package}::{package})\n"
        f"  add_library({package}::{package} SHARED IMPORTED)\n"
        f'  get_filename_component(_root "${{CMAKE_CURRENT_LIST_DIR}}/../../.." ABSOLUTE)\n'
        f"  set_target_properties({package}::{package} PROPERTIES\n"
        f'    IMPORTED_LOCATION "${{_root}}/lib/lib{library}.so"\n'
        f"    IMPORTED_NO_SONAME TRUE\n"
        f'    INTERFACE_INCLUDE_DIRECTORIES "${{_root}}/include")\n'
        f"endif()\n"
    )
    major = version.split(".", maxsplit=1)[0]
    (there / f"{package}ConfigVersion.cmake").write_text(
        f'set(PACKAGE_VERSION "{version}")\n'
        f'if(PACKAGE_FIND_VERSION_MAJOR STREQUAL "{major}" AND NOT PACKAGE_FIND_VERSION VERSION_GREATER "{version}")\n'
        f"  set(PACKAGE_VERSION_COMPATIBLE TRUE)\n"
        f"endif()\n"
    )
