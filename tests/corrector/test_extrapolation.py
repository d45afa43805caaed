"""ZOH and FOH as the first guess of a step."""

import numpy as np
import pytest
from examples.truss_truss.model import SOURCE, monolithic, system

import cosolve as cs
from cosolve.signal import History


@pytest.mark.covers("IJ-08")
def test_foh_is_exact_for_inputs_linear_in_time_on_any_grid():
    rng = np.random.default_rng(2)
    slope, offset = rng.normal(size=3), rng.normal(size=3)
    t, history = 0.0, History(offset, depth=2)
    for H in (0.1, 0.03, 0.2, 0.07, 0.07):
        guess = history.extrapolate(1, H).sum(axis=0)
        exact = offset + slope * (t + H)
        if t > 0:
            assert np.abs(guess - exact).max() < 1e-14
        else:
            assert (guess == offset).all()  # the first step has nothing but ZOH
        assert (history.extrapolate(0, H).sum(axis=0) == history.newest).all()
        t += H
        history.push(offset + slope * t, H)


@pytest.mark.sample(1)
@pytest.mark.covers("IJ-08")
@pytest.mark.parametrize(("degree", "evaluations"), [(0, 785), (1, 633)])
def test_foh_saves_evaluations_on_the_trusses(degree, evaluations):
    method = cs.Implicit(degree=degree, tol=1e-10, absolute=True, corrector=cs.Newton())
    result = cs.simulate(system(), t_end=SOURCE.t_end, method=method, step=SOURCE.h)
    assert (result.iterations + 1).sum() == evaluations
    assert np.abs(result["one.u"] - monolithic()).max() < 1e-11
