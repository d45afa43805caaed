"""`sweep`: one system in thousands of variants, under several methods and step sizes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from cosolve.basics.checks import choice, whole
from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.interface.channels import channels
from cosolve.method import Method
from cosolve.method.named import MethodLike, as_method
from cosolve.result import Result
from cosolve.run import Selection
from cosolve.stepsize import Adaptive, UniformClock, refuse_bad_span, refuse_bad_step
from cosolve.sweeps.dataset import make_dataset, xarray
from cosolve.sweeps.grid import Variants, Variation, as_list, make_variants, refuse_unfit_function
from cosolve.sweeps.job import REDUCTIONS, Item, Items, Job, Sink, Store
from cosolve.sweeps.journal import Journal
from cosolve.sweeps.pools import cores, run_anywhere, run_here, run_in_processes, run_on_dask, why_not_processes
from cosolve.sweeps.single_runs import compiled_flags, in_words

if TYPE_CHECKING:
    import xarray as xr

Executor = Literal["auto", "serial", "processes", "dask"]

_PROGRESS_EVERY = 0.1  # seconds


def sweep(
    build: System | Callable[..., System],
    parameters: Mapping[str, npt.ArrayLike] | Sequence[Mapping[str, Any]] | Any,
    *,
    methods: Method | str | Sequence[MethodLike] | Mapping[str, MethodLike],
    steps: float | Adaptive | Sequence[float],
    t_end: float,
    t_start: float = 0.0,
    record: Sequence[str] | str | None = None,
    reduce: Literal["end", "max", "min", "peak", "trajectory"] | Callable[[Result], Any] = "end",
    every: int = 1,
    matrices: Callable[..., Mapping[str, Mapping[str, Any]]] | None = None,
    workers: int | None = None,
    executor: Executor = "auto",
    client: Any = None,
    progress: Callable[[float], None] | bool | None = None,
    compiled: bool | None = None,
    save: str | Path | None = None,
) -> xr.Dataset:
    """Run many variants of a system under one or several methods and macro steps.

    Parameters
    ----------
    build : System or callable
        The system, whose parameters (of `Ode` and `Static`) and constant inputs are named by address, as in
        `{"one.c": [1.0, 2.0]}`; they have their values back afterwards. Or `build(**values)`, which returns the system
        of a variant.
    parameters : mapping, sequence of mapping or table
        A dict of lists: every combination is a variant. A list of dicts or a table with columns: every row is one.
    methods : Method, str, sequence or mapping
        Coupling methods; a mapping gives them labels. Several become the dimension `coupling`.
    steps : float, Adaptive or sequence of float
        Macro steps in seconds, or error control. Several become the dimension `step`.
    t_end : float
        End of the runs in seconds.
    t_start : float, default 0.0
        Start of the runs in seconds.
    record : sequence of str, str or None, default None
        Quantities to keep. None: all outputs.
    reduce : {"end", "max", "min", "peak", "trajectory"} or callable, default "end"
        What is kept of each quantity: its value at the end, its largest, smallest or largest absolute value, all macro
        points, or what `reduce(result)` returns: a number, a row, or a dict of numbers.
    every : int, default 1
        Record every n-th macro point.
    matrices : callable or None, default None
        `matrices(**columns)` returns the matrices of all variants at once, `{"name": {"A": [[0, 1], [-c, -d]]}}` with
        arrays `c` and `d`, if building thousands of systems takes longer than running them.
    workers : int or None, default None
        Number of threads or processes. None: one per core.
    executor : {"auto", "serial", "processes", "dask"}, default "auto"
        How variants that do not fit into compiled blocks are run.
    client : dask.distributed.Client or None, default None
        Dask client to run on.
    progress : callable, bool or None, default None
        `progress(fraction)`, or True for a progress bar.
    compiled : bool or None, default None
        As for `simulate`.
    save : str, Path or None, default None
        File that takes every case as soon as it is finished. The same sweep with the same file runs only missing cases;
        failed ones count as finished. A file of another sweep is refused.

    Returns
    -------
    xarray.Dataset
        A variable per quantity (extra `cosolve[data]`). A failed run is NaN and says why in the variable `error`;
        `note` holds what runs report. `attrs["how"]` says how it was run.

    Notes
    -----
    Linear subsystems with plain connections run in blocks of variants, compiled. Everything else runs one by one, in
    processes where that pays (`build` must then be importable). The numbers do not depend on it.

    Examples
    --------
    >>> import cosolve as cs
    >>> def tanks(k, level):
    ...     tank = lambda h: cs.Linear([[-k]], [[k]], [[1]], x0=[h], inputs=["q"], outputs=["h"])
    ...     system = cs.System({"one": tank(level), "two": tank(0.0)})
    ...     system.connect("one.h", "two.q")
    ...     system.connect("two.h", "one.q")
    ...     return system
    >>> found = cs.sweep(tanks, {"k": [1.0, 2.0], "level": [1.0, 3.0]}, methods=cs.SemiImplicit(1), steps=0.1,
    ...                  t_end=10, record=["one.h"])
    >>> found["one.h"].dims, found["one.h"].round(3).values.tolist()
    (('k', 'level'), [[0.5, 1.5], [0.5, 1.5]])
    >>> found["one.h"].sel(k=2.0, level=3.0).round(3).item()
    1.5

    A system with parameters needs no build function:

    >>> tank = cs.Ode(lambda t, x, u, p: p.k * (u - x), lambda t, x, u, p: x, x0=[1.0], inputs=["q"], outputs=["h"],
    ...               parameters={"k": 1.0})
    >>> system = cs.System({"tank": tank})
    >>> system.law("tank.q", lambda h: 0.5 * h, of="tank.h")
    >>> found = cs.sweep(system, {"tank.k": [0.0, 2.0]}, methods=cs.Jacobi(1), steps=0.1, t_end=1)
    >>> found["tank.h"].round(3).values.tolist(), tank.parameters
    ([1.0, 0.368], {'k': 1.0})
    """
    began = perf_counter()
    xarray()  # refused now rather than after the last run
    variants = make_variants(parameters)
    if isinstance(build, System):
        if matrices is not None:
            raise SetupError("sweep: matrices belong to a build function, not to a system")
        build = Variation(build, variants.names)
    refuse_unfit_function("build", build, "a System", variants.names)
    if matrices is not None:
        refuse_unfit_function("matrices", matrices, "{subsystem: {'A': ...}}", variants.names)
    labels, chosen = _methods(methods)
    several, lengths = _steps(steps, reduce)
    refuse_bad_span(t_start, t_end)
    _refuse_bad_choices(reduce, every, workers, executor)
    workers = cores() if workers is None else int(workers)
    kept = tuple(dict.fromkeys([record] if isinstance(record, str) else record or ()))
    job = Job(build, tuple(chosen), tuple(lengths), t_start, t_end, kept, every, reduce, compiled, matrices)
    pairs = tuple((m, s) for m in range(len(chosen)) for s in range(len(lengths)))
    items = Items(np.arange(len(variants)), variants.table(), pairs)
    first, failures = _first(job, items)
    plan = first.plan()
    for method in chosen:
        method.refuse_unfit(plan)
    for step in lengths:
        if not isinstance(step, Adaptive) and step is not None:
            UniformClock(t_start, t_end, step)
    quantities: list[str] | None = None
    units: dict[str, str] = {}
    if not callable(reduce):
        kept = kept or tuple(name for name, c in channels(plan).items() if c.column == "y")
        units = _units(Selection(plan, kept), kept)
        quantities = list(units)
    elif kept:
        Selection(plan, kept)
    job = replace(job, record=kept)
    cell: tuple[int, ...] | None = None if quantities is None else (len(quantities),)
    if reduce == "trajectory" and cell is not None:
        cell = (*cell, max(job.rows(step) for step in lengths))
    store = Store((len(variants), len(chosen), len(lengths)), cell)
    for v, message in failures.items():
        for m, s in pairs:
            store.fail((v, m, s), message)
    left = items[len(failures) :]
    with _progress(progress, len(variants) * len(pairs)) as tick:
        tick(len(failures) * len(pairs))
        try:
            where = workers, executor, client, store, tick
            if save is None:
                how, seconds = _run(job, left, first, first, *where)
            else:
                how, seconds = _run_missing(Path(save), variants, job, left, first, *where)
        finally:
            if isinstance(build, Variation):
                build.restore()
    seconds["whole"] = perf_counter() - began
    return make_dataset(variants, job, labels, several, quantities, units, store, how, seconds)


def _run_missing(
    path: Path,
    variants: Variants,
    job: Job,
    items: Items,
    first: System,
    workers: int,
    executor: str,
    client: Any,
    store: Store,
    tick: Callable[[int], None],
) -> tuple[str, dict[str, float]]:
    """Run what is not in the file yet; how, and seconds."""
    journal = Journal(path, job, variants, store)

    def committed(count: int) -> None:
        journal.commit()
        tick(count)

    try:
        missing = ~journal.done[items.numbers].reshape(len(items), -1)
        had = int(missing.size - missing.sum())
        tick(had)
        told = [f"{had} runs were in '{path.name}' already"] if had else []
        seconds: dict[str, float] = {}
        for pattern in np.unique(missing, axis=0):
            if not pattern.any():
                continue
            rows = np.flatnonzero((missing == pattern).all(axis=1))
            pairs = tuple((m, s) for m, s in np.argwhere(pattern.reshape(journal.done.shape[1:])).tolist())
            part = Items(items.numbers[rows], {name: column[rows] for name, column in items.columns.items()}, pairs)
            known = first if rows[0] == 0 else None
            how, spent = _run(job, part, first, known, workers, executor, client, journal, committed)
            told.append(how)
            seconds |= {name: seconds.get(name, 0.0) + more for name, more in spent.items()}
    finally:
        journal.close()
    return "; ".join(told), seconds


def _run(
    job: Job,
    items: Items,
    first: System,
    known: System | None,
    workers: int,
    executor: str,
    client: Any,
    store: Sink,
    tick: Callable[[int], None],
) -> tuple[str, dict[str, float]]:
    """Run everything; how, and seconds by what they went into. `known` is the first variant, where it is built."""
    if executor == "dask" or client is not None:
        job = replace(job, flags=compiled_flags(job, items, first))
        return run_on_dask(job, items, workers, client, store, tick), {}
    total = len(items) * len(items.pairs)
    left: Sequence[Item] = items
    reasons: list[str] = []
    seconds: dict[str, float] = {}
    if isinstance(job.build, Variation):
        reasons = ["a system is varied, not built"]
    elif job.compiled is not False:
        from cosolve.sweeps.sorting import run_in_blocks

        left, reasons, seconds = run_in_blocks(job, items, workers, store, tick, known)
    else:
        reasons = ["compiled=False"]
    single = sum(len(pairs) for _, _, pairs in left)
    told = []
    if total > single:
        told.append(f"{total - single} runs in compiled blocks of variants, {workers} threads")
    if single:
        began = perf_counter()
        job = replace(job, flags=compiled_flags(job, items, first))
        if executor == "processes":
            reason = why_not_processes(job)
            if reason is None:
                where = run_in_processes(job, left, workers, store, tick)
            else:
                where = f"{run_here(job, left, store, tick)}: {reason}"
        elif executor == "serial":
            where = run_here(job, left, store, tick)
        else:
            where = run_anywhere(job, left, workers, store, tick)
        looped = "through the compiled loop " if any(job.flags.values()) else ""
        why = f" ({'; '.join(reasons)})" if reasons else ""
        told.append(f"{single} runs one by one {looped}{where}, not in blocks{why}")
        seconds["one by one"] = perf_counter() - began
    return "; ".join(told), seconds


# -- arguments ---------------------------------------------------------------------------------------------


def _methods(given: Any) -> tuple[list[str] | None, list[Method]]:
    """Labels (None for a single method) and methods."""
    if isinstance(given, (Method, str)):
        return None, [as_method(given)]
    if isinstance(given, Mapping):
        labels, found = [str(label) for label in given], [as_method(each) for each in given.values()]
    else:
        found = [as_method(each) for each in (given if isinstance(given, Sequence) else [given])]
        labels = [m.label for m in found]
        if len(set(labels)) < len(labels):
            labels = [repr(m) for m in found]
    if not found:
        raise SetupError("sweep: no methods given, so there is nothing to run")
    if len(set(labels)) < len(labels):
        raise SetupError("sweep: the same method is given twice; name them, methods={'one': ..., 'other': ...}")
    return labels, found


def _steps(given: Any, reduce: object) -> tuple[bool, list[Any]]:
    """Whether several steps are given, and the steps."""
    listed = as_list(given, lambda g: isinstance(g, Adaptive))
    found = [given] if listed is None else listed
    if not found:
        raise SetupError("sweep: no steps given, so there is nothing to run")
    for k, step in enumerate(found):
        if isinstance(step, Adaptive) or step is None:
            if reduce == "trajectory":
                raise SetupError(
                    "sweep: whole trajectories need macro steps of one length; with others take a function, "
                    "reduce=lambda result: numpy.interp(times, result.t, result['one.x'])"
                )
            continue
        refuse_bad_step(step, "steps")
        found[k] = float(step)
    numbers = [step for step in found if isinstance(step, float)]
    if len(set(numbers)) < len(numbers):
        raise SetupError("sweep: the same step is given twice")
    return listed is not None, found


def _refuse_bad_choices(reduce: Any, every: Any, workers: Any, executor: Any) -> None:
    if not callable(reduce) and reduce not in REDUCTIONS:
        known = ", ".join(repr(r) for r in REDUCTIONS)
        raise SetupError(f"sweep: reduce must be one of {known} or a function of the result, not {reduce!r}")
    for name, value in (("every", every), ("workers", workers)):
        if not (name == "workers" and value is None):
            whole("sweep", name, value)
    choice("sweep", "executor", executor, ("auto", "serial", "processes", "dask"))


def _first(job: Job, items: Items) -> tuple[System, dict[int, str]]:
    """The first variant that can be built, and what went wrong with those before it."""
    failures: dict[int, str] = {}
    for v, value, _ in items:
        try:
            system = job.system(value)
            system.plan()
        except Exception as error:
            if isinstance(error, SetupError) and "not a System" in str(error):
                raise SetupError(f"sweep: {error}") from None
            failures[v] = in_words("build", error)
        else:
            return system, failures
    if isinstance(job.build, Variation):
        job.build.restore()
    raise SetupError(f"sweep: none of the {len(items)} variants can be built; the first one: {failures[0]}")


def _units(selection: Selection, record: tuple[str, ...]) -> dict[str, str]:
    """Units by quantity; entries of vectors one by one."""
    out: dict[str, str] = {}
    for name in record:
        channel = selection.channels[name]
        names = [name] if channel.scalar else [f"{name}[{k}]" for k in range(len(channel.part))]
        out |= dict.fromkeys(names, channel.unit)
    return out


# -- progress ----------------------------------------------------------------------------------------------


@contextmanager
def _progress(given: Callable[[float], None] | bool | None, total: int) -> Iterator[Callable[[int], None]]:
    """Counts runs; shows a bar on a terminal, or calls the user's function about ten times a second."""
    if callable(given):
        yield _counter(given, total)
    elif given is False or (given is None and not sys.stderr.isatty()):
        yield lambda count: None
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        with Progress(
            BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True
        ) as bar:
            task = bar.add_task("sweep", total=total)
            yield lambda count: bar.update(task, advance=count)


def _counter(tell: Callable[[float], None], total: int) -> Callable[[int], None]:
    done, shown = 0, -np.inf

    def tick(count: int) -> None:
        nonlocal done, shown
        done += count
        if count and (done == total or perf_counter() - shown > _PROGRESS_EVERY):
            tell(done / total)
            shown = perf_counter()

    return tick
