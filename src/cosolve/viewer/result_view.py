"""One result to be looked at: what there is to see of it, and its signals over any stretch of time.

What moves in space, frames with position and orientation, and fields are found by their shapes and names. Multibody
subsystems give out positions and Euler parameters of markers (`tip_position`, `tip_orientation`) and of the bodies at
joint ends (`end_r`, `end_q`). The shapes of such bodies are in the result, too, where a subsystem has told them
(`body_shapes`). Long vectors are fields: what they look like over their places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import CosolveError, SetupError
from cosolve.result import Result
from cosolve.result.notes import verdict
from cosolve.result.stored import as_stored
from cosolve.viewer.drawing import coupling
from cosolve.viewer.frames import Window, plain_dict
from cosolve.viewer.levels import Levels, Slots, scaled
from cosolve.viewer.signals import RESIDUAL, STEPS, Signals, factors
from cosolve.viewer.times import Times, before_correction, degree, picked

_PAIRS = (("_position", "_orientation"), ("_r", "_q"))
_FIELD = 8  # numbers in a vector from which on it is drawn as a field
_MOST_FRAMES, _MOST_FIELDS, _MOST_NUMBERS = 60, 6, 500


def scene(signals: Signals, shapes: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """Frames and fields by their addresses; None where nothing moves. `shapes` are those of bodies.

    >>> from cosolve.result import Channel
    >>> channels = {"a.tip_position": Channel("y", (0, 1, 2), False), "a.x": Channel("y", (3,), True)}
    >>> scene(Signals(channels, ["a"]))
    {'frames': [{'name': 'a.tip', 'owner': 'a', 'position': 0, 'orientation': None, 'shape': None}], 'fields': []}
    """
    known_shapes = shapes if isinstance(shapes, Mapping) else {}
    frames, fields = [], []
    for signal in signals.all:
        if signal.group != "outputs" or signal.scalar:
            continue
        for place, turn in _PAIRS:
            if len(signal.part) == 3 and signal.name.endswith(place):
                stem = signal.name.removesuffix(place)
                turned = signals.by_name.get(stem + turn)
                known = turned is not None and len(turned.part) == 4
                if place == "_r" and not known:
                    continue
                frames.append(
                    {
                        "name": stem,
                        "owner": stem.partition(".")[0],
                        "position": signal.id,
                        "orientation": turned.id if turned is not None and known else None,
                        "shape": _shape(known_shapes.get(stem)),
                    }
                )
        if _FIELD <= len(signal.part) <= _MOST_NUMBERS:
            fields.append({"name": signal.name, "id": signal.id, "size": len(signal.part), "unit": signal.unit})
    if not frames and not fields:
        return None
    return {"frames": frames[:_MOST_FRAMES], "fields": fields[:_MOST_FIELDS]}


def _shape(told: Any) -> dict[str, Any] | None:
    """The shape of a body as a file tells it; None where that makes no sense."""
    try:
        body, centre = str(told["body"]), np.asarray(told["centre"], np.float64).reshape(3)
        points = np.asarray(told["points"], np.float64).reshape(-1, 3)
    except (TypeError, KeyError, ValueError):
        return None
    return {"body": body, "centre": np.nan_to_num(centre).tolist(), "points": np.nan_to_num(points).tolist()}


_NARROW = 64  # columns that are reduced together: reading one of them from a file reads them all
_BLOCK = 1 << 21  # numbers that are read at a time
_OF_STEPS = (*STEPS, "calls", "seconds")
_FEWEST, _MOST = 16, 20_000  # slots of one picture


class ResultView:
    """A result with everything that is computed once to look at it.

    >>> import cosolve as cs
    >>> clock = cs.System({"clock": cs.Static(lambda t, u: 2 * t, inputs=[], outputs=["t"])})
    >>> result_view = ResultView(cs.simulate(clock, t_end=1.0, method=cs.Jacobi(), step=0.1), "clock")
    >>> result_view.window([0], 0.25, 0.55, 100).slots.low.ravel().round(1).tolist()  # one row more on either side
    [0.4, 0.6, 0.8, 1.0, 1.2]
    """

    def __init__(self, result: Result, label: str) -> None:
        self.result, self.label = result, label
        self._columns = as_stored(result._columns())
        self.signals = Signals(result.channels, result.subsystems, residuals=True)
        self._degree = degree(result.meta)
        self.t = Times(lambda first, last: self._times(first, last), self._count())
        self._levels: dict[object, Levels] = {}
        self._building = Lock()  # requests come in threads

    def _count(self) -> int:
        return self._columns.rows

    def _times(self, first: int, last: int) -> Vector:
        return self._columns.read("t", slice(first, last))

    def prepare(self) -> None:
        """Read what the first picture of a long file needs; another thread may open the page in the meantime."""
        outputs = [signal.id for signal in self.signals.all if signal.group == "outputs"]
        with suppress(CosolveError, OSError):  # then the page says so when it asks
            self.window(outputs[:1], self.t[0], self.t.last, _FEWEST)

    def about(self) -> dict[str, Any]:
        """Everything but the numbers over time."""
        span = (self.t[0], self.t.last) if len(self.t) else None
        result, found = self.result, verdict(self.result, span[1] if span else None)
        stats = result.stats
        known = {k: v for k, v in result.meta.items() if k not in ("graph", "system", "body_shapes")}
        bar = result.error_bar
        return plain_dict(
            {
                "label": self.label,
                "live": False,
                "rows": len(self.t),
                "span": span or (0.0, 1.0),
                "signals": self.signals.listed(),
                "subsystems": result.subsystems,
                "verdict": {"level": found.level, "headline": found.headline, "details": found.details},
                "stats": totals(stats),
                "changed": stats.changed,
                "meta": known,
                "system": result.meta.get("system", ""),
                "error_bar": None if bar is None else bar.sentence,
                "scene": scene(self.signals, result.meta.get("body_shapes")),
                "coupling": coupling(result.meta.get("graph"), self.signals),
            }
        )

    def window(self, addresses: Sequence[int], t0: float, t1: float, most: int) -> Window:
        """Some signals from `t0` to `t1` in at most so many slots, with one point more on either side."""
        first, last = self.t.between(t0, t1)
        return shown(self.t, self._slots(addresses, first, last, slots_allowed(most)), last)

    def sample(self, addresses: Sequence[int], most: int) -> Window:
        """Some signals at so many rows from the whole run, as they are: what belongs together stays together."""
        count = len(self.t)
        wanted = np.unique(np.linspace(0, count - 1, min(slots_allowed(most), count)).astype(np.int64))
        places = [self.signals.place(address) for address in addresses]
        names = list(dict.fromkeys(place[0] for place in places))
        rows = {name: self._rows(name, wanted) for name in names}
        values = np.column_stack([rows[name][:, k] * factor + offset for name, k, factor, offset in places])
        return Window(self.t.at(wanted), Slots(wanted, values, values), count)

    def _rows(self, column: str, wanted: npt.NDArray[np.int64]) -> Matrix:
        """Single rows of a column, which may be long."""
        return picked(lambda first, last: self.read(column, first, last), wanted, max(1, _BLOCK // self.width(column)))

    def _slots(self, addresses: Sequence[int], first: int, last: int, most: int) -> Slots:
        places = [self.signals.place(address) for address in addresses]
        made: dict[int, Slots] = {}
        parts = []
        for column, k, *_ in places:
            levels, inside = self._of(column, k)
            if id(levels) not in made:
                made[id(levels)] = levels.window(first, last, most)
            slots = made[id(levels)]
            low = slots.low[:, inside : inside + 1]
            parts.append(Slots(slots.first, low, low if slots.raw else slots.high[:, inside : inside + 1]))
        return scaled(side_by_side(parts), *factors(places))

    def _of(self, column: str, k: int) -> tuple[Levels, int]:
        """The levels that hold one number of a column, and where in them it stands."""
        width = self.width(column)
        with self._building:
            if width <= _NARROW:
                key: object = column
                found = self._levels.get(key) or Levels(lambda a, b: self.read(column, a, b), len(self.t), width)
                inside = k
            else:
                key = column, k
                found = self._levels.get(key) or Levels(
                    lambda a, b: self.read(column, a, b)[:, k : k + 1], len(self.t), 1
                )
                inside = 0
            self._levels[key] = found
            return found, inside

    def width(self, column: str) -> int:
        """Numbers per row of a column; no coupling variables are one zero."""
        column = "z" if column == RESIDUAL else column
        if column in ("y", "z", "calls", "seconds"):
            return max(1, self._columns.width(column))
        return 1

    def read(self, column: str, first: int, last: int) -> Matrix:
        """Some rows of a column, as floats."""
        if column == RESIDUAL:
            return self._residuals(first, last)
        values = self._columns.read(column, slice(first, last))
        if values.ndim == 1:
            values = values[:, np.newaxis]
        if not values.shape[1]:
            return np.zeros((len(values), 1))
        if first == 0 and column in _OF_STEPS and len(values):  # no step has led to the first point
            values = values.astype(np.float64)
            values[0] = np.nan
        return np.asarray(values, np.float64)

    def _residuals(self, first: int, last: int) -> Matrix:
        before = max(0, first - self._degree - 1)
        t, z, H = self.t.part(before, last), self.read("z", before, last), self.read("H", before, last)[:, 0]
        found = before_correction(t, z, H, self._degree)
        none = np.full((max(0, len(t) - len(found) - (first - before)), z.shape[1]), np.nan)
        return np.vstack([none, found])

    def values(self, address: int, first: int, last: int) -> Vector:
        """Some rows of one signal."""
        column, k, factor, offset = self.signals.place(address)
        return np.asarray(self.read(column, first, last)[:, k] * factor + offset)


class Difference:
    """A signal of one result minus that of the same name in another, at the macro points of the first.

    >>> import cosolve as cs
    >>> clock = lambda k: cs.System({"clock": cs.Static(lambda t, u: k * t, inputs=[], outputs=["t"])})
    >>> runs = [cs.simulate(clock(k), t_end=1.0, method=cs.Jacobi(), step=0.1 * k) for k in (1, 2)]
    >>> one, two = (ResultView(run, "") for run in runs)
    >>> Difference(two, one, 0).window(0.0, 1.0, 100).slots.low.ravel().round(1).tolist()
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """

    def __init__(self, minuend: ResultView, subtrahend: ResultView, address: int) -> None:
        self._one, self._other, self._address = minuend, subtrahend, address
        signal, k = minuend.signals.find(address)
        same = subtrahend.signals.by_name.get(signal.name)
        if same is None or k >= len(same.part):
            name = minuend.signals.label(address)
            raise SetupError(f"'{subtrahend.label}' has no '{name}', so there is no difference to show")
        self._same = same.id + k
        self._levels = Levels(self._read, len(minuend.t), 1)

    def _read(self, first: int, last: int) -> Matrix:
        one, other = self._one, self._other
        values = one.values(self._address, first, last)
        t = one.t.part(first, last)
        if not len(t):
            return values[:, np.newaxis]
        a, b = other.t.between(t[0], t[-1])
        there = np.interp(t, other.t.part(a, b), other.values(self._same, a, b), left=np.nan, right=np.nan)
        return (values - there)[:, np.newaxis]

    def window(self, t0: float, t1: float, most: int) -> Window:
        """From `t0` to `t1` in at most so many slots; nothing where one of the two has no points."""
        t = self._one.t
        first, last = t.between(t0, t1)
        return shown(t, self._levels.window(first, last, slots_allowed(most)), last)


def slots_allowed(most: int) -> int:
    """A number of slots that makes sense, whatever was asked for."""
    return min(max(most, _FEWEST), _MOST)


def shown(t: Times, slots: Slots, last: int) -> Window:
    """A window with the times at which its slots begin, and that of its last row as the end of the last slot."""
    if slots.raw or not len(slots.first):
        return Window(t.at(slots.first), slots, len(t))
    times = np.append(t.at(slots.first), t[min(last, len(t)) - 1])
    low, high = (np.vstack([part, part[-1:]]) for part in (slots.low, slots.high))
    return Window(times, Slots(np.append(slots.first, last - 1), low, high), len(t))


def side_by_side(parts: Sequence[Slots]) -> Slots:
    """Signals of the same rows in one table."""
    if not parts:
        empty = np.zeros((0, 0))
        return Slots(np.arange(0), empty, empty)
    low = np.hstack([part.low for part in parts])
    if parts[0].raw:
        return Slots(parts[0].first, low, low)
    return Slots(parts[0].first, low, np.hstack([part.high for part in parts]))


def totals(stats: Any) -> dict[str, Any]:
    """The totals of a run that people look at."""
    names = ("steps", "rejected", "iterations", "unconverged", "over_tolerance", "max_residual", "wall_seconds")
    found = {name: getattr(stats, name) for name in names}
    return found | {
        "calls": stats.calls,
        "jacobians": stats.jacobians,
        "seconds": None if stats.inside is None else stats.seconds,
    }
