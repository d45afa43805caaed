"""The controlled cylinder in a flow that is computed: fluid (a field), structure, signal.

As examples/cylinder_control, whose parameters and controller it uses, with the flow itself in the place of the wake
oscillator (Sicklinger (2014), 5.2):

    fluid      v -> lift          the flow around the cylinder, in its frame: a lattice or finite elements
    structure  lift, psi -> u, v  m u'' + d u' + k u = lift + k psi, trapezoidal rule
    signal     u -> psi           PID with the error e = -u, switched on at `on_at`

At the interface are values at the end of the macro step, and straight lines inside it. The first amplitude may be
given: the transient of the cylinder takes 2 m / d = 17 s, that of the flow only some periods.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

import cosolve as cs
from examples.cylinder_control.model import Cylinder, controller
from examples.cylinder_flow.cross_flow import CrossFlow
from examples.cylinder_flow.lattice_boltzmann import LatticeBoltzmannCylinder
from examples.cylinder_flow.ngsolve_cylinder import FiniteElementCylinder

Solver = Literal["lattice", "elements"]

#: Figures of the source: shedding of the cylinder at rest (Re = 100), lock-in computed and measured, Hz.
STROUHAL, LOCK_IN, MEASURED = 0.16406, 6.990, 6.995


@dataclass(frozen=True)
class Discretisation:
    """How the flow is computed, and the macro step."""

    solver: Solver = "lattice"
    small: bool = False
    wide: bool = False  # finite elements only: 80 diameters from side to side instead of 24

    @property
    def h(self) -> float:
        """Macro step, s: eight lattice steps, or one step of the finite elements."""
        return 1e-3 if self.solver == "lattice" else 4e-4

    def fluid(self, flow: CrossFlow) -> cs.fields.FieldSubsystem:
        """The lattice has 16 nodes on a diameter (8 where it is small), the finite elements 14 900 unknowns (4700)."""
        if self.solver == "elements":
            margins = {"upstream": 40.0, "downstream": 50.0, "side": 40.0} if self.wide else {}
            return FiniteElementCylinder(flow, self.h, refinement=0.5 if self.small else 1.0, **margins)
        if self.small:
            return LatticeBoltzmannCylinder(flow, self.h / 4, cells=8, upstream=7, downstream=13, width=12)
        return LatticeBoltzmannCylinder(flow, self.h / 8, cells=16)


def flow(p: Cylinder, Re: float | None = None) -> CrossFlow:
    """The water around the cylinder; another Reynolds number by another velocity."""
    velocity = p.velocity if Re is None else Re * p.nu / p.diameter
    return CrossFlow(velocity=velocity, diameter=p.diameter, viscosity=p.nu, density=p.rho, span=p.span)


def fixed(how: Discretisation, p: Cylinder, Re: float = 100.0) -> cs.System:
    """A cylinder that is held, after one push to and fro that wakes the wake: it would take long to fall asymmetric."""
    water = flow(p, Re)
    system = cs.System({"fluid": how.fluid(water)})
    n = round(6.0 * water.unit_time / how.h)
    push = 0.25 * water.velocity * np.sin(2.0 * np.pi * np.arange(n + 1) / n)
    system.set("fluid.v", cs.Table(how.h * np.arange(n + 1), push))
    return system


#: Forced motion of Table 5.3 of the source: amplitude in m, frequency in Hz (1.1 times that of the wake at Re = 100).
FORCED = (0.4e-3, 1.1 * 6.4085)


def forced(how: Discretisation, p: Cylinder, lengths: float) -> cs.System:
    """A cylinder that is led through `u = A sin(w t)`, with an amplitude that rises smoothly in the first 0.3 s."""
    water, (amplitude, f), ramp = flow(p, 100.0), FORCED, 0.3
    t = how.h * np.arange(round(lengths * water.unit_time / how.h) + 1)
    s, w = np.clip(t / ramp, 0.0, 1.0), 2.0 * np.pi * f
    rise, rate = 3 * s**2 - 2 * s**3, (6 * s - 6 * s**2) / ramp
    system = cs.System({"fluid": how.fluid(water)})
    system.set("fluid.v", cs.Table(t, amplitude * (rate * np.sin(w * t) + rise * w * np.cos(w * t))))
    return system


def coupled(how: Discretisation, p: Cylinder, u0: float) -> cs.System:
    """The cylinder on its spring, let go at `u0`; three subsystems, four coupling variables."""
    structure = cs.structures.SecondOrder(
        cs.structures.Structure([p.m], D=[[p.d]], K=[[p.k]]),
        "trapezoidal",
        inputs=[
            cs.structures.DofPort("f", 0, "force", unit="N", nominal=1e-4),
            cs.structures.DofPort("psi", 0, "force", factor=p.k, unit="m", nominal=1e-3),
        ],
        outputs=[
            cs.structures.DofPort("u", 0, "displacement", unit="m", nominal=1e-3),
            cs.structures.DofPort("v", 0, "velocity", unit="m/s", nominal=1e-2),
        ],
        q0=[u0],
        v0=[0.0],
        a0=[-p.k / p.m * u0],
    )
    signal = controller(p, p.first()._replace(u=u0))
    system = cs.System({"fluid": how.fluid(flow(p)), "structure": structure, "signal": signal})
    system.connect("structure.v", "fluid.v")
    system.connect("structure.u", "signal.u")
    system.connect("fluid.lift", "structure.f")
    system.connect("signal.psi", "structure.psi")
    return system


def method(tol: float = 1e-8) -> cs.Implicit:
    """Interface-Jacobian coupling to `tol` in m, m/s and N, as in the source; the Jacobian is found once."""
    return cs.Implicit(degree=1, predictor=2, tol=tol, absolute=True, corrector=cs.Newton(refresh="run"))


def controlled(p: Cylinder, h: float, on_at: float | None) -> Cylinder:
    """The parameters with the switching time and the step of a run."""
    return replace(p, on_at=on_at, h=h)


def mean_and_amplitude(t: np.ndarray, x: np.ndarray, begin: float) -> tuple[float, float]:
    """Of a periodic quantity from `begin` on: half of its range is the amplitude."""
    part = x[t >= begin]
    return float(part.mean()), float(0.5 * (part.max() - part.min()))


def spectrum(t: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Amplitudes over frequencies, with a Hann window and eight times as many points as there are values."""
    window = np.hanning(len(x))
    n = 8 * len(x)
    amplitudes = np.abs(np.fft.rfft((x - x.mean()) * window, n)) * 2.0 / window.sum()
    return np.fft.rfftfreq(n, t[1] - t[0]), amplitudes
