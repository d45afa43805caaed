"""The error estimate of each output, confirmed by runs with other steps; or the reason why there is none.

A shadow is right where polynomials through the macro points describe the signals between them. That is not taken for
granted: the run is repeated with steps twice as long, and the two must be as far apart as the shadow and the order of
the method say. Where they are not, steps half as long follow. What remains of the difference then bounds the error, if
the differences fall from grid to grid. Where the macro points resolve the signals badly, runs with shorter steps
follow, until one of them is proven in this way: how far it is from the run, and its own estimate, bound the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from cosolve.accuracy.grids import OtherGrid, longer_steps, shorter_steps
from cosolve.accuracy.recorded_run import Track
from cosolve.accuracy.resolution import FLOOR, resolution, roughness
from cosolve.accuracy.shadow import Counts, distance
from cosolve.basics.arrays import Matrix, Vector
from cosolve.errors import CosolveError
from cosolve.interface import Plan
from cosolve.method import Method
from cosolve.run.startup import Startup

UNRESOLVED, WELL_RESOLVED = 0.5, 0.25  # of the ratio R
ROUGH = 0.5  # may be seen between macro points where something that has died out in the first steps may ring there
MEANINGLESS = 0.1  # of the size of an output
#: Pieces of a step in runs that are tried where the steps resolve too little; macro steps and numbers of the longest.
_PIECES, _MOST_STEPS, _MOST_NUMBERS = (2, 4, 8, 16), 50_000, 5e6
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

    def __init__(
        self,
        plan: Plan,
        method: Method,
        startup: Startup,
        track: Track,
        parts: Mapping[str, slice],
        *,
        refines: bool = True,
        proves: bool = False,
    ) -> None:
        self._run, self._refines, self._proves = (plan, method, startup), refines, proves
        self._plan, self._track, self._parts = plan, track, parts
        self._order = 2.0 ** (method.degree + 1)
        self._noise = _OWN * max((float(subsystem.noise) for subsystem in plan.subsystems), default=0.0)
        self._gap: Matrix = np.zeros((0, 0))
        self.proof = Proof()
        self.unresolved = False  # something is faster than the steps, and shorter ones may follow it

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

    def shadows(self) -> Proof:
        """Estimates by the shadow where other grids confirm it, or those of shorter steps; of all outputs or none.

        Where the first points of the run are not resolved, something faster than the steps has died out in them, and
        both other grids must agree. So they must where it cannot be told what happens between the points.
        """
        proof, (shadows, between, hidden), (ratio, start) = self.proof, self._shadow(), self._ratios()
        if not ratio < UNRESOLVED or between >= _most(start) or hidden:
            self.unresolved = True
            self._refuse_all(_unresolved(ratio, between, hidden))
        else:
            self._by_grids(shadows, ratio, both=not start < UNRESOLVED or not between < _most(start))
        if self.unresolved and self._refines:
            self._by_shorter_steps(Prover.shadows)
        return proof

    def _shadow(self) -> tuple[dict[str, Vector], float, str]:
        """What leads from the run to its shadow, the ratio B, and what is too fast for a shadow to see."""
        found = distance(*self._run, self._track, self._proves)
        self.proof.spent = self.proof.spent + found.spent
        self._gap, hidden = found.gap, ""
        shadows = {name: self._largest(found.gap, name) for name in self._parts}
        self.proof.estimates = dict(shadows)
        for name, part in self._parts.items():
            inside, said, (size, own) = float(found.inside[part].max()), float(shadows[name].max()), self._sizes(name)
            if inside > max(said, own, _BARELY * FLOOR * size):
                hidden = (
                    f"something is faster than the steps: inside them '{name}' is {inside:.1e} off smooth curves, and "
                    f"its shadow says {said:.1e}"
                )
        return shadows, found.between, hidden

    def _ratios(self) -> tuple[float, float]:
        """The ratio R of the run, and that with its first points."""
        method, track = self._run[1], self._track
        return resolution(method, track.z, track.steps), roughness(method.degree, track)

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
            self.unresolved = True
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

    def _by_shorter_steps(self, prove: Callable[[Prover], Proof]) -> None:
        """Shorter and shorter steps, until a run with them is proven by itself: the difference to it counts."""
        plan, method, startup = self._run
        for pieces in _PIECES:
            if len(self._track.t) * pieces > _MOST_STEPS or self._track.z.size * pieces > _MOST_NUMBERS:
                return
            shorter = self._grid(partial(shorter_steps, pieces=pieces))
            if shorter is None or not np.isfinite(shorter.moved).all():
                return
            moved = {name: self._moved(shorter, name) for name in self._parts}
            if not resolution(method, shorter.track.z, shorter.track.steps) < UNRESOLVED:
                if all(moved[name].max() > MEANINGLESS * self._sizes(name)[0] for name in moved):
                    return
                continue
            finer = Prover(plan, method, startup, shorter.track, self._parts, refines=False)
            try:
                found = prove(finer)
            except CosolveError as error:
                self.proof.why = dict.fromkeys(self._parts, f"the shadow of a run with shorter steps failed ({error})")
                return
            finally:
                self.proof.spent = self.proof.spent + finer.proof.spent
            if finer.unresolved:
                continue
            if found.why or found.doubt:
                return
            t = self._track.t
            for name, left in found.estimates.items():
                self.proof.estimates[name] = moved[name] + np.interp(t, t[shorter.at], left[shorter.own])
            self.proof.why, self.proof.doubt = {}, ""
            return

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

    def sure(self) -> Proof:
        """Estimates on three grids, which must be as far apart as shadows say; or those of shorter steps."""
        proof, (shadows, between, hidden) = self.proof, self._shadow()
        if between >= _most(self._ratios()[1]) or hidden:
            self.unresolved = True
            proof.doubt = f"the run is in doubt: {_unresolved(0.0, between, hidden)}"
            if self._refines:
                self._by_shorter_steps(Prover.sure)
            return proof
        longer = self._grid(longer_steps)
        if longer is None:
            proof.doubt = f"the run is in doubt: with steps twice as long it fails ({proof.doubt})"
            return proof
        try:
            other = distance(*self._run, longer.track)
        except CosolveError as error:
            proof.doubt = f"the run is in doubt: with steps twice as long it fails ({error})"
            return proof
        proof.spent = proof.spent + other.spent
        predicted = np.abs(other.gap[longer.own] - self._gap[longer.at])
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


def _most(start: float) -> float:
    """What may be seen between macro points, where the first of them have this ratio R."""
    return 1.0 if start < UNRESOLVED else ROUGH


def _unresolved(ratio: float, between: float, hidden: str) -> str:
    """Why there is no estimate: by the macro points, or by what happens between them."""
    if hidden and ratio < UNRESOLVED and not between >= 1.0:
        return hidden
    if ratio >= UNRESOLVED or not between >= ROUGH:
        return f"the signals are not resolved by the macro steps (R = {ratio:.2f})"
    times = f"{between:.2g} times" if np.isfinite(between) else "far beyond"
    return (
        "something is faster than the steps: between macro points the signals are off smooth curves by "
        f"{times} what such steps explain"
    )


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
