"""Which variants there are: a full grid of parameter values, or rows of values that belong together.

`Variation` makes variants of a system that is there, with other values for parameters and constant inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

import numpy as np

from cosolve.basics.wording import did_you_mean
from cosolve.errors import SetupError
from cosolve.interface import System

#: What no parameter can be called: dimensions and variables of results, and `method`, an option of `Dataset.sel`.
TAKEN = ("variant", "coupling", "method", "step", "quantity", "t", "point", "error", "note")


@dataclass(frozen=True)
class Variants:
    """The variants in order.

    `dims` and `shape` lay them out; `coords` holds the values along every dimension; for rows of values the one
    dimension is "variant" and `columns` holds the values of each parameter.
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coords: dict[str, Any]
    columns: dict[str, Any]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return int(np.prod(self.shape))

    def table(self) -> dict[str, Any]:
        """The arguments of `build`: one column per parameter, one row per variant."""
        if self.columns:
            return self.columns
        places = np.unravel_index(np.arange(len(self)), self.shape)
        return {name: self.coords[name][place] for name, place in zip(self.names, places, strict=True)}


def make_variants(parameters: Any) -> Variants:
    """A dict of lists is a full grid; a list of dicts, or a table with columns, gives variants row by row.

    >>> make_variants({"c": [1, 2], "d": [3, 4, 5]}).shape
    (2, 3)
    >>> make_variants({"c": [1, 2], "d": [3, 4, 5]}).table()["d"]
    array([3, 4, 5, 3, 4, 5])
    >>> make_variants([{"c": 1, "d": 3}, {"c": 2, "d": 4}]).table()["d"]
    array([3, 4])
    """
    if isinstance(parameters, Mapping):
        coords = {name: _row(name, values) for name, values in parameters.items()}
        names = _checked(list(coords))
        shape = tuple(len(coords[name]) for name in names)
        if not names or 0 in shape:
            what = "no parameters are given" if not names else f"'{names[shape.index(0)]}' has no values"
            raise SetupError(f"sweep: {what}, so there is nothing to run; give {{'stiffness': [1e3, 2e3]}}, say")
        return Variants(names, shape, coords, {}, names)
    if hasattr(parameters, "columns") and hasattr(parameters, "__getitem__"):  # a DataFrame, say
        columns = {name: _row(name, parameters[name]) for name in parameters.columns}
    elif isinstance(parameters, Sequence) and all(isinstance(row, Mapping) for row in parameters):
        columns = _columns(parameters)
    else:
        raise SetupError(
            "sweep: parameters are a dict of lists (full grid), a list of dicts or a table (one variant per row), "
            f"not a {type(parameters).__name__}"
        )
    names = _checked(list(columns))
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise SetupError(f"sweep: columns of different lengths, {lengths}; each row is one variant")
    count = next(iter(lengths.values()), 0)
    if not count:
        raise SetupError("sweep: the table of parameters has no rows, so there is nothing to run")
    return Variants(("variant",), (count,), {"variant": np.arange(count)}, columns, names)


def refuse_unfit_function(what: str, function: Any, returns: str, names: Sequence[str]) -> None:
    """`build` and `matrices` must take the parameters by name."""
    if not callable(function):
        raise SetupError(f"sweep: {what} must be a function that returns {returns}, not a {type(function).__name__}")
    try:
        takes = signature(function).parameters
    except (TypeError, ValueError):
        return
    if any(p.kind is Parameter.VAR_KEYWORD for p in takes.values()):
        return
    known = [name for name, p in takes.items() if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, intro="it takes", quote=False)
            raise SetupError(f"sweep: {what} takes no parameter '{name}'; {hint}")
    missing = [n for n in known if takes[n].default is Parameter.empty and n not in names]
    if missing:
        raise SetupError(f"sweep: {what} needs a value for '{missing[0]}'; add it to the parameters")


def as_list(given: Any, kind: Callable[[Any], bool]) -> list[Any] | None:
    """The elements of a list or array; None for a single value."""
    if kind(given) or isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        return None
    return list(given)


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if not rows:
        raise SetupError("sweep: the list of parameters has no rows, so there is nothing to run")
    first, keys = list(rows[0]), rows[0].keys()
    for k, row in enumerate(rows):
        if row.keys() != keys:
            odd = sorted(set(row) ^ set(first))
            raise SetupError(f"sweep: row {k} differs from row 0 in '{odd[0]}'; every row names the same parameters")
    return {name: _row(name, [row[name] for row in rows]) for name in first}


def _row(name: object, values: Any) -> Any:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise SetupError(f"sweep: the values of '{name}' are {values!r}; give a list, [{values!r}] for a single one")
    if getattr(getattr(values, "dtype", None), "kind", "") in ("i", "u", "f", "b") and np.ndim(values) == 1:
        return np.array(values)
    listed = list(values)
    if all(issubclass(kind, (int, float, np.number)) for kind in set(map(type, listed))):
        return np.asarray(listed)
    row = np.empty(len(listed), dtype=object)  # texts, tuples, objects
    for k, value in enumerate(listed):
        row[k] = value
    return row


def _checked(names: list[Any]) -> tuple[str, ...]:
    for name in names:
        if not isinstance(name, str) or not name.replace(".", "", 1).isidentifier():
            raise SetupError(f"sweep: {name!r} is no name of a parameter of build, and no address such as 'one.c'")
        if name in TAKEN:
            raise SetupError(
                f"sweep: a parameter cannot be called '{name}', a word that results of sweeps use themselves"
            )
    return tuple(names)


class Variation:
    """Called with values by address, `{"one.c": 2.0}`, it gives the system with these values."""

    def __init__(self, system: System, addresses: Sequence[str]) -> None:
        self.system = system
        self._before = {address: self._value(address) for address in addresses}

    def __call__(self, **values: Any) -> System:
        for address, value in values.items():
            name, _, key = address.partition(".")
            if address in self.system._constants:
                self.system.set(address, value)
            else:
                self.system.subsystems[name].set_parameters({key: value})
        return self.system

    def restore(self) -> None:
        """The values from before the sweep."""
        self(**self._before)

    def _value(self, address: str) -> Any:
        if address in self.system._constants:
            return self.system._constants[address]
        known = [
            *self.system._constants,
            *(
                f"{name}.{key}"
                for name, one in self.system.subsystems.items()
                for key in getattr(one, "parameters", ())
            ),
        ]
        if address not in known:
            otherwise = "give parameters={'mass': 2.0} to an Ode or Static, or sweep a build function"
            hint = did_you_mean(address, known, otherwise=otherwise)
            raise SetupError(f"sweep: '{address}' is no parameter and no constant input of the system; {hint}")
        name, _, key = address.partition(".")
        return self.system.subsystems[name].get(key)
