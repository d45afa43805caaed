"""A digest of functions and plain data, by which a changed model is noticed where a run or a sweep goes on.

A function counts with its code, its defaults, what it closes over, and the functions and plain data that it names in
its module. Of other objects only the class counts: what they hold may change while a run goes on.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
#: Code differs between versions of Python, so digests of two versions cannot be compared.
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def digest(*values: Any) -> str:
    """A digest that changes when one of these does, the same in every process of one version of Python.

    >>> def scaled(factor):
    ...     return lambda x: factor * x
    >>> digest(scaled(2.0)) == digest(scaled(2.0)), digest(scaled(2.0)) == digest(scaled(3.0))
    (True, False)
    """
    text = _text(values, [])
    return f"{_VERSION}:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"


def may_be_equal(one: object, other: object) -> bool:
    """False when two digests belong to different things; those of two versions of Python cannot be compared."""
    if one == other:
        return True
    versions = [text.partition(":")[0] if isinstance(text, str) else "" for text in (one, other)]
    return versions[0] != versions[1] and all(versions)


def _text(value: Any, above: list[int]) -> str:
    """What a digest is made of; `above` are the objects that this one is part of."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if id(value) in above:
        return "itself"
    above = [*above, id(value)]
    if isinstance(value, np.generic | np.ndarray):
        array = np.asarray(value)
        held = _all(array.ravel().tolist(), above) if array.dtype.kind == "O" else array.tobytes().hex()
        return f"array {array.dtype} {array.shape} {held}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__} {_all(value, above)}"
    if isinstance(value, set | frozenset):
        return f"set {sorted(_text(each, above) for each in value)}"
    if isinstance(value, Mapping):
        return f"dict {sorted((_text(key, above), _text(each, above)) for key, each in value.items())}"
    if isinstance(value, partial):
        return f"partial {_all((value.func, value.args, dict(value.keywords)), above)}"
    if isinstance(value, MethodType):
        return f"method {_text(value.__func__, above)}"
    if isinstance(function := getattr(value, "py_func", value), FunctionType):  # numba keeps the Python of it
        return _function(function, above)
    if isinstance(value, type):
        return f"class {value.__module__}.{value.__qualname__}"
    if is_dataclass(value):
        return f"{_name(value)} {_all((getattr(value, field.name) for field in fields(value)), above)}"
    if isinstance(value, BuiltinFunctionType):
        return f"built in {value.__qualname__}"
    call = type(value).__call__ if callable(value) else None
    return f"{_name(value)} {_text(call, above) if isinstance(call, FunctionType) else ''}"


def _name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _all(values: Iterable[Any], above: list[int]) -> str:
    return "[" + ", ".join(_text(each, above) for each in values) + "]"


def _function(function: FunctionType, above: list[int]) -> str:
    if str(function.__module__).partition(".")[0] in ("cosolve", "numpy", "scipy"):
        return f"function {function.__module__}.{function.__qualname__} {_closed_over(function, above)}"
    names = _names(function.__code__)
    named = {name: function.__globals__[name] for name in names if name in function.__globals__}
    own = {name: _text(value, above) for name, value in sorted(named.items()) if _counts(value)}
    kept = (function.__defaults__, function.__kwdefaults__)
    return f"function {_code(function.__code__)} {_all(kept, above)} {_closed_over(function, above)} {own}"


def _closed_over(function: FunctionType, above: list[int]) -> str:
    held = []
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:  # not filled yet
            continue
        held.append(type(value) if isinstance(value, list | dict | set) else value)  # may collect what happens in a run
    return _all(held, above)


def _counts(value: Any) -> bool:
    """Whether something that a function names in its module can be compared."""
    return isinstance(value, (*_PLAIN, tuple, frozenset, np.ndarray, np.generic, FunctionType)) or hasattr(
        value, "py_func"
    )


def _names(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(each) for each in code.co_consts if isinstance(each, CodeType)))


def _code(code: CodeType) -> str:
    constants = [_code(each) if isinstance(each, CodeType) else _text(each, []) for each in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {constants}"
