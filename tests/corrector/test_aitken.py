"""Aitken's dynamic relaxation: exact for linear scalars, 1092 evaluations on the trusses, safe where nothing moves."""

import numpy as np
import pytest
from examples.truss_truss.model import SOURCE, displacement_truss, force_truss, monolithic

import cosolve as cs
from cosolve.corrector import Aitken


@pytest.mark.covers("IJ-07")
@pytest.mark.parametrize("vector", [True, False])
@pytest.mark.parametrize("slope", [0.3, 4.0, -2.5])
def test_a_linear_scalar_problem_is_solved_at_the_third_evaluation(vector, slope):
    aitken = Aitken(initial=0.1, vector=vector)
    aitken.start_run(["z"])
    for start in (2.0, -7.0):  # the factor begins anew in every step
        aitken.start_step()
        z = np.array([start])
        for _ in range(2):
            z = aitken.correct(z, slope * z - 1.0, None)
        assert abs(slope * z[0] - 1.0) < 1e-14 * abs(start)


@pytest.mark.covers("IJ-07")
def test_the_scalar_form_solves_every_row_by_itself():
    slopes = np.array([0.5, 2.0, 7.0])
    aitken = Aitken(initial=0.1, vector=False)
    aitken.start_run(["a", "b", "c"])
    aitken.start_step()
    z = np.zeros(3)
    for _ in range(2):
        z = aitken.correct(z, slopes * z - 1.0, None)
    assert slopes * z == pytest.approx(np.ones(3), abs=1e-14)


@pytest.mark.covers("IJ-07")
def test_the_vector_form_follows_its_formula():
    rng = np.random.default_rng(3)
    A, b = np.eye(4) + 0.2 * rng.normal(size=(4, 4)), rng.normal(size=4)
    aitken = Aitken(initial=0.3)
    aitken.start_run(list("abcd"))
    aitken.start_step()
    z, alpha, old = np.zeros(4), 0.3, None
    expected = z
    for _ in range(6):
        r = A @ expected - b
        if old is not None:
            alpha *= old @ (old - r) / np.sum((old - r) ** 2)
        expected, old = expected - alpha * r, r
        z = aitken.correct(z, A @ z - b, None)
        assert z == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
@pytest.mark.covers("IJ-07")
def test_the_trusses_take_1092_evaluations():
    system = cs.System({"one": force_truss(), "two": displacement_truss()})
    system.connect("one.u", "two.u")
    system.connect("two.f", "one.f")
    method = cs.Implicit(degree=0, tol=1e-10, corrector=Aitken(initial=0.1), sweep="gauss-seidel", order=["two", "one"])
    result = cs.simulate(system, t_end=SOURCE.t_end, method=method, step=SOURCE.h)
    evaluations = result.iterations + 1
    assert evaluations.sum() == 1092
    assert list(evaluations[:3]) == [6, 6, 6]
    assert np.abs(result["one.u"] - monolithic()).max() < 1e-10


def test_residuals_that_do_not_move_leave_the_factor_alone():
    aitken = Aitken(initial=0.25)
    aitken.start_run(["a", "b"])
    aitken.start_step()
    stuck = np.array([1.0, -1.0])
    for _ in range(3):
        z = aitken.correct(np.zeros(2), stuck, None)
        assert z == pytest.approx(-0.25 * stuck)
    assert aitken.factor == pytest.approx([0.25])


def test_a_carried_factor_begins_the_next_step():
    aitken = Aitken(initial=0.1, carry=True)
    aitken.start_run(["z"])
    aitken.start_step()
    z = np.array([3.0])
    for _ in range(2):
        z = aitken.correct(z, 4.0 * z, None)
    aitken.start_step()
    assert abs(aitken.correct(np.array([1.0]), np.array([4.0]), None)[0]) < 1e-15
