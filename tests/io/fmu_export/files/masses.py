"""What the tests export; copied into FMUs, so it imports only cosolve and its neighbour."""

from springs import spring

import cosolve as cs


def mass(x0, m=1.0):
    return cs.Ode(
        lambda t, x, u: [x[1], (u[0] + u[1] - x[0]) / m],
        lambda t, x, u: x,
        x0=x0,
        inputs=[cs.Port("force", unit="N"), cs.Port("extra", unit="N")],
        outputs=[cs.Port("x", unit="m"), cs.Port("v", unit="m/s")],
        integrator="ode4",
        internal_step=0.005,
    )


def pair(stiffness=5.0):
    """Two masses and a spring; the extra forces are fed by nothing and so become inputs of the FMU."""
    system = cs.System({"one": mass([1.0, 0.0]), "two": mass([0.0, 0.5])})
    system.law({"one.force": 1, "two.force": -1}, spring(stiffness), of=["one.x", "two.x"], name="s")
    return system, cs.SemiImplicit(degree=2), 0.01


def adaptive_pair():
    return pair()[0], cs.SemiImplicit(degree=1), cs.Adaptive(rtol=1e-5, first_step=1e-3)


def plate(m=2.0):
    """A single subsystem with vector ports."""
    return cs.Ode(
        lambda t, x, u: (u - x) / m,
        lambda t, x, u: [x[0], x[1], x.sum()],
        x0=[1.0, 2.0],
        inputs=[("u", 2)],
        outputs=[("x", 2), "sum"],
        integrator="ode4",
        internal_step=0.01,
    )


def nothing():
    return 42


def without_method():
    return pair()[0]
