"""Macro-step control from the predictor/corrector difference (Schmoll (2015), 2.4.2.3).

The extrapolated and the computed coupling variables at the end of a step differ by `O(H^(p+1))`: a free estimate.
Explicit methods use it for the next step only; where every subsystem can go back, a bad step is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import is_number, not_negative, positive
from cosolve.errors import SetupError
from cosolve.stepsize.clock import refuse_bad_step

#: Errors count as at least this, so that nothing is divided by zero.
TINY = 1e-300


@dataclass(frozen=True)
class Adaptive:
    """Error-controlled macro steps.

    Parameters
    ----------
    rtol : float, default 1e-6
        Relative tolerance of the local error of the coupling variables.
    atol : float or None, default None
        Absolute tolerance in units of the nominal values of ports. None is `rtol`.
    first_step : float or None, default None
        First macro step in seconds. None: 1e-4 of the run, or less if steps cannot be repeated and `rtol` is small.
        Required for a `Stepper` without `t_end`.
    min_step : float, default 0.0
        Smallest macro step in seconds.
    max_step : float, default inf
        Largest macro step in seconds.
    controller : {"I", "PI"}, default "PI"
        Step-size controller.
    q : float, default 0.95
        Safety factor of the proposed step, at most 1.
    q_min : float, default 0.25
        Smallest ratio of consecutive steps.
    q_max : float, default 4.0
        Largest ratio of consecutive steps.
    alpha : float, default 0.7
        Exponent of the error of this step in the PI controller.
    beta : float, default 0.4
        Exponent of the error of the last step in the PI controller.
    reject : bool or None, default None
        Repeat steps with an error estimate above 1. None: if all subsystems have rollback. True requires rollback,
        False never repeats a step.
    weights : {"largest", "newest"}, default "largest"
        Size of a coupling variable in the estimate: its largest magnitude so far, or `max(|z|, |predicted|)`.

    Notes
    -----
    The estimate is the root mean square over all coupling variables of::

        (z - predicted) / (atol * nominal + rtol * size),

    or of what a correction has left of the residual where that is more; 1 is just acceptable. If a port states no
    nominal value and `atol` is None, the largest magnitude of all coupling variables so far is its nominal value as
    long as it is below 1. With order `p = degree + 1` the proposal of the controllers is::

        I:   H error**(-1 / p),      PI:   H error**(-alpha / p) error_before**(beta / p)

    and the next step `min(max_step, q_max H, max(min_step, q_min H, q * proposal))`.

    References
    ----------
    .. [1] R. Schmoll, Co-Simulation und Solverkopplung, dissertation, University of Kassel, 2015, 2.4.2.3, Eqs. 2.29 to
       2.32. Eq. 2.29 is `weights="newest"` with `atol = rtol` and nominal values 1.

    Examples
    --------
    >>> import cosolve as cs
    >>> control = cs.Adaptive(rtol=1e-4, first_step=1e-3, max_step=1e-2)
    >>> round(control.next_step(1e-3, 1.0, None, degree=1), 9)       # the estimate hits the tolerance: H * q
    0.00095
    """

    rtol: float = 1e-6
    atol: float | None = None
    first_step: float | None = None
    min_step: float = 0.0
    max_step: float = np.inf
    controller: Literal["I", "PI"] = "PI"
    q: float = 0.95
    q_min: float = 0.25
    q_max: float = 4.0
    alpha: float = 0.7
    beta: float = 0.4
    reject: bool | None = None
    weights: Literal["largest", "newest"] = "largest"

    def __post_init__(self) -> None:
        positive("Adaptive", "rtol", self.rtol)
        if self.atol is not None:
            not_negative("Adaptive", "atol", self.atol)
        if self.controller not in ("I", "PI"):
            raise SetupError(f"Adaptive: controller must be 'I' or 'PI', not {self.controller!r}")
        if self.first_step is not None:
            refuse_bad_step(self.first_step, "Adaptive: first_step")
        for name in ("min_step", "q", "q_min", "q_max", "alpha", "beta"):
            if not is_number(getattr(self, name)):
                raise SetupError(f"Adaptive: {name} must be a finite number, not {getattr(self, name)!r}")
        if not is_number(self.max_step) and not (isinstance(self.max_step, float) and self.max_step == np.inf):
            raise SetupError(f"Adaptive: max_step must be a positive number, not {self.max_step!r}")
        if self.weights not in ("largest", "newest"):
            raise SetupError(f"Adaptive: weights must be 'largest' or 'newest', not {self.weights!r}")
        if self.reject not in (None, True, False):
            raise SetupError(f"Adaptive: reject must be True, False or None, not {self.reject!r}")
        if not 0 <= self.min_step <= self.max_step or self.max_step <= 0:
            raise SetupError(f"Adaptive: needs 0 <= min_step <= max_step, got {self.min_step} and {self.max_step}")
        if not (0 < self.q_min < 1 < self.q_max and 0 < self.q <= 1):
            raise SetupError(
                f"Adaptive: needs 0 < q_min < 1 < q_max and 0 < q <= 1, got q_min = {self.q_min}, q_max = {self.q_max} "
                f"and q = {self.q}"
            )

    def estimate(
        self,
        z: Vector,
        predicted: Vector,
        nominal: Vector,
        largest: Vector | float = 0.0,
        left: Vector | None = None,
    ) -> float:
        """Compute the weighted error estimate of a step.

        Parameters
        ----------
        z : ndarray
            Coupling variables at the end of the step.
        predicted : ndarray
            Their extrapolated values.
        nominal : ndarray
            Their nominal values.
        largest : ndarray or float, default 0.0
            Their largest magnitudes so far, with `weights="largest"`.
        left : ndarray or None, default None
            Residual of the values that were used. It counts where it is larger than the distance to `predicted`.

        Returns
        -------
        float
            The estimate; 1 is just acceptable.
        """
        if not len(z):
            return 0.0
        atol = self.rtol if self.atol is None else self.atol
        weight = atol * nominal + self.rtol * np.maximum(np.maximum(np.abs(z), np.abs(predicted)), largest)
        off = np.abs(z - predicted)
        if left is not None:
            off = np.maximum(off, np.abs(left))
        squares = (off / np.maximum(weight, TINY)) ** 2
        return float(np.sqrt(squares.cumsum()[-1] / len(z)))  # added in order, as the compiled loop does

    def next_step(self, H: float, error: float, previous: float | None, degree: int) -> float:
        """Compute the length of the next step.

        Parameters
        ----------
        H : float
            Length of the last step in seconds.
        error : float
            Its error estimate.
        previous : float or None
            Error estimate of the step before; None if there is none.
        degree : int
            Degree of the coupling variables.

        Returns
        -------
        float
            The length in seconds.
        """
        return next_length(H, error, np.nan if previous is None else previous, degree + 1, self.numbers)

    def shorter_step(self, H: float, error: float, degree: int) -> float:
        """Compute the length with which a rejected step is repeated.

        Parameters
        ----------
        H : float
            Length of the rejected step in seconds.
        error : float
            Its error estimate.
        degree : int
            Degree of the coupling variables.

        Returns
        -------
        float
            The length in seconds.
        """
        return shorter_length(H, error, degree + 1, self.numbers)

    @cached_property
    def numbers(self) -> tuple[float, ...]:
        """The settings as plain numbers, for `next_length` and for compiled engines."""
        alpha, beta = (self.alpha, self.beta) if self.controller == "PI" else (1.0, 0.0)
        limits = float(self.min_step), float(self.max_step), self.q, self.q_min, self.q_max
        return (*(float(number) for number in (*limits, alpha, beta)), float(self.controller == "PI"))


def next_length(H: float, error: float, previous: float, order: int, numbers: tuple[float, ...]) -> float:
    """Length of the step after one of length `H` with this error (`previous`: of the step before; NaN: none)."""
    H_min, H_max, q, q_min, q_max, alpha, beta, pi = numbers
    error = max(error, TINY)
    if pi == 0.0 or previous != previous:
        proposal: float = H * error ** (-alpha / order)
    else:
        proposal = H * error ** (-alpha / order) * max(previous, TINY) ** (beta / order)
    return min(H_max, q_max * H, max(H_min, q_min * H, q * proposal))


def shorter_length(H: float, error: float, order: int, numbers: tuple[float, ...]) -> float:
    """Length of the repetition of a rejected step."""
    H_min, _, q, q_min, _, _, _, _ = numbers
    shrink: float = max(q_min, q * error ** (-1.0 / order))
    return max(H_min, H * shrink)


def is_no_gain(H: float, error: float, before: float, error_before: float) -> bool:
    """True when a step at most half as long as an attempt `before` has about the same error.

    >>> is_no_gain(0.25, 0.9, 1.0, 1.0), is_no_gain(0.25, 0.1, 1.0, 1.0)
    (True, False)
    """
    return H <= 0.5 * before and error > 0.7 * error_before
