"""Inputs driven from outside: functions of time and tables, known exactly at every instant.

Such an input is no coupling variable: nothing is extrapolated. Over a macro step it is a row of polynomials, exact for
tables, and for functions interpolated at Chebyshev points (both ends included) so closely that the difference is
rounding. Where a function has kinks or jumps it is cut there, by halving until every part fits. What no polynomial
follows (noise, a signal of many jumps or few digits) is cut into a bounded number of parts, the worst first; a note
says how far the polynomials are from the function then.
"""

from __future__ import annotations

import csv
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from itertools import pairwise
from math import comb, cos, pi
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import choice, is_number
from cosolve.basics.error_location import complaints_about
from cosolve.basics.wording import did_you_mean
from cosolve.errors import SetupError
from cosolve.result.notes import Level, Note
from cosolve.signal.polynomial import horner
from cosolve.signal.time_function import numbers, value_at

Kind = Literal["linear", "step", "cubic"]
Beyond = Literal["hold", "error"]

_FIT = 1e-10  # of the largest value: as close as an interpolated function has to be
_TIME_ROUNDINGS = 16 * np.finfo(float).eps  # of the time at which a function is asked, and of what it computes from it
_DEGREES = (2, 4, 8, 12)
_OFF_GRID = (0.0411, 0.3713, 0.6307, 0.9583)  # where an interpolation is tested
_FEW, _MOST = 16, 1024  # parts of a macro step: so many in any case, and at most
_GAIN = 0.8  # what twice as many parts must bring the difference down to, for more of them
_SEEN, _ROUGH = 1e-6, 1e-3  # relative differences that a note is about, and that it warns of
_SHORTEST = 1e-9  # of the macro step: no part of a function is cut further
_CLOSE = 1e-9  # of the macro step: a knot so close to its end is its end
_SAME_TIME = 1e-12  # relative rounding of times


@dataclass(frozen=True)
class Piece:
    """A polynomial from `a` to `b`: `coefficients[j]` multiplies `s**j`, with `s` from 0 to 1."""

    a: float
    b: float
    coefficients: Matrix

    def between(self, a: float, b: float) -> Matrix:
        """Coefficients over `a` to `b`, a part of it."""
        if a == self.a and b == self.b:
            return self.coefficients
        width = self.b - self.a
        return shifted(self.coefficients, (a - self.a) / width, (b - a) / width)


def shifted(coefficients: Matrix, start: float, scale: float) -> Matrix:
    """Coefficients of `p(start + scale * s)`.

    >>> shifted(np.array([[0.0], [0.0], [1.0]]), 1.0, 2.0).ravel()
    array([1., 4., 4.])
    """
    n = len(coefficients)
    new = np.zeros_like(coefficients)
    for j in range(n):
        for k in range(j, n):
            new[j] += comb(k, j) * start ** (k - j) * coefficients[k]
        new[j] *= scale**j
    return new


class Drive:
    """What drives inputs from outside. `label` says it in a few words."""

    label: str
    smooth = True  # as far as is known

    def reset(self) -> None:
        """Forget what was changed during an earlier run."""

    def value(self, t: float, right: bool = False) -> Vector:
        """Return the values at a time.

        Parameters
        ----------
        t : float
            Time in seconds.
        right : bool, default False
            At a jump, return the values after it instead of those before it.

        Returns
        -------
        ndarray
            The values, flat.
        """
        raise NotImplementedError

    def pieces(self, a: float, b: float) -> list[Piece]:
        """Return the polynomials that represent the drive over an interval.

        Parameters
        ----------
        a, b : float
            Start and end of the interval in seconds.

        Returns
        -------
        list of Piece
            The polynomials in order of time.
        """
        raise NotImplementedError

    def local(self, a: float, b: float) -> tuple[float, Matrix] | None:
        """Return the one polynomial that `value` computes over an interval, to the last bit.

        Parameters
        ----------
        a, b : float
            Start and end of the interval in seconds.

        Returns
        -------
        tuple of (float, ndarray) or None
            A time and the coefficients of powers of the time since then. None if it is no single polynomial.
        """
        return None

    def next_knot(self, t: float) -> float:
        """Return the next time at which the drive is known not to be smooth.

        Parameters
        ----------
        t : float
            Time in seconds.

        Returns
        -------
        float
            The first such time after `t`; infinite if there is none.
        """
        return np.inf

    def begin(self) -> None:
        """Forget how well an earlier run was followed."""

    def note(self, target: str) -> Note | None:
        """Return what a run should say of how well the drive was followed.

        Parameters
        ----------
        target : str
            Address of the driven input.

        Returns
        -------
        Note or None
            The note, if there is something to say.
        """
        return None

    def refuse_outside(self, t_start: float, t_end: float, target: str) -> None:
        """Raise an error if a run needs times at which the drive has no value.

        Parameters
        ----------
        t_start, t_end : float
            Start and end of the run in seconds.
        target : str
            Address of the driven input, for the message.

        Raises
        ------
        SetupError
            If it does.
        """


