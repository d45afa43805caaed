"""Time integration rules for second-order equations, all in one form (Sicklinger (2014), 3.1).

A rule expresses displacement and velocity at the end of a step by the acceleration there,

    q1 = q_hat + c_q a1,    v1 = v_hat + c_v a1,

with `q_hat`, `v_hat` linear in the past, and says at which time the balance of forces holds: inertia at the weight
`1 - alpha_m`, everything else at `1 - alpha_f` of the end of the step. Explicit rules have `c_q = 0`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import is_number
from cosolve.errors import SetupError


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """What a step starts from: `q`, `v`, `a` at its beginning, and `q`, `v` one step of length `h_old` earlier.

    `h_old = 0` says that there is no earlier step. `reaction` are the forces at the prescribed degrees of freedom. The
    same class carries derivatives of these values, one column per input.
    """

    q: Vector | Matrix
    v: Vector | Matrix
    a: Vector | Matrix
    q_old: Vector | Matrix
    v_old: Vector | Matrix
    reaction: Vector | Matrix
    h_old: float = 0.0


class Rates(NamedTuple):
    """`q1 = q_hat + c_q a1`, `v1 = v_hat + c_v a1`."""

    q_hat: Any
    v_hat: Any
    c_q: float
    c_v: float


@dataclass(frozen=True)
class Integrator:
    """A time integration rule; made by `backward_euler()`, `generalised_alpha()` and the other functions here.

    `starter` is the rule for a first step without a past (two-step rules only); `keeps_acceleration` tells whether the
    acceleration at the beginning of a step enters.
    """

    name: str
    rule: Callable[[Past, float], Rates]
    alpha_m: float = 0.0
    alpha_f: float = 0.0
    keeps_acceleration: bool = True
    explicit: bool = False
    starter: Integrator | None = None

    def at(self, past: Past) -> Integrator:
        """The rule that crosses the next step: the starter where the past is missing."""
        return self.starter if self.starter is not None and past.h_old == 0.0 else self

    def __repr__(self) -> str:
        return f"<{self.name}>"


def backward_euler() -> Integrator:
    """First order, strongly damping: `v1 = v0 + h a1`, `q1 = q0 + h v1` (Eqs. 3.5-3.7).

    >>> import numpy as np
    >>> rates = backward_euler().rule(_rest(1.0), 0.1)
    >>> float(rates.q_hat[0]), rates.c_q, rates.c_v
    (1.0, 0.010000000000000002, 0.1)
    """
    return Integrator("backward Euler", _backward_euler, keeps_acceleration=False)


def _backward_euler(past: Past, h: float) -> Rates:
    return Rates(past.q + h * past.v, past.v, h * h, h)


@dataclass(frozen=True)
class _Newmark:
    """Newmark's approximations, here solved for `q1` and `v1` (Eqs. 3.9, 3.10)."""

    beta: float
    gamma: float

    def __call__(self, past: Past, h: float) -> Rates:
        q_hat = past.q + h * past.v + (h * h * (0.5 - self.beta)) * past.a
        return Rates(q_hat, past.v + (h * (1.0 - self.gamma)) * past.a, h * h * self.beta, h * self.gamma)


