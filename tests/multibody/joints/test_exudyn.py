"""Exudyn models in the same joints as native ones, and the two codes against each other."""

import numpy as np
import pytest
from examples.universal_joint.model import (
    AXIS_1,
    AXIS_2,
    GRAVITY,
    J_2,
    M_2,
    POINT_2,
    Q_2,
    models,
    start_of_second,
    system,
)

import cosolve as cs
from cosolve.multibody.exudyn_model import ExudynModel

exudyn = pytest.importorskip("exudyn")


def second_body(solver="auto", step=1e-3):
    """Body 2 of the universal-joint case as an Exudyn model."""
    from exudyn.utilities import RigidBodyInertia

    mbs = exudyn.SystemContainer().AddSystem()
    r, v, omega = start_of_second()
    c, s = np.cos(0.4), np.sin(0.4)
    T = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    body = mbs.CreateRigidBody(
        inertia=RigidBodyInertia(mass=M_2, inertiaTensor=np.diag(J_2)),
        nodeType=exudyn.NodeType.RotationRotationVector
        if solver == "auto"
        else exudyn.NodeType.RotationEulerParameters,
        referencePosition=r,
        referenceRotationMatrix=T,
        initialVelocity=v,
        initialAngularVelocity=T @ omega,
        gravity=GRAVITY,
    )
    return ExudynModel(mbs, {"eye": (body, POINT_2)}, internal_step=step, integrator=solver)


def joined(model):
    joint = cs.multibody.Joint("universal", "one.hook", "two.eye", axis=AXIS_1, second_axis=AXIS_2, name="cardan")
    mixed = {"one": models()["one"], "two": model}
    return cs.multibody.assemble(mixed, [joint], correction=False, integrator="rk4", internal_step=1e-3)


def method(degree=0):
    return cs.SemiImplicit(degree, final_update=False, constraints=cs.Baumgarte(beta=2e-3, gamma=1e-6 * degree))


def motion(result):
    return np.hstack([result[f"{name}.cardan_{what}"] for name in ("one", "two") for what in "rqvw"])


def test_initial_motion_is_read_from_exudyn():
    at = second_body().attach("eye")
    r, v, omega = start_of_second()
    np.testing.assert_allclose(at.motion, np.concatenate([r, Q_2, v, omega]), atol=1e-14)
    np.testing.assert_allclose(at.point, POINT_2)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("degree", "tolerance"), [(0, 1e-9), (1, 1e-9)])
def test_native_and_exudyn_body_agree_in_the_same_joint(degree, tolerance):
    """Both integrate with RK4 and 1 ms: what differs is rounding and Exudyn's rotation vector (order 4 as well)."""
    native = cs.simulate(system(correction=False), t_end=0.1, step=1e-3, method=method(degree))
    mixed = cs.simulate(joined(second_body()), t_end=0.1, step=1e-3, method=method(degree))
    np.testing.assert_allclose(motion(mixed), motion(native), rtol=0, atol=tolerance)
    np.testing.assert_allclose(mixed["cardan_force"], native["cardan_force"], rtol=0, atol=1e-6)


def test_implicit_solver_with_algebraic_equations():
    """Euler-parameter nodes bring an algebraic equation; the trapezoidal rule is of order 2 in its own step."""
    native = motion(cs.simulate(system(correction=False), t_end=0.05, step=1e-3, method=method()))
    errors = []
    for step in (1e-3, 5e-4):
        model = joined(second_body("TrapezoidalIndex2", step))
        errors.append(np.abs(motion(cs.simulate(model, t_end=0.05, step=1e-3, method=method())) - native).max())
    assert errors[0] < 1e-6
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.3)


def test_rollback_is_exact():
    from cosolve.signal import Polynomial

    subsystem = joined(second_body()).subsystems["two"]
    subsystem.start(0.0)
    u = Polynomial(0.0, 1e-3, np.array([[1.0, 2.0, 3.0, 0.1, 1.0, 0.0, 0.0, 0.0]]))
    state = subsystem.save()
    first = subsystem.advance(0.0, 1e-3, u)
    again = []
    for _ in range(2):
        subsystem.restore(state)
        again.append(subsystem.advance(0.0, 1e-3, u))
    for other in again:
        assert np.array_equal(first, other)


def chain_in_exudyn():
    """A double pendulum in space with spherical joints, all in Exudyn, integrated by it alone."""
    from exudyn.utilities import RigidBodyInertia

    mbs = exudyn.SystemContainer().AddSystem()
    ground = mbs.CreateGround()
    bodies = []
    for k in range(2):
        inertia = RigidBodyInertia(mass=1.0, inertiaTensor=np.diag([0.02, 0.08, 0.09]))
        bodies.append(mbs.CreateRigidBody(inertia=inertia, referencePosition=[k + 0.5, 0, 0], gravity=[0, 0.5, -9.81]))
    mbs.CreateSphericalJoint(itemNumbers=[ground, bodies[0]], position=[0, 0, 0])
    mbs.CreateSphericalJoint(itemNumbers=[bodies[0], bodies[1]], position=[1, 0, 0])
    mbs.CreateTorque(itemNumber=bodies[1], loadVector=[0.2, 0.0, 0.1])
    mbs.Assemble()
    return mbs, bodies