class Table(Drive):
    """Values over time, to drive an input.

    Parameters
    ----------
    times : array_like
        Times in seconds, increasing. With `kind="linear"` a time listed twice is a jump.
    values : array_like
        One value per time, or one row of values per time for a vector.
    kind : {"linear", "step", "cubic"}, default "linear"
        Interpolation: straight lines, values held from their time on, or a smooth spline.
    beyond : {"hold", "error"}, default "hold"
        Before the first and after the last time the values are held, or a run that needs them is refused.

    Raises
    ------
    SetupError
        If times do not increase or shapes do not fit.

    Examples
    --------
    >>> import cosolve as cs
    >>> table = cs.Table([0.0, 1.0, 3.0], [0.0, 2.0, 0.0])
    >>> table(0.5), table(2.0), table(9.0)
    (1.0, 1.0, 0.0)
    """

    def __init__(
        self, times: npt.ArrayLike, values: npt.ArrayLike, *, kind: Kind = "linear", beyond: Beyond = "hold"
    ) -> None:
        try:
            t, v = np.array(times, dtype=np.float64), np.array(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise SetupError("Table: times and values are lists of numbers") from None
        if t.ndim != 1 or v.ndim not in (1, 2) or len(t) != len(v) or not len(t):
            raise SetupError(
                f"Table: times of shape {t.shape} and values of shape {v.shape} do not fit; give one value (or one row "
                "of values) per time"
            )
        if not (np.isfinite(t).all() and np.isfinite(v).all()):
            raise SetupError("Table: times and values must be finite; leave rows without a value out")
        choice("Table", "kind", kind, ("linear", "step", "cubic"))
        choice("Table", "beyond", beyond, ("hold", "error"))
        steps = np.diff(t)
        if (steps < 0).any() or (kind != "linear" and (steps == 0).any()):
            k = int(np.flatnonzero(steps < 0 if (steps < 0).any() else steps == 0)[0])
            raise SetupError(
                f"Table: times must increase, but {t[k]:g} is followed by {t[k + 1]:g}"
                + ("" if steps[k] < 0 else " (only kind='linear' takes a time twice, as a jump)")
            )
        if kind == "cubic" and len(t) < 2:
            raise SetupError("Table: kind='cubic' needs at least 2 points")
        self.times, self.values = t, v
        self.kind, self.beyond = kind, beyond
        self._rows = v.reshape(len(t), -1)
        self._breaks: list[float] = t.tolist()
        self._local = self._polynomials()
        self._knots = self._where_it_changes()
        self.smooth = not self._knots
        self._same = _SAME_TIME * max(abs(self._breaks[0]), abs(self._breaks[-1]))
        self.label = f"table of {len(t)} points"

    @classmethod
    def read(
        cls,
        path: str | Path,
        value: str | Sequence[str] | None = None,
        *,
        time: str | None = None,
        kind: Kind = "linear",
        beyond: Beyond = "hold",
    ) -> Table:
        r"""Read a table from a CSV file with a line of names.

        Parameters
        ----------
        path : str or Path
            The file. Columns are separated by commas, semicolons or tabs.
        value : str, sequence of str or None, default None
            Column with the values; several make a table of vectors. None: the only other column.
        time : str or None, default None
            Column with the times in seconds. None: the first one.
        kind : {"linear", "step", "cubic"}, default "linear"
            Interpolation, see `Table`.
        beyond : {"hold", "error"}, default "hold"
            Values outside the times, see `Table`.

        Returns
        -------
        Table
            The table.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "drive.csv")
        ...     _ = file.write_text("t,torque\n0,1\n2,5\n")
        ...     Table.read(file, "torque")(1.0)
        3.0
        """
        names, columns = read_csv(path)
        at = names[0] if time is None else time
        if value is None:
            others = [name for name in names if name != at]
            if len(others) != 1:
                raise SetupError(f"'{path}' has the columns {', '.join(names)}; say which one drives with value=...")
            value = others[0]
        wanted = [value] if isinstance(value, str) else list(value)
        for name in (at, *wanted):
            if name not in names:
                raise SetupError(f"'{path}' has no column '{name}'; {did_you_mean(name, names)}")
        rows = columns[:, [names.index(name) for name in wanted]]
        values = rows[:, 0] if isinstance(value, str) else rows
        with complaints_about(f"'{path}'"):
            return cls(columns[:, names.index(at)], values, kind=kind, beyond=beyond)

    def __call__(self, t: float) -> float | Vector:
        """The value at `t` (after it, at a jump)."""
        found = self.value(t, right=True)
        return float(found[0]) if self.values.ndim == 1 else found

    def value(self, t: float, right: bool = False) -> Vector:
        same = max(self._same, _SAME_TIME * abs(t))
        return self._at(self._place(t + same if right else t - same), t)

    def pieces(self, a: float, b: float) -> list[Piece]:
        close = _CLOSE * (b - a)
        first, last = bisect_right(self._knots, a + close), bisect_left(self._knots, b - close)
        cuts = [a, *self._knots[first:last], b]
        return [Piece(c, d, self._between(c, d)) for c, d in pairwise(cuts)]

    def local(self, a: float, b: float) -> tuple[float, Matrix] | None:
        close = _CLOSE * (b - a)
        if bisect_right(self._knots, a + close) < bisect_left(self._knots, b - close):
            return None
        k = self._place(0.5 * (a + b))
        if k < 0 or k >= len(self._breaks) - 1:
            return a, self._at(k, a)[np.newaxis]
        return self._breaks[k], self._local[k]

    def next_knot(self, t: float) -> float:
        k = bisect_right(self._knots, t + max(self._same, _SAME_TIME * abs(t)))
        return self._knots[k] if k < len(self._knots) else np.inf

    def refuse_outside(self, t_start: float, t_end: float, target: str) -> None:
        first, last = self._breaks[0], self._breaks[-1]
        same = max(self._same, _SAME_TIME * max(abs(t_start), abs(t_end) if np.isfinite(t_end) else 0.0))
        if self.beyond == "error" and (t_start < first - same or t_end > last + same):
            raise SetupError(
                f"the table for '{target}' reaches from t = {first:g} to {last:g}, but the run goes from {t_start:g} "
                f"to {t_end:g}; give more points, or hold the last ones with beyond='hold'"
            )

    def _polynomials(self) -> Any:
        """Per interval, coefficients of powers of the time since it began."""
        if self.kind == "step" or len(self._breaks) == 1:
            return self._rows[:-1, np.newaxis]
        if self.kind == "cubic":
            from scipy.interpolate import CubicSpline

            spline = CubicSpline(self.times, self._rows, bc_type="not-a-knot" if len(self.times) > 3 else "natural")
            return np.moveaxis(spline.c[::-1], 1, 0)
        steps = np.diff(self.times)[:, np.newaxis]
        slopes = np.divide(np.diff(self._rows, axis=0), steps, out=np.zeros_like(self._rows[1:]), where=steps > 0)
        return np.stack([self._rows[:-1], slopes], axis=1)

    def _where_it_changes(self) -> list[float]:
        """The times at which one polynomial follows another; not inside stretches of constant values."""
        degree = self._local.shape[1] if len(self._breaks) > 1 else 1
        held = np.zeros((1, degree, self._rows.shape[1]))
        before, after = held.copy(), held.copy()
        before[0, 0], after[0, 0] = self._rows[0], self._rows[-1]
        all_pieces = np.concatenate([before, self._local, after]) if len(self._breaks) > 1 else held
        found: list[float] = []
        for k, t in enumerate(self._breaks if len(self._breaks) > 1 else []):
            constant = not all_pieces[k : k + 2, 1:].any()
            if not (constant and (all_pieces[k, 0] == all_pieces[k + 1, 0]).all()) and (not found or found[-1] != t):
                found.append(t)
        return found

    def _place(self, t: float) -> int:
        """The interval that holds `t`; -1 before the first time."""
        return bisect_right(self._breaks, t) - 1

    def _at(self, k: int, t: float) -> Vector:
        if k < 0 or k >= len(self._breaks) - 1:
            held: Vector = self._rows[0 if k < 0 else -1]
            return held.copy()
        return horner(self._local[k], t - self._breaks[k])

    def _between(self, a: float, b: float) -> Matrix:
        k = self._place(0.5 * (a + b))
        if k < 0 or k >= len(self._breaks) - 1:
            return self._at(k, a)[np.newaxis]
        return shifted(self._local[k], a - self._breaks[k], b - a)


class Function(Drive):
    """A function of time that drives the input `target`, of `size` numbers."""

    def __init__(self, function: Callable[[float], Any], target: str, size: int) -> None:
        self.function, self.target, self._size = function, target, size
        self.label = getattr(function, "__name__", type(function).__name__)
        self.label = "function of time" if self.label == "<lambda>" else f"{self.label}(t)"
        self._last: tuple[float, float, list[Piece]] | None = None
        self._worst, self._worst_at = 0.0, 0.0  # mean difference over a macro step, relative to the values, and when

    def value(self, t: float, right: bool = False) -> Vector:
        return value_at(self.function, self.target, self._size, t)

    def begin(self) -> None:
        self._last, self._worst = None, 0.0

    def note(self, target: str) -> Note | None:
        if self._worst <= _SEEN:
            return None
        text = (
            f"'{target}' does not follow its function of time closely: in the macro step from t = {self._worst_at:.9g} "
            f"the two differ by {self._worst:.1g} of the largest value, on average"
        )
        level: Level = "info" if self._worst < _ROUGH else "warning"
        remedy = "take shorter steps, or a table of what was measured"
        return Note("driven-input", text, level, self._worst_at, target.partition(".")[0], remedy)

    def pieces(self, a: float, b: float) -> list[Piece]:
        last = self._last
        if last is None or last[:2] != (a, b):
            last = self._last = (a, b, self._cut(a, b, _SHORTEST * (b - a)))
        return last[2]

    def _cut(self, a: float, b: float, shortest: float) -> list[Piece]:
        """Parts that fit, by halving those that do not, the worst first, as long as it helps."""
        done = list[Piece]()
        todo = [self._part(a, b)]  # a heap: minus difference times length, piece
        largest, before, check = 0.0, np.inf, _FEW
        while todo:
            if len(todo) + len(done) >= check:
                left = -sum(cost for cost, *_ in todo)
                if left > _GAIN * before or check >= _MOST:
                    break
                before, check = left, 2 * check
            cost, c, d, piece, size = heappop(todo)
            largest = max(largest, size)
            middle = 0.5 * (c + d)
            if not cost:
                done.append(piece)
            elif d - c > shortest and c < middle < d:
                heappush(todo, self._part(c, middle))
                heappush(todo, self._part(middle, d))
            else:
                done.append(Piece(c, d, self._line(c, d)))  # across a jump, over a part too short to matter
        left = -sum(cost for cost, *_ in todo) / ((b - a) * max([largest, *(one[-1] for one in todo)])) if todo else 0.0
        if left > self._worst:
            self._worst, self._worst_at = left, a
        return sorted([*done, *(one[3] for one in todo)], key=lambda piece: piece.a)

    def _part(self, a: float, b: float) -> tuple[float, float, float, Piece, float]:
        """One polynomial from `a` to `b`: minus its difference times the length, where it is, and the largest value.

        The difference is 0 where it is close enough; rounding of the time is allowed for.
        """
        tests = [self.value(a + s * (b - a)) for s in _OFF_GRID]
        rounding = _TIME_ROUNDINGS * max(abs(a), abs(b)) / (b - a)  # of the time, as a share of the part
        best, least, size = self._line(a, b), np.inf, 0.0
        for degree in _DEGREES:
            nodes, weights, powers = _lobatto(degree)
            values = np.array([self.value(b if s == 1.0 else a + s * (b - a)) for s in nodes])
            size = max(float(np.abs(values).max()), float(np.abs(tests).max()))
            found = powers @ (weights @ values)
            error = max(np.abs(horner(found, s) - test).max() for s, test in zip(_OFF_GRID, tests, strict=True))
            spread = float(np.ptp(np.concatenate([values, tests]), axis=0).max())
            if error <= _FIT * size + spread * rounding:
                return 0.0, a, b, Piece(a, b, np.asarray(found)), size
            if error < least:
                best, least = np.asarray(found), error
        return -least * (b - a), a, b, Piece(a, b, best), size

    def _line(self, a: float, b: float) -> Matrix:
        first, last = self.value(a), self.value(b)
        return np.array([first, last - first])


@dataclass(frozen=True)
class Driven:
    """A drive and the inputs it drives, by their places among all inputs."""

    target: str
    entries: npt.NDArray[np.intp]
    drive: Drive

    def value(self, t: float, right: bool) -> Vector:
        """Its values at `t`, one per entry."""
        found: Vector = self.spread(self.drive.value(t, right))
        return found

    def spread(self, values: Any) -> Any:
        """One value for all entries, where there is only one."""
        width = np.shape(values)[-1]
        return values if width == len(self.entries) else np.repeat(values, len(self.entries), axis=-1)


def as_drive(value: object, target: str, length: int) -> Drive | None:
    """The drive for an input of `length` numbers behind a table or a function; None for anything else."""
    if isinstance(value, Drive):
        width = value._rows.shape[1] if isinstance(value, Table) else length
        if width not in (1, length):
            raise SetupError(f"set: '{target}' takes {numbers(length)}, but the table has {width} per time")
        return value
    if not callable(value):
        return None
    return Function(value, target, length)


def summary(pieces: Sequence[Piece]) -> Matrix:
    """One polynomial for all pieces: the same ends and the same mean, which is also its value in the middle.

    For those who cannot stop inside the step: what they integrate is right at its end.
    """
    a, b = pieces[0].a, pieces[-1].b
    first, last = pieces[0].coefficients[0], pieces[-1].coefficients.sum(axis=0)
    mean = np.zeros_like(first)
    for piece in pieces:
        powers = np.arange(1, len(piece.coefficients) + 1)[:, np.newaxis]
        mean = mean + (piece.b - piece.a) / (b - a) * (piece.coefficients / powers).sum(axis=0)
    second = np.array([first, 6 * mean - 4 * first - 2 * last, 3 * first + 3 * last - 6 * mean])
    bump = -80 * (mean - horner(second, 0.5))  # s (1 - s) (s^2 - s + 1/5) has no mean and vanishes at both ends
    shape = np.array([0.0, 0.2, -1.2, 2.0, -1.0])[:, np.newaxis]
    whole = bump * shape
    whole[:3] += second
    return np.asarray(whole)


def cubic(pieces: Sequence[Piece]) -> Matrix:
    """One polynomial of at most degree 3: through four points where there is one piece, else with the right mean."""
    if len(pieces) > 1:
        whole = summary(pieces)
        first, last = whole[0], whole.sum(axis=0)
        mean = (whole / np.arange(1, 6)[:, np.newaxis]).sum(axis=0)
        return np.array([first, 6 * mean - 4 * first - 2 * last, 3 * first + 3 * last - 6 * mean])
    exact = pieces[0].coefficients
    if len(exact) <= 4:
        return exact
    nodes, weights, powers = _lobatto(3)
    return np.asarray(powers @ (weights @ np.array([horner(exact, s) for s in nodes])))


def read_csv(path: str | Path) -> tuple[list[str], Matrix]:
    """Names and numbers of a CSV file with one line of names."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SetupError(f"there is no file '{path}'; give the path of a CSV file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}") from None
    lines = text.splitlines()
    head = lines[0] if lines else ""
    separator = max(",;\t", key=head.count)
    rows = list(csv.reader(lines, delimiter=separator))
    if len(rows) < 2:
        raise SetupError(f"'{path}' has no numbers; expected a line with the names of the columns and rows of numbers")
    names = [name.strip() for name in rows[0]]
    numbers = np.zeros((len(rows) - 1, len(names)))
    count = 0
    for line, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue  # an empty line
        try:
            numbers[count] = [float(cell) for cell in row]
        except ValueError:
            raise SetupError(
                f"'{path}', line {line}: expected {len(names)} numbers, one per column, not {separator.join(row)!r}"
            ) from None
        count += 1
    if all(is_number(_as_number(name)) for name in names):
        raise SetupError(f"'{path}' begins with numbers; its first line has to name the columns")
    return names, numbers[:count]


def _as_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


@lru_cache(maxsize=16)
def _lobatto(degree: int) -> tuple[list[float], Matrix, Matrix]:
    """Chebyshev points from 0 to 1, values there -> Chebyshev coefficients -> powers of `s`.

    By way of the Chebyshev coefficients, which decay: powers straight from values would cancel eight digits.
    """
    n = degree
    nodes = [0.5 - 0.5 * cos(pi * k / n) for k in range(n + 1)]
    nodes[-1] = 1.0
    end = np.ones(n + 1)
    end[[0, -1]] = 0.5
    weights = np.array(
        [[2 / n * end[j] * end[k] * cos(j * (pi - pi * k / n)) for k in range(n + 1)] for j in range(n + 1)]
    )
    powers = np.zeros((n + 1, n + 1))  # of T_j(2 s - 1), whole numbers
    powers[0, 0] = 1.0
    powers[:2, 1] = -1.0, 2.0
    for j in range(2, n + 1):
        powers[:, j] = -2 * powers[:, j - 1] - powers[:, j - 2]
        powers[1:, j] += 4 * powers[:-1, j - 1]
    return nodes, weights, powers
