"""What is added up in outputs that react to inputs at once: they are rounded like their terms, not like their sum."""

from __future__ import annotations

from functools import partial

import numpy as np

from cosolve.basics.arrays import Vector
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.subsystem.base import has_capability

#: Relative increment of an input.
_INCREMENT = 1e-6


def terms_of_outputs(caller: SubsystemCaller, t: float, z: Vector) -> Vector:
    """`sum |dy/du| |u|` of every output, for the states that the subsystems have at `t`, by differences.

    A stiff spring between two places, `k (u - x)`, has a small force and large terms: no iteration makes its force
    better than a rounding of `k u`.
    """
    plan, found = caller.plan, np.zeros(caller.plan.n_y)
    for i, subsystem in enumerate(plan.subsystems):
        u = plan.inputs(z, i)
        if subsystem.overshoots or not u.any() or not has_capability(subsystem, "output"):
            continue
        states = {i: caller.save_one(i)} if has_capability(subsystem, "rollback") else {}
        part = plan.y_slices[i]
        y = caller.guarded(i, t, "evaluating its outputs", partial(subsystem.output, t, u.copy()))
        for k in np.flatnonzero(u):
            moved = u.copy()
            moved[k] += _INCREMENT * u[k]
            there = caller.guarded(i, t, "evaluating its outputs", partial(subsystem.output, t, moved))
            found[part] += np.abs(np.asarray(there) - np.asarray(y)) / _INCREMENT
        if states:  # evaluating outputs may leave traces
            caller.restore_one(i, states)
    return found
