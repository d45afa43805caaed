"""The start of a run: initial states, and outputs and coupling variables that agree with them.

Before its initialisation ends a subsystem may react to inputs otherwise than later: the initial state of an FMU often
follows its inputs (a steady state, say), while no output does so at once afterwards. So outputs are settled with what
each gives for inputs during its initialisation (`initial_output`), in loops by Newton, and then initialisations end,
sources first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.basics.scale import sizes_at
from cosolve.engine.python.consistent_outputs import ConsistentOutputs
from cosolve.engine.python.kept_states import refuse_no_reset, started_anew
from cosolve.errors import AccuracyWarning, SetupError, SubsystemError, warn
from cosolve.interface.constraint import LEVELS
from cosolve.interface.plan import Block, Plan
from cosolve.result.notes import Note
from cosolve.subsystem.base import has_capability
from cosolve.subsystem.feedthrough import try_outputs

#: Constraints may be violated at the start by so much, in units of 1 and of the outputs they read.
_VIOLATION = 1e-6
#: Inputs that differ by this, relatively, are others.
_OTHER = 1e-6


class Starting(ConsistentOutputs):
    """Starts the subsystems of a plan; `running` settles their outputs from then on."""

    asked = ("initial_output", "output")

    def __init__(self, plan: Plan, guarded: Callable[..., Any], running: ConsistentOutputs) -> None:
        super().__init__(plan, guarded)
        self._running = running
        #: the inputs with which initialisations ended, and what was found at the last start
        self.began: dict[int, Vector] = {}
        self.notes: list[Note] = []

    def start(self, t0: float) -> tuple[Vector, Vector]:
        """Put every subsystem into its initial state; consistent outputs and coupling variables at `t0`.

        Values that are not known yet are NaN and travel through laws and feed-through, so whatever depends on them
        stays unknown until they are found; what remains unknown at the end sits in an algebraic loop. Unknowns of
        equations begin at their initial value, from which the last settling solves for them.
        """
        plan = self.plan
        y = np.full(plan.n_y, np.nan)
        for i, subsystem in enumerate(plan.subsystems):
            start = partial(started_anew, subsystem, partial(subsystem.start, t0))
            first = self._guarded(i, t0, "starting", start, packed=False)
            if first is not None:
                given = y[plan.y_slices[i]] = self._guarded(i, t0, "starting", partial(_same, first))
                self._guarded(i, t0, "starting", partial(refuse_no_reset, subsystem, given), packed=False)
            elif plan.output_ports[i].length and not self._ask[i]:
                raise SubsystemError(
                    f"'{plan.names[i]}': start returned None; return the values of {plan.output_ports[i].names} at t0",
                    time=t0,
                    subsystem=plan.names[i],
                )
            elif plan.output_ports[i].length and not self._can_output[i]:
                y[plan.y_slices[i]] = self._guarded(
                    i, t0, "starting", partial(getattr(subsystem, self._ask[i]), t0, np.zeros(0))
                )
        z = self._spread(t0, y)
        unknown = np.isnan(z)
        z[unknown] = plan.z_initial[unknown]
        for i, part in enumerate(plan.y_slices):
            if np.isnan(y[part]).any():  # in an algebraic loop: a first guess, from the initial values of its inputs
                y[part] = self._output(i, t0, plan.inputs(z, i))
        y, z = self.settle(t0, y, z)
        y, z = self._begin(t0, y, z)
        for block in (each for each in plan.blocks if each.levels is None):
            one, two = (block.call(z[block.rows], y[block.y_index]) for _ in range(2))
            if not np.array_equal(one, two, equal_nan=True):
                raise SubsystemError(
                    f"{block.label} gave two values for the same arguments; let it depend on its arguments alone, not "
                    "on how often it is called, on random numbers or on the clock"
                )
        return self._multipliers(t0, y, z) if plan.constraints else (y, z)

    def _begin(self, t0: float, y: Vector, z: Vector) -> tuple[Vector, Vector]:
        """End the initialisation of those that want to know its end, sources first, with the inputs found for it.

        Their outputs after it count; where they differ from those before, the others hear of it.
        """
        plan, news, began, moved = self.plan, self._news, dict[int, Vector](), False
        self.began, self.notes = began, []
        y, z = y.copy(), z.copy()
        for i in news.order:
            subsystem, part = plan.subsystems[i], plan.y_slices[i]
            before = y[part].copy()
            if has_capability(subsystem, "initialisation"):
                began[i] = plan.inputs(z, i)
                end = partial(subsystem.begin, t0, began[i].copy())
                y[part] = self._guarded(i, t0, "ending its initialisation", end)
            elif moved and self._can_output[i]:
                y[part] = self._output(i, t0, plan.inputs(z, i))
            if not np.array_equal(before, y[part]):
                moved = True
                rows, origin = news.copies[i]
                z[rows] = y[origin]
                for block in self._laws_of[i]:
                    z[block.rows] = block.call(z[block.rows], y[block.y_index])
        if moved:
            y, z = self._running.settle(t0, y, z)
            self._warn_of_others(t0, began, z)
        return y, z

    def _warn_of_others(self, t0: float, began: dict[int, Vector], z: Vector) -> None:
        """Say so where an initialisation ended with inputs that turned out to be others, and depends on them."""
        for i, u in began.items():
            depends = getattr(self.plan.subsystems[i], "initial_dependence", None)
            if depends is None:
                continue
            now = self.plan.inputs(z, i)
            off = (np.abs(now - u) > _OTHER * np.maximum(np.abs(now), np.abs(u))) & np.asarray(depends(), dtype=bool)
            if off.any():
                k, name = int(np.argmax(off)), self.plan.names[i]
                port = self.plan.input_ports[i].labels()[k]
                text = (
                    f"the start is not consistent: '{name}' ended its initialisation at t = {t0:.9g} with "
                    f"'{port}' = {u[k]:.6g}, and it is {now[k]:.6g} since all others did; "
                    "give start values that belong together (start=)"
                )
                self.notes.append(Note("start", text, time=t0, subsystem=name))
                warn(text, AccuracyWarning)
                return

    def _multipliers(self, t: float, y: Vector, z: Vector) -> tuple[Vector, Vector]:
        """Multipliers with which the constraints hold at the acceleration level, for consistent states.

        Multipliers with an initial value of the user keep it. Accelerations depend on multipliers affinely in
        mechanics, so that one Newton step would do; a second one cleans up after the differences.
        """
        plan = self.plan
        for block in plan.constraints:
            levels = block.constraint_levels(y)
            worst = [float(np.abs(level).max()) for level in levels[:2]]
            for level, violation in zip(LEVELS, worst, strict=False):
                scale = float(np.abs(y[block.y_index]).max(initial=0.0)) or 1.0
                if violation > _VIOLATION * scale:
                    raise SetupError(
                        f"the initial values violate {block.label} at the {level} level: "
                        f"{np.array2string(levels[LEVELS.index(level)], precision=6)} instead of 0; start from "
                        "positions and velocities that satisfy it"
                    )
        chosen = [b for b in plan.constraints if len(b.constraint_levels(y)) == 3]
        rows = np.concatenate([[], *(b.rows[: b.levels.count] for b in chosen if b.levels)]).astype(np.intp)
        rows = rows[~plan.z_given[rows]]
        if not len(rows):
            return y, z

        def accelerations(values: Vector) -> tuple[Vector, Vector, Vector]:
            trial = z.copy()
            trial[rows] = values
            outputs, settled = self._running.settle(t, y, trial)
            found = [b.constraint_levels(outputs)[2] for b in chosen]
            return np.concatenate(found), outputs, settled

        values = z[rows]
        for _ in range(2):
            r = accelerations(values)[0]
            step = 1e-4 * sizes_at(values, np.where(plan.z_open, 0.0, plan.z_nominal)[rows])
            G = np.array([(accelerations(values + e)[0] - r) / e.max() for e in np.diag(step)]).T
            if not np.any(G):
                return y, z  # accelerations that do not follow the multipliers at once
            values = values - np.linalg.lstsq(G, r, rcond=None)[0]
        _, y, z = accelerations(values)
        return y, z

    def _spread(self, t: float, y: Vector) -> Vector:
        """Follow known values through laws and feed-through as far as they reach; fills `y`, returns `z`."""
        plan = self.plan
        z = np.full(plan.n_z, np.nan)
        for block in plan.blocks:
            if block.implicit:
                z[block.rows] = plan.z_initial[block.rows]
        laws, known = self._laws, np.zeros(0, dtype=bool)
        while True:
            z[plan.copy_rows] = y[plan.copy_from]
            for block in laws:
                arguments = y[block.y_index]
                if np.isfinite(arguments).all():
                    z[block.rows] = block.call(z[block.rows], arguments)
            u = plan.inputs(z)
            found = np.isfinite(u)
            todo = self._reached(found & ~known if len(known) else np.ones(plan.n_u, dtype=bool))
            todo = [i for i in todo if not np.isfinite(y[plan.y_slices[i]]).all()]
            if not todo:
                return z
            for i in todo:
                y[plan.y_slices[i]] = try_outputs(
                    getattr(plan.subsystems[i], self._ask[i]), plan.output_ports[i], t, u[plan.u_slices[i]]
                )
            laws, known = self._laws_reading(todo), found

    def _reached(self, changed: npt.NDArray[np.bool_]) -> list[int]:
        """The subsystems with direct feed-through (perhaps) that have a changed input."""
        return [int(i) for i in np.unique(self._u_owner[changed]) if self._can_output[i]]

    def _laws_reading(self, subsystems: list[int]) -> list[Block]:
        return list({id(block): block for i in subsystems for block in self._laws_of[i]}.values())


def _same(value: Any) -> Any:
    return value
