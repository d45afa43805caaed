"""The line search: hard starts converge, easy ones cost nothing more, and a failing subsystem shortens the step."""

import numpy as np
import pytest

import cosolve as cs
from cosolve.corrector import LineSearch


class Bend(cs.Subsystem):
    """`y = function(u)`; no `output`, so that the start value is where the first step begins."""

    inputs, outputs = ("u",), ("y",)

    def __init__(self, function):
        self.function = function

    def start(self, t0):
        return 0.0

    def advance(self, t0, t1, u):
        return self.function(u.end[0])

    def save(self):
        return None

    def restore(self, state):
        pass


def solve(function, start, corrector, **options):
    """Find u with function(u) = 0."""
    system = cs.System({"bend": Bend(function)})
    system.equations({"u": "bend.u"}, lambda u, y: y, of="bend.y", initial={"u": start})
    method = cs.Implicit(degree=0, tol=1e-12, corrector=corrector, increment=1e-7, **options)
    return cs.simulate(system, t_end=1.0, method=method, step=1.0)


@pytest.mark.parametrize("start", [3.0, 10.0, -1e3])
def test_a_hard_start_converges(start):
    with pytest.raises(cs.errors.SimulationError):
        solve(np.arctan, start, cs.Newton())
    assert abs(solve(np.arctan, start, LineSearch(cs.Newton()))["u"][-1]) < 1e-12


def test_steps_that_decrease_the_residual_cost_nothing_more():
    plain, damped = (solve(lambda u: u**3 + u - 3.0, 1.5, c) for c in (cs.Newton(), LineSearch(cs.Newton())))
    assert (plain["u"] == damped["u"]).all()
    assert plain.stats.calls == damped.stats.calls


def test_a_step_into_a_failure_is_shortened():
    def logarithm(u):
        if u <= 0:
            raise ValueError("logarithm of nothing")
        return np.log(u)

    with pytest.raises(cs.errors.SubsystemError, match="logarithm"):
        solve(logarithm, 20.0, cs.Newton())
    assert solve(logarithm, 20.0, LineSearch(cs.Newton()))["u"][-1] == pytest.approx(1.0, abs=1e-12)


def test_the_search_is_bounded():
    with pytest.raises(cs.errors.ConvergenceError, match="did not converge"):
        solve(lambda u: u * u + 1.0, 2.0, LineSearch(cs.Newton(), halvings=3), max_iterations=20)
