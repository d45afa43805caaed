"""Variants run one after the other by `simulate`: here, in processes, or wherever a cluster has room."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cosolve.basics.wording import raised
from cosolve.engine.native import why_not_compiled
from cosolve.errors import CosolveError, SetupError, SimulationError, StabilityWarning
from cosolve.interface import System
from cosolve.run.simulate import simulate
from cosolve.sweeps.job import Case, Collected, Item, Items, Job, Sink, recorded_rows, reduce_result

_WORTH_LOADING = 20_000  # macro steps of all variants together that repay compiled loops


def run_items(job: Job, items: Sequence[Item], sink: Sink, tick: Callable[[int], None]) -> None:
    """Run every (method, step) of every item; what fails is noted, and the next one is run."""
    for variant, values, pairs in items:
        try:
            system = job.system(values)
        except Exception as error:
            for m, s in pairs:
                sink.fail((variant, m, s), in_words("build", error))
            tick(len(pairs))
            continue
        for m, s in pairs:
            _run(job, system, (variant, m, s), sink)
            tick(1)


def _run(job: Job, system: System, case: Case, sink: Sink) -> None:
    _, m, s = case
    try:
        try:
            result = _simulate(job, system, m, s, job.flags.get((m, s), job.compiled))
        except SetupError as error:
            if job.compiled or not str(error).startswith("compiled=True"):
                raise
            result = _simulate(job, system, m, s, None)  # this variant is unlike the others
    except SimulationError as error:
        if job.reduce == "trajectory" and error.result is not None:  # up to the last good step
            kept = recorded_rows(error.result, job.record)
            rows = np.full((len(kept), job.rows(job.steps[s])), np.nan)
            rows[:, : kept.shape[1]] = kept
            sink.put(case, rows)
        sink.fail(case, str(error))
        return
    except Exception as error:
        sink.fail(case, in_words("simulate", error))
        return
    try:
        cell, labels = reduce_result(result, job)
    except Exception as error:
        sink.fail(case, in_words("reduce", error))
        return
    sink.put(case, cell, labels)
    remarks = [note.text for note in result.notes if note.level != "info" or note.kind == "ended"]
    if remarks:
        sink.note(case, "; ".join(remarks))


def _simulate(job: Job, system: System, m: int, s: int, compiled: bool | None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)  # the notes of the sweep say it, variant by variant
        return simulate(
            system,
            t_start=job.t_start,
            t_end=job.t_end,
            method=job.methods[m],
            step=job.steps[s],
            every=job.every,
            record=None if callable(job.reduce) and not job.record else job.record,
            compiled=compiled,
        )


def run_chunk(job: Job, items: Sequence[Item], blocks: bool) -> Collected:
    """What a worker does: in blocks where that is possible (if `blocks`), otherwise one by one."""
    found = Collected()
    if blocks and isinstance(items, Items):
        from cosolve.sweeps.sorting import run_in_blocks

        items, found.how = run_in_blocks(job, items, 1, found, _nothing)[:2]
    run_items(job, items, found, _nothing)
    return found


def _nothing(count: int) -> None:
    """No progress to show."""


def in_words(where: str, error: BaseException) -> str:
    """One sentence about what a function raised."""
    return str(error) if isinstance(error, CosolveError) else f"{where} failed: {raised(error)}"


def compiled_flags(job: Job, items: Items, first: System) -> dict[tuple[int, int], bool | None]:
    """Whether the runs of each (method, step) go through the compiled loop; `first` is the first of the variants.

    It is loaded once for all of them. Functions that numba has to compile anew for every variant are not worth it.
    """
    flags: dict[tuple[int, int], bool | None] = {}
    fresh = job.compiled is None and len(items) > 1 and _jitted_anew(job, items[1][1], first)
    for m, method in enumerate(job.methods):
        for s, step in enumerate(job.steps):
            flags[m, s] = job.compiled
            if job.compiled is None and isinstance(step, (int, float)):
                steps = (job.t_end - job.t_start) / step
                if fresh and steps < _WORTH_LOADING:
                    flags[m, s] = False
                elif steps * len(items) >= _WORTH_LOADING and why_not_compiled(first, method, step) is None:
                    flags[m, s] = True
    return flags


def _jitted_anew(job: Job, values: dict[str, Any], first: System) -> bool:
    """True when another variant has jitted functions of its own."""
    known = _jitted(first)
    try:
        return bool(known) and _jitted(job.system(values)) != known
    except Exception:  # its own run will tell
        return False


def _jitted(system: System) -> list[int]:
    """The jitted functions of a system."""
    held = [value for s in system.subsystems.values() for value in vars(s).values()]
    held += [block.function for block in system.plan().blocks]
    return [id(value) for value in held if hasattr(value, "py_func")]
