"""Methods, start-ups and step controls from the text by which they show themselves, for runs that are resumed.

Such a text is a Python expression (`Implicit(degree=1, corrector=Newton(refresh='step'))`). It is read, not run:
registered classes with plain values inside, and nothing else. What holds a function, or a class that is not registered,
cannot be read back; it has to be given again when the run is resumed.
"""

from __future__ import annotations

import ast
from math import inf, nan
from typing import Any

from cosolve.basics import registry
from cosolve.stepsize import Adaptive

_GROUPS = ("methods", "correctors", "treatments", "startups", "observers")
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


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        options = {keyword.arg: _value(keyword.value) for keyword in node.keywords if keyword.arg is not None}
        return _class(node.func.id)(*map(_value, node.args), **options)
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


def _class(name: str) -> Any:
    if name == Adaptive.__name__:
        return Adaptive
    found = ((group, entry) for group in _GROUPS if (entry := registry.entry_of(group, name)) is not None)
    return registry.load(*next(found))
