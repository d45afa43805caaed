"""What comes out of a run: values at the macro points, what each step took, and whether it finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.checks import as_path
from cosolve.basics.packages import optional
from cosolve.basics.wording import did_you_mean
from cosolve.errors import SetupError
from cosolve.result.error_bar import ErrorBar
from cosolve.result.notes import Note, worst_first, worst_level
from cosolve.subsystem.port import element_index, split_element

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Channel:
    """Where a named quantity sits in the recorded columns: `factor * column[:, part] + offset`."""

    column: str  # "y" or "z"
    part: tuple[int, ...]
    scalar: bool
    factor: tuple[float, ...] = ()
    offset: tuple[float, ...] = ()
    unit: str = ""

    def picked(self, values: Matrix) -> Vector:
        """The quantity in rows of its column."""
        if self.column == "z" and values.shape[1] == 0:
            picked = np.zeros((len(values), len(self.part)))
        else:
            picked = values[:, list(self.part)]
        if self.factor:
            picked = picked * np.array(self.factor)
        if self.offset:
            picked = picked + np.array(self.offset)
        return picked[:, 0] if self.scalar else picked


def find_channel(channels: Mapping[str, Channel], name: str) -> Channel | None:
    """The channel of that name, or the one element of a vector that `name[k]` addresses; None where there is neither.

    >>> find_channel({"a.y": Channel("y", (4, 5), False)}, "a.y[1]")
    Channel(column='y', part=(5,), scalar=True, factor=(), offset=(), unit='')
    """
    if name in channels:
        return channels[name]
    found = split_element(name)
    whole = channels.get(found[0]) if found else None
    if found is None or whole is None or whole.scalar:
        return None
    k = element_index(name, found, len(whole.part))
    one = slice(k, k + 1)
    return replace(whole, part=whole.part[one], scalar=True, factor=whole.factor[one], offset=whole.offset[one])


#: Said of the time of subsystems in compiled steps.
NOT_TIMED = "not measured (compiled)"


@dataclass(repr=False)
class Stats:
    """Totals of a run.

    Parameters
    ----------
    steps : int
        Macro steps.
    rejected : int
        Macro steps that were repeated with a shorter length.
    iterations : int
        Corrections of the interface equations.
    unconverged : int
        Steps that were accepted although their iteration had not converged.
    renewed : int
        Steps that converged only with a new Jacobian in every correction.
    over_tolerance : int
        Steps that were accepted at the smallest allowed length although their error estimate exceeded the tolerance.
    max_residual : float
        Largest interface residual that was left.
    calls : dict of str to int
        Subsystem steps by subsystem, predictors, perturbed runs and rejected steps included.
    jacobians : dict of str to int
        Calls of `jacobian` by subsystem.
    seconds : dict of str to float
        Seconds spent inside each subsystem.
    wall_seconds : float
        Seconds of the whole run.
    compiled_steps : int
        Macro steps that ran as machine code; their time is not split by subsystem.
    compiled_seconds : float
        Seconds that these took.
    loading_seconds : float
        Seconds for compiling, or for reading machine code from the cache.
    python_reason : str
        Why no macro step ran as machine code; empty where some did.
    events : int
        Macro steps that ended at an event (`stop_at_events`).
    retried : dict of str to int
        Steps of FMUs that were discarded and then repeated in smaller pieces.
    ended : str
        Which subsystem ended the run before `t_end`, and why.
    paced : float
        Model seconds per second of a run in real time.
    overruns : int
        Macro points that were reached too late.
    max_lateness : float
        Longest delay in seconds.
    changed : list
        Changes by hand during the run: time, name and new value.
    diagnoses : list of Note
        Notes that were found beside these counts; `notes` are all.
    """

    steps: int = 0
    rejected: int = 0
    iterations: int = 0
    unconverged: int = 0
    renewed: int = 0
    over_tolerance: int = 0
    max_residual: float = np.nan
    calls: dict[str, int] = field(default_factory=dict)
    jacobians: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    wall_seconds: float = 0.0
    compiled_steps: int = 0
    compiled_seconds: float = 0.0
    loading_seconds: float = 0.0
    python_reason: str = ""
    events: int = 0
    retried: dict[str, int] = field(default_factory=dict)
    ended: str = ""
    paced: float = 0.0
    overruns: int = 0
    max_lateness: float = 0.0
    changed: list[list[Any]] = field(default_factory=list)
    diagnoses: list[Note] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.diagnoses = [n if isinstance(n, Note) else Note(**n) for n in self.diagnoses]  # from a file

    def add(self, note: Note) -> None:
        """Add a note; it replaces one of the same kind about the same subsystem.

        Parameters
        ----------
        note : Note
            The note.
        """
        others = [n for n in self.diagnoses if (n.kind, n.subsystem) != (note.kind, note.subsystem)]
        self.diagnoses = [*others, note]

    def note(self, kind: str) -> str:
        """Return what the notes of a kind say.

        Parameters
        ----------
        kind : str
            The kind.

        Returns
        -------
        str
            Their texts; empty if there is none.
        """
        return "; ".join(note.text for note in self.notes if note.kind == kind)

    @property
    def notes(self) -> list[Note]:
        """Everything that the run reports about itself, the worst first."""
        return worst_first((*self.diagnoses, *self._counted()))

    def _counted(self) -> Iterator[Note]:
        """What the counts mean."""
        if self.unconverged:
            text = f"{self.unconverged} of {self.steps} steps were accepted without convergence"
            yield Note("not-converged", text, remedy="allow more iterations, a shorter step or another corrector")
        if self.over_tolerance:
            text = f"{self.over_tolerance} of {self.steps} steps exceed the error tolerance (at the smallest step)"
            yield Note("over-tolerance", text, remedy="allow shorter steps or a larger tolerance")
        if self.overruns:
            text = f"{self.overruns} macro points came late, by at most {self.max_lateness:.3g} s"
            yield Note("real-time", text)
        if self.renewed:
            text = f"{self.renewed} steps converged only with a Jacobian renewed in every correction"
            yield Note("jacobian-renewed", text, "info")
        for name, n in self.retried.items():
            yield Note("step-retried", f"'{name}' passed {n} discarded steps in smaller pieces", "info", subsystem=name)
        for t, name, value in self.changed:
            yield Note("changed", f"changed at t = {t:.9g}: {name} = {value}", "info", t)
        if self.ended:
            yield Note("ended", self.ended, "info")

    @property
    def inside(self) -> float | None:
        """Seconds inside the subsystems; None where steps were compiled, which are not timed by subsystem."""
        return None if self.compiled_steps else sum(self.seconds.values())

    @property
    def engine(self) -> str:
        """Which engine ran the macro steps, and why not the faster one."""
        if self.compiled_steps:
            each = 1e6 * self.compiled_seconds / self.compiled_steps
            spent = f"{self.compiled_seconds:.3g} s, {each:.2g} us each, after {self.loading_seconds:.3g} s of loading"
            return f"{self.compiled_steps} steps compiled: {spent}"
        return f"not compiled: {self.python_reason}" if self.python_reason else ""

    @property
    def total_calls(self) -> int:
        """Subsystem steps of all subsystems together."""
        return sum(self.calls.values())

    def __str__(self) -> str:
        inside = self.inside
        spent = f"time inside the subsystems {NOT_TIMED}"
        if inside is not None:
            spent = f"of which {inside:.3g} s inside the subsystems"
        lines = [
            f"{self.steps} macro steps, {self.rejected} rejected, {self.iterations} corrections, "
            f"{self.total_calls} subsystem calls",
            f"{self.wall_seconds:.3g} s, {spent}",
        ]
        if self.engine:
            lines.append(self.engine)
        if self.paced:
            lines.append(f"{self.paced:g} s per second" + ("" if self.overruns else ": no macro point came late"))
        if self.events:
            lines.append(f"{self.events} macro steps ended at events")
        lines += map(str, self.notes)
        for name, calls in self.calls.items():
            extra = f", {self.jacobians[name]} Jacobians" if self.jacobians.get(name) else ""
            spent = NOT_TIMED if inside is None else f"{self.seconds[name]:.3g} s"
            lines.append(f"  {name}: {calls} calls{extra}, {spent}")
        return "\n".join(lines)

    __repr__ = __str__  # what a notebook shows


class Result:
    """Values at the macro points of a run, and its statistics.

    `result["subsystem.port"]` returns inputs, outputs and named coupling variables over `result.t`: a scalar port gives
    a 1-D array, a vector port one row per time. `print(result)` shows each quantity in a line; a notebook draws them.
    Results come from `simulate`, `Stepper.result` and `load_result`.

    Parameters
    ----------
    columns : callable
        Returns the recorded columns by name.
    channels : mapping of str to Channel
        Where each quantity is found in the columns.
    subsystems : tuple of str
        Names of the subsystems.
    stats : Stats
        Totals of the run.
    meta : mapping
        What was run: method, step, version, coupling graph.
    error : str or None, default None
        Why the run stopped early.

    Attributes
    ----------
    method : Method or None
        The method of the run; None in a result from a file.
    startup : Startup or None
        The start-up of the run; None in a result from a file.
    choice : Choice or None
        How method and step were chosen, if they were.

    Examples
    --------
    >>> import cosolve as cs
    >>> clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    >>> result = cs.simulate(cs.System({"clock": clock}), t_end=0.3, method=cs.Jacobi(), step=0.1)
    >>> result["clock.t"]
    array([0. , 0.1, 0.2, 0.3])
    """

    def __init__(
        self,
        columns: Callable[[], Mapping[str, npt.NDArray[Any]]],
        channels: Mapping[str, Channel],
        subsystems: tuple[str, ...],
        *,
        stats: Stats,
        meta: Mapping[str, Any],
        error: str | None = None,
    ) -> None:
        self._columns = columns
        self.channels = dict(channels)
        self.subsystems = subsystems
        self.stats = stats
        # what was run: method, step, version, the coupling graph
        self.meta = dict(meta)
        # why the run stopped early, or None
        self.error = error
        # the method and the start-up that were asked for; None in a result from a file
        self.method: Any = None
        self.startup: Any = None
        # how method and step were chosen, where they were (`cs.choose`)
        self.choice: Any = None
        # where a file holds the coupling error, a function that reads it
        self.read_error_bar: Callable[[], ErrorBar] | None = None
        self._error_bar: ErrorBar | None = None

    @property
    def finished(self) -> bool:
        """True if the run reached `t_end`, or the point where a subsystem ended it (see `ended`)."""
        return self.error is None

    @property
    def notes(self) -> list[Note]:
        """What the run reports about itself, the worst first; its status is the worst level (`Note.level`).

        >>> import cosolve as cs
        >>> loop = cs.System({"a": cs.Static(lambda t, u: 0.5 * u + t, inputs=["u"], outputs=["y"])})
        >>> loop.connect("a.y", "a.u")
        >>> slow = cs.Implicit(corrector=cs.Relaxation(0.05), max_iterations=1, accept_unconverged=True)
        >>> cs.simulate(loop, t_end=0.5, step=0.1, method=slow).notes[0].text
        '5 of 5 steps were accepted without convergence'
        """
        return self.stats.notes if self.error is None else [Note("stopped", self.error, "error"), *self.stats.notes]

    @property
    def ended(self) -> str:
        """Where a subsystem ended the run before `t_end`: which one, when, and why; empty otherwise."""
        return self.stats.ended

    @property
    def error_bar(self) -> ErrorBar | None:
        """The coupling error, where it was asked for (`simulate(error_bar=True)`, `cs.error_bar`)."""
        if self._error_bar is None and self.read_error_bar is not None:
            self._error_bar = self.read_error_bar()
        return self._error_bar

    @error_bar.setter
    def error_bar(self, found: ErrorBar | None) -> None:
        """The coupling error, if it was estimated (`simulate(error_bar=True)`, `cs.error_bar`); else None."""
        self._error_bar, self.read_error_bar = found, None

    @property
    def t(self) -> Vector:
        """Macro points, the start included."""
        return self._columns()["t"]

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a recorded column.

        Parameters
        ----------
        name : str
            One of t, y, z, H, iterations, residual, error, rejected, calls, seconds, norms, norms_end.

        Returns
        -------
        ndarray
            One row per recorded macro point.
        """
        return self._columns()[name]

    @property
    def H(self) -> Vector:
        """Macro-step lengths (one fewer than macro points)."""
        return self.column("H")[1:]

    @property
    def iterations(self) -> npt.NDArray[Any]:
        """Corrections per macro step."""
        return self.column("iterations")[1:]

    @property
    def residual(self) -> Vector:
        """Largest interface residual left per macro step (NaN for explicit methods)."""
        return self.column("residual")[1:]

    @property
    def residual_norms(self) -> list[Vector]:
        """Per recorded macro step, the residual norms of all its iterates, the first guess included.

        In units of the tolerance's scale (see `Implicit`); empty for methods that do not iterate. A step that began
        again (`stats.renewed`) has the first guess twice.

        >>> import cosolve as cs
        >>> loop = cs.System({"a": cs.Static(lambda t, u: 0.5 * u + t, inputs=["u"], outputs=["y"])})
        >>> loop.connect("a.y", "a.u")
        >>> run = cs.simulate(loop, t_end=0.2, step=0.1, method=cs.Implicit(0, corrector=cs.Relaxation(1.0), tol=1e-2))
        >>> [len(norms) for norms in run.residual_norms] == [1 + n for n in run.iterations]
        True
        """
        norms, ends = self.column("norms"), self.column("norms_end")
        return [norms[a:b] for a, b in pairwise(ends)]

    def channel(self, name: str) -> Channel:
        """Return where a quantity is found in the columns.

        Parameters
        ----------
        name : str
            Its name, or an element `name[k]` of a vector.

        Returns
        -------
        Channel
            Column and entries.

        Raises
        ------
        KeyError
            If there is no such quantity.
        """
        try:
            channel = find_channel(self.channels, name)
        except SetupError as error:
            raise KeyError(f"the result has no '{name}'; {error}") from None
        if channel is None:
            raise KeyError(f"the result has no '{name}'; {did_you_mean(name, self.channels, near=3)}")
        return channel

    def __getitem__(self, name: str) -> Vector:
        channel = self.channel(name)
        return channel.picked(self.column(channel.column))

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and find_channel(self.channels, name) is not None
        except SetupError:
            return False

    def __len__(self) -> int:
        return len(self.t)

    @property
    def names(self) -> list[str]:
        """Names of all quantities."""
        return list(self.channels)

    def to_dataframe(self) -> pd.DataFrame:
        """Return all quantities over time.

        Returns
        -------
        pandas.DataFrame
            One column per quantity, entries of vectors as `name[i]`, indexed by `t`. Needs `cosolve[data]`.
        """
        pandas = optional("pandas", "data", "a table of a result")
        columns: dict[str, Vector] = {}
        for name, channel in self.channels.items():
            values = self[name]
            if channel.scalar:
                columns[name] = values
            else:
                columns.update({f"{name}[{i}]": values[:, i] for i in range(values.shape[1])})
        frame: pd.DataFrame = pandas.DataFrame(columns, index=pandas.Index(self.t, name="t"))
        return frame

    def steps_dataframe(self) -> pd.DataFrame:
        """Return the statistics of each macro step.

        Returns
        -------
        pandas.DataFrame
            Columns H, iterations, residual, error, rejected, and calls and seconds of each subsystem, indexed by the
            end of the step. Needs `cosolve[data]`.
        """
        pandas = optional("pandas", "data", "a table of macro steps")
        raw = self._columns()
        columns = {name: raw[name][1:] for name in ("H", "iterations", "residual", "error", "rejected")}
        for i, name in enumerate(self.subsystems):
            columns[f"calls {name}"] = raw["calls"][1:, i]
            columns[f"seconds {name}"] = raw["seconds"][1:, i]
        frame: pd.DataFrame = pandas.DataFrame(columns, index=pandas.Index(raw["t"][1:], name="t"))
        return frame

    def plot(self, *names: str, path: str | Path | None = None) -> Figure:
        """Draw quantities over time, one panel each.

        Parameters
        ----------
        *names : str
            Names of the quantities. Without any, all scalar outputs.
        path : str, Path or None, default None
            File to write the picture to.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from cosolve.result.plot import plot_series

        return plot_series(self, names, path)

    def save(self, path: str | Path) -> Path:
        """Write the result to a file.

        Parameters
        ----------
        path : str or Path
            Ending in `.h5` (HDF5, everything) or `.csv` (the named quantities).

        Returns
        -------
        Path
            The file.

        Raises
        ------
        OutputFileError
            If it cannot be written.
        """
        from cosolve.result.store import save_result

        return save_result(self, Path(path))

    def __repr__(self) -> str:
        level = worst_level(self.notes)
        said = {"info": "", "warning": ", with warnings", "error": ", but not to be trusted"}[level]
        state = f"finished{said}" if self.finished else f"stopped: {self.error}"
        t = self.t
        span = f", t = {t[0]:g} ... {t[-1]:g}" if len(t) else ""
        return f"<Result of {self.meta.get('method', '?')}: {len(t)} macro points{span}, {state}>"

    def __str__(self) -> str:
        from cosolve.result.representation import as_text

        return as_text(self)

    def __rich__(self) -> Any:
        """For rich: `rich.print(result)`."""
        from cosolve.result.representation import as_rich

        return as_rich(self)

    def _repr_html_(self) -> str:
        """For notebooks: the quantities as a table with sparklines."""
        from cosolve.result.representation import as_html

        return as_html(self)


def load_result(path: str | Path) -> Result:
    """Read a result file.

    Parameters
    ----------
    path : str or Path
        An `.h5` file, also of a run that was killed: it is read up to its last flush.

    Returns
    -------
    Result
        The result.

    Raises
    ------
    OutputFileError
        If it cannot be read.

    Examples
    --------
    >>> import tempfile, cosolve as cs
    >>> clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = cs.simulate(clock, t_end=0.2, method=cs.Jacobi(), step=0.1).save(f"{folder}/clock.h5")
    ...     cs.load_result(path)["clock.t"]
    array([0. , 0.1, 0.2])
    """
    from cosolve.result.store import load as read

    return read(as_path("load_result", path))
