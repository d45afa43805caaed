"""What a shadow says, proven or not by other grids: the estimate of each output, or why there is none.

A shadow is right where polynomials through the macro points describe the signals between them. That is not taken for
granted: the run is repeated with steps twice as long, and the two must be as far apart as the shadow and the order of
the method say. Where they are not, or where the macro points resolve the signals badly, steps half as long follow. What
remains of the difference then bounds the error, if the finer run is resolved or the differences fall from grid to grid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import CosolveError
from cosolve.interface import Plan
from cosolve.method import Method
from cosolve.run.grids import OtherGrid, longer_steps, shorter_steps
from cosolve.run.shadow import Counts, Track, distance
from cosolve.run.startup import Startup

FLOOR = 2e-9  # of an output's largest value
UNRESOLVED, WELL_RESOLVED = 0.5, 0.25  # of the ratio R
HOPELESS = 1.0  # half the steps would not resolve such signals either
_FACTOR = 1.5  # so far a prediction for another grid may be off, either way
_FALLS = 0.6  # differences between grids that fall at least like this converge
_WITHOUT_ORDER = 1.5  # the safety of an estimate that nothing but that is known of
_CLOSE = 1.25  # times a prediction: beyond, another grid says more than the shadow
_OWN = 100.0  # times the noise of a subsystem: so far its own errors may move an output from grid to grid
_BARELY = 10.0  # times the floor


@dataclass
class Proof:
    """Estimates by output, over the times of the run; `why` those of `unproven` outputs are not to be relied on."""

    estimates: dict[str, Vector] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    spent: Counts | int = 0
    doubt: str = ""  # about the whole run

    def refuse(self, name: str, why: str) -> None:
        """There is no estimate for this output that can be relied on."""
        self.why.setdefault(name, why)


class Prover:
    """Estimates of one run and the grids that they were compared with."""

    def __init__(self, plan: Plan, method: Method, startup: Startup, track: Track, parts: Mapping[str, slice]) -> None:
        self._run = plan, method, startup
        self._plan, self._track, self._parts = plan, track, parts
        self._order = 2.0 ** (method.degree + 1)
        self._noise = _OWN * max((float(subsystem.noise) for subsystem in plan.subsystems), default=0.0)
        self.proof = Proof()

    # -- pieces ----------------------------------------------------------------------------------------------

    def _sizes(self, name: str) -> tuple[float, float]:
        """The largest value of an output, and how far its subsystem's own errors may move it."""
        size = float(np.abs(self._track.y[:, self._parts[name]]).max())
        return size, self._noise * size

    def _largest(self, rows: Matrix, name: str) -> Vector:
        """The largest entry of an output, point by point."""
        values: Vector = np.abs(rows[:, self._parts[name]]).max(axis=1)
        return values

    def _moved(self, grid: OtherGrid, name: str) -> Vector:
        """How far another grid moves an output, at all points of the run."""
        t = self._track.t
        values: Vector = np.interp(t, t[grid.at], self._largest(grid.moved, name))
        return values

    def _grid(self, make: Callable[..., OtherGrid], stop_at_events: bool = False) -> OtherGrid | None:
        """Another grid; None where the run fails on it."""
        try:
            found = make(*self._run, self._track, stop_at_events)
        except CosolveError as error:
            self.proof.doubt = str(error)
            return None
        self.proof.spent = self.proof.spent + found.spent
        return found

    # -- proofs ----------------------------------------------------------------------------------------------

    def shadows(self, gap: Matrix, ratio: float, resolved: Callable[[Track], float], start: float) -> Proof:
        """Estimates by the shadow where other grids confirm it; none of any output where one of them is not proven.

        `start` is the ratio R with the first points of the run: where these are not resolved, something faster than the
        steps has died out in them, and both other grids must agree.
        """
        proof, shadows = self.proof, {name: self._largest(gap, name) for name in self._parts}
        proof.estimates = dict(shadows)
        if not ratio < HOPELESS:
            self._refuse_all(f"the signals are not resolved by the macro steps (R = {ratio:.2f})")
        elif ratio < UNRESOLVED:
            self._by_grids(shadows, ratio, both=not start < UNRESOLVED)
        else:
            self._by_finer_shadow(gap, ratio, resolved)
        return proof

    def _refuse_all(self, why: str) -> None:
        for name in self._parts:
            self.proof.refuse(name, why)

    def _by_grids(self, shadows: Mapping[str, Vector], ratio: float, both: bool) -> None:
        """Steps twice as long, where these are resolved too, and half as long where that proves too little."""
        proof, left = self.proof, list(shadows)
        longer = self._grid(longer_steps) if ratio < WELL_RESOLVED or both else None
        if longer is not None:
            left = [name for name in left if not self._confirmed(name, shadows[name], longer)]
        if both and left:
            self._refuse_all(
                f"steps twice as long do not move '{left[0]}' as its shadow says: something is faster than the steps"
            )
            return
        if both:
            left = list(shadows)
        if not left:
            return
        shorter = self._grid(shorter_steps)
        if shorter is None:
            self._refuse_all(f"with steps half as long the run fails ({proof.doubt})")
            return
        left = [name for name in left if not self._confirmed(name, shadows[name], shorter, shorter=True)]
        if left and longer is None:
            longer = self._grid(longer_steps)
        for name in left:
            found = None if longer is None or both else self._falling(name, longer, shorter)
            if found is None:
                far, foreseen = self._moved(shorter, name).max(), float(shadows[name].max()) * (1 - 1 / self._order)
                proof.estimates[name] = np.maximum(shadows[name], self._moved(shorter, name))
                self._refuse_all(
                    f"steps half as long move '{name}' by {far:.1e} where its shadow says {foreseen:.1e}: something is "
                    "faster than the steps"
                )
                return
            proof.estimates[name] = found

    def _falling(self, name: str, longer: OtherGrid, shorter: OtherGrid) -> Vector | None:
        """The estimate where differences fall from grid to grid as the order says, or as the next one does."""
        before, after = self._moved(longer, name), self._moved(shorter, name)
        falls = float(after.max()) / max(float(before.max()), 1e-300)
        if not any(0.8 < falls * order < 1.25 for order in (self._order, 2.0 * self._order)):
            return None
        found: Vector = after / (1.0 - falls)
        return found

    def _confirmed(self, name: str, shadow: Vector, grid: OtherGrid, shorter: bool = False) -> bool:
        """Whether another grid moves an output as far as its shadow says."""
        proof, (size, own) = self.proof, self._sizes(name)
        factor = 1.0 - 1.0 / self._order if shorter else self._order - 1.0
        moved = self._moved(grid, name)
        far, foreseen = float(moved.max()), factor * float(shadow.max())
        if shadow.max() <= FLOOR * size:
            if far > max(_BARELY * self._order * FLOOR * size, own):
                proof.refuse(
                    name,
                    "its coupling error is below the accuracy of the subsystems, whose own steps move it by "
                    f"{far / size if size else far:.1e} where macro steps are {'half' if shorter else 'twice'} as long",
                )
            return True
        if max(far, foreseen) <= own:
            proof.estimates[name] = np.maximum(shadow, moved)
            return True
        if foreseen / _FACTOR < far < foreseen * _FACTOR:
            if far > _CLOSE * foreseen:
                proof.estimates[name] = np.maximum(shadow, moved / factor)
            return True
        return False

    def _by_finer_shadow(self, gap: Matrix, ratio: float, resolved: Callable[[Track], float]) -> None:
        """Steps half as long with a shadow of their own, which is resolved and must explain what they have moved."""
        proof = self.proof
        shorter = self._grid(shorter_steps)
        if shorter is None:
            self._refuse_all(f"with steps half as long the run fails ({proof.doubt})")
            return
        finer = resolved(shorter.track)
        if not finer < UNRESOLVED:
            self._refuse_all(f"the signals are not resolved by the macro steps (R = {ratio:.2f})")
            return
        try:
            rows, spent = distance(*self._run, shorter.track)
        except CosolveError as error:
            self._refuse_all(f"the shadow of a run with steps half as long failed ({error})")
            return
        proof.spent = proof.spent + spent
        left, t = rows[shorter.own], self._track.t
        predicted = np.abs(left - gap[shorter.at])
        for name in self._parts:
            moved, foreseen = self._largest(shorter.moved, name), self._largest(predicted, name)
            size, own = self._sizes(name)
            if not agrees(moved, foreseen, max(FLOOR * size, own)):
                self._refuse_all(doubt(name, moved, foreseen, "half"))
                return
            proof.estimates[name] = np.interp(t, t[shorter.at], moved + self._largest(left, name))

    def events(self, count: int) -> Proof:
        """Estimates of a run whose macro steps ended at events, which no shadow follows: by three grids alone."""
        proof = self.proof
        grids = [self._grid(make, stop_at_events=True) for make in (longer_steps, shorter_steps)]
        longer, shorter = grids
        for name in self._parts:
            if longer is None or shorter is None:
                proof.refuse(name, f"with other steps the run fails ({proof.doubt})")
                continue
            if not longer.events == shorter.events == count:
                proof.refuse(name, "with other steps there is another number of events")
                continue
            size, own = self._sizes(name)
            before, after = self._moved(longer, name), self._moved(shorter, name)
            found = _converging(before, after)
            if max(before.max(), after.max()) <= max(_BARELY * FLOOR * size, own):
                found = np.maximum(before, after)
            proof.estimates[name] = np.maximum(before, after) if found is None else found
            if found is None:
                proof.refuse(name, "macro steps ended at events, and shorter steps do not bring it nearer to a limit")
        if proof.why:  # events of one output move the others
            for name in self._parts:
                proof.refuse(name, next(iter(proof.why.values())))
        return proof

    def sure(self, gap: Matrix) -> Proof:
        """Estimates on three grids, which must be as far apart as shadows say."""
        proof, shadows = self.proof, {name: self._largest(gap, name) for name in self._parts}
        proof.estimates = dict(shadows)
        longer = self._grid(longer_steps)
        if longer is None:
            proof.doubt = f"the run is in doubt: with steps twice as long it fails ({proof.doubt})"
            return proof
        try:
            other, spent = distance(*self._run, longer.track)
        except CosolveError as error:
            proof.doubt = f"the run is in doubt: with steps twice as long it fails ({error})"
            return proof
        proof.spent = proof.spent + spent
        predicted = np.abs(other[longer.own] - gap[longer.at])
        for name in shadows:
            moved, foreseen = self._largest(longer.moved, name), self._largest(predicted, name)
            if not agrees(moved, foreseen, FLOOR * self._sizes(name)[0]):
                proof.doubt = doubt(name, moved, foreseen, "twice")
                return proof
        shorter = self._grid(shorter_steps)
        if shorter is None:
            proof.doubt = f"the run is in doubt: with steps half as long it fails ({proof.doubt})"
            return proof
        for name, shadow in shadows.items():
            moved, factor = self._moved(shorter, name), 1.0 - 1.0 / self._order
            if not agrees(moved, factor * shadow, FLOOR * self._sizes(name)[0]):
                proof.doubt = doubt(name, moved, factor * shadow, "half")
                return proof
            across = self._moved(longer, name) / (self._order - 1.0)
            proof.estimates[name] = np.maximum(np.maximum(shadow, across), moved / factor)
        return proof


