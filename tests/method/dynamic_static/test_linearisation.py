"""The check mode: B or C against A on the user's own model, in plain words."""

import pytest
from examples.nonlinear_oscillator.model import oscillator

import cosolve as cs
from cosolve.analysis.linearisation import compare_linearisation
from cosolve.method.dynamic_static import DynamicStatic


def test_predictor_is_good_enough_for_the_oscillator() -> None:
    found = compare_linearisation(
        oscillator(), DynamicStatic("C", rtol=1e-6, first_step=1e-7, max_step=1e-4), t_end=1e-3
    )
    assert found.good
    assert found.calls[0] < 0.6 * found.calls[1]
    assert "good enough: its error is that of the integrator" in str(found)


def test_last_corrector_is_too_coarse_for_the_oscillator() -> None:
    found = compare_linearisation(
        oscillator(), DynamicStatic("B", rtol=1e-6, first_step=1e-7, max_step=1e-4), t_end=1e-3
    )
    assert found.verdict == "too coarse"
    assert found.error > 3 * found.error_implicit
    assert "use variant C or A" in str(found)


def test_everything_is_good_enough_where_the_static_part_is_linear() -> None:
    mass = cs.Ode(lambda t, x, u: [x[1], u[0]], lambda t, x, u: x, x0=[1.0, 0.0], inputs=["f"], outputs=["x", "v"])
    law = cs.Static(lambda t, u: -9.0 * u[0], inputs=["x"], outputs=["f"])
    system = cs.System({"mass": mass, "law": law})
    system.connect("mass.x", "law.x")
    system.connect("law.f", "mass.f")
    for method in (DynamicStatic("B", rtol=1e-5), DynamicStatic("B", step=0.01, order=2, atol=1e-6)):
        assert compare_linearisation(system, method, t_end=2.0).good


def test_only_linearised_variants_are_compared() -> None:
    with pytest.raises(cs.errors.SetupError, match="does not linearise"):
        compare_linearisation(oscillator(), DynamicStatic("A"), t_end=1e-3)
    with pytest.raises(cs.errors.SetupError, match=r"Jacobi.* does not linearise"):
        compare_linearisation(oscillator(), cs.Jacobi(1), t_end=1e-3)
