"""A subsystem some inputs of which follow their own rates inside the macro step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.arrays import Index
from cosolve.basics.wording import counted, did_you_mean
from cosolve.errors import SetupError
from cosolve.signal.polynomial import InputSignal, Polynomial
from cosolve.subsystem.base import CAPABILITIES, Subsystem, has_capability
from cosolve.subsystem.port import Ports

if TYPE_CHECKING:
    from cosolve.subsystem.native import Native

#: Capabilities that the input signal has no part in.
_PASSED = ("rollback", "serialised state", "output", "initialisation", "state")


class IntegratedInputs(Subsystem):
    """A subsystem some inputs of which are integrated from their rates inside a macro step.

    Parameters
    ----------
    inner : Subsystem
        The subsystem.
    rates : mapping of str to str
        Inputs and the inputs that are their rates, as in `{"s": "v"}`.

    Notes
    -----
    Inside a macro step such an input starts with its value there and continues as the integral of its rate, one degree
    higher than the other signals (Hermite extrapolation): with degree 0 a position moves on with its velocity. Position
    and velocity agree at every time, and a run needs no past of the position. For `Jacobi`, and for the other methods
    from degree 1 on: with degree 0 they hold inputs at values of the end of the step.

    Examples
    --------
    >>> import cosolve as cs
    >>> lag = cs.Ode(lambda t, x, u: u[:1] - x, lambda t, x, u: x, x0=[0.0], inputs=["s", "v"], outputs=["x"])
    >>> def error(follower):
    ...     drive = cs.Static(lambda t, u: [np.sin(t), np.cos(t)], inputs=[], outputs=["s", "v"])
    ...     system = cs.System({"drive": drive, "lag": follower})
    ...     system.connect("drive.s", "lag.s"); system.connect("drive.v", "lag.v")
    ...     run = cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.01)
    ...     return abs(run["lag.x"][-1] - (np.sin(1) - np.cos(1) + np.exp(-1)) / 2)
    >>> bool(error(cs.IntegratedInputs(lag, {"s": "v"})) < 0.02 * error(lag))
    True
    """

    least_degree = 1

    def __init__(self, inner: Subsystem, rates: Mapping[str, str]) -> None:
        self.inner = inner
        self.inputs, self.outputs = inner.inputs, inner.outputs
        self._columns, self._rates = _pairs(Ports(inner.inputs), rates)
        self.variable_step, self.overshoots, self.concurrent = inner.variable_step, inner.overshoots, inner.concurrent
        passed = [n for capability in _PASSED if has_capability(inner, capability) for n in CAPABILITIES[capability][0]]
        for name in (*passed, "portable_state", "set_portable_state"):
            setattr(self, name, getattr(inner, name))
        if has_capability(inner, "replay"):
            self.replay = self._replay
        if has_capability(inner, "own steps"):
            self.step = self._step
        if has_capability(inner, "compiled step"):
            self.native = self._native

    @property
    def noise(self) -> float:  # type: ignore[override]
        """Relative accuracy of the outputs of a step."""
        return self.inner.noise

    def start(self, t0: float) -> Any:
        return self.inner.start(t0)

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        return self.inner.advance(t0, t1, self._integrated(u))

    def _replay(self, t0: float, t1: float, u: InputSignal) -> Any:
        return self.inner.replay(t0, t1, self._integrated(u))

    def _step(self, t0: float, t_max: float, u: InputSignal) -> Any:
        return self.inner.step(t0, t_max, self._integrated(u))

    def _integrated(self, u: InputSignal) -> Polynomial:
        given = u.coefficients
        made = np.zeros((len(given) + 1, given.shape[1]))
        made[:-1] = given
        for j in range(len(given)):
            made[j + 1, self._columns] = u.H * given[j, self._rates] / (j + 1)
        return Polynomial(u.t0, u.H, made)

    def _native(self, H: float, degree: int) -> Native | str:
        from cosolve.subsystem.native_integrated import integrated_native

        inner = self.inner.native(H, degree + 1)
        if isinstance(inner, str):
            return inner
        width = Ports(self.inputs).length
        return integrated_native(inner, degree + 2, width, np.stack([self._columns, self._rates]))


def _pairs(ports: Ports, rates: Mapping[str, str]) -> tuple[Index, Index]:
    """Entries of the inputs, and of their rates."""
    if not isinstance(rates, Mapping) or not rates:
        raise SetupError(f"IntegratedInputs: rates map inputs to their rates, {{'x': 'v'}}, not {rates!r}")
    found: list[list[int]] = [[], []]
    for pair in rates.items():
        parts = []
        for name in pair:
            port = ports.find(str(name))
            if port is None:
                raise SetupError(f"IntegratedInputs: there is no input '{name}'; {did_you_mean(name, ports.names)}")
            parts.append(range(ports.slice(port.name).start, ports.slice(port.name).stop))
        if len(parts[0]) != len(parts[1]):
            sizes = [counted(len(part), "number") for part in parts]
            raise SetupError(f"IntegratedInputs: '{pair[0]}' has {sizes[0]}, but '{pair[1]}', its rate, {sizes[1]}")
        for entries, part in zip(found, parts, strict=True):
            entries.extend(part)
    twice = set(found[0]) & set(found[1]) or len(set(found[0])) < len(found[0])
    if twice:
        raise SetupError("IntegratedInputs: an input is integrated once, and is not the rate of another one then")
    return np.array(found[0], dtype=np.intp), np.array(found[1], dtype=np.intp)
