"""A TOML file that knows its lines, so that every complaint names the file, the line and the table.

`tomllib` gives values without places; the places are found by reading the text once more, statement by statement, and
only when there is something to complain about. Where a statement ends is seen from its brackets and quotes, so that a
matrix of many lines is read once and not once per line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from cosolve.basics.checks import as_path
from cosolve.basics.plain_file import refuse_no_file
from cosolve.basics.wording import problem, shortened, shown, suggest
from cosolve.errors import SetupError

#: The way to a table or a key: names, and numbers (from 0) inside arrays of tables.
Where = tuple[str | int, ...]

_Model = TypeVar("_Model", bound=BaseModel)


class TomlFile:
    """The parsed file as `data`, and the words for what is wrong with it."""

    def __init__(self, path: str | Path) -> None:
        self.path = as_path("load_system", path).absolute()
        self.folder = self.path.parent
        #: what is given besides the file, by the way to it, as it was given
        self.changed: dict[Where, str] = {}
        refuse_no_file(path)
        try:
            self.text = self.path.read_text(encoding="utf-8-sig")  # some editors put a mark before the first line
            self.data = tomllib.loads(self.text)
        except (FileNotFoundError, NotADirectoryError):
            raise SetupError(f"there is no system file '{path}'; check the path") from None
        except OSError as error:
            raise SetupError(f"the system file '{path}' cannot be read: {error.strerror}") from None
        except RecursionError:
            raise SetupError(f"{self.path.name} has brackets inside brackets without end; take some away") from None
        except ValueError as error:  # of tomllib; also a number of thousands of digits
            raise SetupError(self._not_toml(path, error)) from None

    def _not_toml(self, given: str | Path, error: ValueError) -> str:
        if self.path.suffix.lower() != ".toml":
            return f"'{given}' is not a system file (.toml), an SSP (.ssp) or an FMU (.fmu)"
        if isinstance(error, UnicodeDecodeError):
            return f"the system file '{given}' is not UTF-8 text; is it a TOML file?"
        return f"{self.path.name} is not valid TOML: {_lower(shown(error))}"

    def refuse(self, table: Where, what: str, key: str | None = None) -> SetupError:
        """The error for a table, or for a key in it."""
        ways = [table[:n] for n in range(len(table), 0, -1)]
        if key is not None:
            ways = [(*table, key), (*table, *key.split(".")), *ways]
            for way, given in self.changed.items():
                if way[: len(ways[0])] == ways[0] or way[: len(ways[1])] == ways[1]:
                    return SetupError(f"{self.path.name}, {_header(table)} with {given}: {shown(what, 1200)}")
        known = line_numbers(self.text)
        ways = [each for way in ways for each in (way, _unquoted(way))]  # addresses may stand there without quotes
        line = next((found for way in ways if (found := _line(known, way)) is not None), None)
        parts = [self.path.name, *([f"line {line}"] if line else []), *([_header(table)] if table else [])]
        return SetupError(f"{', '.join(parts)}: {shown(what, 1200)}")

    @contextmanager
    def at(self, table: Where, key: str | None = None) -> Iterator[None]:
        """Say where in the file it was that something inside failed."""
        try:
            yield
        except SetupError as error:
            raise self.refuse(table, str(error), key) from error.__cause__

    def validate(self, model: type[_Model], data: Mapping[str, Any], table: Where = ()) -> _Model:
        """`data` as a `model`; the first complaint is raised, unknown keys before others (they explain them)."""
        try:
            return model.model_validate(data)
        except ValidationError as failure:
            errors = failure.errors()
            errors = [error for error in errors if error["type"] == "extra_forbidden"] or errors
            others = len({error["loc"][:3] for error in errors}) - 1
            more = f" (and {others} more)" if others else ""
            raise self._complaint(errors[0], model, table, more) from None

    def _complaint(self, error: ErrorDetails, model: type[BaseModel], above: Where, more: str) -> SetupError:
        owner, inside, rest = innermost(model, error["loc"])
        table, key = (*above, *inside), str(rest[0]) if rest else None
        noun = "key" if table else "table"
        if key is None and error["type"] == "missing":
            what = "this table is missing"
        elif key is None:
            given = error["type"] == "model_type"
            what = f"this is a table of keys, not {shortened(error['input'])}" if given else error["msg"]
        elif error["type"] == "extra_forbidden":
            known = [field.alias or name for name, field in owner.model_fields.items()]
            what = f"unknown {noun} '{key}'; {suggest(key, known)}"
        elif error["type"] == "missing":
            what = f"the {noun} '{key}' is missing"
        elif error["type"] == "list_type" and tables_of(owner, key):
            name = ".".join(map(str, (*table, key)))
            what = f"there can be several of these tables, so write [[{name}]] instead of [{name}]"
            if any(isinstance(part, int) for part in table):
                what = f"{key} is a list of tables, so write {key} = [{{...}}], with brackets even around a single one"
        else:
            what = f"{key} {problem(error['msg'], error['input'])}"
        return self.refuse(table, what + more, key)


def innermost(model: type[BaseModel], loc: Where) -> tuple[type[BaseModel], Where, Where]:
    """The innermost table on the way to a value: its model, the way to it, and what is left of the way."""
    hint: Any = model
    owner, rest = model, loc
    inside: Where = ()
    way: Where = ()
    for n, part in enumerate(loc):
        if _is_model(hint):
            hint = next((f.annotation for name, f in hint.model_fields.items() if part in (name, f.alias)), None)
            way = (*way, part)
        elif (chosen := _tagged(hint, part)) is not None:  # of a union: no step of the way, only the choice
            hint = chosen
        else:
            hint = _inside(hint, part)
            way = (*way, part)
        if hint is None:
            break
        if _is_model(_only(hint)):
            hint = _only(hint)
            owner, inside, rest = hint, way, loc[n + 1 :]
    return owner, inside, rest


def tables_of(model: type[BaseModel], key: str) -> bool:
    """True for a key that stands for several tables, each with a header of its own."""
    hints = [field.annotation for name, field in model.model_fields.items() if key in (name, field.alias)]
    return any(get_origin(hint) is list and _is_model(_only(get_args(hint)[0])) for hint in hints)


def _is_model(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, BaseModel)


def _plain(hint: Any) -> Any:
    """A type without what is annotated to it."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _members(hint: Any) -> list[Any]:
    """The types of a union; a single one otherwise."""
    hint = _plain(hint)
    if get_origin(hint) in (Union, UnionType):
        return [each for member in get_args(hint) for each in _members(member) if each is not type(None)]
    return [hint]


