"""The examples that come with the package, and those in a folder `examples` where the user stands.

In a wheel they lie next to this module; in the source tree, from which cosolve may be installed editable, two folders
up. They import each other as `examples.NAME`, so each is run as a script that puts its own gallery on the path.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cosolve.basics.wording import did_you_mean
from cosolve.errors import SetupError

_HERE = Path(__file__).resolve().parent


def examples() -> dict[str, Path]:
    """The script of each example by its name; those in the current folder come first.

    >>> "two_mass" in examples()
    True
    """
    found: dict[str, Path] = {}
    for folder in (Path("examples"), _HERE / "_gallery" / "examples", _HERE.parents[1] / "examples"):
        for path in sorted(folder.glob("*/run.py")):
            found.setdefault(path.parent.name, path.resolve())
    return dict(sorted(found.items()))


def about(path: Path) -> str:
    """What an example says about itself: the first line of its text."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


def use_examples() -> None:
    """Let `import examples.NAME.model` find the examples that come with the package, in a notebook say.

    >>> use_examples()
    >>> from examples.two_mass.model import SCHMOLL
    >>> SCHMOLL.m1
    1.0
    """
    found = next(iter(examples().values())).parents[2]
    if str(found) not in sys.path:
        sys.path.append(str(found))


def run_example(name: str, arguments: Sequence[str] = ()) -> int:
    """Run an example in a process of its own, here; its exit code."""
    known = examples()
    if name not in known:
        hint = did_you_mean(name, known, otherwise="cosolve demo --list shows them", cutoff=0.5)
        raise SetupError(f"there is no example '{name}'; {hint}")
    path = known[name]
    before = os.environ.get("PYTHONPATH")
    beside = os.pathsep.join([str(path.parents[2]), *([before] if before else [])])
    command = [sys.executable, str(path), *arguments]
    return subprocess.run(command, check=False, env={**os.environ, "PYTHONPATH": beside}).returncode
