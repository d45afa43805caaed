"""An interface Jacobian that is kept for the run belongs to one length and one degree of the step."""

import numpy as np
import pytest
from examples.two_mass.model import lu, split

import cosolve as cs

H, T_END = 1e-3, 0.02
MODEL = lu()


def past(t):
    x1, v1, x2, v2 = MODEL.exact(t)[0]
    return {"one.x": x1, "one.v": v1, "two.x": x2, "two.v": v2}


STARTS = {
    "rising": cs.RisingDegree(),
    "graded": cs.GradedStart(ratio=16),
    "known": cs.KnownHistory(past),
}


def run(kind, method, startup, t_end=T_END):
    return cs.simulate(split(kind, MODEL), t_end=t_end, method=method, step=H, startup=startup)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", ["F/F", "D/F"])
def test_a_kept_jacobian_gives_the_results_of_a_renewed_one(kind, degree, start):
    """On a linear pair one correction solves every step, with the Jacobian of its own length and degree.

    The first steps have lower degrees (`RisingDegree`) or other lengths (`GradedStart`) than the rest of the run.
    """
    kept, renewed = (run(kind, cs.SemiImplicit(degree, refresh=each), STARTS[start]) for each in ("run", "step"))
    assert renewed.residual.max() < 1e-8
    assert kept.residual.max() < 1e-8
    assert (kept.iterations == renewed.iterations).all()
    assert np.abs(kept["one.x"] - renewed["one.x"]).max() < 1e-12


def test_a_kept_jacobian_is_formed_anew_for_a_shorter_last_step():
    """The same with 20.5 steps: the last one is shorter."""
    kept, renewed = (run("F/F", cs.SemiImplicit(2, refresh=each), None, 20.5 * H) for each in ("run", "step"))
    assert np.diff(kept.t)[-1] == pytest.approx(0.5 * H)
    assert kept.residual.max() < 1e-8
    assert np.abs(kept["one.x"] - renewed["one.x"]).max() < 1e-12
