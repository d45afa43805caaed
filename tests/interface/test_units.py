"""Units in connections: converted when both are known and of one kind, refused otherwise."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest
from scipy import constants

import cosolve as cs
from cosolve.subsystem.units import conversion, parse_unit

# values from the definitions of the units, not from the table in the code
CONVERSIONS = [
    ("mm", "m", 1e-3, 0.0),
    ("m", "mm", 1e3, 0.0),
    ("degC", "K", 1.0, 273.15),
    ("K", "degC", 1.0, -273.15),
    ("degF", "degC", 5 / 9, -160 / 9),
    ("rpm", "rad/s", 2 * pi / 60, 0.0),
    ("rev/min", "rpm", 1.0, 0.0),
    ("1/min", "Hz", 1 / 60, 0.0),
    ("bar", "Pa", 1e5, 0.0),
    ("deg", "rad", pi / 180, 0.0),
    ("km/h", "m/s", 1 / 3.6, 0.0),
    ("%", "1", 1e-2, 0.0),
    ("kg.m/s2", "N", 1.0, 0.0),
    ("kN.m", "N.m", 1e3, 0.0),
    ("m3/s", "l/min", 6e4, 0.0),
    ("W/(m2.K)", "mW/(mm2.degC)", 1e-3, 0.0),
    ("m.s-2", "m/s^2", 1.0, 0.0),
    ("mg", "kg", 1e-6, 0.0),
    ("kW.h", "MJ", 3.6, 0.0),
    ("N.m/deg", "N.m/rad", 180 / pi, 0.0),
    ("µm", "m", 1e-6, 0.0),
]


#: Ours, the name of the same in scipy.constants, in SI units.
NAMED = [
    ("atm", "atm", "Pa"), ("psi", "psi", "Pa"), ("bar", "bar", "Pa"), ("lb", "pound", "kg"),
    ("lbm", "lb", "kg"), ("lbf", "lbf", "N"), ("in", "inch", "m"), ("inch", "inch", "m"), ("ft", "foot", "m"),
    ("yd", "yard", "m"), ("mi", "mile", "m"), ("nmi", "nautical_mile", "m"), ("kn", "knot", "m/s"),
    ("t", "metric_ton", "kg"), ("eV", "eV", "J"), ("cal", "calorie", "J"), ("l", "liter", "m3"), ("L", "litre", "m3"),
    ("min", "minute", "s"), ("h", "hour", "s"), ("d", "day", "s"), ("deg", "degree", "rad"),
    ("degF", "degree_Fahrenheit", "K"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "constant", "base"), NAMED)
def test_factors_are_those_of_the_table_of_constants(name, constant, base):
    factor, _ = conversion(parse_unit(name), parse_unit(base))
    assert factor == pytest.approx(getattr(constants, constant), rel=1e-9)


@pytest.mark.parametrize(("source", "target", "factor", "offset"), CONVERSIONS)
def test_conversions(source, target, factor, offset):
    found = conversion(parse_unit(source), parse_unit(target))
    assert found == pytest.approx((factor, offset), rel=1e-14)


@pytest.mark.parametrize("name", ["furlong", "mdeg C", "m//s", "kmin", "2m", "m2.", "(m", "xN"])
def test_names_that_mean_nothing(name):
    assert parse_unit(name) is None


def pair(source, target):
    """A warm body read by a sensor in `source` units, and a loop back through a controller in `target` units."""
    body = cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[20.0], inputs=["q"], outputs=[cs.Port("T", unit=source)])
    control = cs.Linear([[-2.0]], [[1.0]], [[-0.1]], x0=[0.0], inputs=[cs.Port("T", unit=target)], outputs=["q"])
    system = cs.System({"body": body, "control": control})
    system.connect("control.q", "body.q")
    return system


METHODS = [cs.Jacobi(1), cs.GaussSeidel(1), cs.SemiImplicit(1), cs.Implicit(1)]


@pytest.mark.parametrize(
    ("method", "compiled"), [*((m, False) for m in METHODS), (METHODS[0], True), (METHODS[2], True)], ids=str
)
@pytest.mark.parametrize("units", [("degC", "K"), ("degF", "degC")])
def test_a_converted_connection_is_the_law_that_converts(method, compiled, units):
    factor, offset = conversion(*(parse_unit(unit) for unit in units))
    plain, by_law = pair(*units), pair(*units)
    plain.connect("body.T", "control.T")
    by_law.law("control.T", lambda T: factor * T + offset, of="body.T", jacobian=lambda T: factor)
    step = {"t_end": 1.0, "step": 0.05, "method": method}
    found, expected = cs.simulate(plain, compiled=compiled, **step), cs.simulate(by_law, compiled=False, **step)
    assert found["body.T"] == pytest.approx(expected["body.T"], rel=1e-9)
    assert found["control.T"] == pytest.approx(factor * found["body.T"] + offset, rel=1e-12)
    if compiled:
        assert found.stats.compiled_steps


def test_blocks_of_variants_convert_too():
    def build(k):
        system = pair("degC", "K")
        system.connect("body.T", "control.T")
        system.subsystems["body"].A[0, 0] = -k
        return system

    record = ["body.T", "control.T"]
    swept = cs.sweep(build, {"k": [1.0, 2.0]}, methods=cs.SemiImplicit(1), steps=0.1, t_end=1.0, record=record)
    assert "block" in swept.how
    for k, name in ((0, "body.T"), (0, "control.T")):
        one = cs.simulate(build(1.0), method=cs.SemiImplicit(1), step=0.1, t_end=1.0)
        assert swept[name][k] == pytest.approx(one[name][-1], rel=1e-12)


def test_start_values_are_converted_where_outputs_react_at_once():
    source = cs.Static(lambda t, u: 20.0 + t, inputs=[], outputs=[cs.Port("T", unit="degC")])
    sink = cs.Static(lambda t, u: u, inputs=[cs.Port("T", unit="K")], outputs=["y"])
    system = cs.System({"a": source, "b": sink})
    system.connect("a.T", "b.T")
    run = cs.simulate(system, t_end=1.0, method=cs.GaussSeidel(1), step=0.5)
    assert run["b.y"] == pytest.approx(293.15 + run.t, rel=1e-14)


def test_a_unit_by_its_definition():
    furlong = cs.Port("x", unit="furlong", definition=cs.Unit("furlong", 201.168, exponents={"m": 1}))
    a = cs.Static(lambda t, u: t, inputs=[], outputs=[furlong])
    b = cs.Static(lambda t, u: u, inputs=[cs.Port("x", unit="m")], outputs=["y"])
    system = cs.System({"a": a, "b": b})
    system.connect("a.x", "b.x")
    run = cs.simulate(system, t_end=1.0, method=cs.GaussSeidel(1), step=0.5)
    assert run["b.y"] == pytest.approx(201.168 * run.t)


def test_a_vector_is_converted_whole_and_by_elements():
    a = cs.Static(lambda t, u: [t, 2 * t], inputs=[], outputs=[cs.Port("y", 2, "mm")])
    b = cs.Static(lambda t, u: u, inputs=[cs.Port("u", 2, "m")], outputs=[("y", 2)])
    c = cs.Static(lambda t, u: u, inputs=[cs.Port("u", unit="km")], outputs=["y"])
    system = cs.System({"a": a, "b": b, "c": c})
    system.connect("a.y", "b.u")
    system.connect("a.y[1]", "c.u")
    run = cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=0.5)
    assert run["b.y"][-1] == pytest.approx([1e-3, 2e-3])
    assert run["c.y"][-1] == pytest.approx(2e-6)


def test_increments_and_tolerances_are_in_the_unit_of_the_output():
    """A nominal 1 m is 1000 in mm: the coupling variable is in mm."""
    system = pair("mm", "m")
    system.connect("body.T", "control.T")
    plan = system.plan()
    assert plan.z_nominal[plan.z_labels.index("body.T")] == pytest.approx(1000.0)
    assert np.isfinite(plan.z_nominal).all()


def test_a_connection_with_a_unit_at_one_end_is_noted():
    """Nothing can be converted there, which was not said."""

    def notes(a: str, b: str) -> list[str]:
        one = cs.Static(lambda t, u: t, inputs=[], outputs=[cs.Port("y", unit=a)])
        two = cs.Static(lambda t, u: u, inputs=[cs.Port("u", unit=b)], outputs=["y"])
        system = cs.System({"a": one, "b": two})
        system.connect("a.y", "b.u")
        result = cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=0.5)
        return [note.text for note in result.notes if note.kind == "unit" and note.level == "info"]

    assert notes("mm", "m") == notes("", "") == []
    (first,), (second,) = notes("mm", ""), notes("", "m")
    assert first.startswith("'a.y' is in mm and 'b.u'")
    assert second.startswith("'b.u' is in m and 'a.y'")
