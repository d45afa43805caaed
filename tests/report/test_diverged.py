"""Values beyond what can be drawn: the line ends there, and the figure says when."""

import re

import numpy as np
import pytest

from cosolve.report.plots import Line, plot


def _path(svg):
    """Abscissae and ordinates of the longest line of a drawing."""
    paths = re.findall(r'<path d="(M [^"]*)" clip-path', svg)
    numbers = [np.array(re.findall(r"-?[\d.]+", path), dtype=float).reshape(-1, 2) for path in paths]
    return max(numbers, key=len)


def test_a_line_ends_where_it_is_too_large():
    t = np.linspace(0.0, 717.0, 718)
    svg = plot([Line(t, 10.0 ** (t * 150 / 350))], title="ring.x", scale="auto")
    assert "values exceed 10¹⁵⁰ from t = 351 on" in svg
    whole = plot([Line(t, 10.0 ** (t * 150 / 750))], title="ring.x", scale="auto")
    assert "exceed" not in whole
    (first, *_, last), (begin, *_, end) = _path(svg)[:, 0], _path(whole)[:, 0]
    assert (last - first) / (end - begin) == pytest.approx(350 / 717, rel=0.02)  # no plateau up to the right border


def test_a_line_that_is_too_large_from_the_start():
    svg = plot([Line(np.array([0.0, 1.0]), np.array([1e200, 1e300]))], title="ring.x", scale="auto")
    assert "from t = 0 on" in svg
