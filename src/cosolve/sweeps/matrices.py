"""Matrices of all variants at once, from the user's function `matrices`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix
from cosolve.engine.blocks.program import Matrices
from cosolve.engine.blocks.variants import Ensemble, alike, gather
from cosolve.errors import SetupError
from cosolve.interface import System
from cosolve.sweeps.job import Items, Job
from cosolve.sweeps.single_runs import in_words

_KEYS = ("A", "B", "C", "D", "x0")


def stack(job: Job, matrices: Callable[..., Any], batch: Items, template: System) -> Ensemble:
    """The numbers of a batch, compared with `build` for some of its variants."""
    count = len(batch)
    # copies: the function may change what it is given
    columns = {name: np.array(c.tolist() if c.dtype == object else c) for name, c in batch.columns.items()}
    try:
        given = matrices(**columns)
    except Exception as error:
        raise SetupError(f"sweep: {in_words('matrices', error)}") from error
    if not isinstance(given, Mapping):
        raise SetupError(f"matrices must return {{subsystem: {{'A': ...}}}}, not a {type(given).__name__}")
    for name, own in given.items():
        if name not in template.subsystems:
            raise SetupError(f"matrices: there is no subsystem '{name}'; there are {', '.join(template.subsystems)}")
        if not isinstance(own, Mapping):
            raise SetupError(f"matrices: '{name}' must have {{'A': ...}}, not a {type(own).__name__}")
        unknown = [key for key in own if key not in _KEYS]
        if unknown:
            raise SetupError(f"matrices: '{name}' has no '{unknown[0]}'; it has A, B, C, D and x0")
    base = gather([template])
    finite = np.ones(count, dtype=bool)
    parts = []
    for name, part in zip(template.subsystems, base.parts, strict=True):
        found = []
        for key in _KEYS:
            single, own = getattr(part, key), given.get(name, {})
            if key in own:
                found.append(_spread(f"'{name}' {key}", own[key], single.shape[:-1], count))
                finite &= np.isfinite(found[-1]).reshape(-1, count).all(axis=0)
            else:
                found.append(np.broadcast_to(single, (*single.shape[:-1], count)))
        parts.append(Matrices(*found))
    ensemble = Ensemble(count, parts, base.offsets, ~finite)
    _compare(job, batch, template, ensemble)
    return ensemble


def _spread(what: str, given: Any, shape: tuple[int, ...], count: int) -> Matrix:
    """Nested lists of numbers and of one number per variant as an array with the variant last."""
    out = np.empty((*shape, count))

    def fill(entry: Any, into: Matrix) -> None:
        if into.ndim == 1:
            into[:] = entry
            return
        if len(entry) != len(into):
            raise IndexError
        for inner, row in zip(entry, into, strict=True):
            fill(inner, row)

    try:
        fill(given, out)
    except (IndexError, TypeError, ValueError):
        raise SetupError(
            f"matrices: {what} must be nested lists of shape {shape} whose entries are numbers or arrays of {count} "
            "numbers, one per variant"
        ) from None
    return out


def _compare(job: Job, batch: Items, template: System, ensemble: Ensemble) -> None:
    """Refuse matrices that are not those of `build`."""
    usual = np.flatnonzero(~ensemble.odd)
    chosen = sorted({int(usual[k]) for k in (0, len(usual) // 2, -1)}) if len(usual) else []
    systems = []
    for k in chosen:
        try:
            systems.append(job.system(batch[k][1]))
        except Exception as error:
            raise SetupError(f"matrices: they are given for {batch[k][1]}, but {in_words('build', error)}") from error
        if not alike(systems[-1], template):
            raise SetupError("matrices: build gives systems of different structure; omit matrices")
        if any((systems[-1]._constants[key] != value).any() for key, value in template._constants.items()):
            raise SetupError("matrices: build sets constants that differ between variants; omit matrices")
    if not systems:
        return
    for name, ours, theirs in zip(template.subsystems, ensemble.parts, gather(systems).parts, strict=True):
        for key in _KEYS:
            given, built = getattr(ours, key)[..., chosen], getattr(theirs, key)
            size = np.abs(built)
            largest = size.reshape(-1, len(chosen)).max(axis=0, initial=0.0)
            wrong = np.abs(given - built) > 1e-9 * size + 1e-12 * largest
            if wrong.any():
                values = batch[chosen[int(np.nonzero(wrong)[-1][0])]][1]
                raise SetupError(
                    f"matrices: {key} of '{name}' is not the one of build for {values}; correct one of the two"
                )
