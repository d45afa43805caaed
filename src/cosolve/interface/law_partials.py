"""Laws as machine code: their values, and their partial derivatives.

Both are functions of addresses of doubles, so that compiled loops call them whatever the law is. Derivatives of a law
of single numbers are exact, by compiling it for dual numbers (`jit/duals.py`); where the law does something that has no
derivative there, or where that is not finite (a root at zero), they are central differences. The Python engine calls
the same function, so both engines get the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cosolve.basics.differences import TWO_SIDED

#: What a law takes and gives: lengths, None for single numbers.
Sizes = tuple[int | None, ...]

#: Variables and values up to which derivatives are exact: each makes the law longer to compile.
_MOST = 16

#: Compiled once per process. The functions are kept, so that an id stays what it is.
_LAWS: dict[tuple[Any, ...], tuple[Any, Callable[..., Any]]] = {}
_PARTIALS: dict[Any, tuple[Any, Any]] = {}


def compiled_law(function: Callable[..., Any], takes: Sizes, gives: Sizes) -> Any:
    """`law(arguments, values)` for a jitted (or a C) function; it returns 0."""
    key = (id(function), takes, gives)
    if key not in _LAWS:
        _LAWS[key] = _compile_law(function, takes, gives), function
    return _LAWS[key][0]


def compiled_partials(function: Callable[..., Any], takes: Sizes, gives: Sizes) -> Any:
    """`partials(arguments, nominal, values, slopes)`; it returns 0.

    `slopes` gets the derivatives of all values by the first argument, by the second, and so on; `nominal` is how large
    the arguments are, and `values` has room for two sets of values, which differences need.

    >>> import numba
    >>> import numpy as np
    >>> square = numba.njit(lambda x, y: x * x * y)
    >>> x, slopes = np.array([3.0, 5.0]), np.empty(2)
    >>> at = [array.ctypes.data for array in (x, np.ones(2), np.empty(2), slopes)]
    >>> compiled_partials(square, (None, None), (None,))(*at)
    0
    >>> slopes
    array([30.,  9.])
    """
    exact, differences = _partials(function, takes, gives)
    return differences if exact is None else exact


def exact_partials(function: Callable[..., Any], takes: Sizes, gives: Sizes) -> Any:
    """The same for functions that are jitted and can be compiled for dual numbers, of a few single numbers; or None.

    >>> exact_partials(abs, (None,), (None,)) is None
    True
    """
    if not _is_plain(function, takes, gives):
        return None
    try:
        return _partials(function, takes, gives)[0]
    except Exception:  # numba's own kinds, many: then it is no law for compiled code, and the Python engine says why
        return None


def _partials(function: Callable[..., Any], takes: Sizes, gives: Sizes) -> tuple[Any, Any]:
    """By dual numbers (or None), and by differences."""
    law = compiled_law(function, takes, gives)
    if law not in _PARTIALS:
        differences = _compile_differences(law, _count(takes), _count(gives))
        _PARTIALS[law] = _compile_exact(function, takes, gives, differences), differences
    return _PARTIALS[law]


def _is_plain(function: Any, takes: Sizes, gives: Sizes) -> bool:
    """Jitted, of a few single numbers, for a few."""
    jitted = hasattr(function, "py_func") and hasattr(function, "nopython_signatures")
    return jitted and max(len(takes), _count(gives)) <= _MOST and all(size is None for size in takes)


def _count(sizes: Sizes) -> int:
    return sum(1 if size is None else size for size in sizes)


def _given(gives: Sizes) -> list[str]:
    """How each of the values is got from what the function gave."""
    found = []
    for k, size in enumerate(gives):
        value = "given" if len(gives) == 1 else f"given[{k}]"
        found += [value] if size is None else [f"{value}[{j}]" for j in range(size)]
    return found


def _compiled(lines: Sequence[str], space: dict[str, Any], kind: Any) -> Any:
    from cosolve.jit import njit

    exec("\n".join(lines), space)  # noqa: S102  text that is written above
    return njit(kind)(space["made"])


def _compile_law(function: Callable[..., Any], takes: Sizes, gives: Sizes) -> Any:
    from cosolve.jit import LAW, carray, double_at, doubles_at, put_double_at

    arguments, at = [], 0
    for size in takes:
        many = f"carray(doubles_at(arguments + {8 * at}), {size})"
        arguments.append(f"double_at(arguments, {at})" if size is None else many)
        at += 1 if size is None else size
    lines = ["def made(arguments, values):", f"    given = function({', '.join(arguments)})"]
    sizes = {"given": len(gives)} if len(gives) > 1 else {}
    for k, size in enumerate(gives):
        if size is not None:
            sizes["given" if len(gives) == 1 else f"given[{k}]"] = size
    for value, size in sizes.items():  # the index of an array is not checked
        lines += [f"    if len({value}) != {size}:", "        raise ValueError('another number of values')"]
    lines += [f"    put_double_at(values, {at}, {value})" for at, value in enumerate(_given(gives))]
    space: dict[str, Any] = {"carray": carray, "function": function}
    space |= {"doubles_at": doubles_at, "double_at": double_at, "put_double_at": put_double_at}
    return _compiled([*lines, "    return 0"], space, LAW)


def _compile_exact(function: Any, takes: Sizes, gives: Sizes, differences: Any) -> Any:
    """By dual numbers; None where the function cannot be compiled for them."""
    if not _is_plain(function, takes, gives):
        return None
    import numba

    from cosolve.jit import PARTIALS, NumbaError, double_at, finite, put_double_at
    from cosolve.jit.duals import slope_by, variable

    reads, rows = len(takes), _count(gives)
    space: dict[str, Any] = {"double_at": double_at, "put_double_at": put_double_at, "finite": finite}
    space |= {f"variable_{k}": variable(reads, k) for k in range(reads)}
    space |= {f"slope_by_{k}": slope_by(k) for k in range(reads)}
    how = {name: value for name, value in function.targetoptions.items() if name in ("error_model", "fastmath")}
    space |= {"function": numba.njit(**how)(function.py_func), "differences": differences}
    inside = ", ".join(f"variable_{k}(double_at(arguments, {k}))" for k in range(reads))
    lines = ["def made(arguments, nominal, values, slopes):", f"    given = function({inside})"]
    for k in range(reads):
        for at, value in enumerate(_given(gives)):
            lines.append(f"    put_double_at(slopes, {k * rows + at}, slope_by_{k}({value}))")
    lines += [f"    for k in range({reads * rows}):", "        if not finite(double_at(slopes, k)):"]
    lines += ["            return differences(arguments, nominal, values, slopes)", "    return 0"]
    try:
        return _compiled(lines, space, PARTIALS)
    except NumbaError:
        return None


def _compile_differences(law: Any, reads: int, rows: int) -> Any:
    """By central differences (`basics/differences.py`)."""
    from cosolve.jit import PARTIALS, double_at, njit, put_double_at

    increment = TWO_SIDED

    def partials(arguments: int, nominal: int, values: int, slopes: int) -> int:
        other = values + 8 * rows
        for k in range(reads):
            x = double_at(arguments, k)
            step = increment * max(double_at(nominal, k), abs(x))
            plus, minus = x + step, x - step
            put_double_at(arguments, k, plus)
            law(arguments, values)
            put_double_at(arguments, k, minus)
            law(arguments, other)
            put_double_at(arguments, k, x)
            for m in range(rows):
                slope = (double_at(values, m) - double_at(other, m)) / (plus - minus)
                put_double_at(slopes, k * rows + m, slope)
        return 0

    return njit(PARTIALS)(partials)
