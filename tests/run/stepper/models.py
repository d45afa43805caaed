"""Systems for the tests of saved runs; a second process builds them again by name."""

import numpy as np

import cosolve as cs


def two_mass(solver: str = "dopri5") -> cs.System:
    """The two-mass oscillator coupled by a spring law, with an external force that can be set."""

    def mass(x0, **options):
        return cs.Ode(
            lambda t, x, u: [x[1], -x[0] - 0.1 * x[1] ** 3 + u[0] + u[1]],
            lambda t, x, u: x,
            x0=x0,
            inputs=["force", "extra"],
            outputs=["x", "v"],
            integrator=solver,
            **options,
        )

    options = {"internal_step": 0.003} if solver.startswith("ode") else {}
    system = cs.System({"one": mass([1.0, 0.0], **options), "two": mass([0.0, 0.5], **options)})
    system.law(
        {"one.force": 1, "two.force": -1}, lambda a, b: 5.0 * (b - a) + (b - a) ** 3, of=["one.x", "two.x"], name="s"
    )
    system.set("one.extra", 0.0)
    system.set("two.extra", 0.0)
    return system


def chain(n: int = 6) -> cs.System:
    """Connected nonlinear tanks in a ring: several coupling variables for quasi-Newton columns."""

    def tank(k):
        return cs.Ode(
            lambda t, x, u: [np.sin(t) + u[0] - x[0] - 0.2 * x[0] ** 3 + 0.3 * u[1]],
            lambda t, x, u: [x[0], x[0] ** 2],
            x0=[0.2 * k],
            inputs=["a", "b"],
            outputs=["h", "q"],
            integrator="ode4",
            internal_step=0.02,
        )

    system = cs.System({f"t{k}": tank(k) for k in range(n)})
    for k in range(n):
        system.connect(f"t{k}.h", f"t{(k + 1) % n}.a")
        system.connect(f"t{k}.q", f"t{(k - 1) % n}.b")
    return system


def oscillator_and_spring() -> cs.System:
    """One dynamic and one static subsystem for DynamicStatic."""
    mass = cs.Ode(lambda t, x, u: [x[1], u[0]], lambda t, x, u: x, x0=[1.0, 0.0], inputs=["force"], outputs=["x", "v"])
    spring = cs.Static(lambda t, u: -(u[0] ** 3) - u[1], inputs=["x", "v"], outputs=["force"])
    system = cs.System({"mass": mass, "spring": spring})
    for source, target in (("mass.x", "spring.x"), ("mass.v", "spring.v"), ("spring.force", "mass.force")):
        system.connect(source, target)
    return system


def free_running() -> cs.System:
    """A subsystem that overshoots the macro points."""
    system = two_mass("ode4")
    joined = cs.System({"one": cs.InterpolatedOutputs(system.subsystems["one"]), "two": system.subsystems["two"]})
    joined.law({"one.force": 1, "two.force": -1}, lambda a, b: 5.0 * (b - a), of=["one.x", "two.x"], name="s")
    joined.set("one.extra", 0.0)
    joined.set("two.extra", 0.1)
    return joined


def linear_pair(n: int = 60) -> cs.System:
    """Two linear subsystems with `2 n` connections: from 100 coupling variables on Jacobians are sparse."""
    A = -np.eye(n) + 0.3 * np.diag(np.ones(n - 1), 1)

    def part(x):
        return cs.Linear(A, 0.5 * np.eye(n), np.eye(n), x0=np.full(n, x), inputs=[("u", n)], outputs=[("y", n)])

    system = cs.System({"a": part(1.0), "b": part(-0.5)})
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    return system


def rigid() -> cs.System:
    """Two masses on springs, joined rigidly: multipliers and corrections are coupling variables."""

    def mass(m, c):
        A = [[0, 1], [-c / m, -0.2 / m]]
        gain = [[0, 0], [0, 0], [1 / m, 0]]
        B, C = [[0, 1], [1 / m, 0]], [[1, 0], [0, 1], A[1]]
        return cs.Linear(A, B, C, gain, x0=[1.0, 0.0], inputs=["f", "shift"], outputs=["x", "v", "a"])

    system = cs.System({"one": mass(1.0, 9.0), "two": mass(2.0, 40.0)})
    system.constraint(
        {"lam": {"one.f": 1, "two.f": -1}},
        lambda x1, v1, a1, x2, v2, a2: (x2 - x1, v2 - v1, a2 - a1),
        of=["one.x", "one.v", "one.a", "two.x", "two.v", "two.a"],
        correction={"mu": {"one.shift": 1, "two.shift": -1}},
    )
    return system


