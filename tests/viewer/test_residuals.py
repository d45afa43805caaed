"""What every step had to correct in each coupling variable: from the record alone, for every engine and file."""

import numpy as np
import pytest

import cosolve as cs
from cosolve.viewer.result_view import ResultView


def shown(result, name):
    result_view = ResultView(result, "run")
    signal = next(one for one in result_view.signals.all if one.group == "residuals" and one.name == name)
    return result_view, signal.id, result_view.read("residuals", 0, len(result.t))[:, signal.part[0]]


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_it_is_the_distance_from_the_extrapolation(masses, degree):
    """With equal steps that are the differences of order `degree + 1` of the recorded coupling variable."""
    result = cs.simulate(masses, t_end=0.5, method=cs.SemiImplicit(degree=degree), step=0.01)
    result_view, address, found = shown(result, "spring")
    expected = np.diff(result["spring"], degree + 1)
    assert np.isnan(found[: degree + 1]).all()
    assert found[degree + 1 :] == pytest.approx(expected, abs=1e-12)
    for first, last in ((0, 3), (1, 20), (17, 51)):  # parts of it are the same numbers
        part = result_view.values(address, first, last)
        assert part == pytest.approx(found[first:last], abs=1e-12, nan_ok=True)


def test_it_shrinks_with_the_step_as_the_extrapolation_does(masses):
    """Of the order of the extrapolation: with half the step a quarter, for linear extrapolation."""
    largest = []
    for H in (0.02, 0.01):
        result = cs.simulate(masses, t_end=1.0, method=cs.Jacobi(degree=1), step=H)
        largest.append(np.nanmax(np.abs(shown(result, "spring")[2])))
    assert largest[0] / largest[1] == pytest.approx(4.0, rel=0.15)


def test_thinned_rows_have_none_and_edges_know_theirs(masses, tmp_path):
    thin = cs.simulate(masses, t_end=0.5, method=cs.Jacobi(degree=1), step=0.01, every=5)
    assert np.isnan(shown(thin, "spring")[2]).all()
    path = cs.simulate(masses, t_end=0.5, method=cs.Jacobi(degree=1), step=0.01).save(tmp_path / "run.h5")
    result_view = ResultView(cs.load_result(path), "run")
    (edge,) = result_view.about()["coupling"]["edges"]
    (one,) = edge["residuals"]
    window = result_view.window([one["value"], one["residual"]], 0.0, 0.5, 1000)
    assert np.isfinite(window.slots.low[2:]).all()
