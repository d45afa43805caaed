"""The integrator alone: orders, tolerances, DAEs, repetition of steps, and what it tells the problem it solves."""

import numpy as np
import pytest

import cosolve as cs
from cosolve.integrator.bdf import Bdf, RightHandSide, integrate_bdf
from cosolve.integrator.bdf_control import BdfControl


def forced(t: float, x: np.ndarray) -> np.ndarray:
    """Prothero-Robinson: the solution is cos t whatever the stiffness."""
    return -5.0 * (x - np.cos(t)) - np.sin(t)


def pendulum(t: float, x: np.ndarray) -> np.ndarray:
    return np.array([x[1], -np.sin(x[0])])


def tight(t_end: float) -> np.ndarray:
    from scipy.integrate import solve_ivp

    return solve_ivp(pendulum, (0, t_end), [2.0, 0.0], method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_fixed_steps_converge_with_their_order(order: int) -> None:
    """Known past, so the order shows from the first step on: slope = order within 0.1."""
    steps = [0.04, 0.02, 0.01]
    errors = []
    for h in steps:
        control = BdfControl(order=order, fixed_order=True, step=h, rtol=1e-13)
        found = integrate_bdf(forced, (0.0, 2.0), [1.0], control, past=np.cos)
        assert len(found.t) == round(2.0 / h) + 1
        assert found.t[-1] == 2.0
        errors.append(np.abs(found.x[:, 0] - np.cos(found.t)).max())
    assert cs.analysis.convergence_order(steps, errors) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_the_order_survives_changing_steps(order: int) -> None:
    """Steps alternating by a factor 1.6: variable coefficients keep the order, fixed ones would lose it."""

    def error(h: float) -> float:
        control = BdfControl(order=order, fixed_order=True, first_step=h)
        solver = Bdf(RightHandSide(forced), control)
        solver.start(0.0, np.array([1.0]), np.array([0.0]), past=np.cos)
        solver.control = BdfControl(order=order, fixed_order=True, rtol=1e3, newton=1e-15)  # accepts whatever it gets
        n, worst = 0, 0.0
        while solver.t < 2.0:
            solver.h = h * (1.6 if n % 2 else 1.0)
            solver.step(2.0)
            n, worst = n + 1, max(worst, abs(solver.x[0] - np.cos(solver.t)))
        return worst

    steps = [0.04, 0.02, 0.01]
    assert cs.analysis.convergence_order(steps, [error(h) for h in steps]) == pytest.approx(order, abs=0.25)


@pytest.mark.sample(1)
@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_errors_follow_the_tolerance(order: int) -> None:
    """Error per unit of tolerance stays within two decades from 1e-4 to 1e-9; more order, fewer steps."""
    exact = tight(10.0)
    tolerances = np.array([1e-4, 1e-6, 1e-8] if order < 4 else [1e-4, 1e-6, 1e-8, 1e-9])
    errors = []
    for rtol in tolerances:
        found = integrate_bdf(pendulum, (0.0, 10.0), [2.0, 0.0], BdfControl(rtol=rtol, order=order))
        assert found.t[-1] == 10.0
        errors.append(np.abs(found.x[-1] - exact).max())
    # with order k an error per step of tol means an error per unit of time of about tol^(k/(k+1))
    assert cs.analysis.convergence_order(tolerances, errors) == pytest.approx(order / (order + 1), abs=0.2)
    assert all(e < 300 * rtol ** (order / (order + 1)) for e, rtol in zip(errors, tolerances, strict=True))


@pytest.mark.slow
def test_higher_orders_need_fewer_steps() -> None:
    steps = [
        integrate_bdf(pendulum, (0.0, 10.0), [2.0, 0.0], BdfControl(rtol=1e-6, order=k)).counts.steps
        for k in (1, 2, 3, 5)
    ]
    assert steps == sorted(steps, reverse=True)
    assert steps[-1] < steps[1] / 3


def test_stiff_reference_problem() -> None:
    """Robertson's kinetics as ODE, against SciPy's Radau at 1e-11."""
    from scipy.integrate import solve_ivp

    def kinetics(t: float, x: np.ndarray) -> np.ndarray:
        slow, fast, turn = 0.04 * x[0], 1e4 * x[1] * x[2], 3e7 * x[1] ** 2
        return np.array([-slow + fast, slow - fast - turn, turn])

    exact = solve_ivp(kinetics, (0, 400.0), [1.0, 0, 0], method="Radau", rtol=1e-11, atol=1e-14).y[:, -1]
    control = BdfControl(rtol=1e-6, atol=(1e-8, 1e-12, 1e-8))
    found = integrate_bdf(kinetics, (0.0, 400.0), [1.0, 0.0, 0.0], control)
    np.testing.assert_allclose(found.x[-1], exact, rtol=1e-4)
    assert found.counts.steps < 400


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_index_one_dae_converges_with_its_order(order: int) -> None:
    """`x' = -x + y, 0 = y - cos(t) - x^2 / 4`: both states at full order against the ODE with y eliminated."""
    from scipy.integrate import solve_ivp

    def ode(t: float, x: np.ndarray) -> np.ndarray:
        return -x + np.cos(t) + x**2 / 4

    exact = solve_ivp(ode, (-1.0, 2.0), [0.3], method="DOP853", rtol=1e-13, atol=1e-14, dense_output=True).sol

    def both(t: float) -> np.ndarray:
        x = exact(t)[0]
        return np.array([x, np.cos(t) + x**2 / 4]).T

    def dae(t: float, z: np.ndarray) -> np.ndarray:
        return np.array([-z[0] + z[1], z[1] - np.cos(t) - z[0] ** 2 / 4])

    steps, errors = [0.04, 0.02, 0.01], []
    for h in steps:
        control = BdfControl(order=order, fixed_order=True, step=h, rtol=1e-12)
        found = integrate_bdf(dae, (0.0, 2.0), both(0.0), control, E=np.diag([1.0, 0.0]), past=both)
        errors.append(np.abs(found.x - both(found.t)).max())
    assert cs.analysis.convergence_order(steps, errors) == pytest.approx(order, abs=0.15)


def test_variable_step_dae_meets_its_tolerance() -> None:
    def dae(t: float, z: np.ndarray) -> np.ndarray:
        return np.array([-z[0] + z[1], z[1] - 2.0 * np.cos(3 * t)])

    found = integrate_bdf(dae, (0.0, 5.0), [0.0, 2.0], BdfControl(rtol=1e-7), E=np.diag([1.0, 0.0]))
    t = 5.0
    exact = 0.2 * (np.cos(3 * t) + 3 * np.sin(3 * t) - np.exp(-t))
    assert found.x[-1, 0] == pytest.approx(exact, abs=2e-6)
    assert found.x[-1, 1] == pytest.approx(2 * np.cos(15.0), abs=1e-9)


class ReferenceComparison(RightHandSide):
    """Writes down what the integrator tells it."""

    def __init__(self, function) -> None:
        super().__init__(function)
        self.log: list[tuple[str, float]] = []

    def predicted(self, t: float, x: np.ndarray) -> None:
        self.log.append(("predicted", t))

    def evaluate(self, t: float, x: np.ndarray, rebuild: bool):
        self.log.append(("rebuild" if rebuild else "iterate", t))
        return super().evaluate(t, x, rebuild)

    def rejected(self) -> None:
        self.log.append(("rejected", np.nan))


def test_problem_sees_every_predictor_iterate_and_rejection() -> None:
    witness = ReferenceComparison(lambda t, x: np.array([-1e3 * (x[0] - (t > 0.5)) ** 3 - x[0]]))
    solver = Bdf(witness, BdfControl(rtol=1e-5, max_step=0.1))
    solver.start(0.0, np.array([0.5]), np.array([-125.5]))
    while solver.t < 1.0:
        solver.step(1.0)
    kinds = [kind for kind, _ in witness.log]
    counts = solver.counts
    assert counts.repetitions > 0
    assert kinds.count("predicted") == counts.steps + counts.repetitions
    assert kinds.count("rejected") == counts.repetitions
    assert kinds.count("rebuild") == counts.jacobians
    assert kinds.count("rebuild") + kinds.count("iterate") == counts.iterations
    assert kinds[0] == "predicted"
    times = [t for kind, t in witness.log if kind == "predicted"]
    assert witness.log[1][1] == times[0]


@pytest.mark.covers("SC-36")
@pytest.mark.parametrize(("pattern", "per_attempt"), [("TFFFTFFFTF", "once"), ("TTTTTTTTTT", "always")])
def test_pattern_says_when_the_jacobian_is_rebuilt(pattern: str, per_attempt: str) -> None:
    witness = ReferenceComparison(pendulum)
    solver = Bdf(witness, BdfControl(rtol=1e-6, pattern=pattern, newton=1e-6))
    solver.start(0.0, np.array([2.0, 0.0]), pendulum(0.0, np.array([2.0, 0.0])))
    while solver.t < 5.0:
        solver.step(5.0)
    attempt: list[str] = []
    rebuilt = 0
    for kind, _ in [*witness.log, ("predicted", np.nan)]:
        if kind == "predicted":
            assert attempt == ["rebuild" if mark == "T" else "iterate" for mark in pattern[: len(attempt)]]
            rebuilt += attempt.count("rebuild")
            attempt = []
        elif kind != "rejected":
            attempt.append(kind)
    assert rebuilt == solver.counts.jacobians
    if per_attempt == "always":
        assert solver.counts.jacobians == solver.counts.iterations
    else:
        assert solver.counts.jacobians < 0.6 * solver.counts.iterations


def test_corrector_that_does_not_converge_shortens_the_step() -> None:
    """A wrong Jacobian makes the iteration contract only for short steps."""
    problem = RightHandSide(lambda t, x: -200.0 * x, jacobian=lambda t, x: np.array([[0.0]]))
    solver = Bdf(problem, BdfControl(rtol=1e-4, first_step=0.1))
    solver.start(0.0, np.array([1.0]), np.array([-200.0]))
    while solver.t < 0.05:
        solver.step(0.05)
    assert solver.counts.failed_corrections > 0
    assert solver.x[0] == pytest.approx(np.exp(-10.0), abs=2e-3)


def test_a_jump_is_passed() -> None:
    found = integrate_bdf(lambda t, x: np.array([1.0 if t < 0.3 else -1.0]), (0.0, 1.0), [0.0], BdfControl(rtol=1e-6))
    assert found.x[-1, 0] == pytest.approx(-0.4, abs=1e-4)
    assert found.counts.failed_tests > 3


def test_step_may_pass_a_matrix_that_is_singular_for_one_step_length() -> None:
    """`x' = 10 x` with h = 0.1 makes `1 / h - 10` zero: that length fails, a shorter one is right."""
    found = integrate_bdf(lambda t, x: 10.0 * x, (0.0, 0.3), [1.0], BdfControl(rtol=1e-5, order=1, first_step=0.1))
    assert found.counts.failed_corrections == 1
    assert found.x[-1, 0] == pytest.approx(np.exp(3.0), rel=0.05)


def test_index_two_is_refused_with_a_sentence() -> None:
    """`0 = x - 1` does not determine the algebraic state y."""
    with pytest.raises(cs.errors.StepSizeError, match=r"alpha E - df/dx is singular"):
        integrate_bdf(lambda t, z: np.array([0.0 * z[1], z[0] - 1.0]), (0.0, 1.0), [1.0, 0.0], E=np.diag([1.0, 0.0]))


def test_fixed_step_that_does_not_converge_is_refused() -> None:
    with pytest.raises(cs.errors.ConvergenceError, match=r"fixed step 0\.5; use a smaller h"):
        integrate_bdf(
            lambda t, x: -200.0 * x, (0.0, 1.0), [1.0], BdfControl(step=0.5), jacobian=lambda t, x: np.array([[0.0]])
        )


def test_nan_is_named() -> None:
    with pytest.raises(cs.errors.NonFiniteError, match="returned nan for state 0"):
        integrate_bdf(lambda t, x: np.array([np.nan if t > 0.5 else 1.0]), (0.0, 1.0), [0.0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": 6}, "order must be 1, 2, 3, 4 or 5"),
        ({"rtol": 0.0}, "rtol must be positive"),
        ({"atol": (1e-3, -1.0)}, "atol must be positive"),
        ({"step": -1.0}, "step must be a positive step size"),
        ({"min_step": 1.0, "max_step": 0.1}, "0 <= min_step <= max_step"),
        ({"pattern": "TFX"}, "pattern is a row of T"),
    ],
)
def test_bad_settings_are_refused(options: dict, words: str) -> None:
    with pytest.raises(cs.errors.SetupError, match=words):
        BdfControl(**options)
