"""Flexible joints in space against a monolithic model: orders of all approaches, energy, laws, counters."""

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from tests.multibody.joints.cases import models, monolithic, states, unit

import cosolve as cs
from cosolve.multibody.equations.coupling_loads import INPLANE, LAW, coupling_loads, part_constants

APPROACHES = ("force/force", "force/displacement", "displacement/force", "displacement/displacement")
T_END, C, D, C_TURN, D_TURN = 0.08, 300.0, 4.0, 20.0, 0.3
A, B = unit(0.0, 0.3, 1.0), unit(1.0, 0.2, -0.06)  # perpendicular to each other: A . B = 0
NOTHING = np.zeros(3)
KINDS = {
    "spherical": ({"stiffness": C, "damping": D}, [("atpoint", NOTHING, NOTHING, C, D)]),
    "inplane": ({"axis": A, "stiffness": C, "damping": D}, [("inplane", NOTHING, A, C, D)]),
    "perpendicular": (
        {"axis": A, "second_axis": unit(1.0, 0.2, 0.3), "rotational_stiffness": C_TURN, "rotational_damping": D_TURN},
        [("perpendicular", A, unit(1.0, 0.2, 0.3), C_TURN, D_TURN)],
    ),
    "universal": (
        {"axis": A, "second_axis": B, "stiffness": C, "damping": D}
        | {"rotational_stiffness": C_TURN, "rotational_damping": D_TURN},
        [("atpoint", NOTHING, NOTHING, C, D), ("perpendicular", A, B, C_TURN, D_TURN)],
    ),
}
assert abs(A @ B) < 1e-15


@cache
def reference(kind):
    return monolithic(KINDS[kind][1]).run(np.linspace(0, T_END, 9))


def run(kind, approach="force/force", degree=1, H=2e-3, method=cs.SemiImplicit, **changes):
    arguments, _ = KINDS[kind]
    joint = cs.multibody.Joint(kind, "one.at", "two.at", name="j", approach=approach, **{**arguments, **changes})
    system = cs.multibody.assemble(models(), [joint], integrator="rk4", internal_step=H)
    return cs.simulate(system, t_end=T_END, step=H, method=method(degree=degree))


def error(kind, *args, H, **keywords):
    result = run(kind, *args, H=H, **keywords)
    return np.abs(states(result, "j")[:: round(0.01 / H)] - reference(kind)).max()


