"""A subsystem that looks at its inputs at samples only: a digital controller, whatever solver it is made of."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.basics.checks import positive
from cosolve.errors import AccuracyWarning, SetupError, warn
from cosolve.signal.polynomial import InputSignal, Polynomial
from cosolve.subsystem.base import Subsystem, has_capability
from cosolve.subsystem.port import Ports

#: A sample is due when it is as near as this, in periods.
_NEAR = 1e-9

#: What is forwarded as it is, where the part has it.
_ALSO = ("initial_output", "get", "set_parameters", "will_end", "close", "retried_steps")


class Sampled(Subsystem):
    """A subsystem whose inputs are sampled with a fixed period and whose outputs are held in between.

    Parameters
    ----------
    part : Subsystem
        The sampled subsystem: a formula, a state space, an FMU of a controller.
    period : float
        Time between samples in seconds. The first sample is at the start of the run.

    Notes
    -----
    At each sample the part advances over the last period with the inputs of the last sample. Its outputs are then those
    for the present inputs if it has `output` (direct feedthrough), else those at the end of that step. The macro step
    need not be the period; a part with fixed steps takes those of the period.

    With `simulate(stop_at_events=True)` macro steps end at samples, and the sampled loop is exact. Without it the
    others see the new outputs from the end of the macro step on that begins with a sample, which a warning says: an
    error of first order in the macro step. `GaussSeidel(degree=0)` that begins with the sampled subsystems does
    without, in macro steps that divide the period. A sample inside a macro step uses the input signal there, with a
    warning of its own.

    Examples
    --------
    >>> import cosolve as cs
    >>> control = cs.Static(lambda t, u: 2.0 - 4.0 * u, inputs=["x"], outputs=["q"])
    >>> tank = cs.Linear([[-1]], [[1]], [[1]], x0=[0], inputs=["q"], outputs=["x"])
    >>> system = cs.System({"tank": tank, "control": cs.Sampled(control, period=0.1)})
    >>> system.connect("tank.x", "control.x"); system.connect("control.q", "tank.q")
    >>> run = cs.simulate(system, t_end=0.2, method=cs.Jacobi(1), step=0.05, stop_at_events=True)
    >>> run["control.q"].round(3).tolist()
    [2.0, 2.0, 1.239, 1.239, 0.84]
    """

    def __init__(self, part: Subsystem, period: float) -> None:
        if not isinstance(part, Subsystem):
            raise SetupError(f"Sampled: part must be a subsystem, not {part!r}")
        self.part, self.period = part, float(positive("Sampled", "period", period))
        self.inputs, self.outputs = part.inputs, part.outputs
        self._ports = Ports(part.outputs)
        self._reacts = has_capability(part, "output")
        self.concurrent = part.concurrent
        self.foreign, self.repeats_to = part.foreign, part.repeats_to
        self._start = self._done = 0.0  # of the run; where the part stands
        self._count = 0  # samples so far
        self._u: Vector = np.zeros(Ports(part.inputs).length)
        self._y: Vector = np.zeros(self._ports.length)
        self._ahead: Vector = self._y  # what the part came to at the sample
        self._told = False
        if self._reacts:
            self.output = self._output
            given = getattr(part, "feedthrough", None)
            if callable(given):
                self.feedthrough = given
        if has_capability(part, "rollback"):
            self.save, self.restore = self._save, self._restore
        if has_capability(part, "serialised state"):
            self.serialise, self.deserialise = self._serialise, self._deserialise
        if callable(getattr(part, "prove_rollback", None)):
            self.prove_rollback = self._prove_rollback
        for name in _ALSO:
            if callable(getattr(part, name, None)):
                setattr(self, name, getattr(part, name))

    @property
    def noise(self) -> float:  # type: ignore[override]
        """Relative accuracy of the outputs of a step."""
        return self.part.noise

    @property
    def fixed_step(self) -> float | None:  # type: ignore[override]
        """Macro steps of the period have every sample at a macro point."""
        return self.period

    def remedy(self, capability: str) -> str:
        return self.part.remedy(capability)

    # -- samples ---------------------------------------------------------------------------------------------

    @property
    def _next(self) -> float:
        """When the next sample is due."""
        return self._start + self._count * self.period

    def _near(self, t: float) -> float:
        return _NEAR * self.period + 8.0 * float(np.spacing(abs(t)))

    def _is_due(self, t: float) -> bool:
        return self._next <= t + self._near(t)

    def _reach_sample(self) -> None:
        """The part advances to the next sample with the inputs of the last one."""
        t = self._next
        if self._count and self._done < t:
            signal = Polynomial(self._done, t - self._done, self._u[np.newaxis].copy())
            self._ahead = self._ports.pack(self.part.advance(self._done, t, signal)).copy()
            self._done = t

    def _sample(self, u: Vector) -> None:
        """Take these inputs at the sample that is due."""
        self._reach_sample()
        self._u = np.array(u, dtype=np.float64)
        shown = self.part.output(self._next, self._u.copy()) if self._reacts else self._ahead
        self._y = self._ports.pack(shown).copy()
        self._count += 1

    # -- the contract ----------------------------------------------------------------------------------------

    def start(self, t0: float) -> Any:
        self._start = self._done = t0
        self._count, self._told = 0, False
        first = self.part.start(t0)
        if first is not None:
            self._y = self._ahead = self._ports.pack(first).copy()
        return first

    def begin(self, t0: float, u: Vector) -> Vector:
        """End the initialisation with these inputs, which are those of the first sample."""
        if not self._count:
            if has_capability(self.part, "initialisation"):
                self._ahead = self._ports.pack(self.part.begin(t0, u)).copy()
            self._sample(u)
        return self._y.copy()

    def advance(self, t0: float, t1: float, u: InputSignal) -> Vector:
        if not self._count:
            self.begin(t0, u(t0))
        while self._next < t1 - self._near(t1):
            t = max(self._next, t0)
            if t > t0 + self._near(t0) and not self._told:
                self._told = True
                warn(
                    f"a sample at t = {t:.9g} lies inside the macro step from t = {t0:.9g} to {t1:.9g} and takes what "
                    f"the input signal is there; take a macro step that divides the period {self.period:.9g}, or "
                    "stop_at_events=True",
                    AccuracyWarning,
                )
            self._sample(u(t))
        return self._y.copy()

    def advance_to_event(self, t0: float, t1: float, u: InputSignal) -> tuple[float, Vector, bool]:
        """To the next sample, or to `t1`."""
        if not self._count:
            self.begin(t0, u(t0))
        if self._is_due(t0):
            self._sample(u(t0))
        event = self._is_due(t1)
        return min(self._next, t1) if event else t1, self._y.copy(), event

    def handle_event(self, t: float, u: Vector) -> Vector:
        """The sample at `t`, where one is due; the inputs of others' events count at the next one."""
        if self._is_due(t):
            self._sample(u)
        return self._y.copy()

    def _output(self, t: float, u: Vector) -> Any:
        if not self._count:
            return self.part.output(t, u)
        if not self._is_due(t):
            return self._y.copy()
        self._reach_sample()
        return self.part.output(t, u)

    # -- states ----------------------------------------------------------------------------------------------

    def _prove_rollback(self, t0: float, H: float, u: Vector) -> None:
        self.part.prove_rollback(t0, self.period, u)

    @property
    def _own(self) -> tuple[float, ...]:
        return self._start, self._done, float(self._count)

    @_own.setter
    def _own(self, values: Any) -> None:
        self._start, self._done, count = (float(value) for value in values)
        self._count = int(count)

    def _save(self) -> Any:
        return self.part.save(), self._own, self._u.copy(), self._y.copy(), self._ahead.copy()

    def _restore(self, state: Any) -> None:
        self.part.restore(state[0])
        self._take(*state[1:])

    def _take(self, own: Any, u: Any, y: Any, ahead: Any) -> None:
        self._own = own
        self._u, self._y, self._ahead = np.array(u), np.array(y), np.array(ahead)

    def portable_state(self) -> Any:
        return self.part.portable_state(), self._own, self._u.copy(), self._y.copy(), self._ahead.copy()

    def set_portable_state(self, state: Any) -> None:
        self.part.set_portable_state(state[0])
        self._take(*state[1:])

    def _serialise(self) -> bytes:
        numbers = np.concatenate([self._own, self._u, self._y, self._ahead])
        return struct.pack("<q", len(numbers)) + numbers.tobytes() + self.part.serialise()

    def _deserialise(self, data: bytes) -> None:
        count = 3 + len(self._u) + 2 * self._ports.length
        if len(data) < 8 + 8 * count or struct.unpack("<q", data[:8])[0] != count:
            raise SetupError(f"Sampled: {len(data)} bytes are not a saved state of it")
        numbers = np.frombuffer(data, np.float64, count, 8).copy()
        own, u, y, ahead = np.split(numbers, np.cumsum([3, len(self._u), self._ports.length]))
        self.part.deserialise(data[8 + 8 * count :])
        self._take(own, u, y, ahead)
