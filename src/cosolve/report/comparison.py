"""Several runs side by side: a verdict table, the same quantities in one picture, errors and cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.drawing.diagram import diagram
from cosolve.errors import SetupError
from cosolve.report import page
from cosolve.report.plots import Line, plot
from cosolve.result import Result
from cosolve.result.notes import worst_level
from cosolve.subsystem.port import split_element

#: The truth: a function of an array of times, arrays by name with their times under "t", or a finer run.
Reference = Callable[[Vector], Mapping[str, npt.ArrayLike]] | Mapping[str, npt.ArrayLike] | Result

_MOST_PANELS = 6
_REFERENCE_POINTS = 1500
#: Lines that differ by less than this part of their values are one line in a picture.
_PIXEL = 0.02
#: A run that is further off than this part of the largest value is no good news.
_FAR = 0.05
#: A run has blown up when its error is this many times the range of the reference.
_GONE = 10.0


@dataclass(frozen=True)
class Comparison:
    """Runs of one model under several methods: what `write_comparison` puts on a page.

    `verdicts` may add columns to the table, `{label: {column: value}}`; `t_shown` ends the plots (not the table) early;
    `time_unit` stands at the time axes; `conclusion` says in sentences what to take.
    """

    results: Mapping[str, Result]
    title: str = "Comparison"
    text: str = ""
    reference: Reference | None = None
    quantities: Sequence[str] = ()
    verdicts: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    t_shown: float = np.inf
    time_unit: str = "s"
    conclusion: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.results:
            raise SetupError("a comparison needs at least one result")
        if not self.shown:
            raise SetupError("the results share no scalar outputs; name the quantities to compare")
        for label in self.verdicts:
            if label not in self.results:
                raise SetupError(f"verdicts: there is no result '{label}'; there are {list(self.results)}")

    def errors(self, label: str, name: str) -> Vector:
        """Distance of a run to the reference at its macro points (empty without a reference)."""
        if self.reference is None:
            return np.zeros(0)
        result = self.results[label]
        return np.abs(values_of(result, name) - reference_values(self.reference, name, result.t))

    def largest_error(self, label: str) -> float:
        """Largest distance to the reference in the first quantity (NaN without a reference)."""
        return float(self.errors(label, self.shown[0]).max()) if self.reference is not None else np.nan

    def relative_error(self, label: str) -> float:
        """The same as a part of the largest magnitude of the reference (NaN without a reference)."""
        if self.reference is None:
            return np.nan
        t = self.results[label].t
        if callable(self.reference):  # also what lies between the macro points
            t = np.linspace(t[0], t[-1], _REFERENCE_POINTS)
        largest = float(np.abs(reference_values(self.reference, self.shown[0], t)).max())
        return self.largest_error(label) / largest if largest > 0.0 else np.inf

    @property
    def shown(self) -> list[str]:
        """The quantities drawn: those asked for, or the first scalar outputs that all runs share."""
        if self.quantities:
            return list(self.quantities)
        first, *others = self.results.values()
        shared = [
            name
            for name, channel in first.channels.items()
            if channel.column == "y" and channel.scalar and all(name in other for other in others)
        ]
        return shared[:_MOST_PANELS]


def write_comparison(
    results: Mapping[str, Result],
    path: str | Path,
    *,
    reference: Reference | None = None,
    quantities: Sequence[str] = (),
    verdicts: Mapping[str, Mapping[str, object]] | None = None,
    title: str = "Comparison",
    text: str = "",
) -> Path:
    """Write one self-contained HTML file that shows several runs side by side, and return its path.

    `reference` is the truth: a function of an array of times that gives arrays by name, a dict of such arrays with
    their times under `"t"`, or a finer `Result`. `quantities` names what to draw (scalars, or entries of vectors such
    as `"force[1]"`; the first scalar outputs by default); the table gives the largest error of the first one.
    `verdicts` adds columns to the table: `{label: {column: value}}`.

    >>> import cosolve as cs, numpy as np, tempfile
    >>> from cosolve.report import write_comparison
    >>> tank = lambda h: cs.Linear([[-1]], [[1]], [[1]], x0=[h], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(1.0), "two": tank(0.0)})
    >>> system.connect("one.h", "two.q")
    >>> system.connect("two.h", "one.q")
    >>> runs = {m.label: cs.simulate(system, t_end=1.0, method=m, step=0.1) for m in (cs.Jacobi(), cs.SemiImplicit())}
    >>> exact = lambda t: {"one.h": (1 + np.exp(-2 * t)) / 2}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_comparison(runs, folder + "/both.html", reference=exact, quantities=["one.h"])
    ...     "SemiImplicit(1)" in path.read_text(encoding="utf-8")
    True
    """
    comparison = Comparison(results, title, text, reference, quantities, verdicts or {})
    return write_comparisons([comparison], path, title=title)


def write_comparisons(comparisons: Sequence[Comparison], path: str | Path, *, title: str, text: str = "") -> Path:
    """Several comparisons on one page."""
    lead = page.paragraph(text) if text else ""
    sections = [_section(c, "Verdict" if len(comparisons) == 1 else c.title) for c in comparisons]
    return page.write_page(path, page.page(title, lead, sections, page.signature()))


def values_of(result: Result, name: str) -> Vector:
    """A scalar quantity of a result over time; `force[1]` is the second entry of a vector."""
    whole = split_element(name)
    if name not in result and whole is not None and whole[0] in result:
        size = np.shape(result[whole[0]])[1:]
        kind = f"a vector of {size[0]}, name one entry as '{whole[0]}[0]'" if size else "a scalar"
        raise SetupError(f"quantities: '{name}' cannot be drawn, '{whole[0]}' is {kind}")
    values = result[name]
    if values.ndim > 1:
        raise SetupError(
            f"quantities: '{name}' cannot be drawn, '{name}' is a vector of {values.shape[1]}, name one entry as "
            f"'{name}[0]'"
        )
    return values


def reference_values(reference: Reference, name: str, t: Vector) -> Vector:
    """The reference for one quantity at the times `t` (cubic spline between the points of arrays and results)."""
    values: npt.ArrayLike | None
    if isinstance(reference, Result):
        known, values = reference.t, values_of(reference, name) if name in reference else None
    elif callable(reference):
        known, values = t, reference(t).get(name)
    else:
        if "t" not in reference:
            raise SetupError("reference: give the times of the arrays under the key 't'")
        known, values = np.asarray(reference["t"], dtype=np.float64), reference.get(name)
    if values is None:
        raise SetupError(f"reference: it has no '{name}'; give it, or name other quantities")
    array = np.asarray(values, dtype=np.float64)
    if array.shape != known.shape:
        raise SetupError(f"reference: '{name}' has shape {array.shape}, but there are {known.size} times")
    if np.array_equal(known, t):
        return array
    if t[0] < known[0] - 1e-12 or t[-1] > known[-1] * (1 + 1e-12):
        raise SetupError(f"reference: it ends at t = {known[-1]:g}, before the runs do (t = {t[-1]:g})")
    from scipy.interpolate import CubicSpline

    return np.asarray(CubicSpline(known, array)(t), dtype=np.float64)


def part(value: float) -> str:
    """A relative error for people.

    >>> part(0.352), part(1.43e-5), part(4e14), part(float("nan"))
    ('35 %', '0.0014 %', '4e+14 times', '–')
    """
    if np.isnan(value):
        return "–"
    return f"{100 * value:.2g} %" if value < 0.995 else f"{value:.2g} times"


# -- on the page -------------------------------------------------------------------------------------------


def _section(comparison: Comparison, heading: str) -> str:
    parts = [page.paragraph(comparison.text) if comparison.text else ""]
    if comparison.conclusion:
        parts.append(page.verdict(*comparison.conclusion))
    parts.append(_table(comparison))
    graph = next((r.meta["graph"] for r in comparison.results.values() if r.meta.get("graph")), None)
    if graph:
        parts.append(page.figure(*diagram(graph)))
    parts.append(page.grid([_overlay(comparison, name) for name in comparison.shown]))
    if comparison.reference is not None:
        parts += ["<h3>Error over time</h3>", page.grid([_error(comparison, name) for name in comparison.shown])]
    parts += ["<h3>Cost</h3>", _cost(comparison)]
    return page.section(heading, *parts)


def _table(comparison: Comparison) -> str:
    added = list(dict.fromkeys(column for row in comparison.verdicts.values() for column in row))
    rows = []
    for label, result in comparison.results.items():
        cells: list[object] = [label, _outcome(comparison, label)]
        if comparison.reference is not None:
            cells += [part(comparison.relative_error(label)), f"{comparison.largest_error(label):.2e}"]
        cells += [comparison.verdicts.get(label, {}).get(column, "") for column in added]
        stats = result.stats
        cells += [stats.steps, stats.iterations, stats.total_calls, page.seconds(stats.wall_seconds)]
        rows.append(cells)
    columns = ["run", "outcome"]
    if comparison.reference is not None:
        unit = next(iter(comparison.results.values())).channel(comparison.shown[0]).unit
        columns += ["relative error", f"largest error of {comparison.shown[0]}{f' [{unit}]' if unit else ''}"]
    columns += added
    stopped = [f"{label}: {r.error}" for label, r in comparison.results.items() if not r.finished]
    return page.table(
        [*columns, "macro steps", "corrections", "subsystem calls", "wall time"], rows, keys=True
    ) + "".join(page.paragraph(reason, "muted") for reason in stopped)


def _outcome(comparison: Comparison, label: str) -> page.Cell:
    result, name = comparison.results[label], comparison.shown[0]
    if not result.finished:
        return page.Cell.judged(f"stopped at t = {result.t[-1]:.4g}", good=False)
    if comparison.reference is not None:
        truth = reference_values(comparison.reference, name, result.t)
        if comparison.largest_error(label) > _GONE * float(np.ptp(truth) or np.abs(truth).max()):
            return page.Cell.judged("blew up", good=False)
    if result.stats.note("growth"):
        return page.Cell.judged("blew up", good=False)
    if worst_level(result.notes) != "info":
        return page.Cell.judged(result.notes[0].text, good=False)
    if comparison.reference is not None and not comparison.relative_error(label) < _FAR:
        return page.Cell("finished")
    return page.Cell.judged("finished", good=True)


def _overlay(comparison: Comparison, name: str) -> str:
    lines, gone = [], []
    results = comparison.results
    limits = _limits(comparison, name)
    if comparison.reference is not None:
        t = _reference_times(comparison)
        lines.append(Line(t, reference_values(comparison.reference, name, t), "reference", None, width=5.0))
    for i, (label, result) in enumerate(results.items()):
        t, values = _shown_part(comparison, result.t, values_of(result, name))
        marker = ""
        if limits is not None:
            out = np.flatnonzero((values < 2 * limits[0] - limits[1]) | (values > 2 * limits[1] - limits[0]))
            if out.size:
                gone.append(f"{label} leaves the picture; it reaches {np.abs(values_of(result, name)).max():.1e}")
                t, values = t[: out[0] + 1], values[: out[0] + 1]
            else:
                marker = ".ovs^"[i % 5] if len(t) <= 60 else ""
        lines.append(_line(t, values, label, i, marker))
    unit = next(iter(results.values())).channel(name).unit
    title = f"{name} [{unit}]" if unit else name
    drawing = plot(_told_apart(lines), title=title, limits=limits, size=(6.0, 2.9), time_unit=comparison.time_unit)
    return page.figure(drawing, "; ".join(gone))


def _line(t: Vector, values: Vector, label: str, i: int, marker: str = "") -> Line:
    """Later lines are thinner and dashed, so that equal ones can still be told apart."""
    return Line(t, values, label, i, ("-", "-", "--", ":")[i % 4], marker, (1.5, 2.4, 1.3, 1.8)[i % 4])


def _shown_part(comparison: Comparison, t: Vector, values: Vector) -> tuple[Vector, Vector]:
    shown = t <= comparison.t_shown
    return t[shown], values[shown]


def _reference_times(comparison: Comparison) -> Vector:
    """Dense times for a function, its own points for anything else; only those that are shown."""
    reference = comparison.reference
    last = min(comparison.t_shown, max(result.t[-1] for result in comparison.results.values()))
    first = min(result.t[0] for result in comparison.results.values())
    if isinstance(reference, Result):
        known = reference.t
    elif isinstance(reference, Mapping):
        known = np.asarray(reference["t"], dtype=np.float64)
    else:
        return np.linspace(first, last, _REFERENCE_POINTS)
    return np.asarray(known[(known >= first) & (known <= last)])


def _limits(comparison: Comparison, name: str) -> tuple[float, float] | None:
    """An axis that shows the reference (or, without one, the calmest run) even when another run blows up."""
    if comparison.reference is not None:
        calm = reference_values(comparison.reference, name, _reference_times(comparison))
    else:
        calm = min((values_of(r, name) for r in comparison.results.values()), key=lambda values: float(np.ptp(values)))
    low, high = float(calm.min()), float(calm.max())
    span = high - low or abs(high) or 1.0
    every = [values_of(r, name) for r in comparison.results.values()]
    reach = [(float(values.min()), float(values.max())) for values in every]
    if all(low - span < a and b < high + span for a, b in reach):
        return None
    return low - 0.45 * span, high + 0.45 * span


def _error(comparison: Comparison, name: str) -> str:
    lines = [
        _line(*_shown_part(comparison, result.t[1:], comparison.errors(label, name)[1:]), label, i)
        for i, (label, result) in enumerate(comparison.results.items())
        if len(result.t) > 1  # at the start there is no error
    ]
    unit = next(iter(comparison.results.values())).channel(name).unit
    title = f"error of {name} [{unit}]" if unit else f"error of {name}"
    drawing = plot(_told_apart(lines), title=title, scale="log", size=(6.0, 2.9), time_unit=comparison.time_unit)
    return page.figure(drawing)


def _told_apart(lines: Sequence[Line]) -> list[Line]:
    """Lines that a picture can tell apart: of those that lie on each other the first, with the labels of all."""
    kept: list[Line] = []
    for line in lines:
        for k, other in enumerate(kept):
            if line.colour is not None and other.colour is not None and _same(line, other):
                kept[k] = replace(other, label=f"{other.label} and {line.label}")
                break
        else:
            kept.append(line)
    return kept


def _same(one: Line, two: Line) -> bool:
    """Whether two lines are less than a pixel apart everywhere."""
    if len(one.t) != len(two.t) or not len(one.t) or not np.array_equal(one.t, two.t):
        return False
    apart = np.abs(one.values - two.values)
    return bool(np.all(apart <= _PIXEL * np.abs(two.values)) or apart.max() <= 1e-3 * _PIXEL * np.ptp(two.values))


def _cost(comparison: Comparison) -> str:
    results = comparison.results
    calls = {label: result.stats.total_calls for label, result in results.items()}
    spent = {label: result.stats.wall_seconds for label, result in results.items()}
    most_calls, most_spent = max(calls.values()) or 1, max(spent.values()) or 1.0
    rows = [
        (
            *(label, calls[label], page.Cell.bar(calls[label] / most_calls)),
            *(page.seconds(spent[label]), page.Cell.bar(spent[label] / most_spent)),
        )
        for label in results
    ]
    return page.table(("run", "subsystem calls", "", "wall time", ""), rows, keys=True)
