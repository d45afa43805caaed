"""Two springs joined at one point, cut in four ways: the smallest decomposition (Sicklinger (2014), 3.4).

Springs `k1`, `k2` and a constant load `f` on spring one: `u = f / (k1 + k2)`. Each spring takes a displacement (D) and
gives the force on it, or takes the force (N) and gives its displacement. With inputs `U = (U1, U2)` the interface
residuals are `R1 = u1 - u2` and `R2 = f1 + f2`, and the relaxation `U <- U + alpha R` (sign of the source: useful alpha
are negative) contracts with the eigenvalues of `H = I + alpha G`, `G = dR/dU` (Sicklinger Examples 3.7-3.10). All
functions of the stiffnesses take arrays, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

import cosolve as cs

KINDS = ("D/D", "D/N", "N/D", "N/N")
LOAD = 1.0


def interface_matrix(kind: str, k1: float, k2: float) -> np.ndarray:
    """`G = dR/dU`; rows `u1 - u2` and `f1 + f2`."""
    by_one = (1.0, k1) if kind[0] == "D" else (1.0 / k1, 1.0)  # (du1, df1) / dU1
    by_two = (1.0, k2) if kind[2] == "D" else (1.0 / k2, 1.0)
    return np.array([[by_one[0], -by_two[0]], [by_one[1], by_two[1]]])


def eigenvalues(kind: str, k1: Any, k2: Any, alpha: float) -> np.ndarray:
    """Eigenvalues of one relaxed Jacobi iteration, as printed in the source."""
    if kind == "D/D":
        mean, root = (1 + k2) / 2, np.emath.sqrt(k2**2 - 2 * k2 - 4 * k1 + 1) / 2
    elif kind == "D/N":
        mean, root = 1.0, np.emath.sqrt(-k1 / k2)
    elif kind == "N/D":
        mean, root = (1 / k1 + k2) / 2, np.emath.sqrt(k1**2 * k2**2 - 4 * k1**2 - 2 * k1 * k2 + 1) / (2 * k1)
    else:
        inside = k1**2 * k2**2 - 4 * k1**2 * k2 - 2 * k1 * k2**2 + k2**2
        mean, root = (1 + 1 / k1) / 2, np.emath.sqrt(inside) / (2 * k1 * k2)
    return np.array([1 + alpha * (mean + root), 1 + alpha * (mean - root)])


def gauss_seidel_eigenvalue(kind: str, k1: Any, k2: Any, alpha: float) -> Any:
    """Contraction of a relaxed Gauss-Seidel iteration: D/N and N/D only, where one output is the other's input."""
    ratio = {"D/N": k1 / k2, "N/D": k2 / k1}[kind]
    return 1 + alpha * (1 + ratio)


def radius(kind: str, k1: Any, k2: Any, alpha: float) -> Any:
    """Spectral radius of one relaxed Jacobi iteration."""
    return np.abs(eigenvalues(kind, k1, k2, alpha)).max(axis=0)


def best_factor(kind: str, k1: float, k2: float) -> tuple[float, float]:
    """The constant factor with the smallest spectral radius, and that radius."""
    grid = np.linspace(-3.0, 0.0, 3001)
    start = grid[int(np.argmin([radius(kind, k1, k2, float(a)) for a in grid]))]
    found = minimize_scalar(
        lambda a: radius(kind, k1, k2, a),
        bounds=(start - 2e-3, start + 2e-3),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(found.x), float(found.fun)


def system(kind: str, k1: float, k2: float) -> cs.System:
    """The coupled springs; `u` and `f` of each are given, whichever of them is the input."""
    parts = {"one": _spring(kind[0], k1, LOAD), "two": _spring(kind[2], k2, 0.0)}
    joined = cs.System(parts)
    joined.equations(
        {"U1": "one.input", "U2": "two.input"},
        lambda U1, U2, u1, f1, u2, f2: (u1 - u2, f1 + f2),
        of=["one.u", "one.f", "two.u", "two.f"],
        solve_start=False,  # corrections are counted from zero
    )
    return joined


def _spring(kind: str, k: float, load: float) -> cs.Static:
    if kind == "D":
        return cs.Static(lambda t, u: (u[0], k * u[0] - load), inputs=["input"], outputs=["u", "f"])
    return cs.Static(lambda t, u: ((u[0] + load) / k, u[0]), inputs=["input"], outputs=["u", "f"])
