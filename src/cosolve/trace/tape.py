"""Operations of a function that is run once on stand-ins: numbers that note what is done with them.

Equal operations on equal numbers are one node. A condition on a number that is known only in the run divides the trace:
the function is run again for the other answer, until all combinations have been seen.
"""

from __future__ import annotations

import math
import operator
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: Conditions of one path, paths, and operations of a function at most.
_DEEP, _PATHS, _NODES = 40, 64, 20_000

#: Operations whose result is looked at: where it is not finite, Python may raise an error or warn.
_CHECKED = frozenset({"div", "sqrt", "call"})

#: Operations that give whole numbers for whole numbers, and what numpy makes of them for conditions (None: refused).
_KEEPS_WHOLE = frozenset({"add", "sub", "mul", "neg", "abs"})
_OF_CONDITIONS = {"add": "or", "mul": "and", "sub": None, "neg": None, "abs": None}

#: Whole numbers up to here; products of a few of them are exact doubles.
_LARGEST = 1 << 20


class Refusal(BaseException):
    """The function cannot be traced; no `except` of the function itself shall take it for an error of its own."""


class Tape:
    """Operations on numbers, and the conditions on the way through the function that is traced.

    `jitted` functions are traced with the arithmetic of numba, others with that of Python and numpy.
    """

    def __init__(self, jitted: bool = False) -> None:
        self.jitted = jitted
        self.nodes: list[tuple[Any, ...]] = []
        self.parameters: list[float] = []  # what the function has captured
        self.routines: list[Any] = []  # C functions and loops of numpy, by name
        self.codes: set[Any] = set()  # of all functions that are part of the trace
        self.refusal: str | None = None
        self._places: dict[Any, int] = {}
        self._fixed: list[bool] = []
        self._values: dict[int, Any] = {}  # of nodes that are known while tracing
        self.begin([])

    # -- numbers ---------------------------------------------------------------------------------------------

    def node(self, *operation: Any) -> Number:
        """The number that this operation gives, of numpy's kind; its operands are numbers of places."""
        place = self._places.get(operation)
        if place is None:
            if len(self.nodes) >= _NODES:
                raise self.refused(f"it takes more than {_NODES} operations")
            place = self._places[operation] = len(self.nodes)
            self.nodes.append(operation)
            self._fixed.append(
                operation[0] in ("constant", "parameter")
                or (operation[0] != "input" and all(self._fixed[k] for k in self.operands(place)))
            )
        if operation[0] in _CHECKED:
            if not self._fixed[place]:
                self.checked.setdefault(place)
            elif not math.isfinite(self.value(place)):
                raise self.refused("it computes a value that is not finite from what it has captured")
        return Number(self, place)

    def operands(self, place: int) -> tuple[int, ...]:
        """The nodes that a node is computed from."""
        kind, *rest = self.nodes[place]
        if kind in ("input", "constant", "parameter"):
            return ()
        return tuple(rest[1:] if kind in ("call", "reduce", "compare", "product", "entry") else rest)

    def constant(self, value: float) -> Number:
        """A number that stands in the function."""
        return self.node("constant", struct.pack("d", value))

    def parameter(self, value: float) -> Number:
        """A number that the function has captured: an input of the trace, so that another value is the same code."""
        self.parameters.append(float(value))
        return self.node("parameter", len(self.parameters) - 1)

    def number(self, value: Any) -> Number:
        """A stand-in for what is a number already."""
        if isinstance(value, Number):
            return value
        if isinstance(value, Condition):
            place = self.node("select", value.place, self.constant(1.0).place, self.constant(0.0).place).place
            return Number(self, place, value.numpy, True)
        if self.jitted and type(value) is int and abs(value) >= 1 << 62:
            raise self.refused("it computes with whole numbers of more than 62 bits")
        if isinstance(value, (bool, int, float, np.float64, np.bool_, np.integer)):
            return Number(self, self.constant(float(value)).place, isinstance(value, np.generic), is_whole(value))
        raise self.refused(f"it computes with a {type(value).__name__}")

    def plain(self, value: Any, numpy: bool | None) -> Number:
        """A double of Python's or numpy's kind, whatever it was before."""
        return Number(self, self.number(value).place, numpy, False)

    def apply(self, kind: str, *operands: Any) -> Any:
        """An instruction; zeros of whole numbers have no sign, and sums of numpy's conditions are conditions."""
        numpy = kind_of(operands)
        conditions = all(isinstance(v, (Condition, bool, np.bool_)) for v in operands)
        if kind in _OF_CONDITIONS and conditions and numpy is not False and not self.jitted:
            if numpy is None or _OF_CONDITIONS[kind] is None:
                raise self.refused("it computes with conditions; use numpy.where, & or |")
            return Condition(self, self.node(_OF_CONDITIONS[kind], *map(self.truth, operands)).place)
        whole = self.whole(operands) if kind in _KEEPS_WHOLE else False
        made = self.node(kind, *(self.number(operand).place for operand in operands))
        return self.unsigned(made.place, whole, numpy)

    def whole(self, operands: Any) -> bool | int:
        """Whether all of them are whole numbers; a condition where that depends on values of the run."""
        found: bool | int = True
        for operand in operands:
            one = is_whole(operand)
            if one is False:
                return False
            if type(operand) is int and abs(operand) > _LARGEST:
                raise self.refused("it computes with large whole numbers; write them with a point")
            if one is not True:
                found = one if found is True else self.node("and", found, one).place
        return found

    def unsigned(self, place: int, whole: bool | int, numpy: bool | None) -> Number:
        """The number without the sign of a zero, where it is a whole number."""
        if whole is not False:
            sum_ = self.node("add", place, self.constant(0.0).place).place
            place = sum_ if whole is True else self.node("select", whole, sum_, place).place
        return Number(self, place, numpy, whole)

    def call(self, routine: tuple[str, str], *operands: Any) -> Number:
        """A routine: ("c", name) of the C library, ("numpy", name) of numpy."""
        self.need(routine)
        return self.node("call", routine, *(self.number(operand).place for operand in operands))

    def reduced(self, routine: tuple[str, str], entries: list[Any]) -> Number:
        """What a loop of numpy makes of the entries, as its `reduce` calls it."""
        self.need(routine)
        return self.node("reduce", routine, *(self.number(entry).place for entry in entries))

    def need(self, routine: tuple[str, str]) -> None:
        """The table of the function has the address of this routine."""
        if routine not in self.routines:
            self.routines.append(routine)

    def compare(self, how: str, a: Any, b: Any) -> Condition:
        """A condition."""
        place = self.node("compare", how, self.number(a).place, self.number(b).place).place
        return Condition(self, place, kind_of((a, b)))

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        """`a` where the condition holds, else `b`."""
        if not isinstance(condition, (Number, Condition)):
            return a if condition else b
        if isinstance(a, Condition) or isinstance(b, Condition):
            a, b = (self.number(v) for v in (a, b))
        where, wholes = self.truth(condition), [is_whole(a), is_whole(b)]
        made = self.node("select", where, self.number(a).place, self.number(b).place)
        whole: bool | int = wholes[0]
        if wholes[0] is not wholes[1]:
            first, second = (w if type(w) is int else self.truth(w) for w in wholes)
            not_there = self.node("xor", where, self.truth(True)).place
            either = self.node("and", where, first).place, self.node("and", not_there, second).place
            whole = self.node("or", *either).place
        same = kind_of((a,)) is kind_of((b,))
        return Number(self, made.place, kind_of((a,)) if same else None, whole)

    def truth(self, value: Any) -> int:
        """The node of a condition."""
        if isinstance(value, Number):
            value = self.compare("une", value, 0.0)
        if isinstance(value, Condition):
            return value.place
        return self.compare("oeq", 1.0 if value else 0.0, 1.0).place

    # -- what is known while tracing ---------------------------------------------------------------------------

    def is_fixed(self, place: int) -> bool:
        """Whether the value follows from captured numbers alone."""
        return self._fixed[place]

    def value(self, place: int) -> Any:
        """The value of such a node."""
        if place not in self._values:
            self._values[place] = self._value(place)
        return self._values[place]

    def _value(self, place: int) -> Any:
        kind, *rest = self.nodes[place]
        if kind == "constant":
            return struct.unpack("d", rest[0])[0]
        if kind == "parameter":
            return self.parameters[rest[0]]
        given = [np.float64(v) if isinstance(v, float) else v for v in map(self.value, self.operands(place))]
        with np.errstate(all="ignore"):
            if kind == "product":
                rows, inner, columns = rest[0][:3]
                left = np.array(given[: rows * inner]).reshape(rows, inner)
                return left @ np.array(given[rows * inner :]).reshape(inner, columns)
            if kind == "entry":
                return float(given[0].ravel()[rest[0]])
            if kind == "call":
                return float(VALUES[rest[0]](*given))
            if kind == "reduce":
                return float(getattr(np, rest[0][1]).reduce(np.array(given)))
            if kind == "compare":
                return bool(_COMPARED[rest[0]](*given))
            found = _INSTRUCTIONS[kind](*given)
        return bool(found) if isinstance(found, (bool, np.bool_)) else float(found)

    # -- paths -------------------------------------------------------------------------------------------------

    def begin(self, decisions: list[bool]) -> None:
        """A run of the function begins, which answers the first conditions like this."""
        self.taken: list[tuple[int, bool]] = []
        self.checked: dict[int, None] = {}
        self._decisions = decisions

    def decide(self, place: int) -> bool:
        """The answer to a condition in this run."""
        if self._fixed[place]:
            return bool(self.value(place))
        for known, answer in self.taken:
            if known == place:
                return answer
        if len(self.taken) >= _DEEP:
            raise self.refused(f"it asks more than {_DEEP} questions about its values")
        answer = self._decisions[len(self.taken)] if len(self.taken) < len(self._decisions) else True
        self.taken.append((place, answer))
        return answer

    def refused(self, why: str) -> Refusal:
        """What to raise, with the line of the function that is at work."""
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code not in self.codes:
            frame = frame.f_back
        where = "" if frame is None else f" ({place_of(frame.f_code, frame.f_lineno)})"
        self.refusal = self.refusal or f"{why}{where}"
        return Refusal(self.refusal)


