"""How a run gets its first support points (Schmoll (2015), 2.4.4).

`GradedStart` crosses the first macro step in pieces that begin very short, which keeps the order of the method;
`RisingDegree` begins with degree 0 and raises it as macro points accumulate; `LeaderFollowerStart` crosses the first
macro steps with small leader/follower steps and then has a full history; `KnownHistory` takes past values from the
user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.engine.readable.crew import Crew
from cosolve.engine.readable.instant import Instant, left_open, roundings, solve
from cosolve.engine.readable.machine import bind
from cosolve.errors import SetupError
from cosolve.interface.plan import Block, Plan
from cosolve.method.base import Method
from cosolve.method.explicit import LeaderFollower
from cosolve.method.step import MacroStep, Outcome, Remembering, Window
from cosolve.signal import History
from cosolve.stepsize.graded import Grading, grading

_LARGEST_RATIO = 2**20


@dataclass(frozen=True)
class Startup:
    """Base of the start-ups: nothing is known about the past, and the method takes all steps itself."""

    #: True when it takes macro steps of its own, or knows a past that compiled code does not
    own_steps: ClassVar[bool] = False
    known_past: ClassVar[bool] = False

    def prepare(self, plan: Plan, method: Method, history: History, t0: float, H: float) -> None:
        """Nothing is known about the past."""

    def wrap(self, crew: Crew, method: Method, step: MacroStep) -> MacroStep:
        """The method's own step from the beginning."""
        return step

    def grading(self, method: Method) -> Grading:
        """The pieces in which the first macro steps are crossed; here whole ones."""
        return Grading()


@dataclass(frozen=True)
class RisingDegree(Startup):
    """Use the degree that the macro points so far allow: 0, 1, 2, ...

    Explicit methods have order 2 at most then, the others order 3, whatever their degree.
    """


@dataclass(frozen=True)
class GradedStart(Startup):
    """Cross the first macro step in pieces `H/R, H/R, 2H/R, ..., H/2`, with one more support point each (the default).

    Then methods have their order without a known past. `ratio` is `R`, a power of two; without it, what the degree
    asks for: from 64 on for explicit methods of degree 2 and more, from 16 on for the others of degree 3 and more, and
    nothing below, where nothing is lost. Explicit methods of degree 3 and more take every length twice. Results hold
    the macro points only. Error-controlled steps grade themselves. Where a subsystem cannot be stopped inside a macro
    step, or refuses the short pieces, the run begins as with `RisingDegree`, and `result.stats` says so; systems with
    constraints begin that way too.

    >>> import cosolve as cs
    >>> tank = lambda h: cs.Linear([[-1]], [[1]], [[1]], x0=[h], inputs=["q"], outputs=["h"])
    >>> system = cs.System({"one": tank(1.0), "two": tank(0.0)})
    >>> system.connect("one.h", "two.q"); system.connect("two.h", "one.q")
    >>> run = {"t_end": 1.0, "method": cs.Jacobi(degree=3), "step": 0.02}
    >>> def error(startup):
    ...     return abs(cs.simulate(system, startup=startup, **run)["one.h"][-1] - (1 + np.exp(-2)) / 2)
    >>> bool(error(cs.GradedStart()) < 0.01 * error(cs.RisingDegree()))
    True
    """

    ratio: int | None = None

    def __post_init__(self) -> None:
        given = self.ratio
        if given is None:
            return
        whole = isinstance(given, (int, np.integer)) and not isinstance(given, bool)
        if not whole or not 2 <= given <= _LARGEST_RATIO or given & (given - 1):
            raise SetupError(
                f"GradedStart: ratio must be a power of two from 2 to {_LARGEST_RATIO} (64, say), not {given!r}"
            )

    def grading(self, method: Method) -> Grading:
        """The pieces in which the first macro steps are crossed."""
        if self.ratio is None or method.script is None or method.chooses_step:
            return grading(method)
        return Grading(int(self.ratio).bit_length() - 1, grading(method).twice) if method.degree else Grading()


def default_start(method: Method) -> Startup:
    """The start of a run whose user asked for none.

    >>> import cosolve as cs
    >>> default_start(cs.Jacobi(1)), default_start(cs.Jacobi(2))
    (RisingDegree(), GradedStart(ratio=None))
    """
    return GradedStart() if grading(method).halvings else RisingDegree()


