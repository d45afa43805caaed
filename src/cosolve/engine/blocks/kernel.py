"""The compiled loop over macro steps of many variants at once.

A macro step is a list of dot products (`program.py`), the same for all variants; only their coefficients differ.
Variants lie side by side: one row of an array holds one quantity of `BLOCK` variants, and every instruction works on
whole rows with vector registers, adding its terms from left to right as the Python engine does. A new system or
method needs no new compilation here: the instructions are data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cosolve.jit import c_call, njit, row_products, types

#: Variants side by side.
BLOCK = 64

#: What is kept of the observed quantities.
ROWS, LARGEST, SMALLEST, PEAK = 0, 1, 2, 3


#: `dot(coefficients, registers, terms, count, target)` on rows of a block, and `steps(coefficients, registers, phase,
#: count)` at an address (`machine_code.py`).
_dot = row_products(BLOCK)
_call_steps = c_call(types.void(*[types.intp] * 4))


@njit(cache=True, nogil=True)
def _execute(instructions: Any, terms: Any, first: int, last: int, c: Any, r: Any) -> None:
    """The instructions `first` to `last` of a program."""
    at = terms.ctypes.data
    for k in range(first, last):
        begin = instructions[k, 1]
        _dot(c, r, at + 16 * begin, instructions[k, 2] - begin, instructions[k, 0])


@njit(cache=True, nogil=True)
def _copy(rows: Any, into: Any) -> None:
    """The first rows of `into` become these."""
    for k in range(len(rows)):
        for v in range(BLOCK):
            into[k, v] = rows[k, v]


@njit(cache=True, nogil=True)
def _any_bad(registers: Any, rows: Any, failed: Any) -> bool:
    """True when a variant that was good has a number in these rows that is not finite."""
    for k in range(len(rows)):
        for v in range(BLOCK):
            if failed[v] < 0 and not np.isfinite(registers[rows[k], v]):
                return True
    return False


@njit(cache=True, nogil=True)
def _note_failures(registers: Any, rows: Any, step: int, failed: Any) -> int:
    """Variants with a number in these rows that is not finite get the number of the step; how many are left."""
    left = 0
    for v in range(BLOCK):
        if failed[v] < 0:
            left += 1
            for k in range(len(rows)):
                if not np.isfinite(registers[rows[k], v]):
                    failed[v] = step
                    left -= 1
                    break
    return left


@njit(cache=True, nogil=True)
def _observe(keep: int, registers: Any, first: int, out: Any) -> None:
    """Keep what is observed; `out` has a row per quantity."""
    for q in range(out.shape[0]):
        for v in range(BLOCK):
            value = registers[first + q, v]
            if keep == LARGEST:
                value = max(out[q, v], value)
            elif keep == SMALLEST:
                value = min(out[q, v], value)
            elif keep == PEAK:
                value = max(out[q, v], abs(value))
            out[q, v] = value


@njit(cache=True, nogil=True)
def run(
    blocks: Any,
    coefficients: Any,
    live: Any,
    instructions: Any,
    terms: Any,
    starts: Any,
    plan: Any,
    steps: int,
    keep: int,
    first: int,
    watched: Any,
    size: int,
    out: Any,
    failed: Any,
) -> None:
    """Advance all macro steps for a range of blocks.

    `plan[s]` holds for step `s`: the program, the program that also gives all outputs, the row to write (-1: none),
    whether to look for numbers that are not finite after it, the first step since the last look, and how many steps
    from here `steps` (machine code at that address) may take at once. `watched[bank]` are the rows that must be finite;
    `first` is the first observed row. `failed` gets the number of the first step whose outputs are not finite, or -1,
    and `live` what the registers hold in the end.
    """
    registers, saved = np.zeros((size, BLOCK)), np.zeros((live.shape[1], BLOCK))
    r, n_live, turns = registers.ctypes.data, live.shape[1], len(watched)
    for b in range(blocks[0], blocks[1]):
        c = coefficients[b].ctypes.data
        for k in range(size):
            for v in range(BLOCK):
                registers[k, v] = 1.0 if k == size - 1 else 0.0
        _copy(live[b], registers)
        _copy(live[b], saved)
        s = 0
        while s < len(plan):
            if plan[s, 5] > 0:
                _call_steps(steps, c, r, s % turns, plan[s, 5])
                s += plan[s, 5] - 1
            else:
                program = plan[s, 0]
                _execute(instructions, terms, starts[program], starts[program + 1], c, r)
                if plan[s, 2] >= 0:
                    _observe(keep, registers, first, out[b, plan[s, 2]])
            if plan[s, 3] > 0:
                if _any_bad(registers, watched[(s + 1) % turns], failed[b]):
                    _copy(saved, registers)  # back to the last look, and now one after every step
                    left = 0
                    for again in range(plan[s, 4], s + 1):
                        program = plan[again, 1]
                        _execute(instructions, terms, starts[program], starts[program + 1], c, r)
                        left = _note_failures(registers, watched[(again + 1) % turns], again, failed[b])
                    if left == 0:
                        break
                _copy(registers[:n_live], saved)
            s += 1
        _copy(registers[:n_live], live[b])
