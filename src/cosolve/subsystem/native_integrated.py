"""The compiled crossing of `IntegratedInputs`: coefficients are written out, then the inner crossing is called."""

# mypy: disable-error-code="call-arg, no-untyped-call, no-untyped-def"

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cosolve.basics.arrays import Index
from cosolve.jit import (
    CROSS,
    KEEPING,
    call_cross,
    call_keep,
    called,
    double_at,
    part,
    put_double_at,
    raising_address,
    short_loop,
    word_at,
)
from cosolve.subsystem.native import Native

# words: the inner subsystem; rows of coefficients at most, where they go, their width; pairs of an input and its rate
_CROSS, _BEGIN, _SAVE, _RESTORE, _DATA, _MOST, _ROOM, _WIDTH, _COUNT, _PAIRS = range(10)


@part
def _write(data, n, H, coefficients):
    """One row more, with the integrals in their columns."""
    room, width, pairs = word_at(data, _ROOM), word_at(data, _WIDTH), word_at(data, _PAIRS)
    for k in range(n * width):
        short_loop()
        put_double_at(room, k, double_at(coefficients, k))
    for k in range(n * width, (n + 1) * width):
        short_loop()
        put_double_at(room, k, 0.0)
    for i in range(word_at(data, _COUNT)):
        column, rate = word_at(pairs, 2 * i), word_at(pairs, 2 * i + 1)
        for j in range(n):
            short_loop()
            put_double_at(room, (j + 1) * width + column, H * double_at(coefficients, j * width + rate) / (j + 1))
    return room


@called(CROSS)
def _cross(data, mode, t0, t1, H, n, coefficients, outputs):
    if n >= word_at(data, _MOST):
        return 1
    given = _write(data, n, H, coefficients)
    return call_cross(word_at(data, _CROSS), word_at(data, _DATA), mode, t0, t1, H, n + 1, given, outputs)


@called(CROSS)
def _begin(data, mode, t0, t1, H, n, coefficients, outputs):
    if n >= word_at(data, _MOST):
        return 1
    given = _write(data, n, H, coefficients)
    return call_cross(word_at(data, _BEGIN), word_at(data, _DATA), mode, t0, t1, H, n + 1, given, outputs)


@called(KEEPING)
def _save(data):
    return call_keep(word_at(data, _SAVE), word_at(data, _DATA))


@called(KEEPING)
def _restore(data):
    return call_keep(word_at(data, _RESTORE), word_at(data, _DATA))


def integrated_native(inner: Native, rows: int, width: int, pairs: Index) -> Native:
    """The crossing with at most so many rows of coefficients; `pairs` holds inputs and their rates."""
    room, listed = np.zeros(rows * width), np.ascontiguousarray(pairs.T, dtype=np.int64)
    words = np.zeros(10, dtype=np.int64)
    words[[_CROSS, _BEGIN, _SAVE, _RESTORE, _DATA]] = inner.cross, inner.begin, inner.save, inner.restore, inner.data
    words[[_MOST, _ROOM, _WIDTH, _COUNT, _PAIRS]] = rows, room.ctypes.data, width, len(listed), listed.ctypes.data
    return replace(
        inner,
        cross=raising_address(_cross),
        data=words.ctypes.data,
        save=raising_address(_save) if inner.save else 0,
        restore=raising_address(_restore) if inner.restore else 0,
        begin=raising_address(_begin) if inner.begin else 0,
        jacobian=None,
        keep=(*inner.keep, inner, words, room, listed),
    )
