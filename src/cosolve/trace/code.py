"""LLVM's language of traced functions: instructions for one way through, branches where ways part."""

from __future__ import annotations

import struct
from typing import Any

from cosolve.trace.tape import Tape, TracedPath

_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_UNARY = {
    name: f"llvm.{'fabs' if name == 'abs' else name}.f64" for name in ("abs", "sqrt", "floor", "ceil", "trunc", "rint")
}

#: Words of the table of a function before those of its routines: 1.0 where it may be called.
TABLE_HEAD = 1

#: Of functions up to so many operations a copy goes into each place that calls them.
_SHORT = 150


def table_words(tape: Tape) -> int:
    """Doubles and addresses that the code of a trace reads: head, two words per routine, parameters."""
    return TABLE_HEAD + 2 * len(tape.routines) + len(tape.parameters)


def double(value: float) -> str:
    """A constant.

    >>> double(1.0)
    '0x3ff0000000000000'
    """
    return f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016x}"


class Instructions:
    """Instructions of one function as text, and its variables, which stand in the first block."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.variables: list[str] = []
        self._count = 0

    def fresh(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def put(self, text: str) -> str:
        """An instruction that gives a value; its name."""
        name = f"%{self.fresh()}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def at(self, base: str, k: str | int) -> str:
        """The address of an entry of eight bytes."""
        return self.put(f"getelementptr double, ptr {base}, i64 {k}")

    def load(self, base: str, k: str | int = 0, kind: str = "double") -> str:
        return self.put(f"load {kind}, ptr {base if k == 0 else self.at(base, k)}, align 8")

    def store(self, value: str, base: str, k: str | int = 0, kind: str = "double") -> None:
        self.do(f"store {kind} {value}, ptr {base if k == 0 else self.at(base, k)}, align 8")

    def variable(self, kind: str) -> str:
        name = f"%{self.fresh()}"
        self.variables.append(f"  {name} = alloca {kind}, align 16")
        return name


class _Writer(Instructions):
    """Writes one function; names of values hold from their block on."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self.tape = tape
        self._first = TABLE_HEAD + 2 * len(tape.routines)

    def value(self, place: int, known: dict[int, str]) -> str:
        """The name of a node's value, with all that it is computed from written before; without recursion."""
        todo = [place]
        while todo:
            k = todo[-1]
            if k in known:
                todo.pop()
                continue
            missing = [j for j in self.tape.operands(k) if j not in known]
            if missing:
                todo += missing
            else:
                known[k] = self._instruction(k, known)
                todo.pop()
        return known[place]

    def _instruction(self, place: int, known: dict[int, str]) -> str:
        kind, *rest = self.tape.nodes[place]
        if kind == "constant":
            return double(struct.unpack("d", rest[0])[0])
        if kind == "parameter":
            return self.load("%p", self._first + rest[0])
        if kind == "input":
            return "%t" if rest[0] == "t" else self.load(f"%{rest[0]}", rest[1])
        if kind == "compare":
            a, b = (known[k] for k in rest[1:])
            return self.put(f"fcmp {rest[0]} double {a}, {b}")
        if kind == "product":
            return self._product(rest[0], [known[k] for k in rest[1:]])
        if kind == "reduce":
            return self._reduced(rest[0], [known[k] for k in rest[1:]])
        if kind == "entry":
            return self.load(known[rest[1]], rest[0])
        if kind == "call":
            return self._call(rest[0], [known[k] for k in rest[1:]])
        of = [known[k] for k in rest]
        if kind == "select":
            return self.put(f"select i1 {of[0]}, double {of[1]}, double {of[2]}")
        if kind == "neg":
            return self.put(f"fneg double {of[0]}")
        if kind in _BINARY:
            return self.put(f"{_BINARY[kind]} double {of[0]}, {of[1]}")
        if kind in _UNARY:
            return self.put(f"call double @{_UNARY[kind]}(double {of[0]})")
        return self.put(f"{kind} i1 {of[0]}, {of[1]}")

    def _call(self, routine: tuple[str, str], given: list[str]) -> str:
        at = TABLE_HEAD + 2 * self.tape.routines.index(routine)
        function = self.put(f"inttoptr i64 {self.load('%p', at, 'i64')} to ptr")
        arguments = ", ".join(f"double {v}" for v in given)
        if routine[0] == "c":
            return self.put(f"call double {function}({arguments}) memory(none) nounwind willreturn")
        data = self.put(f"inttoptr i64 {self.load('%p', at + 1, 'i64')} to ptr")
        return self.put(f"call double @loop{len(given)}(ptr {function}, ptr {data}, {arguments})")

    def _reduced(self, routine: tuple[str, str], given: list[str]) -> str:
        """A loop of numpy with the same place for its first operand and its result."""
        space, at, steps, count = (self.variable(f"[{n} x i64]") for n in (len(given), 3, 3, 1))
        for k, value in enumerate(given):
            self.store(value, space, k, "double")
        second = self.at(space, 1)
        for k, (place, step) in enumerate(((space, 0), (second, 8), (space, 0))):
            self.store(place, at, k, "ptr")
            self.store(str(step), steps, k, "i64")
        self.store(str(len(given) - 1), count, 0, "i64")
        function, data = self._routine(routine)
        self.do(f"call void {function}(ptr {at}, ptr {count}, ptr {steps}, ptr {data}) nounwind")
        return self.load(space, 0)

    def _routine(self, routine: tuple[str, str]) -> tuple[str, str]:
        """A loop of numpy, and what it is called with."""
        at = TABLE_HEAD + 2 * self.tape.routines.index(routine)
        function, data = (self.put(f"inttoptr i64 {self.load('%p', at + k, 'i64')} to ptr") for k in (0, 1))
        return function, data

    def _product(self, how: tuple[int, ...], given: list[str]) -> str:
        """The address of the product that numpy's loop writes."""
        rows, inner, columns, a_row, a_entry, b_row, b_entry, a_matrix, b_matrix = how
        spans = [(rows - 1) * a_row + (inner - 1) * a_entry + 1, (inner - 1) * b_row + (columns - 1) * b_entry + 1]
        spaces = [self.variable(f"[{n} x double]") for n in (*spans, rows * columns)]
        values = iter(given)
        for space, (m, n), (down, along) in zip(
            spaces, ((rows, inner), (inner, columns)), ((a_row, a_entry), (b_row, b_entry)), strict=False
        ):
            for i in range(m):
                for j in range(n):
                    self.store(next(values), space, i * down + j * along, "double")
        steps = (0, 0, 0, a_row, a_entry, b_row, b_entry, columns * a_matrix, int(b_matrix))
        at, dims, strides = (self.variable(f"[{n} x i64]") for n in (3, 4, 9))
        for k, space in enumerate(spaces):
            self.store(space, at, k, "ptr")
        for k, size in enumerate((1, rows, inner, columns)):
            self.store(str(size), dims, k, "i64")
        for k, step in enumerate(steps):
            self.store(str(8 * step), strides, k, "i64")
        function, data = self._routine(("numpy", "matmul"))
        self.do(f"call void {function}(ptr {at}, ptr {dims}, ptr {strides}, ptr {data}) nounwind")
        return spaces[2]

    def way(self, ways: list[TracedPath], depth: int, known: dict[int, str]) -> None:
        """All ways that have the same answers so far."""
        first = ways[0]
        if len(first.taken) > depth:
            place = first.taken[depth][0]
            condition = self.value(place, known)
            label = self.fresh()
            self.do(f"br i1 {condition}, label %{label}y, label %{label}n")
            for answer, end in ((True, "y"), (False, "n")):
                self.lines.append(f"{label}{end}:")
                self.way([way for way in ways if way.taken[depth][1] is answer], depth + 1, dict(known))
            return
        if first.gives is None:
            self.do("ret i32 1")
            return
        values = [self.value(place, known) for place in first.gives]
        total = ""
        for place in first.checked:
            value = self.value(place, known)
            rest = self.put(f"fsub double {value}, {value}")  # not 0 where it is not finite
            total = rest if not total else self.put(f"fadd double {total}, {rest}")
        for k, value in enumerate(values):
            self.store(value, "%y", k)
        if not total:
            self.do("ret i32 0")
            return
        bad = self.put(f"fcmp uno double {total}, {total}")
        self.do(f"ret i32 {self.put(f'zext i1 {bad} to i32')}")


