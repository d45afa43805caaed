"""Derivatives of an FMU: instantaneous partials, and what becomes of them over a macro step.

Directional derivatives of FMI are partials at one instant: A = dx'/dx, B = dx'/du, C = dy/dx, D = dy/du. Over a macro
step an input perturbed by `eps w(s)` moves the outputs at its end by

    J = C(t1) S(t1) + D(t1) w(1),     S' = A(t) S + B(t) w(s),   S(t0) = 0.

Where the partials stay the same over the step this is one matrix exponential; where they change, the FMU is walked
through the step and the sensitivities follow the method of Magnus (1954), order 4, on finer and finer pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.matrix_exponential import matrix_exponential
from cosolve.errors import EndOfSimulation
from cosolve.fmu.description import Variable
from cosolve.fmu.instance import Instance
from cosolve.signal.polynomial import InputSignal, Polynomial
from cosolve.subsystem.linear import Linear
from cosolve.subsystem.port import Port

if TYPE_CHECKING:
    from cosolve.fmu.co_simulation import CoSimulationFmu


_GAUSS = (0.5 - 3**0.5 / 6, 0.5 + 3**0.5 / 6)
_MOST_PIECES = 64


@dataclass(frozen=True, slots=True)
class Partials:
    """A, B, C, D at one instant."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix

    def equal(self, other: Partials) -> bool:
        """True when nothing differs beyond rounding."""
        pairs = ((self.A, other.A), (self.B, other.B), (self.C, other.C), (self.D, other.D))
        return all(np.allclose(a, b, rtol=1e-12, atol=1e-14 * (1 + np.abs(b).max(initial=0.0))) for a, b in pairs)

    def towards(self, other: Partials, s: float) -> Partials:
        """Partials between these (s = 0) and others (s = 1)."""
        pairs = ((self.A, other.A), (self.B, other.B), (self.C, other.C), (self.D, other.D))
        return Partials(*((1 - s) * a + s * b for a, b in pairs))


class Derivatives:
    """Reads the partials of an instance for these states, inputs and outputs.

    Only real variables have derivatives: rows and columns of others are zero. Adjoint derivatives (rows) are used where
    they are fewer, or the only ones.
    """

    def __init__(self, instance: Instance, inputs: list[Variable], outputs: list[Variable]) -> None:
        description = instance.description
        self._instance = instance
        self._states = description.states
        rates = [description.variables[unknown.name] for unknown in description.derivatives]
        self.n = sum(v.length for v in self._states)
        self.p, self.q = sum(v.length for v in inputs), sum(v.length for v in outputs)
        # outputs that are states, or inputs handed through, are known without asking
        self._rows = [*_placed(rates, 0), *_placed(outputs, self.n)]
        self._columns = [*_placed(self._states, 0), *_placed(inputs, self.n)]
        self._rows = [(v, place) for v, place in self._rows if v.is_float]
        self._columns = [(v, place) for v, place in self._columns if v.is_float]
        by_reference = {v.reference: place for v, place in self._columns}
        self._same = [
            (place, by_reference[v.reference], v.length) for v, place in self._rows if v.reference in by_reference
        ]
        self._rows = [(v, place) for v, place in self._rows if v.reference not in by_reference]
        flags = instance.flags
        self._by_rows = flags.has("providesAdjointDerivatives") and (
            not flags.has("providesDirectionalDerivatives") or _count(self._rows) < _count(self._columns)
        )
        self.calls = 0

    def read(self) -> Partials:
        """The partials at the present state and inputs."""
        n = self.n
        whole = np.zeros((n + self.q, n + self.p))
        for row, column, length in self._same:
            whole[np.arange(row, row + length), np.arange(column, column + length)] = 1.0
        if self._rows and self._columns:
            block = self._by_adjoint() if self._by_rows else self._by_direction()
            whole[np.ix_(_indices(self._rows), _indices(self._columns))] = block
        return Partials(whole[:n, :n], whole[:n, n:], whole[n:, :n], whole[n:, n:])

    def _by_direction(self) -> Matrix:
        """Column by column."""
        columns = _count(self._columns)
        block = np.empty((_count(self._rows), columns))
        rows = np.array([v.reference for v, _ in self._rows], dtype=np.uint32)
        moved = np.empty(len(block))
        for k, (reference, seed) in enumerate(_seeds(self._columns)):
            self._ask("GetDirectionalDerivative", rows, reference, seed, moved)
            block[:, k] = moved
        return block

    def _by_adjoint(self) -> Matrix:
        """Row by row (FMI 3.0)."""
        block = np.empty((_count(self._rows), _count(self._columns)))
        columns = np.array([v.reference for v, _ in self._columns], dtype=np.uint32)
        moved = np.empty(block.shape[1])
        for k, (reference, seed) in enumerate(_seeds(self._rows)):
            self._ask("GetAdjointDerivative", reference, columns, seed, moved)
            block[k] = moved
        return block

    def _ask(
        self, function: str, of: npt.NDArray[np.uint32], by: npt.NDArray[np.uint32], seed: Vector, moved: Vector
    ) -> None:
        self.calls += 1
        seeds = (seed.ctypes.data,) if self._instance.fmi == 2 else (seed.ctypes.data, len(seed))
        found = (moved.ctypes.data,) if self._instance.fmi == 2 else (moved.ctypes.data, len(moved))
        self._instance.call(function, of.ctypes.data, len(of), by.ctypes.data, len(by), *seeds, *found)


