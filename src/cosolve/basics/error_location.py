"""Where an error comes from: the line of a user's own file, or what a complaint is about."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb

from cosolve.errors import CosolveError, SetupError


def raised_at(error: BaseException) -> str:
    """The last line of a user's own file that an error of a model came through; empty where there is none.

    >>> raised_at(ValueError("never raised"))
    ''
    """
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, CosolveError):
        return ""
    paths, here = sysconfig.get_paths(), str(Path(__file__).parents[1])
    others = (here, *(paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")), "<")
    for frame, line in reversed(list(walk_tb(error.__traceback__))):
        if not frame.f_code.co_filename.startswith(others):
            return f"{Path(frame.f_code.co_filename).name}, line {line}, in {frame.f_code.co_name}"
    return ""


@contextmanager
def complaints_about(what: str) -> Iterator[None]:
    """What is raised inside as a `SetupError` begins with what it is about.

    >>> with complaints_about("'car.fmu'"):
    ...     raise SetupError("there is no input 'x'")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: 'car.fmu': there is no input 'x'
    """
    try:
        yield
    except SetupError as error:
        raise SetupError(f"{what}: {error}") from None
