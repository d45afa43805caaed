"""The compiled loop over macro steps of many variants at once.

A macro step is a list of dot products (`program.py`), the same for all variants; only their coefficients differ.
Variants lie side by side: one row of an array holds one quantity of `BLOCK` variants, and every instruction works on
whole rows with vector registers, adding its terms from left to right as the readable engine does. A new system or method
needs no new compilation: the instructions are data.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils  # type: ignore[attr-defined]
from numba.extending import intrinsic

#: Variants side by side.
BLOCK = 64

_LANES, _VECTORS = 8, 4  # numbers in a vector, vectors that are added up at the same time

#: What is kept of the observed quantities.
ROWS, LARGEST, SMALLEST, PEAK = 0, 1, 2, 3


@intrinsic
def _dot(typing, coefficients, registers, terms, count, target):
    """`row at target = sum over terms of coefficient row * register row`; addresses of bytes, `count` >= 1 terms.

    A term is two words: where its coefficients begin and where its register begins.
    """
    signature = types.void(*[types.intp] * 5)
    word, number = ir.IntType(64), ir.DoubleType()
    vector = ir.VectorType(number, _LANES)

    def generate(context, builder, signature, arguments):
        base_c, base_r, terms, count, target = arguments
        sums = [cgutils.alloca_once(builder, vector) for _ in range(_VECTORS)]
        at_terms = builder.inttoptr(terms, word.as_pointer())
        whole = BLOCK // (_LANES * _VECTORS)

        def load(address: Any, part: int) -> Any:
            place = builder.add(address, ir.Constant(word, part * _LANES * 8))
            return builder.load(builder.inttoptr(place, vector.as_pointer()), align=8)

        def products(k: Any, shift: Any) -> list[Any]:
            two = builder.shl(k, ir.Constant(word, 1))
            c = builder.load(builder.gep(at_terms, [two]))
            r = builder.load(builder.gep(at_terms, [builder.add(two, ir.Constant(word, 1))]))
            c = builder.add(builder.add(base_c, c), shift)
            r = builder.add(builder.add(base_r, r), shift)
            return [builder.fmul(load(c, m), load(r, m)) for m in range(_VECTORS)]

        with cgutils.for_range(builder, ir.Constant(word, whole), intp=word) as part:
            shift = builder.mul(part.index, ir.Constant(word, _LANES * _VECTORS * 8))
            for place, value in zip(sums, products(ir.Constant(word, 0), shift), strict=True):
                builder.store(value, place)
            with cgutils.for_range(builder, count, start=ir.Constant(word, 1), intp=word) as term:
                for place, value in zip(sums, products(term.index, shift), strict=True):
                    builder.store(builder.fadd(builder.load(place), value), place)
            into = builder.add(builder.add(base_r, target), shift)
            for m, place in enumerate(sums):
                address = builder.add(into, ir.Constant(word, m * _LANES * 8))
                builder.store(builder.load(place), builder.inttoptr(address, vector.as_pointer()), align=8)
        return context.get_dummy_value()

    return signature, generate


@njit(cache=True, nogil=True)
def _execute(instructions, terms, first, last, c, r):
    """The instructions `first` to `last` of a program."""
    at = terms.ctypes.data
    for k in range(first, last):
        begin = instructions[k, 1]
        _dot(c, r, at + 16 * begin, instructions[k, 2] - begin, instructions[k, 0])


@njit(cache=True, nogil=True)
def _note_failures(registers, watched, step, failed):
    """Variants with a watched quantity that is not finite get the number of the step; how many are left."""
    left = 0
    for v in range(BLOCK):
        if failed[v] < 0:
            left += 1
            for k in range(len(watched)):
                if not np.isfinite(registers[watched[k], v]):
                    failed[v] = step
                    left -= 1
                    break
    return left


@njit(cache=True, nogil=True)
def run(blocks, coefficients, live, instructions, terms, starts, plan, keep, observed, watched, size, out, failed):
    """Cross all macro steps for a range of blocks.

    `plan[s]` holds for step `s`: the program, the program that also gives everything watched, the row to write (-1:
    none), the part of the registers watched after it (-1: no check), and the first step since the last check.
    `watched[phase]` are register rows, `observed` the first observed row and their number. `failed` gets the number of
    the first step whose outputs are not finite, or -1.
    """
    first_row, count = observed
    registers, saved = np.zeros((size, BLOCK)), np.zeros((live.shape[1], BLOCK))
    r, n_live = registers.ctypes.data, live.shape[1]
    for b in range(blocks[0], blocks[1]):
        c = coefficients[b].ctypes.data
        registers[:] = 0.0
        registers[:n_live] = live[b]
        registers[size - 1] = 1.0
        saved[:] = live[b]
        for s in range(len(plan)):
            program = plan[s, 0]
            _execute(instructions, terms, starts[program], starts[program + 1], c, r)
            row = plan[s, 2]
            if row >= 0:
                if keep == ROWS:
                    for q in range(count):
                        out[b, row, q] = registers[first_row + q]
                elif keep == LARGEST:
                    for q in range(count):
                        for v in range(BLOCK):
                            out[b, 0, q, v] = max(out[b, 0, q, v], registers[first_row + q, v])
                elif keep == PEAK:
                    for q in range(count):
                        for v in range(BLOCK):
                            out[b, 0, q, v] = max(out[b, 0, q, v], abs(registers[first_row + q, v]))
                else:
                    for q in range(count):
                        for v in range(BLOCK):
                            out[b, 0, q, v] = min(out[b, 0, q, v], registers[first_row + q, v])
            if plan[s, 3] < 0:
                continue
            bad = False
            rows = watched[plan[s, 3]]
            for v in range(BLOCK):
                if failed[b, v] < 0:
                    for k in range(len(rows)):
                        if not np.isfinite(registers[rows[k], v]):
                            bad = True
            if bad:  # go back to the last check and look after every step
                registers[:n_live] = saved
                left = 0
                for again in range(plan[s, 4], s + 1):
                    program = plan[again, 1]
                    _execute(instructions, terms, starts[program], starts[program + 1], c, r)
                    left = _note_failures(registers, watched[(again + 1) % len(watched)], again, failed[b])
                if left == 0:
                    break
            saved[:] = registers[:n_live]
