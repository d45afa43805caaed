"""Accelerations of implicit schemes: cosolve's correctors, applied to waveforms.

What a corrector sees is one vector of values at the end of the window. Earlier samples, and data that are exchanged but
not listed, follow: they are corrected by the same factor or the same combination of past iterates, and build no fit.
Should the number of samples change from one iteration to the next, the correction of the earlier ones is interpolated
between the sample times the first iteration had, which does not touch the solution that the iteration leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.corrector import Aitken, IqnIls, IqnImvj, Relaxation
from cosolve.corrector.algebra.least_squares import LeastSquares
from cosolve.participants.client import Waveform
from cosolve.precice.config import Acceleration
from cosolve.precice.convergence import Key

Samples = list[tuple[float, Vector]]

#: An absolute limit of a filter says nothing about columns that are scaled, so this relative one is used instead.
_FILTER = 1e-4


class Accelerator:
    """The next iterate of some data from what was used and what came of it.

    `bounds` holds lower and upper bounds of data, or None.
    """

    def __init__(
        self, tag: Acceleration | None, keys: Sequence[Key], bounds: Mapping[Key, tuple[float | None, float | None]]
    ) -> None:
        self.tag, self.bounds = tag, bounds
        listed = [key for key in (tag.data if tag else ()) if key in keys] or list(keys)
        self.listed, self.others = listed, [key for key in keys if key not in listed]
        self._corrector: Any = None
        self._grids: dict[Key, tuple[float, ...]] = {}
        self._iteration = 0
        self._sums: dict[Key, float] = {}

    def start_window(self) -> None:
        """A new window begins."""
        self._iteration = 0
        if self._corrector is not None:
            self._corrector.start_step()

    @property
    def columns(self) -> int | None:
        """How many differences a quasi-Newton acceleration holds; None for the others."""
        return len(self._corrector._secants) if isinstance(self._corrector, LeastSquares) else None

    def next(self, t0: float, used: Mapping[Key, Waveform], new: Mapping[Key, Samples]) -> dict[Key, Samples]:
        """Samples to go on with; `used` is what this iteration was computed from, `new` what came of it."""
        if self.tag is None:
            return dict(new)
        old = {key: [(t, used[key].at(t)) for t, _ in samples] for key, samples in new.items()}
        if self.tag.kind == "constant":
            corrector = Relaxation(self.tag.relaxation)
            return self._each(old, new, lambda z, r: corrector.correct(z, r, None))  # type: ignore[arg-type]
        self._iteration += 1
        if self.tag.kind == "aitken":
            return self._aitken(old, new)
        return self._quasi_newton(t0, old, new)

    def accept(self, t0: float, used: Mapping[Key, Waveform], new: Mapping[Key, Samples]) -> None:
        """The window is complete; the last pair is worth knowing."""
        if self.tag is not None and self._corrector is not None and isinstance(self._corrector, LeastSquares):
            old = {key: [(t, used[key].at(t)) for t, _ in samples] for key, samples in new.items()}
            z, x = self._flat(t0, old), self._flat(t0, new)
            self._corrector.accept(z, z - x)

    def tree(self) -> dict[str, Any]:
        """What it knows, as values for a file."""
        grids = [[*key, list(grid)] for key, grid in self._grids.items()]
        return {"corrector": self._corrector, "grids": grids}

    def go_on(self, tree: dict[str, Any]) -> None:
        """With what another one knew."""
        self._corrector = tree["corrector"]
        self._grids = {(mesh, data): tuple(grid) for mesh, data, grid in tree["grids"]}

    def _each(
        self, old: Mapping[Key, Samples], new: Mapping[Key, Samples], better: Callable[[Vector, Vector], Vector]
    ) -> dict[Key, Samples]:
        """Every sample by itself."""
        return {
            key: [(t, better(z, z - x)) for (t, z), (_, x) in zip(old[key], samples, strict=True)]
            for key, samples in new.items()
        }

    # -- Aitken

    def _aitken(self, old: Mapping[Key, Samples], new: Mapping[Key, Samples]) -> dict[Key, Samples]:
        assert self.tag is not None
        z = np.concatenate([old[key][-1][1] for key in self.listed])
        r = z - np.concatenate([new[key][-1][1] for key in self.listed])
        if self._corrector is None:
            self._corrector = Aitken(initial=self.tag.relaxation, carry="smaller")
            self._corrector.start_run(["z"])
            self._corrector.start_step()
        weight = self._residual_sum(old, new) if len(self.listed) > 1 else 1.0
        self._corrector.correct(z * weight, r * weight, None)
        factor = float(self._corrector.factor[0])
        return self._each(old, new, lambda z, r: z - factor * r)

    def _residual_sum(self, old: Mapping[Key, Samples], new: Mapping[Key, Samples]) -> Any:
        """Weights that let all data count alike: one over the sum of their shares of the residuals in this window."""
        if self._iteration == 1:
            self._sums = dict.fromkeys(self.listed, 0.0)
        norms = {key: float(np.linalg.norm(old[key][-1][1] - new[key][-1][1])) for key in self.listed}
        whole = float(np.sqrt(sum(n * n for n in norms.values())))
        for key, norm in norms.items():
            self._sums[key] += norm / whole if whole > 0 else 0.0
        return np.concatenate(
            [
                np.full(len(new[key][-1][1]), 1.0 / self._sums[key] if self._sums[key] > 0 else 1.0)
                for key in self.listed
            ]
        )

    # -- quasi-Newton

    def _quasi_newton(self, t0: float, old: Mapping[Key, Samples], new: Mapping[Key, Samples]) -> dict[Key, Samples]:
        assert self.tag is not None
        if self._corrector is None:
            self._begin(t0, new)
        z, x = self._flat(t0, old), self._flat(t0, new)
        better = self._corrector.correct(z, z - x, None)
        if not np.isfinite(better).all():  # nothing that was learnt helps here
            better = z - self.tag.relaxation * (z - x)
        if self._iteration == 1 and self.tag.enforce:
            better = z - self.tag.relaxation * (z - x)
        return self._bounded(self._unflat(t0, better - x, new), new)

    def _begin(self, t0: float, new: Mapping[Key, Samples]) -> None:
        tag = self.tag
        assert tag is not None
        self._grids = {key: tuple(t - t0 for t, _ in samples) for key, samples in new.items()}
        labels = [f"{k}[{i}]" for k, key in enumerate(self.listed) for i in range(len(new[key][-1][1]))]
        tol = _FILTER if tag.filter == "QR1-absolute" else min(max(tag.limit, 1e-14), 0.9)
        if tag.kind == "IQN-ILS":
            self._corrector = IqnIls(reuse=tag.reuse, initial=tag.relaxation, filter_tol=tol, columns=tag.columns)
        else:
            self._corrector = IqnImvj(initial=tag.relaxation, filter_tol=tol, columns=tag.columns)
        whole = sum(len(v) for samples in new.values() for _, v in samples)
        self._corrector.start_run(labels, whole - len(labels))
        self._corrector.start_step()

    def _flat(self, t0: float, samples: Mapping[Key, Samples]) -> Vector:
        """The last samples of the listed data, then those of the others, then all earlier ones on the first grid."""
        keys = [*self.listed, *self.others]
        parts = [samples[key][-1][1] for key in keys]
        for key in keys:
            grid, own = self._grids[key], samples[key]
            if len(own) == len(grid):
                parts += [v for _, v in own[:-1]]
            else:
                H = own[-1][0] - t0
                wave = Waveform([(t - t0) / H for t, _ in own], [v for _, v in own], 1)
                parts += [wave.at(t / grid[-1]) for t in grid[:-1]]
        return np.concatenate(parts)

    def _unflat(self, t0: float, change: Vector, new: Mapping[Key, Samples]) -> dict[Key, Samples]:
        keys = [*self.listed, *self.others]
        at = 0
        ends: dict[Key, Vector] = {}
        for key in keys:
            n = len(new[key][-1][1])
            ends[key], at = change[at : at + n], at + n
        found: dict[Key, Samples] = {}
        for key in keys:
            grid, own = self._grids[key], new[key]
            n = len(own[-1][1])
            changes = []
            for _ in grid[:-1]:
                changes.append(change[at : at + n])
                at += n
            changes.append(ends[key])
            if len(own) == len(grid):
                found[key] = [(t, v + d) for (t, v), d in zip(own, changes, strict=True)]
            else:
                H = own[-1][0] - t0
                wave = Waveform([0.0, *(t / grid[-1] for t in grid)], [np.zeros(n), *changes], 1)
                found[key] = [(t, v + wave.at((t - t0) / H)) for t, v in own]
        return found

    def _bounded(self, found: dict[Key, Samples], new: Mapping[Key, Samples]) -> dict[Key, Samples]:
        """What the file wants where a correction leaves the bounds of data."""
        assert self.tag is not None
        rule = self.tag.violation
        if rule == "ignore":
            return found
        share, outside = 1.0, False
        for key, samples in found.items():
            lower, upper = self.bounds.get(key, (None, None))
            low, high = -np.inf if lower is None else lower, np.inf if upper is None else upper
            for (_, v), (_, x) in zip(samples, new[key], strict=True):
                bad = (v < low) | (v > high)
                outside |= bool(bad.any())
                with np.errstate(divide="ignore", invalid="ignore"):
                    shares = np.where(v > high, (high - x) / (v - x), np.where(v < low, (low - x) / (v - x), 1.0))
                if bad.any():
                    share = min(share, float(np.clip(shares, 0.0, 1.0).min()))
        if not outside:
            return found
        if rule == "clamp":
            return {key: [(t, np.clip(v, *self._limits(key))) for t, v in samples] for key, samples in found.items()}
        if rule == "discard":
            return dict(new)
        return {
            key: [(t, x + share * (v - x)) for (t, v), (_, x) in zip(samples, new[key], strict=True)]
            for key, samples in found.items()
        }

    def _limits(self, key: Key) -> tuple[float, float]:
        lower, upper = self.bounds.get(key, (None, None))
        return -np.inf if lower is None else lower, np.inf if upper is None else upper
