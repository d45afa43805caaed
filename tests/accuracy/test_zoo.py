"""The references of the zoo are what they claim to be."""

import numpy as np
import pytest
from examples.two_mass.model import lu
from tests.accuracy.zoo import CASES, SIXTEEN, contact, random_networks

import cosolve as cs


def test_the_undivided_system_is_the_exact_one():
    times = np.linspace(0.0, 0.5, 23)
    right, found = lu().exact(times), CASES["lu_FD"].truth(times)
    for k, name in enumerate(("one.x", "one.v", "two.x", "two.v")):
        assert np.abs(found[name][:, 0] - right[:, k]).max() < 1e-10 * np.abs(right[:, k]).max()


def test_kinks_are_not_stepped_over():
    """Impacts of the ball, between which it swings freely: x'' = -5 x conserves its energy."""
    t = np.linspace(0.0, CASES["contact"].t_end, 801)
    found = CASES["contact"].truth(t)
    x, v, plate = (found[name][:, 0] for name in ("ball.x", "ball.v", "plate.x"))
    touching = plate > x
    assert np.count_nonzero(np.diff(touching.astype(int)) == 1) >= 2
    free = np.flatnonzero(~touching[:-1] & ~touching[1:])
    energy = 0.5 * v**2 + 2.5 * x**2
    assert np.abs(np.diff(energy)[free]).max() < 1e-10


def test_sixteen_have_a_name_each_and_networks_are_repeatable():
    assert len(SIXTEEN) == len(set(SIXTEEN) & set(CASES)) == 16
    one, again = random_networks(7, 2), random_networks(7, 2)
    for a, b in zip(one, again, strict=True):
        runs = [cs.simulate(case.build(), t_end=0.1, method=cs.Jacobi(1), step=0.01) for case in (a, b)]
        assert np.array_equal(runs[0].column("y"), runs[1].column("y"))
    assert str(one[0].build()) != str(one[1].build())


@pytest.mark.parametrize("name", ["tanks", "contact"])
def test_runs_come_closer_to_the_reference_with_smaller_steps(name):
    case, errors = CASES[name], []
    for N in (256, 1024):
        result = cs.simulate(case.build(), t_end=case.t_end, method=cs.Jacobi(1), step=case.t_end / N)
        errors.append(case.error(result))
    assert errors[1] < errors[0] / 4
    assert contact().plan().n_z == 1
