"""A mass drives a finite-element bar of two elements (Schmoll (2015), 3.3.3).

The mass takes the force `F` and gives its motion `x, v`; the bar follows this motion at its end and gives the force.

Taking the reaction at the driven node literally would include the inertia of that node, and the acceleration of the
mass would become an input: double feed-through. Remedies:

- `direct`: the mass matrix is lumped and the driven node free of acceleration, so `F` comes from the stiffness and
  damping of the adjacent element alone. The nodal mass that is dropped, rho A L / 4, may be given to the driving mass;
- `penalty`: a spring-damper `c, d` between the mass and the driven node, which keeps its inertia.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm

import cosolve as cs

BAR = cs.structures.Bar(elements=2, length=1.0, E=5e7, rho=1000.0, area=0.002)
RAYLEIGH = 2e-5  # damping = RAYLEIGH * stiffness
M1, C1, D1 = 1.0, 1e4, 2.0
X1, X2 = 1e-2, 5e-3
DRIVEN_MASS = float(BAR.mass()[-1])


def direct(
    integrator: cs.structures.StructureIntegrator | str = "trapezoidal", *, substeps: int = 1, extra_mass: float = 0.0
) -> cs.System:
    """Acceleration-free displacement boundary condition; `extra_mass` is added to the driving mass."""
    K = BAR.stiffness()
    return _coupled(BAR.mass(), K, RAYLEIGH * K, [X2, X1], integrator, substeps, M1 + extra_mass)


def penalty(
    c: float, d: float = 0.0, integrator: cs.structures.StructureIntegrator | str = "trapezoidal", *, substeps: int = 1
) -> cs.System:
    """A spring-damper between the mass and the driven node: one more element, whose far end is driven."""
    M, D, K = _penalty_matrices(c, d)
    return _coupled(M, K, D, [X2, X1, X1], integrator, substeps, M1)


def _coupled(
    M: np.ndarray,
    K: np.ndarray,
    D: np.ndarray,
    q0: list[float],
    integrator: cs.structures.StructureIntegrator | str,
    substeps: int,
    mass: float,
) -> cs.System:
    bar = cs.structures.SecondOrder(
        cs.structures.Structure(M, K=K, D=D),
        integrator,
        inputs=[cs.structures.DofPort("x1", -1, "displacement"), cs.structures.DofPort("v1", -1, "velocity")],
        outputs=[
            cs.structures.DofPort("F", -1, "reaction", factor=-1.0),
            cs.structures.DofPort("x", 0, "displacement"),
            cs.structures.DofPort("v", 0, "velocity"),
        ],
        q0=q0,
        u0=[q0[-1], 0.0],
        restart="balanced",
        substeps=substeps,
    )
    one = cs.Linear(
        [[0, 1], [-C1 / mass, -D1 / mass]], [[0], [1 / mass]], np.eye(2), x0=[X1, 0.0], inputs=["f"], outputs=["x", "v"]
    )
    system = cs.System({"one": one, "two": bar})
    system.connect("one.x", "two.x1")
    system.connect("one.v", "two.v1")
    system.connect("two.F", "one.f")
    return system


def exact_direct(t: np.ndarray, extra_mass: float = 0.0) -> np.ndarray:
    """Displacement of the driving mass in the coupled system with directly attached bar."""
    K, D = BAR.stiffness(), RAYLEIGH * BAR.stiffness()
    return _driving_motion(t, np.array([BAR.mass()[0], M1 + extra_mass]), D, K, [X2, X1])


def exact_penalty(t: np.ndarray, c: float, d: float = 0.0) -> np.ndarray:
    """The same with the penalty spring in between."""
    M, D, K = _penalty_matrices(c, d)
    M[-1] = M1
    return _driving_motion(t, M, D, K, [X2, X1, X1])


def _penalty_matrices(c: float, d: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    spring = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, -1.0], [0.0, -1.0, 1.0]])
    K = np.zeros((3, 3))
    K[:2, :2] = BAR.stiffness()
    return np.append(BAR.mass(), 0.0), RAYLEIGH * K + d * spring, K + c * spring


def _driving_motion(t: np.ndarray, M: np.ndarray, D: np.ndarray, K: np.ndarray, q0: list[float]) -> np.ndarray:
    """Exact motion of the last degree of freedom, which also hangs on the spring of the driving mass."""
    n = len(M)
    K, D = K.copy(), D.copy()
    K[-1, -1] += C1
    D[-1, -1] += D1
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-K / M[:, None], -D / M[:, None]]])
    state, step = np.concatenate([q0, np.zeros(n)]), expm(A * (t[1] - t[0]))
    found = []
    for _ in t:
        found.append(state[n - 1])
        state = step @ state
    return np.array(found)
