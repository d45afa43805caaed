"""Step functions as engines see them: which operations they use, and the same code implemented in another way.

An engine refuses a function that uses an operation it does not know, and the refusal says why a run does not go through
it.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from cosolve import operations
from cosolve.basics.checks import is_number
from cosolve.method import Method
from cosolve.method.base import Declaration

#: The names of all operations.
OPERATION_NAMES = frozenset(
    name
    for name, operation in vars(operations).items()
    if isinstance(operation, FunctionType) and operation.__module__ == operations.__name__
)


def strings_of(declaration: Declaration) -> Iterator[FunctionType]:
    """The function of a declaration, the functions that it calls, and that of its corrector."""
    waiting, seen = [declaration.step_function], set()
    if declaration.corrector is not None and declaration.corrector.step_function is not None:
        waiting.append(declaration.corrector.step_function)
    while waiting:
        function: Any = waiting.pop()
        if function not in seen:
            seen.add(function)
            yield function
            for name in function.__code__.co_names:
                called = function.__globals__.get(name)
                if isinstance(called, FunctionType) and name not in OPERATION_NAMES:
                    waiting.append(called)


def step_function_obstacle(declaration: Declaration, known: frozenset[str]) -> str | None:
    """Why an engine that knows these operations cannot carry out a declaration; None when it can."""
    for function in strings_of(declaration):
        for operation in function.__code__.co_names:
            if operation in OPERATION_NAMES and operation not in known:
                return f"its macro step uses the operation '{operation}'"
    made = [function.__name__ for function in strings_of(declaration) if function.__closure__ is not None]
    return f"its macro step ({made[0]}) is made at run time and no plain function" if made else None


def option_obstacle(method: Method, declaration: Declaration) -> str | None:
    """Which option that a function reads is no number, and so has no place in a record; None when all are."""
    for function in strings_of(declaration):
        for name in function.__code__.co_names:
            inside = name in OPERATION_NAMES or name in function.__globals__ or not hasattr(method, name)
            if not inside and not _is_plain(getattr(method, name)):
                return f"its macro step reads the option '{name}', which is no number"
    return None


def _is_plain(value: object) -> bool:
    return is_number(value) or isinstance(value, (bool, np.bool_))


def direct_step_function(function: Any, executor: type) -> Any:
    """A step function of this package that calls the methods of an executor, without `operations.py` in between.

    Step functions of users keep the names of their module, which may change while they run.
    """
    if not (
        isinstance(function, FunctionType)
        and _is_ours(function)
        and OPERATION_NAMES.intersection(function.__code__.co_names)
    ):
        return function
    space = dict(function.__globals__)
    for name in function.__code__.co_names:
        if name in OPERATION_NAMES:
            space[name] = getattr(executor, name)
        elif isinstance(space.get(name), FunctionType):
            space[name] = direct_step_function(space[name], executor)
    return FunctionType(function.__code__, space, function.__name__, function.__defaults__, function.__closure__)


@dataclass(frozen=True)
class Bound:
    """A function as machine code, and the options that it reads, as one record."""

    step: Any
    options: Any
    cached: bool
    name: str
    sources: tuple[Path, ...]  # files of the functions


#: Texts with meanings, as machine code: made once, since what numba has compiled stays in memory for ever.
_made: dict[Any, Any] = {}


def bind_step_function(
    method: Method, declaration: Declaration, meanings: dict[str, Any], compiled: Callable[..., Any], where: Path
) -> Bound:
    """The function of a method with these meanings of the operations, from the file `where`.

    `compiled(function, cached)` makes machine code.
    """
    read: dict[str, Any] = {}
    bound: dict[Any, Any] = {}
    known = dict(meanings)

    def bind(function: Any) -> Any:
        if function in bound:
            return bound[function]
        space: dict[str, Any] = {"__name__": function.__module__, "__builtins__": builtins, "__sources__": (where,)}
        for name in function.__code__.co_names:
            called = function.__globals__.get(name)
            if name in known:
                space[name] = known[name]
            elif isinstance(called, FunctionType):
                space[name] = bind(called)
            elif called is not None and is_number(called):
                space[name] = called
            elif _is_plain(value := getattr(method, name, None)):
                read[name] = value
        key = function, compiled, *space.items()
        if key not in _made:
            made = FunctionType(function.__code__, space, function.__name__, function.__defaults__)
            made.__qualname__, made.__module__ = f"{function.__qualname__}_natively", function.__module__
            _made[key] = compiled(made, _is_ours(function))
        bound[function] = _made[key]
        return bound[function]

    if declaration.corrector is not None and declaration.corrector.step_function is not None:
        known["corrected"] = bind(declaration.corrector.step_function)
    step = bind(declaration.step_function)
    whole = (bool, np.bool_, int, np.integer)
    kinds = [(name, np.int64 if isinstance(value, whole) else np.float64) for name, value in read.items()]
    options = np.zeros(1, dtype=np.dtype(kinds or [("none", np.int64)]))
    for name, value in read.items():
        options[name] = value
    functions = list(strings_of(declaration))
    files = tuple(Path(function.__code__.co_filename) for function in functions)
    return Bound(
        step, options[0], all(map(_is_ours, functions)), "_".join(function.__name__ for function in functions), files
    )


def _is_ours(function: Any) -> bool:
    """Texts of this package change only with it, so their machine code may be kept on disk."""
    return str(function.__module__).startswith("cosolve.")
