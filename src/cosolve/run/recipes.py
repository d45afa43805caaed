"""Methods, start-ups and step controls from the text by which they show themselves, for runs that are resumed.

Such a text is a Python expression (`Implicit(degree=1, corrector=Newton(refresh='step'))`). It is read, not run: known
classes with plain values inside, and nothing else. What holds a function or a class of somebody's own cannot be read
back; whoever resumes such a run gives it once more.
"""

from __future__ import annotations

import ast
from math import inf, nan
from typing import Any

from cosolve.method.named import CORRECTORS, METHODS, TREATMENTS
from cosolve.run.known_past import KnownHistory, KnownRates
from cosolve.run.startup import GradedStart, LeaderFollowerStart, RisingDegree
from cosolve.stepsize import Adaptive

_KNOWN: dict[str, type] = {
    c.__name__: c
    for group in (METHODS, CORRECTORS, TREATMENTS)
    for c in (*group.values(), GradedStart, RisingDegree, KnownHistory, KnownRates, LeaderFollowerStart, Adaptive)
}
_NUMBERS = {"inf": inf, "nan": nan}


def from_text(text: str) -> Any:
    """The object that shows itself by this text; a `ValueError` where that cannot be known.

    >>> from_text("Implicit(degree=2, corrector=IqnIls(reuse=3))").corrector
    IqnIls(reuse=3, initial=0.1, filter_tol=1e-10)
    >>> from_text("Adaptive(rtol=1e-05, max_step=inf)").rtol, from_text("0.1"), from_text("None")
    (1e-05, 0.1, None)
    >>> from_text("KnownHistory(outputs=<function <lambda> at 0x7f>)")
    Traceback (most recent call last):
    ...
    ValueError: it cannot be read
    """
    try:
        return _value(ast.parse(text, mode="eval").body)
    except Exception:  # of a text that could be anything
        raise ValueError("it cannot be read") from None


def can_be_read(given: object) -> bool:
    """True when the text of an object gives it back."""
    text = repr(given)
    try:
        return repr(from_text(text)) == text
    except ValueError:
        return False


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        options = {keyword.arg: _value(keyword.value) for keyword in node.keywords if keyword.arg is not None}
        return _KNOWN[node.func.id](*map(_value, node.args), **options)
    if isinstance(node, ast.Name):
        return _NUMBERS[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, (ast.List, ast.Tuple)):
        items = [_value(item) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    if isinstance(node, ast.Dict):
        return {_value(k): _value(v) for k, v in zip(node.keys, node.values, strict=True) if k is not None}
    return ast.literal_eval(node)
