"""A macro step of linear subsystems written as dot products, for all variants alike.

`StepWriter` gives the operations of `operations.py` a meaning: it carries out the step function of a method and notes
every sum that is formed, in its order. What is copied is not computed, terms that are zero in all variants are left
out, and so is everything that is not read. `assemble` turns the notes into the instructions of `kernel.py`.

Values live in *registers*. States and coupling variables of the last macro points turn in `turns` banks of registers:
generation `g` of step `s` is bank `(s + g) % turns`, so that nothing has to be moved from step to step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.engine.step_functions import OPERATION_NAMES
from cosolve.interface import Plan
from cosolve.method import Declaration, Method
from cosolve.method.explicit import in_order
from cosolve.signal.polynomial import lagrange_weights

#: A value: ("live", generation, row of the bank), ("temp", number, 0), ("one", 0, 0); None is zero in all variants.
Value = tuple[str, int, int] | None
Term = tuple[int, tuple[str, int, int]]  # row of the coefficient table, value
Integers = npt.NDArray[np.int64]

ONE: Value = ("one", 0, 0)

#: A sum of (factor, or one per variant; "y", "z" or "one"; index).
Observed = list[tuple[Any, str, int]]


class Table:
    """Coefficients of all variants, one row each; rows that are one number for all variants are kept once."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.rows: list[Vector | float] = []
        self._known: dict[float, int] = {}

    def row(self, value: Vector | float) -> int | None:
        """The row that holds `value`, or None where it is zero throughout."""
        if isinstance(value, np.ndarray):
            first = float(value[0])
            if not (value == first).all():
                self.rows.append(value)
                return len(self.rows) - 1
            value = first
        if value == 0.0:
            return None
        if value not in self._known:
            self._known[value] = len(self.rows)
            self.rows.append(float(value))
        return self._known[value]

    def zero(self) -> int:
        """A row of zeros."""
        self.rows.append(0.0)
        return len(self.rows) - 1

    def is_one(self, row: int) -> bool:
        """True for the row of ones."""
        return self._known.get(1.0) == row


