"""The order of a run without an exact solution: backward Euler shows 1, BDF2 shows 2, subcycled or not."""

import numpy as np
import pytest
from examples.three_mass_chain.model import D1, D2, INTEGRATORS, K1, K2, K3, M1, M2, M3, exact, split

import cosolve as cs
from cosolve.analysis.order import observed_order, order_estimate
from cosolve.structures import DofPort, SecondOrder, Structure

METHOD = cs.Implicit(degree=1, tol=1e-12, corrector=cs.Newton(refresh="step"))
NAMES = ["one.displacement", "one.velocity"]


def subcycled(one, two, substeps):
    """The chain of `split`, whose domain two advances over each macro step with `substeps` steps of its own."""

    def build(h):
        q, v, a = exact(0.0)
        domains = {}
        for name, M, D, K, rule, held, at, count in (
            ("one", [M1, M2], [[D1, 0.0], [0.0, 0.0]], [[K1 + K2, -K2], [-K2, K2]], one, [0, 1], 1, 1),
            ("two", [0.0, M3], [[D2, -D2], [-D2, D2]], [[0.0, 0.0], [0.0, K3]], two, [1, 2], 0, substeps),
        ):
            q_old, v_old, _ = exact(-h / count)
            domains[name] = SecondOrder(
                Structure(M, K=K, D=D),
                INTEGRATORS[rule],
                inputs=[DofPort("f", at, "force")],
                outputs=[DofPort(which, at, which) for which in ("displacement", "velocity")],
                q0=q[held],
                v0=v[held],
                a0=a[held],
                before=(h / count, q_old[held], v_old[held]),
                substeps=count,
            )
        joined = cs.System(domains)
        force = M2 * a[1] + K2 * (q[1] - q[0])
        joined.equations(
            {"f_one": "one.f", "f_two": "two.f"},
            lambda f_one, f_two, y_one, y_two: (f_one + f_two, y_one - y_two),
            of=["one.velocity", "two.velocity"],
            initial={"f_one": force, "f_two": -force},
        )
        return joined

    return build


@pytest.mark.sample(1)
@pytest.mark.covers("IJ-45")
@pytest.mark.parametrize(("rule", "order"), [("BE", 1), ("BDF2", 2)])
def test_the_estimate_returns_the_order_of_the_integrators(rule, order):
    found = order_estimate(lambda h: split(rule, rule, h), METHOD, step=0.01, t_end=1.0, names=NAMES)
    assert found.order == pytest.approx(order, abs=0.1)
    assert len(found.orders) == len(found.runs[0].t)  # one for every point of the coarsest run
    assert np.nanmedian(found.orders[20:]) == pytest.approx(order, abs=0.15)  # while the run goes on
    reality = abs(found.runs[-1]["one.displacement"][-1] - exact(1.0)[0][1])
    largest = max(
        abs(u - exact(t)[0][1]) for t, u in zip(found.runs[-1].t, found.runs[-1]["one.displacement"], strict=True)
    )
    assert found.errors["one.displacement"] == pytest.approx(largest, rel=0.15)
    assert reality < 1.2 * found.errors["one.displacement"]


@pytest.mark.sample(2)
@pytest.mark.covers("IJ-45")
@pytest.mark.parametrize(("one", "two", "order"), [("BE", "BE", 1), ("BDF2", "BDF2", 2), ("BE", "BDF2", 1)])
@pytest.mark.parametrize("substeps", [1, 4])
def test_subcycling_keeps_the_order(one, two, order, substeps):
    """The interface force is a ramp over the macro step, exact to second order inside it."""
    found = order_estimate(subcycled(one, two, substeps), METHOD, step=0.01, t_end=1.0, names=NAMES)
    assert found.order == pytest.approx(order, abs=0.15)


@pytest.mark.covers("IJ-45")
def test_subcycling_of_the_stiffer_half_pays():
    """Four steps of domain two per macro step: its share of the backward Euler error shrinks, that of one stays."""
    at_end = exact(1.0)[0][1]
    errors = []
    for substeps in (1, 4):
        run = cs.simulate(subcycled("BDF2", "BE", substeps)(0.01), t_end=1.0, method=METHOD, step=0.01)
        errors.append(abs(run["one.displacement"][-1] - at_end))
    assert errors[1] == pytest.approx(errors[0] / 4, rel=0.15)


def test_the_order_of_a_formula():
    h = np.array([0.4, 0.2, 0.1])
    assert observed_order(*(np.exp(1.0) + 3.0 * h**3)) == pytest.approx(3.0)
    assert observed_order(9.0, 1.0, 0.0 + 1 / 9, ratio=3.0) == pytest.approx(2.0)
    assert np.isnan(observed_order(1.0, 1.0, 1.0))  # nothing to see
    assert observed_order(0.0, 1.0, 3.0) == pytest.approx(-1.0)  # diverging solutions do not look like an order


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"ratio": 1.5}, "whole number from 2"),
        ({"names": []}, "which variables"),
        ({"t_end": 0.105}, "multiple of the step"),
        ({"every": 3}, "every step be recorded"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(change, match):
    given = {"step": 0.02, "t_end": 0.2, "names": NAMES, **change}
    with pytest.raises(cs.errors.SetupError, match=match):
        order_estimate(lambda h: split("BE", "BE", h), METHOD, **given)


def test_solutions_of_different_length_are_refused():
    with pytest.raises(cs.errors.SetupError, match="shapes"):
        observed_order([1.0, 2.0], [1.0], [1.0])
