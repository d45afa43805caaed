"""What a crossing costs each subsystem: measured in a few explicit macro steps, wherever the subsystem runs."""

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


def crossing_costs(system: System, *, step: float, t_start: float = 0.0, steps: int = 3) -> dict[str, float]:
    """Seconds that a macro step takes each subsystem: the shortest of `steps`, so that compiling does not count.

    They are Jacobi steps from the start, which need nothing of the subsystems but `advance`; every run begins anew
    afterwards. Of one that lies on another rank only the time in which it works counts, not that of its messages.
    Where the steps cannot be taken to the end, what was measured until then counts, and whom it misses is not in it.

    >>> import cosolve as cs
    >>> tank = lambda: cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
    >>> system = cs.System({"one": tank(), "two": tank()})
    >>> system.connect("one.x", "two.u")
    >>> system.connect("two.x", "one.u")
    >>> costs = cs.crossing_costs(system, step=0.1)
    >>> sorted(costs), min(costs.values()) > 0.0
    (['one', 'two'], True)
    """
    whole("crossing_costs", "steps", steps)
    found: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the accuracy of a run that nobody looks at
        with Stepper(system, method=Jacobi(degree=0), step=step, t_start=t_start) as stepper:
            crew = stepper._core.crew
            names = crew.plan.names
            with suppress(SimulationError, EndOfSimulation):
                for _ in range(steps):
                    if stepper.done:
                        break
                    before = crew.seconds.copy()
                    stepper.step()
                    for name, seconds in zip(names, crew.seconds - before, strict=True):
                        found[name] = min(found.get(name, inf), float(seconds))
            for name, subsystem in zip(names, crew.plan.subsystems, strict=True):
                if isinstance(subsystem, OnRank):
                    found[name] = subsystem.fastest_crossing()
    return {name: found[name] for name in names if 0.0 < found.get(name, 0.0) < inf}
