"""Interface Jacobians from a formula of the user's instead of perturbed runs (Lu (2015), App. B).

A coupling body that a load pushes for one short step moves as if nothing else acted on it: its velocity changes by the
integral of the load over the mass, its position by the integral of that. These leading terms are a cheap substitute for
the response of the whole subsystem (docs/theory.md, "Approximate Jacobians"). They are good while `c H^2 / m` and
`d H / m` are far below 1; beyond that they cost stability, which the finite-difference Jacobian keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import SetupError
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem, has_capability

Formula = Callable[[Vector, Vector, float, float], Any]


class ApproximateJacobian(Subsystem):
    """A subsystem whose output Jacobian over a macro step is given by a formula.

    Parameters
    ----------
    subsystem : Subsystem
        The subsystem; it needs `get_state` and `set_state`. All else is its own.
    formula : callable
        `formula(x, u, by_velocity, by_position)` returns `d outputs / d inputs`, one row per output. `x` is the state
        at the start of the step, `u` the inputs at its end. `by_velocity` is the integral of the input change over the
        step, the response of `v' = u`; `by_position` the integral of that, the response of `x'' = u`.

    Notes
    -----
    The change of the input ends at 1. For degree 0 the integrals are `H` and `H**2 / 2`. A body of mass m that is
    loaded moves, for a short step, as if nothing else acted on it; the formula is good while `c H**2 / m` and `d H / m`
    are far below 1. Beyond that stability may be lost: compare `cs.analysis.spectral_radius` with that of
    `SemiImplicit(jacobian="difference")`.

    References
    ----------
    .. [1] D. Lu, Semi-implizite Co-Simulationsverfahren, dissertation, Technical University of Darmstadt, 2015,
       Appendix B.

    Examples
    --------
    >>> import cosolve as cs
    >>> mass = cs.Linear([[0, 1], [-9, -3]], [[0], [1]], [[1, 0], [0, 1]], x0=[1, 0], inputs=["f"], outputs=["x", "v"])
    >>> free = cs.ApproximateJacobian(mass, lambda x, u, by_velocity, by_position: [[by_position], [by_velocity]])
    >>> from cosolve.signal import Polynomial
    >>> u = Polynomial(0.0, 0.01, np.zeros((1, 1)))
    >>> exact, formula = (s.jacobian(0.0, 0.01, u, np.ones(1)).ravel().tolist() for s in (mass, free))
    >>> print(*(f"{a:.3e} {b:.3e}" for a, b in zip(exact, formula)), sep="; ")
    4.950e-05 5.000e-05; 9.850e-03 1.000e-02
    """

    def __init__(self, subsystem: Subsystem, formula: Formula) -> None:
        if not isinstance(subsystem, Subsystem):
            raise SetupError(f"ApproximateJacobian: give a cosolve.Subsystem, not a {type(subsystem).__name__}")
        if not callable(formula):
            raise SetupError("ApproximateJacobian: formula must be a function of (x, u, by_velocity, by_position)")
        if not has_capability(subsystem, "state"):
            raise SetupError(
                f"ApproximateJacobian: {type(subsystem).__name__} does not give its state; define get_state() and "
                "set_state(x) there"
            )
        self.subsystem, self.formula = subsystem, formula
        self.inputs, self.outputs = subsystem.inputs, subsystem.outputs
        self.known_variables, self.given_values = subsystem.known_variables, subsystem.given_values
        self.model_file = subsystem.model_file
        self.overshoots, self.concurrent = subsystem.overshoots, subsystem.concurrent
        self.variable_step, self.input_form = subsystem.variable_step, subsystem.input_form

    @property
    def noise(self) -> float:  # type: ignore[override]
        """That of the subsystem."""
        return self.subsystem.noise

    def __getattr__(self, name: str) -> Any:
        """Capabilities of the subsystem (called for what is not defined here)."""
        if name in ("subsystem", "formula") or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.subsystem, name)

    def start(self, t0: float) -> Any:
        return self.subsystem.start(t0)

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        return self.subsystem.advance(t0, t1, u)

    def jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        """`d outputs(t1) / d eps` for inputs `u + eps * weight(s)`, by the formula."""
        by_velocity, by_position = perturbation_integrals(weight, u.H)
        return np.asarray(self.formula(self.subsystem.get_state(), u.end, by_velocity, by_position), dtype=np.float64)


def perturbation_integrals(weight: Vector, H: float) -> tuple[float, float]:
    """Integral over the step, and integral of that, of the polynomial with coefficients `weight` in `s = t / H`.

    >>> perturbation_integrals(np.array([0.0, 1.0]), 1.0)                     # a ramp: 1/2 and 1/6
    (0.5, 0.16666666666666669)
    """
    powers = np.arange(len(weight))
    return H * float(weight @ (1.0 / (powers + 1))), H**2 * float(weight @ (1.0 / (powers + 1) - 1.0 / (powers + 2)))
