"""The JSON schema of system files, for editors: made from what reads them, so that there is no second list of keys.

Tables come from `schema.py`; names and options of methods, correctors, startups and step controls from the classes that
they stand for (`named.py`).
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, get_type_hints

from pydantic import PydanticSchemaGenerationError, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from cosolve.corrector import Corrector
from cosolve.io.named import STARTUPS
from cosolve.io.schema import KINDS, FactoryTable, FmuTable, SystemTable, Table
from cosolve.method import ConstraintTreatment
from cosolve.method.named import CORRECTORS, METHODS, TREATMENTS
from cosolve.stepsize import Adaptive

#: What is named in files, and the classes that there are of it.
_NAMED: dict[str, Mapping[str, type]] = {
    "method": METHODS,
    "startup": STARTUPS,
    "corrector": CORRECTORS,
    "treatment": TREATMENTS,
}


def editor_schema() -> dict[str, Any]:
    """The schema, in the JSON Schema draft 2020-12.

    >>> found = editor_schema()
    >>> sorted(found["properties"])[:3], found["required"]
    (['changes', 'connections', 'constants'], ['subsystems', 'simulation'])
    """
    schema = SystemTable.model_json_schema()
    tables = schema["$defs"]
    forms: list[type[Table]] = [FactoryTable, FmuTable, *KINDS.values()]
    for form in forms:
        made = form.model_json_schema()
        tables |= made.pop("$defs", {})
        tables[form.__name__] = made
    subsystem = {"anyOf": [_named(form.__name__) for form in forms]}
    for table in (schema, *tables.values()):
        keys = table.get("properties", {})
        if "subsystems" in keys:
            keys["subsystems"]["additionalProperties"] = subsystem
        if "method" in keys:
            keys["method"] = _named("method")
            keys["startup"] = _named("startup")
            keys["step"] = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _options(Adaptive)]}
    for what, classes in _NAMED.items():
        tables[what] = {"anyOf": _forms(classes, short=what == "method")}
    _without_titles(schema)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A system file of cosolve",
        **schema,
    }


def _named(what: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{what}"}


def _forms(classes: Mapping[str, type], *, short: bool = False) -> list[Any]:
    """A name, or a table with a name and the options of its class; `short` also allows "implicit:2" and "auto"."""
    spellings = sorted({*classes, *(cls.__name__ for cls in classes.values())})
    texts: list[Any] = [{"enum": [*spellings, *(["auto"] if short else [])]}]
    if short:
        texts.append({"type": "string", "pattern": f"^({'|'.join(spellings)}):[0-9]+$"})
    return texts + [_options(cls, name) for name, cls in classes.items()]


def _options(cls: type, name: str | None = None) -> dict[str, Any]:
    """A table of what a class takes, with its name where there is a choice."""
    hints = get_type_hints(cls if dataclasses.is_dataclass(cls) else cls.__init__)  # type: ignore[misc]
    parameters = inspect.signature(cls).parameters
    keys = {option: _value(hints.get(option, Any)) for option in parameters}
    needed = [option for option, parameter in parameters.items() if parameter.default is parameter.empty]
    if name is not None:
        keys = {"name": {"enum": [name, cls.__name__]}, **keys}
        needed = ["name", *needed]
    table: dict[str, Any] = {"type": "object", "properties": keys, "additionalProperties": False}
    said = (inspect.getdoc(cls) or "").partition("\n\n")[0]
    return table | ({"required": needed} if needed else {}) | ({"description": said} if said else {})


def _value(hint: Any) -> dict[str, Any]:
    """What an option may be; anything where its type has no form in JSON."""
    if hint is Corrector:
        return _named("corrector")
    if hint == ConstraintTreatment | None:
        return _named("treatment")
    if getattr(hint, "__name__", "") == "Callable":
        return {"type": "string", "description": "module:function"}
    try:
        made = TypeAdapter(hint).json_schema()
    except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, PydanticUserError):
        return {}
    return {} if "$defs" in made else made


def _without_titles(node: Any) -> None:
    """Take away the titles that repeat names."""
    if isinstance(node, dict):
        if isinstance(node.get("title"), str):
            del node["title"]
        for each in node.values():
            _without_titles(each)
    elif isinstance(node, list):
        for each in node:
            _without_titles(each)
