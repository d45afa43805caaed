"""Methods by name: everything that takes a method in Python takes what a system file takes."""

import numpy as np
import pytest

import cosolve as cs
from cosolve.basics import registry
from cosolve.method.named import as_method


def tanks(rate=1.0):
    """Two tanks that feed each other: stable under every method."""

    def tank(level):
        return cs.Linear([[-1]], [[0.5 * rate]], [[1]], x0=[level], inputs=["q"], outputs=["h"])

    system = cs.System({"one": tank(1.0), "two": tank(0.0)})
    system.connect("one.h", "two.q")
    system.connect("two.h", "one.q")
    return system


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("jacobi", cs.Jacobi()),
        ("Jacobi", cs.Jacobi()),
        ("gauss_seidel", cs.GaussSeidel()),
        ("SemiImplicit:2", cs.SemiImplicit(degree=2)),
        ({"name": "semi-implicit", "degree": 0, "jacobian": "differences"}, None),
        ({"name": "leader-follower", "leader": "one"}, cs.LeaderFollower(leader="one")),
        ({"name": "semi-implicit", "constraints": "baumgarte"}, cs.SemiImplicit(constraints=cs.Baumgarte())),
        ({"name": "semi-implicit", "constraints": cs.Baumgarte()}, cs.SemiImplicit(constraints=cs.Baumgarte())),
    ],
    ids=str,
)
def test_a_name_means_the_method_with_these_options(given, meant):
    if meant is None:  # an option value that is none
        with pytest.raises(cs.errors.SetupError, match="method 'semi-implicit': jacobian should be "):
            as_method(given)
        return
    assert as_method(given) == meant
    assert as_method(meant) is meant


def test_every_exported_method_has_a_name():
    named = {cls.__name__ for cls in registry.usable("methods").values()}
    exported = {n for n in cs.__all__ if isinstance(getattr(cs, n), type) and issubclass(getattr(cs, n), cs.Method)}
    assert named == exported - {"Method"}


def test_a_corrector_inside_may_be_a_name_a_table_or_an_object():
    for corrector in ("iqn-ils", {"name": "IqnIls"}, cs.IqnIls()):
        assert isinstance(as_method({"name": "implicit", "corrector": corrector}).corrector, cs.IqnIls)


def test_a_run_by_name_has_the_same_bits():
    by_object = cs.simulate(tanks(), t_end=1.0, method=cs.SemiImplicit(degree=2), step=0.1)
    by_name = cs.simulate(tanks(), t_end=1.0, method="semi-implicit:2", step=0.1)
    np.testing.assert_array_equal(by_name["one.h"], by_object["one.h"])
    with cs.Stepper(tanks(), method="semi-implicit:2", step=0.1) as stepper:
        stepper.run_until(1.0)
        assert stepper["one.h"] == by_object["one.h"][-1]


def test_what_judges_a_method_takes_its_name_too():
    system, method = tanks(), cs.GaussSeidel(degree=1)
    assert cs.analysis.spectral_radius(system, "gauss-seidel", 0.1) == cs.analysis.spectral_radius(
        system, method, step=0.1
    )
    assert cs.analysis.critical_step(system, "gauss-seidel", step_range=(0.1, 1.0)) == np.inf
    assert str(cs.check(system, "gauss-seidel", step=0.1)) == str(cs.check(system, method, 0.1))
    assert cs.analysis.estimate_stability(system, "gauss-seidel", 0.1).verdict == "stable"
    assert cs.analysis.stability_map(lambda a, b: tanks(a * b), [1.0], [0.5], "gauss-seidel", 0.1).shape == (1, 1)
    assert cs.analysis.check_jacobians(system, 0.1, method="semi-implicit") == []
    assert cs.analysis.why_not_compiled(system, "gauss-seidel", 0.1) is None
    found = cs.analysis.order_estimate(system, "jacobi:1", step=0.02, t_end=0.2, names=["one.h"])
    assert found.order == pytest.approx(2.0, abs=0.1)


def test_several_methods_by_name():
    study = cs.analysis.convergence(tanks(), ["jacobi:0", cs.Jacobi(1)], steps=[0.1, 0.05], t_end=0.5, names=["one.h"])
    assert list(study.errors) == ["Jacobi(0)", "Jacobi(1)"]
    named = cs.analysis.convergence(tanks(), {"held": "jacobi:0"}, steps=[0.1, 0.05], t_end=0.5, names=["one.h"])
    np.testing.assert_array_equal(named.errors["held"], study.errors["Jacobi(0)"])
    found = cs.sweep(tanks, {"rate": [0.5, 1.0]}, methods=["jacobi", "gauss-seidel:2"], steps=0.1, t_end=0.5)
    assert list(found["coupling"].values) == ["Jacobi(1)", "GaussSeidel(2)"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("gaus-seidel", "there is no method 'gaus-seidel'; did you mean 'gauss-seidel'?"),
        ("euler", "there is no method 'euler'; known are "),
        ("jacobi:x", "'jacobi:x': write a method as name:degree, for example semi-implicit:1"),
        ({"degree": 1}, "method needs a name, one of "),
        ({"name": "jacobi", "degre": 1}, "method 'jacobi' has no option 'degre'; did you mean 'degree'?"),
        ({"name": "implicit", "corrector": "iqnils"}, "there is no corrector 'iqnils'; did you mean 'iqn-ils'?"),
        (cs.Jacobi, "method must be a coupling method such as Jacobi(degree=1), a name such as 'jacobi', or a table"),
    ],
    ids=str,
)
def test_a_bad_name_gets_a_sentence_with_a_suggestion(given, sentence):
    with pytest.raises(cs.errors.SetupError) as caught:
        cs.simulate(tanks(), t_end=1.0, method=given, step=0.1)
    assert str(caught.value).startswith(sentence)
