"""Laws as machine code from their traces: values, and derivatives by the differences of the Python engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cosolve.basics.differences import TWO_SIDED
from cosolve.basics.wording import raised
from cosolve.interface.plan import Block
from cosolve.trace import Module, Traced, trace
from cosolve.trace.code import double


def traced_law(block: Block) -> Traced | str:
    """The trace of a law, or why there is none."""
    return trace(block.function, [("x", size) for size in block.takes], len(block.rows), block.row_ports)


def law_module(block: Block, found: Traced, arguments: Any) -> Module | str:
    """Its machine code, if it gives what Python gives for these arguments; else how they differ."""
    module = Module({"law": found}, lambda places: _around(places[0], len(block.y_index), len(block.rows)))
    return module if arguments is None else law_differs(block, module, arguments) or module


def law_differs(block: Block, module: Module, arguments: Any) -> str | None:
    """How machine code and Python differ there; None where they do not."""
    try:
        given = block.call(arguments[:0], arguments)
    except Exception as error:
        return f"Python: {raised(error)}"
    return module.differs("law", given, 0.0, arguments, arguments[:0])


_HEAD = "ptr noalias %result, ptr %exception, i64 %a, "


def _around(place: int, reads: int, rows: int) -> str:
    """`values(arguments, values)` and `partials(arguments, nominal, values, slopes)` in numba's convention."""
    call = "call i32 @law(double 0.0, ptr %x, ptr %x, ptr %p, ptr %y)"
    lines = [
        f"define i32 @values({_HEAD}i64 %v) {{\n  %x = inttoptr i64 %a to ptr\n  %y = inttoptr i64 %v to ptr",
        f"  %p = getelementptr double, ptr @table, i64 {place}\n  %s = {call}\n  %w = zext i32 %s to i64",
        "  store i64 %w, ptr %result\n  ret i32 0\n}",
        f"define i32 @partials({_HEAD}i64 %n, i64 %v, i64 %d) {{",
        "  %x = inttoptr i64 %a to ptr\n  %nominal = inttoptr i64 %n to ptr\n  %slopes = inttoptr i64 %d to ptr",
        f"  %y = alloca [{rows} x double]\n  %z = alloca [{rows} x double]",
        f"  %p = getelementptr double, ptr @table, i64 {place}\n  store i64 1, ptr %result",
    ]
    for k in range(reads):
        lines += _column(k, rows, call)
    return "\n".join([*lines, "  store i64 0, ptr %result\n  ret i32 0", "bad:\n  ret i32 0\n}"])


def _column(k: int, rows: int, call: str) -> Sequence[str]:
    """The differences by argument `k` (`basics/differences.py`)."""
    at = f"%x{k}"
    lines = [
        f"  {at} = getelementptr double, ptr %x, i64 {k}\n  %was{k} = load double, ptr {at}",
        f"  %at{k} = getelementptr double, ptr %nominal, i64 {k}\n  %size{k} = load double, ptr %at{k}",
        f"  %abs{k} = call double @llvm.fabs.f64(double %was{k})\n  %more{k} = fcmp ogt double %abs{k}, %size{k}",
        f"  %of{k} = select i1 %more{k}, double %abs{k}, double %size{k}",
        f"  %step{k} = fmul double {double(TWO_SIDED)}, %of{k}",
        f"  %plus{k} = fadd double %was{k}, %step{k}\n  %minus{k} = fsub double %was{k}, %step{k}",
        f"  store double %plus{k}, ptr {at}\n  %first{k} = {call}",
        f"  store double %minus{k}, ptr {at}\n  %second{k} = {call.replace('%y)', '%z)')}",
        f"  store double %was{k}, ptr {at}\n  %both{k} = or i32 %first{k}, %second{k}",
        f"  %good{k} = icmp eq i32 %both{k}, 0\n  br i1 %good{k}, label %go{k}, label %bad\ngo{k}:",
        f"  %apart{k} = fsub double %plus{k}, %minus{k}",
    ]
    for m in range(rows):
        n = f"{k}_{m}"
        lines += [
            f"  %u{n} = getelementptr double, ptr %y, i64 {m}\n  %a{n} = load double, ptr %u{n}",
            f"  %v{n} = getelementptr double, ptr %z, i64 {m}\n  %b{n} = load double, ptr %v{n}",
            f"  %c{n} = fsub double %a{n}, %b{n}\n  %d{n} = fdiv double %c{n}, %apart{k}",
            f"  %o{n} = getelementptr double, ptr %slopes, i64 {k * rows + m}\n  store double %d{n}, ptr %o{n}",
        ]
    return lines
