"""Packages of the extras: imported where they are used, or a sentence that says how to install them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cosolve.errors import SetupError


def optional(package: str, extra: str, what: str) -> Any:
    """The module `package` for `what`; the extra `extra` installs it.

    >>> optional("no_such_package", "data", "a sweep")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: a sweep needs no_such_package, which is not installed; run: pip install 'cosolve[data]'
    """
    try:
        return import_module(package)
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name in (package, package.partition(".")[0])
        why = "is not installed" if missing else f"cannot be imported ({error})"
        raise SetupError(
            f"{what} needs {package.partition('.')[0]}, which {why}; run: pip install 'cosolve[{extra}]'"
        ) from None