def _placed(variables: list[Variable], start: int) -> Iterator[tuple[Variable, int]]:
    for variable in variables:
        yield variable, start
        start += variable.length


def _seeds(variables: Iterable[tuple[Variable, Any]]) -> Iterator[tuple[npt.NDArray[np.uint32], Vector]]:
    """The unit vectors of each variable, one after the other, with its reference."""
    for variable, _ in variables:
        reference, seed = np.array([variable.reference], dtype=np.uint32), np.zeros(variable.length)
        for j in range(variable.length):
            seed[:] = 0.0
            seed[j] = 1.0
            yield reference, seed


def _count(placed: list[tuple[Variable, int]]) -> int:
    return sum(v.length for v, _ in placed)


def _indices(placed: list[tuple[Variable, int]]) -> list[int]:
    return [place + j for v, place in placed for j in range(v.length)]


# -- over a macro step -------------------------------------------------------------------------------------------


def held_jacobian(at: Partials, H: float, weights: Vector) -> Matrix:
    """J for constant partials and an input that is held over equal pieces of the step, with the weight of each piece.

    >>> one = np.eye(1)
    >>> still = Partials(0 * one, one, one, 0 * one)      # x' = u, y = x: half a step with weight 1, half with 3
    >>> held_jacobian(still, 0.1, np.array([1.0, 3.0]))
    array([[0.2]])
    """
    n, p = at.B.shape
    chain = np.zeros((n + p, n + p))
    chain[:n, :n], chain[:n, n:] = at.A, at.B
    grown = matrix_exponential(chain * (H / len(weights)))[:n]
    S = np.zeros((n, p))
    for weight in weights:
        S = grown[:, :n] @ S + grown[:, n:] * weight
    moved: Matrix = at.C @ S
    return moved


def magnus_jacobian(
    walk: Callable[[list[float]], list[Partials]],
    weight: Callable[[float], float],
    H: float,
    pieces: int,
    tolerance: float,
) -> Matrix:
    """`C(t1) S(t1)` where the partials change within the step.

    `walk(times)` gives the partials at these fractions of the step; `weight(s)` is `w` there. The number of
    pieces, at first `pieces`, is doubled until the result stands still to `tolerance` (relative).
    """
    last: Matrix | None = None
    while True:
        nodes = [(k + c) / pieces for k in range(pieces) for c in _GAUSS]
        found = walk([*nodes, 1.0])
        n, p = found[0].B.shape
        S = np.zeros((n, p))
        h = H / pieces
        for k in range(pieces):
            one, two = (_joined(found[2 * k + i], weight(nodes[2 * k + i])) for i in (0, 1))
            grown = matrix_exponential(0.5 * h * (one + two) + 3**0.5 / 12 * h**2 * (two @ one - one @ two))[:n]
            S = grown[:, :n] @ S + grown[:, n:]
        moved: Matrix = found[-1].C @ S
        if last is not None:
            scale = np.abs(moved).max(initial=0.0)
            if np.abs(moved - last).max(initial=0.0) <= tolerance * scale or pieces >= _MOST_PIECES:
                return moved
        last, pieces = moved, 2 * pieces


def _joined(at: Partials, weight: float) -> Matrix:
    n, p = at.B.shape
    joined = np.zeros((n + p, n + p))
    joined[:n, :n], joined[:n, n:] = at.A, at.B * weight
    return joined


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
