"""Solvers that cannot be steered to the macro points (Schmoll (2015), 2.4.5).

They run on their own time grid, past the macro point, and the outputs are interpolated back to it with the degree
of the coupling signals (a lower degree would cost order). `InterpolatedOutputs` wraps a subsystem that can take its own
steps; `CallbackSubsystem` turns around a solver that owns its loop and calls *us*. `AcceptedSteps` is what they share:
the outputs at the accepted internal points, with rejected steps kept out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.errors import SetupError, SubsystemError
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem, has_capability
from cosolve.subsystem.port import PortLike, Ports


class AcceptedSteps:
    """Outputs at accepted internal points; the newest offer counts only once the solver has moved beyond it.

    >>> import numpy as np
    >>> steps = AcceptedSteps()
    >>> for t, y in [(0.0, 0.0), (1.0, 9.9), (0.5, 0.5), (1.0, 1.0), (1.5, 1.5)]:   # 9.9 was a rejected step
    ...     steps.offer(t, np.array([y]))
    >>> steps.time, float(steps.at(0.75, degree=1)[0])
    (1.0, 0.75)
    """

    def __init__(self, keep: int = 12) -> None:
        self.keep = keep
        self.times: list[float] = []
        self.values: list[Vector] = []
        self._pending: tuple[float, Vector] | None = None

    def offer(self, t: float, y: Vector) -> None:
        """Take note of a point; time going back (or standing) means that the pending one was rejected."""
        if self._pending is not None and self.time < self._pending[0] < t:  # an accepted point may come again
            self.accept(*self._pending)
        self._pending = (t, np.array(y, dtype=np.float64))

    def accept(self, t: float, y: Vector) -> None:
        """Append a point that is known to be accepted."""
        self.times.append(t)
        self.values.append(np.array(y))  # a copy: a solver may hand out the same array again and again
        del self.times[: -self.keep], self.values[: -self.keep]

    def copy(self) -> AcceptedSteps:
        """An independent copy (for rollback)."""
        twin = AcceptedSteps(self.keep)
        twin.times, twin.values, twin._pending = list(self.times), list(self.values), self._pending
        return twin

    @property
    def time(self) -> float:
        """The newest accepted time."""
        return self.times[-1] if self.times else -np.inf

    def at(self, t: float, degree: int) -> Vector:
        """Outputs at `t` by the polynomial of `degree` through the points around and before it."""
        times = np.array(self.times)
        newest = int(np.searchsorted(times, t * (1 - 1e-15), side="left")) if len(times) > 1 else 0
        newest = min(newest, len(times) - 1)
        first = max(0, newest - degree)
        nodes = times[first : newest + 1]
        value = np.zeros_like(self.values[0])
        for j, node in enumerate(nodes):
            others = np.delete(nodes, j)
            value = value + self.values[first + j] * np.prod((t - others) / (node - others))
        return value


class InterpolatedOutputs(Subsystem):
    """A subsystem that runs on its own steps, past each macro point, with outputs interpolated back to it.

    Parameters
    ----------
    subsystem : Subsystem
        A subsystem with the capability "own steps".
    degree : int or None, default None
        Degree of the interpolation. None is the degree of the input signals, which keeps the order of the method.

    References
    ----------
    .. [1] R. Schmoll, Co-Simulation und Solverkopplung, dissertation, University of Kassel, 2015, 2.4.5.

    Examples
    --------
    >>> import cosolve as cs
    >>> ball = cs.Ode(lambda t, x, u: [x[1], u[0]], lambda t, x, u: x[0], x0=[0, 1], inputs=["a"], outputs=["x"],
    ...               integrator="ode4", internal_step=0.3)
    >>> sorted(cs.capabilities(cs.InterpolatedOutputs(ball)))
    ['output', 'rollback']
    """

    overshoots = True
    variable_step = False
    input_form = "cubic"  # it looks beyond the end of the step

    def __init__(self, subsystem: Subsystem, degree: int | None = None) -> None:
        if not has_capability(subsystem, "own steps"):
            raise SetupError(
                f"InterpolatedOutputs: {type(subsystem).__name__} has no internal steps of its own (no step method); "
                "use an Ode with a fixed-step solver or 'dopri5'"
            )
        self.subsystem, self.degree = subsystem, degree
        self.noise = subsystem.noise
        self.inputs, self.outputs = subsystem.inputs, subsystem.outputs
        self._ports = Ports(subsystem.outputs)
        self._steps = AcceptedSteps()
        self._t = 0.0
        if has_capability(subsystem, "rollback"):
            self.save = self._save
            self.restore = self._restore
        if has_capability(subsystem, "output"):
            self.output = self._output

    def start(self, t0: float) -> Any:
        first = self.subsystem.start(t0)
        self._t, self._steps = t0, AcceptedSteps()
        if first is not None:
            self._steps.accept(t0, self._ports.pack(first))
        return first

    def _output(self, t: float, u: Vector) -> Vector:
        """Outputs for given inputs, possible only where the solver stands: at the start of a run."""
        if t != self._t:
            raise RuntimeError(
                f"stands at t = {self._t:.6g}, past t = {t:.6g}, and cannot re-evaluate its outputs there"
            )
        self._steps = AcceptedSteps()
        self._steps.accept(t, self._ports.pack(self.subsystem.output(t, u)))
        return self._steps.values[0]

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        while self._t < t1 - 1e-12 * u.H:
            t, outputs = self.subsystem.step(self._t, np.inf, u)
            if not t > self._t:  # nor a NaN: it would never arrive
                raise SubsystemError(f"its step from t = {self._t:.9g} went to t = {t:.9g}; a step must move forward")
            self._t = t
            self._steps.accept(t, self._ports.pack(outputs))
        return self._steps.at(t1, u.degree if self.degree is None else self.degree)

    def portable_state(self) -> Any:
        return self.subsystem.portable_state(), self._steps.copy(), self._t

    def set_portable_state(self, state: Any) -> None:
        inner, steps, self._t = state
        self.subsystem.set_portable_state(inner)
        self._steps = steps.copy()

    def _save(self) -> Any:
        return self.subsystem.save(), self._steps.copy(), self._t

    def _restore(self, state: Any) -> None:
        inner, steps, self._t = state
        self.subsystem.restore(inner)
        self._steps = steps.copy()


class CallbackSubsystem(Subsystem):
    """A solver that owns its time loop and calls a function at every internal step.

    This is how commercial tools are coupled through user routines.

    Parameters
    ----------
    run : callable
        `run(exchange)` is the whole simulation of the tool. It calls `u = exchange(t, y)` at every internal step, first
        at the start of the run.
    inputs : sequence of str, (str, int) or Port
        Input ports; `u` holds their values.
    outputs : sequence of str, (str, int) or Port
        Output ports; `y` holds their values.
    degree : int or None, default None
        Degree with which outputs are interpolated back to macro points. None is the degree of the input signals.
    timeout : float, default 600.0
        Longest time in seconds to wait for the tool.

    Notes
    -----
    Internal steps that the tool rejects (time goes back) are dropped. There is no rollback. The tool runs in a thread
    of its own, but only while cosolve waits for it, so that runs are deterministic.

    References
    ----------
    .. [1] R. Schmoll, Co-Simulation und Solverkopplung, dissertation, University of Kassel, 2015, 2.4.5.

    Examples
    --------
    >>> import cosolve as cs
    >>> def tool(exchange):
    ...     t, x = 0.0, 1.0
    ...     while True:
    ...         u = exchange(t, [x])
    ...         x += 0.125 * (u[0] - x)
    ...         t += 0.125
    >>> system = cs.System({"tool": cs.CallbackSubsystem(tool, inputs=["u"], outputs=["x"])})
    >>> system.set("tool.u", 0.0)
    >>> result = cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree=0), step=0.25)
    >>> round(float(result["tool.x"][-1]), 6), 0.875**8
    (0.343609, 0.34360891580581665)
    """

    overshoots = True
    variable_step = False
    input_form = "cubic"  # it looks beyond the end of the step

    def __init__(
        self,
        run: Callable[[Callable[[float, Any], Vector]], None],
        *,
        inputs: Sequence[PortLike],
        outputs: Sequence[PortLike],
        degree: int | None = None,
        timeout: float = 600.0,
    ) -> None:
        self.run, self.degree, self.timeout = run, degree, timeout
        self.inputs, self.outputs = inputs, outputs
        self._ports = Ports(outputs)
        self._tool: _ToolThread | None = None

    def start(self, t0: float) -> Vector:
        if self._tool is not None:
            self._tool.stop()
        self._tool = _ToolThread(self.run, self._ports, self.timeout)
        return self._tool.first_outputs(t0)

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        assert self._tool is not None
        steps = self._tool.run_past(t1, u)
        return steps.at(t1, u.degree if self.degree is None else self.degree)


class _Stop(BaseException):
    """Ends a tool's thread from inside its exchange call."""