def _converging(before: Vector, after: Vector) -> Vector | None:
    """The error left where differences fall from `before` to `after` with half the steps; None where they do not."""
    first, second = float(before.max()), float(after.max())
    if not 0.0 < second <= _FALLS * first:
        return None
    found: Vector = _WITHOUT_ORDER * after / (1.0 - second / first)
    return found


def agrees(moved: Vector, predicted: Vector, floor: float) -> bool:
    """Whether the prediction holds, within a factor of 1.5 where there is something to see.

    >>> import numpy as np
    >>> agrees(np.array([0.0, 1e-3]), np.array([0.0, 9e-4]), 1e-9)
    True
    >>> agrees(np.array([0.0, 0.7]), np.array([0.0, 2e-5]), 1e-9)
    False
    """
    far, foreseen = float(moved.max(initial=0.0)), float(predicted.max(initial=0.0))
    return max(far, foreseen) <= floor or foreseen / _FACTOR < far < _FACTOR * foreseen


def doubt(name: str, moved: Vector, predicted: Vector, times: str) -> str:
    """What to say where it does not."""
    far, foreseen = float(moved.max()), float(predicted.max())
    if not np.isfinite(far + foreseen):
        return f"the run is in doubt: with steps {times} as long it diverges"
    return f"the run is in doubt: steps {times} as long move '{name}' by {far:.1e} where {foreseen:.1e} was predicted"
