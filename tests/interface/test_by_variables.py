"""Derivatives by inputs become derivatives by coupling variables: each input's share, added up."""

from __future__ import annotations

import numpy as np

import cosolve as cs


def _gain(inputs: list[str]) -> cs.Static:
    return cs.Static(lambda t, u: float(sum(u)), inputs=inputs, outputs=["y"])


def test_one_input_for_each_variable_in_another_order() -> None:
    system = cs.System({"a": _gain([]), "b": _gain([]), "c": _gain(["p", "q"])})
    system.connect("b.y", "c.p")
    system.connect("a.y", "c.q")
    plan = system.plan()
    i, given = plan.names.index("c"), np.array([[2.0, -3.0]])
    found = dict(zip((plan.z_labels[m] for m in plan.reads(i)), plan.by_variables(i, given)[0].tolist(), strict=True))
    assert {label.split(".")[0]: value for label, value in found.items()} == {"b": 2.0, "a": -3.0}


def test_two_inputs_that_read_one_variable() -> None:
    system = cs.System({"a": _gain([]), "c": _gain(["p", "q"])})
    system.law({"c.p": 1, "c.q": 2}, lambda y: y, of=["a.y"], name="l")
    plan = system.plan()
    i = plan.names.index("c")
    assert len(plan.reads(i)) == 1
    assert plan.by_variables(i, np.array([[2.0, -3.0]])).tolist() == [[2.0 * 1.0 - 3.0 * 2.0]]