@dataclass(frozen=True)
class KnownHistory(Startup):
    """The outputs before the start are known: `outputs(t)` returns `{address: value}` for every output that is read.

    They are taken one first macro step apart, or `spacing`. Unknowns of equations follow from these outputs where the
    equations determine them without the subsystems; otherwise `outputs(t)` gives them too, by name. Multipliers of
    constraints are taken as they are at the start unless it gives them.

    >>> import cosolve as cs
    >>> past = cs.KnownHistory(lambda t: {"clock.t": t})
    >>> clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    >>> hold = cs.Static(lambda t, u: u, inputs=["u"], outputs=["y"])
    >>> system = cs.System({"clock": clock, "hold": hold})
    >>> system.connect("clock.t", "hold.u")
    >>> cs.simulate(system, t_end=0.2, method=cs.Jacobi(degree=1), step=0.1, startup=past)["hold.y"]
    array([0. , 0.1, 0.2])
    """

    known_past: ClassVar[bool] = True

    outputs: Callable[[float], Mapping[str, Any]] = lambda t: {}
    spacing: float | None = None

    def prepare(self, plan: Plan, method: Method, history: History, t0: float, H: float) -> None:
        """Fill the history with the values at `t0 - H`, `t0 - 2 H`, ..."""
        if self.spacing is None and np.isnan(H):
            raise SetupError(
                f"KnownHistory: {method.name} chooses its own steps; say how far apart to take the past values, "
                "spacing=..."
            )
        H = H if self.spacing is None else self.spacing
        for j in range(1, history.depth + 1):
            given = self.outputs(t0 - j * H)
            y = np.full(plan.n_y, np.nan)
            for i, name in enumerate(plan.names):
                for port in plan.output_ports[i]:
                    address = f"{name}.{port.name}"
                    if address in given:
                        inside = plan.output_ports[i].slice(port.name)
                        base = plan.y_slices[i].start
                        y[base + inside.start : base + inside.stop] = given[address]
            read = np.unique(np.concatenate([plan.copy_from, *(block.y_index for block in plan.blocks)]))
            missing = [plan.y_label(int(k)) for k in read if np.isnan(y[k])]
            if missing:
                raise SetupError(f"KnownHistory: outputs(t) gives no value for '{missing[0]}', which is read")
            z = plan.evaluate(y, history.newest).copy()
            for block in plan.blocks:
                if block.implicit:
                    _take_unknowns(plan, block, given, y, z)
            history.append_past(z, H)


def _take_unknowns(plan: Plan, block: Block, given: Mapping[str, Any], y: Vector, z: Vector) -> None:
    """Write a block's unknowns into `z`: those given by name, and those that follow from the outputs `y`."""
    names = {name: part for name, (part, _) in plan.z_ports.items() if part.start in block.rows}
    for name, part in names.items():
        if name in given:
            z[part] = given[name]
    if block.levels is not None or all(name in given for name in names):
        return

    def evaluate(values: Vector) -> tuple[Vector, Vector, Vector]:
        return block.call(values, y[block.y_index]), y, values

    def rounding(r: Vector, y: Vector, values: Vector) -> Vector:
        return roundings(block, r, values, y[block.y_index], np.zeros(len(block.y_index)))

    chosen = np.concatenate([np.full(part.stop - part.start, name in given) for name, part in names.items()])
    problem = Instant(evaluate, rounding, plan.z_nominal[block.rows], chosen)
    solved = solve(problem, z[block.rows])
    z[block.rows] = solved.values
    missing = [plan.z_labels[m] for m in block.rows[(solved.kept | left_open(problem, solved.values)) & ~chosen]]
    if missing:
        raise SetupError(
            f"KnownHistory: the outputs alone do not determine the unknown '{missing[0]}'; let outputs(t) return its "
            "value as well, under its name"
        )


@dataclass(frozen=True)
class LeaderFollowerStart(Startup):
    """Cross the first `degree + 1` macro steps with leader/follower steps of the size the `leader` chooses itself.

    >>> import cosolve as cs
    >>> cs.LeaderFollowerStart(leader="one").leader
    'one'
    """

    own_steps: ClassVar[bool] = True

    leader: str = ""

    def wrap(self, crew: Crew, method: Method, step: MacroStep) -> MacroStep:
        """Small steps first, then the method's own."""
        starter = LeaderFollower(degree=method.degree, leader=self.leader)
        starter.refuse_unfit(crew.plan)
        small_step = bind(starter, crew)
        # the history of small steps, and what it was at the start of this macro step, should it be repeated
        held = SimpleNamespace(fine=None, before=None, macro_steps=0, t_last=-np.inf)

        def run(history: History, window: Window) -> Outcome:
            if window.t0 > held.t_last:
                held.macro_steps, held.t_last = held.macro_steps + 1, window.t0
            else:  # the step control rejected the last attempt
                held.fine = held.before
            if held.macro_steps > method.degree + 1:
                return step(history, window)
            fine: History = held.fine or History(history.newest, history.depth)
            held.fine, held.before = fine, fine.copy()
            t = window.t0
            while t < window.t1:
                outcome = small_step(fine, Window(t, window.t1, window.t1 - t))
                assert outcome.t1 is not None
                assert outcome.H is not None
                fine.push(outcome.z, outcome.H)
                t = outcome.t1
            outcome.t1, outcome.predicted = None, history.predict(method.degree, window.H)[1]
            return outcome

        return Remembering(run, held, step)
