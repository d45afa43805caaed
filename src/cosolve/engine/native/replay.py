"""Recorded crossings of one subsystem once more, as machine code."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from cosolve.basics.arrays import Matrix
from cosolve.errors import CosolveError
from cosolve.jit import call_cross, compiled, double_at
from cosolve.subsystem.base import Subsystem, has_capability
from cosolve.subsystem.native import Native


@compiled
def _cross_rows(cross, begin, data, rows, length, count, outputs, size):
    """How many rows were crossed; each holds `t0, t1, H, n`, and `n` rows of coefficients."""
    for k in range(count):
        row, y = rows + 8 * length * k, outputs + 8 * size * k
        t0, t1, H, n = double_at(row, 0), double_at(row, 1), double_at(row, 2), int(double_at(row, 3))
        if begin != 0 and call_cross(begin, data, 0, t0, t1, H, n, row + 32, y) != 0:
            return k
        if call_cross(cross, data, 0, t0, t1, H, n, row + 32, y) != 0:
            return k
    return count


def native_of(subsystem: Subsystem, H: float, degree: int) -> Native | None:
    """How machine code crosses a subsystem that has started, where it can."""
    if not has_capability(subsystem, "compiled crossing"):
        return None
    try:
        native = subsystem.native(H, degree)
    except CosolveError:
        return None
    return native if isinstance(native, Native) else None


def cross_rows(native: Native, rows: Matrix, size: int) -> Matrix | None:
    """The outputs of these crossings; None where machine code cannot make one of them."""
    rows, outputs = np.ascontiguousarray(rows), np.zeros((len(rows), max(size, 1)))
    native.enter()
    try:
        done = _cross_rows(
            *(native.cross, native.begin, native.data, rows.ctypes.data, rows.shape[1], len(rows)),
            *(outputs.ctypes.data, max(size, 1)),
        )
    finally:
        native.leave()
    return outputs[:, :size] if done == len(rows) else None
