"""Difference quotients of a subsystem at rest: its internal steps are as long as they like, far beyond stability."""

import numba
import numpy as np
import pytest

import cosolve as cs
from cosolve.integrator.runge_kutta import DormandPrince
from cosolve.signal.polynomial import Polynomial

W, D, M, K, C = 1000.0, 40.0, 300.0, 2e4, 200.0
FAST = np.array([[0.0, 1.0], [-W * W, -D]])


def slope(t, x, u):
    return np.array([x[1], -W * W * x[0] - D * x[1] + u[0]])


def state(t, x, u):
    return x


JITTED = numba.njit(slope), numba.njit(state)
AXLES = {
    "exact": lambda: cs.Linear(FAST, [[0], [1.0]], np.eye(2), x0=[0, 0], inputs=["f"], outputs=["x", "v"]),
    "python": lambda: cs.Ode(slope, state, x0=[0.0, 0.0], inputs=["f"], outputs=["x", "v"]),
    "dopri5": lambda: cs.Ode(slope, state, x0=[0.0, 0.0], inputs=["f"], outputs=["x", "v"], integrator="dopri5"),
    "jitted": lambda: cs.Ode(*JITTED, x0=[0.0, 0.0], inputs=["f"], outputs=["x", "v"]),
    "hybrid": lambda: cs.HybridOde(
        *(slope, state), x0=[0.0, 0.0], inputs=["f"], outputs=["x", "v"], indicators=lambda t, x, u: 1.0 + 0.0 * x[0]
    ),
}


@numba.njit
def spring(x1, v1, x2, v2):
    return K * (x2 - x1) + C * (v2 - v1) - 0.5 * C


def build(kind):
    """A fast axle in exact equilibrium, under a body that moves."""
    body = cs.Linear([[0, 1], [0, 0]], [[0], [1 / M]], np.eye(2), x0=[0.0, 0.5], inputs=["f"], outputs=["x", "v"])
    system = cs.System({"axle": AXLES[kind](), "body": body})
    system.law({"axle.f": 1, "body.f": -1}, spring, of=["axle.x", "axle.v", "body.x", "body.v"], name="F")
    return system


@pytest.mark.parametrize("kind", AXLES)
@pytest.mark.parametrize("H", [0.05, 0.02, 0.005])
def test_newton_needs_few_corrections(kind, H):
    """It took 54: with the steps of a subsystem step in which nothing moved the perturbed ones blew up."""
    result = cs.simulate(build(kind), t_end=5 * H, method=cs.Implicit(1), step=H)
    assert result.iterations.max() <= 4


@pytest.mark.parametrize("kind", ["python", "jitted"])
def test_a_single_correction_is_enough(kind):
    result = cs.simulate(build(kind), t_end=0.2, method=cs.SemiImplicit(1, repeat=False), step=0.05)
    exact = cs.simulate(build("exact"), t_end=0.2, method=cs.SemiImplicit(1, repeat=False), step=0.05)
    assert result["axle.x"] == pytest.approx(exact["axle.x"], abs=2e-3 * np.abs(exact["axle.x"]).max())


def test_differences_are_those_of_the_equations():
    """Over one step far longer than the period, from rest: the response of the end to the input's end."""
    H, push = 0.05, 1e-3
    rest, pushed = (Polynomial(0.0, H, np.array([[0.0], [p]])) for p in (0.0, push))
    solver = DormandPrince(1e-8, 1e-10)
    assert not solver.integrate(slope, 0.0, H, np.zeros(2), rest).any()
    assert len(solver.grid) < 8
    found = solver.replay(slope, 0.0, H, np.zeros(2), pushed)
    exact = cs.Linear(FAST, [[0], [1.0]], np.eye(2), x0=[0, 0], inputs=["f"], outputs=["x", "v"])
    exact.start(0.0)
    assert found == pytest.approx(exact.advance(0.0, H, pushed), rel=1e-2, abs=3e-3 * push / W)


def test_a_motion_too_fast_for_explicit_steps_is_left_to_the_stiff_solver():
    """1e9 per second: a million steps would be needed for each difference."""
    fast = cs.Ode(lambda t, x, u: -1e9 * (x - u), state, x0=[0.0], inputs=["u"], outputs=["y"])
    slow = cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[0.0], inputs=["u"], outputs=["y"])
    system = cs.System({"fast": fast, "slow": slow})
    system.connect("slow.y", "fast.u")
    system.law("slow.u", lambda y: 1.0 - 0.5 * y, of=["fast.y"])
    result = cs.simulate(system, t_end=0.1, method=cs.Implicit(1), step=0.02)
    assert result.iterations.max() <= 4
    assert result["slow.y"][-1] == pytest.approx((1 - np.exp(-0.15)) / 1.5, rel=1e-3)


def test_machine_code_divides_the_same_steps():
    runs = [
        cs.simulate(build("jitted"), t_end=1.0, method=cs.Implicit(1), step=0.02, compiled=c) for c in (False, True)
    ]
    assert runs[1].stats.compiled_steps > 0
    assert runs[0]["axle.x"].tobytes() == runs[1]["axle.x"].tobytes()


def test_a_moving_subsystem_repeats_its_steps_to_the_bit():
    """Nothing is divided where the steps were chosen by an error."""
    solver, x = DormandPrince(1e-8, 1e-10), np.array([1e-3, 0.0])
    u = Polynomial(0.0, 0.01, np.array([[1.0]]))
    once = solver.integrate(slope, 0.0, 0.01, x, u)
    assert (np.diff(np.abs(solver.grid)) != 0.0).any()
    assert solver.replay(slope, 0.0, 0.01, x, u).tobytes() == once.tobytes()
