"""The spatial universal joint at the values of the reference code (docs/validation/lu.md)."""

from functools import cache

import numpy as np
import pytest
from examples.universal_joint.model import (
    AXIS_1,
    AXIS_2,
    GRAVITY,
    J_1,
    J_2,
    M_1,
    M_2,
    OMEGA,
    POINT_1,
    POINT_2,
    Q_2,
    start_of_second,
    system,
    torque,
)
from examples.universal_joint.run import residuals
from tests.multibody.joints.monolithic import Basic, Body, Monolithic

import cosolve as cs

T_END = 0.2


@cache
def reference():
    """States and multipliers every 2 ms."""
    r, v, omega = start_of_second()
    first = Body(M_1, np.diag(J_1), np.concatenate([np.zeros(3), [1, 0, 0, 0], np.zeros(3), OMEGA]), torque)
    second = Body(M_2, np.diag(J_2), np.concatenate([r, Q_2, v, omega]))
    joints = [Basic("atpoint", 0, 1, POINT_1, POINT_2), Basic("perpendicular", 0, 1, e_i=AXIS_1, e_j=AXIS_2)]
    model = Monolithic([first, second], joints, GRAVITY)
    times = np.linspace(0, T_END, 101)
    states = model.run(times, rtol=1e-12, atol=1e-14)
    return states, np.array([model.solve(t, x.ravel())[1] for t, x in zip(times, states, strict=True)])


def measure(method, H, correction):
    """Errors of r, q_1 (largest), of lambda (at the end), largest g and g', largest momentum defect."""
    result = cs.simulate(system(H, correction=correction), t_end=T_END, step=H, method=method)
    every = round(2e-3 / H)
    states, multipliers = reference()
    r = np.hstack([result["one.cardan_r"], result["two.cardan_r"]])[::every]
    lam = np.hstack([result["cardan_force"], result["cardan_torque"]])
    momentum = M_1 * result["one.cardan_v"] + M_2 * result["two.cardan_v"]
    defect = momentum - momentum[0] - (M_1 + M_2) * GRAVITY * result.t[:, None]
    g = residuals(result)
    found = [
        np.abs(r - np.hstack([states[:, 0, :3], states[:, 1, :3]])).max(),
        np.abs(result["one.cardan_q"][::every] - states[:, 0, 3:7]).max(),
        np.abs(lam[-1] - multipliers[-1]).max(),
        np.abs(g[0]).max(),
        np.abs(g[1]).max(),
    ]
    return np.array(found), np.abs(defect).max()


def semi(degree, treatment):
    return cs.SemiImplicit(degree, final_update=False, constraints=treatment)


BAUMGARTE_2 = cs.Baumgarte(beta=2e-3, gamma=0.0)
BAUMGARTE_1 = cs.Baumgarte(beta=2e-3, gamma=1e-6)
CASES = {
    "M1 index 2, k=0": (
        semi(0, BAUMGARTE_2), False, (1.5e-7, 7.7e-7, 6.0e-4, 2.5e-9, 1.2e-6), (1, 1, 1, 2, 2),
    ),
    "M1 index 1, k=1": (
        semi(1, BAUMGARTE_1), False, (6.9e-12, 3.3e-11, 4.0e-7, 5.2e-12, 1.1e-9), (1.95, 2, 2, 2, 2.6),
    ),
    "M2 index 1, k=0": (
        semi(0, cs.WeightedMultipliers(1, 1)), False, (1.5e-7, 7.7e-7, 6.0e-4, 5.1e-9, 1.7e-6), (1, 1, 1, 3, 2),
    ),
    "M3, k=0": (
        semi(0, cs.StabilisedIndex2()), True, (1.8e-7, 7.1e-7, 6.0e-4, 1.0e-12, 2.0e-9), (1.2, 0.9, 1, 4, 3),
    ),
    "M3, k=1, relaxed": (
        semi(1, cs.StabilisedIndex2(0.8)), True, (1.2e-7, 3.0e-7, 1.2e-5, 1.2e-9, 2.4e-6), (1.4, 1.1, 1.1, 3, 2),
    ),
}  # fmt: skip


