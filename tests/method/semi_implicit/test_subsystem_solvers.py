"""The oscillator with real inner solvers: the coupling method must not notice (Schweizer and Lu (2014), 4.1)."""

from functools import cache

import numpy as np
import pytest
from examples.two_mass.model import lu, split
from numba import njit

import cosolve as cs

P = lu()
OUTPUTS = ("one.x", "one.v", "two.x", "two.v")


@cache  # compiled once for all tests
def right_hand_side(m, c, d, foreign):
    """Driven by motion: plain Python. By a force: one of each, so that both kernels of the native solvers run."""
    if not foreign and m == P.m1:
        return lambda t, s, u: np.array([s[1], (-c * s[0] - d * s[1] + u[0]) / m])
    if foreign:
        return lambda t, s, u: np.array(
            [s[1], (-c * s[0] - d * s[1] + P.ck * (u[0] - s[0]) + P.dk * (u[1] - s[1])) / m]
        )

    @njit
    def rhs(t, s, u):
        return np.array([s[1], (-c * s[0] - d * s[1] + u[0]) / m])

    return rhs


def mass(m, c, d, x, v, solver, foreign, **options):
    """One mass as an `Ode`: driven by a force, or by the motion of the other mass."""
    rhs = right_hand_side(m, c, d, foreign)
    inputs = ["foreign_x", "foreign_v"] if foreign else ["f"]
    return cs.Ode(rhs, lambda t, s, u: s, x0=[x, v], inputs=inputs, outputs=["x", "v"], integrator=solver, **options)


def system(kind, solver, **options):
    one = mass(P.m1, P.c1, P.d1, P.x1, P.v1, solver, kind[0] == "D", **options)
    two = mass(P.m2, P.c2, P.d2, P.x2, P.v2, solver, kind[2] == "D", **options)
    joined = cs.System({"one": one, "two": two})
    if kind == "F/F":
        law = split("F/F").plan().blocks[0].function
        joined.law({"one.f": 1.0, "two.f": -1.0}, law, of=list(OUTPUTS), name="lam")
    else:
        joined.connect("two.x", "one.foreign_x")
        joined.connect("two.v", "one.foreign_v")
        joined.connect("one.x", "two.foreign_x")
        joined.connect("one.v", "two.foreign_v")
    return joined


def gap(kind, solver, degree=1, t_end=0.05, **options):
    """Largest difference to exact propagation, relative to each output's size."""
    method = cs.SemiImplicit(degree=degree)
    real = cs.simulate(system(kind, solver, **options), t_end=t_end, method=method, step=1e-3)
    ideal = cs.simulate(split(kind), t_end=t_end, method=method, step=1e-3)
    return max(np.abs(real[n] - ideal[n]).max() / np.abs(ideal[n]).max() for n in OUTPUTS)


TIGHT = {"rtol": 1e-9, "atol": 1e-9}


@pytest.mark.sample(7)
@pytest.mark.covers("SL-03", "SL-05")
@pytest.mark.parametrize("kind", ["F/F", "D/D"])
@pytest.mark.parametrize(
    ("solver", "options"),
    [
        ("dopri5", TIGHT),
        ("auto", TIGHT),
        ("ode4", {"internal_step": 1e-4}),
        ("RK45", TIGHT),
        ("DOP853", TIGHT),
        ("Radau", TIGHT),
        ("BDF", TIGHT),
        ("LSODA", TIGHT),
        ("cvode", TIGHT),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_inner_solvers_agree_with_exact_propagation(kind, solver, options):
    """Tolerance 1e-9 per unit of state in each of 50 steps: the sum stays below 50 * 1e-9 * a few (1e-6 allowed)."""
    assert gap(kind, solver, **options) < 1e-6


@pytest.mark.covers("SL-07")
def test_ten_substeps_of_rk4_are_invisible():
    """The reference code's inner solver: RK4 with 10 substeps, T = 0.5, within 1.7e-11 in x and 7e-10 in v."""
    method = cs.SemiImplicit(degree=2, jacobian="difference")
    real = cs.simulate(system("F/F", "ode4", internal_step=1e-4), t_end=0.5, method=method, step=1e-3)
    ideal = cs.simulate(split("F/F"), t_end=0.5, method=method, step=1e-3)
    assert max(np.abs(real[n] - ideal[n]).max() for n in ("one.x", "two.x")) < 2e-11
    assert max(np.abs(real[n] - ideal[n]).max() for n in ("one.v", "two.v")) < 1e-9


@pytest.mark.covers("SL-03")
def test_bdf_at_the_tolerance_of_the_source():
    """As published: BDF, rtol = atol = 1e-6, F/F k = 0 at H = 1e-3 shows the coupling error, not the solver's."""
    method = cs.SemiImplicit(degree=0)
    real = cs.simulate(system("F/F", "BDF", rtol=1e-6, atol=1e-6), t_end=0.05, method=method, step=1e-3)
    exact = P.exact(real.t)
    ideal = cs.simulate(split("F/F"), t_end=0.05, method=method, step=1e-3)
    found, expected = (np.abs(r["one.x"] - exact[:, 0]).max() for r in (real, ideal))
    assert found == pytest.approx(expected, rel=1e-2)
