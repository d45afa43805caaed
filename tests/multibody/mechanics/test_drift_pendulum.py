"""Drift remedies on the pendulum P1 of docs/validation/drift.md, RK4 with h = 0.01 from (1, 0) at rest."""

import warnings

import numpy as np
import pytest
from tests.multibody.mechanics.constrained import integrate_constrained
from tests.multibody.mechanics.mechanisms import pendulum, pendulum_energy

from cosolve.errors import NonFiniteError, SetupError


def run(form, t_end, h=0.01, **options):
    return integrate_constrained(pendulum, [1.0, 0.0], [0.0, 0.0], t_end=t_end, h=h, form=form, **options)


def residuals(motion):
    c = np.abs((motion.q**2).sum(axis=1) - 1)
    rate = np.abs(2 * (motion.q * motion.v).sum(axis=1))
    return c, rate


@pytest.fixture(scope="module")
def plain():
    return run("index_1", 100)


@pytest.mark.covers("DR-01")
def test_plain_index_1_drifts_with_the_square_of_time(plain):
    c, rate = residuals(plain)
    assert c.max() == pytest.approx(7.20e-3, rel=0.02)
    assert c.max() / c[:1001].max() == pytest.approx(100.3, rel=0.03)
    assert rate.max() == pytest.approx(1.44e-4, rel=0.02)
    assert np.abs(pendulum_energy(plain)).max() == pytest.approx(4.8e-2, rel=0.02)


@pytest.mark.covers("DR-01")
def test_plain_drift_has_the_order_of_the_integrator(plain):
    half = run("index_1", 10, h=0.005)
    assert residuals(plain)[0][:1001].max() / residuals(half)[0].max() == pytest.approx(16.0, rel=0.01)
    assert residuals(half)[0].max() == pytest.approx(4.49e-6, rel=0.01)


@pytest.mark.slow
@pytest.mark.covers("DR-01")
def test_plain_index_1_loses_the_pendulum_in_the_end():
    with pytest.raises(NonFiniteError, match="diverged at t = 98") as caught:  # the length has shrunk to nothing
        run("index_1", 1000)
    assert caught.value.time == pytest.approx(989, abs=1)


@pytest.mark.sample(2)
@pytest.mark.covers("DR-02")
@pytest.mark.parametrize(("beta", "c_max", "rate_max", "energy"), [
    (1.0, 1.39e-6, 6.9e-7, 1.4e-5),
    (3.0, 1.02e-7, 4.5e-7, 1.2e-5),
    (10.0, 7.13e-7, 9.2e-6, 2.4e-4),
    (100.0, 9.6e-5, 1.6e-2, 5.4e-3),
])  # fmt: skip
def test_baumgarte_keeps_the_residual_bounded(beta, c_max, rate_max, energy):
    motion = run("baumgarte", 20, beta=beta)
    c, rate = residuals(motion)
    assert c.max() == pytest.approx(c_max, rel=0.05)
    assert c[:1001].max() == pytest.approx(c.max(), rel=0.02)  # reached within 10 s, not growing
    if beta in (3.0, 10.0):
        assert rate.max() == pytest.approx(rate_max, rel=0.05)
    assert np.abs(pendulum_energy(motion)).max() <= energy * 1.05


@pytest.mark.slow
@pytest.mark.covers("DR-02")
def test_baumgarte_residual_is_the_same_after_1000_seconds():
    c = residuals(run("baumgarte", 1000, beta=10.0))[0]
    assert c[:1001].max() == pytest.approx(7.13e-7, rel=0.05)
    assert c.max() == pytest.approx(c[:1001].max(), rel=1e-3)


@pytest.mark.slow
@pytest.mark.covers("DR-02")
def test_other_damping_at_the_same_frequency():
    for alpha, expected in ((0.0, 2.26e-6), (1.0, 1.13e-6), (20.0, 9.1e-7)):
        assert residuals(run("baumgarte", 100 if alpha == 0 else 10, alpha=alpha, beta=10.0))[0].max() == pytest.approx(
            expected, rel=0.05
        )


@pytest.mark.covers("DR-03")
def test_default_damping_is_critical():
    default, explicit = run("baumgarte", 1, beta=7.0), run("baumgarte", 1, alpha=7.0, beta=7.0)
    assert (default.q == explicit.q).all()


