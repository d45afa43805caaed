"""Method and step from a tolerance, where the coupling is stiff and of first order."""

import numpy as np
import pytest
from tests.signal.models import driven, network, two_capacities

import cosolve as cs


def relative_error(case, result) -> float:
    exact = case.exact(result.t)
    rows = range(len(case.states)) if case.rows is None else case.rows
    pairs = zip(case.states, rows, strict=True)
    return max(np.abs(result[name] - exact[:, k]).max() / np.abs(exact[:, k]).max() for name, k in pairs)


@pytest.mark.parametrize("case", [two_capacities(1e4), driven(1e4), network(3)], ids=["jump", "driven", "network"])
def test_a_stiff_coupling_is_run_by_a_method_that_damps(case):
    """Degree 2 of past values took 3375, 3384 and (explicitly) 55 708 steps, and up to a million subsystem steps."""
    result = cs.simulate(case.system, t_end=1.0, rtol=1e-4)
    assert relative_error(case, result) < 1e-4
    assert result.stats.steps < 400
    assert result.choice.spent < 40_000
    assert result.choice.method == cs.SemiImplicit(2, signal="bdf")


def test_where_nothing_is_stiff_nothing_changes():
    result = cs.simulate(driven(1.0).system, t_end=1.0, rtol=1e-4)
    # more than one trial where the first took fewer steps than its pilot's error calls for
    assert {trial.method.label for trial in result.choice.trials} == {"GaussSeidel(3)"}
    assert result.choice.method.label == "GaussSeidel(3)"


@pytest.mark.slow
@pytest.mark.parametrize("rtol", [1e-3, 1e-5])
def test_random_networks_meet_their_tolerance(rtol):
    """Or say that they do not: 40 of them."""
    missed = []
    for seed in range(40):
        case = network(500 + seed)
        result = cs.simulate(case.system, t_end=1.0, rtol=rtol)
        if relative_error(case, result) > rtol and not result.stats.doubt:
            missed.append(seed)
    assert missed == []
