"""What a user chooses of an FMU, checked against its description: ports, parameters, start values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import doubles
from cosolve.basics.checks import is_whole, refuse_one_text
from cosolve.basics.error_location import complaints_about
from cosolve.basics.wording import article, did_you_mean, shown
from cosolve.errors import SetupError
from cosolve.fmu.description import CO_SIMULATION, MODEL_EXCHANGE, Description, Variable
from cosolve.fmu.values import is_numeric
from cosolve.subsystem.port import Port
from cosolve.subsystem.units import parse_unit

#: Kinds of FMUs as people write them.
_KINDS = {
    **dict.fromkeys(("co-simulation", "cosimulation", "cs"), CO_SIMULATION),
    **dict.fromkeys(("model-exchange", "modelexchange", "me"), MODEL_EXCHANGE),
}
_PARAMETERS = ("parameter", "structuralParameter")


def found_variable(description: Description, name: str, file: str | Path) -> Variable:
    """The variable of that name, or a sentence with the nearest names."""
    if name in description.variables:
        return description.variables[name]
    hint = did_you_mean(name, description.variables, near=3, otherwise="'cosolve inspect FILE' lists its variables")
    raise SetupError(f"'{file}' has no variable {name!r}; {hint}")


def chosen_kind(description: Description, words: str | None, file: str | Path) -> str:
    """What an FMU is run as: the kind that is asked for, else co-simulation where it offers that."""
    if words is None:
        kind = CO_SIMULATION if CO_SIMULATION in description.kinds else MODEL_EXCHANGE
    elif (found := _KINDS.get(str(words).lower().replace(" ", "-").replace("_", "-"))) is not None:
        kind = found
    else:
        hint = did_you_mean(words, ["co-simulation", "model-exchange"])
        raise SetupError(f"there is no kind '{shown(words)}' of FMU; {hint}")
    refuse_other_kind(description, kind, file)
    return kind


def refuse_other_kind(description: Description, kind: str, file: str | Path) -> None:
    """Refuse an FMU that is not made for this use."""
    if kind not in description.kinds:
        raise SetupError(f"'{file}' is not made for {kind}, only for {', '.join(description.kinds) or 'nothing'}")


def clocks_that_stand(description: Description) -> str:
    """Why an FMU whose clocks have to be ticked from outside cannot be run; empty where it has none."""
    clocks = [v.name for v in description.of("input") if v.type == "Clock"]
    if not clocks:
        return ""
    more = f" (and {len(clocks) - 1} more)" if len(clocks) > 1 else ""
    return (
        f"its clock '{clocks[0]}'{more} would never tick, and what it drives would stand still: clocks of FMI 3.0 are "
        "not supported; export it without clocks"
    )


def refuse_clocks(description: Description, file: str | Path) -> None:
    """Refuse an FMU whose clocks are not activated."""
    why = clocks_that_stand(description)
    if why:
        raise SetupError(f"'{file}': {why}")


def given_values(
    description: Description, parameters: Mapping[str, Any] | None, start: Mapping[str, Any] | None, file: str | Path
) -> dict[str, Any]:
    """What is set before the run, by name."""
    for what, given in (("parameters", parameters), ("start", start)):
        _refuse_other_than_dict(what, given)
    for name in parameters or {}:
        variable = found_variable(description, name, file)
        if variable.causality not in _PARAMETERS:
            raise SetupError(
                f"'{name}' of '{file}' is {article(variable.causality)}, not a parameter; "
                "set its start value with start="
            )
        if variable.variability == "constant":
            raise SetupError(f"'{name}' of '{file}' is a constant and cannot be set")
    for name in start or {}:
        variable = found_variable(description, name, file)
        if variable.variability == "constant" or not (
            variable.causality == "input" or variable.initial in ("exact", "approx") or variable.start is not None
        ):
            raise SetupError(f"'{name}' of '{file}' has no start value that can be set; the FMU computes it")
    given = {**(parameters or {}), **(start or {})}
    for name, value in given.items():
        if is_numeric(variable := description.variables[name], description.fmi):
            with complaints_about(f"'{file}'"):
                numbers(description, variable, value)
    return given


def numbers(description: Description, variable: Variable, value: Any) -> Any:
    """A given value as the numbers of a variable; the name of an item does for an enumeration."""
    if isinstance(value, str):
        items = description.enumerations.get(variable.name, {})
        found = [number for number, item in items.items() if item == value]
        if not found:
            known = f"; its values are {', '.join(items.values())}" if items else ""
            raise SetupError(f"'{variable.name}' takes numbers, not {value!r}{known}")
        value = found[0]
    flat = doubles(value, variable.length)
    if not np.isfinite(flat).all():
        many = "one finite number" if variable.length == 1 else f"{variable.length} finite numbers"
        raise SetupError(f"'{variable.name}' takes {many}, not {value!r}")
    if not variable.is_float and not np.array_equal(flat, np.rint(flat)):
        raise SetupError(f"'{variable.name}' is a {variable.type} and takes whole numbers, not {value!r}")
    return flat


def refuse_fixed(description: Description, names: Iterable[str], file: str | Path) -> None:
    """While an FMU runs, only tunable parameters can be set."""
    for name in names:
        variability = description.variables[name].variability
        if variability != "tunable":
            raise SetupError(
                f"'{name}' of '{file}' is {variability}: it cannot be changed while the FMU runs, only before "
                "(parameters=...)"
            )


def structural_sizes(
    description: Description, parameters: Mapping[str, Any] | None, file: str | Path
) -> dict[str, int]:
    """Given values of structural parameters, which decide the sizes of arrays."""
    _refuse_other_than_dict("parameters", parameters)
    sizes = {}
    for name, value in (parameters or {}).items():
        variable = description.variables.get(name)
        if variable is not None and variable.causality == "structuralParameter":
            if not is_whole(value, 1):
                raise SetupError(
                    f"'{name}' of '{file}' is the size of an array: a whole number of at least 1, not {value!r}"
                )
            sizes[name] = int(value)
    return sizes


def chosen_ports(
    description: Description, names: Sequence[str] | None, causality: str, file: str | Path
) -> tuple[list[Variable], list[Port]]:
    """The variables behind the ports, and the ports; all with that causality unless names are given."""
    if names is None:
        chosen = [v for v in description.of(causality) if is_numeric(v, description.fmi)]
    else:
        refuse_one_text(f"FMU: {causality}s", names)
        chosen = [found_variable(description, name, file) for name in names]
        for variable in chosen:
            if causality == "input" and variable.causality != "input":
                raise SetupError(f"'{variable.name}' of '{file}' is {article(variable.causality)}, not an input")
            if not is_numeric(variable, description.fmi):
                raise SetupError(
                    f"'{variable.name}' of '{file}' is a {variable.type} and cannot be a port; read it with fmu.get"
                )
    defined = {name: unit for name, unit in description.units.items() if parse_unit(name) is None}
    ports = [Port(v.name, v.length if v.shape else None, v.unit, v.nominal, defined.get(v.unit)) for v in chosen]
    return chosen, ports


def feedthrough_pattern(
    description: Description, inputs: list[Variable], outputs: list[Variable]
) -> npt.NDArray[np.bool_] | None:
    """Which outputs react at once to which inputs, as ModelStructure says; None where it does not say."""
    said = {unknown.name: unknown.dependencies for unknown in (*description.outputs, *description.derivatives)}
    states = {v.name for v in description.states}
    rows = []
    for output in outputs:
        depends: tuple[str, ...] | None = () if output.name in states else said.get(output.name)
        if depends is None:
            return None
        row = [name in depends for name, length in ((v.name, v.length) for v in inputs) for _ in range(length)]
        rows += [row] * output.length
    return np.array(rows, dtype=bool).reshape(len(rows), sum(v.length for v in inputs))


def initial_patterns(
    description: Description, inputs: list[Variable], outputs: list[Variable], running: npt.NDArray[np.bool_] | None
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """During initialisation: which outputs may react to which inputs, which do for sure, and which inputs matter.

    InitialUnknowns says so. Outputs that are not listed react as they do later, but for those with an exact start.
    """
    said = {unknown.name: unknown.dependencies for unknown in description.initial_unknowns}
    width, may, known, begin = sum(v.length for v in inputs), [], [], 0
    for output in outputs:
        depends: tuple[str, ...] | None = said.get(output.name, ())
        if output.name not in said and output.initial != "exact":
            row = np.ones(width, dtype=bool) if running is None else running[begin]
            sure = np.zeros(width, dtype=bool) if running is None else running[begin]
        elif depends is None:
            row, sure = np.ones(width, dtype=bool), np.zeros(width, dtype=bool)
        else:
            row = sure = np.array([v.name in depends for v in inputs for _ in range(v.length)], dtype=bool)
        may += [row] * output.length
        known += [sure] * output.length
        begin += output.length
    named = {name for dependencies in said.values() for name in dependencies or ()}
    matters = np.array([v.name in named for v in inputs for _ in range(v.length)], dtype=bool)
    shape = begin, width
    return np.array(may, dtype=bool).reshape(shape), np.array(known, dtype=bool).reshape(shape), matters


def remedy(capability: str) -> str:
    """What the owner of an FMU can do about a capability that it lacks."""
    if capability == "rollback":
        return (
            "have the FMU exported with canGetAndSetFMUState (FMI 2.0 or 3.0; an option of the tool that made it, or "
            "ask its vendor)"
        )
    if capability == "serialised state":
        return "have the FMU exported with canSerializeFMUState, or run without saved states"
    return "an FMU cannot be given it from outside"


def _refuse_other_than_dict(what: str, given: object) -> None:
    if given is not None and not isinstance(given, Mapping):
        raise SetupError(f"FMU: {what} is a dict of names and values, not {given!r}")
