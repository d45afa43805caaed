"""A macro step can be repeated bit for bit, and how many runs it takes (Lu (2015), 2.2.6)."""

import numpy as np
import pytest
from examples.two_mass.model import lu, split

import cosolve as cs
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.engine.python.trial import Trial
from cosolve.method import Window
from cosolve.signal import History


def oscillator_of_odes(solver, **options):
    """The F/F oscillator with real solvers instead of exact propagation."""
    p = lu()

    def mass(m, x, v):
        return cs.Ode(
            lambda t, s, u: np.array([s[1], (-p.c1 * s[0] - p.d1 * s[1] + u[0]) / m]),
            lambda t, s, u: s,
            x0=[x, v],
            inputs=["f"],
            outputs=["x", "v"],
            integrator=solver,
            **options,
        )

    system = cs.System({"one": mass(p.m1, p.x1, p.v1), "two": mass(p.m2, p.x2, p.v2)})
    law = split("F/F").plan().blocks[0].function
    system.law({"one.f": 1.0, "two.f": -1.0}, law, of=["one.x", "one.v", "two.x", "two.v"], name="lam")
    return system


@pytest.mark.covers("SL-02", "LU-02")
@pytest.mark.parametrize(
    "system",
    [
        split("F/F"),
        split("F/D"),
        split("D/D"),
        oscillator_of_odes("dopri5"),
        oscillator_of_odes("ode4", internal_step=2e-4),
        oscillator_of_odes("Radau"),
        oscillator_of_odes("BDF"),
        oscillator_of_odes("cvode"),
    ],
    ids=["F/F", "F/D", "D/D", "dopri5", "ode4", "Radau", "BDF", "cvode"],
)
def test_predictor_run_twice_is_bitwise_equal(system):
    """Rollback restores everything, also what the inner solver remembers: no tolerance."""
    caller = SubsystemCaller(system.plan())
    _, z = caller.start(0.0)
    trial = Trial(caller, History(z, depth=1), Window(0.0, 1e-3, 1e-3), degree=1)
    first = trial.run(z)
    elsewhere = trial.run(z + 50.0)
    again = trial.run(z)
    assert not np.array_equal(first, elsewhere)
    assert np.array_equal(first, again)


@pytest.mark.covers("SL-02")
def test_a_run_repeated_is_bitwise_equal():
    """`start` resets: the same system object gives the same bits again."""
    system = split("F/D")
    first, again = (cs.simulate(system, t_end=0.05, method=cs.SemiImplicit(degree=2), step=1e-3) for _ in range(2))
    assert np.array_equal(first.column("y"), again.column("y"))


@pytest.mark.covers("LU-02")
@pytest.mark.parametrize(
    ("kind", "n_g", "reads"),
    [("F/F", 1, (1, 1)), ("F/D", 3, (1, 2)), ("D/F", 3, (2, 1)), ("D/D", 4, (2, 2))],
)
def test_counts(kind, n_g, reads):
    """Distinct coupling variables, and 1 + n_u + 1 runs per macro step: predictor, perturbed runs, corrector.

    A subsystem is perturbed only in the variables it reads (Schweizer and Lu (2014), 3.6).
    """
    assert split(kind).plan().n_z == n_g
    steps = 7
    result = cs.simulate(
        split(kind), t_end=steps * 1e-3, method=cs.SemiImplicit(degree=1, jacobian="difference"), step=1e-3
    )
    assert result.stats.calls == {"one": steps * (1 + reads[0] + 1), "two": steps * (1 + reads[1] + 1)}
    assert result.stats.iterations == steps


@pytest.mark.covers("LU-02")
def test_exact_jacobians_save_the_perturbed_runs():
    """`Linear` gives its Jacobian, so a step costs predictor + corrector only."""
    result = cs.simulate(split("D/D"), t_end=5e-3, method=cs.SemiImplicit(degree=1), step=1e-3)
    assert result.stats.calls == {"one": 10, "two": 10}
    assert result.stats.jacobians == {"one": 5, "two": 5}
