"""The test bench of a trial: makes instances of an FMU and steps them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.fmu.description import CO_SIMULATION
from cosolve.fmu.load import load_fmu
from cosolve.signal.polynomial import Polynomial

#: Steps of a trial.
STEPS = 20
_SAME = 1e-9  # of the size of an output: what repeated steps may differ by


class Bench:
    """Makes instances of the FMU and steps them with inputs that move a little around their start values."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.file, self.kind, self.parameters = order["file"], order["kind"], order["parameters"]
        self.H, self.t0, self.instances = float(order["step"]), float(order["t0"]), int(order["instances"])
        self.t1 = float(order.get("t1", 0.0))
        self._first: Matrix | None = None
        self._made: list[Any] = []
        self.alone = False  # known as soon as one was made

    def make(self, **options: Any) -> Any:
        """A new FMU object; where the FMU allows one instance per process, those made before are freed first."""
        if self.alone:
            self.clear()
        options = {"parameters": self.parameters, **options}
        made = load_fmu(self.file, kind=self.kind, **options)
        self._made.append(made)
        self.alone = made._instance.flags.has("canBeInstantiatedOnlyOncePerProcess")
        return made

    def clear(self) -> None:
        """Free all that was made; one that crashes when it is freed does so here."""
        while self._made:
            self._made.pop().close()

    def begun(self, **options: Any) -> tuple[Any, Vector]:
        """A new one, ready for its first step, and its inputs at the start."""
        fmu = self.make(**options)
        return fmu, self.begin(fmu)

    def begin(self, fmu: Any) -> Vector:
        """Start and end the initialisation with the FMU's own values of its inputs."""
        fmu.start(self.t0)
        u = self.inputs(fmu)
        fmu.begin(self.t0, u)
        return u

    def inputs(self, fmu: Any) -> Vector:
        """The values its inputs have."""
        values = fmu._communication.inputs if self.kind == CO_SIMULATION else fmu._all_inputs
        u: Vector = values.read(fmu._instance.pointer)
        return u

    def outputs(self, fmu: Any) -> Vector:
        """The values its outputs have."""
        values = fmu._outputs if self.kind == CO_SIMULATION else fmu._fmu._outputs
        y: Vector = values.read(fmu._instance.pointer)
        return y

    def names(self, fmu: Any) -> list[str]:
        """The names of its outputs, number by number."""
        values = fmu._outputs if self.kind == CO_SIMULATION else fmu._fmu._outputs
        labels: list[str] = values.labels
        return labels

    def signal(self, fmu: Any, u: Vector, k: int, t: float, H: float, move: float) -> Polynomial:
        """Inputs over step `k`: real ones move by up to `move` of their size, never twice the same way."""
        listed = fmu._communication.inputs.variables if self.kind == CO_SIMULATION else fmu._all_inputs.variables
        size = np.array([v.nominal if v.is_float else 0.0 for v in listed for _ in range(v.length)])
        size = np.where(size > 0.0, np.maximum(size, np.abs(u)), 0.0)
        pattern = np.array([((7919 * (k + 1) + 31 * j) % 13 - 6) / 6.0 for j in range(len(u))])
        return Polynomial(t, H, (u + move * size * pattern)[np.newaxis, :])

    def ends(self, k: int) -> tuple[float, float]:
        """Where step `k` begins and ends."""
        return self.t0 + k * self.H, self.t0 + (k + 1) * self.H

    def moved(self, fmu: Any, u: Vector, k: int, count: int) -> Polynomial:
        """Inputs over step `k` of a whole experiment: as they are, and pushed by their nominal values in its middle."""
        t = self.t0 + k * self.H
        whole = self.signal(fmu, u, k, t, self.H, 0.0)
        if count <= 2 * k:
            pushed = self.signal(fmu, u, 0, t, self.H, 0.7).coefficients - whole.coefficients
            whole = Polynomial(t, self.H, whole.coefficients + np.abs(pushed))
        return whole

    def march(self, fmu: Any, u: Vector, count: int, first: int = 0, move: float = 0.01) -> Matrix:
        """Outputs after each of `count` steps from step `first` on."""
        rows = []
        for k in range(first, first + count):
            t = self.t0 + k * self.H
            rows.append(fmu.advance(t, self.t0 + (k + 1) * self.H, self.signal(fmu, u, k, t, self.H, move)))
        return np.array(rows).reshape(count, -1)

    @property
    def reference(self) -> Matrix:
        """The outputs of a first run."""
        if self._first is None:
            fmu, u = self.begun()
            self._first = self.march(fmu, u, STEPS)
            self.clear()  # the first instance of a claim: nothing else is alive
        return self._first

    def compared(self, fmu: Any, found: Matrix, expected: Matrix) -> tuple[bool, str]:
        """Are they the same, and where and by how much they differ most."""
        if not found.size or np.array_equal(found, expected):
            return True, "the same to the last bit"
        size = np.abs(expected).max(axis=0) + 1e-300
        apart = np.abs(found - expected) / size
        apart = np.where(np.isfinite(apart), apart, np.inf)
        k, j = np.unravel_index(int(np.argmax(apart)), apart.shape)
        text = f"'{self.names(fmu)[j]}' is {found[k, j]:.9g} instead of {expected[k, j]:.9g} after {k + 1} steps"
        return bool(apart[k, j] <= _SAME), text


# -- the claims ----------------------------------------------------------------------------------------------------