def _only(hint: Any) -> Any:
    """The only type of a union with nothing else than None; the union otherwise."""
    members = _members(hint)
    return members[0] if len(members) == 1 else hint


def _tagged(hint: Any, part: str | int) -> Any:
    """The member of a union that pydantic names on the way to a value."""
    members = _members(hint)
    found = (each for each in members if len(members) > 1 and getattr(each, "__name__", None) == part)
    return next(found, None)


def _inside(hint: Any, part: str | int) -> Any:
    """The type of the values in a list or a dict."""
    for member in _members(hint):
        arguments = get_args(member)
        if get_origin(member) is list and isinstance(part, int):
            return arguments[0]
        if get_origin(member) is dict and isinstance(part, str):
            return arguments[1]
    return None


def line_numbers(text: str) -> dict[Where, int]:
    r"""The line of every table and key of a valid TOML text.

    >>> lines = line_numbers('[a]\nx = 1\n[[b]]\ny = [\n 1,\n 2]\n[[b]]\nz.u = {v = 1}')
    >>> lines["a", "x"], lines["b", 0, "y"], lines["b", 1], lines["b", 1, "z", "u", "v"]
    (2, 4, 7, 8)
    """
    found: dict[Where, int] = {}
    counts: dict[Where, int] = {}
    table: Where = ()
    for line, statement in _statements(text):
        parsed = tomllib.loads(statement)
        if statement.startswith("["):
            table = _table(_names(parsed), statement.startswith("[["), counts)
            found.setdefault(table, line)
        else:
            for path in _paths(parsed):
                found.setdefault((*table, *path), line)
    return found


#: what can hide a bracket or the end of a line, brackets, and ends of lines
_MARKS = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}(?!")'  # text over several lines
    r"|'''.*?'{3,5}(?!')"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[\]{}\n]",
    re.DOTALL,
)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The statements of a valid TOML text, each with the number of its first line."""
    line, first, start, depth = 1, 1, 0, 0
    for mark in _MARKS.finditer(text + "\n"):
        found = mark[0]
        depth += (found in ("[", "{")) - (found in ("]", "}"))
        line += found.count("\n")
        if found == "\n" and depth == 0:
            statement = text[start : mark.start()].strip()
            if statement and not statement.startswith("#"):
                yield first, statement
            start, first = mark.end(), line


def _names(header: Any) -> Iterator[str]:
    """`{"a": {"b": [{}]}}`, the header `[[a.b]]` on its own, gives a, b."""
    while header:
        (name, header) = next(iter(header.items()))
        yield name
        header = header[0] if isinstance(header, list) else header


def _table(names: Iterator[str], array: bool, counts: dict[Where, int]) -> Where:
    path: Where = ()
    for name in names:
        if path in counts:
            path = (*path, counts[path] - 1)
        path = (*path, name)
    if array:
        counts[path] = counts.get(path, 0) + 1
    return (*path, counts[path] - 1) if path in counts else path


def _paths(value: Any, deepest: int = 8) -> Iterator[Where]:
    """The ways to the keys in a value; no error names single numbers in a matrix, or at such depths."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inside in entries:
        if isinstance(value, dict) or isinstance(inside, dict):
            yield (name,)
            if deepest:
                yield from ((name, *path) for path in _paths(inside, deepest - 1))


def _line(known: Mapping[Where, int], way: Where) -> int | None:
    """The line of a table or key; of one without a line, such as `a` of `[a.b]`, that of the first inside."""
    if way in known:
        return known[way]
    return min((line for path, line in known.items() if path[: len(way)] == way), default=None)


def _unquoted(way: Where) -> Where:
    """The way to a key whose dots are those of tables."""
    return tuple(name for part in way for name in (part.split(".") if isinstance(part, str) else [part]))


def _header(table: Where) -> str:
    """`[subsystems.one]`, `[[laws]] number 2`, or `[[connections]] number 1, filters number 2`."""
    number = next((n for n, part in enumerate(table) if isinstance(part, int)), None)
    if number is None:
        return f"[{'.'.join(map(str, table))}]"
    names, rest = ".".join(map(str, table[:number])), table[number + 1 :]
    head = f"[[{names}]] number {int(table[number]) + 1}"
    for part in rest:
        head += f" number {part + 1}" if isinstance(part, int) else f", {part}"
    return head


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
