"""The pendulum's right-hand side in machine code, for SciPy and for cosolve."""

from __future__ import annotations

import inspect
import math
import textwrap
from typing import Any

import numba
import numpy as np

from problems import pendulum as p

_RHS: dict[float, Any] = {}


def rhs(D: float) -> Any:
    """`f(t, x)` in machine code."""
    if D not in _RHS:
        inner = accelerations()

        @numba.njit
        def function(t: float, x: Any) -> Any:
            a1, a2 = inner(x[0], x[1], x[2], x[3], 0.0, D)
            return np.array([x[2], x[3], a1, a2])

        _RHS[D] = function
    return _RHS[D]


def accelerations() -> Any:
    """The shared text with the module `math` put in."""
    text = textwrap.dedent(inspect.getsource(p.accelerations)).replace("(m: Any, ", "(").replace("m.", "math.")
    namespace: dict[str, Any] = {"math": math, "G": p.G, "Any": Any}
    exec(text, namespace)
    return numba.njit(namespace["accelerations"])


def controlled(D: float) -> tuple[Any, Any]:
    """`rhs(t, x, u)` and `output(t, x, u)` with the torque as input."""
    inner = accelerations()

    @numba.njit
    def slope(t: float, x: Any, u: Any) -> Any:
        a1, a2 = inner(x[0], x[1], x[2], x[3], u[0], D)
        return np.array([x[2], x[3], a1, a2])

    @numba.njit
    def output(t: float, x: Any, u: Any) -> Any:
        return x

    return slope, output
