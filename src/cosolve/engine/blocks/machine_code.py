"""The ordinary macro step of one system and method as machine code of its own, for the long stretches of a run.

The same notes (`program.py`) that `kernel.py` carries out instruction by instruction are written as one loop over steps
in which all values stay in vector registers: two to four times as fast. Compiling takes some milliseconds per system
structure and method, so nothing is kept on disk. No operation is reordered or fused: same bits.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from cosolve.engine.blocks.assemble import Registers
from cosolve.engine.blocks.program import Notes, Table, Value
from cosolve.trace.code import double

#: Steps with more terms than this stay with the instructions: compiling would take longer than it saves.
MOST_TERMS = 3000

_LANES = 16  # variants side by side in one pass: two vectors of 512 bits, or four of 256, whose sums overlap in time


def generate(notes: Notes, table: Table, registers: Registers, depth: list[int], block: int) -> str | None:
    """The code of `steps(coefficients, registers, phase, count)` for a block; None when the step is too long.

    `depth[row]` says how many past macro points of a live row have to be there: 0 for states that are not read later.
    """
    needed: set[Value] = set(notes.live)
    sums = []
    for into, terms in reversed(notes.sums):
        if into in needed:
            needed |= {value for _, value in terms}
            sums.append((into, terms))
    sums.reverse()
    if sum(len(terms) for _, terms in sums) > MOST_TERMS:
        return None
    vector, row_bytes = f"<{_LANES} x double>", 8 * block
    held = [(g, row) for row in range(registers.width) for g in range(0, -depth[row] - 1, -1)]
    lines = [
        "define void @steps(ptr %coefficients, ptr %registers, i64 %phase, i64 %count) {",
        "start:",
        "  br label %tile",
        "tile:",
        "  %shift = phi i64 [ 0, %start ], [ %next_shift, %done ]",
        "  %c = getelementptr i8, ptr %coefficients, i64 %shift",
        "  %r = getelementptr i8, ptr %registers, i64 %shift",
    ]
    turns, width = registers.turns, registers.width

    def bank(label: str, base: str, generation: int) -> str:
        """Code for the address of a bank."""
        lines.extend(
            [
                f"  %{label}a = add i64 {base}, {generation + 4 * turns}",
                f"  %{label}b = urem i64 %{label}a, {turns}",
                f"  %{label}c = mul i64 %{label}b, {width * row_bytes}",
                f"  %{label} = getelementptr i8, ptr %r, i64 %{label}c",
            ]
        )
        return f"%{label}"

    oldest = min((g for g, _ in held), default=0)
    banks = {g: bank(f"in{-g}", "%phase", g) for g in range(oldest, 1)}
    for g, row in held:
        lines.append(f"  %p{-g}_{row} = getelementptr i8, ptr {banks[g]}, i64 {row * row_bytes}")
        lines.append(f"  %i{-g}_{row} = load {vector}, ptr %p{-g}_{row}, align 8")
    varying = sorted({row for _, terms in sums for row, _ in terms if not isinstance(table.rows[row], float)})
    for row in varying:
        lines.append(f"  %q{row} = getelementptr i8, ptr %c, i64 {row * row_bytes}")
        lines.append(f"  %k{row} = load {vector}, ptr %q{row}, align 8")
    lines += ["  br label %step", "step:", "  %n = phi i64 [ 0, %tile ], [ %next, %step ]"]
    names: dict[Value, str] = {}
    body: list[str] = []
    serial = 0
    for into, terms in sums:
        total = ""
        for row, value in terms:
            factor = table.rows[row]
            given = f"%k{row}" if not isinstance(factor, float) else _constant(factor)
            assert value is not None
            what = _constant(1.0) if value[0] == "one" else names.get(value, f"%l{-value[1]}_{value[2]}")
            body.append(f"  %m{serial} = fmul {vector} {given}, {what}")
            if total:
                body.append(f"  %s{serial} = fadd {vector} {total}, %m{serial}")
                total = f"%s{serial}"
            else:
                total = f"%m{serial}"
            serial += 1
        names[into] = total
    for g, row in held:
        newer = names[("live", 1, row)] if g == 0 else f"%l{-(g + 1)}_{row}"
        lines.append(f"  %l{-g}_{row} = phi {vector} [ %i{-g}_{row}, %tile ], [ {newer}, %step ]")
    lines += body
    lines += [
        "  %next = add i64 %n, 1",
        "  %more = icmp ult i64 %next, %count",
        "  br i1 %more, label %step, label %done",
        "done:",
        "  %end = add i64 %phase, %count",
    ]
    banks = {g: bank(f"out{-g}", "%end", g) for g in range(oldest, 1)}
    for g, row in held:
        newer = names[("live", 1, row)] if g == 0 else f"%l{-(g + 1)}_{row}"
        lines.append(f"  %w{-g}_{row} = getelementptr i8, ptr {banks[g]}, i64 {row * row_bytes}")
        lines.append(f"  store {vector} {newer}, ptr %w{-g}_{row}, align 8")
    lines += [
        f"  %next_shift = add i64 %shift, {8 * _LANES}",
        f"  %again = icmp ult i64 %next_shift, {row_bytes}",
        "  br i1 %again, label %tile, label %leave",
        "leave:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)


def _constant(value: float) -> str:
    return "<" + ", ".join([f"double {double(value)}"] * _LANES) + ">"


@lru_cache(maxsize=64)
def compiled(code: str) -> tuple[int, Any]:
    """The address of `steps`, and what must be kept in memory meanwhile."""
    from cosolve.jit import assembled

    return assembled(code, "steps")
