"""Tolerances per coupling variable, and a first guess of its own degree."""

import numpy as np
import pytest

import cosolve as cs


def loop() -> cs.System:
    """Two loops that contract by 0.5 and 0.9 per iteration; the slow one carries values near 1e3."""
    fast = cs.Static(lambda t, u: 0.5 * u + 1, inputs=["u"], outputs=["y"])
    slow = cs.Static(lambda t, u: 0.9 * u + 100 * (1 + t), inputs=["u"], outputs=["y"])
    system = cs.System({"fast": fast, "slow": slow})
    system.connect("fast.y", "fast.u")
    system.connect("slow.y", "slow.u")
    return system


def run(**options) -> cs.Result:
    method = cs.Implicit(0, corrector=cs.Relaxation(1.0), max_iterations=500, **options)
    return cs.simulate(loop(), t_end=1.0, step=0.25, method=method)


def last_residuals(result: cs.Result) -> np.ndarray:
    """What one more pass would change, from the recorded values."""
    slow = result["slow.y"][1:]
    return np.abs(0.9 * slow + 100 * (1 + result.t[1:]) - slow)


def test_an_absolute_tolerance_for_one_variable_saves_iterations_and_is_met() -> None:
    strict, loose = run(tol=1e-10), run(tol=1e-10, atol={"slow.y": 1.0})
    assert loose.iterations.sum() < 0.5 * strict.iterations.sum()
    assert last_residuals(strict).max() < 1e-6
    assert 1e-3 < last_residuals(loose).max() <= 1.0
    np.testing.assert_allclose(loose["fast.y"], 2.0, rtol=1e-9)  # the other one is as tight as before


def test_one_absolute_tolerance_for_all() -> None:
    assert run(tol=1e-10, atol=1.0).iterations.sum() <= run(tol=1e-10, atol={"slow.y": 1.0}).iterations.sum()


@pytest.mark.parametrize("atol", [-1.0, np.nan, {"slow.y": -1.0}, {"slow.y": "tight"}])
def test_bad_absolute_tolerances_are_refused(atol) -> None:
    with pytest.raises(cs.errors.SetupError, match="atol must be numbers of at least 0"):
        cs.Implicit(0, atol=atol)


def test_unknown_variables_are_named() -> None:
    with pytest.raises(
        cs.errors.SetupError, match=r"atol names 'slow.x', which is no coupling variable; did you mean 'slow.y'"
    ):
        run(atol={"slow.x": 1.0})


def test_a_better_first_guess_saves_iterations_and_changes_nothing_else() -> None:
    """Held inputs (degree 0) with a linear guess: same solution, fewer iterations on a linear drift."""
    held, guessed = run(tol=1e-12), run(tol=1e-12, predictor=1)
    np.testing.assert_allclose(guessed["slow.y"], held["slow.y"], rtol=1e-9)
    assert guessed.iterations[2:].sum() < 0.2 * held.iterations[2:].sum()
    with pytest.raises(cs.errors.SetupError, match="predictor must be 0, 1, 2"):
        cs.Implicit(0, predictor=-1)


@pytest.mark.parametrize("most", [1, 4])
def test_an_iteration_ends_after_so_many_corrections(most: int) -> None:
    """Relaxed by 0.1 both loops come nearer by a few per cent each time: they neither diverge nor are done soon."""
    method = cs.Implicit(0, tol=1e-9, corrector=cs.Relaxation(0.1), max_iterations=most)
    with pytest.raises(cs.errors.ConvergenceError, match=f"after {most} corrections"):
        cs.simulate(loop(), t_end=1.0, step=0.25, method=method)
