"""Ordinary differential equations with events: contacts, switches, diodes, stick and slip.

Between events the states follow `x' = rhs(t, x, u)`. An event is a change of sign of an indicator; it is located to
rounding, the integrator ends its step there and begins anew, and states may jump. Modes (open or closed, sticking or
slipping) are states whose slope is zero and which jump.

Values at the time of an event are those after it. With `stop_at_events=True` the macro step ends there as well, and all
others see it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import initial_state, refuse_no_function, whole
from cosolve.basics.scale import state_tolerance
from cosolve.errors import SubsystemError
from cosolve.integrator.event_search import left
from cosolve.integrator.inner_steps import NativeSteps, SciPySteps, make_steps
from cosolve.integrator.kernels import is_compiled
from cosolve.integrator.trajectory import EventOutcome, Trajectory
from cosolve.signal.polynomial import InputSignal, Polynomial
from cosolve.subsystem.base import Subsystem
from cosolve.subsystem.port import PortLike
from cosolve.subsystem.signatures import refuse_wrong_arguments


class HybridOde(Subsystem):
    """Ordinary differential equations with events: contacts, switches, diodes, stick and slip.

    An event is a change of sign of an indicator. It is located to rounding; the integrator stops there and starts anew,
    and states may jump.

    Parameters
    ----------
    rhs : callable
        `rhs(t, x, u)` returns `x'`.
    output : callable
        `output(t, x, u)` returns the outputs. At the time of an event they are those after it.
    x0 : array_like
        Initial state. Discrete modes are states with a zero derivative that jump.
    inputs : sequence of str, (str, int) or Port
        Input ports.
    outputs : sequence of str, (str, int) or Port
        Output ports.
    indicators : callable
        `indicators(t, x, u)` returns the event indicators.
    jump : callable or None, default None
        `jump(t, x, u, changed)` returns the state after an event. `changed` holds -1 for every indicator that has
        fallen to zero, +1 for every one that has risen above it, else 0. It is called again if the jump makes other
        indicators change. None only restarts the integrator.
    integrator : str, default "auto"
        As for `Ode`, but without "rodas4" and "cvode".
    rtol : float, default 1e-8
        Relative tolerance of the integrator.
    atol : float or None, default None
        Absolute tolerance in the units of the states. None is 1e-10 of the smallest start value other than 0 (which
        counts as at least 1/8192 of the largest), or 1e-10 where all are 0.
    internal_step : float or None, default None
        Step of the integrators with fixed steps in seconds.
    max_events : int, default 1000
        Largest number of events in one macro step; more end the run (chattering).

    Raises
    ------
    SubsystemError
        During a run, if events accumulate.

    Notes
    -----
    Equations::

        x' = rhs(t, x, u),      y = output(t, x, u)

    With `simulate(stop_at_events=True)` the macro step ends at the event, so that other subsystems see it at once.

    Examples
    --------
    >>> import cosolve as cs
    >>> ball = cs.HybridOde(
    ...     lambda t, x, u: [x[1], -9.81], lambda t, x, u: x[0], x0=[1.0, 0.0], inputs=[], outputs=["height"],
    ...     indicators=lambda t, x, u: x[0],
    ...     jump=lambda t, x, u, changed: [0.0, -0.8 * x[1]] if changed[0] < 0 else x,
    ... )
    >>> result = cs.simulate(cs.System({"ball": ball}), t_end=1.0, method=cs.Jacobi(), step=0.01)
    >>> t = 1.0 - (2 / 9.81) ** 0.5                      # since the first bounce
    >>> bool(abs(result["ball.height"][-1] - (0.8 * (2 * 9.81) ** 0.5 * t - 4.905 * t**2)) < 1e-9)
    True
    """

    native = Subsystem.by_callback
    settings = ("_made_of",)

    def __init__(
        self,
        rhs: Callable[[float, Vector, Vector], Any],
        output: Callable[[float, Vector, Vector], Any],
        *,
        x0: npt.ArrayLike,
        inputs: Sequence[PortLike],
        outputs: Sequence[PortLike],
        indicators: Callable[[float, Vector, Vector], Any],
        jump: Callable[[float, Vector, Vector, Vector], Any] | None = None,
        integrator: str = "auto",
        rtol: float = 1e-8,
        atol: float | None = None,
        internal_step: float | None = None,
        max_events: int = 1000,
    ) -> None:
        refuse_no_function("HybridOde", "(t, x, u)", rhs=rhs, output=output, indicators=indicators)
        for what, function in (("rhs", rhs), ("output", output), ("indicators", indicators)):
            refuse_wrong_arguments(function, ["t", "x", "u"], f"HybridOde: {what}")
        if jump is not None:
            refuse_no_function("HybridOde", "(t, x, u, changed)", jump=jump)
            refuse_wrong_arguments(jump, ["t", "x", "u", "changed"], "HybridOde: jump")
        self.inputs, self.outputs = inputs, outputs
        self.output_function = output
        self.x0 = initial_state("HybridOde", x0)
        atol = state_tolerance(atol, self.x0)
        self._made_of = (rhs, indicators, jump, integrator, rtol, atol, internal_step)
        self._model = _Model(rhs, indicators, jump, self.x0)
        steps = make_steps("HybridOde", integrator, rtol, atol, internal_step)
        stiff = SciPySteps("Radau", rtol, atol) if integrator == "auto" else None
        self._path = Trajectory(self._model, steps, stiff, whole("HybridOde", "max_events", max_events))
        self._begun = False  # whether the indicators have been looked at
        self._stops = False  # macro steps end at events
        self._H = 1.0  # length of the last macro step
        if isinstance(steps, NativeSteps):
            self.replay, self.step = self._replay, self._step

    @property
    def noise(self) -> float:  # type: ignore[override]
        """Relative accuracy of the outputs of a step."""
        return float(self._path.steps.noise)

    @property
    def events(self) -> int:
        """Number of events since the start of the run."""
        return self._path.events

    # -- the contract ----------------------------------------------------------------------------------------

    def start(self, t0: float) -> None:
        self._path.reset(t0)
        self._path.x = self.x0
        self._begun = self._stops = False

    def output(self, t: float, u: Vector) -> Any:
        return self.output_function(t, self._path.x.copy(), u)

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        self._begin(t0, u)
        self._path.advance(t1, u)
        return self.output(t1, u.end)

    def advance_to_event(self, t0: float, t1: float, u: InputSignal) -> tuple[float, Any, bool]:
        """To the first event, or to `t1`."""
        self._stops = True
        self._begin(t0, u)
        self._path.advance_to_event(t1, u)
        t = self._path.t
        return t, self.output(t, u.end if t == t1 else u(t)), self._path.pending

    def handle_event(self, t: float, u: Vector) -> Any:
        """The event at `t`, where one is pending or the new inputs cause one."""
        path = self._path
        if path.t < t:  # found a little before the point where the others stand
            path.x = path.x + (t - path.t) * self._model.slope(path.t, path.x, u)
        path.t = t
        if path.pending or (self._begun and path.left_domain(u)):
            path.event(Polynomial(t, self._H, u[np.newaxis]))
        return self.output(t, u)

    def _begin(self, t0: float, u: InputSignal) -> None:
        """Events that new inputs cause at the start of a macro step; at the start of a run, the first look around."""
        path, self._H = self._path, u.H
        if not self._begun:
            self._model.look(t0, path.x, u(t0))
            x = path.x
            path.reset(t0)
            self._model.set_point(t0, x, u(t0))
            path.start(u(t0), u.H)
            self._begun = True
        path.t = t0
        if path.left_domain(u(t0)):
            path.event(u)

    # -- capabilities ----------------------------------------------------------------------------------------

    def save(self) -> Any:
        return self._begun, self._stops, self._H, self._path.snapshot()

    def restore(self, state: Any) -> None:
        self._begun, self._stops, self._H, snapshot = state
        self._path.back_to(snapshot)
        self._model.n_indicators = self._path.signs.size

    def get_state(self) -> Vector:
        return self._path.x

    def set_state(self, x: Vector) -> None:
        self._path.x = np.array(x, dtype=np.float64)
        self._begun = False

    def _replay(self, t0: float, t1: float, u: InputSignal) -> Any:
        """On the internal steps of the last subsystem step; where events cut it, with step control."""
        path, grid = self._path, self._path.grid
        if grid is None or not isinstance(path.steps, NativeSteps):
            return self.advance_to_event(t0, t1, u)[1] if self._stops else self.advance(t0, t1, u)
        self._begin(t0, u)
        x = path.steps.repeat(self._model.slope, t0, grid, path.x, u)
        if np.isfinite(x).all():
            path.t, path.x = t1, x
        else:  # at rest, with a motion far faster than the step
            path.advance(t1, u)
        return self.output(t1, u.end)

    def _step(self, t0: float, t_max: float, u: InputSignal) -> tuple[float, Any]:
        self._begin(t0, u)
        path = self._path
        while path.t == t0:
            path.one_step(t_max, u, None)
        return path.t, self.output(path.t, u(path.t))


class _Model:
    """The user's functions, as a trajectory asks for them."""

    tell_steps, rests_at_zero = False, True

    def __init__(
        self, rhs: Callable[..., Any], indicators: Callable[..., Any], jump: Callable[..., Any] | None, x0: Vector
    ) -> None:
        self._rhs, self._indicators, self._jump = rhs, indicators, jump
        if is_compiled(rhs):  # steps are compiled then, too
            self.slope = rhs
        self.n_states, self.n_indicators = x0.size, 0
        self.set_point(0.0, x0, np.zeros(0))
        self._changed = self._domains = np.zeros(0)

    def look(self, t: float, x: Vector, u: Vector) -> None:
        """How many indicators there are."""
        self.n_indicators = np.size(self._indicators(t, x.copy(), u.copy()))
        self._changed = self._domains = np.zeros(self.n_indicators)

    def set_point(self, t: float, x: Vector, u: Vector) -> None:
        self._t, self._x, self._u = t, x, u

    def slope(self, t: float, x: Vector, u: Vector) -> Vector:
        return _numbers(self._rhs(t, x.copy(), u), self.n_states, "rhs", "one per state")

    def indicators(self, t: float, x: Vector, u: Vector) -> Vector:
        z = _numbers(self._indicators(t, x.copy(), u.copy()), self.n_indicators, "indicators", "as many as before")
        if np.isnan(z).any():
            raise SubsystemError(f"indicators returned {z} at t = {t:.9g}: a NaN has no sign")
        return z

    def states(self) -> Vector:
        return self._x

    def step_done(self) -> bool:
        return False

    def enter_event_mode(self, changed: Vector, domains: Vector) -> None:
        self._changed, self._domains = changed, domains

    def leave_event_mode(self) -> EventOutcome:
        """Let the states jump, until no indicator changes that has not changed before."""
        changed, free = self._changed, np.ones(self.n_indicators, dtype=bool)
        self._changed = np.zeros(self.n_indicators)
        jumped = False
        while self._jump is not None and changed.any():
            given = self._jump(self._t, self._x.copy(), self._u.copy(), changed)
            self._x = _numbers(given, self.n_states, "jump", "the states after the event")
            jumped = True
            free &= changed == 0.0
            z = self.indicators(self._t, self._x, self._u)
            changed = np.where(free & left(self._domains, z), -self._domains, 0.0)
        return EventOutcome(jumped, np.inf)


def _numbers(given: Any, count: int, who: str, what: str) -> Vector:
    try:
        found = np.array(given if given is not None else "nothing", dtype=np.float64)
    except (TypeError, ValueError):
        raise SubsystemError(f"{who} returned {given!r}, expected {count} real numbers, {what}") from None
    if found.size != count:
        raise SubsystemError(f"{who} returned {found.size} numbers, expected {count}, {what}")
    return found.reshape(count)
