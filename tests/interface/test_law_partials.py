"""Derivatives of jitted laws: exact, through branches, loops and calls; differences where there is no rule.

References are derivatives by hand, and two-sided differences of order four.
"""

from __future__ import annotations

import ctypes
import math

import numba
import numpy as np
import pytest

import cosolve as cs
from cosolve.interface.law_partials import compiled_partials, exact_partials


def slopes(function, *at, gives=(None,)):
    """Derivatives by each argument, one row per value; None where they are not exact."""
    takes = (None,) * len(at)
    partials = exact_partials(function, takes, gives)
    if partials is None:
        return None
    found = np.full((len(at), len(gives)), np.nan)
    memory = np.array(at, dtype=float), np.ones(len(at)), np.empty(2 * len(gives)), found
    assert partials(*(array.ctypes.data for array in memory)) == 0
    return found.T


def by_differences(function, *at):
    """Two-sided differences of order four."""
    found = []
    for k in range(len(at)):

        def along(s, k=k):
            return function(*(x + s * (j == k) for j, x in enumerate(at)))

        h = 1e-3
        found.append((8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h))
    return found


ONE = {
    "neg": (lambda x: -x, 0.3),
    "abs": (lambda x: abs(x), -0.3),
    "np.abs": (lambda x: np.abs(x), 0.4),
    "sin": (lambda x: math.sin(x), 0.7),
    "np.cos": (lambda x: np.cos(x), 0.7),
    "tan": (lambda x: math.tan(x), 0.7),
    "asin": (lambda x: math.asin(x), 0.3),
    "np.arccos": (lambda x: np.arccos(x), 0.3),
    "atan": (lambda x: math.atan(x), 1.3),
    "sinh": (lambda x: np.sinh(x), 0.9),
    "cosh": (lambda x: math.cosh(x), 0.9),
    "tanh": (lambda x: np.tanh(x), 0.9),
    "exp": (lambda x: np.exp(x), 0.2),
    "expm1": (lambda x: math.expm1(x), 0.2),
    "log": (lambda x: math.log(x), 1.7),
    "log1p": (lambda x: np.log1p(x), 0.7),
    "log10": (lambda x: np.log10(x), 1.7),
    "sqrt": (lambda x: math.sqrt(x), 2.7),
    "sign": (lambda x: np.sign(x) * x, -2.7),
    "x**2": (lambda x: x**2, -1.5),
    "x**-3": (lambda x: x**-3, -1.5),
    "x**0.5": (lambda x: x**0.5, 1.5),
    "2**x": (lambda x: 2.0**x, 1.5),
    "x/(1+x)": (lambda x: x / (1 + x), 0.5),
    "1/x": (lambda x: 1 / x, 0.5),
    "5-x": (lambda x: 5 - x, 0.5),
}
TWO = {
    "x*y": (lambda x, y: x * y, 0.4, -0.7),
    "x/y": (lambda x, y: x / y, 0.4, -0.7),
    "x-y": (lambda x, y: x - y, 0.4, -0.7),
    "x**y": (lambda x, y: x**y, 1.4, -0.7),
    "hypot": (lambda x, y: math.hypot(x, y), 0.4, -0.7),
    "atan2": (lambda x, y: math.atan2(x, y), 0.4, -0.7),
    "max": (lambda x, y: max(x, y) * x, 0.4, -0.7),
    "min": (lambda x, y: np.minimum(x, 0.2) * y, 0.4, -0.7),
    "copysign": (lambda x, y: math.copysign(x, y), 0.4, -0.7),
    "mixed": (lambda x, y: 3 * x + y * 2.0 - (x - 1) * (1 - y), 0.4, -0.7),
}


@pytest.mark.parametrize("case", [*ONE.values(), *TWO.values()], ids=[*ONE, *TWO])
def test_every_rule_gives_the_derivative(case):
    function, *at = case
    found = slopes(numba.njit(function), *at)
    assert found is not None
    np.testing.assert_allclose(found[0], by_differences(function, *at), rtol=1e-8, atol=1e-9)


@numba.njit
def _inner(a, b):
    total = 0.0
    for k in range(3):
        total += a * b**k
    return total


