"""The examples that come with the package, and those in a folder `examples` where the user stands.

In a wheel they lie next to this module; in the source tree, from which cosolve may be installed editable, two folders
up. They import each other as `examples.NAME`, so each is run as a script that puts its own gallery on the path.
"""

from __future__ import annotations

import ast
import os
import runpy
import subprocess
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cosolve.basics.signals import ENDS, signals_raise
from cosolve.basics.wording import did_you_mean
from cosolve.errors import AccuracyWarning, CosolveError, SetupError, SimulationError, StabilityWarning

_HERE = Path(__file__).resolve().parent
#: The parent process reports that it was ended by a signal.
_RUN = (
    "import os, signal; signal.signal(signal.SIGINT, lambda *_: os._exit(130)); "
    "from cosolve.gallery import run_script; run_script()"
)
_PATIENCE = 5.0  # seconds for an example to end after a signal


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


def run_script() -> None:
    """Run the script named first on the command line as `__main__`; an error is one sentence, exit 2 or 3.

    A signal ends it silently.
    """
    del sys.argv[0]
    usual = warnings.formatwarning

    def plain(message: Warning | str, category: type[Warning], *where: Any, **rest: Any) -> str:
        known = issubclass(category, (AccuracyWarning, StabilityWarning))
        return f"cosolve: warning: {message}\n" if known else usual(message, category, *where, **rest)

    warnings.formatwarning = plain
    with signals_raise() as came:
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except (Exception, KeyboardInterrupt) as error:
            if came:
                sys.exit(ENDS[came[0]][1])
            if not isinstance(error, CosolveError):
                raise
            print(f"cosolve: {error}", file=sys.stderr)
            sys.exit(3 if isinstance(error, SimulationError) else 2)


def run_example(name: str, arguments: Sequence[str] = ()) -> int:
    """Run an example in a process of its own, here; its exit code."""
    known = examples()
    if name not in known:
        hint = did_you_mean(name, known, otherwise="cosolve demo --list shows them", cutoff=0.5)
        raise SetupError(f"there is no example '{name}'; {hint}")
    path = known[name]
    before = os.environ.get("PYTHONPATH")
    beside = os.pathsep.join([str(path.parents[2]), *([before] if before else [])])
    command = [sys.executable, "-c", _RUN, str(path), *arguments]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": beside}) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()  # Ctrl-C has reached it already, SIGTERM has not
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
            process.kill()
            raise
