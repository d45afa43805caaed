"""Where in a user's own files an error of a model was raised."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from traceback import walk_tb

from cosolve.errors import CosolveError


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