@pytest.mark.sample(4)
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("approach", APPROACHES)
@pytest.mark.parametrize("kind", ["spherical", "universal"])
def test_converges_to_the_monolithic_model(kind, approach, degree):
    errors = [error(kind, approach, degree, H=H) for H in (2e-3, 1e-3)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(degree + 1, abs=0.15)


@pytest.mark.parametrize("approach", ["force/force", "displacement/displacement"])
def test_the_same_system_runs_under_explicit_methods(approach):
    errors = [error("universal", approach, 1, H=H, method=cs.Jacobi) for H in (2e-3, 1e-3)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.15)


@pytest.mark.sample(4)
@pytest.mark.parametrize("approach", APPROACHES)
@pytest.mark.parametrize("kind", ["inplane", "perpendicular"])
def test_parts_with_directions_converge_with_order_two(kind, approach):
    errors = [error(kind, approach, 1, H=H) for H in (2e-3, 1e-3)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.15)


@pytest.mark.parametrize("kind", ["spherical", "inplane", "perpendicular"])
def test_undamped_joints_conserve_energy_in_the_limit(kind):
    """The monolithic model conserves energy to its solver's tolerance; the co-simulation gets there with its order."""
    undamped = [(*part[:4], 0.0) for part in KINDS[kind][1]]
    model = monolithic(undamped)
    motion = model.run(np.linspace(0, T_END, 3))
    energy = [model.energy(z) for z in motion]
    assert np.ptp(energy) < 1e-9
    drifts = []
    for H in (2e-3, 1e-3):
        found = states(run(kind, degree=1, H=H, damping=0.0, rotational_damping=0.0), "j")
        drifts.append(abs(model.energy(found[-1]) - energy[0]))
    assert drifts[1] < drifts[0] / 3
    assert drifts[1] < 1e-4 * abs(energy[0]) + 1e-5


@pytest.mark.parametrize("approach", APPROACHES)
def test_a_law_of_the_users_equals_the_built_in_one(approach):
    law = lambda x, v: np.concatenate([-C * x[:3] - D * v[:3], -C_TURN * x[3:] - D_TURN * v[3:]])  # noqa: E731
    none = {"stiffness": None, "damping": 0.0, "rotational_stiffness": None, "rotational_damping": 0.0}
    own = run("universal", approach, H=4e-3, law=law, **none)
    built_in = run("universal", approach, H=4e-3)
    np.testing.assert_allclose(states(own, "j"), states(built_in, "j"), rtol=0, atol=1e-10)


@pytest.mark.sample(1)
@pytest.mark.parametrize("approach", ["force/force", "displacement/displacement"])
def test_nonlinear_law_converges_to_the_monolithic_model(approach):
    law = lambda x, v: -30 * x - 3e6 * (x @ x) * x - v  # noqa: E731
    exact = monolithic([("atpoint", NOTHING, NOTHING, None, 0.0)], law).run(np.linspace(0, T_END, 9))
    none = {"stiffness": None, "damping": 0.0}
    errors = []
    for H in (2e-3, 1e-3):
        found = states(run("spherical", approach, H=H, law=law, **none), "j")[:: round(T_END / 8 / H)]
        errors.append(np.abs(found - exact).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.15)


@pytest.mark.covers("SL-20")
def test_alternative_form_converges_to_the_same_motion_with_three_conditions():
    joint = cs.multibody.Joint(
        "perpendicular", "one.at", "two.at", name="j", formulation="alternative", **KINDS["perpendicular"][0]
    )
    system = cs.multibody.assemble(models(), [joint], integrator="rk4", internal_step=1e-3)
    assert system.plan().n_z == 3
    errors = [error("perpendicular", degree=1, H=H, formulation="alternative") for H in (2e-3, 1e-3)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.15)


@pytest.mark.covers("SL-20")
@pytest.mark.parametrize("kind", ["inplane", "perpendicular"])
def test_simplified_form_is_first_order_only(kind):
    """App. D: the frozen direction is O(H) wrong whatever the degree."""
    errors = [error(kind, degree=1, H=H, formulation="simplified") for H in (2e-3, 1e-3)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(1, abs=0.15)
    assert errors[1] > 5 * error(kind, degree=1, H=1e-3)


@pytest.mark.covers("SL-20")
def test_simplified_form_leaves_one_condition_that_reacts():
    """The copies are still there as variables, but no subsystem's step depends on them: G is the unit matrix but for
    the row of the law."""
    from cosolve.engine.python.subsystem_caller import SubsystemCaller
    from cosolve.engine.python.trial import Trial
    from cosolve.method import Window
    from cosolve.signal import History

    joint = cs.multibody.Joint(
        "perpendicular", "one.at", "two.at", name="j", formulation="simplified", **KINDS["perpendicular"][0]
    )
    plan = cs.multibody.assemble(models(), [joint], integrator="rk4", internal_step=1e-3).plan()
    caller = SubsystemCaller(plan)
    _, z = caller.start(0.0)
    trial = Trial(caller, History(z, 1), Window(0.0, 1e-3, 1e-3), 0)
    trial.run(z)
    G = np.asarray(trial.jacobian())
    row = plan.z_ports["j_torque"][0].start
    others = np.delete(np.arange(plan.n_z), row)
    np.testing.assert_allclose(G[np.ix_(others, others)], np.eye(len(others)), atol=1e-12)


#: Lu (2015), 2.2.3-2.2.5, with Euler angles; a copied orientation has one more number with Euler parameters
@pytest.mark.covers("LU-16", "SL-14")
@pytest.mark.parametrize(
    ("kind", "approach", "angles", "orientations"),
    [
        ("spherical", "force/force", 3, 0),
        ("spherical", "force/displacement", 15, 1),
        ("spherical", "displacement/displacement", 24, 2),
        ("inplane", "force/force", 10, 2),
        ("inplane", "force/displacement", 16, 2),
        ("inplane", "displacement/displacement", 24, 2),
        ("perpendicular", "force/force", 7, 2),
        ("perpendicular", "force/displacement", 10, 2),
        ("perpendicular", "displacement/displacement", 12, 2),
        ("universal", "force/displacement", 19, 2),
    ],
)
def test_number_of_coupling_variables(kind, approach, angles, orientations):
    joint = cs.multibody.Joint(kind, "one.at", "two.at", approach=approach, **KINDS[kind][0])
    assert cs.multibody.assemble(models(), [joint]).plan().n_z == angles + orientations


@pytest.mark.covers("SL-14")
def test_without_damping_no_velocities_are_copied():
    arguments = {**KINDS["spherical"][0], "damping": 0.0}
    joint = cs.multibody.Joint("spherical", "one.at", "two.at", approach="displacement/displacement", **arguments)
    assert cs.multibody.assemble(models(), [joint]).plan().n_z == 14


@pytest.mark.covers("LU-14")
def test_undamped_inplane_law_conserves_energy_on_the_lever():
    """Two hinged rods, the tip of rod 1 slides along rod 2 on a spring; loads from the joint's own law in both rods."""
    m, L, J = np.array([np.sqrt(2.0), 2.0]), np.array([np.sqrt(2.0), 2.0]), np.array([np.sqrt(2.0) / 6, 2.0 / 3])
    pivot = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    part = part_constants(INPLANE, [L[0] / 2, 0, 0], [0, 0, 0], e_j=[0, 1, 0], stiffness=1e3)
    constants = [np.concatenate([[1, side, 1, 1, 1, 1], part]) for side in (1, -1)]

    def motions(x):
        z = np.zeros((2, 13))
        for k in range(2):
            along = np.array([np.cos(x[k]), np.sin(x[k]), 0.0])
            z[k, :3] = pivot[k] + L[k] / 2 * along
            z[k, 3], z[k, 6], z[k, 12] = np.cos(x[k] / 2), np.sin(x[k] / 2), x[2 + k]
            z[k, 7:10] = x[2 + k] * L[k] / 2 * np.array([-along[1], along[0], 0.0])
        return z

    def rhs(t, x):
        z, out = motions(x), np.empty(12)
        turn = np.empty(2)
        for k in range(2):
            coupling_loads(LAW, constants[k], z[1 - k], z[k], out)
            arm = L[k] / 2 * np.array([-np.sin(x[k]), np.cos(x[k])])
            torque = arm @ (out[:2] + np.array([0.0, -9.81 * m[k]])) + out[5]
            turn[k] = torque / (J[k] + m[k] * L[k] ** 2 / 4)
        return np.concatenate([x[2:], turn])

    def energy(x):
        inertia = J + m * L**2 / 4
        tip = L[0] * np.array([np.cos(x[0]), np.sin(x[0])]) - [1.0, 0.0]
        gap = tip @ [-np.sin(x[1]), np.cos(x[1])]
        return 0.5 * inertia @ x[2:] ** 2 + 9.81 * (m * L / 2) @ np.sin(x[:2]) + 500 * gap**2

    solution = solve_ivp(rhs, (0, 1), [np.pi / 4, np.pi / 2, 0, 0], "DOP853", rtol=1e-13, atol=1e-14)
    energies = np.array([energy(x) for x in solution.y.T])
    assert energies[0] == pytest.approx(26.556717523, abs=1e-9)
    assert np.ptp(energies) < 1e-11
    np.testing.assert_allclose(solution.y[:2, -1], [-0.01834039, -0.05398546], atol=1e-8)