def test_native_multibody_code_agrees_with_exudyn_on_a_spatial_mechanism():
    mbs, bodies = chain_in_exudyn()
    settings = exudyn.SimulationSettings()
    settings.solution.file.write = False
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.endTime = 0.5
    ends = []
    for steps in (500, 1000):
        settings.timeIntegration.numberOfSteps = steps
        mbs.SolveDynamic(settings, solverType=exudyn.DynamicSolverType.TrapezoidalIndex2)
        position = [mbs.GetObjectOutputBody(b, exudyn.OutputVariableType.Position) for b in bodies]
        ends.append(np.concatenate(position))
    extrapolated = ends[1] + (ends[1] - ends[0]) / 3  # order 2: the error left is that of order 4

    model = cs.multibody.MultibodyModel(gravity=(0, 0.5, -9.81))
    for k in range(2):
        model.body(f"rod {k}", 1.0, [0.02, 0.08, 0.09], position=(k + 0.5, 0, 0))
        model.marker(f"left {k}", f"rod {k}", (-0.5, 0, 0))
        model.marker(f"right {k}", f"rod {k}", (0.5, 0, 0))
    model.joint("top", "spherical", "left 0", "ground")
    model.joint("middle", "spherical", "right 0", "left 1")
    model.load("rod 1", torque=[0.2, 0.0, 0.1])
    native = cs.multibody.MultibodySubsystem(model, ports=["rod 0", "rod 1"], rtol=1e-10, atol=1e-12)
    system = cs.System({"native": native})
    for k in range(2):
        for what in ("force", "torque"):
            system.set(f"native.rod {k}_{what}", 0.0)
    result = cs.simulate(system, t_end=0.5, step=0.1, method=cs.Jacobi(0))
    found = np.concatenate([result[f"native.rod {k}_position"][-1] for k in range(2)])
    assert np.abs(ends[1] - found).max() < 1e-5  # the trapezoidal rule's own error at 0.5 ms
    assert np.abs(extrapolated - found).max() < 2e-8


def test_bad_input():
    with pytest.raises(cs.errors.SetupError, match="mbs must be an Exudyn main system"):
        ExudynModel(3, {})
    mbs = exudyn.SystemContainer().AddSystem()
    with pytest.raises(cs.errors.SetupError, match=r"marker 'tip' = .* does not fit"):
        ExudynModel(mbs, {"tip": (7, (0, 0, 0))})
    ground = mbs.CreateGround()
    with pytest.raises(cs.errors.SetupError, match="sits on a Ground; joints need a rigid body"):
        ExudynModel(mbs, {"tip": (ground, (0, 0, 0))})
    with pytest.raises(cs.errors.SetupError, match="unknown integrator 'euler'"):
        ExudynModel(mbs, {}, integrator="euler")
    with pytest.raises(cs.errors.SetupError, match="step must be a positive number"):
        ExudynModel(mbs, {}, internal_step=0)
    mixed = {"one": models()["one"], "two": second_body()}
    joint = cs.multibody.Joint("universal", "one.hook", "two.eye", axis=AXIS_1, second_axis=AXIS_2)
    with pytest.raises(cs.errors.SetupError, match=r"Exudyn models take no correction of positions"):
        cs.multibody.assemble(mixed, [joint])


def test_exudyn_mechanism_with_joints_inside_is_coupled_to_a_native_body():
    """A rod on a spherical joint in Exudyn, its tip joined to a native rod: against both rods in one native model."""
    from exudyn.utilities import RigidBodyInertia

    inertia = [0.02, 0.08, 0.09]

    def native(model, k):
        model.body(f"rod {k}", 1.0, inertia, position=(k + 0.5, 0, 0))
        model.marker(f"left {k}", f"rod {k}", (-0.5, 0, 0))
        model.marker(f"right {k}", f"rod {k}", (0.5, 0, 0))

    whole = cs.multibody.MultibodyModel(gravity=(0, 0.5, -9.81))
    native(whole, 0)
    native(whole, 1)
    whole.joint("top", "spherical", "left 0", "ground")
    whole.joint("middle", "spherical", "right 0", "left 1")
    alone = cs.multibody.MultibodySubsystem(whole, ports=[("rod 0", []), ("rod 1", [])], rtol=1e-10, atol=1e-12)
    exact = cs.simulate(cs.System({"all": alone}), t_end=0.1, step=0.02, method=cs.Jacobi(0))
    errors = []
    for H in (4e-3, 2e-3):
        mbs = exudyn.SystemContainer().AddSystem()
        ground = mbs.CreateGround()
        body = mbs.CreateRigidBody(
            inertia=RigidBodyInertia(mass=1.0, inertiaTensor=np.diag(inertia)),
            referencePosition=[0.5, 0, 0],
            gravity=[0, 0.5, -9.81],
        )
        mbs.CreateSphericalJoint(itemNumbers=[ground, body], position=[0, 0, 0])
        lower = cs.multibody.MultibodyModel(gravity=(0, 0.5, -9.81))
        native(lower, 1)
        upper = ExudynModel(mbs, {"tip": (body, (0.5, 0, 0))}, internal_step=H / 4)
        joint = cs.multibody.Joint("spherical", "upper.tip", "lower.left 1", name="middle")
        system = cs.multibody.assemble(
            {"upper": upper, "lower": lower}, [joint], correction=False, integrator="rk4", internal_step=H
        )
        method = cs.SemiImplicit(0, final_update=False, constraints=cs.Baumgarte(beta=8e-3, gamma=0.0))
        result = cs.simulate(system, t_end=0.1, step=H, method=method)
        every = round(0.02 / H)
        errors.append(
            max(
                np.abs(result["upper.middle_r"][::every] - exact["all.rod 0_position"]).max(),
                np.abs(result["lower.middle_r"][::every] - exact["all.rod 1_position"]).max(),
            )
        )
    assert errors[1] < 1e-4
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.3)  # both solvers and the coupling have order 2