adaptive = cs.Adaptive(rtol=1e-3, first_step=0.01)

#: name -> (system, method, step, startup)
CASES = {
    "jacobi": (two_mass, cs.Jacobi(degree=2), 0.05, None),
    "gauss-seidel": (two_mass, cs.GaussSeidel(degree=1), 0.05, None),
    "leader-follower": (two_mass, cs.LeaderFollower(degree=2, leader="one"), 0.05, None),
    "master-slave start": (two_mass, cs.Jacobi(degree=2), 0.05, cs.LeaderFollowerStart(leader="one")),
    "semi-implicit": (two_mass, cs.SemiImplicit(degree=2), 0.05, None),
    "semi-implicit run": (two_mass, cs.SemiImplicit(degree=1, refresh="run"), 0.05, None),
    "semi-implicit sparse": (linear_pair, cs.SemiImplicit(degree=1, refresh="run"), 0.05, None),
    "bdf": (two_mass, cs.SemiImplicit(degree=2, signal="bdf"), 0.05, None),
    "bdf, iterated": (chain, cs.Implicit(degree=1, signal="bdf", tol=1e-8), 0.1, None),
    "collocation": (two_mass, cs.SemiImplicit(signal="collocation"), 0.05, None),
    "radau, iterated": (chain, cs.Implicit(signal="radau", tol=1e-8), 0.1, None),
    "bdf, adaptive": (two_mass, cs.SemiImplicit(degree=1, signal="bdf"), adaptive, None),
    "adaptive": (two_mass, cs.SemiImplicit(degree=1), adaptive, None),
    "adaptive explicit": (two_mass, cs.Jacobi(degree=1), adaptive, None),
    "implicit newton": (chain, cs.Implicit(degree=1, tol=1e-8, corrector=cs.Newton(refresh="run")), 0.1, None),
    "implicit sparse": (linear_pair, cs.Implicit(degree=1, corrector=cs.Newton(refresh="run")), 0.05, None),
    "line-search": (chain, cs.Implicit(tol=1e-8, corrector=cs.LineSearch(cs.Broyden())), 0.1, None),
    "serial aitken": (
        two_mass,
        cs.Implicit(tol=1e-8, sweep="gauss-seidel", corrector=cs.Aitken(0.5, carry=True)),
        0.05,
        None,
    ),
    "dynamic-static": (oscillator_and_spring, cs.DynamicStatic("C", rtol=1e-6), 0.5, None),
    "dynamic-static B": (oscillator_and_spring, cs.DynamicStatic("B", rtol=1e-5), 0.5, None),
    "weighted multipliers": (
        rigid,
        cs.Implicit(degree=1, constraints=cs.WeightedMultipliers(), corrector=cs.Broyden(initial="exact")),
        0.02,
        None,
    ),
    "stabilised index-2": (rigid, cs.SemiImplicit(degree=0, constraints=cs.StabilisedIndex2()), 0.02, None),
    "free running": (free_running, cs.Jacobi(degree=2), 0.05, None),
    **{
        type(corrector).__name__.lower(): (chain, cs.Implicit(tol=1e-8, corrector=corrector), 0.1, None)
        for corrector in (
            *(cs.IqnIls(reuse=3), cs.IqnImvj(), cs.Anderson(), cs.Broyden(), cs.Aitken(0.3, vector=False)),
            *(cs.Relaxation(0.7), cs.Secant(), cs.NewtonKrylov()),
        )
    },
}


def stepper(case: str) -> cs.Stepper:
    build, method, step, startup = CASES[case]
    return cs.Stepper(build(), method=method, step=step, startup=startup)


def trace(running: cs.Stepper, t_end: float) -> list[str]:
    """Every quantity after every step to `t_end`, exact to the bit."""
    found = []
    while running.t < t_end:
        running.step()
        values = np.concatenate([np.atleast_1d(running[name]) for name in running.names])
        found.append(running.t.hex() + " " + values.tobytes().hex())
    return found
