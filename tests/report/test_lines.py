"""How a line of a report is drawn: what is asked for arrives, and a single point can be seen."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from cosolve.report import plots
from cosolve.report.plots import Line

T = np.linspace(0.0, 1.0, 5)


def drawn(line, scale="linear", steps=False):
    axes = Figure().add_subplot()
    plots._draw(axes, line, scale, steps)
    return axes


@pytest.mark.parametrize("steps", [False, True])
def test_what_is_asked_for_arrives(steps):
    axes = drawn(Line(T, T**2, "x", 1, "--", "s", 2.5, band=0.1 + T), steps=steps)
    (found,) = axes.lines
    assert found.get_xdata().tolist() == T.tolist()
    assert found.get_ydata().tolist() == (T**2).tolist()
    assert (found.get_label(), found.get_linestyle(), found.get_marker(), found.get_linewidth()) == (
        "x",
        "--",
        "s",
        2.5,
    )
    assert to_hex(found.get_color()) == to_hex(plots._SERIES[1])
    assert found.get_drawstyle() == ("steps-pre" if steps else "default")
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].max() == pytest.approx(2.1)
    assert corners[:, 1].min() == pytest.approx(0.5**2 - 0.1 - 0.5)


@pytest.mark.parametrize(("values", "marker"), [([1.0], "o"), ([1.0, np.nan], "o"), ([1.0, 2.0], "")])
def test_a_single_point_can_be_seen(values, marker):
    (found,) = drawn(Line(T[: len(values)], np.array(values))).lines
    assert found.get_marker() == marker


def test_what_cannot_be_shown_is_left_out():
    assert not drawn(Line(T, np.full(5, np.nan))).lines
    assert not drawn(Line(T, -T), scale="log").lines
    (found,) = drawn(Line(T, T - 0.4), scale="log").lines
    assert found.get_xdata().tolist() == T[2:].tolist()
