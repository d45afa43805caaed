"""How a run gets its first support points (Schmoll (2015), 2.4.4).

`GradedStart` advances over the first macro step in pieces that begin very short, which keeps the order of the method;
`RisingDegree` begins with degree 0 and raises it as macro points accumulate; `LeaderFollowerStart` advances over the
first macro steps with small leader/follower steps and then has a full history. What is known about the past:
`known_past.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.engine.python.executor import bind
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.errors import SetupError
from cosolve.interface.plan import Plan
from cosolve.method.base import Method
from cosolve.method.explicit import LeaderFollower
from cosolve.method.step import MacroStep, Outcome, StatefulStep, Window
from cosolve.signal import History
from cosolve.stepsize.graded import Grading, grading

_LARGEST_RATIO = 2**20


@dataclass(frozen=True)
class Startup:
    """Base class of the start-ups: no past is known, and the method takes all steps itself.

    Attributes
    ----------
    own_steps : bool
        True if it takes macro steps of its own.
    gives_values : bool
        True if it gives values of the coupling variables at past macro points.

    Examples
    --------
    >>> import cosolve as cs
    >>> isinstance(cs.GradedStart(), cs.Startup)
    True
    """

    # True when it takes macro steps of its own
    own_steps: ClassVar[bool] = False
    # True when it gives the coupling variables values at past macro points
    gives_values: ClassVar[bool] = False

    def prepare(self, plan: Plan, method: Method, history: History, t0: float, H: float, y: Vector) -> None:
        """Fill the history with what is known before the start; here nothing.

        Parameters
        ----------
        plan : Plan
            The compiled system.
        method : Method
            The coupling method.
        history : History
            Coupling variables at the start; past ones are appended.
        t0 : float
            Start of the run in seconds.
        H : float
            Length of the first macro step in seconds.
        y : ndarray
            Outputs at the start.
        """

    def wrap(self, caller: SubsystemCaller, method: Method, step: MacroStep) -> MacroStep:
        """Return the function that advances one macro step; here that of the method.

        Parameters
        ----------
        caller : SubsystemCaller
            Runs the subsystems.
        method : Method
            The coupling method.
        step : callable
            The macro step of the method.

        Returns
        -------
        callable
            `step(history, window) -> Outcome`.
        """
        return step

    def grading(self, method: Method) -> Grading:
        """Return the pieces in which the first macro steps are taken; here whole ones.

        Parameters
        ----------
        method : Method
            The coupling method.

        Returns
        -------
        Grading
            The pieces.
        """
        return Grading()


@dataclass(frozen=True)
class RisingDegree(Startup):
    """Start with degree 0 and raise it as macro points accumulate.

    Explicit methods then have order 2 at most, the others order 3, whatever their degree.

    Examples
    --------
    >>> import cosolve as cs
    >>> clock = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    >>> cs.simulate(clock, t_end=0.2, method=cs.Jacobi(2), step=0.1, startup=cs.RisingDegree())["clock.t"]
    array([0. , 0.1, 0.2])
    """


@dataclass(frozen=True)
class GradedStart(Startup):
    """Take the first macro step in pieces `H/R, H/R, 2H/R, ..., H/2`, with one more support point each.

    Methods then have their full order without a known past. This is the default where it gains something.

    Parameters
    ----------
    ratio : int or None, default None
        The ratio `R`, a power of two. None is chosen by the degree: 64 or more for explicit methods of degree 2 and
        more, 16 or more for others of degree 3 and more, and no pieces below.

    Notes
    -----
    Explicit methods of degree 3 and more take every length twice. Results hold the macro points only. Error-controlled
    steps grade themselves. Systems with constraints, with a subsystem that cannot be stopped inside a macro step or
    that refuses short steps start as with `RisingDegree`, and a note of the run says so.

    References
    ----------
    .. [1] R. Schmoll, Co-Simulation und Solverkopplung, dissertation, University of Kassel, 2015, 2.4.4.

    Examples
    --------
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
        """Return the pieces in which the first macro steps are taken."""
        if self.ratio is None or method.declaration is None or method.chooses_step:
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
    """Take the first `degree + 1` macro steps with leader/follower steps.

    Parameters
    ----------
    leader : str
        Name of the subsystem whose internal steps are used. It needs the capability "own steps".

    References
    ----------
    .. [1] R. Schmoll, Co-Simulation und Solverkopplung, dissertation, University of Kassel, 2015, 2.4.4.

    Examples
    --------
    >>> import cosolve as cs
    >>> cs.LeaderFollowerStart(leader="one").leader
    'one'
    """

    own_steps: ClassVar[bool] = True
    gives_values: ClassVar[bool] = True

    leader: str = ""

    def wrap(self, caller: SubsystemCaller, method: Method, step: MacroStep) -> MacroStep:
        """Small steps first, then the method's own."""
        starter = LeaderFollower(degree=method.degree, leader=self.leader)
        starter.refuse_unfit(caller.plan)
        small_step = bind(starter, caller)
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

        return StatefulStep(run, held, step)
