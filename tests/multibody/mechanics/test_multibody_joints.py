"""Internal joints: how much they leave free, that nothing drifts, closed loops, repeated rows, singular positions."""

import numpy as np
import pytest
from tests.multibody.mechanics.mechanisms import advance

import cosolve as cs
from cosolve.multibody.equations.entries import derivative, residuals
from cosolve.multibody.equations.joint_math import rotation_matrix
from cosolve.multibody.model.build import dense_jacobian
from cosolve.multibody.model.joints import JOINTS

FREE = {
    "spherical": 3,
    "revolute": 1,
    "universal": 2,
    "cylindrical": 2,
    "translational": 1,
    "planar": 3,
    "inline": 4,
    "orientation": 3,
    "fixed": 0,
}
TURNED = rotation_matrix([np.cos(0.3), np.sin(0.3) * 0.48, np.sin(0.3) * 0.6, np.sin(0.3) * 0.64])
Q2 = np.array([np.cos(0.5), 0.0, np.sin(0.5), 0.0])


def two_bodies(kind, **options):
    """Two spinning bodies whose markers coincide, joined by `kind`; velocities are those of one rigid whole."""
    model = cs.multibody.MultibodyModel()
    omega, point = np.array([0.4, -0.7, 1.1]), np.array([0.3, -0.2, 0.1])
    T2 = rotation_matrix(Q2)
    r2 = np.array([1.0, 0.5, 0.2])
    model.body("a", 1.0, [0.1, 0.12, 0.05], velocity=(0.1, 0, 0), angular_velocity=omega)
    model.body(
        "b",
        2.0,
        [[0.2, 0.01, 0], [0.01, 0.15, 0.02], [0, 0.02, 0.3]],
        position=r2,
        orientation=Q2,
        velocity=np.array([0.1, 0, 0]) + np.cross(omega, r2),
        angular_velocity=T2.T @ omega,
    )
    model.marker("on a", "a", point, axes=TURNED)
    model.marker("on b", "b", T2.T @ (point - r2), axes=T2.T @ TURNED)
    model.joint("J", kind, "on a", "on b")
    return cs.multibody.MultibodySubsystem(model, ports=[("a", ["force", "torque"]), ("b", [])], **options)


@pytest.mark.parametrize("kind", JOINTS)
def test_rank_and_degrees_of_freedom(kind):
    pair = two_bodies(kind)
    C = dense_jacobian(pair.arrays, pair.x, pair.built.driven0)
    assert np.linalg.matrix_rank(C, tol=1e-10) == len(C) == 6 - FREE[kind]
    assert pair.degrees_of_freedom == 6 + FREE[kind]


@pytest.mark.parametrize("kind", JOINTS)
def test_joints_hold_while_loads_act(kind):
    pair = two_bodies(kind)
    pair.start(0.0)
    y = advance(pair, 0.0, 0.5, u=[3.0, -1.0, 20.0, 0.4, 0.3, -0.5], steps=5)
    assert np.abs(list(pair.constraint_residuals().values())).max() < 1e-13
    assert np.isfinite(y).all()


@pytest.mark.parametrize("kind", JOINTS)
def test_joint_forces_do_no_work_and_balance(kind):
    pair = two_bodies(kind, rtol=1e-11, atol=1e-12)
    pair.start(0.0)
    E, (p, L) = pair.energy(), pair.momentum()
    advance(pair, 0.0, 0.5, steps=5)
    p1, _ = pair.momentum()
    assert pair.energy() == pytest.approx(E, abs=1e-9)
    assert p1 - p == pytest.approx([0, 0, -3 * 9.81 * 0.5], abs=1e-12)  # gravity alone changes the momentum
    assert L.shape == (3,)


@pytest.mark.parametrize("kind", JOINTS)
def test_angular_momentum_without_gravity(kind):
    pair = two_bodies(kind, rtol=1e-11, atol=1e-12)
    pair.arrays.numbers[:3] = 0.0
    pair.start(0.0)
    L = pair.momentum()[1]
    advance(pair, 0.0, 0.5, steps=5)
    assert pair.momentum()[1] == pytest.approx(L, abs=1e-9)