@pytest.mark.sample(1)
@pytest.mark.covers("LU-44")
@pytest.mark.parametrize("case", CASES)
def test_errors_and_orders_of_the_table(case):
    method, correction, values, orders = CASES[case]
    fine, defect = measure(method, 1e-3, correction)
    coarse, _ = measure(method, 2e-3, correction)
    assert defect < 2e-14  # printed: within 1E-14; sums of 30 kg m/s are rounded to 4e-15 each
    np.testing.assert_allclose(fine, values, rtol=0.05)  # the table has two digits
    np.testing.assert_allclose(np.log2(coarse / fine), orders, atol=0.15)


@pytest.mark.covers("LU-44")
def test_reference_and_consistent_multipliers():
    states, multipliers = reference()
    expected = [0.60329774, -0.08688633, -0.05270608, -0.00937441]
    np.testing.assert_allclose(multipliers[0], expected, atol=1e-8)
    np.testing.assert_allclose(states[-1, 1, :3], [1.01353539, -0.14837429, -0.54900084], atol=1e-8)
    np.testing.assert_allclose(states[-1, 0, 3:7], [0.99242929, 0.05184652, 0.10432943, -0.03887684], atol=1e-8)
    result = cs.simulate(system(), t_end=1e-3, step=1e-3, method=semi(0, BAUMGARTE_2))
    np.testing.assert_allclose(np.hstack([result["cardan_force"], result["cardan_torque"]])[0], expected, atol=1e-8)


@pytest.mark.covers("LU-38")
def test_increment_of_the_differences_hardly_matters():
    ends = []
    for increment in (1e-7, 1e-5, 1e-3):
        method = cs.SemiImplicit(
            0, final_update=False, jacobian="difference", increment=increment, constraints=BAUMGARTE_2
        )
        result = cs.simulate(system(correction=False), t_end=0.05, step=1e-3, method=method)
        ends.append(np.hstack([result["one.cardan_r"][-1], result["two.cardan_q"][-1], result["two.cardan_w"][-1]]))
    assert np.ptp(ends, axis=0).max() < 1.5e-9


@pytest.mark.covers("LU-43")
def test_repeating_the_correction_removes_the_linearisation_error():
    H, worst = 1e-2, []
    for method in (
        semi(0, BAUMGARTE_2),
        cs.Implicit(0, tol=1e-12, constraints=BAUMGARTE_2),
    ):
        result = cs.simulate(system(H, correction=False), t_end=0.2, step=H, method=method)
        g = residuals(result)
        worst.append(np.abs(g[0] + 2e-3 * g[1]).max())
    assert worst[0] > 1e-9  # one correction leaves what is not linear (measured: 1.6e-8)
    assert worst[1] < 1e-12


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("treatment", "correction"),
    [(BAUMGARTE_2, False), (cs.WeightedMultipliers(1, 1), False), (cs.StabilisedIndex2(), True)],
    ids=["M1", "M2", "M3"],
)
def test_approximate_jacobian_converges_alike(treatment, correction):
    """App. B on free bodies: states as with differences up to the residual it leaves."""
    found = []
    for jacobian, source in (("auto", "difference"), ("approximate", "auto")):
        model = system(correction=correction, jacobian=jacobian)
        method = cs.SemiImplicit(0, final_update=False, jacobian=source, constraints=treatment)
        result = cs.simulate(model, t_end=0.05, step=1e-3, method=method)
        found.append((np.hstack([result["one.cardan_r"], result["two.cardan_q"]]), result.stats.total_calls))
    (exact, many), (formula, few) = found
    np.testing.assert_allclose(formula, exact, rtol=0, atol=2e-8)
    assert few < many / 4
