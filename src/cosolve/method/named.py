"""Coupling methods by name: `"semi-implicit"`, `"semi-implicit:2"`, `{"name": "implicit", "tol": 1e-8}`.

Everything that takes a method takes one of these too, in Python, in files and on the command line. The names are those
of the classes, in any spelling (`SemiImplicit`, `semi_implicit`), and the options those of their constructors, so a new
method has its name as soon as it is exported.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeAlias, get_type_hints

import cosolve.corrector
import cosolve.method
from cosolve.basics.wording import problem, shown, suggest
from cosolve.corrector import Corrector
from cosolve.errors import SetupError
from cosolve.method import ConstraintTreatment, Method
from cosolve.signal.collocation import POINTS

#: What stands for an object in a file: its name, or a table with its name and options.
Named: TypeAlias = str | Mapping[str, Any]

#: What everything that takes a method takes.
MethodLike: TypeAlias = Method | Named

#: From "module:function" to the function.
Import: TypeAlias = Callable[[str], Callable[..., Any]]


def kebab(name: str) -> str:
    """A name as it stands in files.

    >>> kebab("SemiImplicit"), kebab("StabilisedIndex2"), kebab("iqn_ils")
    ('semi-implicit', 'stabilised-index2', 'iqn-ils')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).replace("_", "-").lower()


def _exported(module: ModuleType, base: type) -> dict[str, type]:
    classes = [getattr(module, name) for name in module.__all__]
    return {kebab(c.__name__): c for c in classes if inspect.isclass(c) and issubclass(c, base) and c is not base}


METHODS = _exported(cosolve.method, Method)
CORRECTORS = _exported(cosolve.corrector, Corrector)
TREATMENTS = _exported(cosolve.method, ConstraintTreatment)


def is_open(given: object) -> bool:
    """Whether a method is still to be found: none is given, or "auto".

    >>> is_open(None), is_open("auto"), is_open("jacobi")
    (True, True, False)
    """
    return given is None or (isinstance(given, str) and given == "auto")


def as_method(given: MethodLike, imported: Import | None = None) -> Method:
    """The coupling method that is given, or the one of that name; `imported` finds functions that options name.

    >>> as_method("gauss-seidel").label, as_method("GaussSeidel:2").label, as_method("semi-implicit:bdf2").label
    ('GaussSeidel(1)', 'GaussSeidel(2)', 'SemiImplicit(BDF2)')
    >>> as_method({"name": "implicit", "corrector": "iqn-ils", "tol": 1e-8}).tol
    1e-08
    >>> as_method("gaus-seidel")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: there is no method 'gaus-seidel'; did you mean 'gauss-seidel'?
    """
    if isinstance(given, Method):
        return given
    if not isinstance(given, (str, Mapping)):
        raise SetupError(
            "method must be a coupling method such as Jacobi(degree=1), a name such as 'jacobi', or a table with a "
            f"name, not {shown(repr(given))}"
        )
    if isinstance(given, str) and ":" in given:
        name, _, signal = given.partition(":")
        given = {"name": name} | _drawn(signal, given)
    return build("method", given, METHODS, imported)  # type: ignore[no-any-return]


def _drawn(text: str, whole: str) -> dict[str, Any]:
    """Degree and signal from what stands after the colon: a degree, or the name of a signal.

    >>> _drawn("2", "jacobi:2"), _drawn("bdf2", "implicit:bdf2")
    ({'degree': 2}, {'degree': 1, 'signal': 'bdf'})
    """
    if text in ("bdf1", "bdf2", "bdf3"):
        return {"degree": int(text[-1]) - 1, "signal": "bdf"}
    if text in POINTS:
        return {"degree": 1, "signal": text}
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise SetupError(
            f"'{shown(whole)}': write a method as name:degree, for example semi-implicit:1, or with a signal, "
            "semi-implicit:bdf2"
        )
    return {"degree": int(text)}


def as_written(text: str) -> dict[str, Any] | None:
    """The table that stands for an object which prints itself as `Name(option=value, ...)`; None where it does not.

    >>> as_written("Implicit(degree=2, corrector=Newton(refresh='run'), constraints=None)")
    {'name': 'Implicit', 'degree': 2, 'corrector': {'name': 'Newton', 'refresh': 'run'}}
    >>> as_written("Mine(<function f at 0x7f>)") is None
    True
    """
    try:
        found = _table(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _table(node: ast.expr) -> Any:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return ast.literal_eval(node)
    if node.args or any(keyword.arg is None for keyword in node.keywords):
        raise ValueError("positional arguments")
    options = {str(keyword.arg): _table(keyword.value) for keyword in node.keywords}
    return {"name": node.func.id} | {key: value for key, value in options.items() if value is not None}


def build(role: str, given: Named, known: Mapping[str, type], imported: Import | None = None) -> Any:
    """The object of a known class that a name or a table stands for."""
    if not isinstance(given, (str, Mapping)):
        raise SetupError(f"{role} is a name or a table with a name, not {shown(repr(given))}")
    options = {"name": given} if isinstance(given, str) else dict(given)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise SetupError(f"{role} needs a name, one of {', '.join(known)}")
    chosen = known.get(kebab(name))
    if chosen is None:
        raise SetupError(f"there is no {role} '{shown(name)}'; {suggest(kebab(name), list(known))}")
    return construct(f"{role} '{kebab(name)}'", chosen, options, imported)


def construct(what: str, cls: Any, options: Mapping[str, Any], imported: Import | None = None) -> Any:
    """`cls(**options)`, with a sentence about the first option that does not fit; objects inside may be named too."""
    from pydantic import TypeAdapter, ValidationError  # only needed for names

    if not isinstance(options, Mapping):
        raise SetupError(f"{what} is a table of options, not {shown(repr(options))}")
    signature = inspect.signature(cls)
    known = list(signature.parameters)
    hints = get_type_hints(cls if dataclasses.is_dataclass(cls) else cls.__init__)
    values: dict[str, Any] = {}
    for option, value in options.items():
        if option not in known:
            raise SetupError(f"{what} has no option '{shown(option)}'; {suggest(str(option), known)}")
        hint = hints[option]
        if isinstance(value, (Corrector, ConstraintTreatment)):
            values[option] = value
        elif hint is Corrector:
            values[option] = build("corrector", value, CORRECTORS, imported)
        elif hint == ConstraintTreatment | None:
            values[option] = build("constraint treatment", value, TREATMENTS, imported)
        elif imported is not None and getattr(hint, "__name__", "") == "Callable" and isinstance(value, str):
            values[option] = imported(value)
        else:
            try:
                values[option] = TypeAdapter(hint).validate_python(value, strict=True)
            except ValidationError as failure:
                wrong = failure.errors()[0]
                raise SetupError(f"{what}: {option} {problem(wrong['msg'], wrong['input'])}") from None
    missing = [n for n, p in signature.parameters.items() if p.default is p.empty and n not in values]
    if missing:
        raise SetupError(f"{what} needs the option '{missing[0]}'")
    return cls(**values)
