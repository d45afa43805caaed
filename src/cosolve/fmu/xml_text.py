"""XML that other tools write: files as trees without namespaces, and attributes as numbers, truths and words.

Every function raises a `SetupError` whose text is part of a sentence; the caller puts the name of the file before it.
Blanks around values are allowed, as in XML Schema, and an empty optional attribute counts as absent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from cosolve.basics.wording import shown
from cosolve.errors import SetupError

#: Larger descriptions would need tens of gigabytes as a tree; the largest known ones have about 100 MB.
MAX_BYTES = 1024**3

_WIDE = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")
_NATIVE = ("utf-8", "utf-16", "iso-8859-1", "us-ascii")  # encodings that the parser reads by itself
_BOM = b"\xef\xbb\xbf"
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity)|nan", re.IGNORECASE)
_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")
_PREFIX = re.compile(rb"[<\s/]([A-Za-z_][\w.-]*):[A-Za-z_]")  # of elements and attributes
_ROOT = re.compile(rb"<[A-Za-z_][\w.:-]*")
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def read_xml(path: Path) -> Element:
    """The root of an XML file; comments and namespaces are dropped, so that elements have their plain names."""
    if path.stat().st_size > MAX_BYTES:
        raise SetupError(f"is larger than {MAX_BYTES // 1024**3} GiB, which is refused")
    root = parse_xml(path.read_bytes())
    for element in root.iter():
        if isinstance(element.tag, str) and "}" in element.tag:
            element.tag = element.tag.rpartition("}")[2]
    return root


def parse_xml(data: bytes) -> Element:
    r"""The root of XML text in any encoding that it names, with or without a byte order mark.

    >>> parse_xml(b'\xef\xbb\xbf\n<?xml version="1.0" encoding="utf8"?><a b="\xc3\xa9"/>').get("b")
    'é'
    """
    if data[:2] not in _WIDE:  # some tools leave blanks before the declaration, or zeros at the end
        data = data.removeprefix(_BOM).strip(b"\0 \t\r\n\x1a")
        text = data
    else:
        text = data.replace(b"\0", b"")
    _refuse_type(text)
    try:
        named = re.match(rb"<\?xml[^>]*encoding\s*=\s*[\"']([\w.-]+)", data)
        encoding = named[1].decode("ascii", "replace").lower() if named else "utf-8"
        if encoding in _NATIVE:
            return _tree(data)
        decoded = data.decode(encoding)
        _refuse_type(decoded.encode("utf-8", "replace"))  # which some encodings hide
        return _tree(_DECLARATION.sub("", decoded, count=1).encode())
    except SetupError:
        raise
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise SetupError(f"cannot be read as XML: {shown(error)}") from None


def _tree(data: bytes) -> Element:
    """The tree of a text without a document type; prefixes that are declared nowhere get a namespace."""
    try:
        return ElementTree.fromstring(data)  # noqa: S314  there is no document type
    except ElementTree.ParseError as error:
        if "unbound prefix" not in str(error):
            raise
    if data[:2] in _WIDE:
        data = _DECLARATION.sub("", data.decode("utf-16"), count=1).encode()
    prefixes = {prefix for prefix in _PREFIX.findall(data) if prefix not in (b"xml", b"xmlns")}
    missing = sorted(prefix for prefix in prefixes if b"xmlns:" + prefix not in data)
    declared = b"".join(b' xmlns:%s="%s"' % (prefix, prefix) for prefix in missing)
    return ElementTree.fromstring(_ROOT.sub(rb"\g<0>" + declared, data, count=1))  # noqa: S314  the same


def _refuse_type(text: bytes) -> None:
    """No model needs a document type, and entities can grow without limit."""
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        raise SetupError("defines a document type of its own, which such files do not have; it is refused")


def word(element: Element, key: str, what: str, known: Collection[str] = ()) -> str | None:
    """A word, None without one; where the words are known another one is refused."""
    text = (element.get(key) or "").strip()
    if not text:
        return None
    if known and text not in known:
        raise SetupError(f"{what} has {key} '{shown(text)}'; FMI knows {', '.join(known)}")
    return text


def name_of(element: Element, what: str) -> str:
    """The attribute `name`, which must be there."""
    name = element.get("name")
    if not name:
        raise SetupError(f"{what} has no name")
    return name


def whole(element: Element, key: str, what: str, low: int = 0, high: int = 2**63 - 1) -> int | None:
    """A whole number from `low` to `high`, None without one."""
    text = element.get(key)
    return None if text is None or not text.strip() else as_whole(text, f"{key} of {what}", low, high)


def needed(element: Element, key: str, what: str, low: int = 0, high: int = 2**63 - 1) -> int:
    """A whole number that must be there."""
    found = whole(element, key, what, low, high)
    if found is None:
        raise SetupError(f"{what} has no {key}")
    return found


def as_whole(text: str, what: str, low: int = 0, high: int = 2**63 - 1) -> int:
    """Text as a whole number; Python's own reading would also take `1_000` and digits of other scripts.

    >>> as_whole(" 7 ", "the order")
    7
    """
    if _WHOLE.fullmatch(text.strip()) is None:
        raise SetupError(f"{what} is '{shown(text)}', not a whole number")
    value = int(text)
    if not low <= value <= high:
        raise SetupError(f"{what} is {value}, not a number from {low} to {high}")
    return value


def number(element: Element, key: str, what: str) -> float | None:
    """A real number, None without one; infinities and NaN are numbers too."""
    text = (element.get(key) or "").strip()
    return as_number(text, f"{key} of {what}") if text else None


def as_number(text: str, what: str) -> float:
    """Text as a real number.

    >>> as_number(" 1e-3 ", "the step"), as_number("INF", "the end")
    (0.001, inf)
    """
    if _NUMBER.fullmatch(text.strip()) is None:
        raise SetupError(f"{what} is '{shown(text)}', not a number")
    return float(text)


def finite(element: Element, key: str, what: str, default: float) -> float:
    """A finite number; `default` without one."""
    value = number(element, key, what)
    if value is None:
        return default
    if not math.isfinite(value):
        raise SetupError(f"{key} of {what} is {value}, not a finite number")
    return value


def truth(text: str, what: str) -> bool:
    """A Boolean; some tools write it with a capital letter.

    >>> truth(" True", "x"), truth("0", "x")
    (True, False)
    """
    value = _TRUTHS.get(text.strip().lower())
    if value is None:
        raise SetupError(f"{what} is '{shown(text)}', neither true nor false")
    return value
