"""What follows a run: the contract of observers. What they see of the run is `run/view.py`."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cosolve.engine.chunk import Chunk
    from cosolve.result import Result
    from cosolve.run.view import RunView


class Observer:
    """Base class of what follows a run: `simulate(..., observers=[MyObserver()])`.

    Define the methods that are needed; they are called in the thread of the run, in this order:

    1. `start` at the first point, before the first macro step; `resume` in its place where `cosolve.resume` continues a
       run.
    2. `limit` before macro steps are taken: how many may be taken until the next call.
    3. `rejected` where attempts at macro steps were repeated, then `accepted` with the macro steps. Compiled code hands
       over thousands of them at once; an observer whose `limit` is 1 sees each by itself, with the subsystems in the
       state after it.
    4. `restored` when a `Stepper` goes back to a saved state.
    5. `finished` at the end of the run, with the error that ended it, if any. Notes may still be added.
    6. `closed` with the result.

    Observers are called in the order of the list. An error that one raises ends the run; the result keeps the macro
    steps up to there. An observer that is not there costs nothing.

    Examples
    --------
    >>> import cosolve as cs
    >>> class Count(cs.Observer):
    ...     def start(self, run):
    ...         self.steps = 0
    ...     def accepted(self, run, steps):
    ...         self.steps += len(steps)
    >>> clock, count = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])}), Count()
    >>> result = cs.simulate(clock, t_end=1.0, method=cs.Jacobi(), step=0.1, observers=[count])
    >>> count.steps
    10
    """

    def start(self, run: RunView) -> None:
        """Begin: the run stands at its first point.

        Parameters
        ----------
        run : RunView
            The run.
        """

    def resume(self, run: RunView, memory: Any) -> None:
        """Continue with a run that another process has begun; by default like a new run.

        Parameters
        ----------
        run : RunView
            The run.
        memory : object
            What `memory` returned there.
        """
        self.start(run)

    def memory(self, run: RunView) -> Any:
        """Return what `resume` needs in another process: plain values and arrays. None: nothing.

        Parameters
        ----------
        run : RunView
            The run.

        Returns
        -------
        object
            Written with the state of the run (`state_every`).
        """
        return None

    def limit(self, run: RunView) -> float:
        """Return how many macro steps may be taken now; 0 ends the run. May wait.

        Parameters
        ----------
        run : RunView
            The run.

        Returns
        -------
        float
            The number; infinity by default.
        """
        return inf

    def accepted(self, run: RunView, steps: Chunk) -> None:
        """See macro steps that were taken.

        Parameters
        ----------
        run : RunView
            The run, at the end of these steps.
        steps : Chunk
            One or several macro steps as columns: `t`, `y`, `z`, `H`, `iterations`, `residual`. `run.values(steps,
            "left.x")` gives a quantity by name. The arrays are valid during the call.
        """

    def rejected(self, run: RunView, attempts: int) -> None:
        """See that attempts at the macro steps that come next were repeated with a shorter length.

        Parameters
        ----------
        run : RunView
            The run.
        attempts : int
            Their number.
        """

    def restored(self, run: RunView) -> None:
        """See that the run stands at a saved state.

        Parameters
        ----------
        run : RunView
            The run.
        """

    def finished(self, run: RunView, failure: BaseException | None) -> None:
        """See that no more macro steps come.

        Parameters
        ----------
        run : RunView
            The run.
        failure : Exception or None
            What ended the run before its time.
        """

    def closed(self, run: RunView, result: Result) -> None:
        """See the result.

        Parameters
        ----------
        run : RunView
            The run.
        result : Result
            Complete, also on the disk.
        """


#: An observer, its registered name or `module:Class`, or a mapping with a name and options.
ObserverLike = Observer | str | Mapping[str, Any]


def overrides(one: Observer, name: str) -> bool:
    """True where an observer defines a method of the contract.

    >>> overrides(Observer(), "limit")
    False
    """
    return getattr(type(one), name) is not getattr(Observer, name)
