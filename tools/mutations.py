"""Small mistakes that could be made in a source: each is one piece of text to be put in the place of another.

They are the slips that leave a program running and change what it does: another comparison or sign, a factor of two,
an index beside the right one, the first for the last, a term or a factor that is missing, a part of a condition, of a
tuple or of a call that is missing, a copy that is not made, an argument in the place of another of its type, two
arguments exchanged, one turn of a loop less, a line that is missing. Left alone is what decides no result: docstrings
and annotations, messages and lines that only print, checks that only raise (bad input has tests of its own),
representations, numbers that a module or a class names by themselves (limits and tolerances), and numbers so small or
large that they are thresholds of rounding.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

_ORDER = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<")}
_EQUAL = {"==": ("!=",), "!=": ("==",), "is": ("is not",), "is not": ("is",), "in": ("not in",), "not in": ("in",)}
_COMPARISONS = _ORDER | _EQUAL
_ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "**": "*", "//": "/", "%": "*"}
_SYMBOLS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.And: "and", ast.Or: "or",
}  # fmt: skip
_EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
_SEPARATES = re.compile(rb"\s*(,|and|or)\s*")
_CONFUSED = _EXTREMES | {"all": "any", "any": "all", "argmin": "argmax", "argmax": "argmin"}
_NEGATIVE = ("float", "Vector", "Matrix", "Triple")  # results whose sign can be turned

_NO_FORMULA = (
    "repr",
    "refuse",
    "complain",
    "check",
    "whole",
    "positive",
    "choice",
)  # how names of such functions begin

_PRINTS = ("print", "echo", "secho")
_ANY_ORDER = ("isinstance", "min", "max", "minimum", "maximum", "range", "zip", "gcd", "isclose", "allclose", "hypot")

#: Numbers outside this range (but 0) are thresholds.
SMALL, LARGE = 1e-6, 1e6


@dataclass(frozen=True)
class Mutation:
    """In `path`, `old` (from byte `start` on) becomes `new`; `text` is the line that it stands in."""

    path: str
    line: int
    start: int
    old: str
    new: str
    text: str
    again: int = 0  # of several like it in one line

    @property
    def key(self) -> str:
        """What identifies it as long as the line stays as it is, wherever that moves to."""
        place = f" ({self.again + 1})" if self.again else ""
        return f"{self.path}: {self.text} [{self.what}]{place}"

    @property
    def what(self) -> str:
        """The change, on one line.

        >>> Mutation("a.py", 1, 4, "+", "-", "a = b + c").what
        '+ -> -'
        """
        return " ".join(f"{self.old} -> {self.new or 'nothing'}".split())

    def applied(self, source: bytes) -> bytes:
        """The source with the mistake.

        >>> Mutation("a.py", 1, 6, "+", "-", "a = b + c").applied(b"a = b + c")
        b'a = b - c'
        """
        old = self.old.encode()
        if source[self.start : self.start + len(old)] != old:
            raise ValueError(f"{self.path}:{self.line} does not read {self.old!r} any more")
        return source[: self.start] + self.new.encode() + source[self.start + len(old) :]


def mutations(source: bytes, path: str) -> list[Mutation]:
    r"""All mistakes that could be made in a source, in the order of its text.

    >>> [found.what for found in mutations(b"def f(x):\n    return x + 1 if x < 0 else 2.5", "a.py")]
    ['x + 1 -> x', '+ -> -', '1 -> 2', '< -> <=', '< -> >=', '0 -> 1', '2.5 -> 5.0']
    >>> [found.what for found in mutations(b"f(x or y, k=last[-1])", "a.py")][1:]
    ['x or y -> x', 'x or y -> y', 'or -> and', ', k=last[-1] -> nothing', '-1 -> (1)', '-1 -> 0', '1 -> 2']
    """
    finder = _Finder(source, path)
    finder.visit(ast.parse(source))
    seen: Counter[str] = Counter()
    found = []
    for mutation in sorted(set(finder.found), key=lambda mutation: (mutation.start, mutation.new)):
        found.append(replace(mutation, again=seen[mutation.key]))
        seen[mutation.key] += 1
    return found


class _Finder(ast.NodeVisitor):
    def __init__(self, source: bytes, path: str) -> None:
        self.source, self.path, self.found = source, path, list[Mutation]()
        lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))
        self._lines = [line.decode().strip() for line in lines]
        self._returns = ""
        self._alike: dict[str, str] = {}  # arguments of the function: another one with the same annotation

    # -- places ----------------------------------------------------------------------------------------

    def _begin(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def _add(self, start: int, end: int, new: str) -> None:
        old = self.source[start:end].decode()
        line = bisect_right(self._starts, start)
        self.found.append(Mutation(self.path, line, start, old, new, self._lines[line - 1]))

    def _whole(self, node: ast.expr | ast.stmt | ast.keyword, new: str) -> None:
        self._add(self._begin(node), self._end(node), new)

    def _text(self, node: ast.expr) -> str:
        return self.source[self._begin(node) : self._end(node)].decode()

    def _between(self, left: ast.expr, right: ast.expr, symbol: str, new: str) -> None:
        """The operator between two operands, past parentheses and remarks."""
        start, end = self._end(left), self._begin(right)
        gap = re.sub(rb"#[^\n]*", lambda remark: b" " * len(remark[0]), self.source[start:end])
        pattern = re.escape(symbol).replace(r"\ ", r"\s+")
        match = re.search((rf"\b{pattern}\b" if symbol.isalpha() else pattern).encode(), gap)
        if match:
            self._add(start + match.start(), start + match.end(), new)

    # -- what is left alone ----------------------------------------------------------------------------

    def visit_Raise(self, node: ast.Raise) -> None:
        """Messages."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Reminders for type checkers."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts."""

    def visit_Global(self, node: ast.Global) -> None:
        """Nothing to be changed."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and not _is_text(node.value):
            self.visit(node.value)
            if not isinstance(node.target, ast.Name):
                self._whole(node, "pass")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._named(node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name == "__post_init__" or node.name.lstrip("_").startswith(_NO_FORMULA):
            return
        before = self._returns, self._alike
        self._returns = ast.unparse(node.returns) if node.returns else ""
        self._alike = _alike([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs])
        for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
            self.visit(default)
        self._body(node.body)
        self._returns, self._alike = before

    def visit_Module(self, node: ast.Module) -> None:
        self._named(node.body)

    def _body(self, body: list[ast.stmt]) -> None:
        for k, statement in enumerate(body):
            if k == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # a docstring
            self.visit(statement)

    def _named(self, body: list[ast.stmt]) -> None:
        """The body of a module or a class, without numbers that stand there by themselves."""
        self._body([s for s in body if not (isinstance(s, (ast.Assign, ast.AnnAssign)) and _is_number(s.value))])

    # -- mistakes --------------------------------------------------------------------------------------

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            symbol = _SYMBOLS[type(operator)]
            for new in _COMPARISONS[symbol]:
                self._between(left, right, symbol, new)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        symbol = _SYMBOLS.get(type(node.op), "")
        if symbol in _ARITHMETIC and not any(_is_text(side) for side in (node.left, node.right)):
            self._between(node.left, node.right, symbol, _ARITHMETIC[symbol])
            if symbol in "+-*/":
                self._whole(node, self._text(node.left))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        symbol, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(left, right, symbol, new)
        if len(node.values) == 2:
            for value in node.values:
                self._whole(node, self._text(value))
        else:
            self._dropped(node.values)
        self.generic_visit(node)

    def _dropped(self, parts: Sequence[ast.expr | ast.keyword], which: Iterable[int] | None = None) -> None:
        """One of several parts is missing, with what separates it from the next or from the one before."""
        for k in range(len(parts)) if which is None else which:
            first, second = parts[max(k, 1) - 1 : max(k, 1) + 1] if len(parts) > 1 else (parts[0], parts[0])
            gap = self.source[self._end(first) : self._begin(second)]
            if len(parts) == 1:
                self._whole(parts[0], "")
            elif _SEPARATES.fullmatch(gap):  # no parenthesis would be left alone
                self._add(
                    *((self._end(first), self._end(second)) if k else (self._begin(first), self._begin(second))), ""
                )

    def visit_Tuple(self, node: ast.Tuple) -> None:
        if isinstance(node.ctx, ast.Load) and len(node.elts) > 2:
            self._dropped(node.elts, (0, len(node.elts) - 1))
        self.generic_visit(node)

    def visit_List(self, node: ast.List) -> None:
        if isinstance(node.ctx, ast.Load) and len(node.elts) > 1:
            self._dropped(node.elts, (0, len(node.elts) - 1))
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        index = ast.unparse(node.slice)
        if index in ("0", "-1"):
            self._whole(node.slice, "-1" if index == "0" else "0")
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and node.id in self._alike:
            self._whole(node, self._alike[node.id])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, (ast.Not, ast.USub)):
            self._whole(node, f"({self._text(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._whole(node, str(not value))
        elif isinstance(value, int):
            self._whole(node, str(value + 1))
        elif isinstance(value, float) and (value == 0.0 or SMALL <= abs(value) <= LARGE):
            self._whole(node, repr(2.0 * value) if value else "1.0")

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _CONFUSED:
            self._add(self._end(node.func) - len(name), self._end(node.func), _CONFUSED[name])
        if name in _EXTREMES and len(node.args) == 2 and not node.keywords:
            for argument in node.args:
                self._whole(node, self._text(argument))
        if name in _EXTREMES and not (node.args or node.keywords) and isinstance(node.func, ast.Attribute):
            self._add(self._end(node.func.value), self._end(node), "[0]")
        if name == "copy" and not (node.args or node.keywords) and isinstance(node.func, ast.Attribute):
            self._add(self._end(node.func.value), self._end(node), "")
        if len(node.args) == 2 and name not in _ANY_ORDER and all(isinstance(a, ast.Name) for a in node.args):
            first, second = node.args
            between = self.source[self._end(first) : self._begin(second)].decode()
            self._add(self._begin(first), self._end(second), self._text(second) + between + self._text(first))
        if name == "range":
            last = node.args[-1 if len(node.args) == 1 else 1]
            self._whole(last, f"{self._text(last)} - 1")
        if name == "zip":  # strict is a check
            node = ast.Call(node.func, node.args, [])
        elif not name.lstrip("_").startswith(_NO_FORMULA) and not any(k.arg is None for k in node.keywords):
            parts: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
            self._dropped(parts, range(len(node.args), len(parts)))
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        symbol = _SYMBOLS.get(type(node.op), "")
        if symbol in _ARITHMETIC:
            self._between(node.target, node.value, symbol + "=", _ARITHMETIC[symbol] + "=")
        self._whole(node, "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if _is_text(node.value):
            return
        if not any(isinstance(target, (ast.Name, ast.Tuple)) for target in node.targets):
            self._whole(node, "pass")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            name = ast.unparse(node.value.func).rpartition(".")[2]
            if name in _PRINTS or name.lstrip("_").startswith(_NO_FORMULA):
                return
            self._whole(node, "pass")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        if all(isinstance(statement, ast.Raise) for statement in node.body):
            self._body(node.orelse)
            return
        self._negate(node.test)
        if len(node.body) == 1 and isinstance(node.body[0], (ast.Return, ast.Continue, ast.Break)) and not node.orelse:
            self._whole(node, "pass")  # it does not end early
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        if isinstance(test, (ast.Name, ast.Attribute, ast.Call)):
            self._whole(test, f"not {self._text(test)}")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        if self._returns == "bool" and not isinstance(node.value, ast.Constant):
            self._whole(node.value, f"not ({self._text(node.value)})")
        elif self._returns in _NEGATIVE and not isinstance(node.value, ast.Constant):
            self._whole(node.value, f"-({self._text(node.value)})" if self._returns != "Triple" else "(0.0, 0.0, 0.0)")
        self.visit(node.value)


def _alike(arguments: list[ast.arg]) -> dict[str, str]:
    """For each argument that shares its annotation with others: the next of them."""
    kinds = defaultdict(list)
    for argument in arguments:
        if argument.annotation is not None:
            kinds[ast.unparse(argument.annotation)].append(argument.arg)
    return {
        name: names[(k + 1) % len(names)] for names in kinds.values() if len(names) > 1 for k, name in enumerate(names)
    }


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))


def _is_number(node: ast.expr | None) -> bool:
    number = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(number, ast.Constant) and type(number.value) in (int, float)
