"""Internal steps of model-exchange FMUs, one at a time, against a solution known in closed form."""

import numpy as np
import pytest

from cosolve.integrator.inner_steps import make_steps
from cosolve.signal.polynomial import Polynomial

#: `x' = -2 x + u` with `u = 3 + 4 s`, `s = (t - 1) / 0.5`
U = Polynomial(1.0, 0.5, np.array([[3.0], [4.0]]))


def rhs(t, x, u):
    return -2.0 * x + u


def exact(t, x0=5.0):
    """A line of slope 8 in time follows from the ansatz `x = a + b (t - 1)`: b = 4, a = -0.5."""
    return -0.5 + 4.0 * (t - 1.0) + (x0 + 0.5) * np.exp(-2.0 * (t - 1.0))


def advanced(steps, t_stop=1.5):
    """Ends of all steps from 1 to `t_stop`, and states inside each, three of them and the end."""
    t, x, ends = 1.0, np.array([5.0]), []
    while t < t_stop:
        t1, x1, inside = steps.step(rhs, t, t_stop, x, U)
        assert t < t1 <= t_stop
        for when in (*np.linspace(t, t1, 5)[1:-1], t1):
            assert inside(when)[0] == pytest.approx(exact(when), abs=1e-5)
        assert inside(t1) == pytest.approx(x1, abs=1e-12)
        t, x = t1, x1
        ends.append(t1)
    return ends, x


@pytest.mark.parametrize("name", ["ode4", "ode5"])
def test_fixed_steps_are_equal_and_end_where_they_should(name):
    ends, x = advanced(make_steps("FMU", name, 1e-6, 1e-6, 0.06, 1000))
    assert ends == pytest.approx(np.linspace(1.0, 1.5, 10)[1:], rel=1e-14)  # nine steps of at most 0.06
    assert x[0] == pytest.approx(exact(1.5), abs=1e-5)


@pytest.mark.parametrize("name", ["auto", "dopri5", "RK45", "Radau", "LSODA"])
def test_chosen_steps_meet_the_tolerance_and_can_be_looked_into(name):
    loose, tight = (advanced(make_steps("FMU", name, rtol, rtol, None, 1000)) for rtol in (1e-6, 1e-9))
    assert abs(tight[1][0] - exact(1.5)) < 1e-7
    assert len(tight[0]) > len(loose[0])


@pytest.mark.parametrize("name", ["dopri5", "RK45"])
def test_a_state_that_was_not_reached_by_the_last_step_begins_anew(name):
    """After a jump of the state, and after a step back: from where it is told to start, not from where it stood."""
    steps = make_steps("FMU", name, 1e-9, 1e-9, None, 1000)
    t1, x1, _ = steps.step(rhs, 1.0, 1.5, np.array([5.0]), U)
    for x0 in (5.0, -7.0):
        steps.forget()
        t, _, inside = steps.step(rhs, 1.0, 1.5, np.array([x0]), U)
        assert inside(t)[0] == pytest.approx(exact(t, x0), abs=1e-7)
    again = make_steps("FMU", name, 1e-9, 1e-9, None, 1000)
    again.step(rhs, 1.0, 1.5, np.array([5.0]), U)
    t, _, inside = again.step(rhs, t1, 1.5, x1 + 1.0, U)  # silently: another state than the one it gave
    jumped = exact(t) + np.exp(-2.0 * (t - t1))
    assert inside(t)[0] == pytest.approx(jumped, abs=1e-7)


@pytest.mark.parametrize("name", ["dopri5", "RK45"])
def test_after_a_jump_the_length_of_a_step_is_found_anew(name):
    """From the end of its last step as from anywhere: as long as the first step of a solver that knows nothing."""
    steps, fresh = (make_steps("FMU", name, 1e-6, 1e-6, None, 1000) for _ in range(2))
    t, x = 1.0, np.array([5.0])
    for _ in range(3):
        t, x, _ = steps.step(rhs, t, 1.5, x, U)
    steps.forget()
    assert steps.step(rhs, t, 1.5, x, U)[0] == fresh.step(rhs, t, 1.5, x, U)[0]


@pytest.mark.parametrize(("name", "noise"), [("ode4", 0.0), ("dopri5", 1e-7), ("RK45", 1e-7)])
def test_difference_quotients_are_told_how_exact_the_steps_are(name, noise):
    assert make_steps("FMU", name, 1e-7, 1e-9, 0.1 if name == "ode4" else None, 1000).noise == noise


def test_a_solver_goes_on_from_its_own_end():
    """SciPy's solvers learn their step: begun anew at every step they would need many more."""
    steps = make_steps("FMU", "RK45", 1e-9, 1e-9, None, 1000)
    t, x, count = 1.0, np.array([5.0]), 0
    while t < 1.5:
        t, x, _ = steps.step(rhs, t, 1.5, x, U)
        count += 1
    fresh, t, x = 0, 1.0, np.array([5.0])
    while t < 1.5:
        t, x, _ = make_steps("FMU", "RK45", 1e-9, 1e-9, None, 1000).step(rhs, t, 1.5, x, U)
        fresh += 1
    assert count < fresh
