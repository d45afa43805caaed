"""Systems for sweeps, as functions of their parameters; at module level, so that other processes find them."""

import os
from pathlib import Path

import numba
import numpy as np
from examples.two_mass.model import TwoMass, force_displacement, split

import cosolve as cs


def oscillator(ck: float = 1e3, dk: float = 1.0, x1: float = 1.0) -> cs.System:
    """Two masses, force/displacement: `two` gives a force with direct feed-through."""
    return force_displacement(TwoMass(c1=1e3, c2=2e3, ck=ck, dk=dk, d1=1.0, d2=1.0, x1=x1))


def oscillator_matrices(ck, dk):
    """The matrices of `oscillator` that depend on its parameters."""
    return {
        "two": {
            "A": [[0, 1], [-(2e3 + ck), -(1.0 + dk)]],
            "B": [[0, 0], [ck, dk]],
            "C": [[ck, dk], [1, 0], [0, 1]],
            "D": [[-ck, -dk], [0, 0], [0, 0]],
        }
    }


def symmetric(c: float, d: float) -> cs.System:
    """Two masses, displacement/displacement, without feed-through."""
    return split("D/D", TwoMass(1.0, 2.0, c, c, c, d, d, d, x1=0.1, x2=0.0))


def tanks(k: float, q: float = 0.0) -> cs.System:
    """Three tanks: vector ports, one output for two readers, a constant that is a parameter."""
    two = cs.Linear([[-k, 0], [0.5, -1]], np.eye(2), np.eye(2), x0=[1, 0], inputs=[("q", 2)], outputs=[("h", 2)])
    one = cs.Linear([[-1]], [[1, 2]], [[2]], [[0.0, 0.25]], x0=[0.5], inputs=["q", "extra"], outputs=["h"])
    mix = cs.Linear([[-2]], [[1, 1]], [[1], [k]], x0=[0.1], inputs=[("in", 2)], outputs=[("out", 2)])
    system = cs.System({"two": two, "one": one, "mix": mix})
    system.connect("two.h", "mix.in")
    system.connect("mix.out", "two.q")
    system.connect("one.h", "one.q")
    system.set("one.extra", q)
    return system


def free(decay: float) -> cs.System:
    """Nothing is coupled."""
    tank = cs.Linear([[-decay]], [[1]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    system = cs.System({"tank": tank})
    system.set("tank.q", 0.0)
    return system


def pendulum(length: float) -> cs.System:
    """Not linear: runs one by one."""
    ode = cs.Ode(
        lambda t, x, u: np.array([x[1], -9.81 / length * np.sin(x[0]) + u[0]]),
        lambda t, x, u: x[:1],
        x0=[1.0, 0.0],
        inputs=["f"],
        outputs=["x"],
        integrator="ode4",
        internal_step=0.01,
    )
    damper = cs.Linear([[-1]], [[-0.5]], [[1]], x0=[0], inputs=["x"], outputs=["f"])
    system = cs.System({"rod": ode, "damper": damper})
    system.connect("rod.x", "damper.x")
    system.connect("damper.f", "rod.f")
    return system


@numba.njit
def _fall(t, x, u):
    slope = np.empty(2)
    slope[0] = x[1]
    slope[1] = -9.81 * np.sin(x[0]) + u[0]
    return slope


@numba.njit
def _angle(t, x, u):
    return x


def jitted(start: float) -> cs.System:
    """Not linear, but jitted: runs through the compiled loop."""
    ode = cs.Ode(
        _fall, _angle, x0=[start, 0.0], inputs=["f"], outputs=["x", "v"], integrator="ode4", internal_step=0.01
    )
    damper = cs.Linear([[-1]], [[-0.5]], [[1]], x0=[0], inputs=["x"], outputs=["f"])
    system = cs.System({"rod": ode, "damper": damper})
    system.connect("rod.x", "damper.x")
    system.connect("damper.f", "rod.f")
    return system


def sometimes_deadly(length: float) -> cs.System:
    """Ends its process for one length."""
    if length == 3.0:
        os._exit(7)
    return pendulum(length)


def once_deadly(length: float, folder: str) -> cs.System:
    """Kills its process the first time that the length is 3."""
    grave = Path(folder, "grave")
    if length == 3.0 and not grave.exists():
        grave.touch()
        os.kill(os.getpid(), 9)
    return pendulum(length)


def no_system(length: float) -> dict[str, float]:
    return {"length": length}
