"""C functions and loops of numpy that traced code calls: those that Python and numpy call, for the same bits."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

#: Functions of `math` that are functions of C, called with the same arguments.
FROM_C = {
    name: name
    for name in (
        *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
        *("exp", "expm1", "log", "log1p", "log10", "log2", "pow", "atan2", "fmod", "copysign"),
    )
}

#: What numba makes of functions of numpy.
OF_NUMBA = {
    **{name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "expm1", "log", "log1p", "log10")},
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "power": "pow",
    "hypot": "hypot",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "copysign": "copysign",
}


def python_function(routine: tuple[str, str]) -> Callable[..., Any]:
    """What Python calls.

    >>> python_function(("c", "cos"))(0.0)
    1.0
    """
    library, name = routine
    found: Callable[..., Any] = getattr(np if library == "numpy" else math, name)
    return found


@cache
def addresses(routine: tuple[str, str]) -> tuple[int, int]:
    """Where the code is; of a loop of numpy also what it is called with, else 0."""
    library, name = routine
    if library == "numpy":
        found = _loop(getattr(np, name))
        assert found is not None
        return found
    return int(ctypes.cast(getattr(_c_library(), name), ctypes.c_void_p).value or 0), 0


@cache
def _c_library() -> Any:
    if sys.platform == "win32":
        return ctypes.cdll.msvcrt
    return ctypes.CDLL(ctypes.util.find_library("m") or None)


class _Ufunc(ctypes.Structure):
    """The beginning of `PyUFuncObject` as numpy's C API documents it."""

    _fields_ = (
        *(("count", ctypes.c_ssize_t), ("kind", ctypes.c_void_p)),
        *((name, ctypes.c_int) for name in ("nin", "nout", "nargs", "identity")),
        *(("functions", ctypes.POINTER(ctypes.c_void_p)), ("data", ctypes.POINTER(ctypes.c_void_p))),
        *(("ntypes", ctypes.c_int), ("reserved", ctypes.c_int), ("name", ctypes.c_char_p)),
        ("types", ctypes.POINTER(ctypes.c_char)),
    )


@cache
def _loop(ufunc: Any) -> tuple[int, int] | None:
    """The loop of an elementwise function over doubles; None where there is none.

    >>> _loop(np.sin)[0] > 0, _loop(np.gcd)
    (True, None)
    """
    wanted = "d" * ufunc.nin + "->" + "d" * ufunc.nout
    if ufunc.nout != 1 or wanted not in ufunc.types:
        return None
    inside = _Ufunc.from_address(id(ufunc))
    k = ufunc.types.index(wanted)
    return int(inside.functions[k] or 0), int((inside.data[k] if inside.data else 0) or 0)


def has_loop(ufunc: Any) -> bool:
    """Whether numpy has a loop over doubles for it.

    >>> has_loop(np.tanh), has_loop(np.gcd)
    (True, False)
    """
    return isinstance(ufunc, np.ufunc) and ufunc.nin <= 2 and _loop(ufunc) is not None
