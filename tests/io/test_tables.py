"""Methods written as tables come back as the same methods."""

import json
from dataclasses import dataclass

import pytest

import cosolve as cs
from cosolve.io import named
from cosolve.io.tables import method_table, step_table
from cosolve.method.named import as_method

METHODS = [
    cs.Jacobi(),
    cs.Jacobi(degree=3, outputs="exchanged"),
    cs.GaussSeidel(degree=2, order=["b", "a"]),
    cs.LeaderFollower(degree=1, leader="a", order=["b"]),
    cs.SemiImplicit(degree=0, jacobian="difference", increment=1e-6, final_update=False, predictor=1, refresh="run"),
    cs.SemiImplicit(degree=1, constraints=cs.WeightedMultipliers(a=2.0)),
    cs.Implicit(degree=2, tol=1e-7, max_iterations=7, absolute=True),
    cs.DynamicStatic("B", rtol=1e-5, order=3),
    *(
        cs.Implicit(corrector=corrector)
        for corrector in (
            *(cs.Newton("run"), cs.Relaxation(0.3), cs.Aitken(0.2, vector=False, carry=True), cs.IqnIls(reuse=4)),
            *(cs.IqnImvj(rank=7), cs.Anderson(), cs.Broyden(initial="exact", form="direct"), cs.NewtonKrylov(rtol=0.1)),
            *(cs.Secant(pairs=[("f", "x"), ("x", "f")], initial=0.0), cs.LineSearch(cs.IqnIls(reuse=1), halvings=3)),
        )
    ),
]


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_a_method_survives_the_way_through_json(method):
    again = as_method(json.loads(json.dumps(method_table(method))))
    assert repr(again) == repr(method)
    assert method_table(again) == method_table(method)


def test_only_what_differs_from_the_defaults_is_written():
    assert method_table(cs.SemiImplicit()) == {"name": "semi-implicit"}
    assert step_table(cs.Adaptive(rtol=1e-3, max_step=0.5)) == {"rtol": 1e-3, "max_step": 0.5}
    assert named.step_control(step_table(cs.Adaptive(rtol=1e-3, max_step=0.5))) == cs.Adaptive(rtol=1e-3, max_step=0.5)
    assert step_table(0.1) == 0.1


def test_what_has_no_name_is_refused():
    @dataclass(frozen=True)
    class Own(cs.Jacobi):
        pass

    with pytest.raises(cs.errors.SetupError, match="the method Own cannot be named in a file"):
        method_table(Own())
    with pytest.raises(cs.errors.SetupError, match="the option past of dynamic-static is a function"):
        method_table(cs.DynamicStatic(past=lambda t: [t]))
