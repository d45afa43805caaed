"""A serial sweep in which no subsystem gets a newer value is a parallel one: the run and `check` say so."""

import itertools
from functools import partial

import numpy as np
import pytest

import cosolve as cs
from cosolve.engine.python.serial import serial_note


def tank(x):
    return cs.Linear([[-1]], [[1]], [[1]], x0=[x], inputs=["f"], outputs=["x"])


def both_sides():
    system = cs.System({"one": tank(0.0), "two": tank(1.0)})
    system.law({"one.f": 1, "two.f": -1}, lambda a, b: 3 * (b - a), of=["one.x", "two.x"], name="flow")
    return system


def ring():
    system = cs.System({"one": tank(0.0), "two": tank(1.0)})
    system.connect("one.x", "two.f")
    system.connect("two.x", "one.f")
    return system


def run(system, method):
    return cs.simulate(system, t_end=1.0, method=method, step=0.1)


def test_a_law_of_both_sides_is_jacobi_and_said_to_be():
    serial, parallel = run(both_sides(), cs.GaussSeidel(1)), run(both_sides(), cs.Jacobi(1))
    assert np.array_equal(serial["one.x"], parallel["one.x"])
    assert serial.stats.note("serial-order").startswith(
        "GaussSeidel(1) does what Jacobi does here, since 'flow' is known only after"
    )
    assert f"NOTE: {serial.stats.note('serial-order')}" in str(serial.stats)
    assert parallel.stats.note("serial-order") == ""


def test_check_says_the_same_once():
    found = [f for f in cs.check(both_sides(), cs.GaussSeidel(1), step=0.1).findings if f.code == "serial-is-parallel"]
    assert [f.text for f in found] == [run(both_sides(), cs.GaussSeidel(1)).stats.note("serial-order")]
    assert found[0].level == "note"


def test_a_connection_hands_on_and_nothing_is_said():
    serial, parallel = run(ring(), cs.GaussSeidel(1)), run(ring(), cs.Jacobi(1))
    assert not np.array_equal(serial["one.x"], parallel["one.x"])
    assert serial.stats.note("serial-order") == ""
    assert "serial-is-parallel" not in cs.check(ring(), cs.GaussSeidel(1), step=0.1).codes()


def test_an_order_that_would_help_is_named():
    system = cs.System({"reader": tank(0.0), "source": tank(1.0)})
    system.connect("source.x", "reader.f")
    system.set("source.f", 0.0)
    note = run(system, cs.GaussSeidel(1)).stats.note("serial-order")
    assert "let 'source' run before 'reader' (order=...)" in note
    assert run(system, cs.GaussSeidel(1, order=["source", "reader"])).stats.note("serial-order") == ""


def test_a_third_reader_is_handed_something():
    """The law of two is new for subsystems after them, so the sweep is no parallel one."""
    system = cs.System({"one": tank(0.0), "two": tank(1.0), "three": tank(0.0)})
    system.law({"one.f": 1, "two.f": -1, "three.f": 1}, lambda a, b: b - a, of=["one.x", "two.x"], name="flow")
    assert run(system, cs.GaussSeidel(1)).stats.note("serial-order") == ""


def star():
    """One source with two readers."""
    system = cs.System({name: tank(x) for name, x in (("one", 1.0), ("two", 0.5), ("three", 0.0))})
    system.connect("one.x", "two.f")
    system.connect("one.x", "three.f")
    system.connect("three.x", "one.f")
    return system


def law_of(*two):
    """A law of two subsystems that all three read."""
    system = cs.System({name: tank(x) for name, x in (("one", 1.0), ("two", 0.5), ("three", 0.0))})
    readers = {"one.f": 1, "two.f": -1, "three.f": 1}
    system.law(readers, lambda a, b: b - a, of=[f"{name}.x" for name in two], name="flow")
    return system


def chain():
    system = cs.System({name: tank(x) for name, x in (("one", 1.0), ("two", 0.5), ("three", 0.0))})
    system.connect("one.x", "two.f")
    system.connect("two.x", "three.f")
    system.set("one.f", 0.0)
    return system


@pytest.mark.parametrize("order", list(itertools.permutations(["one", "two", "three"])), ids="-".join)
@pytest.mark.parametrize(
    "build",
    [star, chain, *(partial(law_of, *two) for two in itertools.combinations(["one", "two", "three"], 2))],
    ids=["star", "chain", "law of 1 2", "law of 1 3", "law of 2 3"],
)
def test_the_note_stands_exactly_where_the_bits_are_those_of_jacobi(build, order):
    serial, parallel = run(build(), cs.GaussSeidel(1, order=order)), run(build(), cs.Jacobi(1))
    same = all(np.array_equal(serial[name], parallel[name]) for name in ("one.x", "two.x", "three.x"))
    assert (serial.stats.note("serial-order") != "") == same


@pytest.mark.parametrize("method", [cs.GaussSeidel(0), cs.Jacobi(0)], ids=["serial", "parallel"])
def test_one_subsystem_alone_has_no_order(method):
    system = cs.System({"one": tank(1.0)})
    system.connect("one.x", "one.f")
    assert serial_note(method, system.plan()) == ""


def test_serial_sweeps_of_an_iteration_too():
    method = cs.Implicit(1, sweep="gauss-seidel", corrector=cs.Aitken())
    assert run(both_sides(), method).stats.note("serial-order").startswith("Implicit(1) does what Jacobi does here")
    assert run(ring(), method).stats.note("serial-order") == ""


def test_stepping_by_hand_says_it_too():
    with cs.Stepper(both_sides(), method=cs.GaussSeidel(1), step=0.1, record=True) as stepper:
        stepper.run_until(0.5)
        assert "Jacobi" in stepper.result().stats.note("serial-order")
