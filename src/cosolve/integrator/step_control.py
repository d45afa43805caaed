"""How internal steps are chosen: each rule once, plain enough to be compiled into every integrator that needs it.

The error of a step is measured by `error_norm`, 1 being just acceptable; `step_factor` is the controller that makes the
next step from it. Where an integrator begins, where it ends and when it gives up are the functions below
(Hairer, Norsett and Wanner: Solving Ordinary Differential Equations I, section II.4).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import ceil
from typing import Any, NamedTuple

import numpy as np


def equal_steps(span: float, longest: float) -> int:
    """How many equal steps advance `span`, none longer than `longest` (by more than rounding).

    >>> equal_steps(1.0, 0.1), equal_steps(1.0, 0.3), equal_steps(1.0, 5.0)
    (10, 4, 1)
    """
    return max(1, ceil(span / longest - 1e-9))


def error_norm(error: Any, scale: Any) -> Any:
    """Root mean square of `error / scale`.

    >>> float(error_norm(np.array([3.0, 4.0]), np.array([1.0, 1.0])))
    3.5355339059327378
    """
    return np.sqrt(np.mean((error / scale) ** 2)) if len(error) > 0 else 0.0


def tolerances(x: Any, x_new: Any, rtol: float, atol: float) -> Any:
    """What counts as an error of one between two states.

    >>> tolerances(np.array([1.0, -8.0]), np.array([-2.0, 4.0]), 0.5, 1.0)
    array([2., 5.])
    """
    return atol + rtol * np.maximum(np.abs(x), np.abs(x_new))


def first_step(state: float, slope: float, span: float) -> float:
    """A first guess from the norms of the state and of its slope.

    >>> first_step(1.0, 10.0, 1.0), first_step(0.0, 10.0, 1.0)
    (0.001, 0.001)
    """
    return min(0.01 * state / slope if state > 1e-5 and slope > 1e-5 else 1e-3 * span, span)


def step_factor(error: float, order: int, safety: float, least: float, most: float) -> float:
    """By how much the next step may be longer after an error that grows with the power `order` of the step.

    >>> step_factor(1.0, 5, 0.9, 0.2, 10.0), step_factor(0.0, 5, 0.9, 0.2, 10.0), step_factor(1e9, 5, 0.9, 0.2, 10.0)
    (0.9, 10.0, 0.2)
    """
    return most if error == 0.0 else min(most, max(least, safety * error ** (-1.0 / order)))


def is_last(t: float, h: float, t1: float) -> bool:
    """Whether a step of `h` is to end at `t1`: no sliver of a step is left over.

    >>> is_last(0.9, 0.1, 1.0), is_last(0.9, 0.05, 1.0)
    (True, False)
    """
    return t + h * (1.0 + 1e-10) >= t1


def is_stuck(h: float, t: float, span: float) -> bool:
    """Whether a step is too short to move the time.

    >>> is_stuck(1e-16, 1.0, 1.0), is_stuck(1e-3, 1.0, 1.0)
    (True, False)
    """
    return h < 1e-14 * max(abs(t), abs(span))


class Rules(NamedTuple):
    """What a loop with step control needs."""

    first_step: Callable[..., Any]
    step_factor: Callable[..., Any]
    error_norm: Callable[..., Any]
    tolerances: Callable[..., Any]
    is_last: Callable[..., Any]
    is_stuck: Callable[..., Any]


PYTHON = Rules(first_step, step_factor, error_norm, tolerances, is_last, is_stuck)


@cache
def compiled() -> Rules:
    """The same as machine code, kept on disk."""
    from cosolve.jit import njit

    return Rules(*map(njit(cache=True), PYTHON))
