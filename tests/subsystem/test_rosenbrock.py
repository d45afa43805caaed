"""The stiff one-step solver: its order, its stability, free restarts, and the compiled twin."""

import numba
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cosolve as cs
from cosolve.integrator import rosenbrock
from cosolve.integrator.rosenbrock import BY_TIME, GAMMA, TIMES, A, C, Rosenbrock
from cosolve.signal import Polynomial

SIGNAL = Polynomial(0.0, 1.0, np.array([[0.3], [1.0], [-2.0]]))


def pendulum(t, x, u):
    return np.array([x[1], -9.81 * np.sin(x[0]) - 0.3 * x[1] + np.cos(2.0 * t) + u[0]])


def van_der_pol(t, x, u):
    return np.array([x[1], ((1.0 - x[0] ** 2) * x[1] - x[0]) * 1e6])


def test_coefficients_are_consistent() -> None:
    """Sums of the untransformed coefficients are the stage times and the factors of the time derivative."""
    G = np.linalg.inv(np.eye(6) / GAMMA - C)
    np.testing.assert_allclose((A @ G).sum(axis=1), TIMES, atol=1e-13)
    np.testing.assert_allclose(G.sum(axis=1), BY_TIME, atol=1e-13)


def test_order_four_with_time_and_inputs() -> None:
    exact = solve_ivp(lambda t, x: pendulum(t, x, SIGNAL(t)), (0, 1), [1, 0], method="DOP853", rtol=1e-13, atol=1e-13)
    errors = []
    for n in (10, 20, 40, 80):
        x = rosenbrock.PYTHON.fixed(
            pendulum, 0.0, np.full(n, 1 / n), np.array([1.0, 0.0]), 0.0, 1.0, SIGNAL.coefficients
        )
        errors.append(np.abs(x - exact.y[:, -1]).max())
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(slopes, 4.0, atol=0.1)


def test_stiffness_does_not_limit_the_step() -> None:
    """Prothero and Robinson: after the transient, steps of 0.1 with lambda = 1e8 follow the slow solution."""

    def fast(t, x, u):
        return -1e8 * (x - np.cos(t)) - np.sin(t)

    x = rosenbrock.PYTHON.fixed(fast, 0.0, np.full(10, 0.1), np.array([1.0]), 0.0, 1.0, np.zeros((1, 1)))
    assert abs(x[0] - np.cos(1.0)) < 1e-4
    off = rosenbrock.PYTHON.fixed(fast, 0.0, np.full(1, 0.1), np.array([2.0]), 0.0, 1.0, np.zeros((1, 1)))
    assert abs(off[0] - np.cos(0.1)) < 1e-3  # L-stable: the transient is gone after one step


@pytest.mark.slow
def test_van_der_pol_against_radau() -> None:
    solver = Rosenbrock(1e-6, 1e-8)
    x = solver.integrate(van_der_pol, 0.0, 2.0, np.array([2.0, -0.66]), Polynomial(0.0, 2.0, np.zeros((1, 1))))
    exact = solve_ivp(lambda t, x: van_der_pol(t, x, None), (0, 2), [2, -0.66], method="Radau", rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(x, exact.y[:, -1], rtol=2e-6)
    assert len(solver.grid) < 2000


def test_compiled_and_plain_agree() -> None:
    jitted = numba.njit(pendulum)
    plain, compiled = Rosenbrock(1e-8, 1e-10), Rosenbrock(1e-8, 1e-10)
    x0 = np.array([1.0, 0.0])
    one, two = plain.integrate(pendulum, 0.0, 1.0, x0, SIGNAL), compiled.integrate(jitted, 0.0, 1.0, x0, SIGNAL)
    np.testing.assert_allclose(one, two, rtol=1e-9)
    np.testing.assert_array_equal(compiled.replay(jitted, 0.0, 1.0, x0, SIGNAL), two)


def stiff_pair(solver: str) -> cs.System:
    """A slow tank that drives a fast one, and back."""
    slow = cs.Ode(lambda t, x, u: -x + u, lambda t, x, u: x, x0=[1.0], inputs=["u"], outputs=["y"])
    fast = cs.Ode(
        lambda t, x, u: -1e5 * (x - 0.5 * u[0] ** 2),
        lambda t, x, u: x,
        x0=[0.5],
        inputs=["u"],
        outputs=["y"],
        integrator=solver,
    )
    system = cs.System({"slow": slow, "fast": fast})
    system.connect("slow.y", "fast.u")
    system.connect("fast.y", "slow.u")
    return system


def test_a_stiff_subsystem_in_a_loop() -> None:
    """The same solution as with SciPy's Radau."""
    results = {
        solver: cs.simulate(stiff_pair(solver), method=cs.SemiImplicit(2), step=0.02, t_end=1.0)
        for solver in ("rodas4", "Radau")
    }
    np.testing.assert_allclose(results["rodas4"]["slow.y"], results["Radau"]["slow.y"], rtol=1e-6)


def test_a_restart_costs_a_few_steps_and_less_than_half_of_a_multistep_restart() -> None:
    """The same stretch in one go and in 30 pieces; BDF has to build up its history and order again each time."""

    def driven(t, x, u=None):
        return -1e4 * (x - np.cos(5.0 * t))

    whole, pieces = Rosenbrock(1e-6, 1e-9), Rosenbrock(1e-6, 1e-9)
    x = whole.integrate(driven, 0.0, 3.0, np.array([1.0]), Polynomial(0.0, 3.0, np.zeros((1, 1))))
    options = {"method": "BDF", "rtol": 1e-6, "atol": 1e-9}
    multistep_whole = len(solve_ivp(driven, (0.0, 3.0), [1.0], **options).t) - 1
    y, z, taken, multistep = np.array([1.0]), np.array([1.0]), 0, 0
    for n in range(30):
        t0, t1 = 0.1 * n, 0.1 * (n + 1)
        y = pieces.integrate(driven, t0, t1, y, Polynomial(t0, 0.1, np.zeros((1, 1))))
        taken += len(pieces.grid)
        run = solve_ivp(driven, (t0, t1), z, **options)
        z, multistep = run.y[:, -1], multistep + len(run.t) - 1
    assert abs(x[0] - y[0]) < 1e-5
    extra, extra_multistep = (taken - len(whole.grid)) / 30, (multistep - multistep_whole) / 30
    assert extra < 4
    assert extra < 0.5 * extra_multistep


def test_failures_have_words() -> None:
    for rhs, words in (
        (lambda t, x, u: x * np.nan, "NaN"),
        (lambda t, x, u: 1e3 * np.cos(1e6 * t) + 0 * x, "more than 10000 steps"),
    ):
        ode = cs.Ode(rhs, lambda t, x, u: x, x0=[1.0], inputs=[], outputs=["y"], integrator="rodas4")
        with np.errstate(all="ignore"), pytest.raises(cs.errors.SimulationError, match=words):
            cs.simulate(cs.System({"a": ode}), method=cs.Jacobi(0), step=5.0, t_end=10.0)
