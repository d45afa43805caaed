"""Methods and step controls as tables of plain values, the inverse of names in files: for annotations and exports."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import numpy as np

from cosolve.basics import registry
from cosolve.corrector import Corrector
from cosolve.errors import SetupError
from cosolve.method import ConstraintTreatment, Method
from cosolve.stepsize import Adaptive


def method_table(method: Method) -> dict[str, Any]:
    """`{"name": ..., option: value}` with the options that differ from their defaults.

    >>> import cosolve as cs
    >>> method_table(cs.SemiImplicit(degree=2, increment=1e-4))
    {'name': 'semi-implicit', 'degree': 2, 'increment': 0.0001}
    >>> method_table(cs.Implicit(corrector=cs.Aitken(0.5)))["corrector"]
    {'name': 'aitken', 'initial': 0.5}
    """
    name = _name("methods", method)
    return {"name": name, **_options(method, name)}


def step_table(step: float | Adaptive | None) -> float | dict[str, Any] | None:
    """A step as it stands in a system file.

    >>> import cosolve as cs
    >>> step_table(cs.Adaptive(rtol=1e-4))
    {'rtol': 0.0001}
    """
    return _options(step, "step") if isinstance(step, Adaptive) else step


def _options(given: Any, what: str) -> dict[str, Any]:
    """The constructor arguments of a dataclass that differ from the defaults."""
    found = {}
    for field in dataclasses.fields(given):
        value = getattr(given, field.name)
        default: Any = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if not field.init or _same(value, default):
            continue
        if isinstance(value, Corrector):
            found[field.name] = _corrector(value)
        elif isinstance(value, ConstraintTreatment):
            name = _name("treatments", value)
            found[field.name] = {"name": name, **_options(value, name)}
        else:
            found[field.name] = _plain(value, what, field.name)
    return found


def _name(group: str, given: Any) -> str:
    """The registered name of the class of an object, or `module:Class`."""
    found = registry.name_of(group, type(given)) or registry.address_of(type(given))
    if found is None:
        raise SetupError(
            f"the {registry.GROUPS[group]} {type(given).__name__} cannot be named in a file; define it in a module"
        )
    return found


def _corrector(corrector: Corrector) -> dict[str, Any]:
    name = _name("correctors", corrector)
    table: dict[str, Any] = {"name": name}
    for option, parameter in inspect.signature(type(corrector)).parameters.items():
        value = getattr(corrector, option)
        if isinstance(value, Corrector):
            table[option] = _corrector(value)
        elif not _same(value, parameter.default):
            table[option] = _plain(value, name, option)
    return table


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, Corrector):
        return repr(value) == repr(default)
    return value is default or (type(value) is type(default) and bool(value == default))


def _plain(value: Any, what: str, option: str) -> Any:
    if isinstance(value, (np.integer, np.floating)):
        return value.item()
    if isinstance(value, (tuple, list)):
        return [_plain(item, what, option) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise SetupError(
        f"the option {option} of {what} is a {type(value).__name__}, which cannot be written to a file; leave it out, "
        "or give the method where the run is started"
    )
