"""Installs with uv, or with pip where uv is not to be had, and says in a few lines how far it is.

    python tools/install.py --editable '.[dev]'

uv fetches and unpacks packages side by side and compiles them on all cores, which takes a third of pip's time. It is
taken from the package registry first; where that fails, or where uv finds a package nowhere (it does not read the
settings of pip, which may name other places), pip installs everything. All that was said comes out only if pip fails.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from time import monotonic

#: Seconds between two lines where there is no terminal to write over.
_PAUSE = 10.0
_PIP = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
_UV = [sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable, "--compile-bytecode", "--no-progress"]
_STAGES = (
    (re.compile(r"^\s*Collecting ([A-Za-z0-9_.-]+)"), "fetching {}", False),
    (re.compile(r"^\s*Building (?:editable|wheel) for (\S+)"), "building {}", False),
    (re.compile(r"^Resolved (\d+) packages?"), "fetching {} packages", True),
    (re.compile(r"^Prepared (\d+) packages?"), "installing {} packages", True),
    (re.compile(r"^Installed (\d+) packages?"), "compiling {} packages", True),
)
_LAST = "Installing collected packages: "


def stage(line: str) -> tuple[str, bool] | None:
    """What a line of uv or pip means, in a few words, and whether that is always said.

    >>> stage("Collecting numpy>=2.0 (from cosolve==0.1.0)")
    ('fetching numpy', False)
    >>> stage("Installing collected packages: a, b, c")
    ('installing 3 packages (this takes longest)', True)
    >>> stage("Prepared 151 packages in 9.21s")
    ('installing 151 packages', True)
    >>> stage("Requirement already satisfied: numpy")
    """
    if line.startswith(_LAST):
        return f"installing {line.count(',') + 1} packages (this takes longest)", True
    for pattern, words, always in _STAGES:
        found = pattern.match(line)
        if found:
            return words.format(found[1]), always
    return None


def follow(lines: Iterable[str], terminal: bool) -> list[str]:
    """Show the stages of an installation as its lines come; gives all lines back."""
    said, start, last = [], monotonic(), -_PAUSE
    for line in lines:
        said.append(line)
        found = stage(line)
        if found is None:
            continue
        words, always = found
        now = monotonic() - start
        if terminal:
            print(f"\r\033[K  {now:4.0f} s  {words}", end="", flush=True)
        elif always or now - last >= _PAUSE:
            print(f"  {now:4.0f} s  {words}", flush=True)
            last = now
    if terminal:
        print("\r\033[K", end="")
    return said


def ran(command: list[str]) -> tuple[int, list[str]]:
    """Run and follow a command; its exit code and what it said."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        said = follow(process.stdout, sys.stdout.isatty())
    return process.returncode, said


def main(arguments: list[str]) -> int:
    """Install, and leave with the exit code of the last program that was tried."""
    start = monotonic()
    code, said = ran([*_PIP, "--quiet", "uv"])
    if code == 0:
        code, said = ran([*_UV, *arguments])
        if code:
            print("  uv could not (" + next((line.strip() for line in said if line.strip()), "no word") + "); pip does")
    if code:
        code, said = ran([*_PIP, *arguments])
    if code:
        sys.stdout.writelines(said)
    else:
        print(f"  {monotonic() - start:4.0f} s  done")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