@pytest.mark.parametrize("kind", JOINTS)
def test_rates_and_gamma_are_the_derivatives_of_the_constraints(kind):
    # off the constraints and with arbitrary velocities, so that every term counts
    pair = two_bodies(kind)
    rng = np.random.default_rng(3)
    x = pair.x + 0.3 * rng.standard_normal(pair.x.size)
    m = len(pair.arrays.rows)
    u, extra, still = np.zeros(6), np.zeros((2, 12)), pair.built.driven0
    dx = np.empty_like(x)

    def at(s):
        return residuals(pair.arrays, x + s * dx, still)[1:]

    derivative(pair.arrays, x, u, still, extra, dx)
    h = 1e-5
    (c1, rate1), (c0, rate0) = at(h), at(-h)
    assert (c1 - c0) / (2 * h) == pytest.approx(at(0.0)[1], abs=1e-8)
    assert (rate1 - rate0) / (2 * h) == pytest.approx(np.zeros(m), abs=2e-8)  # C w' + gamma = 0


@pytest.mark.covers("DR-02")
def test_violations_decay_as_baumgarte_wants():
    """Off the constraints `c'' + 2 alpha c' + beta^2 c = 0` along the motion, with `c''` as a difference quotient."""
    alpha, beta = 3.0, 5.0
    pair = two_bodies("universal", form="baumgarte", alpha=alpha, beta=beta)
    x = pair.x + 0.3 * np.random.default_rng(3).standard_normal(pair.x.size)
    u, extra, still = np.zeros(6), np.zeros((2, 12)), pair.built.driven0
    dx, h = np.empty_like(x), 1e-5
    derivative(pair.arrays, x, u, still, extra, dx)
    (_, after), (_, before) = (residuals(pair.arrays, x + s * dx, still)[1:] for s in (h, -h))
    c, rate = residuals(pair.arrays, x, still)[1:]
    assert np.abs(c).max() > 0.1
    assert np.abs(rate).max() > 0.1
    assert (after - before) / (2 * h) == pytest.approx(-2 * alpha * rate - beta**2 * c, abs=1e-7)


def spatial_four_bar(**options):
    """Crank and rocker on hinges with skew axes, coupler with a ball and a universal joint: one degree of freedom."""
    model = cs.multibody.MultibodyModel()
    crank_tip, rocker_tip, rocker_foot = np.array([0, 0.3, 0.0]), np.array([1.0, 0.4, 0.7]), np.array([1.0, 0.4, 0.0])
    middle = (crank_tip + rocker_tip) / 2
    z = (rocker_tip - crank_tip) / np.linalg.norm(rocker_tip - crank_tip)
    x = np.cross([0, 1.0, 0], z) / np.linalg.norm(np.cross([0, 1.0, 0], z))
    T = np.column_stack([x, np.cross(z, x), z])
    half = np.linalg.norm(rocker_tip - crank_tip) / 2
    model.body("crank", 1.0, [0.02, 0.003, 0.02], position=crank_tip / 2)
    model.body("coupler", 2.0, [0.2, 0.2, 0.01], position=middle, orientation=T)
    model.body("rocker", 1.5, [0.06, 0.06, 0.005], position=(rocker_tip + rocker_foot) / 2)
    about_x = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    about_y = [[1, 0, 0], [0, 0, 1], [0, -1, 0]]
    model.marker("c0", "crank", -crank_tip / 2, axes=about_x)
    model.marker("c1", "crank", crank_tip / 2)
    model.marker("g0", "ground", axes=about_x)
    model.marker("k0", "coupler", (0, 0, -half))
    model.marker("k1", "coupler", (0, 0, half))
    model.marker("r1", "rocker", (rocker_tip - rocker_foot) / 2, axes=T)
    model.marker("r0", "rocker", (rocker_foot - rocker_tip) / 2, axes=about_y)
    model.marker("g1", "ground", rocker_foot, axes=about_y)
    model.joint("crank bearing", "revolute", "c0", "g0")
    model.joint("ball", "spherical", "c1", "k0")
    model.joint("advance", "universal", "k1", "r1")
    model.joint("rocker bearing", "revolute", "r0", "g1")
    return cs.multibody.MultibodySubsystem(
        model, monitors=["energy", "position_residual", "velocity_residual", "multipliers"], **options
    )


