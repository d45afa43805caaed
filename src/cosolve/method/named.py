"""Coupling methods by name: `"semi-implicit"`, `"semi-implicit:2"`, `{"name": "implicit", "tol": 1e-8}`.

Everything that takes a method takes one of these too, in Python, in files and on the command line. Names come from the
registry (`basics/registry.py`), in any spelling (`SemiImplicit`, `semi_implicit`); `package.module:Class` needs none.
Options are those of the constructor.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, get_args, get_type_hints

from cosolve.basics import registry
from cosolve.basics.imports import import_callable
from cosolve.basics.wording import problem, raised, shown, suggest
from cosolve.corrector import Corrector
from cosolve.errors import CosolveError, SetupError
from cosolve.method import ConstraintTreatment, Method
from cosolve.method.base import Purpose
from cosolve.signal.history import POINTS

#: What stands for an object in a file: its name, or a table with its name and options.
Named: TypeAlias = str | Mapping[str, Any]

#: What everything that takes a method takes.
MethodLike: TypeAlias = Method | Named

#: Classes that options may name, and where their names are registered.
_INSIDE: dict[type, str] = {Corrector: "correctors", ConstraintTreatment: "treatments"}


def is_open(given: object) -> bool:
    """Whether a method is still to be found: none is given, or "auto".

    >>> is_open(None), is_open("auto"), is_open("jacobi")
    (True, True, False)
    """
    return given is None or (isinstance(given, str) and given == "auto")


def as_method(given: MethodLike, folder: Path | None = None) -> Method:
    """The coupling method that is given, or the one of that name; modules are looked for in `folder` first.

    >>> as_method("gauss-seidel").label, as_method("GaussSeidel:2").label, as_method("semi-implicit:bdf2").label
    ('GaussSeidel(1)', 'GaussSeidel(2)', 'SemiImplicit(BDF2)')
    >>> as_method({"name": "implicit", "corrector": "iqn-ils", "tol": 1e-8}).tol
    1e-08
    >>> as_method("semi-implicit(degree=2, increment=1e-4)").increment
    0.0001
    >>> as_method("cosolve.method.explicit:Jacobi:2").label
    'Jacobi(2)'
    >>> as_method("gaus-seidel")
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: there is no method 'gaus-seidel'; did you mean 'gauss-seidel'? ...
    """
    if isinstance(given, Method):
        return given
    if not isinstance(given, (str, Mapping)):
        raise SetupError(
            "method must be a coupling method such as Jacobi(degree=1), a name such as 'jacobi', or a table with a "
            f"name, not {shown(repr(given))}"
        )
    if isinstance(given, str) and "(" in given:
        name, _, options = given.partition("(")
        table = as_written(f"method({options}")
        if table is None:
            raise SetupError(
                f"'{shown(given)}': write options with their names and plain values, for example "
                "implicit(tol=1e-8, corrector='iqn-ils')"
            )
        given = table | {"name": name.strip()}
    elif isinstance(given, str) and ":" in given:
        name, _, last = given.rpartition(":")
        drawn = _drawn(last)
        if drawn is None and registry.entry_of("methods", name) is not None:
            raise SetupError(
                f"'{shown(given)}': write a method as name:degree, for example semi-implicit:1, or with a signal, "
                "semi-implicit:bdf2"
            )
        given = given if drawn is None else {"name": name} | drawn
    return build("methods", given, Method, folder)  # type: ignore[no-any-return]


def _drawn(text: str) -> dict[str, Any] | None:
    """Degree and signal from what stands after the last colon: a degree, or the name of a signal; None for a class.

    >>> _drawn("2"), _drawn("bdf2"), _drawn("Jacobi")
    ({'degree': 2}, {'degree': 1, 'signal': 'bdf'}, None)
    """
    if text in ("bdf1", "bdf2", "bdf3"):
        return {"degree": int(text[-1]) - 1, "signal": "bdf"}
    if text in POINTS:
        return {"degree": 1, "signal": text}
    return {"degree": int(text)} if text.isascii() and text.isdigit() and len(text) < 10 else None


def proposals(purpose: Purpose) -> list[Method]:
    """The methods that are proposed for a purpose, in order; those of a package that does not work are left out.

    >>> [method.label for method in proposals("map")]
    ['Jacobi(1)', 'GaussSeidel(1)', 'SemiImplicit(1)', 'Implicit(1)']
    """
    found = [(one.place, name, kind, one) for name, kind in method_classes().items() for one in kind.proposals]
    chosen = sorted((each for each in found if each[3].purpose == purpose), key=lambda each: each[:2])
    return [kind(**one.options) for _, _, kind, one in chosen]


def method_classes() -> dict[str, type[Method]]:
    """The registered methods by name; those of a package that does not work are left out.

    >>> "jacobi" in method_classes()
    True
    """
    found = registry.usable("methods")
    return {name: kind for name, kind in found.items() if inspect.isclass(kind) and issubclass(kind, Method)}


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


def build(group: str, given: Named, base: type, folder: Path | None = None) -> Any:
    """The object that a name or a table stands for: of a group of the registry, and an instance of `base`."""
    role = registry.GROUPS[group]
    if not isinstance(given, (str, Mapping)):
        raise SetupError(f"{role} is a name or a table with a name, not {shown(repr(given))}")
    options = {"name": given} if isinstance(given, str) else dict(given)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise SetupError(f"{role} needs a name, one of {', '.join(registry.names(group))}")
    made = construct(f"{role} '{shown(name)}'", registry.lookup(group, name, folder), options, folder)
    if not isinstance(made, base):
        raise SetupError(f"{role} '{shown(name)}' makes a {type(made).__name__}, not a cosolve.{base.__name__}")
    return made


def construct(what: str, factory: Callable[..., Any], options: Mapping[str, Any], folder: Path | None = None) -> Any:
    """`factory(**options)`, with a sentence about the first option that does not fit; objects inside may be named."""
    if not isinstance(options, Mapping):
        raise SetupError(f"{what} is a table of options, not {shown(repr(options))}")
    signature = inspect.signature(factory)
    known = named_parameters(signature)
    hints = hints_of(factory)
    values: dict[str, Any] = {}
    for option, value in options.items():
        if option not in known:
            if any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
                values[option] = value
                continue
            raise SetupError(f"{what} has no option '{shown(option)}'; {suggest(str(option), known)}")
        values[option] = _option(f"{what}: {option}", hints.get(option, Any), value, folder)
    missing = [name for name in known if signature.parameters[name].default is inspect.Parameter.empty]
    missing = [name for name in missing if name not in values]
    if missing:
        raise SetupError(f"{what} needs the option '{missing[0]}'")
    try:
        return factory(**values)
    except CosolveError:
        raise
    except Exception as error:
        raise SetupError(f"{what} cannot be made with these options: {raised(error)}") from error


def _option(what: str, hint: Any, value: Any, folder: Path | None) -> Any:
    """The value of an option: built or imported where it is named, checked against its type otherwise."""
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

    for base, group in _INSIDE.items():
        if hint == base or base in get_args(hint):
            return value if isinstance(value, base) or value is None else build(group, value, base, folder)
    if isinstance(value, str) and is_function(hint):
        return import_callable(value, folder or Path())
    try:
        return TypeAdapter(hint).validate_python(value, strict=True)
    except ValidationError as failure:
        wrong = failure.errors()[0]
        raise SetupError(f"{what} {problem(wrong['msg'], wrong['input'])}") from None
    except (PydanticSchemaGenerationError, PydanticUserError):  # a type that only Python knows, as of arrays
        return value


def is_function(hint: Any) -> bool:
    """True for the type of a function, also one that may be None; files name it as `module:function`.

    >>> is_function(Callable[[float], float] | None), is_function(str)
    (True, False)
    """
    return any(getattr(each, "__name__", "") == "Callable" for each in (hint, *get_args(hint)))


def named_parameters(signature: inspect.Signature) -> list[str]:
    """The parameters that can be given by name."""
    return [p.name for p in signature.parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def hints_of(factory: Callable[..., Any], *, include_extras: bool = False) -> dict[str, Any]:
    """The types of the parameters of a class or function, as far as they are stated and can be resolved."""
    is_plain = inspect.isclass(factory) and not dataclasses.is_dataclass(factory)
    try:
        return get_type_hints(factory.__init__ if is_plain else factory, include_extras=include_extras)
    except (NameError, TypeError, AttributeError):  # names that only type checkers see
        return {}
