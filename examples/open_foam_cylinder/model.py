"""A cylinder on a spring across a stream: the flow by OpenFOAM, the cylinder by three numbers.

    flow       displacement -> force        pimpleFoam on a mesh that follows the cylinder
    cylinder   f -> y                       m y'' + d y' + k y = f

Lengths in diameters, times in diameters per velocity of the stream, forces per density. Vortices are shed about once in
six units of time, near the frequency of the spring.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from pathlib import Path

import cosolve as cs
from examples.open_foam_cylinder.case import write_case


@dataclass(frozen=True)
class Cylinder:
    """Mass, damping and spring per metre of depth."""

    m: float = 10.0
    frequency: float = 0.17
    damping: float = 0.002  # of critical
    h: float = 0.05

    @property
    def k(self) -> float:
        return self.m * (2 * pi * self.frequency) ** 2

    @property
    def d(self) -> float:
        return 2 * self.damping * (self.m * self.k) ** 0.5

    def body(self) -> cs.Linear:
        """The cylinder as a linear subsystem, at rest at first."""
        A = [[0.0, 1.0], [-self.k / self.m, -self.d / self.m]]
        return cs.Linear(A, [[0.0], [1.0 / self.m]], [[1.0, 0.0]], x0=[0.0, 0.0], inputs=["f"], outputs=["y"])


def cylinder_system(case: Path, parameters: Cylinder = Cylinder(), **more: int) -> cs.System:
    """Write the case and join it with the cylinder; `more` goes to `write_case`."""
    write_case(case, step=parameters.h, **more)
    flow = cs.fields.OpenFoam(
        case, patch="cylinder", density=1.0, rigid=True, timeout=120.0, nominal={"displacement": 0.1}
    )
    system = cs.System({"flow": flow, "cylinder": parameters.body()})
    system.connect("flow.force[1]", "cylinder.f")
    system.connect("cylinder.y", "flow.displacement[1]")
    system.set("flow.displacement[0]", 0.0)
    return system


def simulate(system: cs.System, parameters: Cylinder, steps: int, tol: float = 1e-8) -> cs.Result:
    """Strong coupling, step by step of the flow."""
    method = cs.Implicit(degree=1, tol=tol, corrector=cs.IqnIls(), sweep="gauss-seidel", order=["flow", "cylinder"])
    return cs.simulate(system, t_end=steps * parameters.h, method=method, step=parameters.h)
