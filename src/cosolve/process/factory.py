"""Subsystems built from a function, or from its name as the command line of a process gives it."""

from __future__ import annotations

import importlib
import runpy
import types
from typing import Any

from cosolve.errors import SetupError
from cosolve.subsystem.base import Subsystem


def built(source: Any) -> Subsystem:
    """The subsystem that a factory, its name or the subsystem itself gives."""
    made = named_object(source) if isinstance(source, str) else source
    if not isinstance(made, Subsystem) and callable(made):
        made = made()
    if not isinstance(made, Subsystem):
        raise SetupError(f"the factory gave {made!r}, not a subsystem; it must return a cosolve.Subsystem")
    return made


def named_object(name: str) -> Any:
    """What `"module:function"` or `"path/file.py:function"` names.

    >>> named_object("math:hypot")(3, 4)
    5.0
    """
    where, _, what = name.rpartition(":")
    if not where or not what:
        raise SetupError(f"a factory is named as 'module:function' or 'file.py:function', not {name!r}")
    try:
        if where.endswith(".py"):
            found: Any = types.SimpleNamespace(**runpy.run_path(where))
        else:
            found = importlib.import_module(where)
        for part in what.split("."):
            found = getattr(found, part)
    except (ImportError, OSError, AttributeError) as error:
        raise SetupError(f"the factory {name!r} cannot be loaded: {error}") from None
    return found
