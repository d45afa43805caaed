"""The words of messages that many places need: lists of names, near misses, failed calls, numbers of things."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cosolve.errors import CosolveError


def listed(names: Iterable[object], most: int = 8, quote: bool = True) -> str:
    """Names for a message, not too many of them.

    >>> listed(["a", "b", "c"], most=2), listed(["a", "b"], quote=False), listed([])
    ("'a', 'b' and 1 more", 'a, b', 'none')
    """
    words = [f"'{name}'" if quote else str(name) for name in names]
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more if words else "none"


def did_you_mean(
    word: object,
    known: Iterable[str],
    *,
    otherwise: str | None = None,
    intro: str = "there are",
    near: int = 1,
    cutoff: float = 0.6,
    most: int = 8,
    quote: bool = True,
) -> str:
    """The known names nearest to a misspelt one; where none is near, `otherwise`, or those that there are.

    Dots written as underscores are found too. `near` is how many names to offer, `cutoff` how alike they must be.

    >>> did_you_mean("positon", ["position", "speed"])
    "did you mean 'position'?"
    >>> did_you_mean("xyz", ["position", "speed"], intro="its outputs are")
    "its outputs are 'position', 'speed'"
    """
    from difflib import get_close_matches  # only needed for bad news

    names, text = list(known), str(word)
    flat = [name for name in names if name.replace(".", "_") == text]
    close = flat or get_close_matches(text, names, n=near, cutoff=cutoff)
    if close:
        return f"did you mean {' or '.join(map(repr, close))}?"
    if otherwise is not None:
        return otherwise
    return f"{intro} {listed(names, most, quote)}" if names else "there are none"


def suggest(word: str, known: Iterable[str]) -> str:
    """The nearest known word, or all of them.

    >>> suggest("tend", ["t_end", "t_start"])
    "did you mean 't_end'?"
    """
    names = list(known)
    return did_you_mean(word, names, intro="known are", cutoff=0.5, most=len(names), quote=False)


def problem(complaint: str, given: object) -> str:
    """What a validator says of a value, as the end of a sentence that begins with the name of the value.

    >>> problem("Input should be a valid integer", 1.5)
    'should be a valid integer, not 1.5'
    """
    return f"{complaint[:1].lower()}{complaint[1:]}".removeprefix("input ") + f", not {shortened(given)}"


def failed_while(name: str, doing: str, t: float, error: BaseException) -> str:
    """The sentence about a call to a subsystem that raised `error`.

    The sentences of cosolve's own errors are kept; other errors are named by their type too.

    >>> failed_while("tank", "advancing", 0.5, ZeroDivisionError("division by zero"))
    "'tank' failed while advancing at t = 0.5: division by zero (ZeroDivisionError)"
    """
    what = str(error) if isinstance(error, CosolveError) else raised(error)
    return f"'{name}' failed while {doing} at t = {t:.9g}: {what}"


def raised(error: BaseException) -> str:
    r"""What a foreign exception says, on one line, and its type.

    >>> raised(ZeroDivisionError("division by zero")), raised(ValueError("first line\n  second line"))
    ('division by zero (ZeroDivisionError)', 'first line second line (ValueError)')
    """
    said = text_of(error)
    return f"{said} ({type(error).__name__})" if said else f"{type(error).__name__} without a message"


def text_of(error: BaseException) -> str:
    r"""The text of a foreign exception, on one line.

    >>> text_of(ValueError("first line\n  second line"))
    'first line second line'
    """
    try:
        return " ".join(str(error).split())
    except Exception as second:  # whatever its __str__ does
        return f"its text cannot be shown, because that raises {type(second).__name__}"


def article(noun: str) -> str:
    """A noun with its article.

    >>> article("input"), article("parameter")
    ('an input', 'a parameter')
    """
    return f"{'an' if noun[:1] in tuple('aeiou') else 'a'} {noun}"


def counted(n: int, noun: str) -> str:
    """So many things.

    >>> counted(1, "element"), counted(2, "element")
    ('1 element', '2 elements')
    """
    return f"{n} {noun}{'' if n == 1 else 's'}"


def shortened(value: Any, longest: int = 60) -> str:
    """A value as Python writes it, not too long for a sentence.

    >>> shortened("x" * 100, 12)
    "'xxxxxxxx..."
    """
    try:
        text = " ".join(repr(value).split())  # arrays come in many lines
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def shown(text: object, longest: int = 120) -> str:
    r"""Text from outside as it may stand in a sentence: on one line, and not too long.

    >>> shown("a\nb"), shown("x" * 1000, 10)
    ('a\\nb', 'xxxxx...xx')
    """
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))
    return plain if len(plain) <= longest else f"{plain[: longest - 5]}...{plain[-2:]}"
