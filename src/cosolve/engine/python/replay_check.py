"""Check of rollback over a whole run: its recorded inputs, advanced once more without going back, give its outputs.

A subsystem that forgets something when its state is restored may repeat every step with the same bits and still be
wrong from the first restore on: an event that it takes for done, a memory that never comes back. So the inputs of the
steps that count are kept, and afterwards it starts anew and advances them without being set back. Where its outputs are
others than those of the run, the run is wrong.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import CosolveError, EndOfSimulation
from cosolve.signal.polynomial import within
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.port import Ports

if TYPE_CHECKING:
    from cosolve.engine.python.subsystem_caller import SubsystemCaller
    from cosolve.subsystem.native import Native

_HEAD = 4  # t0, t1, H, rows of coefficients
_FIRST, _LARGEST = 64, 32_000_000  # rows to begin with; bytes in memory
#: Of the largest output of a subsystem: others that pass through zero have rounding errors of this size.
_ROUNDING = 1e-12


class Past:
    """The subsystem steps of one subsystem that count: what the last subsystem step from a point replaces is forgotten.

    Rows of `t0, t1, H, rows, coefficients, outputs`; what is long ago lies in a temporary file.
    """

    def __init__(self, width: int, outputs: Ports, degree: int) -> None:
        self._outputs = outputs
        self.width, self.size, self.most = width, outputs.length, degree + 1
        self.length = _HEAD + self.most * width + self.size
        self._capacity = max(_FIRST, _LARGEST // (8 * self.length))
        self.reset(0.0, np.zeros(width))

    def reset(self, t0: float, u: Vector) -> None:
        """A run begins at `t0`, where the initialisation ends with the inputs `u`."""
        self.t0, self.u = t0, u.copy()
        self.rows: Matrix = np.empty((_FIRST, self.length))
        self.count, self.spilled = 0, 0
        self._recent: list[tuple[float, float, float, Matrix, Any]] = []  # steps that are in no row yet
        self._file: Any = None
        self.changes: list[tuple[float, Mapping[str, Any]]] = []
        #: whether it was ever set back; why the past is not complete
        self.restored, self.gap = False, ""
        self.compiled = False  # whether some of it was advanced in machine code

    def note_step(self, t0: float, t1: float, H: float, values: Matrix, outputs: Sequence[float] | Vector) -> None:
        """It advanced from `t0` to `t1` with these coefficients of its inputs, and gave these outputs."""
        recent = self._recent
        while recent and recent[-1][0] >= t0:
            recent.pop()
        if not recent:
            self._forget_from(t0)
        recent.append((t0, t1, H, values, outputs.copy() if isinstance(outputs, np.ndarray) else tuple(outputs)))
        if len(recent) == _FIRST:
            self._pack()

    def _pack(self) -> None:
        """Write down the steps that were noted, in rows."""
        recent, self._recent = self._recent, []
        if not recent:
            return
        if max(len(values) for *_, values, _ in recent) > self.most:
            self.gap = "its inputs had more coefficients than the method has"
            return
        rows = self._new_rows(len(recent))
        for row, (t0, t1, H, values, outputs) in zip(rows, recent, strict=True):
            row[:_HEAD] = t0, t1, H, len(values)
            row[_HEAD : _HEAD + values.size] = values.ravel()
            row[self.length - self.size :] = self._outputs.pack(outputs)

    def extend(self, rows: Matrix) -> None:
        """Many subsystem steps at once, one after the other."""
        self._pack()
        if len(rows):
            self._forget_from(float(rows[0, 0]))
            if int(rows[:, 3].max()) > self.most:
                self.gap = "its inputs had more coefficients than the method has"
            self._new_rows(len(rows))[:] = rows

    def changed(self, t: float, values: Mapping[str, Any]) -> None:
        """Parameters were changed at `t`."""
        self.changes.append((t, values))

    def mark(self) -> tuple[int, Vector]:
        """Where the past ends now."""
        self._pack()
        return self.count, self.rows[self.count - 1].copy() if self.count else np.zeros(0)

    def go_back(self, mark: tuple[int, Vector]) -> None:
        """What came since a mark, at most another subsystem step of the last step, does not count."""
        self._recent = []
        self.count = mark[0]
        if self.count:
            self.rows[self.count - 1] = mark[1]

    def last(self) -> Vector | None:
        """The newest row."""
        self._pack()
        return self.rows[self.count - 1] if self.count else None

    def blocks(self) -> Iterator[Matrix]:
        """All rows, many at a time."""
        self._pack()
        if self._file is not None:
            self._file.seek(0)
            for begin in range(0, self.spilled, self._capacity):
                count = min(self._capacity, self.spilled - begin)
                yield np.frombuffer(self._file.read(8 * self.length * count)).reshape(count, self.length)
        yield self.rows[: self.count]

    def coefficients(self, row: Vector) -> Matrix:
        """Coefficients of the inputs of a row."""
        n = int(row[3])
        return row[_HEAD : _HEAD + n * self.width].reshape(n, self.width)

    def outputs(self, rows: Any) -> Any:
        """Outputs of a row, or of several."""
        return rows[..., self.length - self.size :]

    def _forget_from(self, t0: float) -> None:
        k, rows = self.count, self.rows
        while k and rows[k - 1, 0] >= t0:
            k -= 1
        self.count = k
        if not k and self.spilled:
            self.gap = "the run went back further than its past is kept"

    def _new_rows(self, n: int) -> Matrix:
        if self.count + n > self._capacity and self.count > _FIRST:
            self._spill()
        if self.count + n > len(self.rows):
            grown = np.empty((max(2 * len(self.rows), self.count + n), self.length))
            grown[: self.count] = self.rows[: self.count]
            self.rows = grown
        self.count += n
        return self.rows[self.count - n : self.count]

    def _spill(self) -> None:
        """All but the newest rows go into the file."""
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._file.seek(8 * self.length * self.spilled)
        away = self.count - 1
        self._file.write(self.rows[:away].tobytes())
        self.spilled += away
        self.rows[0] = self.rows[away]
        self.count = 1


@dataclass(frozen=True)
class Mismatch:
    """Where the run and the same inputs without going back are furthest apart, relative to the largest value."""

    label: str
    time: float
    run: float
    again: float
    size: float
    #: from when on they are apart, and how far they may be
    since: float
    allowed: float

    @property
    def text(self) -> str:
        """What was found, for a sentence."""
        return (
            f"without going back its inputs give '{self.label}' = {self.again:.5g} at t = {self.time:.5g}, and the run "
            f"has {self.run:.5g} (apart from t = {self.since:.5g} on, by {100.0 * self.size:.2g} % of its largest)"
        )


def replayed(caller: SubsystemCaller, i: int) -> Mismatch | str | None:
    """Subsystem `i` starts anew and advances over its past: where that is not the run, or why it cannot be told.

    It stands at the end of the run afterwards, as if it had never gone back.
    """
    past, subsystem = caller.past[i], caller.plan.subsystems[i]
    if past is None or past.gap:
        return "" if past is None else past.gap
    apart = _OutputDistance(past.size, max(float(subsystem.repeats_to), 10.0 * float(subsystem.noise)))
    try:
        compiled = past.compiled and not past.changes
        if not (compiled and _repeat(caller, i, past, apart, compiled=True)):
            apart = _OutputDistance(past.size, apart.allowed)
            _repeat(caller, i, past, apart, compiled=False)
    except (CosolveError, EndOfSimulation) as error:
        return f"it could not be started once more ({error})"
    except Exception as error:  # of the user's code
        return f"it could not be started once more ({type(error).__name__}: {error})"
    return apart.worst_of(caller.plan.output_ports[i].labels())


def _repeat(caller: SubsystemCaller, i: int, past: Past, apart: _OutputDistance, *, compiled: bool) -> bool:
    """Start it and advance all rows; False where machine code cannot."""
    again = _Again(caller, i, past, compiled)
    for rows in past.blocks():
        found = again.outputs(rows)
        if found is None:
            return False
        apart.look(rows[:, 1], past.outputs(rows), found)
    return True


class _Again:
    """A subsystem that begins its past anew and advances it once more, as machine code where it is to be `compiled`."""

    def __init__(self, caller: SubsystemCaller, i: int, past: Past, compiled: bool) -> None:
        self._caller, self._i, self._past, self._compiled = caller, i, past, compiled
        self._changes = _start_again(caller, i, past)
        self._native: Native | None = None

    def outputs(self, rows: Matrix) -> Matrix | None:
        """Outputs at the ends of these rows; None where machine code cannot advance them."""
        past, subsystem, changes = self._past, self._caller.plan.subsystems[self._i], self._changes
        ports, usual = self._caller.plan.output_ports[self._i], len(rows)
        if self._compiled:  # steps of a start belong to the Python engine; they have fewer coefficients
            usual = int(np.append(np.flatnonzero(rows[:, 3] == past.most), len(rows))[0])
        found = np.empty((len(rows), past.size))
        for k, row in enumerate(rows[:usual]):
            while changes and changes[0][0] <= row[0]:
                subsystem.set_parameters(changes.pop(0)[1])
            found[k] = ports.pack(self._caller.advance_again(self._i, row[0], row[1], row[2], past.coefficients(row)))
        rest = rows[usual:]
        if len(rest):
            from cosolve.engine.native.replay import advance_rows, native_of

            native = self._native = self._native or native_of(subsystem, float(rest[0, 2]), past.most - 1)
            same = (rest[:, 3] == past.most).all() and (native is None or native.any_step or not np.ptp(rest[:, 2]))
            advanced = advance_rows(native, rest, past.size) if native is not None and same else None
            if advanced is None:
                return None
            found[usual:] = advanced
        return found


def _start_again(caller: SubsystemCaller, i: int, past: Past) -> list[tuple[float, Mapping[str, Any]]]:
    """Subsystem `i` begins its past anew; changes of its parameters that are to come."""
    subsystem, changes = caller.plan.subsystems[i], list(past.changes)
    tell = getattr(subsystem, "will_end", None)
    if tell is not None:
        tell(caller.t_end)
    if changes:  # back to what they were before the first of them
        first = caller.plan.changes.values_at(-np.inf, 0.0).get(caller.plan.names[i], {})
        subsystem.set_parameters(first)
    subsystem.start(past.t0)
    if has_capability(subsystem, "initialisation"):
        subsystem.begin(past.t0, past.u.copy())
    return changes


def in_pieces(caller: SubsystemCaller, i: int, places: Vector) -> tuple[Matrix, Matrix] | None:
    """Outputs of subsystem `i` inside and at the end of each step of its past, advanced in two pieces.

    `places` says at which part of each step the pieces meet. None where there is no complete past.
    """
    past = caller.past[i]
    if past is None or past.gap:
        return None
    found = _in_pieces(caller, i, past, places, compiled=True) if past.compiled and not past.changes else None
    return found or _in_pieces(caller, i, past, places, compiled=False)


def _in_pieces(
    caller: SubsystemCaller, i: int, past: Past, places: Vector, *, compiled: bool
) -> tuple[Matrix, Matrix] | None:
    again, k, found = _Again(caller, i, past, compiled), 0, np.empty((2, len(places), past.size))
    for rows in past.blocks():
        place = places[k : k + len(rows)]
        outputs = again.outputs(_divided(past, rows, place)) if len(place) == len(rows) else None
        if outputs is None:
            return None
        found[:, k : k + len(rows)] = outputs[0::2], outputs[1::2]
        k += len(rows)
    return (found[0], found[1]) if k == len(places) else None


def _divided(past: Past, rows: Matrix, places: Vector) -> Matrix:
    """Two rows for each of these, which meet at these places of their steps."""
    t0, t1, H = rows[:, 0], rows[:, 1], rows[:, 2]
    values = rows[:, _HEAD : past.length - past.size].reshape(len(rows), past.most, past.width).transpose(1, 0, 2)
    values = np.where(np.arange(past.most)[:, np.newaxis] < rows[:, 3], values.transpose(2, 0, 1), 0.0).transpose(
        1, 2, 0
    )
    middle, divided = t0 + places * (t1 - t0), np.empty((len(rows), 2, past.length - past.size))
    for piece, begin, end, place, part in ((0, t0, middle, 0.0, places), (1, middle, t1, places, 1.0 - places)):
        divided[:, piece, :_HEAD] = np.column_stack([begin, end, part * H, rows[:, 3]])
        signal = within(values, np.reshape(place, (-1, 1)), part[:, np.newaxis])
        divided[:, piece, _HEAD:] = signal.transpose(1, 0, 2).reshape(len(rows), -1)
    return divided.reshape(2 * len(rows), -1)


class _OutputDistance:
    """How far outputs are apart from those of the run, relative to the largest so far."""

    def __init__(self, size: int, allowed: float) -> None:
        self.allowed = allowed
        self._largest, self._worst, self._since = np.zeros(size), np.zeros(size), np.full(size, np.nan)
        self._found = np.zeros((size, 3))  # time, value of the run, value now

    def look(self, t: Vector, was: Matrix, now: Matrix) -> None:
        """At these times the run had these outputs, and now they are those."""
        if not was.size:
            return
        largest = np.maximum(np.maximum.accumulate(np.abs(was), axis=0), self._largest)
        self._largest = largest[-1]
        off = np.abs(now - was)
        far = off > self.allowed * largest + _ROUNDING * largest.max(axis=1, keepdims=True)
        first = np.argmax(far, axis=0)
        new = far.any(axis=0) & np.isnan(self._since)
        self._since[new] = t[first[new]]
        at = np.argmax(off, axis=0)
        columns = np.arange(off.shape[1])
        for k in np.flatnonzero(off[at, columns] > self._worst):
            self._worst[k] = off[at[k], k]
            self._found[k] = t[at[k]], was[at[k], k], now[at[k], k]

    def worst_of(self, labels: list[str]) -> Mismatch | None:
        """The output that is furthest apart; None where all are the same."""
        if not self._worst.any():
            return None
        floor = _ROUNDING * self._largest.max(initial=0.0) / self.allowed
        relative = self._worst / np.maximum(np.maximum(self._largest, floor), np.finfo(np.float64).tiny)
        k = int(np.argmax(relative))
        t, was, now = (float(value) for value in self._found[k])
        return Mismatch(labels[k], t, was, now, float(relative[k]), float(self._since[k]), self.allowed)


def advanced_again(caller: SubsystemCaller, i: int, states: Any) -> tuple[Vector, Vector] | None:
    """Outputs of the last step of subsystem `i`, and those of the same step once more from its saved state."""
    past = caller.past[i]
    row = None if past is None else past.last()
    if past is None or row is None:
        return None
    row = row.copy()
    caller.restore_one(i, states)
    call = partial(caller.advance_again, i, row[0], row[1], row[2], past.coefficients(row))
    return past.outputs(row).copy(), caller.guarded(i, float(row[0]), "advancing", call)