def generalised_alpha(
    rho_inf: float | None = None,
    *,
    alpha_m: float = 0.5,
    alpha_f: float = 0.5,
    beta: float = 0.25,
    gamma: float = 0.5,
) -> Integrator:
    """Generalised-alpha of Chung and Hulbert (1993); the defaults are those of Sicklinger (2014): order 2, no damping.

    With `rho_inf` (spectral radius at infinite frequency, 0 to 1) the four parameters follow: `alpha_m = (2 rho -
    1)/(rho + 1)`, `alpha_f = rho/(rho + 1)`, `gamma = 1/2 - alpha_m + alpha_f`, `beta = (1 - alpha_m + alpha_f)^2/4`.

    >>> rule = generalised_alpha(rho_inf=0.5)
    >>> rule.alpha_m, round(rule.alpha_f, 12)
    (0.0, 0.333333333333)
    """
    if rho_inf is not None:
        if not (is_number(rho_inf) and 0 <= rho_inf <= 1):
            raise SetupError(f"generalised_alpha: rho_inf must lie between 0 and 1, not {rho_inf!r}")
        alpha_m, alpha_f = (2 * rho_inf - 1) / (rho_inf + 1), rho_inf / (rho_inf + 1)
        gamma = 0.5 - alpha_m + alpha_f
        beta = 0.25 * (1 - alpha_m + alpha_f) ** 2
    for name, value in (("alpha_m", alpha_m), ("alpha_f", alpha_f), ("beta", beta), ("gamma", gamma)):
        if not is_number(value):
            raise SetupError(f"generalised_alpha: {name} must be a number, not {value!r}")
    if not (alpha_m < 1 and alpha_f < 1 and beta > 0 and gamma > 0):
        raise SetupError(
            f"generalised_alpha: needs alpha_m < 1, alpha_f < 1, beta > 0 and gamma > 0, not alpha_m = {alpha_m:g}, "
            f"alpha_f = {alpha_f:g}, beta = {beta:g}, gamma = {gamma:g}; for explicit steps use central_differences()"
        )
    return Integrator("generalised-alpha", _Newmark(beta, gamma), alpha_m, alpha_f)


def hht(alpha: float = 0.05) -> Integrator:
    """HHT, Hilber et al. (1977): numerical damping `alpha` from 0 (the trapezoidal rule) to 1/3, order 2.

    >>> hht(0.0).alpha_f
    0.0
    """
    if not (is_number(alpha) and 0 <= alpha <= 1 / 3):
        raise SetupError(f"hht: alpha must lie between 0 and 1/3, not {alpha!r}")
    return Integrator("HHT", _Newmark(0.25 * (1 + alpha) ** 2, 0.5 + alpha), 0.0, float(alpha))


def trapezoidal() -> Integrator:
    """The trapezoidal rule (Newmark with beta = 1/4, gamma = 1/2): order 2, keeps the energy of linear structures.

    >>> trapezoidal().rule(_rest(1.0), 0.2)[2:]
    (0.010000000000000002, 0.1)
    """
    return Integrator("trapezoidal rule", _Newmark(0.25, 0.5))


def bdf2(starter: Integrator | None = None) -> Integrator:
    """Two-step backward differences, applied to `q` and to `v` (Eq. 3.17); variable steps allowed.

    The first step is taken by `starter` (generalised-alpha, which keeps order 2; backward Euler would not) unless the
    subsystem is given the values one step before its start.

    >>> bdf2().starter
    <generalised-alpha>
    """
    starter = generalised_alpha() if starter is None else starter
    if not isinstance(starter, Integrator) or starter.starter is not None:
        raise SetupError(f"bdf2: the starter must be a one-step rule such as generalised_alpha(), not {starter!r}")
    return Integrator("BDF2", _bdf2, keeps_acceleration=False, starter=starter)


def _bdf2(past: Past, h: float) -> Rates:
    w = h / past.h_old
    lead, now, old = (1 + 2 * w) / (1 + w), 1 + w, w * w / (1 + w)  # 3/2, 2, 1/2 on a uniform grid
    c = h / lead
    v_hat = (now * past.v - old * past.v_old) / lead
    q_hat = (now * past.q - old * past.q_old) / lead + c * v_hat
    return Rates(q_hat, v_hat, c * c, c)


def central_differences() -> Integrator:
    """Explicit central differences (Newmark with beta = 0): order 2, stable for `h < 2 / omega_max`; lumped mass only.

    The damping matrix is taken at the end of the step, so `M + h/2 D` is factorised, once.

    >>> central_differences().explicit
    True
    """
    return Integrator("central differences", _Newmark(0.0, 0.5), explicit=True)


def _rest(q: float) -> Past:
    """One mass at rest (for the examples above)."""
    import numpy as np

    at, zero = np.array([q]), np.zeros(1)
    return Past(at, zero, zero, at, zero, np.zeros(0))
