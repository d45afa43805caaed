"""Initial values that satisfy the constraints, and which constraints are involved where they cannot be satisfied."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cosolve.errors import SetupError
from cosolve.multibody.equations.residuals import residuals
from cosolve.multibody.model.arrays import STATE, Matrix, Vector
from cosolve.multibody.model.build import Built, dense_jacobian, listed, weighted_rows

#: Violations below this are taken for printed digits and removed without asking.
ROUNDED = 1e-6


def violations(built: Built, x: Vector, driven: Matrix) -> tuple[Vector, Vector]:
    """`c` and `c'` of all rows."""
    _, c, rate = residuals(built.arrays, x, driven)
    return c, rate


def consistent_start(
    built: Built, x0: Vector, driven: Matrix, initial: str, project: Callable[[Vector, Matrix, int], int]
) -> tuple[Vector, str]:
    """Consistent values near `x0` and a sentence on how far they are from it.

    `initial="refuse"` only removes rounding; `"find"` projects positions, then velocities, weighted with the masses, by
    `project(x, driven, level)`.
    """
    c, rate = violations(built, x0, driven)
    names = built.row_names
    wrong = [f"{names[k]} by {c[k]:.3g}" for k in range(len(c)) if abs(c[k]) > ROUNDED]
    fast = [f"{names[k]} at the rate {rate[k]:.3g}" for k in range(len(c)) if abs(rate[k]) > ROUNDED]
    if initial == "refuse" and (wrong or fast):
        level = "position" if wrong else "velocity"
        raise SetupError(
            f"the initial values violate the constraints at {level} level: {listed(wrong or fast)}; correct them or "
            "let them be found with initial='find'"
        )
    x = x0.copy()
    if len(c) and project(x, driven, 2) < 0:
        raise SetupError(
            f"no consistent initial position was found near the given one, which violates {listed(wrong)}; check the "
            "geometry of these joints or start closer"
        )
    if len(built.dropped_rows):
        whole = built.arrays._replace(rows=built.dropped_rows)
        _, c_dropped, _ = residuals(whole, x, driven)
        broken = [
            f"{name} by {a:.3g}" for name, a in zip(built.dropped, c_dropped, strict=True) if abs(a) > 1e3 * ROUNDED
        ]
        if broken:
            raise SetupError(f"constraints contradict each other: {listed(broken)} cannot hold together with the rest")
    moved = np.abs((x - x0).reshape(-1, STATE))
    return x, (
        f"initial values moved by at most {moved[:, :3].max():.3g} m, {moved[:, 3:7].max():.3g} in the orientation, "
        f"{moved[:, 7:10].max():.3g} m/s and {moved[:, 10:].max():.3g} rad/s"
    )


def involved(built: Built, x: Vector, driven: Matrix) -> str:
    """The joints whose constraints depend on each other at a singular position (smallest left singular vector)."""
    U, _, _ = np.linalg.svd(weighted_rows(built.arrays, dense_jacobian(built.arrays, x, driven)))
    share = np.abs(U[:, len(built.row_names) - 1])
    order = [int(k) for k in np.argsort(-share) if share[k] > 0.1 * share.max()]
    joints = dict.fromkeys(built.row_names[k].rsplit(" (", 1)[0] for k in order)
    return listed(list(joints))
