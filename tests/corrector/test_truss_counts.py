"""Interface evaluations on the trusses: Jacobians from various sources, and the accelerators beside them."""

import numpy as np
import pytest
from examples.truss_truss.model import SOURCE, monolithic, system

import cosolve as cs
from cosolve.corrector import Anderson, Broyden, IqnIls, IqnImvj, LineSearch, NewtonKrylov, Secant

PAIRS = [("force", "displacement"), ("displacement", "force")]


def evaluations(corrector, degree=0, **options):
    method = cs.Implicit(degree=degree, tol=1e-10, absolute=True, corrector=corrector, **options)
    result = cs.simulate(system(), t_end=SOURCE.t_end, method=method, step=SOURCE.h)
    assert np.abs(result["one.u"] - monolithic()).max() < 1e-10
    return int((result.iterations + 1).sum())


@pytest.mark.sample(1)
@pytest.mark.covers("IJ-23")
@pytest.mark.parametrize(
    ("corrector", "options", "expected"),
    [
        (cs.Newton(refresh="step"), {}, 1216),
        (Secant(pairs=PAIRS, initial=0.0), {}, 916),
        pytest.param(Secant(pairs=PAIRS, initial=0.0), {"degree": 1}, 796, marks=pytest.mark.slow),
        pytest.param(cs.Newton(), {"jacobian": "difference", "increment": 1e-6}, 793, marks=pytest.mark.slow),
        pytest.param(Broyden(initial="exact"), {}, 1202, marks=pytest.mark.slow),
        (Broyden(), {}, 1171),
    ],
    ids=["modified", "secant", "secant-foh", "differences", "broyden-exact", "broyden-identity"],
)
def test_other_sources_of_the_jacobian_take_the_counts_of_the_reference_code(corrector, options, expected):
    assert evaluations(corrector, **options) == pytest.approx(expected, rel=0.02)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("corrector", "most"),
    [
        pytest.param(Anderson(), 1500, marks=pytest.mark.slow),
        (IqnIls(), 1050),
        (IqnImvj(), 1050),
        pytest.param(NewtonKrylov(), 800, marks=pytest.mark.slow),
        pytest.param(LineSearch(cs.Newton()), 790, marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_accelerators_reach_the_monolithic_solution(corrector, most):
    assert evaluations(corrector) <= most
