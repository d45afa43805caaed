"""Five subsystems with added mass in a point: Newton's method, and why relaxation fails (Sicklinger (2014), 4.7.2)."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from examples.multi_code import run as example
from examples.multi_code.model import (
    SETTING_1,
    SETTING_2,
    MultiCode,
    monolithic,
    sicklinger,
    system,
    undeformed_jacobian,
)

import cosolve as cs
from cosolve.basics.lu import equilibration
from cosolve.corrector import Aitken, InterfaceProblem, Relaxation, optimal_factor

SETTINGS = pytest.mark.parametrize(
    ("p", "printed"),
    [
        (SETTING_1, example.REFERENCE["setting 1"]),
        pytest.param(SETTING_2, example.REFERENCE["setting 2"], marks=pytest.mark.slow),
    ],
)


def run(p: MultiCode, refresh: str = "iteration") -> cs.Result:
    return _run(p, refresh)


@cache
def _run(p: MultiCode, refresh: str) -> cs.Result:
    return cs.simulate(system(p), t_end=p.t_end, method=sicklinger(refresh), step=p.h)


# -- the method of the source ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.covers("IJ-24")
@pytest.mark.parametrize(("refresh", "average", "most"), [("iteration", 3.767, 4), ("step", 5.008, 6)])
def test_evaluations_per_step(refresh: str, average: float, most: int) -> None:
    """Setting 2, 1000 steps; an evaluation is one sweep over all subsystems, the converged one included."""
    evaluations = run(SETTING_2, refresh).iterations + 1
    assert evaluations.mean() == pytest.approx(average, abs=0.03)
    assert evaluations.max() == most


@pytest.mark.slow
@pytest.mark.covers("IJ-24")
def test_light_fluid_is_almost_linear() -> None:
    evaluations = run(SETTING_1).iterations + 1
    assert evaluations.mean() == pytest.approx(2.003, abs=0.0005)
    assert evaluations.max() == 3


@pytest.mark.covers("IJ-24")
@SETTINGS
def test_displacements_of_the_reference_code(p: MultiCode, printed: tuple[float, ...]) -> None:
    """To the last printed digit."""
    u = run(p)["one.u"]
    assert u[[100, 500, 1000]] == pytest.approx(printed[:3], rel=0, abs=6e-11)
    assert u.max() == pytest.approx(printed[3], rel=0, abs=6e-9)
    assert int(u.argmax()) == (197 if p is SETTING_1 else 215)


@pytest.mark.covers("IJ-24")
@SETTINGS
def test_same_as_monolithic(p: MultiCode, printed: tuple[float, ...]) -> None:
    assert np.abs(run(p)["one.u"] - monolithic(p)).max() <= 1e-10


# -- relaxation ------------------------------------------------------------------------------------------------


@pytest.mark.covers("IJ-25")
def test_eigenvalues_of_both_signs() -> None:
    """No real factor makes the radius of `I - alpha J` less than 1."""
    eigenvalues = np.sort(np.linalg.eigvals(undeformed_jacobian(SETTING_2)).real)
    assert eigenvalues[[0, 4]] == pytest.approx([-8.8752, 8.8752], abs=5e-5)
    assert eigenvalues[1:4] == pytest.approx([4.0e-5, 2.0e-4, 4.0e-3], rel=0.0125)
    light = np.sort(np.linalg.eigvals(undeformed_jacobian(SETTING_1)).real)
    assert light[[0, 4]] == pytest.approx([-1.0, 0.99986], abs=5e-6)
    for alpha in np.r_[-np.logspace(-6, 2, 50), np.logspace(-6, 2, 50)]:
        assert np.abs(1.0 - alpha * eigenvalues).max() > 1.0
    with pytest.raises(cs.errors.SetupError, match="no constant relaxation converges"):
        optimal_factor(eigenvalues)


@pytest.mark.sample(4)
@pytest.mark.covers("IJ-25")
@pytest.mark.parametrize("p", [SETTING_1, SETTING_2], ids=["setting 1", "setting 2"])
@pytest.mark.parametrize("corrector", [Relaxation(1.0), Relaxation(0.1), Relaxation(1e-3), Aitken(0.01), Aitken(1e-3)])
def test_relaxation_is_flagged(p: MultiCode, corrector: cs.Corrector) -> None:
    method = cs.Implicit(degree=0, tol=1e-10, corrector=corrector, max_iterations=500)
    with pytest.raises(cs.errors.ConvergenceError, match="did not converge in the step from t = 0 "):
        cs.simulate(system(p), t_end=p.t_end, method=method, step=p.h)


@pytest.mark.covers("IJ-25")
def test_relaxation_that_crushes_a_truss_says_so() -> None:
    """A large first factor of Aitken leaves the range of the strain measure before any count is exhausted."""
    method = cs.Implicit(degree=0, tol=1e-10, corrector=Aitken(0.1), max_iterations=500, absolute=True)
    with pytest.raises(cs.errors.SubsystemError, match="coupling iteration that does not diverge"):
        cs.simulate(system(), t_end=SETTING_2.t_end, method=method, step=SETTING_2.h)


# -- accuracy and scaling --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.covers("IJ-26")
def test_first_order_in_the_step() -> None:
    """u(0.1) from halved steps; successive differences need no reference (steps: docs/validation/sicklinger.md)."""
    at = [run(replace(SETTING_2, h=0.1 / steps, steps=steps))["one.u"][-1] for steps in (25, 50, 100, 200)]
    differences = np.abs(np.diff(at))
    orders = np.log2(differences[:-1] / differences[1:])
    assert orders == pytest.approx([1.0, 1.0], abs=0.15)


def equilibrated(J: np.ndarray) -> np.ndarray:
    """The reference code's scaling: rows, then columns, divided by roots of their largest entries until all are 1."""
    for _ in range(60):
        J = J / np.sqrt(np.abs(J).max(axis=1))[:, np.newaxis]
        J = J / np.sqrt(np.abs(J).max(axis=0))
    return J


