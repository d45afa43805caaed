"""Runs pip and says in a few lines how far it is; all that pip said comes out only if it fails.

python tools/install.py --editable '.[dev]'
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from time import monotonic

#: Seconds between two lines where there is no terminal to write over.
_PAUSE = 10.0
_STAGES = (
    (re.compile(r"^\s*Collecting ([A-Za-z0-9_.-]+)"), "fetching {}"),
    (re.compile(r"^\s*Building (?:editable|wheel) for (\S+)"), "building {}"),
)
_LAST = "Installing collected packages: "


def stage(line: str) -> str | None:
    """What a line of pip means, in a few words.

    >>> stage("Collecting numpy>=2.0 (from cosolve==0.1.0)")
    'fetching numpy'
    >>> stage("Installing collected packages: a, b, c")
    'installing 3 packages (this takes longest)'
    >>> stage("Requirement already satisfied: numpy")
    """
    if line.startswith(_LAST):
        return f"installing {line.count(',') + 1} packages (this takes longest)"
    for pattern, words in _STAGES:
        found = pattern.match(line)
        if found:
            return words.format(found[1])
    return None


def follow(lines: Iterable[str], terminal: bool) -> list[str]:
    """Show the stages of a run of pip as its lines come; gives all lines back."""
    said, start, last = [], monotonic(), -_PAUSE
    for line in lines:
        said.append(line)
        words = stage(line)
        if words is None:
            continue
        now = monotonic() - start
        if terminal:
            print(f"\r\033[K  {now:4.0f} s  {words}", end="", flush=True)
        elif now - last >= _PAUSE or line.startswith(_LAST):
            print(f"  {now:4.0f} s  {words}", flush=True)
            last = now
    if terminal:
        print("\r\033[K", end="")
    return said


def main(arguments: list[str]) -> int:
    """Install, and leave with pip's exit code."""
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
    start = monotonic()
    with subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as pip:
        assert pip.stdout is not None
        said = follow(pip.stdout, sys.stdout.isatty())
    if pip.returncode:
        sys.stdout.writelines(said)
    else:
        print(f"  {monotonic() - start:4.0f} s  done")
    return pip.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
