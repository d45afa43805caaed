"""Addresses of ports and of their elements: in connections, laws, equations, constants, records and results."""

from __future__ import annotations

import numpy as np
import pytest

import cosolve as cs
from cosolve.io.system_file import load_system


def source():
    """Two vectors that grow with time."""
    return cs.Static(lambda t, u: [t, 2 * t, 3 * t, -t, 5 + t], inputs=[], outputs=[("y", 3), ("w", 2)])


def sink(size=3):
    """Its state follows every input, so that a wrong wire is seen in one state only."""
    return cs.Ode(lambda t, x, u: u, lambda t, x, u: x, x0=np.zeros(size), inputs=[("u", size)], outputs=[("x", size)])


def test_elements_of_one_input_come_from_different_sources():
    system = cs.System({"a": source(), "b": sink()})
    system.connect("a.y[2]", "b.u[0]")
    system.law("b.u[1]", lambda y, w: y + w, of=["a.y[0]", "a.w[1]"])
    system.set("b.u[2]", 7.0)
    run = cs.simulate(system, t_end=1.0, method=cs.SemiImplicit(1), step=0.25)
    assert run["b.x"][-1] == pytest.approx([1.5, 6.0, 7.0], rel=1e-12)
    assert (run["b.x[1]"] == run["b.x"][:, 1]).all()
    assert run["b.u"][-1] == pytest.approx([3.0, 7.0, 7.0], rel=1e-12)
    assert "b.x[2]" in run
    assert "b.x[3]" not in run


def test_an_element_and_its_whole_vector_are_one_coupling_variable():
    system = cs.System({"a": source(), "b": sink(), "c": sink(1)})
    system.connect("a.y", "b.u")
    system.connect("a.y[1]", "c.u[0]")
    assert system.plan().n_z == 3
    run = cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=0.5)
    assert run["c.u[0]"] == pytest.approx(2 * run.t)


@pytest.mark.parametrize("index", ["3", "-1", "01", "x", "1,2", ""])
def test_an_element_that_does_not_exist(index):
    system = cs.System({"a": source(), "b": sink()})
    with pytest.raises(cs.errors.SetupError, match=r"has 3 elements, y\[0\] to y\[2\], so there is no 'y\["):
        system.connect(f"a.y[{index}]", "b.u[0]")


def test_an_element_of_a_scalar():
    system = cs.System({"a": source(), "b": cs.Static(lambda t, u: u, inputs=["u"], outputs=["y"])})
    with pytest.raises(cs.errors.SetupError, match=r"'u' is a scalar and has no elements; leave \[0\] out"):
        system.connect("a.y[0]", "b.u[0]")


def test_an_element_that_nothing_feeds_is_named():
    system = cs.System({"a": source(), "b": sink()})
    system.connect("a.y[0]", "b.u[0]")
    system.set("b.u[2]", 0.0)
    with pytest.raises(cs.errors.SetupError, match=r"input 'b\.u\[1\]' is not connected"):
        system.plan()


def test_an_element_fed_twice():
    system = cs.System({"a": source(), "b": sink()})
    system.connect("a.y", "b.u")
    with pytest.raises(cs.errors.SetupError, match=r"'b\.u\[1\]' is fed twice"):
        system.set("b.u[1]", 1.0)


def test_constants_of_elements_and_of_the_whole_replace_each_other():
    system = cs.System({"b": sink()})
    system.set("b.u", [1.0, 2.0, 3.0])
    system.set("b.u[1]", 9.0)
    assert system.plan().u_offset.tolist() == [1.0, 9.0, 3.0]
    system.set("b.u", 4.0)
    assert system.plan().u_offset.tolist() == [4.0, 4.0, 4.0]


def test_the_name_of_a_port_wins_over_an_element():
    both = cs.Static(lambda t, u: [1.0, 2.0, 3.0], inputs=[], outputs=[("y", 2), "y[1]"])
    system = cs.System({"a": both, "b": sink(1)})
    system.connect("a.y[1]", "b.u[0]")
    run = cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.5)
    assert run["b.x"][-1] == pytest.approx([3.0])
    assert run["a.y[1]"][-1] == 3.0
    assert run["a.y[0]"][-1] == 1.0


