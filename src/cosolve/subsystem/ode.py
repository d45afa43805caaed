"""Ordinary differential equations given by a Python right-hand side, with a choice of integrators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import initial_state, is_positive, positive, refuse_no_function
from cosolve.basics.scale import state_tolerance
from cosolve.basics.wording import shortened
from cosolve.errors import NonFiniteError, SetupError, SubsystemError
from cosolve.integrator.kernels import FIXED
from cosolve.integrator.libraries import SCIPY_METHODS, Cvode, SciPy
from cosolve.integrator.rosenbrock import Rosenbrock
from cosolve.integrator.runge_kutta import DormandPrince, FixedStep, StiffError
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import PortLike
from cosolve.subsystem.signatures import refuse_wrong_arguments, with_parameters

if TYPE_CHECKING:
    from cosolve.subsystem.native import Native

INTEGRATORS = ("auto", "dopri5", "rodas4", *FIXED, *SCIPY_METHODS, "cvode")

# An explicit solver that needs more internal steps than this for one macro step makes "auto" turn stiff.
_AUTO_MAX_STEPS = 1000


class Ode(Subsystem):
    """Ordinary differential equations given by a right-hand side.

    Parameters
    ----------
    rhs : callable
        `rhs(t, x, u)` returns `x'`, one number per state. `x` and `u` are flat arrays. If it is jitted by numba, the
        integration runs compiled.
    output : callable
        `output(t, x, u)` returns the outputs.
    x0 : array_like
        Initial state.
    inputs : sequence of str, (str, int) or Port
        Input ports.
    outputs : sequence of str, (str, int) or Port
        Output ports.
    integrator : str, default "auto"
        "auto": adaptive Dormand-Prince, changes to Radau for good if the problem is stiff. "dopri5": Dormand-Prince.
        "rodas4": Rosenbrock, stiff. "ode1" to "ode5": fixed steps. "RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA":
        SciPy. "cvode": SUNDIALS, stiff (extra `cosolve[sundials]`).
    rtol : float, default 1e-8
        Relative tolerance of the integrator.
    atol : float or None, default None
        Absolute tolerance in the units of the states. None is 1e-10 of the smallest start value other than 0 (which
        counts as at least 1/8192 of the largest), or 1e-10 where all are 0.
    parameters : mapping or None, default None
        Numbers by name, such as `{"mass": 2.0}`. With them both functions get one more argument, `rhs(t, x, u, p)`, and
        read `p.mass`. `System.at` and `sweep` know them as `"name.mass"`.
    internal_step : float or None, default None
        Step of the integrators with fixed steps in seconds; required there, refused elsewhere.

    Raises
    ------
    SetupError
        If an argument is refused.

    Notes
    -----
    Equations::

        x' = rhs(t, x, u),      y = output(t, x, u)

    The integrator starts anew at each macro point; one-step methods ("dopri5", "rodas4", "ode1" to "ode5") lose nothing
    by that. Only fixed steps and Dormand-Prince offer "own steps".

    References
    ----------
    .. [1] J. R. Dormand, P. J. Prince, A family of embedded Runge-Kutta formulae, Journal of Computational and Applied
       Mathematics 6(1), 1980.
    .. [2] E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, 2nd edition, Springer, 1996.

    Examples
    --------
    >>> import cosolve as cs
    >>> decay = cs.Ode(lambda t, x, u: -x + u, lambda t, x, u: x, x0=[1.0], inputs=["u"], outputs=["x"])
    >>> sorted(cs.capabilities(decay))
    ['compiled step', 'equations', 'output', 'own steps', 'replay', 'rollback', 'state']
    """

    settings = ("integrator", "rtol", "atol", "internal_step", "parameters")

    def __init__(
        self,
        rhs: Callable[[float, Vector, Vector], Any],
        output: Callable[[float, Vector, Vector], Any],
        *,
        x0: npt.ArrayLike,
        inputs: Sequence[PortLike],
        outputs: Sequence[PortLike],
        integrator: str = "auto",
        rtol: float = 1e-8,
        atol: float | None = None,
        parameters: Mapping[str, float] | None = None,
        internal_step: float | None = None,
    ) -> None:
        refuse_no_function("Ode", "(t, x, u)", rhs=rhs, output=output)
        self.x0 = initial_state("Ode", x0)
        atol = state_tolerance(atol, self.x0)
        for what, value in (("rtol", rtol), ("atol", atol)):
            positive("Ode", what, value)
        for what, function in (("rhs", rhs), ("output", output)):
            refuse_wrong_arguments(function, ["t", "x", "u", *(["p"] if parameters else [])], f"Ode: {what}")
        self.rhs, self.output_function = rhs, output
        self.parameters: dict[str, float] = {}
        if parameters is not None:
            self.rhs, self.output_function = with_parameters(self, parameters, rhs, output)
        self.rtol, self.atol = rtol, atol
        self.inputs, self.outputs = inputs, outputs
        self.integrator = integrator
        self._first_solver = self._solver = _make_solver(integrator, rtol, atol, internal_step)
        self._first_memory = self._solver.memory
        self._stiff = SciPy("Radau", rtol, atol) if integrator == "auto" else None
        self.internal_step = internal_step
        self.x = self.x0
        self._t_start = 0.0
        self._count = 0  # own fixed steps since then: time as an index
        self._advanced_with = self._solver  # the solver of the last advance, which a replay must repeat
        self._checked = False
        self.last_point: tuple[float, Vector] | None = None  # time and inputs of the last outputs
        if isinstance(self._solver, (FixedStep, DormandPrince, Rosenbrock)):
            self.replay = self._replay
        if isinstance(self._solver, (FixedStep, DormandPrince)):
            self.step = self._step

    @property
    def noise(self) -> float:  # type: ignore[override]
        """Relative accuracy of the outputs of a step."""
        return float(self._solver.noise)

    def start(self, t0: float) -> Any:
        self.x = self.x0
        self._t_start, self._count = t0, 0
        self._solver = self._first_solver
        self._solver.memory = self._first_memory
        return None

    def output(self, t: float, u: Vector) -> Any:
        return self.output_function(t, self.x.copy(), u)  # a copy: users may write into what they are given

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        self._check_rhs(t0, u)
        try:
            x = self._solver.integrate(self.rhs, t0, t1, self.x, u)
        except StiffError:
            if self._stiff is None:
                raise
            self._solver = self._stiff  # stays there: stiffness seldom goes away
            x = self._stiff.integrate(self.rhs, t0, t1, self.x, u)
        self._advanced_with = self._solver
        return self._arrive(t1, x, u.end)

    def _arrive(self, t: float, x: Vector, u: Vector) -> Any:
        """Outputs of the new state `x`; a NaN is refused even where no output shows it."""
        if not np.isfinite(x).all():
            k = int(np.flatnonzero(~np.isfinite(x))[0])
            raise NonFiniteError(f"state {k} became {x[k]} before t = {t:.9g}")
        self.x = x
        self.last_point = t, u
        return self.output_function(t, x.copy(), u)

    def save(self) -> Any:
        return self.x, self._solver is self._stiff, self._solver.memory, self._t_start, self._count

    def restore(self, state: Any) -> None:
        self.x, stiff, memory, self._t_start, self._count = state
        self._solver = self._stiff if stiff else self._first_solver
        self._solver.memory = memory

    def native(self, H: float, degree: int) -> Native | str:
        from cosolve.subsystem.native_ode import ode_native

        return ode_native(self)

    def get_state(self) -> Vector:
        return self.x

    def set_state(self, x: Vector) -> None:
        self.x = np.array(x, dtype=np.float64)

    def equations(self) -> tuple[Callable[..., Any], Callable[..., Any], None]:
        return self.rhs, self.output_function, None

    def _replay(self, t0: float, t1: float, u: InputSignal) -> Any:
        solver = self._advanced_with  # not self._solver: a rollback undoes the turn to the stiff solver
        native = isinstance(solver, (FixedStep, DormandPrince, Rosenbrock))
        x = (solver.replay if native else solver.integrate)(self.rhs, t0, t1, self.x, u)
        if self._stiff is not None and not np.isfinite(x).all():  # at rest, with a motion far faster than the step
            x = self._stiff.integrate(self.rhs, t0, t1, self.x, u)
        return self._arrive(t1, x, u.end)

    def _step(self, t0: float, t_max: float, u: InputSignal) -> tuple[float, Any]:
        solver = self._solver
        if not isinstance(solver, (FixedStep, DormandPrince)):
            raise RuntimeError(
                "turned stiff, so it has no internal steps of its own; use integrator='dopri5' or 'ode4'"
            )
        self._check_rhs(t0, u)
        t_stop = t_max
        if isinstance(solver, FixedStep):
            t_next = self._t_start + (self._count + 1) * solver.h
            t_stop = t_next if t_next < t_max - 1e-9 * solver.h else t_max
        t1, x = solver.one_step(self.rhs, t0, t_stop, self.x, u)
        self._count += 1
        if t_stop == t_max:  # cut short: own steps count from here
            self._t_start, self._count = t1, 0
        return t1, self._arrive(t1, x, u(t1))

    def _check_rhs(self, t: float, u: InputSignal) -> None:
        """One sentence about a wrong right-hand side instead of a broadcasting error from inside a kernel."""
        if self._checked:
            return
        value = self.rhs(t, self.x.copy(), u(t))
        try:
            slope = np.asarray(value)
        except ValueError:  # ragged
            slope = np.asarray(None)
        if slope.dtype.kind not in "fiub":
            raise SubsystemError(f"rhs returned {value!r}, expected {self.x.size} real numbers, one per state")
        if slope.shape != self.x.shape:
            raise SubsystemError(
                f"rhs returned shape {slope.shape}, expected {self.x.shape}: one number per state "
                "(u is an array: write u[0] for the first input)"
            )
        self._checked = True


def _make_solver(name: str, rtol: float, atol: float, internal_step: float | None) -> Any:
    if not isinstance(name, str):
        raise SetupError(f"Ode: integrator must be one of {', '.join(INTEGRATORS)}, not {shortened(name)}")
    if name in FIXED:
        if internal_step is None or not is_positive(internal_step):
            raise SetupError(
                f"Ode: integrator '{name}' takes fixed steps and needs internal_step, a positive number; "
                f"got {internal_step!r}"
            )
        return FixedStep(name, internal_step)
    if internal_step is not None:
        raise SetupError(
            f"Ode: internal_step belongs to the integrators with fixed steps {list(FIXED)}; '{name}' chooses its own"
        )
    if name == "auto":
        return DormandPrince(rtol, atol, _AUTO_MAX_STEPS)
    if name == "dopri5":
        return DormandPrince(rtol, atol)
    if name == "rodas4":
        return Rosenbrock(rtol, atol)
    if name in SCIPY_METHODS:
        return SciPy(name, rtol, atol)
    if name == "cvode":
        return Cvode(rtol, atol)
    raise SetupError(f"Ode: unknown integrator {name!r}; choose one of {', '.join(INTEGRATORS)}")