@dataclass(frozen=True)
class Matrices:
    """A linear subsystem of all variants, the variant last: `A[i, j, v]`; `x0[i, v]`."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    x0: Matrix


@dataclass
class Notes:
    """The sums of one macro step in order, and where its results are."""

    sums: list[tuple[tuple[str, int, int], list[Term]]] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    live: list[tuple[str, int, int]] = field(default_factory=list)  # all that the next steps read
    observed: list[Value] = field(default_factory=list)


@dataclass(frozen=True)
class Layout:
    """Where states and coupling variables lie in a bank; coupling variables that copy a state lie there with it."""

    x_start: tuple[int, ...]
    z_place: tuple[int, ...]
    width: int

    def z(self, q: int, generation: int) -> Value:
        """Coupling variable `q`."""
        return ("live", generation, self.z_place[q])


class _Listener:
    """Executes a step function on nothing, to see whether it returns `coupling_from_outputs` of its last sweep."""

    def __init__(self) -> None:
        self.sweeps, self._problems = 0, 0

    def __getattr__(self, operation: str) -> Any:
        return lambda *_: None

    def sweep(self, *_: Any) -> None:
        self.sweeps += 1

    def editable_signal(self, *_: Any) -> None:
        self.sweeps += 1

    def serial_order(self) -> range:
        return range(0)

    def another_problem(self) -> bool:
        self._problems += 1
        return self._problems % 2 == 1

    def coupling_from_outputs(self) -> int:
        return self.sweeps


def returns_coupling_from_outputs(method: Method, declaration: Declaration) -> bool:
    """True when the coupling variables of a macro step are copies of its outputs."""
    listener = _Listener()
    returned = declaration.step_function(listener, method)
    return returned is not None and returned == listener.sweeps


def lay_out(plan: Plan, parts: list[Matrices], updated: bool) -> Layout:
    """The bank of registers for these subsystems; `updated`: the coupling variables are copies of outputs."""
    starts = np.cumsum([0, *(len(m.A) for m in parts)])
    copied = {int(q): int(k) for q, k in zip(plan.copy_rows, plan.copy_from, strict=True)}
    places, width = [], int(starts[-1])
    for q in range(plan.n_z):
        i = int(plan.y_owner[copied[q]])
        state = plain_state(parts[i], copied[q] - plan.y_slices[i].start) if updated else None
        if state is None:
            places.append(width)
            width += 1
        else:
            places.append(int(starts[i]) + state)
    return Layout(tuple(int(s) for s in starts), tuple(places), width)


def plain_state(part: Matrices, k: int) -> int | None:
    """The state that output `k` is a copy of in all variants, if it is one."""
    if part.D[k].any():
        return None
    used = np.flatnonzero(part.C[k].any(axis=1))
    return int(used[0]) if len(used) == 1 and (part.C[k, used[0]] == 1.0).all() else None


@dataclass(frozen=True)
class StepData:
    """What a step of one kind needs: its length and those of the steps before it, newest first, and propagators."""

    H: float
    past: tuple[float, ...]
    propagators: Callable[[int], list[Matrix]]  # for signals of so many rows
    inverse: Matrix | None = None  # of the interface Jacobian


def past_nodes(count: int, past: tuple[float, ...], H: float) -> tuple[float, ...]:
    """Positions of the newest points, as in `signal/history.py`."""
    nodes, back = [0.0], 0.0
    for step in past[: count - 1]:
        back += step
        nodes.append(-back / H)
    return tuple(nodes)


def end_weight(method: Method, past: tuple[float, ...], H: float) -> Matrix:
    """Weights of (end value, past values) in an interpolating signal; its first column belongs to the end value."""
    degree = min(method.degree, len(past) + 1)
    return np.ones((1, 1)) if degree == 0 else lagrange_weights((1.0, *past_nodes(degree, past, H)))


class StepWriter:
    """Writes down one macro step: the executor of the block engine."""

    def __init__(
        self, plan: Plan, method: Method, layout: Layout, parts: list[Matrices], offsets: list[Any], table: Table
    ) -> None:
        assert method.declaration is not None
        self.plan, self.method, self.declaration, self.layout, self.parts = (
            plan,
            method,
            method.declaration,
            layout,
            parts,
        )
        self.table = table
        self.offsets = offsets  # per input: a number, or one per variant
        self._copied = {int(q): int(k) for q, k in zip(plan.copy_rows, plan.copy_from, strict=True)}
        self._order = in_order(plan, self.declaration.order)
        self._notes = Notes()
        self._temps = 0

    def write(self, ahead: StepData, observed: list[Observed]) -> Notes:
        """The step; `observed` are sums of (factors, "y", "z" or "one", index)."""
        self._notes, self._temps, self._ahead = Notes(), 0, ahead
        notes, n_z = self._notes, self.plan.n_z
        self._x: list[list[Value]] = [[] for _ in self.parts]  # states after the last subsystem step
        self._y: list[Value] = [None] * self.plan.n_y
        self._V = end_weight(self.method, ahead.past, ahead.H)
        self._bases: list[list[Value]] | None = None
        self._problems = 0
        z = self.declaration.step_function(self, self.method)
        notes.outputs = self._y
        states = [x for of_one in self._x for x in of_one]  # in the order of the bank
        wanted = [*zip(states, range(len(states)), strict=True), *zip(z, self.layout.z_place, strict=True)]
        renamed: dict[Value, tuple[str, int, int]] = {}
        placed: set[int] = set()
        for found, row in wanted:
            place = ("live", 1, row)
            if row in placed:
                continue  # a coupling variable that copies a state lies there with it
            placed.add(row)
            if found is not None and found[0] == "temp" and found not in renamed:
                renamed[found] = place  # computed where it is wanted
            elif found != place:
                self._sum([(1.0, found)], place)
        notes.sums = [
            (renamed.get(into, into), [(row, renamed.get(value, value)) for row, value in terms])
            for into, terms in notes.sums
        ]
        notes.outputs = [renamed.get(value, value) for value in notes.outputs]
        notes.live = [("live", 1, k) for k in range(self.layout.width)]
        sources = {"y": notes.outputs, "z": [self.layout.z(q, 1) for q in range(n_z)], "one": [ONE]}
        for terms in observed:
            notes.observed.append(self._sum([(factor, sources[kind][k]) for factor, kind, k in terms]))
        return notes

    # -- operations: values are lists, one entry per coupling variable, and signals lists of their coefficients
    # ------------

    def extrapolated(self, degree: int) -> list[list[Value]]:
        return [self._extrapolated(q, degree, self._ahead) for q in range(self.plan.n_z)]

    def predicted(self, degree: int) -> list[Value]:
        return [self._sum([(1.0, c) for c in coefficients]) for coefficients in self.extrapolated(degree)]

    def ending_in(self, z: list[Value]) -> list[list[Value]]:
        return [self._ending(base, self._V, end) for base, end in zip(self._base_of_all(), z, strict=True)]

    def sweep(self, signal: list[list[Value]]) -> None:
        for i, part in enumerate(self.plan.y_slices):
            self._y[part], self._x[i] = self._advance(i, signal)

    def rollback(self) -> None:
        """The states of the last macro point are still there."""

    def serial_order(self) -> range:
        return range(self.plan.n_subsystems)

    def editable_signal(self, signal: list[list[Value]]) -> list[list[Value]]:
        rows = max([len(self._V), *(len(c) for c in signal)])
        return [c + [None] * (rows - len(c)) for c in signal]

    def advance(self, place: int, signal: list[list[Value]]) -> None:
        i = self._order[place]
        self._y[self.plan.y_slices[i]], self._x[i] = self._advance(i, signal)

    def set_known_ends(self, place: int, signal: list[list[Value]]) -> None:
        part = self.plan.y_slices[self._order[place]]
        for q, k in self._copied.items():
            if part.start <= k < part.stop:
                c = self._ending(self._base_of_all()[q], self._V, self._y[k])
                signal[q] = c + [None] * (len(signal[q]) - len(c))

    def coupling_from_outputs(self) -> list[Value]:
        return [self._y[self._copied[q]] for q in range(self.plan.n_z)]

    def residual(self, z: list[Value]) -> list[Value]:
        return self.minus(z, self.coupling_from_outputs())

    def minus(self, a: list[Value], b: list[Value]) -> list[Value]:
        return [self._sum([(1.0, x), (-1.0, y)]) for x, y in zip(a, b, strict=True)]

    def newton_step(self, r: list[Value]) -> list[Value]:
        inverse = self._ahead.inverse
        assert inverse is not None
        return [self._sum([(inverse[q, k], r[k]) for k in range(len(r))]) for q in range(len(r))]

    def another_problem(self) -> bool:
        self._problems += 1
        return self._problems == 1

    def accept(self, z: list[Value]) -> None:
        self._accepted = z

    def accepted(self) -> list[Value]:
        return self._accepted

    def residual_too_large(self, z: list[Value], r: list[Value]) -> bool:
        """Never: a correction of linear equations leaves nothing."""
        return False

    def corrected_again(self, z: list[Value], r: list[Value]) -> list[Value]:
        """Not called."""
        return z

    def record_scales(self, z: list[Value]) -> None:
        """Nothing is measured here."""

    def record_residual(self, r: list[Value]) -> None:
        """Nothing is recorded of it."""

    # -- signals -------------------------------------------------------------------------------------------------------

    def _extrapolated(self, q: int, degree: int, ahead: StepData) -> list[Value]:
        """Coefficients of the extrapolated coupling variable `q`."""
        degree = min(degree, len(ahead.past))
        past = [self.layout.z(q, -k) for k in range(degree + 1)]
        if degree == 0:
            return [past[0]]
        W = lagrange_weights(past_nodes(degree + 1, ahead.past, ahead.H))
        return [self._sum([(float(W[j, k]), past[k]) for k in range(degree + 1)]) for j in range(degree + 1)]

    def _base_of_all(self) -> list[list[Value]]:
        if self._bases is None:
            self._bases = [self._base(q, self._V) for q in range(self.plan.n_z)]
        return self._bases

    def _base(self, q: int, V: Matrix) -> list[Value]:
        """Coefficients of the interpolating signal without its end value."""
        past = [self.layout.z(q, -k) for k in range(V.shape[1] - 1)]
        return [self._sum([(float(V[j, k + 1]), past[k]) for k in range(len(past))]) for j in range(len(V))]

    def _ending(self, base: list[Value], V: Matrix, end: Value) -> list[Value]:
        """Coefficients of the signal that ends in `end`."""
        return [self._sum([(1.0, base[j]), (float(V[j, 0]), end)]) for j in range(len(V))]

    # -- subsystems ------------------------------------------------------------------------------------

    def _advance(self, i: int, signal: list[list[Value]]) -> tuple[list[Value], list[Value]]:
        """Outputs and states of subsystem `i` at the end of the step (`subsystem/native_linear.py`)."""
        plan, part = self.plan, self.parts[i]
        n, start = len(part.A), self.layout.x_start[i]
        rows = len(signal[0]) if signal else 1
        P = self._ahead.propagators(rows)[i]
        inputs = range(plan.u_slices[i].start, plan.u_slices[i].stop)
        u = [[self._input(k, j, signal) for k in inputs] for j in range(rows)]
        old: list[Value] = [("live", 0, start + k) for k in range(n)]
        read = old + [value for row in u for value in row]
        new = [self._sum(list(zip(P[m], read, strict=True))) for m in range(n)]
        end: list[Value] | None = None
        outputs = []
        for m in range(len(part.C)):
            terms: list[tuple[Any, Value]] = list(zip(part.C[m], new, strict=True))
            if part.D[m].any():
                if end is None:
                    end = [self._sum([(1.0, u[j][k]) for j in range(rows)]) for k in range(len(inputs))]
                terms.append((1.0, self._sum(list(zip(part.D[m], end, strict=True)))))
            outputs.append(self._sum(terms))
        return outputs, new

    def _input(self, k: int, j: int, signal: list[list[Value]]) -> Value:
        source = int(self.plan.u_source[k])
        terms: list[tuple[Any, Value]] = []
        if source >= 0:
            terms.append((float(self.plan.u_factor[k]), signal[source][j]))
        if j == 0:
            terms.append((self.offsets[k], ONE))
        return self._sum(terms)

    def _sum(self, terms: list[tuple[Any, Value]], into: tuple[str, int, int] | None = None) -> Value:
        """Note a sum and return its value; a plain copy is none, unless it has to go `into` a register."""
        found: list[Term] = []
        for coefficient, value in terms:
            if value is not None:
                row = self.table.row(coefficient)
                if row is not None:
                    found.append((row, value))
        if into is None:
            if not found:
                return None
            if len(found) == 1 and self.table.is_one(found[0][0]):
                return found[0][1]
            into = ("temp", self._temps, 0)
            self._temps += 1
        if not found:  # zero, but the register must hold it
            found.append((self.table.zero(), ("one", 0, 0)))
        self._notes.sums.append((into, found))
        return into


#: The operations that have a meaning here.
OPERATIONS = OPERATION_NAMES & vars(StepWriter).keys()
