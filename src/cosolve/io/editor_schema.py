"""The JSON schema of system files, for editors: made from what reads them, so that there is no second list of keys.

Tables come from `schema.py`; names and options of methods, correctors, startups and step controls from the classes that
they stand for (`named.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pydantic import PydanticSchemaGenerationError, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from cosolve.basics.registry import usable
from cosolve.corrector import Corrector
from cosolve.io.kinds import table_of
from cosolve.io.schema import FactoryTable, FmuTable, InnerTable, SystemTable, Table
from cosolve.method import ConstraintTreatment
from cosolve.method.named import hints_of, is_function, named_parameters
from cosolve.stepsize import Adaptive

#: What is named in files, and the group of the registry that it belongs to.
_NAMED = {"method": "methods", "startup": "startups", "corrector": "correctors", "treatment": "treatments"}
#: Keys of subsystems whose values are names, and the groups of these.
_REGISTERED = {"kind": "subsystems", "adapter": "adapters"}
#: A class or function of the user's own.
_ADDRESS = {"type": "string", "pattern": r"^[\w.]+:[A-Za-z_][\w.]*(:[0-9]+)?$"}


def editor_schema() -> dict[str, Any]:
    """The schema, in the JSON Schema draft 2020-12.

    >>> found = editor_schema()
    >>> sorted(found["properties"])[:3], found["required"]
    (['changes', 'connections', 'constants'], ['subsystems', 'simulation'])
    """
    schema = SystemTable.model_json_schema()
    tables = schema["$defs"]
    forms: dict[str, type[Table]] = {form.__name__: form for form in (FactoryTable, FmuTable, InnerTable)}
    for key, group in _REGISTERED.items():
        forms |= {f"{key}-{name}": table_of(key, name, factory) for name, factory in usable(group).items()}
    for name, form in forms.items():
        made = form.model_json_schema()
        tables |= made.pop("$defs", {})
        tables[name] = made
    own = {"type": "object", "anyOf": [{"properties": {key: _ADDRESS}, "required": [key]} for key in _REGISTERED]}
    subsystem = {"anyOf": [*map(_named, forms), own]}
    for table in (schema, *tables.values()):
        keys = table.get("properties", {})
        if "subsystems" in keys:
            keys["subsystems"]["additionalProperties"] = subsystem
        if "method" in keys:
            keys["method"] = _named("method")
            keys["startup"] = _named("startup")
            keys["step"] = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _options(Adaptive)]}
    for what, group in _NAMED.items():
        tables[what] = {"anyOf": _forms(usable(group), short=what == "method")}
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
        texts.append({"type": "string", "pattern": f"^({'|'.join(spellings)})(:[0-9a-z]+|[(].*[)])$"})
    own = {"type": "object", "properties": {"name": _ADDRESS}, "required": ["name"]}
    return [*texts, _ADDRESS, *(_options(cls, name) for name, cls in classes.items()), own]


def _options(cls: type, name: str | None = None) -> dict[str, Any]:
    """A table of what a class takes, with its name where there is a choice."""
    hints, parameters = hints_of(cls), inspect.signature(cls).parameters
    known = named_parameters(inspect.signature(cls))
    keys = {option: _value(hints.get(option, Any)) for option in known}
    needed = [option for option in known if parameters[option].default is inspect.Parameter.empty]
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
    if is_function(hint):
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
