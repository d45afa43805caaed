"""A flag behind a cylinder in a channel: the benchmark of Turek and Hron, all nine cases.

The channel is 2.5 m long and 0.41 m high, the cylinder (diameter 0.1 m) stands at (0.2, 0.2), a little below the
middle, and an elastic flag of 0.35 m x 0.02 m is clamped to its back. CSM: the flag alone under gravity. CFD: the flow
around a rigid flag. FSI: both, coupled. Drag and lift are forces on cylinder and flag together, per metre of depth;
point A is the middle of the free end.

Flow and solid are solved by NGSolve on meshes that do not match. The fluid's points follow the quadratic trace of the
solid, forces go back by the transpose; the interface iteration is IQN-ILS on the displacement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import cosolve as cs

A = (0.6, 0.2)


@dataclass(frozen=True)
class Case:
    """One column of the tables of Turek and Hron (2006), in SI units, and how it is run here."""

    name: str
    solid_density: float = 1000.0
    shear_modulus: float = 0.5e6
    gravity: float = 0.0
    viscosity: float = 1.0  # Pa s; the density of the fluid is 1000 kg/m3 in all cases
    velocity: float = 0.0  # mean, at the inlet
    step: float = 0.0  # 0: nothing changes in time
    t_end: float = 0.0
    ramp: float = 0.5
    fineness: float = 1.0  # of the meshes, where 1 gives the published values to a few percent

    @property
    def young(self) -> float:
        return 2 * (1 + POISSON) * self.shear_modulus

    @property
    def kind(self) -> str:
        return self.name[:3]


POISSON = 0.4
DENSITY = 1000.0

CASES = {
    case.name: case
    for case in (
        Case("CSM1", gravity=2.0),
        Case("CSM2", gravity=2.0, shear_modulus=2.0e6),
        Case("CSM3", gravity=2.0, step=0.005, t_end=10.0),
        Case("CFD1", velocity=0.2),
        Case("CFD2", velocity=1.0, fineness=1.5),
        Case("CFD3", velocity=2.0, step=0.004, t_end=8.0, fineness=1.5),
        Case("FSI1", velocity=0.2, step=0.1, t_end=8.0),
        Case("FSI2", solid_density=1.0e4, velocity=1.0, step=0.005, t_end=16.0, fineness=1.5),
        Case("FSI3", shear_modulus=2.0e6, velocity=2.0, step=0.0025, t_end=10.0),
    )
}

#: What Turek and Hron (2006) give: mean, amplitude (0: steady) and frequency in Hz of each quantity, in mm and N/m.
REFERENCE: dict[str, dict[str, tuple[float, float, float]]] = {
    "CSM1": {"ux": (-7.187, 0, 0), "uy": (-66.10, 0, 0)},
    "CSM2": {"ux": (-0.4690, 0, 0), "uy": (-16.97, 0, 0)},
    "CSM3": {"ux": (-14.305, 14.305, 1.0995), "uy": (-63.607, 65.160, 1.0995)},
    "CFD1": {"drag": (14.29, 0, 0), "lift": (1.119, 0, 0)},
    "CFD2": {"drag": (136.7, 0, 0), "lift": (10.53, 0, 0)},
    "CFD3": {"drag": (439.45, 5.6183, 4.3956), "lift": (-11.893, 437.81, 4.3956)},
    "FSI1": {"ux": (0.0227, 0, 0), "uy": (0.8209, 0, 0), "drag": (14.295, 0, 0), "lift": (0.7638, 0, 0)},
    "FSI2": {
        "ux": (-14.58, 12.44, 3.8),
        "uy": (1.23, 80.6, 2.0),
        "drag": (208.83, 73.75, 3.8),
        "lift": (0.88, 234.2, 2.0),
    },
    "FSI3": {
        "ux": (-2.69, 2.53, 10.9),
        "uy": (1.48, 34.38, 5.3),
        "drag": (457.3, 22.66, 10.9),
        "lift": (2.22, 149.78, 5.3),
    },
}

#: The same from later runs of the authors on finer meshes with shorter steps (Featflow, level 4), where they differ.
LATER: dict[str, dict[str, tuple[float, float, float]]] = {
    "FSI2": {
        "ux": (-14.85, 12.70, 3.86),
        "uy": (1.30, 81.6, 1.93),
        "drag": (215.06, 77.65, 3.86),
        "lift": (0.61, 237.8, 1.93),
    },
    "FSI3": {
        "ux": (-2.88, 2.72, 10.93),
        "uy": (1.47, 34.99, 5.46),
        "drag": (460.5, 27.74, 10.93),
        "lift": (2.50, 153.91, 5.46),
    },
}

#: Quantity -> where it is in a result, and what one unit of it is.
SIGNALS = {"ux": ("solid.A_x", 1e3), "uy": ("solid.A_y", 1e3), "drag": ("fluid.drag", 1.0), "lift": ("fluid.lift", 1.0)}


def fluid_mesh(fineness: float = 1.0):
    """The channel without cylinder and flag: 2779 triangles at fineness 1, smaller ones with larger numbers."""
    from netgen.occ import Circle, MoveTo, OCCGeometry, Rectangle
    from ngsolve import Mesh

    face = Rectangle(2.5, 0.41).Face() - Circle((0.2, 0.2), 0.05).Face() - MoveTo(0.2, 0.19).Rectangle(0.4, 0.02).Face()
    for edge in face.edges:
        x, y = edge.center.x, edge.center.y
        if x < 1e-6:
            edge.name = "inlet"
        elif x > 2.5 - 1e-6:
            edge.name = "outlet"
        elif y < 1e-6 or y > 0.41 - 1e-6:
            edge.name = "wall"
        elif x < 0.249:
            edge.name, edge.maxh = "cylinder", 0.004 / fineness
        else:
            edge.name, edge.maxh = "flag", 0.0086 / fineness
    return Mesh(OCCGeometry(face, dim=2).GenerateMesh(maxh=0.04 / fineness, grading=0.2))


def solid_mesh(fineness: float = 1.0):
    """The flag up to the cylinder: 138 triangles at fineness 1."""
    from netgen.occ import Circle, MoveTo, OCCGeometry
    from ngsolve import Mesh

    face = MoveTo(0.2, 0.19).Rectangle(0.4, 0.02).Face() - Circle((0.2, 0.2), 0.05).Face()
    for edge in face.edges:
        edge.name = "clamped" if edge.center.x < 0.2501 else "surface"
    return Mesh(OCCGeometry(face, dim=2).GenerateMesh(maxh=0.01 / fineness, grading=0.3))


def solid(case: Case, fineness: float | None = None) -> cs.fields.NgsSolid:
    """The flag."""
    return cs.fields.NgsSolid(
        solid_mesh(fineness or case.fineness),
        clamped="clamped",
        surface="surface",
        young=case.young,
        poisson=POISSON,
        density=case.solid_density,
        gravity=(0.0, -case.gravity),
        probes={"A": A},
    )


def fluid(case: Case, fineness: float | None = None) -> cs.fields.NgsFlow:
    """The flow; its flag moves in FSI cases and is rigid otherwise."""
    from ngsolve import CF, y

    moves = case.kind == "FSI"
    parabola = 1.5 * case.velocity * 4 / 0.1681 * y * (0.41 - y)
    return cs.fields.NgsFlow(
        fluid_mesh(fineness or case.fineness),
        density=DENSITY,
        viscosity=case.viscosity,
        inflow={"inlet": CF((parabola, 0))},
        no_slip="wall|cylinder" if moves else "wall|cylinder|flag",
        surface="flag" if moves else "",
        body="cylinder|flag",
        ramp=lambda t: 0.5 * (1 - np.cos(np.pi * min(t / case.ramp, 1.0))),
    )


def system(case: Case, fineness: float | None = None, flag: cs.fields.FieldSubsystem | None = None) -> cs.System:
    """What is simulated in the cases that change in time; `flag` is another solid (`solids.py`)."""
    if case.kind == "CSM":
        flag = solid(case, fineness)
        alone = cs.System({"solid": flag})
        alone.set("solid.force", np.zeros(2 * flag.meshes["force"].n_points))
        return alone
    if case.kind == "CFD":
        return cs.System({"fluid": fluid(case, fineness)})
    flow, flag = fluid(case, fineness), flag or solid(case, fineness)
    joined = cs.System({"fluid": flow, "solid": flag})
    trace = flag.trace_to(
        flow.meshes["displacement"]
    )  # quadratic along the edges, as the solid itself; all of `solids.py` have it
    joined.map("solid.displacement", "fluid.displacement", trace)
    joined.map("fluid.force", "solid.force", trace, "conservative")
    return joined


def method(case: Case, corrector: cs.Corrector | None = None, tol: float = 1e-5) -> cs.Method:
    """How it is coupled: the displacement is iterated until its residual is `tol` of itself.

    What is left of it is differenced twice in time by the flow: at 1e-4, which is usual, motions are as good, but drag
    and lift jump from step to step by several percent.
    """
    if case.kind != "FSI":
        return cs.Jacobi(degree=0)
    return cs.Implicit(
        degree=0,
        predictor=2,
        tol=tol,
        norm="fields",
        sweep="gauss-seidel",
        order=["fluid", "solid"],
        corrector=corrector or cs.IqnIls(reuse=8, filter_tol=1e-3),
    )


def measured(times: np.ndarray, values: np.ndarray) -> tuple[float, float, float]:
    """Mean and amplitude (of largest and smallest value) of the last two periods, and frequency over the last three
    seconds.

    The frequency is that of upward passages through the mean, of a signal that has been well below it in between; what
    changes by less than a percent counts as steady. Two periods, because `ux` and the drag have two to one of the flag,
    one as it swings up and one as it swings down, and these are not the same.
    """
    recent = times >= times[-1] - 3.0
    t, x = times[recent], values[recent]
    mean, amplitude = 0.5 * (x.max() + x.min()), 0.5 * np.ptp(x)
    if amplitude < 0.005 * abs(mean):
        return float(x[-1]), 0.0, 0.0
    passages, below = [], False
    for k in range(len(x) - 1):
        below |= x[k] < mean - 0.2 * amplitude
        if below and x[k] < mean <= x[k + 1]:
            passages.append(t[k] + (mean - x[k]) / (x[k + 1] - x[k]) * (t[k + 1] - t[k]))
            below = False
    if len(passages) < 2:
        return float(x[-1]), 0.0, 0.0
    last = (t >= passages[-3 if len(passages) > 2 else -2]) & (t <= passages[-1])
    high, low = x[last].max(), x[last].min()
    frequency = (len(passages) - 1) / (passages[-1] - passages[0])
    return float(0.5 * (high + low)), float(0.5 * (high - low)), float(frequency)
