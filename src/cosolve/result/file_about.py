"""What a result file says in JSON: where quantities are found (`about`), and how the run ended (`outcome`).

A file may come from elsewhere: what makes no sense is refused with a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from math import isfinite
from typing import Any

import numpy as np

from cosolve.errors import OutputFileError
from cosolve.result.notes import Note
from cosolve.result.result import Channel, Stats
from cosolve.result.stored import StoredColumns

_MOST_PARTS = 1 << 27  # entries of all channels together


def about_text(channels: Mapping[str, Channel], subsystems: tuple[str, ...], meta: Mapping[str, Any]) -> dict[str, Any]:
    """Channels, subsystems and meta as plain data."""
    entries = {name: _channel_entry(channel) for name, channel in channels.items()}
    return json.loads(  # type: ignore[no-any-return]
        json.dumps({"channels": entries, "subsystems": list(subsystems), "meta": dict(meta)}, default=_plain)
    )


def ending_text(stats: Stats, error: str | None) -> bytes:
    """How a run ended."""
    return json.dumps({"stats": asdict(stats), "error": error}, default=_plain).encode()


def ending_of(columns: StoredColumns) -> tuple[Stats, str | None] | None:
    """Totals and error; None where the run did not end, or was killed while it wrote that."""
    try:
        read = json.loads(columns.ending)
    except ValueError:
        return None
    except RecursionError:
        raise _senseless(columns, "its outcome is nested too deep") from None
    if not isinstance(read, dict) or not isinstance(read.get("stats"), dict):
        raise _senseless(columns, "its outcome has no stats")
    error = read.get("error")
    if not isinstance(error, str | None):
        raise _senseless(columns, "its error is no text")
    known = {field.name: _KINDS[str(field.type)] for field in fields(Stats)}  # a later version may count more
    held = {name: value for name, value in read["stats"].items() if name in known}
    for name, value in held.items():
        if not known[name](value):
            raise _senseless(columns, f"{value!r} is no value of '{name}' in its stats")
    stats = Stats(**held)
    names = set(columns.about["subsystems"])
    if not names >= {*stats.calls, *stats.seconds, *stats.jacobians, *stats.retried}:
        raise _senseless(columns, "its stats name subsystems that it does not have")
    stats.seconds = {name: stats.seconds.get(name, 0.0) for name in stats.calls}
    return stats, error


def channels_of(columns: StoredColumns) -> dict[str, Channel]:
    """Where the quantities are found."""
    about, found, left = columns.about, {}, _MOST_PARTS
    if not isinstance(about.get("channels"), dict):
        raise _senseless(columns, "it does not say what its columns are")
    for name, entry in about["channels"].items():
        try:
            found[name] = _channel(entry, columns, left)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise _senseless(columns, f"its quantity {name!r} is nowhere in it") from None
        left -= len(found[name].part)
    return found


def meta_of(columns: StoredColumns) -> dict[str, Any]:
    """What the run says about itself; a drawing of its system has the parts that a drawing needs."""
    meta = columns.about.get("meta")
    if not isinstance(meta, dict):
        raise _senseless(columns, "it does not say what run it holds")
    for name, kinds in _META.items():
        if not isinstance(meta.get(name), (*kinds, type(None))):
            raise _senseless(columns, f"it has no {name} that makes sense")
    graph = meta.get("graph")
    if graph:
        try:
            parts = {part["name"]: [part["kind"], *part["inputs"], *part["outputs"]] for part in graph["subsystems"]}
            ports = [port for edge in graph["edges"] for port in (*edge["sources"], *edge["targets"])]
            texts = [edge[key] for edge in graph["edges"] for key in ("kind", "label")]
            texts += [text for name, held in parts.items() for text in (name, *held)]
            factors = [float(factor) for edge in graph["edges"] for factor in edge["factors"]]
            fits = all(len(edge["factors"]) == len(edge["targets"]) for edge in graph["edges"])
            fits = fits and all(edge["sources"] or edge["kind"] != "connection" for edge in graph["edges"])
            known = all("." in port and any(port.startswith(f"{name}.") for name in parts) for port in ports)
        except (AttributeError, KeyError, TypeError, ValueError):
            fits = False
        if not fits or not known or not all(isinstance(text, str) for text in texts) or not all(map(isfinite, factors)):
            raise _senseless(columns, "the drawing of its system makes no sense")
    return meta


_META: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("cosolve", "method", "step", "system", "startup", "choice"), (str,)),
    **dict.fromkeys(("t_start", "t_end"), (int, float)),
    "graph": (dict,),
}


def subsystems_of(columns: StoredColumns) -> tuple[str, ...]:
    """Whose calls are counted."""
    names = columns.about.get("subsystems")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _senseless(columns, "it does not name its subsystems")
    if len(set(names)) != len(names) or len(names) != columns.width("calls"):
        raise _senseless(columns, f"it names {len(names)} subsystems, but counts calls of {columns.width('calls')}")
    return tuple(names)


def _channel_entry(channel: Channel) -> dict[str, Any]:
    """A channel as JSON; a run of consecutive columns (a field) is two numbers."""
    entry = {**asdict(channel), "part": list(channel.part)}
    if len(channel.part) > 1 and channel.part == tuple(range(channel.part[0], channel.part[-1] + 1)):
        entry["part"] = {"from": channel.part[0], "to": channel.part[-1]}
    return entry


def _channel(entry: Any, columns: StoredColumns, most: int) -> Channel:
    part, column = entry["part"], entry["column"]
    width = max(1, columns.width(column)) if column in ("y", "z") else 0  # no coupling variables are one zero
    places = range(_index(part["from"], width), _index(part["to"], width) + 1) if isinstance(part, dict) else part
    if len(places) > most or not all(isinstance(entry[key], list) for key in ("factor", "offset")):
        raise ValueError
    factor, offset = (tuple(float(number) for number in entry[key]) for key in ("factor", "offset"))
    scaled = len(factor) == len(offset) and len(factor) in (0, len(places))
    if not scaled or type(entry["scalar"]) is not bool or not isinstance(entry["unit"], str):
        raise ValueError
    if entry["scalar"] and len(places) != 1:
        raise ValueError
    return Channel(column, tuple(_index(k, width) for k in places), entry["scalar"], factor, offset, entry["unit"])


def _index(k: Any, width: int) -> int:
    if type(k) is not int or not 0 <= k < width:
        raise ValueError
    return k


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _number(value: Any) -> bool:
    return type(value) in (int, float) and (type(value) is float or abs(value) < 1 << 63)


def _by_name(one: Any) -> Any:
    return lambda value: isinstance(value, dict) and all(map(one, value.values()))


def _change(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and _number(value[0]) and isinstance(value[1], str)


def _note(value: Any) -> bool:
    try:
        note = Note(**value)
        texts = note.kind, note.text, note.subsystem, note.remedy
        known = note.level in ("info", "warning", "error") and all(isinstance(text, str) for text in texts)
    except TypeError:
        return False
    return known and (note.time is None or (_number(note.time) and isfinite(note.time)))


_KINDS: dict[str, Any] = {
    "int": _whole,
    "float": _number,
    "str": lambda value: isinstance(value, str),
    "dict[str, int]": _by_name(_whole),
    "dict[str, float]": _by_name(_number),
    "list[list[Any]]": lambda value: isinstance(value, list) and all(map(_change, value)),
    "list[Note]": lambda value: isinstance(value, list) and all(map(_note, value)),
}


def _senseless(columns: StoredColumns, why: str) -> OutputFileError:
    return OutputFileError(f"'{columns.path}' is damaged, or no result of cosolve: {why}")


def _plain(value: Any) -> Any:
    """NumPy numbers and arrays as JSON; anything else by its text."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else str(value)