def place_of(code: Any, line: int) -> str:
    """File and line.

    >>> place_of(compile("1", "models/tank.py", "eval"), 3)
    'tank.py, line 3'
    """
    return f"{Path(code.co_filename).name}, line {line}"


class TracedPath:
    """One way through a function: conditions with their answers, and what it gives; None where Python is to do it."""

    def __init__(self, taken: list[tuple[int, bool]], gives: list[int] | None, checked: list[int]) -> None:
        self.taken, self.gives, self.checked = taken, gives, checked


def ways(tape: Tape, run: Callable[[], list[int]], changed: Callable[[], str | None]) -> list[TracedPath]:
    """All ways through a function; those that end in an error are left to Python.

    `changed` says after each way what the function has written to: a way must not see what another has left.
    """
    decisions: list[bool] = []
    found: list[TracedPath] = []
    left: str | None = None  # why a way is left to Python
    while True:
        tape.begin(decisions)
        gives: list[int] | None = None
        try:
            gives = run()
            if tape.refusal is not None:  # and it was swallowed
                raise Refusal(tape.refusal)
        except (Refusal, Exception):
            if not tape.taken:
                raise
            left = left or tape.refusal
            tape.refusal = None
        if (what := changed()) is not None:
            raise Refusal(f"it writes to {what!r}, which it has not made")
        found.append(TracedPath(list(tape.taken), gives, list(tape.checked)))
        taken = tape.taken
        while taken and not taken[-1][1]:
            taken.pop()
        if not taken:
            break
        if len(found) >= _PATHS:
            raise tape.refused(f"its conditions make more than {_PATHS} ways through it")
        decisions = [answer for _, answer in taken[:-1]] + [False]
    if all(path.gives is None for path in found):
        raise Refusal(left or "it raises an error whatever its arguments are")
    return found


