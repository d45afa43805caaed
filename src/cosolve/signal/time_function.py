"""The value of a function of time that drives inputs: the same numbers and the same complaints wherever it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector, real_array
from cosolve.basics.wording import raised, shortened
from cosolve.errors import NonFiniteError, SubsystemError


def value_at(function: Callable[[float], Any], target: str, size: int, t: float) -> Vector:
    """What `function`, which drives the input `target` of `size` numbers, is at `t`.

    >>> value_at(lambda t: 2.0 * t, "tank.inflow", 2, 0.25)
    array([0.5, 0.5])
    """
    where = f"the function of time that drives '{target}'"
    try:
        given = function(t)
        found = np.array(np.broadcast_to(real_array(given).reshape(-1), (size,)))
    except (TypeError, ValueError) as error:
        raise SubsystemError(
            f"{where} failed at t = {t:.9g}: {raised(error)}; it takes the time and returns {numbers(size)}",
            time=t,
        ) from error
    except Exception as error:
        raise SubsystemError(f"{where} failed at t = {t:.9g}: {raised(error)}", time=t) from error
    if not np.isfinite(found).all():
        raise NonFiniteError(f"{where} returned {shortened(given)} at t = {t:.9g}; expected finite numbers", time=t)
    return found


def numbers(count: int) -> str:
    """Words for so many numbers.

    >>> numbers(1), numbers(3)
    ('one finite number', '3 finite numbers')
    """
    return "one finite number" if count == 1 else f"{count} finite numbers"
