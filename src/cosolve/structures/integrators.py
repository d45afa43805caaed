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
from cosolve.basics.wording import did_you_mean, shown
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
class StructureIntegrator:
    """A time integration rule for structures.

    Made by `StructureIntegrator.hht(0.1)` and the like. Those that need no number have a name for `SecondOrder`:
    "backward-euler", "generalised-alpha", "hht", "trapezoidal", "bdf2", "central-differences".

    Parameters
    ----------
    name : str
        Name for messages.
    rule : callable
        `rule(past, h)` returns the coefficients of the Notes.
    alpha_m : float, default 0.0
        Inertia counts with the weight `1 - alpha_m` at the end of the step.
    alpha_f : float, default 0.0
        All other forces count with the weight `1 - alpha_f` at the end of the step.
    keeps_acceleration : bool, default True
        The acceleration at the start of a step enters.
    explicit : bool, default False
        Displacements do not depend on the acceleration at the end of the step.
    starter : StructureIntegrator or None, default None
        Rule for the first step of a two-step rule.

    Notes
    -----
    A rule expresses the motion at the end of a step by the acceleration there::

        q1 = q_hat + c_q a1,    v1 = v_hat + c_v a1,

    with `q_hat`, `v_hat` linear in the past.

    References
    ----------
    .. [1] S. A. Sicklinger, Stabilized co-simulation of coupled problems including fields and signals, dissertation,
       Technical University of Munich, 2014, 3.1.

    Examples
    --------
    >>> StructureIntegrator.hht(0.1)
    <HHT>
    """

    name: str
    rule: Callable[[Past, float], Rates]
    alpha_m: float = 0.0
    alpha_f: float = 0.0
    keeps_acceleration: bool = True
    explicit: bool = False
    starter: StructureIntegrator | None = None

    def at(self, past: Past) -> StructureIntegrator:
        """Return the rule for the next step.

        Parameters
        ----------
        past : Past
            What the step starts from.

        Returns
        -------
        StructureIntegrator
            The starter if the rule needs an earlier step and there is none, else this rule.
        """
        return self.starter if self.starter is not None and past.h_old == 0.0 else self

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @staticmethod
    def backward_euler() -> StructureIntegrator:
        """Make the backward Euler rule: order 1, strong damping, `v1 = v0 + h a1`, `q1 = q0 + h v1`.

        Returns
        -------
        StructureIntegrator
            The rule.

        Examples
        --------
        >>> import numpy as np
        >>> rates = StructureIntegrator.backward_euler().rule(_rest(1.0), 0.1)
        >>> float(rates.q_hat[0]), rates.c_q, rates.c_v
        (1.0, 0.010000000000000002, 0.1)
        """
        return StructureIntegrator("backward Euler", _backward_euler, keeps_acceleration=False)

    @staticmethod
    def generalised_alpha(
        rho_inf: float | None = None,
        *,
        alpha_m: float = 0.5,
        alpha_f: float = 0.5,
        beta: float = 0.25,
        gamma: float = 0.5,
    ) -> StructureIntegrator:
        """Make the generalised-alpha rule: order 2. The defaults do not damp.

        Parameters
        ----------
        rho_inf : float or None, default None
            Spectral radius at infinite frequency, 0 to 1; replaces the other parameters.
        alpha_m : float, default 0.5
            Weight of the old time in the inertia.
        alpha_f : float, default 0.5
            Weight of the old time in the other forces.
        beta : float, default 0.25
            Newmark's beta.
        gamma : float, default 0.5
            Newmark's gamma.

        Returns
        -------
        StructureIntegrator
            The rule.

        Notes
        -----
        With `rho_inf`: `alpha_m = (2 rho - 1) / (rho + 1)`, `alpha_f = rho / (rho + 1)`, `gamma = 1/2 - alpha_m +
        alpha_f`, `beta = (1 - alpha_m + alpha_f)^2 / 4`.

        References
        ----------
        .. [1] J. Chung, G. M. Hulbert, A time integration algorithm for structural dynamics with improved numerical
           dissipation: the generalized-alpha method, Journal of Applied Mechanics 60(2), 1993.

        Examples
        --------
        >>> rule = StructureIntegrator.generalised_alpha(rho_inf=0.5)
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
                f"generalised_alpha: needs alpha_m < 1, alpha_f < 1, beta > 0 and gamma > 0, not alpha_m = "
                f"{alpha_m:g}, alpha_f = {alpha_f:g}, beta = {beta:g}, gamma = {gamma:g}; for explicit steps "
                "use 'central-differences'"
            )
        return StructureIntegrator("generalised-alpha", _Newmark(beta, gamma), alpha_m, alpha_f)

    @staticmethod
    def hht(alpha: float = 0.05) -> StructureIntegrator:
        """Make the HHT rule: order 2 with numerical damping.

        Parameters
        ----------
        alpha : float, default 0.05
            Damping, from 0 (the trapezoidal rule) to 1/3.

        Returns
        -------
        StructureIntegrator
            The rule.

        References
        ----------
        .. [1] H. M. Hilber, T. J. R. Hughes, R. L. Taylor, Improved numerical dissipation for time integration
           algorithms in structural dynamics, Earthquake Engineering and Structural Dynamics 5(3), 1977.

        Examples
        --------
        >>> StructureIntegrator.hht(0.0).alpha_f
        0.0
        """
        if not (is_number(alpha) and 0 <= alpha <= 1 / 3):
            raise SetupError(f"hht: alpha must lie between 0 and 1/3, not {alpha!r}")
        return StructureIntegrator("HHT", _Newmark(0.25 * (1 + alpha) ** 2, 0.5 + alpha), 0.0, float(alpha))

    @staticmethod
    def trapezoidal() -> StructureIntegrator:
        """Make the trapezoidal rule (Newmark, beta = 1/4, gamma = 1/2): order 2, keeps the energy of linear structures.

        Returns
        -------
        StructureIntegrator
            The rule.

        Examples
        --------
        >>> StructureIntegrator.trapezoidal().rule(_rest(1.0), 0.2)[2:]
        (0.010000000000000002, 0.1)
        """
        return StructureIntegrator("trapezoidal rule", _Newmark(0.25, 0.5))

    @staticmethod
    def bdf2(starter: StructureIntegrator | str = "generalised-alpha") -> StructureIntegrator:
        """Make the two-step backward differences of `q` and `v`: order 2, variable steps.

        Parameters
        ----------
        starter : StructureIntegrator or str, default "generalised-alpha"
            One-step rule for the first step, unless `SecondOrder` is given the values one step before its start.

        Returns
        -------
        StructureIntegrator
            The rule.

        Examples
        --------
        >>> StructureIntegrator.bdf2().starter
        <generalised-alpha>
        """
        starter = structure_integrator(starter)
        if starter.starter is not None:
            raise SetupError(f"bdf2: the starter must be a one-step rule such as 'generalised-alpha', not {starter!r}")
        return StructureIntegrator("BDF2", _bdf2, keeps_acceleration=False, starter=starter)

    @staticmethod
    def central_differences() -> StructureIntegrator:
        """Make the explicit central differences (Newmark, beta = 0): order 2, stable for `h < 2 / omega_max`.

        Returns
        -------
        StructureIntegrator
            The rule.

        Notes
        -----
        The mass must be lumped. Damping is taken at the end of the step, so `M + h/2 D` is factorised once.

        Examples
        --------
        >>> StructureIntegrator.central_differences().explicit
        True
        """
        return StructureIntegrator("central differences", _Newmark(0.0, 0.5), explicit=True)


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


def _bdf2(past: Past, h: float) -> Rates:
    w = h / past.h_old
    lead, now, old = (1 + 2 * w) / (1 + w), 1 + w, w * w / (1 + w)  # 3/2, 2, 1/2 on a uniform grid
    c = h / lead
    v_hat = (now * past.v - old * past.v_old) / lead
    q_hat = (now * past.q - old * past.q_old) / lead + c * v_hat
    return Rates(q_hat, v_hat, c * c, c)


_BY_NAME: dict[str, Callable[[], StructureIntegrator]] = {
    "backward-euler": StructureIntegrator.backward_euler,
    "generalised-alpha": StructureIntegrator.generalised_alpha,
    "hht": StructureIntegrator.hht,
    "trapezoidal": StructureIntegrator.trapezoidal,
    "bdf2": StructureIntegrator.bdf2,
    "central-differences": StructureIntegrator.central_differences,
}


def structure_integrator(given: StructureIntegrator | str) -> StructureIntegrator:
    """The rule that is given, or the one of that name.

    >>> structure_integrator("generalised-alpha")
    <generalised-alpha>
    """
    if isinstance(given, StructureIntegrator):
        return given
    if not isinstance(given, str):
        raise SetupError(
            f"SecondOrder: the integrator is a name such as 'trapezoidal' or a StructureIntegrator, not {given!r}"
        )
    made = _BY_NAME.get(given.lower().replace("_", "-"))
    if made is None:
        raise SetupError(f"SecondOrder: there is no integrator '{shown(given)}'; {did_you_mean(given, _BY_NAME)}")
    return made()


def _rest(q: float) -> Past:
    """One mass at rest (for the examples above)."""
    import numpy as np

    at, zero = np.array([q]), np.zeros(1)
    return Past(at, zero, zero, at, zero, np.zeros(0))
