"""Laws as machine code: their values, and their partial derivatives by central differences (`interface/plan.py`)."""

# mypy: disable-error-code="no-untyped-def, call-arg, var-annotated"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cosolve.interface.plan import LAW_INCREMENT, Block

#: Compiled once per process. The functions are kept, so that an id stays what it is.
_LAWS: dict[tuple[Any, ...], tuple[Any, Callable[..., Any]]] = {}
_PARTIALS: dict[Any, Any] = {}


def law_addresses(block: Block, partials: bool) -> tuple[int, int]:
    """Where `law(arguments, values)` and `partials(arguments, nominal, values, slopes)` are; 0 for what is not wanted.

    All arguments are addresses of doubles.
    """
    from cosolve.jit import raising_address

    law = _law(block)
    if not partials:
        return raising_address(law), 0
    if law not in _PARTIALS:
        _PARTIALS[law] = _compile_partials(law, len(block.y_index), len(block.rows))
    return raising_address(law), raising_address(_PARTIALS[law])


def _law(block: Block) -> Any:
    takes = tuple(None if scalar else len(index) for index, scalar in block.of)
    gives = tuple(port.size for port in block.row_ports)
    key = (id(block.function), takes, gives)
    if key not in _LAWS:
        _LAWS[key] = _compile_law(block.function, takes, gives), block.function
    return _LAWS[key][0]


def _compile_law(function: Callable[..., Any], takes: tuple[int | None, ...], gives: tuple[int | None, ...]) -> Any:
    from cosolve.jit import LAW, carray, double_at, doubles_at, njit, put_double_at

    arguments, at = [], 0
    for size in takes:
        many = f"carray(doubles_at(arguments + {8 * at}), {size})"
        arguments.append(f"double_at(arguments, {at})" if size is None else many)
        at += 1 if size is None else size
    lines = ["def law(arguments, values):", f"    given = function({', '.join(arguments)})"]
    at = 0
    for k, size in enumerate(gives):
        value = "given" if len(gives) == 1 else f"given[{k}]"
        if size is None:
            lines.append(f"    put_double_at(values, {at}, {value})")
            at += 1
        else:
            lines += [f"    for j in range({size}):", f"        put_double_at(values, {at} + j, {value}[j])"]
            at += size
    lines.append("    return 0")
    space: dict[str, Any] = {"carray": carray, "function": function}
    space |= {"doubles_at": doubles_at, "double_at": double_at, "put_double_at": put_double_at}
    exec("\n".join(lines), space)
    return njit(LAW)(space["law"])


def _compile_partials(law: Any, reads: int, rows: int) -> Any:
    """`slopes` gets the derivatives of all values by the first argument, by the second, and so on."""
    from cosolve.jit import PARTIALS, double_at, njit, put_double_at

    increment = LAW_INCREMENT

    def partials(arguments, nominal, values, slopes):
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
