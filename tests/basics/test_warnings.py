"""A warning points at the line of the user's program that led to it, however deep in the package it arises."""

import warnings

import cosolve as cs
from cosolve.errors import AccuracyWarning, warn


def caught_in(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return found


def test_of_what_calls_it_itself():
    def direct():
        warn("it grows", AccuracyWarning)

    (found,) = caught_in(direct)
    assert found.category is AccuracyWarning
    assert found.filename == __file__
    assert found.lineno == direct.__code__.co_firstlineno + 1


def test_of_what_arises_inside_a_run():
    part = cs.Ode(lambda t, x, u: -x, lambda t, x, u: x, x0=[1.0], inputs=[], outputs=["y"])

    def run():
        return cs.simulate(cs.System({"a": cs.Sampled(part, 0.07)}), t_end=0.2, method=cs.Jacobi(), step=0.1)

    found, *_ = caught_in(run)
    assert "a sample at t = 0.07 lies inside the macro step" in str(found.message)
    assert found.filename == __file__
    assert found.lineno == run.__code__.co_firstlineno + 1
