"""A function of a user as a copy that can do no harm: its own code with copies of all that it has captured.

It is run on stand-ins while nothing of the user is touched: what it writes into are copies. It cannot be traced where
it has written into one, or asks for what may answer otherwise the next time (files, clocks, random numbers, objects of
unknown kinds).
"""

from __future__ import annotations

import builtins
import math
import sys
from collections import namedtuple
from collections.abc import Callable
from functools import partial
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from cosolve.trace.arrays import Array, is_traced, math_function, numpy_function, of
from cosolve.trace.tape import Condition, Number, Tape, is_whole

_PLAIN_KINDS = frozenset(
    {bool, int, str, bytes, complex, type(None), type(Ellipsis), slice, range, np.int64, np.bool_, np.str_}
)

#: What `namedtuple` and `NamedTuple` write into a class; functions of the user in it are others.
_OF_NAMED_TUPLES = frozenset(vars(namedtuple("_", ""))) | {"__annotations__", "__orig_bases__", "__annotate_func__"}

#: Arrays of so many numbers are inputs of the trace; larger ones are constants.
_LARGE = 256

#: Flag of types that a class statement has made.
_HEAP = 1 << 9

#: Builtin functions that do the same to stand-ins as to numbers.
_SAME = (
    *("len", "range", "zip", "enumerate", "tuple", "list", "dict", "map", "filter", "reversed", "sorted"),
    *("slice", "set"),
)
_ERRORS = tuple(name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception))


