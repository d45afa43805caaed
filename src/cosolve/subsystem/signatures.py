"""Functions of users: whether they take the arguments they will be called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from cosolve.basics.wording import counted
from cosolve.errors import SetupError

P = ParamSpec("P")
R = TypeVar("R")


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
        count = counted(len(names), "argument") if names else "no arguments"
        listed = f": {', '.join(names)}" if names else ""
        raise SetupError(f"{what} takes ({takes}), but it is called with {count}{listed}") from None


def keywords_only(example: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function that takes one plain argument and keywords answer others with an example of its call.

    >>> @keywords_only("run(system, t_end=1.0)")
    ... def run(system, *, t_end): ...
    >>> run("system", 1.0)
    Traceback (most recent call last):
        ...
    cosolve.errors.SetupError: run takes only its first argument without a name; write run(system, t_end=1.0)
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def checked(*arguments: P.args, **named: P.kwargs) -> R:
            if len(arguments) > 1:
                name = function.__name__
                raise SetupError(f"{name} takes only its first argument without a name; write {example}")
            return function(*arguments, **named)

        return checked

    return decorated
