"""As Lu (2015), 3.3.3.2 and 3.3.3.3, ran them: full coordinates, stiff bushings at the ground.

No numbers are printed for these; what is held: the ideal hinge is the limit, the bushing sags by its load over its
stiffness, Method 3 closes position and velocity.
"""

import numpy as np
import pytest
from examples.double_pendulum_rigid import model as pendulum
from examples.double_pendulum_rigid import penalty as pendulum_on_bushing
from examples.planar.case import errors, run
from examples.slider_crank import model as lever
from examples.slider_crank import penalty as lever_on_bushings

import cosolve as cs

S = cs.StabilisedIndex2


@pytest.mark.covers("LU-34")
def test_rod_on_a_bushing_in_equilibrium():
    """Sagging by the reaction of the ideal hinge over 1e8 N/m, rod 1 has the accelerations of the ideal pendulum."""
    start = np.array([np.cos(pendulum.PHI_1), np.sin(pendulum.PHI_1)])
    other = np.array([np.cos(pendulum.PHI_2), np.sin(pendulum.PHI_2)])
    q = np.concatenate([0.5 * start, [pendulum.PHI_1], start + 0.5 * other, [pendulum.PHI_2]])
    a, lam = pendulum.MECHANISM.accelerations(0.0, q, np.zeros(6))
    state = np.concatenate([0.5 * start - lam[:2] / pendulum_on_bushing.C_HINGE, [pendulum.PHI_1], np.zeros(3)])
    found = pendulum_on_bushing.rod_1_motion(0.0, state, np.concatenate([lam[2:], np.zeros(2)]))
    assert found[6:] == pytest.approx(a[:3], abs=1e-6)


@pytest.mark.covers("LU-35")
def test_rods_on_bushings_in_equilibrium():
    """The same for both rods of the sliding lever, where the spring is relaxed."""
    plan = lever.rigid(lever.SPRING).plan()
    ideal = [s.output_function for s in plan.subsystems]
    phi1, phi2, lam = lever.PHI_1, lever.PHI_2, 5.124820026788608
    x1, y1 = 0.5 * lever.L1 * np.cos(phi1), 0.5 * lever.L1 * np.sin(phi1)
    turn_1 = ideal[0](0.0, np.array([phi1, 0.0]), np.array([lam, 0.0, phi2, *lever.SPRING]))[2]
    turn_2 = ideal[1](0.0, np.array([phi2, 0.0]), np.array([lam, 0.0, x1, y1, phi1]))[2]
    normal = np.array([-np.sin(phi2), np.cos(phi2)])
    for m, half, pivot, phi, turn, sign, motion, u in (
        (lever.M1, 0.5 * lever.L1, 0.0, phi1, turn_1, 1.0, lever_on_bushings.rod_1_motion, [lam, 0.0, phi2]),
        (lever.M2, 0.5 * lever.L2, 1.0, phi2, turn_2, -1.0, lever_on_bushings.rod_2_motion, [lam, 0.0, x1, y1, phi1]),
    ):
        acceleration = half * turn * np.array([-np.sin(phi), np.cos(phi)])
        reaction = m * acceleration - sign * lam * normal + np.array([0.0, m * lever.GRAVITY])
        centre = np.array([pivot + half * np.cos(phi), half * np.sin(phi)]) - reaction / lever_on_bushings.C_HINGE
        found = motion(0.0, np.array([*centre, phi, 0.0, 0.0, 0.0]), np.array(u))
        assert found[6:] == pytest.approx([*acceleration, turn], abs=1e-5)


def test_a_residual_of_a_constraint_is_no_size_of_its_force():
    """From rest, without a force: differences that follow the residual would be so small that rounding hides them."""
    case = pendulum_on_bushing.ON_BUSHING
    system = case.build(1e-3 / case.inner)
    result = cs.simulate(system, t_end=2e-3, method=cs.SemiImplicit(0, constraints=S()), step=1e-3)
    assert not result["lam"][0].any()
    assert result.column("residual")[1] < 1e-6


@pytest.mark.slow
@pytest.mark.covers("LU-34")
def test_pendulum_on_a_bushing():
    """Order 2 towards the ideal pendulum, residuals near rounding, and the sag of the ideal reaction."""
    results = [run(pendulum_on_bushing.ON_BUSHING, S(), 0, H) for H in (2e-3, 1e-3)]
    coarse, fine = (errors(pendulum_on_bushing.ON_BUSHING, r) for r in results)
    assert fine.coordinates < 3e-6
    assert np.log2(coarse.coordinates / fine.coordinates) == pytest.approx(2, abs=0.15)
    assert fine.position < 1e-9
    assert fine.velocity < 1e-6
    start = np.array([np.cos(pendulum.PHI_1), np.sin(pendulum.PHI_1)])
    other = np.array([np.cos(pendulum.PHI_2), np.sin(pendulum.PHI_2)])
    q0 = np.concatenate([0.5 * start, [pendulum.PHI_1], start + 0.5 * other, [pendulum.PHI_2]])
    gaps = []
    for r in results:
        near = np.array([r["one.x"], r["one.y"]]).T - 0.5 * np.array([np.cos(r["one.phi"]), np.sin(r["one.phi"])]).T
        reaction = pendulum.MECHANISM.solve(q0, r.t)[2][:, :2]
        late = r.t > 0.02  # the bushing settles with c / d = 1000 1/s
        gaps.append(np.abs(near + reaction / 1e8)[late].max())
        # the damper of the bushing sees v, not x' = v + mu: a force of up to d mu that is not there
        assert gaps[-1] < 1e5 * np.abs(r["mu"]).max() / 1e8
    assert gaps[1] < 0.1 * 2.4e-7
    assert np.log2(gaps[0] / gaps[1]) == pytest.approx(2, abs=0.2)  # as mu


@pytest.mark.slow
@pytest.mark.covers("LU-35")
def test_lever_on_bushings():
    """Order 1, as with ideal hinges (constant foreign angles); residuals near rounding; angles within 5e-7 of those."""
    results = [run(lever_on_bushings.ON_BUSHINGS, S(), 0, H) for H in (2e-3, 1e-3)]
    coarse, fine = (errors(lever_on_bushings.ON_BUSHINGS, r) for r in results)
    assert np.log2(coarse.coordinates / fine.coordinates) == pytest.approx(1, abs=0.15)
    assert fine.position < 1e-9
    assert fine.velocity < 1e-6
    ideal = run(lever.SPRUNG_JOINT, S(), 0, 1e-3)
    for name in ("one.phi", "two.phi"):
        assert np.abs(results[1][name] - ideal[name]).max() < 5e-7
    assert 1e-7 < np.abs(lever_on_bushings.sag(results[1])).max() < 3e-7
