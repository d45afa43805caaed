"""The Jacobian of a co-simulation FMU over a macro step, from the partials that it gives (theory: `partials.py`).

Partials that never change make one matrix exponential, which is kept. Others are read at both ends of the step; where
these differ, the FMU is walked through the step once more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import EndOfSimulation
from cosolve.fmu.partials import Derivatives, Partials, held_jacobian, magnus_jacobian
from cosolve.signal.polynomial import InputSignal, Polynomial
from cosolve.subsystem.linear import Linear
from cosolve.subsystem.port import Port

if TYPE_CHECKING:
    from cosolve.fmu.co_simulation import CoSimulationFmu


class StepJacobian:
    """What is known about the partials of one FMU. `constant`: they stay the same within a run.

    `of_last_step`: the FMU's derivatives are those of its last step, not of the instant.
    """

    def __init__(self, fmu: CoSimulationFmu, derivatives: Derivatives, of_last_step: bool, constant: bool) -> None:
        self._fmu, self._derivatives, self._communication = fmu, derivatives, fmu._communication
        self._of_last_step, self.constant = of_last_step, constant
        #: the last partials and what they make of a step
        self._linear: tuple[Partials, Linear] | None = None
        self._at_end: Partials | None = None
        self._watch = False  # read the partials at the end of steps, to see whether they change

    def forget(self) -> None:
        """Parameters have changed: so may the partials."""
        self._linear = self._at_end = None

    def start(self) -> None:
        """As if none had been asked for yet."""
        self._linear, self._at_end, self._watch = None, None, False

    def left(self) -> None:
        """The FMU stands somewhere else."""
        self._at_end = None

    def arrived(self) -> None:
        """The FMU has come to the end of a step."""
        if self._watch and not self.constant:
            self._at_end = self._derivatives.read()

    def __call__(self, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        """`dy(t1) / d eps` for inputs `u + eps weight`; called at the state at `t0`, which the caller restores."""
        communication, derivatives, fmu = self._communication, self._derivatives, self._fmu
        if self._of_last_step:
            self._advance(t0, u, 0.0, 1.0)
            return derivatives.read().D * _power_sum(weight, 0.5)
        if self._linear is not None and self.constant:
            return self._frozen(*self._linear, t0, t1, u, weight)
        communication.write(communication.at(u, 0.0))
        at_start = derivatives.read()
        if not self.constant and self._at_end is None:  # the first time: look whether they change
            state = fmu._save()
            self._advance(t0, u, 0.0, 1.0)
            self._at_end = derivatives.read()
            fmu._restore(state)
        self._watch = True
        if self.constant or self._at_end is None or at_start.equal(self._at_end):
            if self._linear is None or not self._linear[0].equal(at_start):
                zero = np.zeros(derivatives.n)
                ports = [[Port(f"p{k}") for k in range(m)] for m in (derivatives.p, derivatives.q)]
                parts = at_start.A, at_start.B, at_start.C, at_start.D
                self._linear = at_start, Linear(*parts, x0=zero, inputs=ports[0], outputs=ports[1])
            return self._frozen(*self._linear, t0, t1, u, weight)
        return self._walked(t0, u, weight, at_start, self._at_end)

    def kept(self, H: float, n_inputs: int) -> Callable[[Vector], Matrix] | None:
        """The same for any step of length `H`, by the weight; None where the partials may change or were never read."""
        if self._linear is None or not self.constant:
            return None
        at, linear = self._linear

        def jacobian(weight: Vector) -> Matrix:
            signal = Polynomial(0.0, H, np.zeros((len(weight), n_inputs)))
            return self._frozen(at, linear, 0.0, H, signal, weight)

        return jacobian

    def _advance(self, t0: float, u: InputSignal, a: float, b: float) -> None:
        """A subsystem step for derivatives: an FMU that wants the end of the run where it comes to has come there."""
        try:
            self._communication.advance(t0, u, a, b)
        except EndOfSimulation as end:
            if end.time is None or end.time < t0 + (b - 1e-9) * u.H:
                raise

    def _frozen(self, at: Partials, linear: Linear, t0: float, t1: float, u: InputSignal, weight: Vector) -> Matrix:
        """With the same partials all over the step."""
        if not self._communication.holds:
            return linear.jacobian(t0, t1, u, weight)
        n = self._communication.substeps
        weights = np.array([_power_sum(weight, (k + 0.5) / n) for k in range(n)])
        return held_jacobian(at, u.H, weights) + at.D * _power_sum(weight, 1.0)

    def _walked(self, t0: float, u: InputSignal, weight: Vector, at_start: Partials, at_end: Partials) -> Matrix:
        """With partials that change inside the step."""
        communication, derivatives, fmu = self._communication, self._derivatives, self._fmu
        state = fmu._save()
        last: list[Partials] = []

        def walk(fractions: list[float]) -> list[Partials]:
            if not communication.variable:  # it cannot stop inside the step: straight lines between its ends
                last[:] = [at_end]
                return [at_start.towards(at_end, s) for s in fractions]
            fmu._restore(state)
            found, here = [], 0.0
            for s in fractions:
                if not communication.pending:
                    self._advance(t0, u, here, s)
                here = s
                if s == 1.0 or not communication.holds:
                    communication.write(communication.at(u, s))
                found.append(derivatives.read())
            last[:] = found[-1:]
            return found

        def shape(s: float) -> float:
            if communication.holds:
                n = communication.substeps
                s = (min(int(s * n), n - 1) + 0.5) / n
            return _power_sum(weight, s)

        moved = magnus_jacobian(walk, shape, u.H, communication.substeps, 1e-9)
        return moved + last[0].D * _power_sum(weight, 1.0)


def _power_sum(weight: Vector, s: float) -> float:
    return float(sum(w * s**j for j, w in enumerate(weight)))