@pytest.mark.covers("DR-03")
def test_alpha_is_limited_by_the_step_of_rk4():
    with pytest.warns(UserWarning, match=r"alpha h = 3 is above 2.5"), pytest.raises(NonFiniteError) as caught:
        run("baumgarte", 5, beta=300.0)
    assert caught.value.time < 1  # the double eigenvalue -300 is outside RK4's region: 3 > 2.78
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bounded = run("baumgarte", 5, beta=200.0)  # 2 < 2.5: no warning, no blow-up
    assert residuals(bounded)[0].max() == pytest.approx(1.48e-3, rel=0.01)


@pytest.fixture(scope="module")
def ggl():
    return {h: run("ggl", 10, h=h) for h in (0.01, 0.005)}


@pytest.mark.covers("DR-04")
def test_ggl_holds_both_constraints_to_newton_precision(ggl):
    for motion in ggl.values():
        c, rate = residuals(motion)
        assert c.max() < 1e-12
        assert rate.max() < 1e-12


@pytest.mark.covers("DR-04")
def test_ggl_correction_is_second_and_energy_third_order_small(ggl):
    mu = {h: np.abs(motion.mu).max() for h, motion in ggl.items()}
    energy = {h: np.abs(pendulum_energy(motion)).max() for h, motion in ggl.items()}
    assert mu[0.01] == pytest.approx(4.5e-4, rel=0.02)
    assert mu[0.005] == pytest.approx(1.13e-4, rel=0.02)
    assert mu[0.01] / mu[0.005] == pytest.approx(4.0, rel=0.05)
    assert energy[0.01] == pytest.approx(1.43e-3, rel=0.02)
    assert energy[0.01] / energy[0.005] == pytest.approx(8.0, rel=0.05)


@pytest.mark.covers("DR-04")
def test_three_stages_give_order_five():
    energy = {h: np.abs(pendulum_energy(run("ggl", 2, h=h, stages=3))).max() for h in (0.02, 0.01)}
    assert np.log2(energy[0.02] / energy[0.01]) == pytest.approx(5, abs=0.1)


@pytest.mark.slow
@pytest.mark.covers("DR-04")
def test_ggl_over_100_seconds():
    motion = run("ggl", 100)
    c, rate = residuals(motion)
    assert max(c.max(), rate.max()) < 1e-12
    assert np.abs(pendulum_energy(motion)).max() == pytest.approx(1.4e-2, rel=0.05)


@pytest.mark.covers("DR-05")
def test_projection_of_positions_and_velocities():
    motion = run("projection", 100)
    c, rate = residuals(motion)
    assert c.max() < 1e-13
    assert rate.max() < 1e-13
    assert np.abs(pendulum_energy(motion)).max() == pytest.approx(1.6e-5, rel=0.05)


@pytest.mark.slow
@pytest.mark.covers("DR-05")
def test_projection_of_positions_alone_is_not_enough():
    motion = run("position_projection", 100)
    c, rate = residuals(motion)
    assert c.max() < 1e-13
    assert rate.max() == pytest.approx(1.44e-4, rel=0.02)  # as without any remedy
    assert np.abs(pendulum_energy(motion)).max() == pytest.approx(3.2e-2, rel=0.02)


@pytest.mark.slow
@pytest.mark.covers("DR-05")
def test_projections_over_1000_seconds():
    both, alone = run("projection", 1000), run("position_projection", 1000)
    assert np.abs(pendulum_energy(both)).max() == pytest.approx(1.6e-4, rel=0.05)
    assert max(r.max() for r in residuals(both)) < 1e-13
    assert np.abs(pendulum_energy(alone)).max() == pytest.approx(4.9, rel=0.02)


def test_repeated_constraints_share_their_force():
    from tests.multibody.mechanics.constrained import Constrained

    twice = Constrained(
        mass=np.eye(2),
        force=pendulum.force,
        c=lambda q: np.repeat(pendulum.c(q), 2),
        C=lambda q: np.repeat(pendulum.C(q), 2, axis=0),
        gamma=lambda q, v: np.repeat(pendulum.gamma(q, v), 2),
    )
    q, v = np.array([0.6, -0.8]), np.array([0.8, 0.6])
    a, lam = twice.accelerations(0.0, q, v)
    a_once, lam_once = pendulum.accelerations(0.0, q, v)
    assert a == pytest.approx(a_once, abs=1e-12)
    assert lam == pytest.approx(np.repeat(lam_once / 2, 2), abs=1e-12)


def test_unknown_form_and_bad_steps_are_refused():
    with pytest.raises(SetupError, match="unknown form 'index 3'"):
        run("index 3", 1)
    with pytest.raises(SetupError, match="must be positive"):
        run("projection", 1, h=0.0)