def is_whole(value: Any) -> bool | int:
    """Whether it is a whole number or a condition; the place of a condition where that is known in the run only."""
    if isinstance(value, Number):
        return value.whole
    return isinstance(value, (bool, int, Condition, np.integer, np.bool_))


def kind_of(values: Any) -> bool | None:
    """True where one of them is of numpy's kind, False where all are of Python's; None where that is not known."""
    kinds = [v.numpy if isinstance(v, (Number, Condition)) else isinstance(v, np.generic) for v in values]
    return True if True in kinds else None if None in kinds else False


def _binary(kind: str, reverse: bool = False) -> Any:
    def made(self: _Value, other: Any) -> Any:
        if not _is_plain(other):
            return self._beside(other)
        return self.tape.apply(kind, other, self) if reverse else self.tape.apply(kind, self, other)

    return made


def _rounded(name: str, reverse: bool = False) -> Any:
    def made(self: _Value, other: Any) -> Any:
        if not _is_plain(other):
            return self._beside(other)
        if self.tape.jitted:
            raise self.tape.refused("it uses // or %")
        given = (other, self) if reverse else (self, other)
        found = self.tape.call(("numpy", name), *given)
        return self.tape.unsigned(found.place, self.tape.whole(given), kind_of(given))

    return made


def _powered(reverse: bool = False) -> Any:
    def made(self: _Value, other: Any) -> Any:
        if not _is_plain(other):
            return self._beside(other)
        return power(self.tape, other, self) if reverse else power(self.tape, self, other)

    return made


