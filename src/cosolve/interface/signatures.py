"""Functions of users: whether they take the arguments they will be called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from cosolve.errors import SetupError


def refuse_wrong_arguments(function: Callable[..., Any], names: Sequence[str], what: str) -> None:
    """Raise when `function` cannot be called with arguments of these names, as far as its signature tells.

    >>> refuse_wrong_arguments(lambda x: x, ["a.x", "b.x"], "law: the function")
    Traceback (most recent call last):
        ...
    cosolve.errors.SetupError: law: the function takes (x), but it is called with 2 arguments: a.x, b.x
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # machine code, and others that do not tell
    try:
        signature.bind(*names)
    except TypeError:
        takes = ", ".join(str(p) for p in signature.parameters.values())
        count = f"{len(names)} argument{'s' * (len(names) != 1)}" if names else "no arguments"
        listed = f": {', '.join(names)}" if names else ""
        raise SetupError(f"{what} takes ({takes}), but it is called with {count}{listed}") from None
