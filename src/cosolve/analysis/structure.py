"""The structure of a coupled system: who feeds whom, which outputs react at once, and where algebraic loops run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cosolve.engine.python.loops import cycles, describe, reactions
from cosolve.interface import Plan, System
from cosolve.state.ownership import trial_caller
from cosolve.subsystem.feedthrough import feedthrough


@dataclass(frozen=True)
class CouplingStructure:
    """Feedthrough and loops of a system at its initial state, from `coupling_structure`.

    Parameters
    ----------
    plan : Plan
        The compiled system.
    feedthrough : tuple of ndarray
        For each subsystem which output depends directly on which input, shape (outputs, inputs).
    loops : tuple of tuple of str
        Algebraic loops, addresses in the order of the signals.
    in_cycle : ndarray of bool
        Coupling variables on any loop of the coupling graph, algebraic or not.
    """

    plan: Plan
    feedthrough: tuple[npt.NDArray[np.bool_], ...]
    loops: tuple[tuple[str, ...], ...]
    in_cycle: npt.NDArray[np.bool_]


def coupling_structure(system: System, t: float = 0.0) -> CouplingStructure:
    """Find direct feedthrough and algebraic loops.

    Parameters
    ----------
    system : System
        The coupled system. Its subsystems are started.
    t : float, default 0.0
        Time in seconds.

    Returns
    -------
    CouplingStructure
        Feedthrough of each subsystem, and the algebraic loops as tuples of addresses.

    Examples
    --------
    >>> import cosolve as cs
    >>> gain = lambda: cs.Static(lambda t, u: 0.5 * u, inputs=["u"], outputs=["y"])
    >>> system = cs.System({"a": gain(), "b": gain()})
    >>> system.connect("a.y", "b.u")
    >>> system.connect("b.y", "a.u")
    >>> cs.analysis.coupling_structure(system).loops
    (('b.u', 'b.y', 'a.u', 'a.y'),)
    """
    plan = system.plan()
    caller = trial_caller(plan)
    _, z = caller.start(t)
    patterns = tuple(feedthrough(s, t, plan.inputs(z, i)) for i, s in enumerate(plan.subsystems))
    direct, indirect = reactions(plan, patterns)
    loops = tuple(describe(plan, patterns, group) for group in cycles(direct))
    in_cycle = np.zeros(plan.n_z, dtype=bool)
    for group in cycles(indirect):
        in_cycle[list(group)] = True
    return CouplingStructure(plan, patterns, loops, in_cycle)