@pytest.mark.covers("IJ-44")
def test_condition_before_and_after_scaling() -> None:
    """The engine's scaling, one pass over columns and one over rows, is no worse than the limit of that code's."""
    J = undeformed_jacobian(SETTING_2)
    assert np.linalg.cond(J) == pytest.approx(4.0134e10, rel=2e-5)
    assert np.linalg.cond(equilibrated(J)) == pytest.approx(17.7, abs=0.05)
    rows, columns = equilibration(J)
    scaled = J / rows[:, np.newaxis] / columns
    assert np.abs(scaled).max(axis=1) == pytest.approx(1.0)
    assert np.linalg.cond(scaled) < 17.7


class Unscaled(cs.Newton):
    """Newton that solves with the interface Jacobian as it is."""

    def correct(self, z: np.ndarray, r: np.ndarray, problem: InterfaceProblem) -> np.ndarray:
        return z - np.linalg.solve(problem.jacobian(), r)


@pytest.mark.covers("IJ-44")
def test_scaling_leaves_the_counts() -> None:
    """The same corrections with and without scaling; rounding decides one step of 200 whose residual is near 1e-10."""
    p = replace(SETTING_2, steps=200)
    method = cs.Implicit(degree=0, tol=1e-10, corrector=Unscaled(), absolute=True)
    unscaled = cs.simulate(system(p), t_end=p.t_end, method=method, step=p.h)
    change = unscaled.iterations - run(p).iterations
    assert np.count_nonzero(change) <= 1
    assert np.abs(change).max() <= 1


# -- the example -----------------------------------------------------------------------------------------------


def test_force_residual_dominates_and_pictures(tmp_path: Path) -> None:
    """Sicklinger (2014), 4.7.2: R1 is the residual that converges last."""
    found = [example.run_row(row, steps=10) for row in example.ROWS]
    for residuals in found[0].residuals:
        assert all(r.argmax() == 0 for r in residuals[1:-1])
    assert example.table(found).splitlines()[1].split()[:5] == ["setting", "2", "IJCSA", "3.7", "3.767"]
    example.draw_motion(tmp_path / "motion.png", found)
    example.draw_iterations(tmp_path / "iterations.png", found)
    for name in ("motion.png", "iterations.png"):
        assert (tmp_path / name).stat().st_size > 10_000