def test_branches_loops_calls_and_closures_are_followed():
    stiffness = 7.0

    @numba.njit
    def law(x, y):
        force = 0.0
        if x > y:
            force = 2
        elif x < 0:
            force = stiffness * x * y
        else:
            force = _inner(x, y)
        return force

    assert slopes(law, 2.0, 1.0).tolist() == [[0.0, 0.0]]  # a constant branch
    np.testing.assert_allclose(slopes(law, -1.0, 3.0), [[7.0 * 3.0, -7.0]], rtol=1e-15)
    np.testing.assert_allclose(slopes(law, 0.5, 2.0), [[1 + 2 + 4, 0.5 * (1 + 2 * 2)]], rtol=1e-15)


def test_a_law_of_several_values():
    law = numba.njit(lambda x, y: (x * y, 3.0, y * y))
    np.testing.assert_allclose(slopes(law, 2.0, 5.0, gives=(None,) * 3), [[5, 2], [0, 0], [0, 10]], rtol=1e-15)


def test_the_digits_that_differences_lose():
    # a stiff cubic spring far from its rest: differences are off in the tenth digit, duals in the last
    law = numba.njit(lambda x: 1e6 * x**3)
    assert slopes(law, 1.1)[0, 0] == pytest.approx(3e6 * 1.1**2, rel=4e-16)


@pytest.mark.parametrize(
    "law",
    [numba.njit(lambda x: math.floor(x) * x), numba.njit(lambda x: np.interp(x, np.arange(3.0), np.arange(3.0)))],
    ids=["floor", "table"],
)
def test_what_has_no_rule_is_left_to_differences(law):
    assert slopes(law, 1.3) is None
    x, found = np.array([1.3]), np.empty(1)
    memory = x, np.ones(1), np.empty(2), found
    assert compiled_partials(law, (None,), (None,))(*(array.ctypes.data for array in memory)) == 0
    assert found[0] == pytest.approx(1.0, rel=1e-8)


def test_a_derivative_that_is_not_finite_becomes_a_difference():
    # the flow through an orifice, at rest
    law = numba.njit(lambda p: math.copysign(math.sqrt(abs(p)), p))
    found = slopes(law, 0.0)[0, 0]
    h = 6e-6
    assert found == pytest.approx(math.sqrt(h) / h, rel=1e-6)


def test_laws_of_whole_fields_are_left_alone():
    # each value would be a line of its own to compile
    law = numba.njit(lambda x: x * np.ones(5000))
    assert exact_partials(law, (None,), (5000,)) is None


def test_c_functions_and_python_functions_have_no_exact_derivatives():
    library = ctypes.CDLL(None)
    library.hypot.restype, library.hypot.argtypes = ctypes.c_double, [ctypes.c_double] * 2
    assert slopes(library.hypot, 1.0, 2.0) is None
    assert slopes(lambda x: x, 1.0) is None


def _pair(law):
    def mass(x0):
        return cs.Linear([[0, 1], [-4, -0.2]], [[0], [1]], np.eye(2), x0=[x0, 0], inputs=["f"], outputs=["x", "v"])

    system = cs.System({"one": mass(1.0), "two": mass(-0.5)})
    system.law({"one.f": 1, "two.f": -1}, law, of=["one.x", "one.v", "two.x", "two.v"])
    return system


@pytest.mark.parametrize("method", [cs.SemiImplicit(1), cs.Implicit(1)], ids=lambda m: m.label)
def test_both_engines_take_them_and_agree_to_the_bit(method):
    law = numba.njit(lambda x, v, y, w: 50 * (y - x) ** 3 + 30 * np.tanh(y - x) + 0.5 * (w - v))
    runs = [cs.simulate(_pair(law), t_end=2.0, method=method, step=0.02, compiled=c) for c in (False, True)]
    assert runs[1].stats.compiled_steps > 90
    for name in ("one.x", "one.v", "two.x", "two.v"):
        assert (runs[0][name] == runs[1][name]).all()


def test_a_law_that_fails_in_its_derivative_says_so():
    @numba.njit
    def law(x, v, y, w):
        if abs(x - y) > 1e-3:
            raise ValueError("too far")
        return x - y

    with pytest.raises(cs.CosolveError, match="too far"):
        cs.simulate(_pair(law), t_end=0.1, method=cs.SemiImplicit(1), step=0.02)
