"""Texts of methods as engines look at them: which verbs they use, and the same code with other meanings of the verbs.

An engine refuses a text that uses a verb it does not know, and the refusal says why a run does not go through it.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from cosolve import verbs
from cosolve.basics.checks import is_number
from cosolve.method import Method
from cosolve.method.base import Script

#: The names of all verbs.
VOCABULARY = frozenset(
    name for name, verb in vars(verbs).items() if isinstance(verb, FunctionType) and verb.__module__ == verbs.__name__
)


def texts_of(script: Script) -> Iterator[FunctionType]:
    """The text of a script, the texts that it calls, and that of its corrector."""
    waiting, seen = [script.text], set()
    if script.corrector is not None and script.corrector.text is not None:
        waiting.append(script.corrector.text)
    while waiting:
        text: Any = waiting.pop()
        if text not in seen:
            seen.add(text)
            yield text
            for name in text.__code__.co_names:
                called = text.__globals__.get(name)
                if isinstance(called, FunctionType) and name not in VOCABULARY:
                    waiting.append(called)


def text_obstacle(script: Script, known: frozenset[str]) -> str | None:
    """Why an engine that knows these verbs cannot carry out a script; None when it can."""
    for text in texts_of(script):
        for verb in text.__code__.co_names:
            if verb in VOCABULARY and verb not in known:
                return f"its macro step uses the verb '{verb}'"
    made = [text.__name__ for text in texts_of(script) if text.__closure__ is not None]
    return f"its macro step ({made[0]}) is made at run time and no plain text" if made else None


def option_obstacle(method: Method, script: Script) -> str | None:
    """Which option that a text reads is no number, and so has no place in a record; None when all are."""
    for text in texts_of(script):
        for name in text.__code__.co_names:
            inside = name in VOCABULARY or name in text.__globals__ or not hasattr(method, name)
            if not inside and not _is_plain(getattr(method, name)):
                return f"its macro step reads the option '{name}', which is no number"
    return None


def _is_plain(value: object) -> bool:
    return is_number(value) or isinstance(value, (bool, np.bool_))


@dataclass(frozen=True)
class Bound:
    """A text as machine code, and the options that it reads, as one record."""

    step: Any
    options: Any
    cached: bool
    name: str
    sources: tuple[Path, ...]  # files of the texts


#: Texts with meanings, as machine code: made once, since what numba has compiled stays in memory for ever.
_made: dict[Any, Any] = {}


def bind_text(
    method: Method, script: Script, meanings: dict[str, Any], compiled: Callable[..., Any], where: Path
) -> Bound:
    """The text of a method with these meanings of the verbs, from the file `where`.

    `compiled(function, cached)` makes machine code.
    """
    read: dict[str, Any] = {}
    bound: dict[Any, Any] = {}
    known = dict(meanings)

    def bind(text: Any) -> Any:
        if text in bound:
            return bound[text]
        space: dict[str, Any] = {"__name__": text.__module__, "__builtins__": builtins, "__sources__": (where,)}
        for name in text.__code__.co_names:
            called = text.__globals__.get(name)
            if name in known:
                space[name] = known[name]
            elif isinstance(called, FunctionType):
                space[name] = bind(called)
            elif called is not None and is_number(called):
                space[name] = called
            elif _is_plain(value := getattr(method, name, None)):
                read[name] = value
        key = text, compiled, *space.items()
        if key not in _made:
            made = FunctionType(text.__code__, space, text.__name__, text.__defaults__)
            made.__qualname__, made.__module__ = f"{text.__qualname__}_natively", text.__module__
            _made[key] = compiled(made, _is_ours(text))
        bound[text] = _made[key]
        return bound[text]

    if script.corrector is not None and script.corrector.text is not None:
        known["corrected"] = bind(script.corrector.text)
    step = bind(script.text)
    whole = (bool, np.bool_, int, np.integer)
    kinds = [(name, np.int64 if isinstance(value, whole) else np.float64) for name, value in read.items()]
    options = np.zeros(1, dtype=np.dtype(kinds or [("none", np.int64)]))
    for name, value in read.items():
        options[name] = value
    texts = list(texts_of(script))
    files = tuple(Path(text.__code__.co_filename) for text in texts)
    return Bound(step, options[0], all(map(_is_ours, texts)), "_".join(text.__name__ for text in texts), files)


def _is_ours(text: Any) -> bool:
    """Texts of this package change only with it, so their machine code may be kept on disk."""
    return str(text.__module__).startswith("cosolve.")
