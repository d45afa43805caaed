"""Every option of a method says something else to the engines, and nothing but what it should."""

from dataclasses import fields, replace
from typing import Any

import pytest

import cosolve as cs
from cosolve.method.base import Declaration

#: Method, option, another value, what of the declaration changes.
OPTIONS: list[tuple[cs.Method, str, Any, set[str]]] = [
    *((method, "degree", 2, {"guess"}) for method in (cs.Jacobi(), cs.GaussSeidel(), cs.LeaderFollower(leader="one"))),
    *((method, "degree", 2, {"guess"}) for method in (cs.SemiImplicit(), cs.Implicit())),
    *((method, "predictor", 0, {"guess"}) for method in (cs.SemiImplicit(), cs.Implicit())),
    *((method, "jacobian", "difference", {"jacobian"}) for method in (cs.SemiImplicit(), cs.Implicit())),
    *((method, "increment", 1e-3, {"increment"}) for method in (cs.SemiImplicit(), cs.Implicit())),
    *((method, "constraints", cs.StabilisedIndex2(), {"constraints"}) for method in (cs.SemiImplicit(), cs.Implicit())),
    (cs.Jacobi(), "outputs", "exchanged", {"step_function"}),
    (cs.GaussSeidel(), "outputs", "exchanged", {"step_function"}),
    (cs.GaussSeidel(), "order", ("two", "one"), {"order"}),
    (cs.LeaderFollower(leader="one"), "outputs", "exchanged", {"step_function"}),
    (cs.SemiImplicit(), "refresh", "run", {"corrector"}),
    (cs.Implicit(), "tol", 1e-6, {"tol"}),
    (cs.Implicit(), "corrector", cs.Relaxation(0.5), {"corrector"}),
    (cs.Implicit(corrector=cs.Relaxation()), "sweep", "gauss-seidel", {"serial"}),
    (cs.Implicit(sweep="gauss-seidel", corrector=cs.Relaxation()), "order", ("two", "one"), {"order"}),
    (cs.Implicit(), "absolute", True, {"absolute"}),
    (cs.Implicit(), "local", "one_step", {"local"}),
    (cs.Implicit(), "atol", 1e-4, {"atol"}),
    (cs.Implicit(), "norm", "fields", {"norm"}),
]


def told(method: cs.Method) -> dict[str, Any]:
    declaration = method.declaration
    assert declaration is not None
    found = {field.name: getattr(declaration, field.name) for field in fields(Declaration)}
    corrector = found["corrector"]
    found["corrector"] = None if corrector is None else (type(corrector), vars(corrector))
    found["step_function"] = found["step_function"].__name__, id(found["step_function"])
    return found


@pytest.mark.parametrize(("method", "option", "value", "changes"), OPTIONS, ids=lambda given: str(given)[:20])
def test_it_is_declared(method: cs.Method, option: str, value: Any, changes: set[str]) -> None:
    before, after = told(method), told(replace(method, **{option: value}))
    assert {name for name in before if repr(before[name]) != repr(after[name])} == changes
