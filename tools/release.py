"""Is this tree fit for a release? Builds wheel and sdist and uses them as a user would, on every Python at hand.

    python -m tools.release                       every Python from 3.11 that is found here
    python -m tools.release --python python3.12   only this one (may be given several times)

Each Python gets an empty environment with the wheel and what it depends on, taken as wheels and with no compiler in
sight; the first one also gets the sdist. There the README's Python blocks, its commands on a system file, `cosolve
demo`, and all commands of README and getting started must run (`newcomer.py`). The files stay in dist/.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from tools.newcomer import Failed, everything

ROOT = Path(__file__).resolve().parent.parent
OLDEST, NEWEST = 11, 14  # of Python 3: what is looked for
LIMIT = 1800.0  # seconds for one command
#: what the README says can be done with a system file
COMMANDS = (
    ("run", "system.toml", "--report", "report.html"),
    ("check", "system.toml"),
    ("compare", "system.toml", "--methods", "jacobi:1,semi-implicit:1,implicit:1"),
    ("demo", "--list"),
    ("demo",),
)
_WHO = "import sys; print('%d.%d.%d' % sys.version_info[:3], sys.executable)"


@dataclass(frozen=True)
class Python:
    """An interpreter."""

    path: str
    version: str

    @property
    def minor(self) -> int:
        """12 for Python 3.12."""
        return int(self.version.split(".")[1])


def python_blocks(page: str) -> str:
    """The Python blocks of a page, one after the other."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL))


def interpreters(named: Iterable[str]) -> list[Python]:
    """Those that are named, or one of each version that is found: on the path and among those of pyenv."""
    found: dict[str, Python] = {}
    wanted = list(named)
    for candidate in wanted or _candidates():
        python = _asked(candidate)
        if python is None:
            if wanted:
                raise Failed(f"{candidate} is no Python that runs")
            continue
        found.setdefault(python.version if wanted else str(python.minor), python)
    return sorted(found.values(), key=lambda python: (python.minor, python.version))


def _candidates() -> Iterator[str]:
    yield sys.executable
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in range(OLDEST, NEWEST + 1):
        yield f"python3.{minor}"
        yield from sorted(map(str, kept.glob(f"3.{minor}.*/bin/python3.{minor}")), reverse=True)


def _asked(candidate: str) -> Python | None:
    try:
        done = subprocess.run([candidate, "-c", _WHO], capture_output=True, text=True, check=True, timeout=60.0)
        version, path = done.stdout.split(maxsplit=1)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    python = Python(path.strip(), version)
    return python if version.startswith("3.") and python.minor >= OLDEST else None


def call(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """What a command prints; `Failed` with all it said where it does not end well."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(words)}: not finished within {LIMIT:g} s") from None
    if done.returncode:
        raise Failed(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout


def build(target: Path) -> tuple[Path, Path]:
    """The wheel and the sdist, with what is in the wheel checked and found again in a wheel made from the sdist."""
    for old in target.glob("cosolve-*"):
        old.unlink()
    call(sys.executable, "-m", "hatchling", "build", "-d", target, cwd=ROOT)
    (wheel,), (sdist,) = target.glob("*.whl"), target.glob("*.tar.gz")
    if not wheel.name.endswith("-py3-none-any.whl"):
        raise Failed(f"{wheel.name} is for some platforms only; nothing in it should be compiled")
    with tempfile.TemporaryDirectory() as folder:
        shutil.unpack_archive(sdist, folder)
        (unpacked,) = Path(folder).iterdir()
        call(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=unpacked)
        (again,) = Path(folder).glob("*.whl")
        differences = set(_content(wheel)) ^ set(_content(again))
    if differences:
        raise Failed(f"the wheel made from the sdist has other files: {', '.join(sorted(n for n, _ in differences))}")
    return wheel, sdist


def _content(wheel: Path) -> Iterator[tuple[str, int]]:
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if not entry.filename.endswith("/RECORD"):
                yield entry.filename, entry.CRC


def extras() -> list[str]:
    """Names of the packages that only extras ask for, and that the package itself does not need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = {_name(line) for lines in project["optional-dependencies"].values() for line in lines}
    return sorted(optional - {_name(line) for line in project["dependencies"]})


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0].lower()


