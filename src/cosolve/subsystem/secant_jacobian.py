"""Secants instead of the output Jacobian of a subsystem that has none (Sicklinger (2014), Algorithm 4.5, for fields).

A flow solver knows no derivatives and is too costly for differences; everything else in the system may have exact
Jacobians. Between two subsystem steps in one macro step the outputs change by `dy` while the inputs change by `du`: the
least change of the known slopes that explains this is Broyden's, row by row and, where a pattern says what an output
depends on, for these entries only (Schubert (1970)). Slopes are carried from step to step; a single input and output
give the secant of the source.

Interface Jacobians from a formula of the user's instead of perturbed runs (Lu (2015), App. B).

A coupling body that a load pushes for one short step moves as if nothing else acted on it: its velocity changes by the
integral of the load over the mass, its position by the integral of that. These leading terms are a cheap substitute for
the response of the whole subsystem (docs/theory.md, "Approximate Jacobians"). They are good while `c H^2 / m` and
`d H / m` are far below 1; beyond that they cost stability, which the finite-difference Jacobian keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector, doubles
from cosolve.errors import SetupError
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem, has_capability
from cosolve.subsystem.port import Ports

#: An input that moved by less than this share of its size says nothing about a slope.
_FLOOR = 1e-12


class SecantJacobian(Subsystem):
    """A subsystem whose output Jacobian is learnt from its own steps by Broyden updates.

    For solvers that know no derivatives and are too costly for difference quotients, such as flow solvers. All else is
    that of the subsystem.

    Parameters
    ----------
    subsystem : Subsystem
        The subsystem; it needs rollback.
    pattern : array_like of bool or None, default None
        Which output depends on which input, shape (outputs, inputs). None: all on all.
    initial : array_like or None, default None
        First Jacobian, shape (outputs, inputs). None takes difference quotients in the first macro step, one subsystem
        step per input.

    References
    ----------
    .. [1] S. A. Sicklinger, Stabilized co-simulation of coupled problems including fields and signals, dissertation,
       Technical University of Munich, 2014, Algorithm 4.5.
    .. [2] L. K. Schubert, Modification of a quasi-Newton method for nonlinear equations with a sparse Jacobian,
       Mathematics of Computation 24(109), 1970.

    Examples
    --------
    >>> import cosolve as cs
    >>> def tank(t, H, x, u, new, y):
    ...     new[0] = y[0] = x[0] + H * (u[0] - np.sqrt(x[0]))
    >>> def valve(t, H, x, u, new, y):
    ...     new[0] = y[0] = u[0] ** 2
    >>> one = cs.OneStep(tank, x0=[1.0], y0=[1.0], inputs=["inflow"], outputs=["level"])
    >>> two = cs.OneStep(valve, x0=[0.0], y0=[1.0], inputs=["level"], outputs=["flow"])
    >>> system = cs.System({"tank": one, "valve": cs.SecantJacobian(two)})
    >>> system.connect("tank.level", "valve.level")
    >>> system.connect("valve.flow", "tank.inflow")
    >>> run = cs.simulate(system, t_end=1.0, method=cs.Implicit(degree=1, tol=1e-12), step=0.1)
    >>> bool(abs(run["valve.flow"] - run["tank.level"] ** 2)[1:].max() < 1e-12)
    True
    """

    def __init__(
        self, subsystem: Subsystem, pattern: npt.ArrayLike | None = None, initial: npt.ArrayLike | None = None
    ) -> None:
        if not isinstance(subsystem, Subsystem) or not has_capability(subsystem, "rollback"):
            raise SetupError("SecantJacobian: give a cosolve.Subsystem with rollback (save and restore)")
        self.subsystem = subsystem
        self.inputs, self.outputs = subsystem.inputs, subsystem.outputs
        self.known_variables, self.given_values = subsystem.known_variables, subsystem.given_values
        self.model_file = subsystem.model_file
        self.overshoots, self.variable_step = subsystem.overshoots, subsystem.variable_step
        self.input_form, self.least_degree = subsystem.input_form, subsystem.least_degree
        into, self._out = Ports(self.inputs), Ports(self.outputs)
        shape = (self._out.length, into.length)
        self._size = np.concatenate([np.full(port.length, port.nominal) for port in into.ports] or [np.zeros(0)])
        self._pattern = np.ones(shape) if pattern is None else _matrix("pattern", pattern, shape)
        self._initial = None if initial is None else _matrix("initial", initial, shape)
        self._slopes: Matrix | None = self._initial
        self._last: tuple[float, Vector, Vector] | None = None
        self._tried: list[Vector] = []  # inputs of the subsystem steps of this step

    @property
    def noise(self) -> float:  # type: ignore[override]
        """That of the subsystem."""
        return self.subsystem.noise

    def __getattr__(self, name: str) -> Any:
        """Capabilities of the subsystem (called for what is not defined here)."""
        if name in ("subsystem", "native", "resolve") or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.subsystem, name)

    def start(self, t0: float) -> Any:
        self._slopes, self._last, self._tried = self._initial, None, []
        return self.subsystem.start(t0)

    def portable_state(self) -> Any:
        """With what was learnt, so that a saved run goes on with the same bits."""
        return self.subsystem.portable_state(), self._slopes

    def set_portable_state(self, state: Any) -> None:
        inner, self._slopes = state
        self._last, self._tried = None, []
        self.subsystem.set_portable_state(inner)

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        y = self.subsystem.advance(t0, t1, u)
        self._learn(t0, u.end.copy(), self._flat(y))
        return y

    def jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        """`d outputs(t1) / d eps` for inputs `u + eps * weight(s)` where `weight` ends at 1, as far as it is known."""
        if self._slopes is None:
            self._slopes = self._differences(t0, t1, u, weight)
        return self._slopes * float(weight.sum())

    def _flat(self, y: Any) -> Vector:
        if isinstance(y, dict):
            return np.concatenate([np.ravel(y[port.name]) for port in self._out.ports])
        return np.array(y, dtype=np.float64).reshape(-1)

    def _learn(self, t0: float, u: Vector, y: Vector) -> None:
        same_step = self._last is not None and self._last[0] == t0
        if same_step and any(np.array_equal(u, tried) for tried in self._tried):
            return  # a subsystem step is repeated to look at something else; that teaches nothing
        self._tried = [*self._tried, u] if same_step else [u]
        last, self._last = self._last, (t0, u, y)
        if last is None or last[0] != t0 or self._slopes is None:
            return
        moved = (u - last[1]) / self._size
        moved[np.abs(moved) * self._size <= _FLOOR * np.maximum(self._size, np.abs(u))] = 0.0
        length = self._pattern @ moved**2
        known = length > 0.0
        if not known.any():
            return
        missing = (y - last[2] - self._slopes @ (moved * self._size))[known] / length[known]
        slopes = self._slopes.copy()
        slopes[known] += missing[:, np.newaxis] * (self._pattern[known] * (moved / self._size))
        if np.isfinite(slopes).all():
            self._slopes = slopes

    def _differences(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        from cosolve.signal.polynomial import Polynomial

        state = self.subsystem.save()
        middle = self._flat(self.subsystem.advance(t0, t1, u))
        D = np.zeros(self._pattern.shape)
        for k, size in enumerate(self._size):
            by = 1e-6 * max(size, abs(float(u.end[k])))
            coefficients = np.zeros((max(len(weight), len(u.coefficients)), len(self._size)))
            coefficients[: len(u.coefficients)] = u.coefficients
            coefficients[: len(weight), k] += by * weight
            self.subsystem.restore(state)
            D[:, k] = (self._flat(self.subsystem.advance(t0, t1, Polynomial(u.t0, u.H, coefficients))) - middle) / by
        self.subsystem.restore(state)
        return D * self._pattern


def _matrix(name: str, given: npt.ArrayLike, shape: tuple[int, int]) -> Matrix:
    found = doubles(given)
    if found.shape != shape or not np.isfinite(found).all():
        raise SetupError(
            f"SecantJacobian: {name} must have {shape[0]} rows (outputs) of {shape[1]} finite numbers (inputs)"
        )
    return found


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
