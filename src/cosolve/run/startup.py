"""How a run gets its first support points (Schmoll (2015), 2.4.4).

`GradedStart` crosses the first macro step in pieces that begin very short, which keeps the order of the method;
`RisingDegree` begins with degree 0 and raises it as macro points accumulate; `LeaderFollowerStart` crosses the first
macro steps with small leader/follower steps and then has a full history. What is known about the past: `known_past.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.engine.readable.crew import Crew
from cosolve.engine.readable.machine import bind
from cosolve.errors import SetupError
from cosolve.interface.plan import Plan
from cosolve.method.base import Method
from cosolve.method.explicit import LeaderFollower
from cosolve.method.step import MacroStep, Outcome, Remembering, Window
from cosolve.signal import History
from cosolve.stepsize.graded import Grading, grading

_LARGEST_RATIO = 2**20


@dataclass(frozen=True)
class Startup:
    """Base of the start-ups: nothing is known about the past, and the method takes all steps itself."""

    #: True when it takes macro steps of its own
    own_steps: ClassVar[bool] = False
    #: True when it gives the coupling variables values at past macro points
    gives_values: ClassVar[bool] = False

    def prepare(self, plan: Plan, method: Method, history: History, t0: float, H: float, y: Vector) -> None:
        """Fill the history with what is known before `t0`, where the outputs are `y`; here nothing."""

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
        usual = grading(method)
        return replace(usual, halvings=int(self.ratio).bit_length() - 1) if method.degree else usual


def default_start(method: Method) -> Startup:
    """The start of a run whose user asked for none.

    >>> import cosolve as cs
    >>> default_start(cs.Jacobi(1)), default_start(cs.Jacobi(2))
    (RisingDegree(), GradedStart(ratio=None))
    """
    return GradedStart() if grading(method) != Grading() else RisingDegree()


@dataclass(frozen=True)
class LeaderFollowerStart(Startup):
    """Cross the first `degree + 1` macro steps with leader/follower steps of the size the `leader` chooses itself.

    >>> import cosolve as cs
    >>> cs.LeaderFollowerStart(leader="one").leader
    'one'
    """

    own_steps: ClassVar[bool] = True
    gives_values: ClassVar[bool] = True

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
