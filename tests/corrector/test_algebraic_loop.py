"""The algebraic loop of appendix A: no special treatment in residual form."""

import numpy as np
import pytest
from examples.algebraic_loop.model import STARTS, U1, U2, run, static_system

import cosolve as cs
from cosolve.corrector import Anderson, Broyden, IqnIls, NewtonKrylov


@pytest.mark.covers("IJ-29")
@pytest.mark.parametrize(("start", "corrections"), list(zip(STARTS, (5, 5, 6), strict=True)))
def test_newton_solves_the_loop_from_three_starts(start, corrections):
    found, taken = run(start)
    assert found == pytest.approx(U2, abs=1e-14)
    assert taken == corrections


@pytest.mark.covers("IJ-29")
@pytest.mark.parametrize("corrector", [Broyden(initial="exact"), NewtonKrylov(), Anderson(), IqnIls()], ids=repr)
def test_others_find_the_same_solution(corrector):
    assert run((1.0, 1.0), corrector, tol=1e-13)[0] == pytest.approx(U2, abs=1e-13)


@pytest.mark.covers("IJ-29")
def test_static_blocks_need_no_jacobian():
    result = cs.simulate(static_system(), t_end=1.0, method=cs.Implicit(degree=0, tol=1e-14), step=0.5)
    assert np.abs(result["U2"][1:] - U2).max() < 1e-14
    assert np.abs(result["U1"][1:] - U1).max() < 1e-14


def test_following_the_signals_does_not_converge():
    u = U2 + 1e-6
    for _ in range(3):
        u = np.sin(np.cos(u)) - u
    assert abs(u - U2) / 1e-6 == pytest.approx(1.2345**3, rel=1e-3)
