"""The explicit Runge-Kutta loops of `kernels.py` in LLVM's language, with a traced right-hand side inside.

Number for number what `kernels.py` does, without arrays: of small systems the whole step stays in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cosolve.basics.arrays import Vector
from cosolve.integrator.kernels import _LONGER, DOPRI5, Tableau
from cosolve.trace.arrays import pairwise
from cosolve.trace.code import Instructions, double

#: Words of the memory: 1.0 where steps may be taken; step or rtol; atol; steps of the last grid; where it stood last.
#: Then the inputs there, the state, the next step size, and the grid.
READY, FIRST, SECOND, COUNT, LAST, INPUTS = range(6)

#: Loops over so many states are written out.
_WRITTEN_OUT = 16


class _Body(Instructions):
    """Instructions of one function, and the block that they are in."""

    def __init__(self) -> None:
        super().__init__()
        self.block = "entry"

    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def go(self, label: str) -> None:
        self.do(f"br label %{label}")

    def part(self, condition: str, yes: str, no: str) -> None:
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")

    def labels(self, count: int) -> list[str]:
        return [f"b{self.fresh()}" for _ in range(count)]

    def f(self, what: str, a: str, b: str) -> str:
        return self.put(f"{what} double {a}, {b}")

    def test(self, how: str, a: str, b: str) -> str:
        return self.put(f"fcmp {how} double {a}, {b}")

    def pick(self, condition: str, a: str, b: str) -> str:
        return self.put(f"select i1 {condition}, double {a}, double {b}")

    def place(self, kind: str = "double", value: str | None = None) -> str:
        """A variable."""
        name = self.variable(kind)
        if value is not None:
            self.store(value, name, kind=kind)
        return name

    def array(self, count: int) -> str:
        return self.variable(f"[{max(1, count)} x double]")

    def each(self, count: int, body: Callable[[str], None]) -> None:
        """`body` for all entries of a vector."""
        if count <= _WRITTEN_OUT:
            for k in range(count):
                body(str(k))
            return
        loop, after = self.labels(2)
        before = self.block
        self.go(loop)
        self.begin(loop)
        i, later = f"%{self.fresh()}", f"%{self.fresh()}"
        self.do(f"{i} = phi i64 [ 0, %{before} ], [ {later}, %{loop} ]")
        body(i)
        self.do(f"{later} = add i64 {i}, 1")
        self.part(self.put(f"icmp eq i64 {later}, {count}"), after, loop)
        self.begin(after)

    def text(self, head: str) -> str:
        return "\n".join([f"{head} {{", "entry:", *self.variables, *self.lines, "}"])


def inputs_code(nu: int) -> str:
    """`inputs(coefficients, n, s, u)`: the polynomial of the inputs at the local time `s`."""
    b = _Body()
    if nu:
        line, many, loop, turn, after = b.labels(5)
        b.part(b.put("icmp eq i64 %n, 2"), line, many)
        b.begin(line)
        b.each(nu, lambda k: b.store(b.f("fadd", b.f("fmul", _row(b, 1, nu, k), "%s"), b.load("%c", k)), "%u", k))
        b.go(after)
        b.begin(many)
        last = b.put("sub i64 %n, 1")
        b.each(nu, lambda k: b.store(_row(b, last, nu, k), "%u", k))
        before = b.block
        b.go(loop)
        b.begin(loop)
        row, lower = b.fresh(), b.fresh()
        turned = b.labels(1)[0]
        b.do(f"%{row} = phi i64 [ {last}, %{before} ], [ %{lower}, %{turned} ]")
        b.part(b.put(f"icmp sgt i64 %{row}, 0"), turn, after)
        b.begin(turn)
        b.do(f"%{lower} = sub i64 %{row}, 1")
        b.each(
            nu, lambda k: b.store(b.f("fadd", b.f("fmul", b.load("%u", k), "%s"), _row(b, f"%{lower}", nu, k)), "%u", k)
        )
        b.go(turned)
        b.begin(turned)
        b.go(loop)
        b.begin(after)
    b.do("ret void")
    return b.text("define internal void @inputs(ptr noalias %c, i64 %n, double %s, ptr noalias %u) alwaysinline")


def _row(b: _Body, row: str | int, nu: int, k: str) -> str:
    if isinstance(row, int) and k.isdigit():
        return b.load("%c", row * nu + int(k))
    start = str(row * nu) if isinstance(row, int) else b.put(f"mul i64 {row}, {nu}")
    return b.load("%c", b.put(f"add i64 {start}, {k}"))


class _Step(_Body):
    """The parts that all loops have in common; slopes of stages go to `K`."""

    def __init__(self, nx: int, nu: int, jitted: bool, places: tuple[int, int, int]) -> None:
        super().__init__()
        self.nx, self.nu, self.jitted = nx, nu, jitted
        self.rhs_table, self.output_table, self.pow = places
        self.data = self.put("inttoptr i64 %d to ptr")
        self.c = self.put("inttoptr i64 %c to ptr")
        self.y = self.put("inttoptr i64 %o to ptr")
        self.x, self.stage, self.new, self.u = self.array(nx), self.array(nx), self.array(nx), self.array(nu)
        self.bad = self.place("i32", "0")
        self.store("1", "%result", kind="i64")

    def table(self, place: int) -> str:
        return self.put(f"getelementptr double, ptr @table, i64 {place}")

    def slope(self, t: str, x: str, out: str) -> None:
        """The slope at the state `x`; `bad` where Python is to be asked."""
        s = self.f("fdiv", self.f("fsub", t, "%t0"), "%H")
        self.do(f"call void @inputs(ptr {self.c}, i64 %n, double {s}, ptr {self.u})")
        p = self.table(self.rhs_table)
        status = self.put(f"call i32 @rhs(double {t}, ptr {x}, ptr {self.u}, ptr {p}, ptr {out})")
        self.store(self.put(f"or i32 {self.load(self.bad, kind='i32')}, {status}"), self.bad, kind="i32")

    def combine(self, out: str, x: str | None, h: str, weights: Vector, K: Sequence[str]) -> None:
        """`x + h * sum(weights[j] K[j])`, slope after slope."""
        used = [(self.f("fmul", h, double(float(w))), k) for w, k in zip(weights, K, strict=True) if w != 0.0]

        def entry(k: str) -> None:
            total = double(0.0) if x is None else self.load(x, k)
            for factor, slope in used:
                total = self.f("fadd", total, self.f("fmul", factor, self.load(slope, k)))
            self.store(total, out, k)

        self.each(self.nx, entry)

    def copy(self, source: str, target: str) -> None:
        self.each(self.nx, lambda k: self.store(self.load(source, k), target, k))

    def magnitude(self, value: str) -> str:
        return self.put(f"call double @llvm.fabs.f64(double {value})")

    def if_bad(self, end: str) -> None:
        """Go to `end` where Python is to be asked."""
        good = self.labels(1)[0]
        self.part(self.put(f"icmp ne i32 {self.load(self.bad, kind='i32')}, 0"), end, good)
        self.begin(good)

    def norm(self, of: str, x: str, other: str, scale: str) -> str:
        """Root mean square of `of` in units of the tolerances between two states (`step_control.py`)."""
        if not self.nx:
            return double(0.0)
        rtol, atol = self.load(self.data, FIRST), self.load(self.data, SECOND)

        def share(k: str) -> None:
            a, b = self.magnitude(self.load(x, k)), self.magnitude(self.load(other, k))
            largest = self.put(f"call double @llvm.maximum.f64(double {a}, double {b})")
            allowed = self.f("fadd", self.f("fmul", rtol, largest), atol)
            ratio = self.f("fdiv", self.load(of, k), allowed)
            self.store(self.f("fmul", ratio, ratio), scale, k)

        self.each(self.nx, share)
        squares = [self.load(scale, k) for k in range(self.nx)]
        if self.jitted:
            total = double(0.0)
            for square in squares:
                total = self.f("fadd", total, square)
        else:
            total = pairwise(squares, lambda a, b: self.f("fadd", a, b))
        mean = self.f("fdiv", total, double(float(self.nx)))
        return self.put(f"call double @llvm.sqrt.f64(double {mean})")

    def arrive(self, end: str, keep: Callable[[], None]) -> None:
        """Outputs of the new state `x`, which takes the place of the old one where it is finite."""
        total = self.place("double", double(0.0))

        def look(k: str) -> None:
            value = self.load(self.x, k)
            self.store(self.f("fadd", self.load(total), self.f("fsub", value, value)), total)

        self.each(self.nx, look)
        good = self.labels(1)[0]
        self.part(self.test("oeq", self.load(total), double(0.0)), good, end)
        self.begin(good)
        nu = self.nu
        if nu:
            self.each(nu, lambda k: self.store(self.load(self.c, k), self.u, k))
            loop, turn, turned, after = self.labels(4)
            before = self.block
            self.go(loop)
            self.begin(loop)
            row, later = self.fresh(), self.fresh()
            self.do(f"%{row} = phi i64 [ 1, %{before} ], [ %{later}, %{turned} ]")
            self.part(self.put(f"icmp slt i64 %{row}, %n"), turn, after)
            self.begin(turn)

            def add(k: str) -> None:
                place = self.put(f"add i64 {self.put(f'mul i64 %{row}, {nu}')}, {k}")
                self.store(self.f("fadd", self.load(self.u, k), self.load(self.c, place)), self.u, k)

            self.each(nu, add)
            self.go(turned)
            self.begin(turned)
            self.do(f"%{later} = add i64 %{row}, 1")
            self.go(loop)
            self.begin(after)
        p = self.table(self.output_table)
        status = self.put(f"call i32 @output(double %t1, ptr {self.x}, ptr {self.u}, ptr {p}, ptr {self.y})")
        done = self.labels(1)[0]
        self.part(self.put(f"icmp eq i32 {status}, 0"), done, end)
        self.begin(done)
        self.store("%t1", self.data, LAST)
        self.each(nu, lambda k: self.store(self.load(self.u, k), self.at(self.data, INPUTS), k))
        self.each(self.nx, lambda k: self.store(self.load(self.x, k), self.at(self.data, INPUTS + nu), k))
        keep()
        self.store("0", "%result", kind="i64")
        self.go(end)

    def start(self, end: str) -> None:
        """The state, where steps may be taken."""
        ready = self.labels(1)[0]
        self.part(self.test("oeq", self.load(self.data, READY), double(0.0)), end, ready)
        self.begin(ready)
        inside = self.at(self.data, INPUTS + self.nu)
        self.each(self.nx, lambda k: self.store(self.load(inside, k), self.x, k))


_HEAD = (
    "define i32 @advance(ptr noalias %result, ptr %exception, i64 %d, i64 %mode, double %t0, double %t1, double %H, "
    "i64 %n, i64 %c, i64 %o)"
)
_DECLARED = "declare double @llvm.maximum.f64(double, double)"


def fixed_code(tableau: Tableau, nx: int, nu: int, places: tuple[int, int, int], jitted: bool) -> str:
    """`advance` with equal steps (`FixedStep`)."""
    a, weights, c, _ = tableau
    s = _Step(nx, nu, jitted, places)
    K = [s.array(nx) for _ in weights]
    end, loop, turn, after = s.labels(4)
    s.start(end)
    span = s.f("fsub", "%t1", "%t0")
    pieces = s.f("fsub", s.f("fdiv", span, s.load(s.data, FIRST)), double(1e-9))
    pieces = s.put(f"call double @llvm.ceil.f64(double {pieces})")
    pieces = s.pick(s.test("ogt", pieces, double(1.0)), pieces, double(1.0))
    h, count = s.f("fdiv", span, pieces), s.put(f"fptosi double {pieces} to i64")
    t, done = s.place("double", "%t0"), s.place("i64", "0")
    s.go(loop)
    s.begin(loop)
    s.part(s.put(f"icmp slt i64 {s.load(done, kind='i64')}, {count}"), turn, after)
    s.begin(turn)
    now = s.load(t)
    for i in range(len(weights)):
        s.combine(s.stage, s.x, h, a[i][:i], K[:i])
        s.slope(s.f("fadd", now, s.f("fmul", double(float(c[i])), h)), s.stage, K[i])
    s.combine(s.new, s.x, h, weights, K)
    s.copy(s.new, s.x)
    s.store(s.f("fadd", now, h), t)
    s.store(s.put(f"add i64 {s.load(done, kind='i64')}, 1"), done, kind="i64")
    s.go(loop)
    s.begin(after)
    s.if_bad(end)
    s.arrive(end, lambda: None)
    s.begin(end)
    s.do("ret i32 0")
    return "\n".join([_DECLARED, inputs_code(nu), s.text(_HEAD)])


def adaptive_code(nx: int, nu: int, places: tuple[int, int, int], jitted: bool, most: int) -> str:
    """`advance` with Dormand-Prince, at most so many steps; mode 1 repeats the last grid (`DormandPrince`)."""
    s = _Step(nx, nu, jitted, places)
    K = [s.array(nx) for _ in DOPRI5.b]
    scale, error, start = s.array(nx), s.array(nx), s.array(nx)
    end, forward, back = s.labels(3)
    s.start(end)
    s.part(s.put("icmp eq i64 %mode, 1"), back, forward)
    s.begin(forward)
    _adaptive(s, K, scale, error, end, most)
    s.begin(back)
    _again(s, K, start, end, most)
    s.begin(end)
    s.do("ret i32 0")
    return "\n".join([_DECLARED, inputs_code(nu), s.text(_HEAD)])


def _adaptive(s: _Step, K: list[str], scale: str, error: str, end: str, most: int) -> None:
    a, b, c, e = DOPRI5
    following, grid = INPUTS + s.nu + s.nx, s.at(s.data, INPUTS + s.nu + s.nx + 1)
    longer = double(_LONGER)
    span = s.f("fsub", "%t1", "%t0")
    s.slope("%t0", s.x, K[0])
    s.if_bad(end)
    given = s.load(s.data, following)
    h = s.place("double", given)
    unknown, loop = s.labels(2)
    t, proposed = s.place("double", "%t0"), s.place("double", given)
    accepted, tried = s.place("i64", "0"), s.place("i64", "0")
    shrunk = s.place("i1", "0")
    s.part(s.test("ole", given, double(0.0)), unknown, loop)
    s.begin(unknown)
    size, slope = s.norm(s.x, s.x, s.x, scale), s.norm(K[0], s.x, s.x, scale)
    known = s.put(f"and i1 {s.test('ogt', size, double(1e-5))}, {s.test('ogt', slope, double(1e-5))}")
    guess = s.f("fdiv", s.f("fmul", double(0.01), size), slope)
    guess = s.pick(known, guess, s.f("fmul", double(1e-3), span))
    guess = s.pick(s.test("olt", span, guess), span, guess)
    s.store(guess, h)
    s.store(guess, proposed)
    s.go(loop)
    s.begin(loop)
    go_on, more, try_, after = s.labels(4)
    now, length = s.load(t), s.load(h)
    s.part(s.test("olt", now, "%t1"), go_on, after)
    s.begin(go_on)
    s.part(s.put(f"icmp sge i64 {s.load(tried, kind='i64')}, {most}"), end, more)
    s.begin(more)
    far, wide = s.magnitude(now), s.magnitude(span)
    far = s.pick(s.test("ogt", wide, far), wide, far)
    s.part(s.test("olt", length, s.f("fmul", double(1e-14), far)), end, try_)
    s.begin(try_)
    last = s.test("oge", s.f("fadd", now, s.f("fmul", length, double(1.0 + 1e-10))), "%t1")
    step = s.pick(last, s.f("fsub", "%t1", now), length)
    s.store(s.put(f"add i64 {s.load(tried, kind='i64')}, 1"), tried, kind="i64")
    for i in range(1, len(b)):
        s.combine(s.stage, s.x, step, a[i][:i], K[:i])
        s.slope(s.f("fadd", now, s.f("fmul", double(float(c[i])), step)), s.stage, K[i])
    s.if_bad(end)
    s.combine(s.new, s.x, step, b, K)
    s.combine(error, None, step, e, K)
    size = s.norm(error, s.x, s.new, scale)
    wild, measured, taken, rejected = s.labels(4)
    s.part(s.test("oeq", s.f("fsub", size, size), double(0.0)), measured, wild)
    s.begin(wild)
    s.store(s.f("fmul", double(0.1), step), h)
    s.store("1", shrunk, kind="i1")
    s.go(loop)
    s.begin(measured)
    power = s.put(f"inttoptr i64 {s.load(s.table(s.pow), kind='i64')} to ptr")
    power = s.put(f"call double {power}(double {size}, double {double(-1.0 / 5)}) memory(none) nounwind willreturn")
    factor = s.f("fmul", double(0.9), power)
    factor = s.pick(s.test("ogt", factor, double(0.2)), factor, double(0.2))
    factor = s.pick(s.test("olt", factor, longer), factor, longer)
    factor = s.pick(s.test("oeq", size, double(0.0)), longer, factor)
    s.part(s.test("ole", size, double(1.0)), taken, rejected)
    s.begin(rejected)
    short = s.f("fmul", step, factor)
    s.store(short, h)
    s.store(short, proposed)
    s.store("1", shrunk, kind="i1")
    s.go(loop)
    s.begin(taken)
    signed = s.pick(s.test("oge", factor, longer), s.put(f"fneg double {step}"), step)
    number = s.load(accepted, kind="i64")
    s.store(signed, s.at(grid, number))
    s.store(s.put(f"add i64 {number}, 1"), accepted, kind="i64")
    s.store(s.pick(last, "%t1", s.f("fadd", now, step)), t)
    s.copy(s.new, s.x)
    s.copy(K[-1], K[0])
    small = s.pick(s.test("olt", factor, double(1.0)), factor, double(1.0))
    factor = s.pick(s.load(shrunk, kind="i1"), small, factor)
    s.store("0", shrunk, kind="i1")
    following_h = s.f("fmul", step, factor)
    s.store(following_h, h)
    before, limit = s.load(proposed), s.f("fmul", step, longer)
    at_most = s.pick(s.test("olt", limit, before), limit, before)
    at_least = s.pick(s.test("ogt", at_most, following_h), at_most, following_h)
    s.store(s.pick(last, at_least, following_h), proposed)
    s.go(loop)
    s.begin(after)

    def keep() -> None:
        s.store(s.load(proposed), s.data, following)
        s.store(s.put(f"sitofp i64 {s.load(accepted, kind='i64')} to double"), s.data, COUNT)

    s.arrive(end, keep)


def _again(s: _Step, K: list[str], start: str, end: str, most: int) -> None:
    a, b, c, _ = DOPRI5
    grid = s.at(s.data, INPUTS + s.nu + s.nx + 1)
    count = s.put(f"fptosi double {s.load(s.data, COUNT)} to i64")
    t, done = s.place("double", "%t0"), s.place("i64", "0")
    pieces, piece, attempt = s.place("i64", "1"), s.place("i64", "0"), s.place("i64", "0")
    loop, turn, again, over, part, look, far, divide, taken, after = s.labels(10)
    s.go(loop)
    s.begin(loop)
    s.part(s.put(f"icmp slt i64 {s.load(done, kind='i64')}, {count}"), turn, after)
    s.begin(turn)
    signed = s.load(s.at(grid, s.load(done, kind="i64")))
    h, began = s.magnitude(signed), s.load(t)
    s.store("1", pieces, kind="i64")
    s.store("0", attempt, kind="i64")
    s.go(again)
    s.begin(again)
    s.copy(s.x, s.new)
    s.store("0", piece, kind="i64")
    s.go(over)
    s.begin(over)
    k, of = s.load(piece, kind="i64"), s.load(pieces, kind="i64")
    length = s.f("fdiv", h, s.put(f"sitofp i64 {of} to double"))
    s.part(s.put(f"icmp slt i64 {k}, {of}"), part, look)
    s.begin(part)
    begin = s.f("fadd", began, s.f("fmul", s.put(f"sitofp i64 {k} to double"), length))
    s.copy(s.new, start)
    for i in range(len(b)):
        s.combine(s.stage, start, length, a[i][:i], K[:i])
        s.slope(s.f("fadd", begin, s.f("fmul", double(float(c[i])), length)), s.stage, K[i])
    s.if_bad(end)
    s.combine(s.new, start, length, b, K)
    s.store(s.put(f"add i64 {k}, 1"), piece, kind="i64")
    s.go(over)
    s.begin(look)
    first = s.put(f"icmp eq i64 {s.load(attempt, kind='i64')}, 0")
    moving = s.put(f"and i1 {first}, {s.test('ole', signed, double(0.0))}")
    s.part(moving, far, taken) if s.nx else s.go(taken)
    s.begin(far)
    last = len(b) - 1
    s.combine(s.stage, s.x, h, a[last][:last], K[:last])
    s.combine(start, s.x, h, a[last - 1][: last - 1], K[: last - 1])
    moved, turned = s.place("double", double(0.0)), s.place("double", double(0.0))

    def compare(k: str) -> None:
        for most_of, one, other in ((moved, s.stage, start), (turned, K[last], K[last - 1])):
            apart = s.magnitude(s.f("fsub", s.load(one, k), s.load(other, k)))
            s.store(s.put(f"call double @llvm.maximum.f64(double {s.load(most_of)}, double {apart})"), most_of)

    s.each(s.nx, compare)
    reach, way = s.f("fmul", h, s.load(turned)), s.load(moved)
    slow = s.put(f"or i1 {s.test('oeq', way, double(0.0))}, {s.test('ole', reach, way)}")
    fast = s.labels(1)[0]
    s.part(slow, taken, fast)
    s.begin(fast)
    s.part(s.test("ole", reach, s.f("fmul", double(float(most)), way)), divide, end)
    s.begin(divide)
    needed = s.put(f"call double @llvm.ceil.f64(double {s.f('fdiv', reach, way)})")
    s.store(s.put(f"fptosi double {needed} to i64"), pieces, kind="i64")
    s.store("1", attempt, kind="i64")
    s.go(again)
    s.begin(taken)
    s.copy(s.new, s.x)
    s.store(s.f("fadd", began, h), t)
    s.store(s.put(f"add i64 {s.load(done, kind='i64')}, 1"), done, kind="i64")
    s.go(loop)
    s.begin(after)
    s.arrive(end, lambda: None)


def memory(nx: int, nu: int, most: int, first: tuple[float, float]) -> Any:
    """The memory of a subsystem with these sizes; `first` is what the loops read of the integrator."""
    import numpy as np

    data = np.zeros(INPUTS + nu + nx + 1 + most)
    data[[READY, FIRST, SECOND]] = 1.0, *first
    return data
