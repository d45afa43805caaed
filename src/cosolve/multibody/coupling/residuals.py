"""How well a run kept its constraints: all levels, recomputed from the recorded outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cosolve.basics.arrays import Vector
from cosolve.interface.system import System


class Recorded(Protocol):
    """What is needed of a result."""

    @property
    def t(self) -> Vector: ...
    def __getitem__(self, address: str) -> Any: ...


def constraint_residuals(system: System, result: Recorded) -> Mapping[str, npt.NDArray[np.float64]]:
    """Compute the errors of all constraints at all macro points.

    Parameters
    ----------
    system : System
        The system of the run.
    result : Result
        The run.

    Returns
    -------
    mapping of str to ndarray
        By joint, shape (levels, points, conditions): position, velocity and acceleration level. Constraints that
        `assemble` did not make go by the names of their multipliers.

    Examples
    --------
    >>> import cosolve as cs
    >>> mass = lambda c: cs.Linear([[0, 1], [-c, 0]], [[0], [1]], [[1, 0], [0, 1], [-c, 0]], [[0], [0], [1]],
    ...                            x0=[1, 0], inputs=["f"], outputs=["x", "v", "a"])
    >>> system = cs.System({"one": mass(1.0), "two": mass(9.0)})
    >>> system.constraint({"rod": {"one.f": 1, "two.f": -1}},
    ...                   levels=lambda x1, v1, a1, x2, v2, a2: (x2 - x1, v2 - v1, a2 - a1),
    ...                   of=["one.x", "one.v", "one.a", "two.x", "two.v", "two.a"])
    >>> run = cs.simulate(system, t_end=0.1, step=0.01, method=cs.SemiImplicit(1))
    >>> constraint_residuals(system, run)["rod"].shape
    (3, 11, 1)
    """
    plan = system.plan()
    y = np.empty((len(result.t), plan.n_y))
    for name, ports, part in zip(plan.names, plan.output_ports, plan.y_slices, strict=True):
        for port in ports:
            inside = ports.slice(port.name)
            values = np.asarray(result[f"{name}.{port.name}"]).reshape(len(y), -1)
            y[:, part.start + inside.start : part.start + inside.stop] = values
    found = {}
    for block in plan.constraints:
        assert block.levels is not None
        levels = np.array([np.asarray(block.constraint_levels(row)) for row in y])
        found[_joint_name(block.levels.name)] = levels.transpose(1, 0, 2)
    return found


def _joint_name(multipliers: str) -> str:
    """The name of the joint whose multipliers are called so, or the names as they are."""
    owners = {name.removesuffix("_force").removesuffix("_torque") for name in multipliers.split(", ")}
    return owners.pop() if len(owners) == 1 else multipliers
