"""Jacobians over the macro step from the FMU's partials, against central differences of whole steps."""

from dataclasses import replace

import numpy as np
import pytest
from tests.fmu.build import build, fmu
from tests.fmu.catalogue import MODELS, without
from tests.fmu.test_bad_input import changed

import cosolve as cs
from cosolve.signal import Polynomial

WEIGHTS = {0: [1.0], 1: [0.0, 1.0], 2: [0.0, 0.5, 0.5]}  # constant, ramp, parabola: ends in 1


def central(
    part: cs.fmi.CoSimulationFmu, t0: float, u: Polynomial, weight: list[float], eps: float = 1e-3
) -> np.ndarray:
    """d y(t1) / d eps, column by column; extrapolated once, so that the third derivative does not matter."""
    state = part.save()
    inputs = u.coefficients.shape[1]
    w = np.array(weight)

    def outputs(k: int, shift: float) -> np.ndarray:
        coefficients = np.zeros((max(len(w), len(u.coefficients)), inputs))
        coefficients[: len(u.coefficients)] = u.coefficients
        coefficients[: len(w), k] += shift * w
        part.restore(state)
        return part.advance(t0, t0 + u.H, Polynomial(t0, u.H, coefficients))

    def quotient(k: int, e: float) -> np.ndarray:
        return (outputs(k, e) - outputs(k, -e)) / (2 * e)

    columns = [(4 * quotient(k, eps / 2) - quotient(k, eps)) / 3 for k in range(inputs)]
    part.restore(state)
    return np.column_stack(columns)


def relative(J: np.ndarray, reference: np.ndarray) -> float:
    return float(np.abs(J - reference).max() / np.abs(reference).max())


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("name", ["mass_force", "mass_motion", "mass_spring", "mass_link"])
def test_constant_partials(fmi, degree, name):
    """Declared constant: one matrix exponential, no step of the FMU at all."""
    part = cs.load_fmu(fmu(name, fmi), start={"x": 0.1, "v": 2.0})
    part.start(0.0)
    p = len(part.inputs)
    u = Polynomial(0.0, 1e-3, np.random.default_rng(1).normal(size=(degree + 1, p)))
    reference = central(part, 0.0, u, WEIGHTS[degree], eps=1.0)
    before = part.steps
    assert relative(part.jacobian(0.0, 1e-3, u, np.array(WEIGHTS[degree])), reference) < 1e-7
    assert part.steps == before


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("H", [0.02, 0.3])
def test_partials_that_change_within_the_step(fmi, degree, H):
    """A pendulum: frozen partials would be wrong by more than 1e-3 at the longer step."""
    part = cs.load_fmu(fmu("pendulum", fmi))
    part.start(0.0)
    u = Polynomial(0.0, H, np.array([[0.8], [0.5], [-0.4]])[: degree + 1])
    part.advance(0.0, H, u)  # away from the start
    u = Polynomial(H, H, u.coefficients)
    reference = central(part, H, u, WEIGHTS[degree])
    J = part.jacobian(H, 2 * H, u, np.array(WEIGHTS[degree]))
    assert relative(J, reference) < 1e-7


@pytest.mark.parametrize("constant", ["der(x)", "der(v)", "y", "x"])
def test_one_row_that_is_declared_constant_says_nothing_of_the_others(constant):
    model = MODELS["pendulum"]
    rows = {name: " ".join(f"+{word}" for word in words.split()) if name == constant else words
            for name, words in (model.outputs | model.derivatives).items()}  # fmt: skip
    given = replace(
        model,
        outputs={name: rows[name] for name in model.outputs},
        derivatives={name: rows[name] for name in model.derivatives},
    )
    part = cs.load_fmu(build("pendulum", given, 2))
    part.start(0.0)
    assert not part._step_jacobian.constant


def test_frozen_partials_would_not_do():
    """The propagation is needed: the partials at the start alone miss the derivative over the long step."""
    part = cs.load_fmu(fmu("pendulum", 2))
    part.start(0.0)
    u = Polynomial(0.0, 0.3, np.array([[0.8]]))
    reference = central(part, 0.0, u, [1.0])
    part._step_jacobian.constant = True
    assert relative(part.jacobian(0.0, 0.3, u, np.array([1.0])), reference) > 1e-3


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("name", ["mass_held", "pendulum"])
@pytest.mark.parametrize("substeps", [1, 3])
def test_held_inputs(fmi, name, substeps):
    """What is held over pieces of the step is perturbed over pieces of the step."""
    part = cs.load_fmu(fmu(name, fmi), substeps=substeps, interpolate=False, start={"x": 0.7})
    part.start(0.0)
    H = 1e-2 if name == "mass_held" else 0.2
    u = Polynomial(0.0, H, np.array([[0.3], [1.0], [-0.5]]))
    reference = central(part, 0.0, u, [0.0, 0.5, 0.5])
    assert relative(part.jacobian(0.0, H, u, np.array([0.0, 0.5, 0.5])), reference) < 1e-7