def function_code(name: str, tape: Tape, ways: list[TracedPath]) -> str:
    """`i32 name(t, x, u, p, y)`: writes what the function gives to `y`; 1 where Python is to be asked instead.

    `p` is the table of the function: whether it may be called, addresses of routines, what it has captured.
    """
    writer = _Writer(tape)
    writer.way(ways, 0, {})
    how = "alwaysinline" if len(writer.lines) < _SHORT else "noinline"
    head = f"define internal i32 @{name}(double %t, ptr noalias readonly %x, ptr noalias readonly %u, "
    return "\n".join(
        [f"{head}ptr noalias readonly %p, ptr noalias %y) {how} {{", *writer.variables, *writer.lines, "}"]
    )


def entry_code(name: str, inner: str, place: int) -> str:
    """`i32 name(t, x, u, y)` for callers outside, of a function with its table at word `place` of `@table`."""
    return f"""define i32 @{name}(double %t, ptr %x, ptr %u, ptr %y) {{
  %p = getelementptr double, ptr @table, i64 {place}
  %s = call i32 @{inner}(double %t, ptr %x, ptr %u, ptr %p, ptr %y)
  ret i32 %s
}}"""


def loops_code() -> str:
    """Calls of numpy's loops for one entry, and what is declared for all functions."""
    lines = [f"declare double @{name}(double)" for name in _UNARY.values()]
    for count in (1, 2):
        given = ", ".join(f"double %a{k}" for k in range(count))
        lines += [f"define internal double @loop{count}(ptr %f, ptr %data, {given}) alwaysinline {{"]
        lines += [f"  %at = alloca [{count + 1} x ptr]\n  %y = alloca double\n  %n = alloca i64"]
        lines += [f"  %steps = alloca [{count + 1} x i64]\n  store i64 1, ptr %n"]
        for k in range(count + 1):
            value = f"%x{k}" if k < count else "%y"
            if k < count:
                lines += [f"  %x{k} = alloca double\n  store double %a{k}, ptr %x{k}"]
            lines += [f"  %p{k} = getelementptr ptr, ptr %at, i64 {k}\n  store ptr {value}, ptr %p{k}"]
            lines += [f"  %s{k} = getelementptr i64, ptr %steps, i64 {k}\n  store i64 8, ptr %s{k}"]
        lines += ["  call void %f(ptr %at, ptr %n, ptr %steps, ptr %data) nounwind"]
        lines += ["  %r = load double, ptr %y\n  ret double %r\n}"]
    return "\n".join(lines)


def table_of(tape: Tape) -> list[Any]:
    """The words of the table: addresses as whole numbers, the rest as doubles."""
    from cosolve.trace.routines import addresses

    words: list[Any] = [1.0]
    for routine in tape.routines:
        words += [int(v) for v in addresses(routine)]
    return [*words, *tape.parameters]