class Sandbox:
    """Copies of functions and of what they have captured; `changed` says what they wrote to."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self._copies: dict[int, Any] = {}
        self._originals: list[Any] = []  # so that an id stays what it is
        self._written: list[Callable[[], str | None]] = []
        self._watched: list[Callable[[], bool]] = []
        self._read: dict[tuple[int, str], Any] = {}  # attributes of objects and modules
        self.captures = False  # whether anything was captured that could change
        self._builtins = self._made_builtins()

    def changed(self) -> str | None:
        """What of the copies was written to."""
        return next((found for found in (check() for check in self._written) if found), None)

    def unchanged(self) -> bool:
        """Whether all originals still hold what they held."""
        return all(check() for check in self._watched)

    # -- copies ------------------------------------------------------------------------------------------------

    def copy(self, value: Any, name: str) -> Any:
        """The copy of what the function knows as `name`."""
        if type(value) in _PLAIN_KINDS:
            return value
        if type(value) in (float, np.float64):
            return self.tape.plain(self.tape.parameter(float(value)), type(value) is np.float64)
        if id(value) not in self._copies:
            self._originals.append(value)
            self._copies[id(value)] = self._copied(value, name)
        return self._copies[id(value)]

    def watch_class(self, value: Any, owners: tuple[type, ...], name: str) -> None:
        """Notice where an attribute of a class is replaced, or hidden by one of the object."""
        self.captures = True
        held = [vars(kind).get(name, _codes) for kind in owners]
        kind = type(value)
        instance = () if isinstance(value, type) else (value,)
        self._watched.append(
            lambda: (
                type(value) is kind
                and not any(name in vars(one) for one in instance)
                and all(vars(kind).get(name, _codes) is one for kind, one in zip(owners, held, strict=True))
            )
        )

    def attribute(self, owner: Any, name: str, value: Any, full: str) -> Any:
        """The copy of an attribute, the same one in every run."""
        key = id(owner), name
        if key not in self._read:
            self._originals.append(owner)
            self._watch(lambda: vars(owner).get(name), value)
            self._read[key] = self.copy(value, full)
        return self._read[key]

    def _copied(self, value: Any, name: str) -> Any:
        kind = type(value)
        if kind in (list, dict):
            return self._container(value, name)
        if isinstance(value, tuple):
            made = [self.copy(v, f"{name}[{k}]") for k, v in enumerate(value)]
            if kind is not tuple and not (
                kind.__bases__ == (tuple,) and set(vars(kind)) <= _OF_NAMED_TUPLES | set(getattr(kind, "_fields", ()))
            ):
                return self._opaque(value, name)
            return tuple(made) if kind is tuple else kind(*made)
        if kind is np.ndarray:
            return self._array(value, name)
        if kind in (set, frozenset):
            return self._set(value, name) if all(type(v) in _PLAIN_KINDS for v in value) else self._opaque(value, name)
        if isinstance(value, FunctionType):
            return self._foreign(value) or self.function(value)
        if kind is MethodType:
            return MethodType(self.copy(value.__func__, name), self.copy(value.__self__, name))
        if kind is partial:
            keywords = dict(value.keywords)
            self._watched.append(lambda: _same(list(value.keywords.items()), list(keywords.items())))
            named = {k: self.copy(v, k) for k, v in value.keywords.items()}
            return partial(self.copy(value.func, name), *(self.copy(v, name) for v in value.args), **named)
        if isinstance(value, np.ufunc):
            return numpy_function(self.tape, value)
        if hasattr(kind, "nopython_signatures"):  # jitted by numba
            return self.function(value.py_func)
        if isinstance(value, ModuleType):
            return _Module(self, value)
        return self._of_builtin(value, name)

    def _of_builtin(self, value: Any, name: str) -> Any:
        own = str(getattr(value, "__name__", "")) if isinstance(value, (type, BuiltinFunctionType)) else ""
        if own and getattr(math, own, None) is value:
            return math_function(self.tape, own)
        if own and getattr(builtins, own, None) is value:
            return self._builtins.get(own) or _Opaque(self.tape, own)
        if callable(value) and (getattr(value, "__module__", None) or "").startswith("numpy"):
            return numpy_function(self.tape, value)
        kind: Any = value if isinstance(value, type) else type(value)
        plain = kind.__getattribute__ is object.__getattribute__ and not hasattr(kind, "__getattr__")
        plain = plain and not issubclass(kind, (int, float, str, tuple, np.generic, np.ndarray))
        made_by_class = plain and kind.__flags__ & _HEAP and kind.__module__ != "builtins"
        if kind is SimpleNamespace or (made_by_class and hasattr(value, "__dict__")):
            return _Object(self, value, name)
        return self._opaque(value, name)

    def _foreign(self, function: FunctionType) -> Any:
        """What stands for functions of numpy that are written in Python."""
        return numpy_function(self.tape, function) if (function.__module__ or "").startswith("numpy") else None

    def _opaque(self, value: Any, name: str) -> Any:
        kind = getattr(value, "__name__", name) if isinstance(value, (type, BuiltinFunctionType)) else name
        return _Opaque(self.tape, name if kind == name else f"{name} ({kind})")

    def _container(self, value: Any, name: str) -> Any:
        self.captures = True
        pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
        made: Any = type(value)()
        self._copies[id(value)] = made
        if isinstance(value, dict):
            made.update({k: self.copy(v, f"{name}[{k!r}]") for k, v in pairs})
        else:
            made.extend(self.copy(v, f"{name}[{k}]") for k, v in pairs)
        before = list(made.items()) if isinstance(value, dict) else list(made)
        self._written.append(
            lambda: None if _same(list(made.items()) if isinstance(made, dict) else made, before) else name
        )
        self._watched.append(
            lambda: _same(list(value.items()) if isinstance(value, dict) else list(enumerate(value)), pairs)
        )
        return made

    def _set(self, value: Any, name: str) -> Any:
        self.captures = True
        made, before = type(value)(value), frozenset(value)
        self._written.append(lambda: None if made == before else name)
        self._watched.append(lambda: bool(value == before))
        return made

    def _array(self, value: Any, name: str) -> Any:
        self.captures = True
        if value.dtype.kind not in "iub" and value.dtype != np.float64:
            return _Opaque(self.tape, f"{name} (an array of {value.dtype})")
        content = value.tobytes()
        self._watched.append(lambda: bool(value.tobytes() == content))
        if value.dtype == np.float64 and value.size <= _LARGE:
            data = np.empty_like(value, dtype=object)
            for at, entry in np.ndenumerate(value):
                data[at] = self.tape.parameter(float(entry))
            made = Array(self.tape, data)
            before = list(data.ravel())
            self._written.append(lambda: None if _same(list(made.data.ravel()), before) else name)
            return made
        copied = value.copy(order="K")
        if value.dtype == np.float64:
            made = of(self.tape, copied)
            before = list(made.data.ravel())
            self._written.append(lambda: None if _same(list(made.data.ravel()), before) else name)
            return made
        self._written.append(lambda: None if copied.tobytes() == content else name)
        return copied

    # -- functions -----------------------------------------------------------------------------------------------

    def function(self, function: FunctionType) -> FunctionType:
        """The same code with copies of all names that it uses."""
        code = function.__code__
        if code.co_flags & 0x2A0:  # generators and coroutines
            raise self.tape.refused(f"{function.__name__} is a generator")
        inner = _codes(code)
        self.tape.codes.update(inner)
        names = sorted({name for one in inner for name in one.co_names})  # in the same order in all processes
        for name in names:
            if name.startswith("__") and name.endswith("__") and name not in function.__globals__:
                raise self.tape.refused(f"{function.__name__} uses {name}")
        space = {"__builtins__": self._builtins, "__name__": function.__module__}
        cells = tuple(CellType() for _ in function.__closure__ or ())
        made = FunctionType(code, space, function.__name__, None, cells or None)
        self._copies[id(function)] = made
        self._originals.append(function)
        for name in names:
            if name in function.__globals__:
                held = function.__globals__[name]
                space[name] = self.copy(held, name)
                self._watch(partial(function.__globals__.get, name), held)
        absent = [name for name in names if name not in function.__globals__]
        for name in absent:
            if hasattr(builtins, name):
                self._builtins.setdefault(name, _Opaque(self.tape, name))
        self._watched.append(lambda: not any(name in function.__globals__ for name in absent))
        self._written.append(partial(_other_name, space, dict(space)))
        for name, new, old in zip(code.co_freevars, cells, function.__closure__ or (), strict=True):
            try:
                held = old.cell_contents
            except ValueError:  # not there yet
                self._watched.append(partial(_is_empty, old))
                continue
            new.cell_contents = first = self.copy(held, name)
            self._watch(partial(getattr, old, "cell_contents"), held)
            self._written.append(partial(_other_content, new, first, name))
        if function.__defaults__:
            made.__defaults__ = tuple(self.copy(v, "a default value") for v in function.__defaults__)
        if function.__kwdefaults__:
            made.__kwdefaults__ = {k: self.copy(v, k) for k, v in function.__kwdefaults__.items()}
        self._written.append(lambda: function.__name__ if made.__dict__ else None)
        own = code, function.__defaults__, function.__kwdefaults__, dict(function.__kwdefaults__ or {})
        self._watched.append(
            lambda: (
                (function.__code__, function.__defaults__, function.__kwdefaults__) == own[:3]
                and dict(function.__kwdefaults__ or {}) == own[3]
            )
        )
        return made

    def _watch(self, held: Callable[[], Any], value: Any) -> None:
        if not isinstance(value, (ModuleType, FunctionType, BuiltinFunctionType, type, np.ufunc)):
            self.captures = True
        self._watched.append(lambda: held() is value)

    # -- builtin functions ---------------------------------------------------------------------------------------

    def _made_builtins(self) -> dict[str, Any]:
        tape = self.tape
        found: dict[str, Any] = {
            name: getattr(builtins, name) for name in (*_SAME, *_ERRORS, "True", "False", "None", "Ellipsis")
        }
        found |= {"NotImplemented": NotImplemented, "__build_class__": _Opaque(tape, "class"), "__debug__": __debug__}
        found |= {"__import__": self._import, "float": self._float, "int": self._int, "abs": abs, "pow": pow}
        found |= {
            "bool": bool,
            "round": self._round,
            "sum": _sum,
            "max": self._extreme("ogt"),
            "min": self._extreme("olt"),
        }
        return found | {"any": any, "all": all, "divmod": lambda a, b: (a // b, a % b)}

    def _import(self, name: str, space: Any = None, locals: Any = None, wanted: Any = (), level: int = 0) -> Any:
        if level or name.split(".")[0] not in ("math", "numpy"):
            raise self.tape.refused(f"it imports {name}")
        return _Module(self, __import__(name, None, None, wanted or [""] if "." in name and wanted else wanted))

    def _float(self, value: Any = 0.0) -> Any:
        if isinstance(value, Array):
            if value.size != 1:
                raise TypeError("only arrays of one entry can be converted to Python scalars")
            value = value.item()
        return self.tape.plain(value, False) if isinstance(value, (Number, Condition)) else float(value)

    def _int(self, value: Any = 0, *base: Any) -> Any:
        known = not base and isinstance(value, (Number, Condition)) and is_whole(value) is True
        return Number(self.tape, self.tape.number(value).place, False, True) if known else int(value, *base)

    def _round(self, value: Any, digits: Any = None) -> Any:
        if is_traced(value):
            raise self.tape.refused("it rounds a value that is known in the run only")
        return round(value, digits)

    def _extreme(self, how: str) -> Callable[..., Any]:
        """`max` and `min`: the first of equal values, as Python has it."""
        tape = self.tape

        def extreme(*given: Any, **options: Any) -> Any:
            values = list(given[0]) if len(given) == 1 else list(given)
            if options or not is_traced(values):
                if options and is_traced(values):
                    raise tape.refused("it uses max or min with a key or a default")
                return (max if how == "ogt" else min)(values, **options)
            if any(isinstance(v, Array) and v.size != 1 for v in values):
                raise ValueError("the truth value of an array with more than one element is ambiguous")
            values = [v.item() if isinstance(v, Array) else v for v in values]
            if tape.jitted and not all(is_whole(v) is True for v in values):  # numba makes doubles of them
                values = [tape.plain(v, False) for v in values]
            found = values[0]
            for value in values[1:]:
                found = tape.select(tape.compare(how, value, found), value, found)
            return found

        return extreme


def _sum(values: Any, start: Any = 0) -> Any:
    """From left to right; a start of 0 changes nothing."""
    values = list(values)
    if not is_traced(values) and not is_traced(start):
        return sum(values, start)
    if sys.version_info >= (3, 12):  # which adds up Python's numbers with a correction
        for value in values:
            if isinstance(value, Number) and value.numpy is not True and len(values) > 1:
                raise value.tape.refused("it uses sum of plain numbers; use numpy.sum")
    found = start
    for value in values:
        found = value + found if type(found) is int and found == 0 and not isinstance(value, Array) else found + value
    return found


def _same(now: Any, before: Any) -> bool:
    """The same objects in the same order."""
    if len(now) != len(before):
        return False
    for a, b in zip(now, before, strict=True):
        if isinstance(a, tuple) and isinstance(b, tuple):
            if len(a) != len(b) or any(x is not y and not _equal(x, y) for x, y in zip(a, b, strict=True)):
                return False
        elif a is not b and not _equal(a, b):
            return False
    return True


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (type(a) in _PLAIN_KINDS or (type(a) is float and a != 0.0)) and a == b


def _other_name(space: dict[str, Any], before: dict[str, Any]) -> str | None:
    """A name that stands for something else than before."""
    names = {*space, *before}
    return next((name for name in names if space.get(name, _codes) is not before.get(name, _codes)), None)


def _other_content(cell: CellType, before: Any, name: str) -> str | None:
    return None if cell.cell_contents is before else name


def _is_empty(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def _codes(code: Any) -> list[Any]:
    """The code of a function and of those inside it."""
    return [code, *(one for inner in code.co_consts if isinstance(inner, type(code)) for one in _codes(inner))]


class _StandIn:
    """What stands for something of the user, which `inside` gives: its attributes are those of the user."""

    __slots__ = ("__stands_for",)

    def __setattr__(self, name: str, value: Any) -> None:
        sandbox, _, own = inside(self)
        raise sandbox.tape.refused(f"it writes to {own}.{name}")


_HELD = vars(_StandIn)["_StandIn__stands_for"]  # no name that a user would choose


def inside(stand_in: _StandIn) -> tuple[Sandbox, Any, str]:
    """The sandbox of a stand-in, what it stands for, and the name of that."""
    held: tuple[Sandbox, Any, str] = _HELD.__get__(stand_in)
    return held


class _Module(_StandIn):
    """A module: what is taken from it is copied then."""

    __slots__ = ()

    def __init__(self, sandbox: Sandbox, module: ModuleType) -> None:
        _HELD.__set__(self, (sandbox, module, module.__name__))

    def __getattr__(self, name: str) -> Any:
        sandbox, module, _ = inside(self)
        if module is math:
            return math_function(sandbox.tape, name)
        if module.__name__.split(".")[0] == "numpy":
            value = getattr(module, name)
            if isinstance(value, ModuleType):
                return _Module(sandbox, value) if value is np.linalg else _Opaque(sandbox.tape, f"numpy.{name}")
            if isinstance(value, (float, int)) or value is None:
                return value
            return numpy_function(sandbox.tape, value) if callable(value) else _Opaque(sandbox.tape, f"numpy.{name}")
        if name not in vars(module):
            raise sandbox.tape.refused(f"it uses {module.__name__}.{name}")
        return sandbox.attribute(module, name, vars(module)[name], f"{module.__name__}.{name}")


class _Object(_StandIn):
    """An object of a class of the user: its attributes are copied when they are read, and cannot be written."""

    __slots__ = ()

    def __init__(self, sandbox: Sandbox, value: Any, name: str) -> None:
        _HELD.__set__(self, (sandbox, value, name))

    def __getattr__(self, name: str) -> Any:
        sandbox, value, own = inside(self)
        is_class = isinstance(value, type)
        owners = (value if is_class else type(value)).__mro__
        holder = next((kind for kind in owners if name in vars(kind)), None)
        found = None if holder is None else vars(holder)[name]
        if not is_class and name in vars(value):
            if hasattr(type(found), "__set__"):
                raise sandbox.tape.refused(f"it uses {own}.{name} (a {type(found).__name__})")
            return sandbox.attribute(value, name, vars(value)[name], f"{own}.{name}")
        sandbox.watch_class(value, owners, name)
        if holder is None:
            raise AttributeError(f"{type(value).__name__} has no attribute {name!r}")
        if isinstance(found, property) and isinstance(found.fget, FunctionType) and not is_class:
            return sandbox.copy(found.fget, name)(self)
        if isinstance(found, staticmethod):
            return sandbox.copy(found.__func__, name)
        if isinstance(found, FunctionType):
            made = sandbox.copy(found, name)
            return made if is_class else MethodType(made, self)
        if hasattr(type(found), "__get__"):
            raise sandbox.tape.refused(f"it uses {own}.{name} (a {type(found).__name__})")
        return sandbox.attribute(holder, name, found, f"{own}.{name}")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        sandbox, value, own = inside(self)
        if isinstance(value, type):
            raise sandbox.tape.refused(f"it makes an object of {own}")
        return self.__getattr__("__call__")(*arguments, **named)

    def __getitem__(self, place: Any) -> Any:
        return self.__getattr__("__getitem__")(place)

    def __eq__(self, other: object) -> Any:
        return self is other if _is_objects(self, "__eq__") else NotImplemented

    def __hash__(self) -> int:
        return id(self) if _is_objects(self, "__hash__") else 0

    def __bool__(self) -> bool:
        return _is_objects(self, "__bool__") and _is_objects(self, "__len__")


def _is_objects(stand_in: _Object, name: str) -> bool:
    """True where the class of the user leaves this to `object`."""
    sandbox, value, own = inside(stand_in)
    if getattr(type(value), name, None) is not getattr(object, name, None):
        raise sandbox.tape.refused(f"it uses {name} of {own}")
    return True


class _Opaque:
    """What may answer otherwise the next time, or with unknown effects: every use of it is refused."""

    def __init__(self, tape: Tape, what: str) -> None:
        self.__dict__.update({"the tape": tape, "the name": what})

    def __getattr__(self, name: str) -> Any:
        _refuses(self)

    def __setattr__(self, name: str, value: Any) -> None:
        _refuses(self)


def _refuses(self: Any, *_: Any, **__: Any) -> Any:
    own = vars(self)
    raise own["the tape"].refused(f"it uses {own['the name']}")


for _name in (
    *("call", "getitem", "setitem", "delitem", "iter", "next", "len", "bool", "float", "int", "index"),
    *("contains", "hash"),
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "rpow", "matmul", "rmatmul", "neg"),
    *("lt", "le", "gt", "ge", "eq", "ne", "str", "repr", "format", "enter", "exit", "abs", "mod"),
    *("floordiv", "instancecheck"),
):
    setattr(_Opaque, f"__{_name}__", _refuses)
_Opaque.__array_ufunc__ = None  # type: ignore[attr-defined]
