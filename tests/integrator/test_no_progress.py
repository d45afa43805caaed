"""Right-hand sides that blow up end in a sentence, whatever the solver would do: LSODA takes steps of length zero."""

import numpy as np
import pytest

import cosolve as cs
from cosolve.integrator import libraries
from cosolve.integrator.rosenbrock import Rosenbrock
from cosolve.integrator.runge_kutta import DormandPrince
from cosolve.signal import Polynomial

RHS = {
    "blows up": lambda t, x, u: [x[0] ** 2],
    "infinite": lambda t, x, u: [np.inf if t > 0.55 else -x[0]],
    "huge": lambda t, x, u: [1e300 if t > 0.55 else -x[0]],
}


def run(rhs, solver):
    one = cs.Ode(rhs, lambda t, x, u: x, x0=[1.0], inputs=["u"], outputs=["x"], integrator=solver)
    system = cs.System({"one": one})
    system.set("one.u", 0.0)
    return cs.simulate(system, t_end=2.0, method=cs.Jacobi(1), step=0.1)


@pytest.mark.parametrize("solver", ["LSODA", "BDF", "Radau"])
@pytest.mark.parametrize("rhs", RHS.values(), ids=RHS)
@pytest.mark.filterwarnings("ignore")  # SciPy's own, about overflows and short steps
def test_a_right_hand_side_that_blows_up(rhs, solver):
    with pytest.raises(cs.errors.SubsystemError, match=r"'one' failed while advancing at t = (0.5|0.9|1): ") as found:
        run(rhs, solver)
    assert len(found.value.result.t) in (6, 10, 11)


def test_too_many_evaluations_in_one_step(monkeypatch):
    """A thousand oscillations in a macro step, with room for a tenth of the evaluations that they take."""
    rough = lambda t, x, u: [1e5 * np.sin(6e4 * t)]  # noqa: E731
    monkeypatch.setattr(libraries, "_ALTOGETHER", 1000)
    monkeypatch.setattr(libraries, "_ALTOGETHER_PER_STATE", 0)
    with pytest.raises(
        cs.errors.SubsystemError, match=r"is still at t = 0\.\d+ after 1001 evaluations of rhs in one macro"
    ):
        run(rough, "LSODA")


@pytest.mark.parametrize("solver", [DormandPrince, Rosenbrock])
def test_why_a_solver_of_its_own_gives_up(solver):
    """Too many steps are told from a step that becomes too short to count."""
    held = Polynomial(0.0, 2.0, np.zeros((1, 1)))
    with pytest.raises(RuntimeError, match=r"needs more than 7 steps (at|after) t = "):
        solver(1e-9, 1e-9, 7).integrate(lambda t, x, u: np.array([np.cos(50 * t)]), 0.0, 2.0, np.ones(1), held)
    with pytest.raises(RuntimeError, match=r"needs a vanishing step (at|after) t = (1|0\.99999\d*);"):
        solver(1e-9, 1e-9, 10**6).integrate(lambda t, x, u: x**2, 0.0, 2.0, np.ones(1), held)
