"""A solver that lives in another Python: that of the system, of a container, of an environment with other versions.

What is called there is a file of functions, `functions.py`, that knows nothing of cosolve. A worker process of the
other Python loads it; arguments and results are numbers, text and arrays of numpy, and nothing that could be code. The
process is ended with this object, and with this process however that ends; one that fails, hangs or is killed becomes a
sentence with the last lines that it printed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from cosolve.errors import SetupError, SubsystemError
from cosolve.fields.adapters.other_python_serve import pack, unpack
from cosolve.fields.adapters.program import THREADS
from cosolve.process.channel import Disconnected, TimedOut
from cosolve.process.launch import LOADING, Child

_ASKING = 60.0  # seconds to start and say whether a module is there
#: What belongs to this Python, or to this process as the rank of a job.
_OURS = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "OMPI_", "PMIX_", "PMI_")


def find_python(module: str, remedy: str, python: str | os.PathLike[str] | None = None) -> str:
    """A Python that has a module: the one that is named, or this one, that of the system, the first on PATH.

    >>> find_python("json", "") == sys.executable
    True
    >>> find_python("no_such_module", "install it")
    Traceback (most recent call last):
        ...
    cosolve.errors.SetupError: no Python here has the module 'no_such_module' (asked: ...); install it
    """
    named = [sys.executable, "/usr/bin/python3", "python3"] if python is None else [os.fspath(python)]
    asked = []
    for name in dict.fromkeys(filter(None, named)):
        path = shutil.which(name)
        if path is None:
            if python is not None:
                raise SetupError(f"python: the program '{name}' is not there; {remedy}")
            continue
        asked.append(path)
        code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        with suppress(OSError, subprocess.TimeoutExpired):
            if not subprocess.run(
                [path, "-c", code], env=_environment(), stderr=subprocess.DEVNULL, timeout=_ASKING
            ).returncode:
                return path
    raise SetupError(f"no Python here has the module '{module}' (asked: {', '.join(asked)}); {remedy}")


class OtherPython:
    r"""A process of another Python that has loaded a file of functions, which are called by name.

    `timeout` is for one call, in seconds; loading may take a minute longer.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "functions.py")
    ...     _ = file.write_text("def doubled(x):\n    return {'y': 2 * x}")
    ...     other = OtherPython(sys.executable, file, timeout=60.0)
    ...     print(other.call("doubled", x=21))
    ...     other.close()
    {'y': 42}
    """

    def __init__(self, python: str, functions: Path, timeout: float | None = None) -> None:
        self._name, self._timeout, self._first = os.path.basename(python), timeout, True
        serve = Path(__file__).with_name("other_python_serve.py")
        self._child = Child([python, str(serve), str(functions), str(os.getpid())], env=_environment())

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._child.process.pid

    def call(self, name: str, **values: Any) -> dict[str, Any]:
        """Call a function there; a sentence where it fails, and where the process does not answer any more.

        The text of an ArithmeticError is taken for such a sentence.
        """
        timeout = self._timeout
        if timeout is not None and self._first:
            timeout += LOADING
        child, message = self._child, pack(name, values)
        try:
            child.channel.send([message])
            how, found = unpack(child.channel.receive(timeout))
        except TimedOut:
            words = child.quoted()
            self._kill()
            raise SubsystemError(
                f"its process ({self._name}) gave no answer within {timeout:g} s and was ended{words}; raise timeout "
                "if a step may take that long"
            ) from None
        except Disconnected:
            words = child.how_it_ended()
            self.close()
            raise SubsystemError(f"its process ({self._name}) {words}") from None
        except BaseException:  # Ctrl-C: the answer to this call would be taken for that to the next
            self._kill()
            raise
        self._first = False
        if how == "failed":
            kind, text = found["kind"], found["text"]
            raise SubsystemError(text if kind == "ArithmeticError" else f"{name} of its process: {kind}: {text}")
        return found

    @property
    def closed(self) -> bool:
        """True once the process is known to be gone."""
        return self._child.closed

    def close(self) -> None:
        """End the process now."""
        self._child.close()

    def _kill(self) -> None:
        self._child.kill()
        self.close()


def _environment() -> dict[str, str]:
    """One thread; without what is for this Python."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return {**dict.fromkeys(THREADS, "1"), **kept}
