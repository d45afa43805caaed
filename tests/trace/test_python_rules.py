"""Each function of `python_rules.py` is refused, or gives what Python gives to the last bit."""

import numba
import numpy as np
import pytest

from cosolve.trace import Module, trace

from . import python_rules

TAKES = [("t", None), ("x", 3), ("u", 2)]


def points():
    """States of several sizes, with zeros of both signs, equal and whole numbers."""
    rng = np.random.default_rng(1)
    for k in range(400):
        t, x, u = float(rng.uniform(0, 3)), rng.normal(size=3) * rng.choice([0.1, 1, 5]), rng.normal(size=2)
        if k % 5 == 0:
            x[rng.integers(3)] = 0.0
        if k % 7 == 0:
            x[rng.integers(3)] = -0.0
        if k % 13 == 0:
            x = np.round(x)
        if k % 17 == 0:
            x[:] = x[0]
        yield t, x, u


def bits(values):
    """Numbers and signs of zeros; all NaN are one."""
    values = np.asarray(values, dtype=float).ravel()
    return np.where(np.isnan(values), np.nan, values).tobytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", python_rules.CASES, ids=lambda f: f.__name__)
def test_is_refused_or_right(function) -> None:
    found = trace(function, TAKES, 3)
    if isinstance(found, str):
        return
    module, wrong = Module({"f": found}), []
    for t, x, u in points():
        got = module.call("f", t, x, u, 3)
        if got is not None:
            with np.errstate(all="ignore"):
                wanted = function(t, x.copy(), u.copy())
            if bits(got) != bits(wanted):
                wrong.append((t, x, u, wanted, got))
    assert not wrong, wrong[0]


def test_most_are_traced() -> None:
    """What is refused is an exception: a trace that refuses everything is never wrong either."""
    refused = [f.__name__ for f in python_rules.CASES if isinstance(trace(f, TAKES, 3), str)]
    assert len(refused) < len(python_rules.CASES) / 2, refused


def adds_conditions(t, x, u):
    return np.array([(x[0] > 0) + (x[1] > 0) + 0.0, -1 * (x[0] > 0) * 1.0, x[2] * (x[0] > 0)])


def extremes(t, x, u):
    return np.maximum(x * 0.0, 0.0) + np.arctan2(np.minimum(0.0, x * 0.0), -1.0) + np.arctan2(np.sign(x * 0.0), -1.0)


def sums(t, x, u):
    return np.arctan2(np.array([np.sum(x * 0.0), np.cumsum(x * 0.0)[2], np.max(x)]), -1.0)


def powers(t, x, u):
    return x**2 + x**3 + np.abs(x) ** 0.5 + abs(x[0]) ** 2.0


def counts(t, x, u):
    n = 0
    for k in range(3):
        if x[k] > 0:
            n += 1
    return x * n


def is_out_of_range(t, x, u):
    n = 3037000500
    return x * (n * n)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "function", [adds_conditions, extremes, sums, powers, counts, is_out_of_range], ids=lambda f: f.__name__
)
def test_rules_of_numba(function) -> None:
    jitted = numba.njit(function)
    found = trace(jitted, TAKES, 3)
    if function is is_out_of_range:
        assert isinstance(found, str)
        return
    module = Module({"f": found})
    for t, x, u in points():
        assert bits(module.call("f", t, x, u, 3)) == bits(jitted(t, x, u))


def test_parallel_functions_are_left_to_numba() -> None:
    assert "parallel" in trace(numba.njit(parallel=True)(powers), TAKES, 3)