def test_adjoint_derivatives():
    """FMI 3.0: rows instead of columns where only these are offered, or where they are fewer."""
    only = replace(MODELS["mass_link"], flags=without("providesDirectionalDerivatives"))
    by_rows, by_columns = cs.load_fmu(build("mass_link", only, 3)), cs.load_fmu(fmu("mass_link", 3))
    u = Polynomial(0.0, 1e-3, np.ones((2, 4)))
    found = []
    for part in (by_rows, by_columns):
        part.start(0.0)
        found.append(part.jacobian(0.0, 1e-3, u, np.array([0.0, 1.0])))
    assert np.array_equal(*found)
    # der(x), der(v) by x, v and four inputs: two rows against six columns (x and v are states themselves)
    assert by_columns._derivatives.calls == by_rows._derivatives.calls == 2


def test_vector_ports():
    """FMI 3.0 arrays: one column per entry."""
    part = cs.load_fmu(fmu("array", 3), parameters={"n": 4, "k": [1.0, 2.0, 3.0, 4.0]})
    part.start(0.0)
    u = Polynomial(0.0, 0.1, np.array([[0.1, 0.2, 0.3, 0.4]]))
    reference = central(part, 0.0, u, [1.0], eps=1.0)
    J = part.jacobian(0.0, 0.1, u, np.array([1.0]))
    assert J.shape == (8, 4)
    assert relative(J, reference) < 1e-7
    k = np.arange(1.0, 5.0)
    assert np.diag(J[:4]) == pytest.approx((1 - np.exp(-k * 0.1)) / k, rel=1e-12)


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("name", ["mass_no_derivatives", "mass_unstructured", "mass_no_rollback"])
def test_no_jacobian_without_what_it_needs(fmi, name):
    """No derivatives, no states shown, or no way back: the engine takes differences (or refuses)."""
    assert "jacobian" not in cs.capabilities(cs.load_fmu(fmu(name, fmi)))


def test_constant_step_fmu_interpolates_its_partials():
    """An FMU that cannot stop inside the step: partials on a line between its ends, right to second order."""
    fixed = replace(MODELS["pendulum"], flags=without("canHandleVariableCommunicationStepSize"))
    file = build("pendulum", fixed, 2)
    errors, steps = [], (0.2, 0.1, 0.05)
    for H in steps:
        part, free = cs.load_fmu(file), cs.load_fmu(fmu("pendulum", 2))
        u = Polynomial(0.0, H, np.array([[0.8], [0.5]]))
        found = []
        for each in (part, free):
            each.start(0.0)
            found.append(each.jacobian(0.0, H, u, np.array([0.0, 1.0])))
        errors.append(np.abs(found[0] - found[1]).max())
    assert errors[0] < 1e-3
    assert (
        cs.analysis.convergence_order(steps, errors) > 3.0
    )  # the sensitivity itself is O(H^2), its relative error O(H^2)


@pytest.mark.parametrize("said", ["by the user", "by the FMU"])
@pytest.mark.parametrize("fmi", [2, 3])
def test_step_derivatives_are_taken_as_they_are(fmi, said, tmp_path):
    """The FMU says what its last step did; here the partials of the instant serve as such."""
    note = {
        2: "<VendorAnnotations><Tool name={}/></VendorAnnotations>",
        3: "<Annotations><Annotation type={}/></Annotations>",
    }
    note = note[fmi].format('"org.cosolve.step-derivatives"')
    if said == "by the user":
        part = cs.load_fmu(fmu("mass_spring", fmi), derivatives="step", interpolate=False)
    else:
        place = "<ModelVariables>"
        file = changed(fmu("mass_spring", fmi), tmp_path / "said.fmu", lambda t: t.replace(place, note + place))
        part = cs.load_fmu(file, interpolate=False)
    part.start(0.0)
    u = Polynomial(0.0, 1e-3, np.zeros((1, 2)))
    J = part.jacobian(0.0, 1e-3, u, np.array([1.0]))
    assert J.tolist() == [[-1e6, -14.1421], [0.0, 0.0], [0.0, 0.0]]
