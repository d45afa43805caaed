"""Hencky truss, its interface Jacobians, and truss versus truss by Newton's method (Sicklinger (2014), 4.7.1)."""

from functools import cache

import numpy as np
import pytest
from examples.truss_truss.model import SOURCE, TrussTruss, displacement_truss, force_truss, monolithic, system
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import cosolve as cs
from cosolve.signal import Polynomial
from cosolve.structures.truss import Bar

displacements = arrays(np.float64, 5, elements=st.floats(-0.09, 0.09))


def hold(value: float) -> Polynomial:
    return Polynomial(0.0, SOURCE.h, np.array([[value]]))


# -- the element ---------------------------------------------------------------------------------------------


@pytest.mark.covers("IJ-17")
@given(displacements)
def test_force_is_the_gradient_of_the_energy_and_tangent_that_of_the_force(u: np.ndarray) -> None:
    """Central differences of sixth order, 1e-8 relative to the stiffness."""
    bar = Bar(elements=5, length=1.0, E=20.0, rho=1.0)
    h, scale = 1e-4, bar.E / bar.element_length

    def derivative(f, k: int):
        e = np.zeros(5)
        e[k] = h
        return sum(w * (f(u + j * e) - f(u - j * e)) for j, w in ((1, 45), (2, -9), (3, 1))) / (60 * h)

    p, K = bar.internal_force(u), bar.tangent(u)
    for k in range(5):
        assert derivative(bar.energy, k) == pytest.approx(p[k], abs=1e-8 * scale)
        assert derivative(bar.internal_force, k) == pytest.approx(K[:, k], abs=1e-8 * np.abs(K).max())


@pytest.mark.covers("IJ-17")
@given(st.floats(-10, 10))
def test_rigid_translation_is_free(shift: float) -> None:
    bar = Bar(elements=4, length=2.0, E=30.0, rho=1.0, clamped=False)
    assert np.abs(bar.internal_force(np.full(5, shift))).max() == 0.0
    assert np.abs(bar.tangent(np.full(5, shift)) @ np.ones(5)).max() <= 1e-13 * bar.E


def test_long_bars_are_sparse_and_the_same() -> None:
    long = Bar(elements=150, length=1.0, E=20.0, rho=1.0)
    u = np.linspace(0, 0.05, 150) ** 2
    K = long.tangent(u)
    e = np.zeros(150)
    e[70] = 1e-6
    assert K.nnz < 500
    column = (long.internal_force(u + e) - long.internal_force(u - e)) / 2e-6
    assert column == pytest.approx(K.toarray()[:, 70], rel=1e-6)


def test_element_turned_inside_out_is_named() -> None:
    with pytest.raises(cs.errors.SubsystemError, match="element 2 has the length"):
        Bar(elements=4, length=1.0, E=1.0, rho=1.0).internal_force([0.0, 0.0, -0.3, 0.0])


# -- interface Jacobians -------------------------------------------------------------------------------------


def jacobian(subsystem, value: float = 0.0) -> float:
    subsystem.start(0.0)
    return float(subsystem.jacobian(0.0, SOURCE.h, hold(value), np.ones(1))[0, 0])


@pytest.mark.covers("IJ-18")
def test_interface_stiffness_at_rest() -> None:
    """Undeformed (no load), force in and displacement in: the printed interface stiffnesses."""
    at_rest = TrussTruss(force=0.0)
    assert -1 / jacobian(force_truss(at_rest)) == pytest.approx(359.035165, rel=2e-9)
    assert jacobian(displacement_truss(at_rest)) == pytest.approx(559.016999, rel=2e-9)


@pytest.mark.covers("IJ-18")
def test_long_bar_closed_form() -> None:
    """Twenty elements are long: S = sqrt(a k + a^2/4), a = rho L_e / h^2, k = E / L_e."""
    for bar in (SOURCE.one, SOURCE.two):
        a, k = bar.rho * bar.element_length / SOURCE.h**2, bar.E / bar.element_length
        S = jacobian(displacement_truss(TrussTruss(two=bar)))
        assert pytest.approx(np.sqrt(a * k + a**2 / 4), rel=1e-6) == S


@pytest.mark.covers("IJ-18")
@given(st.floats(-4.0, 4.0))
def test_both_causalities_of_one_truss_are_inverse(force: float) -> None:
    """Deformed by any force: J(force in) J(displacement in) = -1 in the sign convention of the example."""
    truss = TrussTruss(force=0.0, two=SOURCE.one)
    by_force = force_truss(truss)
    by_force.start(0.0)
    (u,) = by_force.advance(0.0, SOURCE.h, hold(force))
    assert jacobian(force_truss(truss), force) * jacobian(displacement_truss(truss), u) == pytest.approx(-1, abs=1e-9)


