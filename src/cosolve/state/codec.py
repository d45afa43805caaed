"""States in files: plain values and arrays in a zip, nothing that could run code when it is read.

A tree of values is written as `state.json`; arrays and bytes lie next to it. Allowed are None, Booleans, numbers, text,
bytes, numpy arrays and scalars, lists, tuples, dicts, and objects of registered classes (`basics/registry.py`). A
digest of all of it shows whether a file was changed afterwards: a run that goes on from half a state would fail much
later, or be wrong.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np

from cosolve.basics import registry
from cosolve.basics.atomic_files import replacing
from cosolve.basics.plain_file import refuse_no_file
from cosolve.basics.wording import shown
from cosolve.errors import OutputFileError, SetupError
from cosolve.version import VERSION

#: The number rises when what states hold changes; what is promised about it: docs/result-files.md.
_FORMAT, _NUMBER = "cosolve state", 1

#: Where classes are registered whose objects may stand in a file: memories of methods and subsystems, and correctors.
#: Their names stay, whatever is moved.
_GROUPS = ("states", "correctors")


def to_bytes(tree: dict[str, Any]) -> bytes:
    """A dict of allowed values as the content of a file; each top-level key names what a refusal is about.

    >>> from_bytes(to_bytes({"state": (1, 0.5, [None, "a"], np.arange(2.0))}))
    {'state': (1, 0.5, [None, 'a'], array([0., 1.]))}
    """
    writer = _Writer()
    plain = {key: writer.plain(value, key) for key, value in tree.items()}
    head = {"format": f"{_FORMAT} {_NUMBER}", "cosolve": VERSION, "digest": _digest(plain, writer.attached)}
    text = json.dumps(head | {"tree": plain})
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED, compresslevel=1) as file:
        for name, data in {"state.json": text.encode(), **writer.attached}.items():
            file.writestr(ZipInfo(name), data, ZIP_DEFLATED)  # ZipInfo: no time stamp, same state, same bytes
    return buffer.getvalue()


def write_tree(path: Path, tree: dict[str, Any]) -> None:
    """`to_bytes` in a file, which appears as a whole or not at all, whatever ends the program or the machine."""
    data = to_bytes(tree)
    try:
        with replacing(path) as draft, draft.open("wb") as file:
            file.write(data)
    except OSError as error:
        raise OutputFileError(f"the state cannot be written to '{path}': {error.strerror or error}") from None


def read_tree(path: Path) -> dict[str, Any]:
    """What `write_tree` wrote."""
    refuse_no_file(path)
    try:
        return from_bytes(path.read_bytes(), str(path))
    except (FileNotFoundError, NotADirectoryError):
        raise SetupError(f"there is no saved state '{path}'") from None
    except OSError as error:
        raise OutputFileError(f"'{path}' cannot be read: {error.strerror or error}") from None


def from_bytes(data: bytes, path: str = "the data") -> dict[str, Any]:
    """The inverse of `to_bytes`; `path` is for messages."""
    try:
        with ZipFile(BytesIO(data)) as file:
            whole = json.loads(file.read("state.json"))
            attached = {name: file.read(name) for name in file.namelist() if name != "state.json"}
        _refuse_other_format(whole, path)
        if whole.get("digest", (digest := _digest(whole["tree"], attached))) != digest:  # older files have none
            raise SetupError(f"'{path}' is a saved state that was changed after it was written; save the run again")
        return {key: _value(part, attached) for key, part in whole["tree"].items()}
    except SetupError:
        raise
    except Exception as error:  # zipfile, zlib, json and numpy meet damaged bytes with many kinds of error
        raise SetupError(
            f"'{path}' is no saved state, or a damaged one ({type(error).__name__}: {shown(error)}); states are "
            "written by Stepper.save_file, and by simulate with save_state or state_every"
        ) from None


def _refuse_other_format(whole: Mapping[str, Any], path: str) -> None:
    """Raise when a state was written by a version that this one does not know, or no longer reads."""
    kind, _, number = str(whole["format"]).rpartition(" ")
    if kind != _FORMAT or not (number.isascii() and number.isdigit()):
        raise SetupError(f"'{path}' is a '{shown(whole['format'])}' file, not a '{_FORMAT}' file")
    if int(number) != _NUMBER:
        age = "a newer" if int(number) > _NUMBER else "an older"
        raise SetupError(
            f"'{path}' is a saved state of format {shown(number)}, written by {age} cosolve "
            f"({shown(whole.get('cosolve', 'unknown'))}); cosolve {VERSION} reads format {_NUMBER}: go on with that "
            "version, or run anew"
        )


def _digest(plain: Any, attached: Mapping[str, bytes]) -> str:
    """Of the tree and of what lies next to it, whatever the order in the file."""
    found = hashlib.sha256(json.dumps(plain, sort_keys=True).encode())
    for name in sorted(attached):
        found.update(f"\n{name} {len(attached[name])}\n".encode())
        found.update(attached[name])
    return found.hexdigest()


class _Writer:
    def __init__(self) -> None:
        self.attached: dict[str, bytes] = {}

    def plain(self, value: Any, where: str) -> Any:
        """`value` as JSON; arrays and bytes are put aside."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
            buffer = BytesIO()
            np.save(buffer, np.asarray(value), allow_pickle=False)
            return {"array" if isinstance(value, np.ndarray) else "scalar": self._attach(buffer.getvalue())}
        if isinstance(value, (bytes, bytearray)):
            return {"bytes": self._attach(bytes(value))}
        if type(value) in (list, tuple):
            return {type(value).__name__: [self.plain(item, where) for item in value]}
        if type(value) is dict:
            return {"dict": [[self.plain(k, where), self.plain(v, where)] for k, v in value.items()]}
        kind = type(value)
        name = next((name for group in _GROUPS if (name := registry.name_of(group, kind)) is not None), None)
        if name is None:
            raise SetupError(
                f"{where} cannot be written to a file: it holds a {kind.__qualname__}, and states in files are made of "
                "numbers, text, arrays, lists and dicts; let save() return those, define serialise() -> bytes and "
                "deserialise(bytes), or register the class as an entry point of cosolve.states"
            )
        return {"object": name, "state": self.plain(value.__getstate__(), where)}

    def _attach(self, data: bytes) -> str:
        name = f"{len(self.attached)}"
        self.attached[name] = data
        return name


def _value(part: Any, attached: dict[str, bytes]) -> Any:
    if not isinstance(part, dict):
        return part
    if "object" in part:
        return _instance(part["object"], _value(part["state"], attached))
    ((kind, content),) = part.items()
    if kind in ("array", "scalar"):
        array = np.load(BytesIO(attached[content]), allow_pickle=False)
        return array if kind == "array" else array[()]
    if kind == "bytes":
        return attached[content]
    if kind in ("list", "tuple"):
        items = [_value(item, attached) for item in content]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {_value(key, attached): _value(value, attached) for key, value in content}
    raise ValueError(f"unknown kind {kind!r}")


def _instance(name: str, state: Any) -> Any:
    found = ((group, entry) for group in _GROUPS if (entry := registry.entry_of(group, name)) is not None)
    registered = next(found, None)
    if registered is None:
        raise ValueError(f"class {name!r}")
    made = object.__new__(registry.load(*registered))
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
    else:
        vars(made).update(state)
    return made
