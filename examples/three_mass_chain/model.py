"""A chain of three masses cut at the middle one, with equal and mixed time integrators (Sicklinger (2014), 3.1-3.2).

    wall -(k1, d1)- m1 -k2- m2 -d2- m3 -k3- wall

Domain one holds `u, v` (m1, m2, d1, k1, k2), domain two `v, w` (no mass at `v`, d2, m3, k3). Both take a force at `v`
and give its motion (N/N decomposition): `f_one + f_two = 0`, and displacement, velocity or acceleration of `v` agree.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.linalg import expm

import cosolve as cs

Level = Literal["displacement", "velocity", "acceleration"]

M1, M2, M3 = 0.1, 0.2, 0.3
D1, D2 = 0.1, 0.5
K1, K2, K3 = 1.0, 2.0, 3.0
MASS = np.array([M1, M2, M3])
DAMPING = np.array([[D1, 0.0, 0.0], [0.0, D2, -D2], [0.0, -D2, D2]])
STIFFNESS = np.array([[K1 + K2, -K2, 0.0], [-K2, K2, 0.0], [0.0, 0.0, K3]])
Q0 = np.array([1.0, 0.0, 0.0])

INTEGRATORS: dict[str, str] = {
    "BE": "backward-euler",
    "GA": "generalised-alpha",
    "TR": "trapezoidal",
    "BDF2": "bdf2",
}


def exact(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Displacements, velocities and accelerations of the three masses (matrix exponential; any sign of `t`)."""
    A = np.block([[np.zeros((3, 3)), np.eye(3)], [-STIFFNESS / MASS[:, None], -DAMPING / MASS[:, None]]])
    state = expm(A * t) @ np.concatenate([Q0, np.zeros(3)])
    return state[:3], state[3:], (A @ state)[3:]


def monolithic(integrator: str, h: float) -> cs.System:
    """All three masses in one subsystem."""
    q, v, a = exact(0.0)
    q_old, v_old, _ = _before(h)
    outputs = [
        cs.structures.DofPort(f"{name}{level[0]}", i, level) for level in _LEVELS for i, name in enumerate("uvw")
    ]
    chain = cs.structures.SecondOrder(
        cs.structures.Structure(MASS, K=STIFFNESS, D=DAMPING),
        INTEGRATORS[integrator],
        inputs=[],
        outputs=outputs,
        q0=q,
        v0=v,
        a0=a,
        before=(h, q_old, v_old),
    )
    return cs.System({"chain": chain})


def split(one: str, two: str, h: float, level: Level = "displacement") -> cs.System:
    """The chain in two domains with these integrators, coupled at `level`."""
    q, v, a = exact(0.0)
    q_old, v_old, _ = _before(h)
    matrices = {
        "one": ([M1, M2], [[D1, 0.0], [0.0, 0.0]], [[K1 + K2, -K2], [-K2, K2]], one, [0, 1], 1),
        "two": ([0.0, M3], [[D2, -D2], [-D2, D2]], [[0.0, 0.0], [0.0, K3]], two, [1, 2], 0),
    }
    domains = {}
    for name, (M, D, K, integrator, held, at) in matrices.items():
        domains[name] = cs.structures.SecondOrder(
            cs.structures.Structure(M, K=K, D=D),
            INTEGRATORS[integrator],
            inputs=[cs.structures.DofPort("f", at, "force")],
            outputs=[cs.structures.DofPort(which, at, which) for which in _LEVELS],
            q0=q[held],
            v0=v[held],
            a0=a[held],
            before=(h, q_old[held], v_old[held]),
        )
    joined = cs.System(domains)
    force = M2 * a[1] + K2 * (q[1] - q[0])  # what domain two does to domain one at the start
    joined.equations(
        {"f_one": "one.f", "f_two": "two.f"},
        lambda f_one, f_two, y_one, y_two: (f_one + f_two, y_one - y_two),
        of=[f"one.{level}", f"two.{level}"],
        initial={"f_one": force, "f_two": -force},
    )
    return joined


def run(one: str, two: str, h: float, *, level: Level = "displacement", interpolated: bool = True) -> cs.Result:
    """One second of the split chain.

    `interpolated`: the interface force is a ramp over the step, so that each integrator takes it at its own time
    (Example 3.6); otherwise the end value holds in the whole step (Example 3.4).
    """
    method = cs.Implicit(degree=1 if interpolated else 0, tol=1e-12, corrector=cs.Newton(refresh="step"))
    return cs.simulate(split(one, two, h, level), t_end=1.0, method=method, step=h)


_LEVELS: tuple[Level, ...] = ("displacement", "velocity", "acceleration")


def _before(h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return exact(-h)
