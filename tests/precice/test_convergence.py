"""Convergence measures by hand: four kinds, several data, measures that suffice or are strict."""

import numpy as np
import pytest

from cosolve.precice.config import Measure
from cosolve.precice.convergence import Measures

OLD, NEW = np.array([3.0, 4.0]), np.array([3.3, 4.4])  # change 0.5, size 5.5, ratio 1/11


def one(kind, limit, more=0.0, **flags):
    return Measure(kind, "T", "M", limit, more, **flags)


def other(kind, limit, **flags):
    return Measure(kind, "F", "M", limit, **flags)


TABLE = [
    # measures, does it hold for T (above) and F (unchanged)?
    ("absolute, met", [one("absolute", 0.51)], True),
    ("absolute, missed", [one("absolute", 0.49)], False),
    ("relative, met", [one("relative", 0.091)], True),
    ("relative, missed", [one("relative", 0.0909)], False),
    ("either, by the absolute one", [one("absolute-or-relative", 0.51, 1e-9)], True),
    ("either, by the relative one", [one("absolute-or-relative", 1e-9, 0.091)], True),
    ("either, by none", [one("absolute-or-relative", 0.49, 0.0909)], False),
    ("residual relative, in the first iteration", [one("residual-relative", 0.99)], False),
    ("two data, one missed", [one("absolute", 0.49), other("absolute", 1.0)], False),
    ("two data, the second suffices", [one("absolute", 0.49), other("absolute", 1.0, suffices=True)], True),
    (
        "two data, one suffices but a strict one fails",
        [one("absolute", 0.49, strict=True), other("absolute", 1.0, suffices=True)],
        False,
    ),
    ("two data, both met", [one("absolute", 0.51), other("relative", 1e-9)], True),
]


@pytest.mark.covers("PX-08")
@pytest.mark.parametrize(("measures", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_measures(measures, expected):
    pairs = {("M", "T"): (NEW, OLD), ("M", "F"): (np.array([7.0]), np.array([7.0]))}
    assert Measures(measures).met(pairs) is expected


@pytest.mark.covers("PX-08")
def test_a_residual_falls_below_a_part_of_the_first_one_of_the_window():
    measures = Measures([one("residual-relative", 0.1)])
    changes = [1.0, 0.2, 0.1, 0.099, 0.5]
    assert [measures.met({("M", "T"): (np.array([c]), np.zeros(1))}) for c in changes] == [
        False,
        False,
        False,
        True,
        False,
    ]
    measures.start_window()
    assert not measures.met({("M", "T"): (np.array([0.05]), np.zeros(1))})


@pytest.mark.covers("PX-08")
def test_a_zero_state_has_converged_and_nothing_divides_by_zero():
    nothing = {("M", "T"): (np.zeros(2), np.zeros(2))}
    for kind in ("absolute", "relative", "residual-relative", "absolute-or-relative"):
        assert Measures([one(kind, 1e-9)]).met(nothing)


@pytest.mark.covers("PX-08")
def test_without_measures_nothing_converges():
    assert not Measures([]).met({})


@pytest.mark.covers("PX-08")
def test_the_names_of_strict_failures():
    measures = Measures([one("absolute", 0.1, strict=True), other("absolute", 1.0)])
    measures.met({("M", "T"): (NEW, OLD), ("M", "F"): (NEW, NEW)})
    assert measures.failed_strict == ["T"]