@pytest.mark.covers("SC-48")
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "options", [{"rtol": 1e-9}, {"form": "ggl", "internal_step": 5e-3}, {"integrator": "radau", "internal_step": 5e-3}]
)
def test_closed_spatial_four_bar(options):
    bar = spatial_four_bar(**options)
    assert bar.degrees_of_freedom == 1
    y0 = bar.start(0.0)
    worst = 0.0
    for k in range(20):
        y = advance(bar, 0.1 * k, 0.1 * (k + 1))
        worst = max(worst, *y[1:3])
    assert worst < 1e-12  # 1e-9 at both levels would do
    assert y[0] == pytest.approx(y0[0], abs=1e-4 if "internal_step" in options else 1e-6)
    assert len(y) == 3 + 17
    reference = spatial_four_bar(rtol=1e-11, atol=1e-12)
    reference.start(0.0)
    advance(reference, 0.0, 2.0)
    assert bar.state_of("coupler")[:3] == pytest.approx(reference.state_of("coupler")[:3], abs=2e-5)


def test_multipliers_are_the_joint_forces():
    model = cs.multibody.MultibodyModel()
    model.body("bob", 2.0, [0.1, 0.1, 0.1], position=(0, 0, -1))
    model.marker("top", "bob", (0, 0, 1))
    model.joint("hook", "spherical", "top", "ground")
    bob = cs.multibody.MultibodySubsystem(model, monitors=["multipliers"])
    assert bob.start(0.0) == pytest.approx([0, 0, 2 * 9.81])


# -- over-constrained, inconsistent, singular -----------------------------------------------------------


def planar_loop_in_space(redundant):
    """A parallelogram of spatial bodies with four parallel revolutes: mobility 1, three conditions too many."""
    model = cs.multibody.MultibodyModel(gravity=(0, -9.81, 0))
    for name, position in (("left", (0, 0.5, 0)), ("top", (0.8, 1, 0)), ("right", (1.6, 0.5, 0))):
        model.body(name, 1.0, [0.1, 0.1, 0.1], position=position)
    for name, body, point in (
        ("l0", "left", (0, -0.5, 0)),
        ("l1", "left", (0, 0.5, 0)),
        ("t0", "top", (-0.8, 0, 0)),
        ("t1", "top", (0.8, 0, 0)),
        ("r0", "right", (0, -0.5, 0)),
        ("r1", "right", (0, 0.5, 0)),
        ("g", "ground", (1.6, 0, 0)),
    ):
        model.marker(name, body, point)
    model.joint("A", "revolute", "l0", "ground")
    model.joint("B", "revolute", "l1", "t0")
    model.joint("C", "revolute", "t1", "r1")
    model.joint("D", "revolute", "r0", "g")
    return cs.multibody.MultibodySubsystem(model, redundant=redundant)


def test_an_over_constrained_loop_is_refused_by_name():
    with pytest.raises(
        cs.errors.SetupError, match=r"over-constrained: .*joint 'D' \(atpoint z\).*joint 'D' \(perp.*repeat"
    ) as error:
        planar_loop_in_space("refuse")
    assert "redundant='drop'" in str(error.value)
    assert str(error.value).count("joint 'D'") == 3
    assert "joint 'A'" not in str(error.value)


def test_an_over_constrained_loop_moves_when_repeated_rows_are_dropped():
    loop = planar_loop_in_space("drop")
    assert loop.degrees_of_freedom == 1
    assert len(loop.built.dropped) == 3
    loop.start(0.0)
    advance(loop, 0.0, 0.1)
    assert np.abs(list(loop.constraint_residuals().values())).max() < 1e-13


def test_dropped_rows_must_not_contradict_the_others():
    model = cs.multibody.MultibodyModel()
    model.body("block", 1.0, [0.1, 0.1, 0.1])
    model.marker("off", "ground", (0.2, 0, 0))
    model.joint("hold", "fixed", "block", "ground")
    model.joint("again", "spherical", "block", "off")
    with pytest.raises(cs.errors.SetupError, match=r"contradict each other: joint 'again' \(atpoint x\) by -0.2"):
        cs.multibody.MultibodySubsystem(model, redundant="drop")


