"""Recorded subsystem steps of one subsystem once more, as machine code."""

from __future__ import annotations

import numpy as np

from cosolve.basics.arrays import Matrix
from cosolve.errors import CosolveError
from cosolve.jit import call_advance, compiled, double_at
from cosolve.subsystem.base import Subsystem, has_capability
from cosolve.subsystem.native import Native, entered


@compiled
def _advance_rows(
    advance: int, begin: int, data: int, rows: int, length: int, count: int, outputs: int, size: int
) -> int:
    """How many rows were advanced; each holds `t0, t1, H, n`, and `n` rows of coefficients."""
    for k in range(count):
        row, y = rows + 8 * length * k, outputs + 8 * size * k
        t0, t1, H, n = double_at(row, 0), double_at(row, 1), double_at(row, 2), int(double_at(row, 3))
        if begin != 0 and call_advance(begin, data, 0, t0, t1, H, n, row + 32, y) != 0:
            return k
        if call_advance(advance, data, 0, t0, t1, H, n, row + 32, y) != 0:
            return k
    return count


def native_of(subsystem: Subsystem, H: float, degree: int) -> Native | None:
    """How machine code advances over a subsystem that has started, where it can."""
    if not has_capability(subsystem, "compiled step"):
        return None
    try:
        native = subsystem.native(H, degree)
    except CosolveError:
        return None
    return native if isinstance(native, Native) else None


def advance_rows(native: Native, rows: Matrix, size: int) -> Matrix | None:
    """The outputs of these subsystem steps; None where machine code cannot make one of them."""
    rows, outputs = np.ascontiguousarray(rows), np.zeros((len(rows), max(size, 1)))
    with entered([native]):
        done = _advance_rows(
            *(native.advance, native.begin, native.data, rows.ctypes.data, rows.shape[1], len(rows)),
            *(outputs.ctypes.data, max(size, 1)),
        )
    return outputs[:, :size] if done == len(rows) else None