def unnamed(pythons: Iterable[Python]) -> list[str]:
    """Versions of Python that the classifiers of the package do not name."""
    given = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    return [f"3.{p.minor}" for p in pythons if f"Programming Language :: Python :: 3.{p.minor}" not in given]


def use(python: Python, package: Path, folder: Path) -> None:
    """Install a package into an empty environment and do there what the README says."""
    venv, work = folder / "venv", folder / "work"
    work.mkdir(parents=True)
    call(python.path, "-m", "venv", venv, cwd=folder)
    scripts = venv / ("Scripts" if os.name == "nt" else "bin")
    kept = ("HOME", "LANG", "SYSTEMROOT", "TMPDIR", "TEMP", "OPENBLAS_NUM_THREADS")
    # neither a compiler nor anything that PYTHONPATH would add
    env = {name: os.environ[name] for name in kept if name in os.environ}
    env |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    env |= {"PATH": str(scripts), "MPLBACKEND": "Agg", "COLUMNS": "120"}
    inside = str(scripts / "python")
    wheels = ["--only-binary", ":all:", *(["--no-binary", "cosolve"] if package.suffix == ".gz" else [])]
    call(inside, "-m", "pip", "install", "--disable-pip-version-check", *wheels, package, cwd=work, env=env)
    call(inside, "-m", "pip", "check", "--disable-pip-version-check", cwd=work, env=env)
    look = (
        f"import importlib.metadata as m; there = {{d.name.lower() for d in m.distributions()}} & {set(extras())!r}; "
        "import cosolve; print(*sorted(there)); print(cosolve.__file__)"
    )
    there, file = call(inside, "-c", look, cwd=work, env=env).splitlines()
    if there:
        raise Failed(f"the environment is not empty: it has {there}")
    if not Path(file).is_relative_to(venv):
        raise Failed(f"cosolve was imported from {file}, not from the package")
    (work / "readme.py").write_text(python_blocks((ROOT / "README.md").read_text()))
    call(inside, "readme.py", cwd=work, env=env)
    for name in ("system.toml", "model.py"):
        shutil.copy(Path(file).parent / "_gallery/examples/two_mass" / name, work)
    for command in COMMANDS:
        call(scripts / "cosolve", *command, cwd=work, env=env)
    for _ in everything(scripts, folder / "newcomer"):
        pass
    for name in ("masses.png", "result.h5", "report.html", "cosolve-demo/report.html"):
        if not (work / name).exists():
            raise Failed(f"{name} was not written")


def main(arguments: list[str]) -> int:
    """Build, use, report; 1 where something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], help="an interpreter; may be given several times")
    given = parser.parse_args(arguments)
    failures = 0
    try:
        pythons = interpreters(given.python)
        wheel, sdist = build(ROOT / "dist")
    except Failed as error:
        print(error)
        return 1
    missing = sorted(set(range(OLDEST, NEWEST + 1)) - {python.minor for python in pythons})
    print(f"built   {wheel.name}, {sdist.name}")
    for python in pythons:
        for package in (wheel, sdist) if python is pythons[0] else (wheel,):
            kind = "wheel" if package is wheel else "sdist"
            began = monotonic()
            try:
                with tempfile.TemporaryDirectory(prefix="cosolve-release-") as folder:
                    use(python, package, Path(folder).resolve())
                said = "passes"
            except Failed as error:
                failures += 1
                said = f"FAILS\n{error}\n"
            print(f"{kind}   Python {python.version:<8} {monotonic() - began:4.0f} s  {said}", flush=True)
    for version in unnamed(pythons):
        failures += 1
        print(f"Python {version} is not among the classifiers in pyproject.toml")
    if missing and not given.python:
        print(f"not found here, so not tried: {', '.join(f'Python 3.{minor}' for minor in missing)}")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
