"""The rotor in its bearing: equilibrium, couplings A, B and C, the jump of C, oil whirl, centre and standstill."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from examples.rotor_bearing import fixed_step, run
from examples.rotor_bearing.elrod import Groove
from examples.rotor_bearing.journal_bearing import JournalBearing
from examples.rotor_bearing.model import FORMS, Rotor
from examples.rotor_bearing.study import measured_threshold, small_motion, states

import cosolve as cs

ROTOR = Rotor()


# -- equilibrium -------------------------------------------------------------------------------------------


@pytest.mark.covers("SC-39")
@pytest.mark.parametrize("omega", [60.0, 600.0, 1600.0])
def test_film_carries_the_weight_at_the_place_of_rest(omega):
    D = ROTOR.equilibrium(omega)
    F = ROTOR.bearing.force(D, (0.0, 0.0), omega)
    np.testing.assert_allclose(F, [0.0, ROTOR.m * ROTOR.gravity], atol=1e-6)


@pytest.mark.covers("SC-39")
def test_a_run_settles_at_the_place_of_rest():
    """Below the threshold the balanced rotor comes to rest where film and weight are in balance."""
    rotor = replace(ROTOR, ramp=0.0, unbalance=0.0)
    result = cs.simulate(rotor.system("cartesian"), t_end=0.25, method=cs.DynamicStatic("C", rtol=1e-8))
    at_rest = rotor.equilibrium(600.0) / rotor.bearing.c
    np.testing.assert_allclose([result["rotor.x"][-1], result["rotor.y"][-1]], at_rest, atol=1e-6)
    np.testing.assert_allclose([result["bearing.F_x"][-1], result["bearing.F_y"][-1]], [0.0, 9.81], atol=1e-4)


def test_equilibrium_with_mass_conserving_cavitation():
    bearing = JournalBearing(0.01, 20e-6, 0.01, 4e-3, 48, 8, cavitation="elrod", groove=Groove(np.pi / 2, 0.8))
    D = bearing.equilibrium(9.81, 600.0)
    np.testing.assert_allclose(bearing.force(D, (0.0, 0.0), 600.0), [0.0, 9.81], atol=1e-6)
    guembel = ROTOR.equilibrium(600.0)
    assert np.hypot(*(D - guembel)) < 0.1 * bearing.c  # the same bearing, roughly


# -- couplings A, B, C -------------------------------------------------------------------------------------


@cache
def coupled(variant, rtol=1e-5, t_end=0.012, **settings):
    return cs.simulate(
        ROTOR.system(), t_end=t_end, method=cs.DynamicStatic(variant, rtol=rtol, max_step=1e-4, **settings)
    )


@cache
def exact():
    return ROTOR.reference(0.012, rtol=1e-9)


def error(result):
    return cs.analysis.nrmse(exact()(result.t), states(result))


@pytest.mark.sample(1)
@pytest.mark.covers("SC-39")
@pytest.mark.parametrize("rtol", [1e-4, 1e-5])
def test_couplings_a_and_c_are_alike_and_b_is_worse(rtol):
    a, b, c = (coupled(variant, rtol) for variant in "ABC")
    assert a.stats.steps == c.stats.steps
    assert error(a) == pytest.approx(error(c), rel=0.01)
    assert error(b) > 3 * error(c)


@pytest.mark.covers("SC-39")
def test_calls_of_a_over_calls_of_c_are_the_mean_number_of_iterations():
    a, c = coupled("A"), coupled("C")
    iterations = float(np.nansum(a.iterations)) / a.stats.calls["rotor"]
    ratio = a.stats.calls["bearing"] / c.stats.calls["bearing"]
    assert ratio == pytest.approx(iterations, rel=0.02)
    assert 1.7 < ratio < 2.5  # the reference code's fixed-step Newton iteration needs 2
    assert c.stats.calls["bearing"] == c.stats.calls["rotor"]  # accepted and repeated steps


@pytest.mark.covers("SC-39")
def test_coupled_run_follows_the_undivided_model():
    assert error(coupled("C", 1e-6)) < 3e-4


@pytest.mark.covers("SC-39")
def test_distances_of_the_table_in_the_engine():
    """BDF2 with 80 microseconds in `DynamicStatic`: distances of C and B to A within a factor of 2 of the table."""
    a, b, c = (coupled(variant, step=80e-6, order=2, newton=1e-4) for variant in "ABC")
    of_c, of_b, calls = TABLE[80e-6]
    assert 0.5 < cs.analysis.nrmse(states(a), states(b)) / of_b < 2
    assert 0.5 < cs.analysis.nrmse(states(a), states(c)) / of_c < 2
    assert a.stats.calls["bearing"] == pytest.approx(calls, rel=0.05)
    assert b.stats.calls["bearing"] == c.stats.calls["bearing"] == 150


@pytest.mark.slow
@pytest.mark.covers("SC-39")
def test_fixed_step_of_the_engine():
    """BDF2 with 40 microseconds: C much closer to A than B; one static call per step for B and C."""
    a, b, c = (coupled(variant, step=40e-6, order=2, newton=1e-4) for variant in "ABC")
    assert c.stats.calls["bearing"] == b.stats.calls["bearing"] == 300
    assert a.stats.calls["bearing"] == pytest.approx(619, rel=0.05)
    assert 10 * cs.analysis.nrmse(states(a), states(c)) < cs.analysis.nrmse(states(a), states(b))


# -- the reference code's table and its jump --------------------------------------------------------------------

TABLE = {80e-6: (5.4e-3, 1.0e-2, 328), 40e-6: (7.8e-4, 2.9e-3, 619), 20e-6: (2.2e-6, 8.9e-4, 1206)}


@cache
def fixed(cavitation, variant, h, first, lead=0.0):
    return fixed_step.run(fixed_step.rotor(cavitation), variant, h, first=first, lead=lead)


def distance(cavitation, variant, h, first, lead=0.0):
    return cs.analysis.nrmse(fixed(cavitation, "A", h, first).x, fixed(cavitation, variant, h, first, lead).x)


@pytest.mark.sample(1)
@pytest.mark.covers("SC-39")
@pytest.mark.parametrize("h", TABLE)
def test_table_of_the_reference_code(h):
    """The reference code cut the pressure cell by cell and predicted the first step by the start: within 10 %."""
    c, b, calls = TABLE[h]
    assert distance("guembel-cells", "C", h, "hold") == pytest.approx(c, rel=0.1)
    assert distance("guembel-cells", "B", h, "hold") == pytest.approx(b, rel=0.1)
    assert fixed("guembel-cells", "A", h, "hold").calls == pytest.approx(calls, rel=0.03)
    assert (
        fixed("guembel-cells", "B", h, "hold").calls == fixed("guembel-cells", "C", h, "hold").calls == round(0.012 / h)
    )


@pytest.mark.slow
def test_the_jump_of_c_comes_from_cells_that_change_sign_in_the_first_step():
    """With whole cells the force is linear in the rates while no cell changes sign, and C is then almost A."""
    first = [int(fixed("guembel-cells", "C", h, "hold").flips[0]) for h in TABLE]
    assert first[0] > first[1] > 0
    assert first[2] == 0
    jump = distance("guembel-cells", "C", 40e-6, "hold") / distance("guembel-cells", "C", 20e-6, "hold")
    smooth = distance("guembel", "C", 40e-6, "hold") / distance("guembel", "C", 20e-6, "hold")
    assert jump > 300
    assert smooth == pytest.approx(8, rel=0.15)  # third order: one first step with a predictor of degree 0


def test_the_jump_is_gone_when_a_leads_through_the_first_millisecond():
    assert (
        distance("guembel-cells", "C", 40e-6, "hold", lead=1e-3) < 1e-6 < distance("guembel-cells", "C", 40e-6, "hold")
    )


# -- oil whirl ---------------------------------------------------------------------------------------------


def test_whirl_threshold_from_coefficients_and_from_runs():
    threshold = ROTOR.threshold()
    assert measured_threshold(ROTOR, threshold) == pytest.approx(threshold, rel=2e-3)
    assert ROTOR.whirl(threshold).imag / threshold == pytest.approx(0.5, abs=0.01)  # half-speed whirl


@pytest.mark.parametrize("share", [0.8, 1.2])
def test_growth_and_frequency_of_small_motions(share):
    omega = share * 1859.4
    linear, seen = ROTOR.whirl(omega), small_motion(ROTOR, omega, 0.03)
    assert seen.real == pytest.approx(linear.real, rel=0.02)
    assert seen.imag == pytest.approx(linear.imag, rel=1e-3)
    assert np.sign(seen.real) == np.sign(share - 1)


@pytest.mark.slow
def test_run_up_ends_in_half_speed_whirl_and_does_not_touch():
    rotor = replace(ROTOR, unbalance=0.5e-6, omega_0=1400.0, ramp=1e4, start=(0.1, -0.02))
    result = cs.simulate(rotor.system("cartesian"), t_end=0.18, method=cs.DynamicStatic("C", rtol=1e-5))
    eps = np.hypot(result["rotor.x"], result["rotor.y"])
    assert eps[result["rotor.omega"] < 1850].max() < 0.15
    late = result["rotor.omega"] > 3100
    assert 0.5 < eps[late].max() < 1
    angle = np.unwrap(np.arctan2(result["rotor.y"][late], result["rotor.x"][late]))
    turning = np.ptp(angle) / np.ptp(result.t[late])
    assert turning / 3150 == pytest.approx(0.5, abs=0.04)


@pytest.mark.slow
def test_one_command_draws_every_picture(tmp_path, capsys):
    run.main(["--quick", "--out", str(tmp_path)])
    drawn = {path.name for path in tmp_path.glob("*.png") if path.stat().st_size > 20_000}
    assert drawn == {"film.png", "run_up.png", "whirl.png", "comparison.png", "jump.png"}
    assert "oil whirl begins at 1859" in capsys.readouterr().out


# -- centre, standstill, contact ---------------------------------------------------------------------------


@pytest.mark.covers("SC-40")
def test_forces_stay_finite_on_a_path_through_the_centre():
    """The path advances over the centre exactly; polar (guarded) and Cartesian (regular) forms agree up to the grid."""
    bearing, V, omega = ROTOR.bearing, (2e-3, 1e-3), 600.0
    for s in (*np.linspace(-1e-6, 1e-6, 21), 1e-14, -1e-300):
        D = np.array([2.0, 1.0]) * s
        force = bearing.force(D, V, omega)
        polar = bearing.to_cartesian(bearing.polar(*bearing.kinematics(D, V, omega)).force, D, omega)
        assert np.isfinite(force).all()
        assert np.isfinite(polar).all()
        if abs(s) > 1e-10:
            np.testing.assert_allclose(polar, force, rtol=0.01)


@pytest.mark.covers("SC-40")
def test_cartesian_derivatives_are_continuous_through_the_centre():
    bearing, V, omega = ROTOR.bearing, (2e-3, 1e-3), 600.0
    J = [bearing.jacobian((s, -s), V, omega) for s in (-1e-12, 0.0, 1e-12)]
    assert np.isfinite(J[1]).all()
    np.testing.assert_allclose(J[0], J[1], rtol=1e-4, atol=1.0)
    np.testing.assert_allclose(J[2], J[1], rtol=1e-4, atol=1.0)


@pytest.mark.covers("SC-40")
@pytest.mark.parametrize("form", FORMS)
def test_a_run_that_starts_at_the_centre(form):
    rotor = replace(ROTOR, start=(0.0, 0.0))
    result = cs.simulate(rotor.system(form), t_end=3e-3, method=cs.DynamicStatic("C", rtol=1e-6))
    reference = rotor.reference(3e-3, "cartesian")(result.t)
    assert np.abs(states(result) - reference)[:, :2].max() < 1e-4


@pytest.mark.covers("SC-40")
def test_a_run_through_standstill():
    rotor = replace(ROTOR, ramp=-2e5)  # stands still at 3 ms, then turns backwards
    result = cs.simulate(rotor.system("cartesian"), t_end=5e-3, method=cs.DynamicStatic("C", rtol=1e-7))
    reference = rotor.reference(5e-3, "cartesian")(result.t)
    assert result["rotor.omega"][-1] == pytest.approx(-400)
    np.testing.assert_allclose(states(result), reference, atol=1e-4)
    with pytest.raises(cs.errors.SubsystemError, match="need omega > 0"):
        cs.simulate(rotor.system("polar"), t_end=5e-3, method=cs.DynamicStatic("C", rtol=1e-6))


@pytest.mark.covers("SC-40")
@pytest.mark.parametrize("form", FORMS)
def test_contact_stops_the_run_with_time_and_eccentricity(form):
    crushed = replace(ROTOR, gravity=3e7, unbalance=0.0)
    with pytest.raises(cs.errors.SubsystemError, match=r"at t = .*touches the bush: eccentricity 1") as caught:
        cs.simulate(crushed.system(form), t_end=5e-3, method=cs.DynamicStatic("C", rtol=1e-5))
    assert caught.value.result is not None
    assert len(caught.value.result.t) > 10
    outside = replace(ROTOR, start=(0.9, -0.6))
    with pytest.raises(cs.errors.SubsystemError, match=r"at t = 0.*touches the bush: eccentricity 1\.08"):
        cs.simulate(outside.system(form), t_end=5e-3, method=cs.DynamicStatic("C"))


def test_unknown_form_is_refused():
    with pytest.raises(cs.errors.SetupError, match="form must be one of polar, cartesian, not 'spherical'"):
        ROTOR.system("spherical")
