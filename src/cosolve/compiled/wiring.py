"""A plan as plain arrays and addresses: everything that compiled loops need to know, and why there may be none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cosolve.interface.plan import Block, Plan
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.native import Native
from cosolve.subsystem.port import Vector

Integers = npt.NDArray[np.int64]

#: Interfaces up to this size have their products added up in a fixed order (subsystem/products.py).
_LARGEST = 64


class Wiring(NamedTuple):
    """Subsystems and connections for compiled loops. `x_start[i]` to `x_start[i + 1]` is the part of subsystem `i`."""

    cross: Integers  # addresses, see subsystem/native.py
    data: Integers
    save: Integers
    restore: Integers
    state: Integers
    state_start: Integers
    u_start: Integers
    y_start: Integers
    source: Integers  # per input: entry of z, -1 for a constant
    factor: Vector
    offset: Vector
    reads_start: Integers
    reads: Integers
    copy_rows: Integers
    copy_from: Integers
    law: Integers  # addresses
    law_rows_start: Integers
    law_rows: Integers
    law_reads_start: Integers
    law_reads: Integers
    law_nominal: Vector
    exact: Integers  # 1 for subsystems with a constant Jacobian
    noise: Vector
    response_start: Integers
    response: Vector  # per subsystem: d outputs / d coupling variables it reads, row by row
    order: Integers  # of a serial sweep, and what is known after each place of it
    known_start: Integers
    known: Integers
    laws_known_start: Integers
    laws_known: Integers
    trouble: Integers  # the subsystem that failed last, and its status (0: an output that is not finite)
    counts: Integers  # subsystems, connections, laws

    def table(self) -> Integers:
        """The addresses of all these arrays: what compiled functions get (an address costs nothing to hand on)."""
        return np.array([array.ctypes.data for array in self], dtype=np.int64)


# the fields of the table, for compiled code
(
    CROSS,
    DATA,
    SAVE,
    RESTORE,
    STATE,
    STATE_START,
    U_START,
    Y_START,
    SOURCE,
    FACTOR,
    OFFSET,
    READS_START,
    READS,
    COPY_ROWS,
    COPY_FROM,
    LAW,
    LAW_ROWS_START,
    LAW_ROWS,
    LAW_READS_START,
    LAW_READS,
    LAW_NOMINAL,
    EXACT,
    NOISE,
    RESPONSE_START,
    RESPONSE,
    ORDER,
    KNOWN_START,
    KNOWN,
    LAWS_KNOWN_START,
    LAWS_KNOWN,
    TROUBLE,
    COUNTS,
) = range(32)
SUBSYSTEMS, COPIES, LAWS = range(3)


def starts(lengths: list[int]) -> Integers:
    """Where consecutive parts of these lengths begin, and where the last one ends."""
    return np.cumsum([0, *lengths]).astype(np.int64)


def _flat(parts: list[Any]) -> Integers:
    return np.concatenate([np.zeros(0), *parts]).astype(np.int64)


def wire(plan: Plan, natives: list[Native], laws: list[int], order: list[int]) -> Wiring:
    """The arrays for subsystems and laws that have their addresses."""
    blocks = plan.blocks
    count = plan.n_subsystems
    reads = [plan.reads(i) for i in range(count)]
    sizes = [plan.output_ports[i].length * len(reads[i]) for i in range(count)]
    place = {i: k for k, i in enumerate(order)}
    copies = [place[int(i)] for i in plan.y_owner[plan.copy_from]]
    known = [[k for k, at in enumerate(copies) if at == p] for p in range(count)]
    last = [max((place[i] for i in plan.owners(block)), default=0) for block in blocks]
    laws_known = [[b for b, at in enumerate(last) if at == p] for p in range(count)]
    fed = plan.u_source >= 0
    return Wiring(
        cross=np.array([n.cross for n in natives], dtype=np.int64),
        data=np.array([n.data for n in natives], dtype=np.int64),
        save=np.array([n.save for n in natives], dtype=np.int64),
        restore=np.array([n.restore for n in natives], dtype=np.int64),
        state=np.array([n.state.ctypes.data for n in natives], dtype=np.int64),
        state_start=starts([len(n.state) for n in natives]),
        u_start=starts([p.length for p in plan.input_ports]),
        y_start=starts([p.length for p in plan.output_ports]),
        source=plan.u_source.astype(np.int64),
        factor=np.where(fed, plan.u_factor, 0.0),
        offset=plan.u_offset.copy(),
        reads_start=starts([len(r) for r in reads]),
        reads=_flat(reads),
        copy_rows=plan.copy_rows.astype(np.int64),
        copy_from=plan.copy_from.astype(np.int64),
        law=np.array(laws, dtype=np.int64),
        law_rows_start=starts([len(b.rows) for b in blocks]),
        law_rows=_flat([b.rows for b in blocks]),
        law_reads_start=starts([len(b.y_index) for b in blocks]),
        law_reads=_flat([b.y_index for b in blocks]),
        law_nominal=np.concatenate([np.zeros(0), *(b.y_nominal for b in blocks)]),
        exact=np.zeros(count, dtype=np.int64),
        noise=np.array([0.0 if has_capability(s, "replay") else s.noise**0.5 for s in plan.subsystems]),
        response_start=starts(sizes),
        response=np.zeros(sum(sizes)),
        order=np.array(order, dtype=np.int64),
        known_start=starts([len(k) for k in known]),
        known=_flat(known),
        laws_known_start=starts([len(k) for k in laws_known]),
        laws_known=_flat(laws_known),
        trouble=np.zeros(2, dtype=np.int64),
        counts=np.array([count, len(plan.copy_rows), len(blocks)], dtype=np.int64),
    )


def obstacle(plan: Plan) -> str | None:
    """Why this plan cannot be wired at all, or None."""
    if plan.n_z > _LARGEST:
        return f"it has {plan.n_z} coupling variables, and compiled loops are for at most {_LARGEST}"
    if not plan.n_z:
        return "nothing is coupled"
    for name, subsystem in zip(plan.names, plan.subsystems, strict=True):
        if not has_capability(subsystem, "compiled crossing"):
            return f"'{name}' ({type(subsystem).__name__}) has no compiled crossing"
    for block in plan.blocks:
        if block.implicit:
            return f"{block.label} is solved by the readable engine"
        if not is_jitted(block.function):
            return f"{block.label} is a plain Python function; decorate it with numba.njit"
        if block.jacobian is not None:
            return f"{block.label} has a Jacobian of its own, which the readable engine calls"
    return None


def is_jitted(function: object) -> bool:
    """True for functions jitted by numba."""
    return hasattr(function, "py_func") and hasattr(function, "nopython_signatures")


_LAWS: dict[tuple[int, tuple[int | None, ...], tuple[int | None, ...]], tuple[Any, Any]] = {}


def law_address(block: Block) -> int:
    """The address of `law(arguments, values) -> status` for a jitted law."""
    takes = tuple(None if scalar else len(index) for index, scalar in block.of)
    gives = tuple(port.size for port in block.row_ports)
    key = (id(block.function), takes, gives)
    if key not in _LAWS:  # compiled once per process; the function is kept, so its id stays its own
        _LAWS[key] = _compile_law(block.function, takes, gives), block.function
    return int(_LAWS[key][0].address)


def _compile_law(function: Callable[..., Any], takes: tuple[int | None, ...], gives: tuple[int | None, ...]) -> Any:
    from numba import carray, cfunc  # type: ignore[attr-defined]

    from cosolve.subsystem.native_calls import LAW, doubles_at

    arguments, at = [], 0
    for size in takes:
        arguments.append(f"x[{at}]" if size is None else f"x[{at}:{at + size}]")
        at += 1 if size is None else size
    lines = ["def law(arguments, values):", f"    x = carray(doubles_at(arguments), {max(at, 1)})"]
    total = sum(1 if size is None else size for size in gives)
    lines += [f"    y = carray(doubles_at(values), {total})", f"    given = function({', '.join(arguments)})"]
    at = 0
    for k, size in enumerate(gives):
        value = "given" if len(gives) == 1 else f"given[{k}]"
        if size is None:
            lines.append(f"    y[{at}] = {value}")
            at += 1
        else:
            lines += [f"    for j in range({size}):", f"        y[{at} + j] = {value}[j]"]
            at += size
    lines.append("    return 0")
    space: dict[str, Any] = {"carray": carray, "doubles_at": doubles_at, "function": function}
    exec("\n".join(lines), space)
    return cfunc(LAW)(space["law"])