class _ToolThread:
    """Hands control back and forth between cosolve and the tool's thread: exactly one of them runs at a time."""

    def __init__(self, run: Callable[..., None], ports: Ports, timeout: float) -> None:
        self._run, self._ports, self._timeout = run, ports, timeout
        self._steps = AcceptedSteps()
        self._to_tool, self._to_us = threading.Semaphore(0), threading.Semaphore(0)
        self._signal: InputSignal | None = None
        self._goal = -np.inf
        self._failure: BaseException | None = None
        self._stopping = self._done = False
        self._thread = threading.Thread(target=self._body, daemon=True)

    def first_outputs(self, t0: float) -> Vector:
        self._thread.start()
        self._wait("to publish its initial outputs")
        pending = self._steps._pending
        if pending is None:
            raise RuntimeError("the tool returned without ever calling exchange(t, y)")
        if pending[0] != t0:
            raise RuntimeError(f"the tool starts at t = {pending[0]:.6g}, the run at t = {t0:.6g}")
        return pending[1]

    def run_past(self, t1: float, u: InputSignal) -> AcceptedSteps:
        self._signal, self._goal = u, t1 - 1e-12 * u.H
        if self._steps.time < self._goal:
            if self._done:
                raise RuntimeError(f"the tool ended at t = {self._steps.time:.6g}, before t = {t1:.6g}")
            self._to_tool.release()
            self._wait(f"to reach t = {t1:.6g}")
        return self._steps

    def stop(self) -> None:
        self._stopping = True
        self._to_tool.release()
        self._thread.join(timeout=1.0)

    def _wait(self, purpose: str) -> None:
        if not self._to_us.acquire(timeout=self._timeout):
            raise RuntimeError(f"the tool took longer than {self._timeout:g} s {purpose}")
        if self._failure is not None:
            raise self._failure
        if self._done and self._steps.time < self._goal:
            raise RuntimeError(f"the tool ended at t = {self._steps.time:.6g} although it had {purpose}")

    def _body(self) -> None:
        try:
            self._run(self._exchange)
        except _Stop:
            return
        except Exception as error:  # handed to the caller by _wait
            self._failure = error
        self._done = True
        self._to_us.release()

    def _exchange(self, t: float, y: Any) -> Vector:
        first = self._steps._pending is None
        self._steps.offer(float(t), self._ports.pack(y))
        if first or self._steps.time >= self._goal:
            self._to_us.release()
            self._to_tool.acquire()
        if self._stopping:
            raise _Stop
        assert self._signal is not None
        return self._signal(t)