def test_inconsistent_start_is_refused_with_the_violated_constraints():
    def model(position, velocity):
        m = cs.multibody.MultibodyModel()
        m.body("bob", 1.0, [0.1, 0.1, 0.1], position=position, velocity=velocity)
        m.marker("top", "bob", (0, 0, 1))
        m.joint("hook", "spherical", "top", "ground")
        return m

    with pytest.raises(
        cs.errors.SetupError, match=r"position level: joint 'hook' \(atpoint x\) by 0.1; .*initial='find'"
    ):
        cs.multibody.MultibodySubsystem(model((0.1, 0, -1), (0, 0, 0)))
    with pytest.raises(cs.errors.SetupError, match=r"velocity level: joint 'hook' \(atpoint y\) at the rate 2"):
        cs.multibody.MultibodySubsystem(model((0, 0, -1), (0, 2.0, 0)))
    found = cs.multibody.MultibodySubsystem(model((0.1, 0, -1), (0, 2.0, 0)), initial="find")
    assert np.abs(list(found.constraint_residuals().values())).max() < 1e-14
    assert "moved by at most 0.0" in found.initial_change
    printed = cs.multibody.MultibodySubsystem(model((1e-8, 0, -1), (0, 0, 0)))  # printed digits are no violation
    assert np.abs(list(printed.constraint_residuals().values())).max() < 1e-14


def test_a_start_that_cannot_be_made_consistent_is_refused():
    model = cs.multibody.MultibodyModel()
    model.body("link", 1.0, [0.1, 0.1, 0.1], position=(0.5, 0, 0))
    model.marker("p", "link", (-0.5, 0, 0))
    model.marker("q", "link", (0.5, 0, 0))
    model.marker("far", "ground", (3.0, 0.1, 0))  # out of reach of a link of length 1
    model.joint("near end", "spherical", "p", "ground")
    model.joint("far end", "spherical", "q", "far")
    with pytest.raises(cs.errors.SetupError, match=r"contradict each other: joint 'far end' \(atpoint x\)"):
        cs.multibody.MultibodySubsystem(model, initial="find", redundant="drop")


@pytest.mark.parametrize("python_load", [False, True])
@pytest.mark.parametrize(
    "options", [{"integrator": "rk4", "internal_step": 2e-3}, {"rtol": 1e-8}, {"form": "ggl", "internal_step": 5e-3}]
)
def test_passing_a_singular_position_is_reported(options, python_load):
    # a parallelogram folds flat: there crank and coupler are in line and the motion can branch
    model = cs.multibody.MultibodyModel(gravity=(0, 0, 0))
    a, d, phi, w = 1.0, 2.0, 0.6, -1.0
    e, n = np.array([np.cos(phi), np.sin(phi)]), np.array([-np.sin(phi), np.cos(phi)])
    model.planar_body("crank", 1.0, 0.1, position=a / 2 * e, angle=phi, velocity=a / 2 * w * n, angular_velocity=w)
    model.planar_body("coupler", 1.0, 0.3, position=a * e + [d / 2, 0], velocity=a * w * n)
    rocker = [d, 0] + a / 2 * e
    model.planar_body("rocker", 1.0, 0.1, position=rocker, angle=phi, velocity=a / 2 * w * n, angular_velocity=w)
    for name, body, x in (
        ("c0", "crank", -a / 2),
        ("c1", "crank", a / 2),
        ("k0", "coupler", -d / 2),
        ("k1", "coupler", d / 2),
        ("r0", "rocker", -a / 2),
        ("r1", "rocker", a / 2),
    ):
        model.marker(name, body, (x, 0, 0))
    model.marker("far", "ground", (d, 0, 0))
    model.joint("A", "revolute", "c0", "ground")
    model.joint("B", "revolute", "c1", "k0")
    model.joint("C", "revolute", "k1", "r1")
    model.joint("D", "revolute", "r0", "far")
    if python_load:
        model.load("crank", force=lambda t: [0, 0, 0])
    loop = cs.multibody.MultibodySubsystem(model, **options)
    loop.start(0.0)
    with pytest.raises(
        cs.errors.SubsystemError, match=r"singular position near t = 0\.(5|6)\d*, where the constraints of .*joint"
    ):
        advance(loop, 0.0, 1.0, steps=10)


def test_mechanisms_that_stay_regular_are_not_accused():
    bar = spatial_four_bar()
    bar.start(0.0)
    advance(bar, 0.0, 3.0, steps=30)
