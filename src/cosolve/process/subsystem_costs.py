"""What a subsystem step costs each subsystem: measured in a few explicit macro steps, wherever the subsystem runs."""

from __future__ import annotations

import warnings
from contextlib import suppress
from math import inf

from cosolve.basics.checks import whole
from cosolve.errors import EndOfSimulation, SimulationError
from cosolve.interface import System
from cosolve.method import Jacobi
from cosolve.process.ranks import OnRank
from cosolve.run.stepper import Stepper


def subsystem_costs(system: System, *, step: float, t_start: float = 0.0, steps: int = 3) -> dict[str, float]:
    """Measure how long a macro step takes each subsystem.

    Parameters
    ----------
    system : System
        The coupled system. Every later run starts anew.
    step : float
        Macro step in seconds.
    t_start : float, default 0.0
        Start of the steps in seconds.
    steps : int, default 3
        Number of Jacobi steps. The shortest counts, so that compiling does not.

    Returns
    -------
    dict of str to float
        Seconds of the wall clock per step. Subsystems that did not finish a step are missing. For one on another rank
        only the time in which it works counts.

    Examples
    --------
    >>> import cosolve as cs
    >>> tank = lambda: cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
    >>> system = cs.System({"one": tank(), "two": tank()})
    >>> system.connect("one.x", "two.u")
    >>> system.connect("two.x", "one.u")
    >>> costs = cs.remote.subsystem_costs(system, step=0.1)
    >>> sorted(costs), min(costs.values()) > 0.0
    (['one', 'two'], True)
    """
    whole("subsystem_costs", "steps", steps)
    found: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the accuracy of a run whose result is not used
        with Stepper(system, method=Jacobi(degree=0), step=step, t_start=t_start) as stepper:
            caller = stepper._core.caller
            names = caller.plan.names
            with suppress(SimulationError, EndOfSimulation):
                for _ in range(steps):
                    if stepper.done:
                        break
                    before = caller.seconds.copy()
                    stepper.step()
                    for name, seconds in zip(names, caller.seconds - before, strict=True):
                        found[name] = min(found.get(name, inf), float(seconds))
            for name, subsystem in zip(names, caller.plan.subsystems, strict=True):
                if isinstance(subsystem, OnRank):
                    found[name] = subsystem.fastest_step()
    return {name: found[name] for name in names if 0.0 < found.get(name, 0.0) < inf}
