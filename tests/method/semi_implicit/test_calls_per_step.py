"""What a macro step costs the Python engine: calls of Python functions, and evaluations of a law."""

import sys
from pathlib import Path

import numpy as np
import pytest

import cosolve as cs

PACKAGE = str(Path(cs.__file__).parent)


def masses(spring):
    one, two = (
        cs.Linear([[0, 1], [-k, -0.1]], [[0], [1]], [[1, 0]], x0=[x, 0], inputs=["f"], outputs=["x"])
        for k, x in ((1.0, 1.0), (2.0, 0.0))
    )
    system = cs.System({"one": one, "two": two})
    system.law({"one.f": 1, "two.f": -1}, spring, of=["one.x", "two.x"])
    return system


def per_step(run, note, steps=(50, 100)):
    """How often `note` is true of a call, per macro step."""
    found = []
    for n in steps:
        count = 0

        def look(frame, event, argument):
            nonlocal count
            count += event == "call" and note(frame.f_code)

        sys.setprofile(look)
        try:
            run(n)
        finally:
            sys.setprofile(None)
        found.append(count)
    return (found[1] - found[0]) / (steps[1] - steps[0])


@pytest.mark.parametrize(
    ("method", "most"),
    [(cs.Jacobi(1), 45), (cs.SemiImplicit(1), 179), (cs.Implicit(1), 203)],
    ids=("Jacobi", "SemiImplicit", "Implicit"),
)
def test_calls_in_a_macro_step(method, most, monkeypatch):
    """Two linear subsystems and a law: no more calls of functions of cosolve than in the first benchmark table."""
    monkeypatch.setattr("cosolve.run.engines._WRITE_EVERY", np.inf)  # rows are handed over by number, not by time
    system = masses(lambda a, b: 2.0 * (b - a))

    def run(n):
        cs.simulate(system, t_end=0.01 * n, method=method, step=0.01, compiled=False)

    assert per_step(run, lambda code: code.co_filename.startswith(PACKAGE)) <= most + 0.1


def test_a_law_is_evaluated_once_after_the_corrector():
    """Once with the predictor, four times for its slopes (two arguments, both sides), once with the corrector."""
    times = []

    def spring(a, b):
        times.append(None)
        return 2.0 * (b - a)

    system, counts = masses(spring), []
    for n in (50, 100):
        times.clear()
        cs.simulate(system, t_end=0.01 * n, method=cs.SemiImplicit(degree=1), step=0.01, compiled=False)
        counts.append(len(times))
    assert (counts[1] - counts[0]) / 50 == 6
