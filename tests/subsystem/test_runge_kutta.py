"""The fixed-step family ODE1 ... ODE5 inside a subsystem: order, inputs at the stage times, rounding floor."""

import numba
import numpy as np
import pytest
from examples.two_mass.model import SCHMOLL

import cosolve as cs
from cosolve.signal import Polynomial

A = SCHMOLL.A
STEPS = {
    "ode1": (1e-7, 5e-8),
    "ode2": (4e-6, 2e-6),
    "ode3": (2e-5, 1e-5),
    "ode4": (4e-5, 2e-5),
    "ode5": (5e-5, 2.5e-5),
}


@numba.njit
def both_masses(t, x, u):
    return A @ x


def whole_model_error(solver: str, h: float, t_end: float) -> float:
    """Error at `t_end` of the undivided two-mass model, relative to the size of each state."""
    whole = cs.Ode(
        both_masses, lambda t, x, u: x, x0=SCHMOLL.z0, inputs=[], outputs=[("z", 4)], integrator=solver, internal_step=h
    )
    z = cs.simulate(cs.System({"whole": whole}), t_end=t_end, method=cs.Jacobi(0), step=t_end)["whole.z"]
    exact = SCHMOLL.exact(np.linspace(0, t_end, 50))
    return float(np.linalg.norm((z[-1] - exact[-1]) / np.abs(exact).max(axis=0)))


@pytest.mark.covers("SC-16")
@pytest.mark.parametrize("solver", STEPS)
def test_order_on_the_two_mass_model(solver: str) -> None:
    """ODEx has order x (App. C.1), here on the undivided model over 10 ms."""
    errors = [whole_model_error(solver, h, 0.01) for h in STEPS[solver]]
    assert cs.analysis.convergence_order(STEPS[solver], errors) == pytest.approx(int(solver[3]), abs=0.1)


@pytest.mark.covers("SC-16")
@pytest.mark.parametrize("solver", STEPS)
def test_order_on_an_equation_with_time(solver: str) -> None:
    """An equation without time would hide wrong nodes c_i: x' = x cos t has x = exp(sin t)."""
    steps = (0.025, 0.0125)
    errors = []
    for h in steps:
        ode = cs.Ode(
            lambda t, x, u: x * np.cos(t),
            lambda t, x, u: x,
            x0=[1.0],
            inputs=[],
            outputs=["x"],
            integrator=solver,
            internal_step=h,
        )
        run = cs.simulate(cs.System({"ode": ode}), t_end=2.0, method=cs.Jacobi(0), step=0.2)
        errors.append(np.linalg.norm(run["ode.x"] - np.exp(np.sin(run.t))))
    assert cs.analysis.convergence_order(steps, errors) == pytest.approx(int(solver[3]), abs=0.1)


def _shifted(signal: Polynomial, t0: float, H: float) -> np.ndarray:
    """Coefficients of the same polynomial in the local time of the step `[t0, t0 + H]`."""
    moved = np.polynomial.Polynomial(signal.coefficients[:, 0])(np.polynomial.Polynomial([t0, H]))
    return moved.coef[:, None]


@pytest.mark.covers("SC-16")
@pytest.mark.parametrize("solver", STEPS)
def test_order_with_a_polynomial_input(solver: str) -> None:
    """Inputs are taken at the stage times: held per micro step, all would fall to order 1."""
    signal = Polynomial(0.0, 1.0, np.array([[1.0], [-2.0], [3.0], [5.0], [-4.0]]))
    exact = cs.Linear([[-2.0]], [[1.0]], [[1.0]], x0=[0.5], inputs=["u"], outputs=["x"])
    quarters = [Polynomial(k / 4, 0.25, _shifted(signal, k / 4, 0.25)) for k in range(4)]
    steps = (0.05, 0.025) if solver == "ode5" else (0.0125, 0.00625)
    errors = []
    for h in steps:
        ode = cs.Ode(
            lambda t, x, u: u - 2 * x,
            lambda t, x, u: x,
            x0=[0.5],
            inputs=["u"],
            outputs=["x"],
            integrator=solver,
            internal_step=h,
        )
        ode.start(0.0)
        exact.start(0.0)
        differences = [
            ode.advance(part.t0, part.t0 + 0.25, part)[0] - exact.advance(part.t0, part.t0 + 0.25, part)[0]
            for part in quarters
        ]
        errors.append(np.linalg.norm(differences))
    assert cs.analysis.convergence_order(steps, errors) == pytest.approx(int(solver[3]), abs=0.1)


@pytest.mark.covers("SC-16")
def test_ode5_meets_rounding() -> None:
    """App. C.1: no gain from h = 1e-5 to 1e-6; both are at the rounding floor, far below 1e-9 (T = 0.2 s)."""
    coarse, fine = (whole_model_error("ode5", h, 0.2) for h in (1e-5, 1e-6))
    assert coarse < 1e-9
    assert fine < 1e-9
    assert fine > 0.01 * coarse  # order 5 would promise 1e-5


@pytest.mark.covers("SC-16")
@pytest.mark.parametrize(("solver", "h"), [("ode1", 3e-5), ("ode2", 2e-3), ("ode4", 2.5e-3)])
def test_too_large_micro_steps_are_unstable(solver: str, h: float) -> None:
    """Each has a stability limit (ODE1: 2 zeta / omega = 1.6e-5 s for the fast mode, others about 2 ... 3 / omega)."""
    assert whole_model_error(solver, h, 0.2) > 1
    assert whole_model_error(solver, h / 8, 0.2) < 1
