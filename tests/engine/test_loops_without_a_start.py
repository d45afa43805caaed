"""An algebraic loop that finds no values at the start is named as that loop, whatever its subsystems return."""

import math

import numpy as np
import pytest

import cosolve as cs


def looped(f, further=("pass_on",)):
    """`law` and what is behind it, in a loop; every subsystem reacts at once."""

    def static(function):
        return cs.Static(lambda t, u: function(u[0]), inputs=["u"], outputs=["y"])

    names = ("law", *further)
    system = cs.System({"law": static(f), **{name: static(lambda u: u) for name in further}})
    for one, two in zip(names, (*names[1:], names[0]), strict=True):
        system.connect(f"{one}.y", f"{two}.u")
    return system


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (lambda u: u * u + 1.0, "(mismatch"),  # no real solution: Newton goes to and fro
        (lambda u: np.exp(u + 10.0), "'law' returned inf for output 'y'"),
        (lambda u: math.exp(u + 10.0), "math range error"),
        (lambda u: np.sqrt(u - 5.0), "'law' returned nan for output 'y'"),
    ],
)
@pytest.mark.parametrize("method", ["jacobi:0", "implicit:1"])
def test_the_loop_is_named(f, reason, method):
    with np.errstate(all="ignore"), pytest.raises(cs.errors.SimulationError) as raised:
        cs.simulate(looped(f, ("pass_on", "and_back")), t_end=1.0, method=method, step=0.1)
    said = str(raised.value)
    assert "algebraic loop" in said
    assert "law -> pass_on -> and_back -> law" in said
    assert reason in said
    assert "smaller step" not in said


def test_a_subsystem_outside_a_loop_is_told_as_before():
    system = cs.System({"one": cs.Static(lambda t, u: np.inf, inputs=[], outputs=["y"])})
    with pytest.raises(cs.errors.NonFiniteError, match="'one' returned inf"):
        cs.simulate(system, t_end=1.0, method="jacobi:0", step=0.1)


def test_a_mistake_in_a_model_of_a_loop_is_told_as_it_is():
    def wrong(u):
        raise ValueError("no such table")

    with pytest.raises(cs.errors.SubsystemError, match=r"'law' failed while evaluating .* no such table"):
        cs.simulate(looped(wrong), t_end=1.0, method="jacobi:0", step=0.1)