def _is_plain(other: Any) -> bool:
    return isinstance(other, (Number, Condition, bool, int, float, np.integer, np.bool_))


def _comparison(how: str, result: bool | None = None) -> Any:
    def made(self: _Value, other: Any) -> Any:
        if _is_plain(other):
            return self.tape.compare(how, self, other)
        return result if result is not None and other is None else self._beside(other)

    return made


def _of_conditions(kind: str) -> Any:
    def made(self: _Value, other: Any) -> Any:
        if not _is_plain(other):
            return self._beside(other)
        if not all(isinstance(v, (Condition, bool, np.bool_)) for v in (self, other)):
            raise self.tape.refused("it uses &, | or ^ of other things than conditions")
        place = self.tape.node(kind, self.tape.truth(self), self.tape.truth(other)).place
        return Condition(self.tape, place, kind_of((self, other)))

    return made


def _unknown(what: str, convert: Callable[[Any], Any]) -> Any:
    def made(self: Any, *arguments: Any) -> Any:
        if isinstance(self, Condition) or not self.tape.is_fixed(self.place):
            raise self.tape.refused(f"it {what} a value that is known in the run only")
        return convert(self.tape.value(self.place))

    return made


class _Value:
    """What numbers and conditions have in common.

    `numpy` tells numpy's numbers and conditions from Python's, None where it may be either.
    """

    __slots__ = ("numpy", "place", "tape")
    __array_ufunc__ = None  # arithmetic with arrays is ours
    tape: Tape
    place: int
    numpy: bool | None

    __add__, __radd__ = _binary("add"), _binary("add", True)
    __sub__, __rsub__ = _binary("sub"), _binary("sub", True)
    __mul__, __rmul__ = _binary("mul"), _binary("mul", True)
    __truediv__, __rtruediv__ = _binary("div"), _binary("div", True)
    __mod__, __rmod__ = _rounded("remainder"), _rounded("remainder", True)
    __floordiv__, __rfloordiv__ = _rounded("floor_divide"), _rounded("floor_divide", True)
    __pow__, __rpow__ = _powered(), _powered(True)
    __lt__, __le__, __gt__, __ge__ = map(_comparison, ("olt", "ole", "ogt", "oge"))
    __eq__, __ne__ = _comparison("oeq", False), _comparison("une", True)
    __and__ = __rand__ = _of_conditions("and")
    __or__ = __ror__ = _of_conditions("or")
    __xor__ = __rxor__ = _of_conditions("xor")
    __float__ = _unknown("makes a plain number of", float)
    __int__ = __trunc__ = _unknown("makes a whole number of", int)
    __index__ = _unknown("takes a place in an array from", operator.index)
    __round__ = _unknown("rounds", round)
    __str__ = __repr__ = _unknown("writes", str)
    __hash__ = _unknown("looks up", hash)

    def __format__(self, how: str) -> str:
        return format(float(self), how)

    def __neg__(self) -> Any:
        return self.tape.apply("neg", self)

    def __abs__(self) -> Any:
        return self.tape.apply("abs", self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # numpy and Python ask for such
            raise AttributeError(name)
        raise self.tape.refused(f"it uses .{name} of a number")

    def _beside(self, other: Any) -> Any:
        """Operations with other things than numbers: arrays know how, the rest is left to Python."""
        if getattr(type(other), "__array_ufunc__", None) is not None or isinstance(other, (list, tuple, str)):
            return NotImplemented
        raise self.tape.refused(f"it computes with a {type(other).__name__}")


class Number(_Value):
    """A double in the making.

    `whole` says that it stands for a whole number, whose zeros have no sign: a condition where that is known in the
    run only, as for `max(0, x)`.
    """

    __slots__ = ("whole",)

    def __init__(self, tape: Tape, place: int, numpy: bool | None = True, whole: bool | int = False) -> None:
        self.tape, self.place, self.numpy, self.whole = tape, place, numpy, whole

    def __pos__(self) -> Number:
        return self

    def __invert__(self) -> Any:
        raise self.tape.refused("it uses ~ of a number")

    def __bool__(self) -> bool:
        return bool(self != 0.0)

    def _of_numpy(self, name: str) -> None:
        if self.numpy is not True:
            raise self.tape.refused(f"it uses .{name} of a number") if self.numpy is None else AttributeError(name)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of numpy's numbers."""
        self._of_numpy("shape")
        return ()

    @property
    def ndim(self) -> int:
        """Of numpy's numbers."""
        self._of_numpy("ndim")
        return 0

    @property
    def size(self) -> int:
        """Of numpy's numbers."""
        self._of_numpy("size")
        return 1

    def copy(self) -> Number:
        """Itself: numbers do not change."""
        self._of_numpy("copy")
        return self

    def item(self) -> Number:
        """Python's number."""
        self._of_numpy("item")
        return Number(self.tape, self.place, False, self.whole)

    @property
    def real(self) -> Number:
        """Itself."""
        return self


class Condition(_Value):
    """A condition in the making."""

    __slots__ = ()

    def __init__(self, tape: Tape, place: int, numpy: bool | None = True) -> None:
        self.tape, self.place, self.numpy = tape, place, numpy

    def __bool__(self) -> bool:
        return self.tape.decide(self.place)

    def __invert__(self) -> Any:
        if self.numpy is not True or self.tape.jitted:
            raise self.tape.refused("it uses ~ of a condition; use not")
        return self ^ np.True_


def power(tape: Tape, base: Any, exponent: Any) -> Any:
    """`base ** exponent` of single numbers: numba multiplies where the exponent is a whole number."""
    if tape.jitted and type(exponent) is int:
        n, square, result = abs(exponent), tape.number(base), None
        if n > 0x10000:
            raise tape.refused("it takes a large power")
        while n:  # in numba's order, where the first factor is 1
            if n & 1:
                result = square if result is None else result * square
            n >>= 1
            square = square * square if n else square
        result = tape.constant(1.0) if result is None else result
        return 1.0 / result if exponent < 0 else result
    if tape.jitted and (made := _power_of_llvm(tape, base, exponent)) is not None:
        return tape.plain(made, kind_of((base, exponent)))
    whole = tape.whole((base, exponent))
    if whole is not False and not (type(exponent) is int and exponent >= 0):
        raise tape.refused("it takes a power of whole numbers")
    return tape.unsigned(tape.call(("c", "pow"), base, exponent).place, whole, kind_of((base, exponent)))


def _power_of_llvm(tape: Tape, base: Any, exponent: Any) -> Any:
    """What LLVM makes of a power where one of the numbers is known, for jitted functions; None: a call of `pow`."""

    def known(value: Any) -> float | None:
        fixed = not isinstance(value, (Number, Condition)) or (isinstance(value, Number) and tape.is_fixed(value.place))
        return float(value) if fixed else None

    if known(base) in (2.0, 10.0):
        raise tape.refused("it takes a power of 2 or 10")
    if known(exponent) == 2.0:
        return tape.apply("mul", base, base)
    if known(exponent) == -1.0:
        return tape.apply("div", 1.0, base)
    return tape.apply("abs", tape.apply("sqrt", base)) if known(exponent) == 0.5 else None


#: How nodes that are known while tracing are computed.
_INSTRUCTIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "abs": abs,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "select": lambda condition, a, b: a if condition else b,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
_COMPARED = {
    "olt": operator.lt,
    "ole": operator.le,
    "ogt": operator.gt,
    "oge": operator.ge,
    "oeq": operator.eq,
    "une": operator.ne,
}


class _Values(dict[Any, Callable[..., Any]]):
    def __missing__(self, routine: tuple[str, str]) -> Callable[..., Any]:
        from cosolve.trace.routines import python_function

        return python_function(routine)


VALUES = _Values()
