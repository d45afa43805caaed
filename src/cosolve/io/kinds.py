"""The kinds of subsystems that system files describe by numbers: `kind = "linear"`, `"pid"`, `"structure"`.

Each is a function whose parameters are the keys of its table; the entry points `cosolve.subsystems` name them, as they
name those of other packages. `table_of` makes of such a function, or of a class, the table that a file is checked with.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, create_model

from cosolve.basics import registry
from cosolve.basics.imports import call
from cosolve.errors import SetupError
from cosolve.io.schema import Matrix, Numbers, PlaceTable, PortTable, Table
from cosolve.method.named import hints_of, named_parameters
from cosolve.structures import DofPort, SecondOrder, Structure
from cosolve.subsystem import Linear, Pid, Port, Subsystem

PortKeys = list[str | PortTable]


def linear(
    A: Matrix, B: Matrix, C: Matrix, *, D: Matrix | None = None, x0: list[float], inputs: PortKeys, outputs: PortKeys
) -> Subsystem:
    """A linear state space, see `Linear`."""
    return Linear(A, B, C, D, x0=x0, inputs=_ports(inputs), outputs=_ports(outputs))


def pid(
    K_P: Numbers,
    K_I: Numbers = 0.0,
    K_D: Numbers = 0.0,
    *,
    setpoint: Numbers = 0.0,
    u0: Numbers | None = None,
    on_at: float | None = None,
    inputs: PortKeys,
    outputs: PortKeys,
) -> Subsystem:
    """A controller, sampled once per macro step, see `Pid`."""
    ports = {"inputs": _ports(inputs), "outputs": _ports(outputs)}
    return Pid(K_P, K_I, K_D, setpoint=setpoint, u0=u0, on_at=on_at, **ports)


def structure(
    M: Matrix | list[float],
    *,
    D: Matrix | None = None,
    K: Matrix,
    load: list[float] | None = None,
    integrator: str,
    inputs: list[PlaceTable],
    outputs: list[PlaceTable],
    q0: list[float] | None = None,
    v0: list[float] | None = None,
    a0: list[float] | None = None,
    substeps: Annotated[int, Field(ge=1)] = 1,
) -> Subsystem:
    """A structure `M a + D v + K q = load + forces`, by a rule such as trapezoidal, see `SecondOrder`."""
    return SecondOrder(
        Structure(M, D=D, K=K, load=load),
        integrator,
        inputs=[DofPort(**place.model_dump()) for place in inputs],
        outputs=[DofPort(**place.model_dump()) for place in outputs],
        q0=q0,
        v0=v0,
        a0=a0,
        substeps=substeps,
    )


def _ports(given: PortKeys) -> list[Port]:
    return [Port(port) if isinstance(port, str) else Port(**port.model_dump()) for port in given]


# -- tables ----------------------------------------------------------------------------------------------------------


def table_of(key: str, name: str, factory: Callable[..., Any]) -> type[Table]:
    """The table `key = name` whose other keys are the parameters of a function or class, with the types that it states.

    >>> def tank(area: float, level: float = 1.0): ...
    >>> list(table_of("kind", "tank", tank).model_fields)
    ['kind', 'isolated', 'area', 'level']
    """
    signature = inspect.signature(factory)
    hints = _checkable_hints(factory)
    keys: dict[str, Any] = {key: (Literal[name], ...), "isolated": (bool, False)}
    for parameter in named_parameters(signature):
        default = signature.parameters[parameter].default
        default = ... if default is inspect.Parameter.empty else default
        if hasattr(Table, parameter) or parameter.startswith(("_", "model_")):  # a word of pydantic's own
            keys[f"key_{parameter}"] = (hints.get(parameter, Any), Field(default, alias=parameter))
        elif parameter != key:
            keys[parameter] = (hints.get(parameter, Any), default)
    about = (inspect.getdoc(factory) or "").partition("\n\n")[0]
    return create_model(name, __base__=Table, __doc__=about or None, **keys)


def _checkable_hints(factory: Callable[..., Any]) -> dict[str, Any]:
    """The types of parameters that a file can be checked with; what only Python knows is left unchecked."""
    found = {}
    for key, hint in hints_of(factory, include_extras=True).items():
        try:
            TypeAdapter(hint)
        except (PydanticSchemaGenerationError, PydanticUserError):
            continue
        found[key] = str if is_path(hint) else hint
    return found


def is_path(hint: Any) -> bool:
    """True for the type of a parameter that is a path, or may be one."""
    return Path in (hint, *get_args(hint))


def options_of(table: Table, key: str, factory: Callable[..., Any]) -> dict[str, Any]:
    """What a table gives to the parameters of a function or class."""
    known = named_parameters(inspect.signature(factory))
    given = {field.alias or name: name for name, field in type(table).model_fields.items()}
    values = {each: getattr(table, name) for each, name in given.items() if name in table.model_fields_set}
    return {name: value for name, value in values.items() if name in known and name != key}


def made(group: str, name: str, folder: Path, options: Mapping[str, Any]) -> Subsystem:
    """The subsystem of a registered kind or adapter; a path is taken from the folder of the file if it is there."""
    factory = registry.lookup(group, name, folder)
    hints = hints_of(factory)
    texts = {key: value for key, value in options.items() if isinstance(value, str) and is_path(hints.get(key))}
    options = {**options, **{key: folder / text for key, text in texts.items() if (folder / text).exists()}}
    found = call(name, factory, options)
    if not isinstance(found, Subsystem):
        raise SetupError(f"'{name}' made a {type(found).__name__}, not a cosolve.Subsystem")
    return found
