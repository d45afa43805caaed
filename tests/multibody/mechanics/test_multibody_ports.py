"""Ports, joint ends, drives, loads and force elements of the multibody subsystem."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from tests.multibody.mechanics.mechanisms import Inputs, advance

import cosolve as cs
from cosolve.multibody.equations.coupling_loads import ATPOINT, FORCE, STABILISED, End, part_constants
from cosolve.multibody.equations.joint_math import rotation_matrix

TIGHT = {"rtol": 1e-11, "atol": 1e-12}
Q = np.array([0.8, 0.36, 0.48, 0.0])
Q = Q / np.linalg.norm(Q)


def names(subsystem):
    return [p.name for p in subsystem.inputs], [p.name for p in subsystem.outputs]


def one_body(**options):
    model = cs.multibody.MultibodyModel()
    model.body("disc", 2.0, [0.1, 0.2, 0.25], position=(1, 2, 3), orientation=Q, angular_velocity=(0.3, -0.2, 1.0))
    model.marker("tip", "disc", (0.5, 0.1, -0.2))
    return cs.multibody.MultibodySubsystem(model, **options)


def test_names_sizes_and_units_of_ports():
    disc = one_body(ports=["tip", ("disc", ["shift", "turn"])])
    inputs, outputs = names(disc)
    assert inputs == ["tip_force", "tip_torque", "disc_shift", "disc_turn"]
    assert outputs[:6] == [
        "tip_position",
        "tip_orientation",
        "tip_velocity",
        "tip_angular_velocity",
        "tip_acceleration",
        "tip_angular_acceleration",
    ]
    assert [p.size for p in disc.outputs] == [3, 4, 3, 3, 3, 3] * 2
    assert [p.unit for p in disc.inputs] == ["N", "N m", "m/s", "rad/s"]


def test_outputs_at_a_marker_by_hand():
    disc = one_body(ports=["tip"])
    force, torque = np.array([1.0, -2.0, 5.0]), np.array([0.3, 0.2, -0.1])
    disc.start(0.0)
    y = disc.output(0.0, np.concatenate([force, torque]))
    T, w, s = rotation_matrix(Q), np.array([0.3, -0.2, 1.0]), np.array([0.5, 0.1, -0.2])
    J = np.diag([0.1, 0.2, 0.25])
    alpha = np.linalg.solve(J, np.cross(s, T.T @ force) + T.T @ torque - np.cross(w, J @ w))
    a = force / 2 + [0, 0, -9.81] + T @ (np.cross(alpha, s) + np.cross(w, np.cross(w, s)))
    assert y[:3] == pytest.approx([1, 2, 3] + T @ s, abs=1e-14)
    assert y[3:7] == pytest.approx(Q, abs=1e-15)
    assert y[7:10] == pytest.approx(T @ np.cross(w, s), abs=1e-14)
    assert y[10:13] == pytest.approx(w)
    assert y[13:16] == pytest.approx(a, abs=1e-13)
    assert y[16:] == pytest.approx(alpha, abs=1e-13)


def test_velocities_and_accelerations_are_the_rates_of_the_outputs():
    disc = one_body(ports=["tip"], **TIGHT)
    disc.start(0.0)
    u = np.array([1.0, -2.0, 5.0, 0.3, 0.2, -0.1])
    h = 1e-3
    rows = [advance(disc, k * h, (k + 1) * h, u) for k in range(3)]
    assert (rows[2][:3] - rows[0][:3]) / (2 * h) == pytest.approx(rows[1][7:10], abs=1e-4)
    assert (rows[2][7:10] - rows[0][7:10]) / (2 * h) == pytest.approx(rows[1][13:16], abs=1e-4)
    assert (rows[2][10:13] - rows[0][10:13]) / (2 * h) == pytest.approx(rows[1][16:], abs=1e-4)


def test_only_accelerations_feed_through():
    from cosolve.subsystem.feedthrough import feedthrough

    disc = one_body(ports=[("tip", ["force", "torque", "shift", "turn"])])
    disc.start(0.0)
    pattern = feedthrough(disc, 0.0, np.zeros(12))
    assert not pattern[:13].any()
    assert pattern[13:, :3].any()
    assert not pattern[:, 6:].any()  # corrections act on the rates of the positions only


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"integrator": "rk4", "internal_step": 1e-3},
        {"integrator": "radau", "internal_step": 5e-3},
        {"coordinates": "euler_angles"},
    ],
)
def test_rollback_is_exact(options):
    disc = one_body(ports=["tip"], **options)
    disc.start(0.0)
    advance(disc, 0.0, 0.05, [1.0, 0, 0, 0, 0, 0.2])
    saved = disc.save()
    first = advance(disc, 0.05, 0.1, [2.0, 0, 0, 0, 0, 0])
    other = advance(disc, 0.1, 0.2, [3.0, 0, 0, 0, 0, 0])
    disc.restore(saved)
    assert (advance(disc, 0.05, 0.1, [2.0, 0, 0, 0, 0, 0]) == first).all()
    assert (advance(disc, 0.1, 0.2, [3.0, 0, 0, 0, 0, 0]) == other).all()
    disc.start(0.0)
    advance(disc, 0.0, 0.05, [1.0, 0, 0, 0, 0, 0.2])
    assert (disc.get_state() == saved[0]).all()


def test_replay_repeats_the_internal_grid():
    disc = one_body(ports=["tip"])
    disc.start(0.0)
    saved = disc.save()
    u = Inputs(0.0, 0.5, [[1.0, 0, 0, 0, 0, 0.2], [3.0, 0, 0, 0, 0, 0]])
    y = disc.advance(0.0, 0.5, u)
    disc.restore(saved)
    assert disc.replay(0.0, 0.5, u) == pytest.approx(y, abs=1e-14)
    base = y
    slopes = []
    for eps in (1e-4, 1e-6):
        disc.restore(saved)
        moved = disc.replay(0.0, 0.5, Inputs(0.0, 0.5, u.coefficients + np.array([[eps, 0, 0, 0, 0, 0], [0] * 6])))
        slopes.append((moved - base) / eps)
    assert slopes[0] == pytest.approx(slopes[1], abs=1e-3)  # no noise of the step control in the quotient


def pendulum_on_a_hook(ports=(), ends=(), **options):
    model = cs.multibody.MultibodyModel()
    model.body("bob", 1.0, [0.1, 0.12, 0.05], position=(0, 0, -1))
    model.marker("top", "bob", (0, 0, 1))
    model.joint("hook", "spherical", "top", "ground")
    return cs.multibody.MultibodySubsystem(model, ports=ports, ends=ends, **options)


def test_corrections_shift_a_free_body():
    model = cs.multibody.MultibodyModel(gravity=(0, 0, 0))
    model.body("disc", 1.0, [0.1, 0.1, 0.1])
    disc = cs.multibody.MultibodySubsystem(model, ports=[("disc", ["shift", "turn"])], **TIGHT)
    disc.start(0.0)
    advance(disc, 0.0, 0.5, [0.2, 0, 0, 0, 0, 0.4])
    z = disc.state_of("disc")
    assert z[:3] == pytest.approx([0.1, 0, 0], abs=1e-12)  # the position moves,
    assert z[3:7] == pytest.approx([np.cos(0.1), 0, 0, np.sin(0.1)], abs=1e-10)
    assert z[7:] == pytest.approx(np.zeros(6), abs=1e-14)  # the velocities do not


@pytest.mark.parametrize("form", [{}, {"form": "index_1"}, {"form": "ggl", "internal_step": 5e-3}])
def test_corrections_never_break_an_internal_joint(form):
    bob = pendulum_on_a_hook(ports=[("bob", ["force", "shift", "turn"])], **form)
    bob.start(0.0)
    advance(bob, 0.0, 0.2, [1.0, 0, 0, 0.02, 0.01, 0.3, 0.01, 0, 0.02])
    position = max(abs(c) for c, _ in bob.constraint_residuals().values())
    assert position < (1e-8 if form.get("form") == "index_1" else 1e-13)
    assert abs(bob.state_of("bob")[0]) > 1e-3  # what the joint allows is still done


def end(law=None, kind=FORCE):
    constants = np.concatenate([[1, 1, 0, 0, 0, 0], part_constants(ATPOINT, [0.5, 0.1, -0.2], [0, 0, 0])])
    inputs = (("force", 3),) if kind == FORCE else (("force", 3), ("mu_force", 3))
    return End("E", "disc", inputs, kind, constants, law)


def test_a_joint_end_acts_like_a_force_at_its_point():
    port, joint = one_body(ports=[("tip", ["force"])], **TIGHT), one_body(ends=[end()], **TIGHT)
    assert names(joint) == (["E_force"], ["E_r", "E_q", "E_v", "E_w", "E_a", "E_alpha"])
    for body in (port, joint):
        body.start(0.0)
    advance(port, 0.0, 0.5, [1.0, 2.0, -3.0])
    y = advance(joint, 0.0, 0.5, [1.0, 2.0, -3.0])
    assert port.state_of("disc") == pytest.approx(joint.state_of("disc"), abs=1e-13)
    assert y[:13] == pytest.approx(joint.state_of("disc"), abs=1e-15)


@pytest.mark.parametrize(
    "options", [TIGHT, {"integrator": "rk4", "internal_step": 1e-3}, {"integrator": "radau", "internal_step": 5e-3}]
)
def test_a_python_law_gives_the_same_motion(options):
    s = np.array([0.5, 0.1, -0.2])

    def law(u, z):
        return np.concatenate([u, np.cross(s, rotation_matrix(z[3:7]).T @ u), np.zeros(6)])

    compiled, slow = one_body(ends=[end()], **options), one_body(ends=[end(law)], **options)
    for body in (compiled, slow):
        body.start(0.0)
        advance(body, 0.0, 0.3, [1.0, 2.0, -3.0], steps=3)
    assert compiled.state_of("disc") == pytest.approx(slow.state_of("disc"), abs=1e-10)


def test_a_stabilised_end_corrects_positions():
    disc = one_body(ends=[end(kind=STABILISED)], **TIGHT)
    disc.start(0.0)
    advance(disc, 0.0, 0.1, [0, 0, 0, 0.1, 0, 0])
    free = one_body(**TIGHT)
    free.start(0.0)
    advance(free, 0.0, 0.1)
    assert (disc.state_of("disc") - free.state_of("disc"))[:3] == pytest.approx([0.01, 0, 0], abs=1e-6)
    assert np.linalg.norm((disc.state_of("disc") - free.state_of("disc"))[3:7]) > 1e-4


# -- loads, drives, elements ---------------------------------------------------------------------------


@pytest.mark.parametrize("frame", ["ground", "body"])
def test_loads_constant_or_as_functions(frame):
    ends = []
    for wrap in (lambda v: v, lambda v: lambda t: v):
        model = cs.multibody.MultibodyModel()
        model.body("disc", 2.0, [0.1, 0.2, 0.25], orientation=Q, angular_velocity=(0.3, -0.2, 1.0))
        model.marker("tip", "disc", (0.5, 0.1, -0.2))
        model.load("tip", force=wrap([1.0, 2.0, 3.0]), torque=wrap([0.1, 0.2, -0.3]), frame=frame)
        disc = cs.multibody.MultibodySubsystem(model, **TIGHT)
        disc.start(0.0)
        advance(disc, 0.0, 0.5, steps=2)
        ends.append(disc.state_of("disc"))
    assert ends[0] == pytest.approx(ends[1], abs=1e-9)


def test_a_load_as_a_function_of_time():
    model = cs.multibody.MultibodyModel(gravity=(0, 0, 0))
    model.body("disc", 2.0, [0.1, 0.2, 0.25])
    model.load("disc", force=lambda t: [np.sin(3 * t), 0, 0])
    for options in (TIGHT, {"integrator": "radau", "internal_step": 1e-2}):
        disc = cs.multibody.MultibodySubsystem(model, **options)
        disc.start(0.0)
        advance(disc, 0.0, 1.0, steps=4)
        assert disc.state_of("disc")[7] == pytest.approx((1 - np.cos(3)) / 6, abs=1e-9)
        assert disc.state_of("disc")[0] == pytest.approx((1 - np.sin(3) / 3) / 6, abs=1e-9)


def driven_pendulum(given, **options):
    """A pendulum whose support moves as 0.1 sin(8 t) along x."""
    model = cs.multibody.MultibodyModel(gravity=(0, -9.81, 0))
    model.planar_body("cart", 1.0, 0.1)
    model.planar_body("rod", 1.0, 1 / 12, position=(0, -0.5), angle=-np.pi / 2, velocity=(0.8, 0))
    model.marker("top", "rod", (-0.5, 0, 0))
    model.joint("pin", "revolute", "top", "cart")
    motion = {
        "position": lambda t: [0.1 * np.sin(8 * t), 0, 0],
        "velocity": lambda t: [0.8 * np.cos(8 * t), 0, 0],
        "acceleration": lambda t: [-6.4 * np.sin(8 * t), 0, 0],
    }
    model.drive("cart", **{key: motion[key] for key in given})
    return cs.multibody.MultibodySubsystem(model, ports=["rod", ("cart", [])], **options)


@pytest.mark.parametrize("given", [("position",), ("position", "velocity"), ("position", "velocity", "acceleration")])
@pytest.mark.parametrize(
    "options", [TIGHT, {"form": "ggl", "internal_step": 1e-2}, {"integrator": "rk4", "internal_step": 1e-2}]
)
def test_a_driven_support(given, options):
    rod = driven_pendulum(given, **options)
    assert rod.degrees_of_freedom == 1
    rod.start(0.0)
    y = advance(rod, 0.0, 1.0, steps=10)
    exact = solve_ivp(  # angle from the vertical, support at 0.1 sin 8t
        lambda t, s: [s[1], 1.5 * (-9.81 * np.sin(s[0]) + 6.4 * np.sin(8 * t) * np.cos(s[0]))],
        (0, 1),
        [0.0, 0.0],
        rtol=1e-11,
        atol=1e-12,
    ).y[:, -1]
    z = rod.state_of("rod")
    assert 2 * np.arctan2(z[6], z[3]) + np.pi / 2 == pytest.approx(exact[0], abs=2e-6)
    assert z[12] == pytest.approx(exact[1], abs=1e-5)
    assert y[19] == pytest.approx(0.1 * np.sin(8), abs=1e-15)  # outputs of the driven body too
    assert y[19 + 13] == pytest.approx(-6.4 * np.sin(8), abs=1e-8)
    residual = np.abs(list(rod.constraint_residuals().values()))
    assert residual.max() < 1e-9


def test_a_driven_rotation():
    model = cs.multibody.MultibodyModel(gravity=(0, 0, 0))
    model.body("shaft", 1.0, [0.1, 0.1, 0.1])
    model.body("arm", 1.0, [0.1, 0.1, 0.1], position=(1, 0, 0), velocity=(0, 2, 0), angular_velocity=(0, 0, 2))
    model.marker("tip", "shaft", (1, 0, 0))
    model.joint("weld", "fixed", "arm", "tip")
    model.drive("shaft", orientation=lambda t: [np.cos(t), 0, 0, np.sin(t)])
    arm = cs.multibody.MultibodySubsystem(model, ports=["arm"])
    assert arm.degrees_of_freedom == 0
    y = arm.start(0.0)
    assert y[13:16] == pytest.approx([-4, 0, 0], abs=1e-6)  # centripetal
    advance(arm, 0.0, 0.7)
    assert arm.state_of("arm")[:3] == pytest.approx([np.cos(1.4), np.sin(1.4), 0], abs=1e-10)


def test_springs_and_bushings_follow_their_potentials():
    model = cs.multibody.MultibodyModel(gravity=(0, 0, -9.81))
    model.body("a", 1.0, [0.1, 0.12, 0.05], position=(0.1, 0, 0), angular_velocity=(0.5, 1, -0.3))
    model.body("b", 2.0, [0.2, 0.15, 0.3], position=(1.2, 0.1, -0.1), orientation=Q, angular_velocity=(-1, 0.5, 2.0))
    model.marker("pa", "a", (0.3, 0.1, 0.2))
    model.marker("pb", "b", (-0.2, 0.3, 0.1), axes=rotation_matrix([0.6, 0, 0.8, 0]))
    model.spring_damper("spring", "pa", "pb", 40.0, length=0.3)
    # equal torsional stiffnesses: only then torques along the rotation vector have a potential
    model.bushing("bush", "pa", "pb", [30, 20, 10, 2, 2, 2])
    model.bushing("anchor", "b", "ground", 15.0)
    pair = cs.multibody.MultibodySubsystem(model, rtol=1e-11, atol=1e-12)
    pair.start(0.0)
    E = pair.energy()
    advance(pair, 0.0, 0.5, steps=5)
    assert pair.energy() == pytest.approx(E, abs=2e-8)


def test_inner_forces_conserve_momentum_and_dampers_take_energy():
    model = cs.multibody.MultibodyModel(gravity=(0, 0, 0))
    model.body("a", 1.0, [0.1, 0.12, 0.05], angular_velocity=(0.5, 1, -0.3))
    model.body("b", 2.0, [0.2, 0.15, 0.3], position=(1.2, 0.1, -0.1), orientation=Q, velocity=(0, 1, 0))
    model.marker("pa", "a", (0.3, 0.1, 0.2))
    model.marker("pb", "b", (-0.2, 0.3, 0.1))
    model.spring_damper("spring", "pa", "pb", 40.0, 3.0)
    model.bushing("bush", "pb", "pa", [30, 20, 10, 3, 2, 1], [1, 1, 2, 0.1, 0.1, 0.2])
    model.torsion_spring("twist", "pa", "b", 5.0, 0.2)
    pair = cs.multibody.MultibodySubsystem(model, rtol=1e-11, atol=1e-12)
    pair.start(0.0)
    E, (p, L) = pair.energy(), pair.momentum()
    advance(pair, 0.0, 0.5, steps=5)
    assert pair.momentum()[0] == pytest.approx(p, abs=1e-12)
    assert pair.momentum()[1] == pytest.approx(L, abs=1e-10)
    assert pair.energy() < E - 0.01


def test_unstressed_springs_start_without_force():
    model = cs.multibody.MultibodyModel(gravity=(0, 0, 0))
    model.body("a", 1.0, [0.1, 0.12, 0.05], position=(0.4, 0.2, 0.1), orientation=Q)
    model.spring_damper("spring", "a", "ground", 1e4)
    model.torsion_spring("twist", "a", "ground", 1e4)
    a = cs.multibody.MultibodySubsystem(model, ports=["a"])
    assert a.start(0.0)[13:] == pytest.approx(np.zeros(6), abs=1e-10)


def test_a_torsion_spring_on_a_hinge_turns_right_round():
    model = cs.multibody.MultibodyModel(gravity=(0, -9.81, 0))
    model.planar_body("wheel", 1.0, 0.2, angular_velocity=1.0)
    model.joint("axle", "revolute", "wheel", "ground")
    model.torsion_spring("twist", "wheel", "ground", 5.0, damping=0.0, angle=0.2)
    wheel = cs.multibody.MultibodySubsystem(model, ports=[("wheel", ["torque"])], **TIGHT)
    y = wheel.start(0.0)
    assert y[18] == pytest.approx(5.0 * 0.2 / 0.2, abs=1e-12)
    advance(wheel, 0.0, 1.0, steps=4)
    z, w = wheel.state_of("wheel"), 5.0  # the frequency is sqrt(5 / 0.2)
    assert 2 * np.arctan2(z[6], z[3]) == pytest.approx(0.2 - 0.2 * np.cos(w) + np.sin(w) / w, abs=1e-9)
    assert wheel.energy() == pytest.approx(0.5 * 0.2 + 0.5 * 5 * 0.04, abs=1e-9)
