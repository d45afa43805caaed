"""Each function of numpy, operator and method of arrays that traces know gives the bits of Python."""

import numpy as np
import pytest

from cosolve.trace import Module, arrays, trace

from .test_python_rules import bits, points

A = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.5], [2.0, 0.1, 0.7]])
W = np.array([0.3, -1.2, 2.5])
GRID = np.array([-2.0, -0.3, 0.4, 1.9])

#: Expressions of a time `t`, three states `x` and two inputs `u`. Sizes and orders of arguments differ where they can.
NUMPY = """
np.array([x[0], t, u[1]]); np.asarray(x); np.ascontiguousarray(A.T * x); np.atleast_1d(x[1]); np.atleast_1d(x)
np.copy(x) * 2.0; np.zeros(3) + x; np.ones((2, 2)) * u; np.where(t > -1.0, u, np.empty(2)); np.full(2, t) - u
np.zeros_like(x) + t; np.ones_like(u) + u; np.where(t > -1.0, x, np.empty_like(x)); np.full_like(x, 2.5) * x
np.sum(x); np.sum(A * x, axis=0); np.sum(A * x, axis=1); np.mean(x); np.mean(A * x, axis=0); np.prod(x); np.max(x)
np.min(x); np.dot(A, x); np.dot(x, W); np.matmul(A, x); np.inner(x, W); np.vdot(W, x); np.linalg.norm(x)
np.linalg.norm(u); np.cross(x, W); np.cross(W, x); np.outer(x, u); np.diff(x); np.diff(np.append(x, u)); np.cumsum(x)
np.cumsum(np.append(u, x)); np.polyval([2.0, x[0], -1.5], t); np.polyval(x, u); np.where(x > W, x, t)
np.where(x[0] > 0.2, x, -x); np.clip(x, -0.5, 0.4); np.clip(x, u[0], 3.0); np.interp(x[0], GRID, W[[0, 1, 2, 0]])
np.shape(A * x)[1] * x; np.size(u) * x; np.ndim(A * x) * x; np.float64(x[1]) * u; np.concatenate([x, u, W])
np.hstack([u, x]); np.vstack([x, W]) * t; np.stack([x, W], axis=1); np.column_stack([x, W]); np.append(u, x)
np.roll(x, 1); np.roll(x, -1); np.reshape(A * x, 9); np.ravel(A.T * x); np.transpose(A * x); np.flip(x)
np.flipud(A * x); np.fliplr(A * x); np.tile(u, 2); np.repeat(x, 2); np.diag(x); np.diag(A * x); np.squeeze(x[None, :])
np.expand_dims(x, 0); np.broadcast_to(x, (2, 3)); np.split(x, 3)[2]; np.array_split(np.append(x, u), 2)[1]
np.take(x, [2, 0]); np.swapaxes(A * x, 0, 1); np.moveaxis(A * x, 0, 1); np.delete(x, 1); np.insert(x, 1, t)
np.diagonal(A * x); np.rot90(A * x); np.atleast_2d(x) * t; np.add(x, W); np.subtract(x, W); np.subtract(W, x)
np.multiply(x, t); np.divide(x, W); np.divide(W, x); np.negative(x); np.positive(x); np.absolute(x); np.fabs(x)
np.sqrt(np.abs(x)); np.square(x); np.reciprocal(x); np.floor(x); np.ceil(x); np.trunc(x); np.rint(x); np.maximum(x, W)
np.minimum(x, u[1]); np.fmax(x, W); np.fmin(u[1], x); np.sign(x); np.where(np.less(x, W), x, t)
np.where(np.less_equal(x, W), x, t); np.where(np.greater(x, W), x, t); np.where(np.greater_equal(x, W), x, t)
np.where(np.equal(x, x[0]), t, x); np.where(np.not_equal(x, x[0]), t, x)
np.where(np.logical_and(x > 0.0, x < 1.0), x, t); np.where(np.logical_or(x < 0.0, x > 1.0), x, t)
np.where(np.logical_xor(x < 0.0, W > 0.0), x, t); np.where(np.logical_not(x < 0.0), x, t)
np.where(np.bitwise_and(x > 0.0, x < 1.0), x, t); np.where(np.bitwise_or(x < 0.0, x > 1.0), x, t)
np.where(np.bitwise_xor(x < 0.0, W > 0.0), x, t); np.where(np.invert(x < 0.0), x, t)
"""

OPERATORS = """
x + W; W + x; x - W; W - x; x * W; 2.0 * x; x / W; W / x; x % 0.7; x // 0.7; x**2; x**3; 2.0**x; A @ x; x @ A; x @ W
-x; +x; abs(x); np.where(x < W, x, t); np.where(x <= x[0], x, t); np.where(x > W, x, t); np.where(x >= x[0], x, t)
np.where(x == x[0], t, x); np.where(x != x[0], t, x); np.where((x > 0.0) & (W > 0.0), x, t)
np.where((x > 0.0) | (W > 0.0), x, t); np.where((x > 0.0) ^ (W > 0.0), x, t); np.where(~(x > 0.0), x, t); x.copy()
x.ravel(); (A.T * x).ravel(); (A * x).flatten(); x.reshape(3, 1); (A * x).reshape(9); (A * x).transpose(); (A * x).T
x[None].squeeze(); x.astype(float); x.item(1) * u; np.array(x.tolist()); x.sum(); (A * x).sum(axis=0); x.mean()
(A * x).mean(axis=1); x.prod(); x.max(); x.min(); x.dot(W); x.clip(-0.5, 0.4); x[1:]; x[::-1]; x[-1] * u; len(x) * x
float(x[0]) * u; sum(x) * u; max(x) * u; min(x[0], t) * u; abs(x[1]) * u; t + x; t - x[0] * u; u / t; (A * x)[1:, ::2]
round(2.5) * x
"""


def cases(text: str) -> list[str]:
    return [case.strip() for line in text.splitlines() for case in line.split(";") if case]


def compared(expression: str) -> str:
    """What is wrong with the trace of an expression, or nothing."""
    space = {"np": np, "A": A, "W": W, "GRID": GRID}
    function = eval(f"lambda t, x, u: np.ravel({expression})", space)
    with np.errstate(all="ignore"):
        given = [(point, function(*point)) for point in list(points())[::23]]
    size = len(given[0][1])
    found = trace(function, [("t", None), ("x", 3), ("u", 2)], size)
    if isinstance(found, str):
        return f"refused: {found}"
    module = Module({"f": found})
    for point, wanted in given:
        got = module.call("f", *point, size)
        if got is not None and bits(got) != bits(wanted):
            return f"at {point}: {got}, not {wanted}"
    return ""


@pytest.mark.parametrize("text", [NUMPY, OPERATORS], ids=["numpy", "operators"])
def test_bits(text: str) -> None:
    wrong = {expression: told for expression in cases(text) if (told := compared(expression))}
    assert not wrong, "\n".join(f"{expression}: {told}" for expression, told in wrong.items())


def test_none_is_left_out() -> None:
    """A rule that is new gets a case."""
    known = {function.__name__ for function in (*arrays._FUNCTIONS, *arrays._RULES)}
    named = {name for case in cases(NUMPY) for name in compile(case, "case", "eval").co_names}
    assert known - named == set()


def test_extremes_along_an_axis_are_refused() -> None:
    for function in (lambda t, x, u: (A * x).max(axis=0), lambda t, x, u: np.min(A * x, axis=1)):
        assert "along an axis" in trace(function, [("t", None), ("x", 3), ("u", 2)], 3)
