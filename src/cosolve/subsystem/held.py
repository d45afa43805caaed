"""A subsystem some inputs of which are held over the macro step at what they were at its beginning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import SetupError
from cosolve.signal.polynomial import InputSignal
from cosolve.subsystem.base import Subsystem, has_capability
from cosolve.subsystem.port import Ports


class _Held:
    """An input signal with some columns constant."""

    def __init__(self, u: InputSignal, columns: npt.NDArray[np.intp], values: Vector) -> None:
        self.t0, self.H, self.degree = u.t0, u.H, u.degree
        self.coefficients = u.coefficients.copy()
        self.coefficients[:, columns] = 0.0
        self.coefficients[0, columns] = values
        self.end = u.end.copy()
        self.end[columns] = values
        self._u, self._columns, self._values = u, columns, values

    def __call__(self, t: float) -> Vector:
        value = self._u(t).copy()
        value[self._columns] = self._values
        return value


class HeldInputs(Subsystem):
    """`inner`, with the inputs named in `held` frozen over each macro step at their value at its beginning.

    What other subsystems send there arrives one macro step later, so it takes no part in corrections. `held` gives the
    values for the first step. The simplified joints of Schweizer and Lu (2014), App. D, freeze directions that way.

    >>> import cosolve as cs
    >>> inner = cs.Ode(lambda t, x, u: u, lambda t, x, u: x, x0=[0.0], inputs=["rate"], outputs=["x"])
    >>> HeldInputs(inner, {"rate": [1.0]}).inputs
    ['rate']
    """

    variable_step = False  # inputs are held over whole macro steps

    def __init__(self, inner: Subsystem, held: Mapping[str, npt.ArrayLike]) -> None:
        self.inner = inner
        self.inputs, self.outputs = inner.inputs, inner.outputs
        ports = Ports(inner.inputs)
        unknown = [name for name in held if name not in ports]
        if unknown:
            raise SetupError(f"HeldInputs: there is no input '{unknown[0]}'; there are {ports.names}")
        parts = [np.arange(ports.slice(name).start, ports.slice(name).stop) for name in held]
        self._columns = np.concatenate([np.zeros(0, dtype=np.intp), *parts]).astype(np.intp)
        self._first = np.concatenate(
            [np.zeros(0), *(np.asarray(v, dtype=np.float64).reshape(-1) for v in held.values())]
        )
        self._now = self._first
        self.concurrent = inner.concurrent
        self.foreign, self.repeats_to = inner.foreign, inner.repeats_to
        if has_capability(inner, "output"):
            self.output = self._output
        if has_capability(inner, "initialisation"):
            self.begin = self._begin
        if has_capability(inner, "rollback"):
            self.save, self.restore = self._save, self._restore
        if has_capability(inner, "replay"):
            self.replay = self._replay
        if has_capability(inner, "jacobian"):
            self.jacobian = self._jacobian

    @property
    def noise(self) -> float:  # type: ignore[override]
        """Relative accuracy of the outputs of a step."""
        return self.inner.noise

    def start(self, t0: float) -> Any:
        self._now = self._first
        return self.inner.start(t0)

    def advance(self, t0: float, t1: float, u: InputSignal) -> Any:
        return self._advance(self.inner.advance, t0, t1, u)

    def _replay(self, t0: float, t1: float, u: InputSignal) -> Any:
        return self._advance(self.inner.replay, t0, t1, u)

    def _advance(self, advance: Any, t0: float, t1: float, u: InputSignal) -> Any:
        y = advance(t0, t1, _Held(u, self._columns, self._now))
        self._now = u.end[self._columns]  # what the next step begins with
        return y

    def _output(self, t: float, u: Vector) -> Any:
        return self.inner.output(t, self._shown(u))

    def _begin(self, t0: float, u: Vector) -> Any:
        return self.inner.begin(t0, self._shown(u))

    def _shown(self, u: Vector) -> Vector:
        shown = u.copy()
        shown[self._columns] = self._now
        return shown

    def _jacobian(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        J = np.array(self.inner.jacobian(t0, t1, _Held(u, self._columns, self._now), weight))
        J[:, self._columns] = 0.0
        return J

    def portable_state(self) -> Any:
        return self.inner.portable_state(), self._now

    def set_portable_state(self, state: Any) -> None:
        inner, self._now = state
        self.inner.set_portable_state(inner)

    def _save(self) -> Any:
        return self.inner.save(), self._now

    def _restore(self, state: Any) -> None:
        inner, self._now = state
        self.inner.restore(inner)
