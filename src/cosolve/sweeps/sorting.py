"""Sorting variants into blocks: those alike run together, what does not fit is left for `single_runs.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from cosolve.engine.blocks.block_run import BlockTask
from cosolve.engine.blocks.blocks import advance_blocks, why_not_blocks
from cosolve.engine.blocks.program import Integers
from cosolve.engine.blocks.variants import Ensemble, alike, gather, join
from cosolve.interface import System
from cosolve.subsystem import Linear
from cosolve.sweeps.job import Item, Items, Job, Sink
from cosolve.sweeps.matrices import stack
from cosolve.sweeps.single_runs import in_words

_MEMORY = 1 << 26  # bytes of coefficients and results that are held at the same time, about
_MOST = 1 << 14  # variants at a time
_AT_A_TIME = 256  # systems whose numbers are gathered at a time
_GROWN = 1e9  # times larger than at the start: reported, since the steps of a block are not shown


@dataclass
class _Group:
    """Variants that are alike."""

    template: System
    pairs: dict[tuple[int, int], str | None]  # why a (method, step) does not run in blocks
    members: list[int] = field(default_factory=list)  # which of the items
    _systems: list[System] = field(default_factory=list)
    _gathered: list[Ensemble] = field(default_factory=list)

    def add(self, k: int, system: System) -> None:
        """Another one; of most only the numbers are kept (thousands of objects would keep the collector busy)."""
        self.members.append(k)
        self._systems.append(system)
        if len(self._systems) == _AT_A_TIME:
            self._gather()

    def numbers(self) -> Ensemble:
        """The numbers of all of them."""
        self._gather()
        return join(self._gathered)

    def clear(self) -> None:
        """Ready for others."""
        self.members, self._systems, self._gathered = [], [], []

    def _gather(self) -> None:
        if self._systems:
            self._gathered.append(gather(self._systems))
            self._systems = []


def run_in_blocks(
    job: Job, items: Items, workers: int, sink: Sink, tick: Callable[[int], None], known: System | None = None
) -> tuple[Sequence[Item], list[str], dict[str, float]]:
    """Run what can run in blocks; the rest, why it is left, and seconds by what they went into.

    `known` is the first of the variants, where it has been built already.
    """
    left: dict[int, list[tuple[int, int]]] = {}
    reasons: dict[str, None] = {}
    seconds: dict[str, float] = {}

    def leave(members: Sequence[int], pair: tuple[int, int], why: str | None) -> None:
        for k in members:
            if why is not None:
                left.setdefault(k, []).append(pair)
                reasons[why] = None

    groups: list[_Group] = []
    at, began = 0, perf_counter()
    while at < len(items) and not groups:  # a first one that can be built, to see what it is
        _sort(job, items, at, groups, sink, tick, known if at == 0 else None)
        at += 1
    if not groups:
        return [], [], seconds
    first = groups[0]
    if all(first.pairs.values()):  # nothing of the kind runs in blocks: others need not even be built here
        return items[at - 1 :], list(dict.fromkeys(why for why in first.pairs.values() if why)), seconds
    size, built, at = _batch_size(job, first.template), at, at - 1
    while at < len(items):
        end, stacked = min(at + size, len(items)), None
        if job.matrices is not None:
            first.members = list(range(at, end))
            stacked = stack(job, job.matrices, items[at:end], first.template)
        else:
            for k in range(max(at, built), end):
                for pair, why in _sort(job, items, k, groups, sink, tick).items():
                    leave([k], pair, why)
        seconds["building"] = seconds.get("building", 0.0) + perf_counter() - began
        for group in groups:
            for pair, why in group.pairs.items():
                leave(group.members, pair, why)
            if group.members:
                variants = items.numbers[at:end] if stacked else items.numbers[group.members]
                _advance(job, group, variants, stacked or group.numbers(), workers, sink, tick, leave, seconds)
            group.clear()
        at, began = end, perf_counter()
    return [(*items[k][:2], tuple(left[k])) for k in sorted(left)], list(reasons), seconds


def _sort(
    job: Job,
    items: Items,
    k: int,
    groups: list[_Group],
    sink: Sink,
    tick: Callable[[int], None],
    known: System | None = None,
) -> Mapping[tuple[int, int], str | None]:
    """Build a variant, unless it is `known`, and put it with those that are alike; why it is left alone, if it is."""
    variant, values, pairs = items[k]
    try:
        system = known or job.system(values)
        for group in groups:
            if alike(system, group.template):
                group.add(k, system)
                return {}
        why = {(m, s): why_not_blocks(system, job.methods[m], job.steps[s], job.reduce) for m, s in pairs}
    except Exception as error:
        for m, s in pairs:
            sink.fail((variant, m, s), in_words("build", error))
        tick(len(pairs))
        return {}
    if groups and all(why.values()):
        return why
    groups.append(_Group(system, why))
    groups[-1].add(k, system)
    return {}


def _advance(
    job: Job,
    group: _Group,
    variants: Integers,
    ensemble: Ensemble,
    workers: int,
    sink: Sink,
    tick: Callable[[int], None],
    leave: Callable[[Sequence[int], tuple[int, int], str | None], None],
    seconds: dict[str, float],
) -> None:
    """Run the variants of a group."""
    assert isinstance(job.reduce, str)
    for (m, s), why in group.pairs.items():
        if why is not None:
            continue
        wanted = BlockTask(job.methods[m], job.steps[s], job.t_start, job.t_end, job.record, job.every, job.reduce)
        found = advance_blocks(group.template.plan(), ensemble, wanted, workers)
        for what, spent in found.seconds.items():
            seconds[what] = seconds.get(what, 0.0) + spent
        good = ~found.alone
        sink.put_many(variants[good], m, s, found.values[good])
        for v in np.flatnonzero(found.failed >= 0):
            sink.fail((int(variants[v]), m, s), found.message(int(v)))
        for v in np.flatnonzero(good & (found.failed < 0) & (found.growth > _GROWN)):
            said = f"values have grown {found.growth[v]:.1e} times: most likely the coupling is unstable at this step"
            sink.note((int(variants[v]), m, s), f"{said}; simulate the variant alone to see whether it is the model")
        odd = [group.members[v] for v in np.flatnonzero(found.alone)]
        leave(odd, (m, s), "some variants have numbers out of the ordinary")
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
