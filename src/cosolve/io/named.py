"""Methods, correctors, startups and step controls from tables: `{name = "semi-implicit", degree = 2}`.

The names are those of the classes in kebab case and the options those of their constructors, so a new method can be
used in files as soon as it is exported.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

import cosolve.corrector
import cosolve.method
from cosolve.basics.wording import shown
from cosolve.corrector import Corrector
from cosolve.errors import SetupError
from cosolve.io.imports import import_callable
from cosolve.io.toml_text import problem, suggest
from cosolve.method import ConstraintTreatment, Method
from cosolve.run.startup import GradedStart, KnownHistory, LeaderFollowerStart, RisingDegree, Startup
from cosolve.stepsize import Adaptive

Given = str | Mapping[str, Any]


def _exported(module: ModuleType, base: type) -> dict[str, type]:
    classes = [getattr(module, name) for name in module.__all__]
    return {_kebab(c.__name__): c for c in classes if inspect.isclass(c) and issubclass(c, base) and c is not base}


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).replace("_", "-").lower()


METHODS = _exported(cosolve.method, Method)
CORRECTORS = _exported(cosolve.corrector, Corrector)
TREATMENTS = _exported(cosolve.method, ConstraintTreatment)
STARTUPS = {_kebab(c.__name__): c for c in (GradedStart, RisingDegree, KnownHistory, LeaderFollowerStart)}


def method(given: Given, folder: Path = Path()) -> Method:
    """A coupling method from its name or table.

    >>> method({"name": "semi-implicit", "degree": 2}).label
    'SemiImplicit(2)'
    """
    return _build("method", given, METHODS, folder)  # type: ignore[no-any-return]


def method_from_words(words: str) -> Method:
    """A coupling method from `name` or `name:degree`, as on the command line.

    >>> method_from_words("gauss-seidel:2").label
    'GaussSeidel(2)'
    """
    name, colon, degree = words.partition(":")
    if colon and not (degree.isascii() and degree.isdigit() and len(degree) < 10):
        raise SetupError(f"'{words}': write a method as name:degree, for example semi-implicit:1")
    return method({"name": name, "degree": int(degree)} if colon else name)


def startup(given: Given, folder: Path = Path()) -> Startup:
    """A startup from its name or table.

    >>> startup({"name": "leader-follower-start", "leader": "one"}).leader
    'one'
    """
    return _build("startup", given, STARTUPS, folder)  # type: ignore[no-any-return]


def step_control(options: Mapping[str, Any], folder: Path = Path()) -> Adaptive:
    """Adaptive steps from a table.

    >>> step_control({"rtol": 1e-4}).rtol
    0.0001
    """
    return _construct("step", Adaptive, options, folder)  # type: ignore[no-any-return]


def _build(role: str, given: Given, known: Mapping[str, type], folder: Path) -> Any:
    if not isinstance(given, (str, Mapping)):
        raise SetupError(f"{role} is a name or a table with a name, not {shown(repr(given))}")
    options = {"name": given} if isinstance(given, str) else dict(given)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise SetupError(f"{role} needs a name, one of {', '.join(known)}")
    chosen = known.get(_kebab(name))
    if chosen is None:
        raise SetupError(f"there is no {role} '{shown(name)}'; {suggest(_kebab(name), list(known))}")
    return _construct(f"{role} '{_kebab(name)}'", chosen, options, folder)


def _construct(what: str, cls: Any, options: Mapping[str, Any], folder: Path) -> Any:
    if not isinstance(options, Mapping):
        raise SetupError(f"{what} is a table of options, not {shown(repr(options))}")
    signature = inspect.signature(cls)
    known = list(signature.parameters)
    hints = get_type_hints(cls if dataclasses.is_dataclass(cls) else cls.__init__)
    values = {}
    for option, value in options.items():
        if option not in known:
            raise SetupError(f"{what} has no option '{shown(option)}'; {suggest(str(option), known)}")
        hint = hints[option]
        if hint is Corrector:
            values[option] = _build("corrector", value, CORRECTORS, folder)
        elif hint == ConstraintTreatment | None:
            values[option] = _build("constraint treatment", value, TREATMENTS, folder)
        elif getattr(hint, "__name__", "") == "Callable" and isinstance(value, str):
            values[option] = import_callable(value, folder)
        else:
            try:
                values[option] = TypeAdapter(hint).validate_python(value, strict=True)
            except ValidationError as failure:
                raise SetupError(f"{what}: {option} {problem(failure.errors()[0])}") from None
    missing = [n for n, p in signature.parameters.items() if p.default is p.empty and n not in values]
    if missing:
        raise SetupError(f"{what} needs the option '{missing[0]}'")
    return cls(**values)