@pytest.mark.covers("IJ-18")
@pytest.mark.parametrize(("build", "value", "eps"), [(force_truss, 2.0, 1e-3), (displacement_truss, 0.006, 1e-6)])
def test_interface_jacobian_against_differences(build, value: float, eps: float) -> None:
    outputs = []
    for shifted in (value + eps, value - eps):
        truss = build()
        truss.start(0.0)
        outputs.append(truss.advance(0.0, SOURCE.h, hold(shifted))[0])
    assert jacobian(build(), value) == pytest.approx((outputs[0] - outputs[1]) / (2 * eps), rel=1e-6)


# -- truss versus truss --------------------------------------------------------------------------------------


@cache
def reference() -> np.ndarray:
    return monolithic()


def basic() -> cs.Implicit:
    return cs.Implicit(degree=0, tol=1e-10, absolute=True, corrector=cs.Newton(refresh="iteration"))


@pytest.mark.covers("IJ-19")
def test_monolithic_reference() -> None:
    printed = {
        1: 0.004728614382,
        2: 0.010440628161,
        3: 0.015994709453,
        10: 0.053424239127,
        50: 0.042678156124,
        100: 0.063642432750,
        200: 0.080900128204,
    }
    u = reference()
    for step, value in printed.items():
        assert u[step] == pytest.approx(value, abs=6e-13)
    assert (int(np.argmax(u)), u.max()) == (26, pytest.approx(0.1077904583, abs=6e-11))


@pytest.mark.covers("IJ-19")
def test_basic_interface_jacobian_method() -> None:
    """785 interface evaluations in 200 steps (4, 4, 4 in the first), monolithic to 1e-11 on both sides."""
    result = cs.simulate(system(), t_end=SOURCE.t_end, method=basic(), step=SOURCE.h)
    assert result.iterations.sum() + SOURCE.steps == 785
    assert result.stats.calls == {"one": 785, "two": 785}
    assert (result.iterations[:3] + 1).tolist() == [4, 4, 4]
    assert result.residual.max() < 1e-10
    for u in ("one.u", "two.u"):
        assert np.abs(result[u] - reference()).max() <= 1e-11


def test_warm_start_saves_local_iterations() -> None:
    """Beginning each solve at the last one: about the local iterations of the source (2526 / 2568 with the checks)."""
    coupled = system(warm_start=True)
    result = cs.simulate(coupled, t_end=SOURCE.t_end, method=basic(), step=SOURCE.h)
    assert result.iterations.sum() + SOURCE.steps == 785
    for name, printed in (("one", 2526), ("two", 2568)):
        assert coupled.subsystems[name].local_iterations + 785 == pytest.approx(printed, rel=0.01)


def enhanced(local: str) -> tuple[cs.Result, tuple[int, int], float]:
    """A run of an enhanced method, local solves of both trusses, and the deviation from the monolithic solution."""
    coupled = system(warm_start=True)
    method = cs.Implicit(0, tol=1e-10, absolute=True, corrector=cs.Newton("iteration"), local=local)
    result = cs.simulate(coupled, t_end=SOURCE.t_end, method=method, step=SOURCE.h)
    solves = coupled.subsystems["one"].local_iterations, coupled.subsystems["two"].local_iterations
    return result, solves, float(np.abs(result["one.u"] - reference()).max())


@pytest.mark.covers("IJ-21")
def test_the_printed_enhanced_method() -> None:
    """789 evaluations, 589 of them approximate, and a solution that is off by 1.6e-3 (docs/theory.md, "Implicit")."""
    result, _, deviation = enhanced("output_equation")
    evaluations = int((result.iterations + 1).sum())
    assert (evaluations, evaluations - SOURCE.steps) == (789, 589)
    assert result.residual.max() < 1e-10  # the interface converges all the same
    assert deviation == pytest.approx(1.6e-3, rel=0.02)


@pytest.mark.covers("IJ-22")
def test_one_local_newton_step_per_iteration_converges_to_the_monolithic_solution() -> None:
    """ "Enhanced+": 788 +- 5 evaluations, each one linear solve per truss, 1e-10 from the monolithic solution."""
    result, solves, deviation = enhanced("one_step")
    evaluations = int((result.iterations + 1).sum())
    assert abs(evaluations - 788) <= 5
    assert solves == (evaluations, evaluations)
    assert result.stats.calls == {"one": evaluations, "two": evaluations}
    assert deviation <= 1e-10


def test_enhanced_methods_need_subsystems_that_can_take_part() -> None:
    lone = cs.System({"a": cs.Static(lambda t, u: 0.5 * u + 1, inputs=["u"], outputs=["y"])})
    lone.connect("a.y", "a.u")
    with pytest.raises(cs.errors.CapabilityError, match="approximate step"):
        cs.simulate(lone, t_end=1.0, step=0.5, method=cs.Implicit(0, local="one_step"))
    with pytest.raises(cs.errors.SetupError, match="local must be"):
        cs.Implicit(0, local="half")
    with pytest.raises(cs.errors.SetupError, match="serial sweeps"):
        cs.Implicit(0, local="one_step", sweep="gauss-seidel", corrector=cs.Aitken())
