"""The structure of a coupled system: who feeds whom, which outputs react at once, and where algebraic loops run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cosolve.engine.readable.loops import cycles, describe, reactions
from cosolve.interface import Plan, System
from cosolve.run.ownership import trial_crew
from cosolve.subsystem.feedthrough import feedthrough


@dataclass(frozen=True)
class CouplingStructure:
    """Feed-through and loops of a system at its initial state.

    `loops` lists algebraic loops as addresses in signal order; `in_cycle` marks the coupling variables that lie on any
    loop of the coupling graph (instantaneous or not).
    """

    plan: Plan
    feedthrough: tuple[npt.NDArray[np.bool_], ...]
    loops: tuple[tuple[str, ...], ...]
    in_cycle: npt.NDArray[np.bool_]


def coupling_structure(system: System, t: float = 0.0) -> CouplingStructure:
    """Find feed-through and algebraic loops (the subsystems are started for that).

    >>> import cosolve as cs
    >>> gain = lambda: cs.Static(lambda t, u: 0.5 * u, inputs=["u"], outputs=["y"])
    >>> system = cs.System({"a": gain(), "b": gain()})
    >>> system.connect("a.y", "b.u")
    >>> system.connect("b.y", "a.u")
    >>> cs.coupling_structure(system).loops
    (('b.u', 'b.y', 'a.u', 'a.y'),)
    """
    plan = system.plan()
    crew = trial_crew(plan)
    _, z = crew.start(t)
    patterns = tuple(feedthrough(s, t, plan.inputs(z, i)) for i, s in enumerate(plan.subsystems))
    direct, indirect = reactions(plan, patterns)
    loops = tuple(describe(plan, patterns, group) for group in cycles(direct))
    in_cycle = np.zeros(plan.n_z, dtype=bool)
    for group in cycles(indirect):
        in_cycle[list(group)] = True
    return CouplingStructure(plan, patterns, loops, in_cycle)
