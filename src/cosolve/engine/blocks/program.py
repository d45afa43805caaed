"""A macro step of linear subsystems written as dot products, for all variants alike.

`StepWriter` follows the method through one step (`method/explicit.py`, `method/semi_implicit.py`) and notes every sum
that it forms, in its order. What is copied is not computed, terms that are zero in all variants are left out, and so is
everything that nobody reads. `assemble` turns the notes into the instructions of `kernel.py`.

Values live in *registers*. States and coupling variables of the last macro points turn in `turns` banks of registers:
generation `g` of step `s` is bank `(s + g) % turns`, so that nothing has to be moved from step to step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.interface import Plan
from cosolve.method import GaussSeidel, Jacobi, Method, SemiImplicit
from cosolve.method.order import in_order
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


def lay_out(plan: Plan, parts: list[Matrices], method: Method) -> Layout:
    """The bank of registers for these subsystems."""
    starts = np.cumsum([0, *(len(m.A) for m in parts)])
    copied = {int(q): int(k) for q, k in zip(plan.copy_rows, plan.copy_from, strict=True)}
    updated = not isinstance(method, SemiImplicit) or method.final_update
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
class Ahead:
    """What a step of one kind needs: its length and that of past steps, how many past points there are, propagators."""

    points: int
    H: float
    past: float
    propagators: list[Matrix]
    inverse: Matrix | None = None  # of the interface Jacobian


def past_nodes(count: int, past: float, H: float) -> tuple[float, ...]:
    """Positions of the newest points, as in `signal/history.py`."""
    nodes, back = [0.0], 0.0
    for _ in range(count - 1):
        back += past
        nodes.append(-back / H)
    return tuple(nodes)


def rows_of(plan: Plan, method: Method, points: int) -> int:
    """Coefficients of the input signals in a step with so many past points (degree + 1)."""
    if not plan.n_z:
        return 1
    extrapolated, interpolated = min(method.degree, points - 1), min(method.degree, points)
    if isinstance(method, Jacobi):
        return extrapolated + 1
    if isinstance(method, GaussSeidel):
        return max(extrapolated, interpolated) + 1
    return interpolated + 1


def end_weight(method: Method, points: int, past: float, H: float) -> Matrix:
    """Weights of (end value, past values) in an interpolating signal; its first column belongs to the end value."""
    degree = min(method.degree, points)
    return np.ones((1, 1)) if degree == 0 else lagrange_weights((1.0, *past_nodes(degree, past, H)))


class StepWriter:
    """Writes down one macro step."""

    def __init__(
        self, plan: Plan, method: Method, layout: Layout, parts: list[Matrices], offsets: list[Any], table: Table
    ) -> None:
        self.plan, self.method, self.layout, self.parts, self.table = plan, method, layout, parts, table
        self.offsets = offsets  # per input: a number, or one per variant
        self._copied = {int(q): int(k) for q, k in zip(plan.copy_rows, plan.copy_from, strict=True)}
        self._notes = Notes()
        self._temps = 0

    def write(self, ahead: Ahead, observed: list[Observed]) -> Notes:
        """The step; `observed` are sums of (factors, "y", "z" or "one", index)."""
        self._notes, self._temps = Notes(), 0
        notes, n_z = self._notes, self.plan.n_z
        corrected: list[Value] | None = None
        if isinstance(self.method, SemiImplicit):
            notes.outputs, corrected = self._semi_implicit(self.method, ahead)
        elif isinstance(self.method, GaussSeidel):
            notes.outputs = self._gauss_seidel(self.method, ahead)
        else:
            signal = [self._extrapolated(q, self.method.degree, ahead) for q in range(n_z)]
            notes.outputs = self._sweep(signal, ahead, keep=True)
        z = [notes.outputs[self._copied[q]] if corrected is None else corrected[q] for q in range(n_z)]
        renamed: dict[Value, tuple[str, int, int]] = {}
        for q in range(n_z):
            place = ("live", 1, self.layout.z_place[q])
            found = z[q]
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

    # -- methods ---------------------------------------------------------------------------------------

    def _extrapolated(self, q: int, degree: int, ahead: Ahead) -> list[Value]:
        """Coefficients of the extrapolated coupling variable `q`."""
        degree = min(degree, ahead.points - 1)
        past = [self.layout.z(q, -k) for k in range(degree + 1)]
        if degree == 0:
            return [past[0]]
        W = lagrange_weights(past_nodes(degree + 1, ahead.past, ahead.H))
        return [self._sum([(float(W[j, k]), past[k]) for k in range(degree + 1)]) for j in range(degree + 1)]

    def _base(self, q: int, V: Matrix) -> list[Value]:
        """Coefficients of the interpolating signal without its end value."""
        past = [self.layout.z(q, -k) for k in range(V.shape[1] - 1)]
        return [self._sum([(float(V[j, k + 1]), past[k]) for k in range(len(past))]) for j in range(len(V))]

    def _ending(self, base: list[Value], V: Matrix, end: Value) -> list[Value]:
        """Coefficients of the signal that ends in `end`."""
        return [self._sum([(1.0, base[j]), (float(V[j, 0]), end)]) for j in range(len(V))]

    def _gauss_seidel(self, method: GaussSeidel, ahead: Ahead) -> list[Value]:
        plan, rows = self.plan, rows_of(self.plan, method, ahead.points)
        signal = [self._extrapolated(q, method.degree, ahead) for q in range(plan.n_z)]
        signal = [c + [None] * (rows - len(c)) for c in signal]
        V = end_weight(method, ahead.points, ahead.past, ahead.H)
        base = [self._base(q, V) for q in range(plan.n_z)]
        y: list[Value] = [None] * plan.n_y
        for i in in_order(plan, method.order):
            part = plan.y_slices[i]
            y[part] = self._cross(i, signal, ahead, keep=True)
            for q, k in self._copied.items():
                if part.start <= k < part.stop:
                    c = self._ending(base[q], V, y[k])
                    signal[q] = c + [None] * (rows - len(c))
        return y

    def _semi_implicit(self, method: SemiImplicit, ahead: Ahead) -> tuple[list[Value], list[Value] | None]:
        n_z = self.plan.n_z
        guess = method.degree if method.predictor is None else method.predictor
        V = end_weight(method, ahead.points, ahead.past, ahead.H)
        base = [self._base(q, V) for q in range(n_z)]
        z_p = [self._sum([(1.0, c) for c in self._extrapolated(q, guess, ahead)]) for q in range(n_z)]
        y_p = self._sweep([self._ending(base[q], V, z_p[q]) for q in range(n_z)], ahead, keep=False)
        r = [self._sum([(1.0, z_p[q]), (-1.0, y_p[self._copied[q]])]) for q in range(n_z)]
        assert ahead.inverse is not None
        dz = [self._sum([(ahead.inverse[q, k], r[k]) for k in range(n_z)]) for q in range(n_z)]
        z = [self._sum([(1.0, z_p[q]), (-1.0, dz[q])]) for q in range(n_z)]
        y = self._sweep([self._ending(base[q], V, z[q]) for q in range(n_z)], ahead, keep=True)
        return y, None if method.final_update else z

    # -- subsystems ------------------------------------------------------------------------------------

    def _sweep(self, signal: list[list[Value]], ahead: Ahead, *, keep: bool) -> list[Value]:
        return [y for i in range(self.plan.n_subsystems) for y in self._cross(i, signal, ahead, keep=keep)]

    def _cross(self, i: int, signal: list[list[Value]], ahead: Ahead, *, keep: bool) -> list[Value]:
        """Outputs of subsystem `i` at the end of the step (`subsystem/native_linear.py`); its new states if `keep`."""
        plan, part, P = self.plan, self.parts[i], ahead.propagators[i]
        n, start = len(part.A), self.layout.x_start[i]
        rows = len(signal[0]) if signal else 1
        inputs = range(plan.u_slices[i].start, plan.u_slices[i].stop)
        u = [[self._input(k, j, signal) for k in inputs] for j in range(rows)]
        old: list[Value] = [("live", 0, start + k) for k in range(n)]
        read = old + [value for row in u for value in row]
        new = []
        for m in range(n):
            into = ("live", 1, start + m) if keep else None
            new.append(self._sum(list(zip(P[m], read, strict=True)), into))
        end: list[Value] | None = None
        outputs = []
        for m in range(len(part.C)):
            terms: list[tuple[Any, Value]] = list(zip(part.C[m], new, strict=True))
            if part.D[m].any():
                if end is None:
                    end = [self._sum([(1.0, u[j][k]) for j in range(rows)]) for k in range(len(inputs))]
                terms.append((1.0, self._sum(list(zip(part.D[m], end, strict=True)))))
            outputs.append(self._sum(terms))
        return outputs

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
