"""Sorting variants into blocks: those alike run together, what does not fit is left for `one_by_one.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from cosolve.ensemble.block_run import Wanted
from cosolve.ensemble.blocks import cross_blocks, why_not_blocks
from cosolve.ensemble.gathered import Ensemble, alike, gather
from cosolve.ensemble.job import Item, Job, Sink
from cosolve.ensemble.one_by_one import in_words
from cosolve.ensemble.program import Matrices
from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.subsystem import Linear
from cosolve.subsystem.port import Matrix

_MEMORY = 1 << 26  # bytes of coefficients and results that are held at the same time, about
_MOST = 1 << 14  # variants at a time


@dataclass
class _Group:
    """Variants that are alike."""

    template: System
    pairs: dict[tuple[int, int], str | None]  # why a (method, step) does not run in blocks
    items: list[Item]
    systems: list[System]


def run_in_blocks(
    job: Job, items: Sequence[Item], workers: int, sink: Sink, tick: Callable[[int], None]
) -> tuple[list[Item], list[str], dict[str, float]]:
    """Run what can run in blocks; the rest, why it is left, and seconds by what they went into."""
    left: dict[int, tuple[Item, list[tuple[int, int]]]] = {}
    reasons: dict[str, None] = {}
    seconds: dict[str, float] = {}

    def leave(item: Item, pairs: Sequence[tuple[int, int]], why: str) -> None:
        if pairs:
            left.setdefault(item[0], (item, []))[1].extend(pairs)
            reasons[why] = None

    groups: list[_Group] = []
    at, began = 0, perf_counter()
    while at < len(items) and not groups:  # a first one that can be built, to see what it is
        _sort(job, items[at], groups, sink, tick)
        at += 1
    if groups and all(why is not None for why in groups[0].pairs.values()):
        for item in items[at - 1 :]:  # nothing of the kind runs in blocks: others need not even be built here
            for pair in item[2]:
                leave(item, [pair], groups[0].pairs[pair] or "")
        at, groups = len(items), []
    size, at = (_batch_size(job, groups[0].template), at - 1) if groups else (1, at)
    while at < len(items):
        batch, stacked = items[at : at + size], None
        if job.matrices is not None:
            stacked = _stacked(job, job.matrices, batch, groups[0].template)
            groups[0].items = list(batch)
        else:
            for item in batch:
                if item not in groups[0].items[:1]:
                    _sort(job, item, groups, sink, tick)
        seconds["building"] = seconds.get("building", 0.0) + perf_counter() - began
        for group in groups:
            if all(why is not None for why in group.pairs.values()):
                for item in group.items:
                    for pair, why in group.pairs.items():
                        leave(item, [pair], why or "")
            elif group.items:
                ensemble = gather(group.systems) if stacked is None else stacked
                _cross(job, group, ensemble, workers, sink, tick, leave, seconds)
            group.items, group.systems = [], []
        at, began = at + len(batch), perf_counter()
    rest = [(item[0], item[1], tuple(pairs)) for item, pairs in left.values()]
    return sorted(rest, key=lambda item: item[0]), list(reasons), seconds


def _sort(job: Job, item: Item, groups: list[_Group], sink: Sink, tick: Callable[[int], None]) -> None:
    """Build a variant and put it with those that are alike."""
    variant, values, pairs = item
    try:
        system = job.system(values)
        for group in groups:
            if alike(system, group.template):
                group.items.append(item)
                group.systems.append(system)
                return
        why = {(m, s): why_not_blocks(system, job.methods[m], job.steps[s], job.reduce) for m, s in pairs}
    except Exception as error:
        for m, s in pairs:
            sink.fail((variant, m, s), in_words("build", error))
        tick(len(pairs))
        return
    groups.append(_Group(system, why, [item], [system]))


def _cross(
    job: Job,
    group: _Group,
    ensemble: Ensemble,
    workers: int,
    sink: Sink,
    tick: Callable[[int], None],
    leave: Callable[[Item, Sequence[tuple[int, int]], str], None],
    seconds: dict[str, float],
) -> None:
    """Run the variants of a group."""
    variants = np.array([item[0] for item in group.items])
    assert isinstance(job.reduce, str) or all(why is not None for why in group.pairs.values())
    for (m, s), why in group.pairs.items():
        if why is not None:
            for item in group.items:
                leave(item, [(m, s)], why)
            continue
        wanted = Wanted(*(job.methods[m], job.steps[s], job.t_start, job.t_end, job.record, job.every, str(job.reduce)))
        found = cross_blocks(group.template.plan(), ensemble, wanted, workers)
        for what, spent in found.seconds.items():
            seconds[what] = seconds.get(what, 0.0) + spent
        good = ~found.alone
        sink.put_many(variants[good], m, s, found.values[good])
        for v in np.flatnonzero(found.failed >= 0):
            sink.fail((int(variants[v]), m, s), found.message(int(v)))
        for v in np.flatnonzero(found.alone):
            leave(group.items[v], [(m, s)], "some variants have numbers out of the ordinary")
        tick(int(good.sum()))


def _batch_size(job: Job, template: System) -> int:
    """Variants that are built and run at a time."""
    degree = max(method.degree for method in job.methods)
    numbers = 0
    for subsystem in template.subsystems.values():
        assert isinstance(subsystem, Linear)
        n, p = subsystem.B.shape
        numbers += 2 * (degree + 1) * n * (n + p * (degree + 1))
    if job.reduce == "trajectory":
        numbers += 2 * len(job.record) * max(job.rows(step) for step in job.steps)
    return max(64, min(_MOST, _MEMORY // (8 * max(numbers, 1)) // 64 * 64))


# -- matrices of all variants at once ----------------------------------------------------------------------


def _stacked(job: Job, matrices: Callable[..., Any], batch: Sequence[Item], template: System) -> Ensemble:
    """The numbers of a batch from the user's function, compared with `build` for some of its variants."""
    count = len(batch)
    columns = {name: np.array([item[1][name] for item in batch]) for name in batch[0][1]}
    given = matrices(**columns)
    if not isinstance(given, Mapping):
        raise SetupError(f"matrices must return {{subsystem: {{'A': ...}}}}, not a {type(given).__name__}")
    for name in given:
        if name not in template.subsystems:
            raise SetupError(f"matrices: there is no subsystem '{name}'; there are {', '.join(template.subsystems)}")
    base = gather([template])
    parts = []
    for (name, subsystem), part in zip(template.subsystems.items(), base.parts, strict=True):
        assert isinstance(subsystem, Linear)
        own = dict(given.get(name, {}))
        unknown = [key for key in own if key not in ("A", "B", "C", "D", "x0")]
        if unknown:
            raise SetupError(f"matrices: '{name}' has no '{unknown[0]}'; it has A, B, C, D and x0")
        found = []
        for key in ("A", "B", "C", "D", "x0"):
            single = getattr(part, key)
            made = _spread(f"'{name}' {key}", own[key], single.shape[:-1], count) if key in own else None
            found.append(np.repeat(single, count, axis=-1) if made is None else made)
        parts.append(Matrices(*found))
    ensemble = Ensemble(count, parts, base.offsets)
    for k in sorted({0, count // 2, count - 1}):
        _compare(job.system(batch[k][1]), template, ensemble, k, batch[k][1])
    return ensemble


def _spread(what: str, given: Any, shape: tuple[int, ...], count: int) -> Matrix:
    """Nested lists of numbers and of one number per variant as an array with the variant last."""
    out = np.empty((*shape, count))
    try:
        for index in np.ndindex(shape):
            entry = given
            for k in index:
                entry = entry[k]
            out[index] = np.asarray(entry, dtype=np.float64)
    except (IndexError, TypeError, ValueError):
        raise SetupError(
            f"matrices: {what} must be nested lists of shape {shape} whose entries are numbers or arrays of {count} "
            "numbers, one per variant"
        ) from None
    if not np.isfinite(out).all():
        raise SetupError(f"matrices: {what} holds a NaN or an infinity")
    return out


def _compare(system: System, template: System, ensemble: Ensemble, k: int, values: dict[str, Any]) -> None:
    """Refuse matrices that are not those of `build`."""
    if not alike(system, template):
        raise SetupError("matrices: build gives systems of different structure; leave matrices away")
    if any((system._constants[key] != value).any() for key, value in template._constants.items()):
        raise SetupError("matrices: build sets constants that differ between variants; leave matrices away")
    for (name, subsystem), part in zip(system.subsystems.items(), ensemble.parts, strict=True):
        for key in ("A", "B", "C", "D", "x0"):
            ours, theirs = getattr(part, key)[..., k], getattr(subsystem, key)
            if not np.allclose(ours, theirs, rtol=1e-9, atol=1e-12 * np.abs(theirs).max(initial=0.0)):
                raise SetupError(
                    f"matrices: {key} of '{name}' is not the one of build for {values}; correct one of the two"
                )