def test_only_an_element_is_recorded(tmp_path):
    system = cs.System({"a": source(), "b": sink()})
    system.connect("a.y", "b.u")
    run = cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=0.5, record=["b.x[2]", "b.u[1]"])
    assert run.names == ["b.x[2]", "b.u[1]"]
    assert run["b.u[1]"] == pytest.approx(2 * run.t)
    assert cs.load_result(run.save(tmp_path / "run.h5"))["b.x[2]"].tolist() == run["b.x[2]"].tolist()
    assert run.plot("b.x[2]").axes
    with pytest.raises(KeyError, match=r"has no 'b\.x'"):
        run["b.x"]
    with pytest.raises(cs.errors.SetupError, match=r"so there is no 'b\.x\[3\]'"):
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=0.5, record=["b.x[3]"])


def test_a_stepper_sets_and_reads_elements():
    system = cs.System({"b": sink()})
    system.set("b.u", 0.0)
    with cs.Stepper(system, method=cs.Jacobi(0), step=0.5) as stepper:
        stepper.set("b.u[1]", 2.0)
        stepper.run_until(1.0)
        assert stepper["b.x[1]"] == pytest.approx(2.0)
        assert stepper["b.u[0]"] == 0.0
        assert stepper["b.u"].tolist() == [0.0, 2.0, 0.0]


def test_elements_in_equations():
    system = cs.System({"b": sink()})
    system.set("b.u[0]", 0.0)
    system.set("b.u[2]", 1.0)
    system.equations({"z": "b.u[1]"}, lambda z, x: z - 3 * x, of="b.x[2]")
    run = cs.simulate(system, t_end=1.0, method=cs.SemiImplicit(2), step=0.01)
    assert run["b.x[1]"][-1] == pytest.approx(1.5, rel=1e-10)


FILE = """
[subsystems.a]
kind = "linear"
A = [[0.0]]
B = [[1.0, 1.0]]
C = [[1.0], [2.0]]
x0 = [0.0]
inputs = [{name = "flange.f", size = 2}]
outputs = [{name = "body.x", size = 2}]
[[connections]]
from = "a.body.x[1]"
to = "a.flange.f[0]"
[constants]
"a.flange.f[1]" = 1.0
[simulation]
t_end = 1.0
method = "semi-implicit"
step = 0.01
[output]
record = ["a.body.x[0]"]
"""


def test_addresses_in_system_files(tmp_path):
    file = tmp_path / "dots.toml"
    file.write_text(FILE)
    run = load_system(file).run()
    assert run["a.body.x[0]"][-1] == pytest.approx((np.exp(2.0) - 1) / 2, rel=1e-3)  # x' = 2 x + 1
    file.write_text(FILE.replace('"a.flange.f[1]" = 1.0', ""))
    with pytest.raises(cs.errors.SetupError, match=r'\[constants\] "a\.flange\.f\[1\]" = 0\.0'):
        load_system(file)


def test_blocks_of_variants_take_elements():
    def build(gain):
        two = cs.Linear(np.diag([-gain, -1.0]), np.eye(2), np.eye(2), x0=[1, 2], inputs=[("u", 2)], outputs=[("y", 2)])
        system = cs.System({"a": two})
        system.connect("a.y[1]", "a.u[0]")
        system.set("a.u[1]", 0.5)
        return system

    swept = cs.sweep(
        build, {"gain": [1.0, 2.0]}, t_end=1.0, methods=cs.Jacobi(1), steps=0.1, record=["a.y[0]", "a.u[0]"]
    )
    assert "block" in swept.how
    one = cs.simulate(build(2.0), t_end=1.0, method=cs.Jacobi(1), step=0.1)
    assert swept["a.y[0]"][1] == pytest.approx(one["a.y[0]"][-1], rel=1e-12)
    assert swept["a.u[0]"][1] == pytest.approx(one["a.y[1]"][-1], rel=1e-12)
