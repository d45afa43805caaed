"""Checks of what users give.

`is_...` answers with a Boolean, for callers with a sentence of their own; the others return the value in its proper
type, or raise cosolve's sentence: who complains, what about, what would do, and what was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.wording import shortened
from cosolve.errors import SetupError


def is_number(value: object) -> bool:
    """True for one finite real number (not a Boolean, not a string).

    >>> is_number(0.1), is_number(float("nan")), is_number("0.1"), is_number(True)
    (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # an integer beyond all doubles
        return False


def is_positive(value: Any) -> bool:
    """True for one finite number above 0.

    >>> is_positive(0.1), is_positive(0), is_positive("1")
    (True, False, False)
    """
    return is_number(value) and bool(value > 0)


def is_whole(value: Any, least: int) -> bool:
    """True for a whole number (an integer, no Boolean) from `least`.

    >>> is_whole(3, 1), is_whole(0, 1), is_whole(3.0, 1), is_whole(True, 1)
    (True, False, False, False)
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= least)


def positive(owner: str, name: str, value: Any, of: str = "") -> float:
    """`value` as a float when it is a positive finite number (`of` something); else a sentence that says who wants it.

    >>> positive("Bearing", "viscosity", 0.004)
    0.004
    >>> positive("Bearing", "viscosity", "low")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: Bearing: viscosity must be a positive number, not 'low'
    """
    if not is_positive(value):
        raise SetupError(f"{owner}: {name} must be a positive number{of}, not {value!r}")
    return float(value)


def not_negative(owner: str, name: str, value: Any) -> float:
    """`value` as a float when it is a finite number of at least 0.

    >>> not_negative("Bar", "rho", 0)
    0.0
    """
    if not (is_number(value) and value >= 0):
        raise SetupError(f"{owner}: {name} must be a number of at least 0, not {value!r}")
    return float(value)


def nonzero(owner: str, name: str, value: Any) -> float:
    """`value` as a float when it is a finite number other than 0.

    >>> nonzero("Relaxation", "alpha", -0.5)
    -0.5
    """
    if not (is_number(value) and value != 0):
        raise SetupError(f"{owner}: {name} must be a finite number other than 0, not {value!r}")
    return float(value)


def whole(owner: str, name: str, value: Any, least: int = 1) -> int:
    """`value` as an int when it is a whole number from `least`; else a sentence that says who wants it.

    >>> whole("Film", "n", 8)
    8
    >>> whole("Film", "n", 2.5)
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: Film: n must be a whole number of at least 1, not 2.5
    """
    if not is_whole(value, least):
        raise SetupError(f"{owner}: {name} must be a whole number of at least {least}, not {value!r}")
    return int(value)


def finite_matrix(owner: str, name: str, value: Any, shape: tuple[int, int], why: str = "") -> Matrix:
    """`value` as a matrix of its own with this shape and finite entries; `why` says what the shape follows from.

    A flat list of the right length is taken row by row.

    >>> finite_matrix("Linear", "B", [1, 2], (2, 1))
    array([[1.],
           [2.]])
    >>> finite_matrix("Linear", "A", [[1]], (1, 2), " (a state each)")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: Linear: A has shape (1, 1), expected (1, 2) (a state each)
    """
    try:
        matrix: Matrix = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise SetupError(f"{owner}: {name} is not a matrix of numbers; expected {shape}{why}") from None
    if matrix.ndim < 2 and matrix.size == shape[0] * shape[1]:
        matrix = matrix.reshape(shape)
    if matrix.shape != shape:
        raise SetupError(f"{owner}: {name} has shape {matrix.shape}, expected {shape}{why}")
    if not np.isfinite(matrix).all():
        raise SetupError(f"{owner}: {name} holds a NaN or an infinity; every entry must be a finite number")
    return matrix


def initial_state(owner: str, x0: Any) -> Vector:
    """The initial state as a flat array of its own; refuses what is not a row of finite numbers.

    >>> initial_state("Ode", 1)
    array([1.])
    """
    try:
        x: Vector = np.array(x0, dtype=np.float64)
    except (TypeError, ValueError):
        raise SetupError(f"{owner}: x0 must be a list of numbers, one per state, not {shortened(x0)}") from None
    if not np.isfinite(x).all():
        raise SetupError(f"{owner}: x0 holds a NaN or an infinity; give a finite start value for every state")
    return x.reshape(-1)


def refuse_one_text(what: str, names: Any) -> None:
    """Raise for a single text where a list of names is wanted: it would be taken for a list of letters.

    >>> refuse_one_text("ports", "x")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: ports are given as a list of names; write ['x'] instead of 'x'
    """
    if isinstance(names, str):
        raise SetupError(f"{what} are given as a list of names; write [{names!r}] instead of {names!r}")


def refuse_no_function(owner: str, arguments: str, **functions: Any) -> None:
    """Raise for what cannot be called; None is left alone.

    >>> refuse_no_function("Ode", "(t, x, u)", rhs=3)
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: Ode: rhs must be a function of (t, x, u), not 3
    """
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise SetupError(f"{owner}: {name} must be a function of {arguments}, not {shortened(function)}")


def choice(owner: str, name: str, value: Any, known: Sequence[str]) -> None:
    """Raise when `value` is none of the `known` words.

    >>> choice("SecondOrder", "load", "mean", ["interpolated", "end"])
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: SecondOrder: load must be 'interpolated' or 'end', not 'mean'
    """
    if not isinstance(value, str) or value not in known:
        *first, last = map(repr, known)
        raise SetupError(f"{owner}: {name} must be {', '.join(first)} or {last}, not {value!r}")


def flag(name: str, value: Any) -> bool:
    """`value` when it is True or False.

    >>> flag("stop_at_events", True)
    True
    >>> flag("stop_at_events", "no")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: stop_at_events must be True or False, not 'no'
    """
    if not isinstance(value, (bool, np.bool_)):
        raise SetupError(f"{name} must be True or False, not {shortened(value)}")
    return bool(value)


def as_path(owner: str, value: Any) -> Path:
    """`value` as a path when it is text or a path.

    >>> as_path("load_result", "run.h5").name
    'run.h5'
    >>> as_path("load_result", 3)
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: load_result: a path is text or a Path, not 3
    """
    if not isinstance(value, (str, PathLike)):
        raise SetupError(f"{owner}: a path is text or a Path, not {shortened(value)}")
    return Path(value)


def as_list(owner: str, name: str, value: Any) -> list[Any]:
    """`value` as a list when it is one name or several.

    >>> as_list("law", "of", "a.x"), as_list("law", "of", ("a.x", "b.x"))
    (['a.x'], ['a.x', 'b.x'])
    >>> as_list("law", "of", 3)
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: law: of must be a name or a list of names, not 3
    """
    if isinstance(value, str):
        return [value]
    try:
        return list(value)
    except TypeError:
        raise SetupError(f"{owner}: {name} must be a name or a list of names, not {shortened(value)}") from None
