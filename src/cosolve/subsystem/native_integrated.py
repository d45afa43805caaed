"""The compiled step of `IntegratedInputs`: coefficients are written out, then the inner subsystem step is called."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cosolve.basics.arrays import Index
from cosolve.basics.records import Record, fill
from cosolve.jit import (
    ADVANCE_CALL,
    KEEPING,
    call_advance,
    call_keep,
    called,
    double_at,
    part,
    put_double_at,
    raising_address,
    record_at,
    short_loop,
    word_at,
)
from cosolve.subsystem.native import Native


class _Memory(Record):
    """The inner subsystem; rows of coefficients at most, where they go, their width; pairs of an input and its rate."""

    advance_call: int
    begin: int
    save: int
    restore: int
    data: int
    most: int
    work: int
    width: int
    count: int
    pairs: int


_memory_at = record_at(_Memory)


@part
def _write(w: _Memory, n: int, H: float, coefficients: int) -> int:
    """One row more, with the integrals in their columns."""
    work, width, pairs = w.work, w.width, w.pairs
    for k in range(n * width):
        short_loop()
        put_double_at(work, k, double_at(coefficients, k))
    for k in range(n * width, (n + 1) * width):
        short_loop()
        put_double_at(work, k, 0.0)
    for i in range(w.count):
        column, rate = word_at(pairs, 2 * i), word_at(pairs, 2 * i + 1)
        for j in range(n):
            short_loop()
            put_double_at(work, (j + 1) * width + column, H * double_at(coefficients, j * width + rate) / (j + 1))
    return work


@called(ADVANCE_CALL)
def _advance(data: int, mode: int, t0: float, t1: float, H: float, n: int, coefficients: int, outputs: int) -> int:
    w = _memory_at(data)
    if n >= w.most:
        return 1
    given = _write(w, n, H, coefficients)
    return call_advance(w.advance_call, w.data, mode, t0, t1, H, n + 1, given, outputs)


@called(ADVANCE_CALL)
def _begin(data: int, mode: int, t0: float, t1: float, H: float, n: int, coefficients: int, outputs: int) -> int:
    w = _memory_at(data)
    if n >= w.most:
        return 1
    given = _write(w, n, H, coefficients)
    return call_advance(w.begin, w.data, mode, t0, t1, H, n + 1, given, outputs)


@called(KEEPING)
def _save(data: int) -> int:
    w = _memory_at(data)
    return call_keep(w.save, w.data)


@called(KEEPING)
def _restore(data: int) -> int:
    w = _memory_at(data)
    return call_keep(w.restore, w.data)


def integrated_native(inner: Native, rows: int, width: int, pairs: Index) -> Native:
    """The subsystem step with at most so many rows of coefficients; `pairs` holds inputs and their rates."""
    work, listed = np.zeros(rows * width), np.ascontiguousarray(pairs.T, dtype=np.int64)
    memory = np.zeros((), _Memory.dtype)
    fill(memory, advance_call=inner.advance, begin=inner.begin, save=inner.save, restore=inner.restore)
    fill(memory, data=inner.data, most=rows, work=work, width=width, count=len(listed), pairs=listed)
    return replace(
        inner,
        advance=raising_address(_advance),
        data=memory.ctypes.data,
        save=raising_address(_save) if inner.save else 0,
        restore=raising_address(_restore) if inner.restore else 0,
        begin=raising_address(_begin) if inner.begin else 0,
        jacobian=None,
        keep=(*inner.keep, inner, memory, work, listed),
    )
