"""Functions of users: whether they take the arguments they will be called with.

Their parameters are named numbers, given to a function as its last argument.
"""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from cosolve.basics.checks import is_number
from cosolve.basics.wording import counted, did_you_mean
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


class Parameters:
    """Named numbers; functions get them as attributes of their last argument, `p.mass`.

    >>> held = Parameters({"k": 2.0}, "Ode")
    >>> double = held.bind(lambda x, p: p.k * x)
    >>> double(3.0)
    6.0
    >>> held.update({"k": 5.0})
    >>> double(3.0), held.values
    (15.0, {'k': 5.0})
    """

    def __init__(self, values: Mapping[str, float], what: str) -> None:
        if not isinstance(values, Mapping) or not all(isinstance(k, str) and k.isidentifier() for k in values):
            raise SetupError(f"{what}: parameters are a dict of names and numbers such as {{'mass': 2.0}}")
        self._what = what
        self.values = dict.fromkeys(values, 0.0)
        self._kind: Any = namedtuple("Parameters", list(values))  # type: ignore[misc]
        self._held: list[Any] = [None]
        self.update(values)

    def bind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function without its last argument."""
        held = self._held
        return lambda *arguments: function(*arguments, held[0])

    def update(self, values: Mapping[str, Any]) -> None:
        """Give some of them other values."""
        for name, value in values.items():
            if name not in self.values:
                known = did_you_mean(name, self.values, intro="it has")
                raise SetupError(f"{self._what} has no parameter '{name}'; {known}")
            if not is_number(value):
                raise SetupError(f"{self._what}: the parameter '{name}' must be a finite number, not {value!r}")
        self.values |= {name: float(value) for name, value in values.items()}
        self._held[0] = self._kind(**self.values)


def with_parameters(subsystem: Any, values: Mapping[str, float], *functions: Callable[..., Any]) -> list[Any]:
    """The functions of a subsystem without their last argument; the subsystem can be given other values."""
    held = Parameters(values, type(subsystem).__name__)
    subsystem.parameters, subsystem.get, subsystem.set_parameters = held.values, held.values.__getitem__, held.update
    return [held.bind(function) for function in functions]
