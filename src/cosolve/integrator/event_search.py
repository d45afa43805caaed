"""State events: which event indicators change sign inside an internal step, and where the first does.

An indicator is in one of two domains, `z > 0` or `z <= 0` (FMI 2.0, 3.1.1; FMI 3.0, 3.1). Right after an event it often
is zero; its domain then is the one it goes to next.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector

_SAMPLES = (0.25, 0.5, 0.75, 1.0)  # looks into a step, so that leaving a domain and coming back is seen as well


def left(signs: Vector, z: Vector) -> npt.NDArray[np.bool_]:
    """Which indicators have left their domains; `signs` 0 is a domain not known yet.

    >>> left(np.array([1.0, 1.0, -1.0, -1.0, 0.0]), np.array([0.5, 0.0, 0.0, 0.1, 9.0]))
    array([False,  True, False,  True, False])
    """
    gone: npt.NDArray[np.bool_] = ((signs > 0) & (z <= 0)) | ((signs < 0) & (z > 0))
    return gone


def known(signs: Vector, z: Vector) -> Vector:
    """The domains, those not known yet by the values now."""
    return np.where(signs == 0, np.sign(z), signs)


def first_event(
    signs: Vector, t0: float, t1: float, guess: Callable[[float], Vector], exact: Callable[[float], Vector]
) -> tuple[float | None, Vector]:
    """The time in `(t0, t1]` at which an indicator first leaves its domain, and the domains at the end of the search.

    `guess(t)` are cheap indicators inside the step, `exact(t)` accurate ones. The time returned lies at or just after
    the change (a few roundings at most), so that the FMU sees it.

    >>> z = lambda t: np.array([0.5 - t])
    >>> t, _ = first_event(np.array([1.0]), 0.0, 1.0, z, z)
    >>> 0.5 <= t < 0.5 + 1e-15
    True
    """
    before = t0
    for fraction in _SAMPLES:
        t = t1 if fraction == 1.0 else t0 + fraction * (t1 - t0)
        z = exact(t) if t == t1 else guess(t)
        if left(signs, z).any():
            gone = np.flatnonzero(left(signs, exact(t)))
            if gone.size:
                if before > t0 and left(signs, exact(before)).any():  # the cheap values did not see it
                    before = t0
                return min(_root(int(j), signs, before, t, exact) for j in gone), signs
        signs = known(signs, z)
        before = t
    return None, signs


def _root(j: int, signs: Vector, a: float, b: float, exact: Callable[[float], Vector]) -> float:
    """Where indicator `j` leaves its domain between `a` and `b`: the Illinois method, with bisections in between."""

    def side(t: float) -> float:
        value = float(exact(t)[j]) * float(signs[j])
        return value if value != 0.0 or signs[j] > 0 else float(np.finfo(float).tiny)  # z = 0 belongs to z <= 0

    fa, fb = side(a), side(b)
    for _ in range(60):  # an indicator that starts at zero: find where it was inside its domain
        if fa > 0:
            break
        middle = 0.5 * (a + b)
        if not a < middle < b:
            return b
        value = side(middle)
        if value > 0:
            a, fa = middle, value
        else:
            b, fb = middle, value
    kept = 0  # which end stayed in the last round
    for count in range(200):
        unit = float(np.spacing(max(abs(a), abs(b))))
        if fa <= 0 or fb == 0.0 or b - a <= 2.0 * unit:
            break
        middle = b - fb * (b - a) / (fb - fa) if count % 4 != 3 else 0.5 * (a + b)
        middle = min(max(middle, a + unit), b - unit)  # the last look is just beside the end that is (almost) the root
        value = side(middle)
        if value > 0:
            a, fa = middle, value
            fb *= 0.5 if kept == 1 else 1.0
            kept = 1
        else:
            b, fb = middle, value
            fa *= 0.5 if kept == -1 else 1.0
            kept = -1
    return b
