"""What is not a formula of its arguments is refused, with the line; what is traced gives what Python gives."""

import inspect
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from cosolve.trace import Module, trace

from . import refused

TAKES = [("t", None), ("x", 2), ("u", 1)]


def points(count, seed=0):
    rng = np.random.default_rng(seed)
    return [(float(rng.uniform(0, 3)), rng.normal(size=2), rng.normal(size=1)) for _ in range(count)]


def python(function, t, x, u):
    """What Python gives; None where it raises."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(function(t, x.copy(), u.copy()), dtype=float)
    except (ValueError, ZeroDivisionError):
        return None


@pytest.mark.parametrize("function", refused.REFUSED, ids=lambda f: getattr(f, "__name__", type(f).__name__))
def test_is_refused_with_its_line(function) -> None:
    found = trace(function, TAKES, 2)
    assert isinstance(found, str)
    code = getattr(function, "__code__", None) or type(function).__call__.__code__
    lines, first = inspect.getsourcelines(code)
    if "(" in found:
        line = int(found.rpartition("line ")[2].rstrip(")"))
        assert "refused.py" in found
        assert first <= line < first + len(lines)
    else:
        assert found.startswith("it writes to")


def test_refusing_leaves_no_trace() -> None:
    """Nothing of the user has been called or changed."""
    before = refused.CALLS, list(refused.LOG), dict(refused.TABLE), refused.OBJECT.calls, refused.BUFFER.tolist()
    counted = refused.closure()
    state = refused.GENERATOR.bit_generator.state
    for function in (*refused.REFUSED, counted):
        trace(function, TAKES, 2)
    after = refused.CALLS, list(refused.LOG), dict(refused.TABLE), refused.OBJECT.calls, refused.BUFFER.tolist()
    assert after == before
    assert counted.__closure__[0].cell_contents == 0
    assert refused.GENERATOR.bit_generator.state == state
    assert next(refused.COUNTS) == 0
    assert refused.default_value.__defaults__ == ([0],)
    assert not hasattr(refused.has_an_attribute, "calls")


@pytest.mark.parametrize("function", refused.TRACED, ids=lambda f: f.__name__)
def test_gives_the_bits_of_python_or_asks_it(function) -> None:
    found = trace(function, TAKES, 2)
    assert not isinstance(found, str), found
    module, asked = Module({"f": found}), 0
    for t, x, u in points(300):
        wanted, got = python(function, t, x, u), module.call("f", t, x, u, 2)
        if got is None:
            asked += 1
        else:
            assert wanted is not None
            assert got.tobytes() == wanted.tobytes()
    assert asked < (200 if function is refused.raises else 1)


def test_where_python_raises_it_is_asked() -> None:
    module = Module({"f": trace(refused.divides, TAKES, 2)})
    assert module.call("f", 0.0, [0.0, 1.0], [0.0], 2) is None
    module = Module({"f": trace(refused.raises, TAKES, 2)})
    for first in (1.5, -2.0):  # raises by itself, root of a negative number
        assert python(refused.raises, 0.0, np.array([first, 1.0]), np.zeros(1)) is None
        assert module.call("f", 0.0, [first, 1.0], [0.0], 2) is None


def test_a_way_that_cannot_be_traced_is_left_to_python() -> None:
    def partly(t, x, u):
        return -x if x[0] < 1.0 else -x * np.random.rand()  # noqa: NPY002

    module = Module({"f": trace(partly, TAKES, 2)})
    assert module.call("f", 0.0, [0.5, 1.0], [0.0], 2).tolist() == [-0.5, -1.0]
    assert module.call("f", 0.0, [1.5, 1.0], [0.0], 2) is None


def test_a_loop_on_values_is_never_wrong() -> None:
    found = trace(refused.loops_on_values, TAKES, 2)
    module = Module({"f": found})
    for t, x, u in points(100):
        got = module.call("f", t, x, u, 2)
        assert got is None or got.tobytes() == python(refused.loops_on_values, t, x, u).tobytes()


def test_captured_values_are_watched() -> None:
    """Cells, globals, lists, dicts, arrays, attributes: a change is seen, and gives other numbers by the same code."""
    k, values, table, array = 2.0, [1.0], {"c": 3.0}, np.array([1.0, 2.0])
    holder = SimpleNamespace(d=4.0)

    def f(t, x, u):
        return x * k * values[0] * table["c"] * holder.d + array

    def change_cell():
        nonlocal k
        k = 5.0

    x = np.array([0.3, -0.2])
    changes = (
        change_cell,
        lambda: values.__setitem__(0, 7.0),
        lambda: table.update(c=9.0),
        lambda: array.__setitem__(1, 6.0),
        lambda: setattr(holder, "d", 8.0),
    )
    codes = set()
    for change in changes:
        found = trace(f, TAKES, 2)
        codes.add(found.code("f"))
        assert found.captures
        assert found.unchanged()
        change()
        assert not found.unchanged()
        again = Module({"f": trace(f, TAKES, 2)})
        assert again.call("f", 0.0, x, [0.0], 2).tobytes() == f(0.0, x, None).tobytes()
    assert len(codes) == 1


def test_jitted_functions_are_traced_with_their_own_arithmetic() -> None:
    @numba.njit
    def f(t, x, u):
        y = np.empty(2)
        y[0] = x[0] ** 3 + math_of(x[1]) if x[0] > 0.0 else np.tanh(x[1]) ** 2
        y[1] = np.sum(x) / 3.0 + x[1] ** -2
        return y

    module = Module({"f": trace(f, TAKES, 2)})
    for t, x, u in points(200):
        assert module.call("f", t, x, u, 2).tobytes() == f(t, x, u).tobytes()


@numba.njit
def math_of(x):
    return np.exp(-x) * np.sin(x)
