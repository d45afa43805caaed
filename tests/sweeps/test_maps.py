"""Stability maps by running: the verdicts of the spectral radius, and their pictures."""

import numpy as np
import pytest
from tests.sweeps.models import oscillator, pendulum

import cosolve as cs

STIFF = np.geomspace(3e2, 3e5, 9)
DAMPED = np.linspace(0.5, 20.0, 5)


@pytest.fixture(scope="module")
def runs():
    with np.errstate(all="ignore"):
        return cs.sweep(
            oscillator,
            {"ck": STIFF, "dk": DAMPED},
            methods=[cs.Jacobi(0), cs.Jacobi(1), cs.SemiImplicit(1)],
            steps=2e-3,
            t_end=20.0,
            record=["one.x"],
        )


@pytest.mark.parametrize("method", [cs.Jacobi(0), cs.Jacobi(1), cs.SemiImplicit(1)], ids=repr)
def test_runs_grow_where_the_spectral_radius_says_so(runs, method) -> None:
    """10 000 steps multiply a mode by radius^10000: clear of the limit, the end tells on which side it is."""
    radius = cs.analysis.stability_map(oscillator, STIFF, DAMPED, method, 2e-3)
    part = runs.sel(coupling=method.label)
    size = np.abs(part["one.x"].values)
    grown = (part["error"].values != "") | (size > 1e3)
    clear = np.abs(radius - 1.0) > 2e-3  # 1.002^10000 = 5e8
    assert clear.sum() > 5
    np.testing.assert_array_equal(grown[clear], (radius > 1.0)[clear])
    if isinstance(method, cs.Jacobi):
        assert 3 < (radius > 1.0)[clear].sum()


def test_picture(runs, tmp_path) -> None:
    path = tmp_path / "map.png"
    figure = cs.plot.plot_map(runs, "ck", "dk", "one.x", coupling="Jacobi(1)", log=True, limit=1.0, path=path)
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_xscale()) == ("ck", "dk", "log")
    assert type(axes.collections[0].norm).__name__ == "LogNorm"  # also where some runs have no value
    assert path.stat().st_size > 5000
    crosses = [line for line in axes.lines if line.get_label() == "failed"]
    assert len(crosses[0].get_xdata()) == len(cs.failed_runs(runs.sel(coupling="Jacobi(1)")))


def test_pictures_that_cannot_be_drawn(runs) -> None:
    with pytest.raises(
        cs.errors.SetupError, match=r"say which coupling, coupling=...; there are Jacobi\(0\), Jacobi\(1\)"
    ):
        cs.plot.plot_map(runs, "ck", "dk")
    with pytest.raises(cs.errors.SetupError, match="there is no dimension 'kc'"):
        cs.plot.plot_map(runs, "kc", "dk", coupling="Jacobi(1)")
    with pytest.raises(cs.errors.SetupError, match=r"coupling has no 'Jacobi\(2\)'; did you mean 'Jacobi\(1\)'\?"):
        cs.plot.plot_map(runs, "ck", "dk", coupling="Jacobi(2)")
    with pytest.raises(cs.errors.SetupError, match=r"there is no quantity 'one.y'; did you mean 'one.x'\?"):
        cs.plot.plot_map(runs, "ck", "dk", "one.y", coupling="Jacobi(1)")
    rows = cs.sweep(pendulum, [{"length": 1.0}], methods=cs.Jacobi(), steps=0.1, t_end=0.2)
    with pytest.raises(cs.errors.SetupError, match="'length' was given row by row; a map needs a full grid"):
        cs.plot.plot_map(rows, "length", "variant", "rod.x")
    with pytest.raises(cs.errors.OutputFileError, match="the map cannot be written"):
        cs.plot.plot_map(runs, "ck", "dk", coupling="Jacobi(1)", path="no/such/folder/map.png")
