"""Rigid joints of all kinds in space: conditions, ranks, coupling variables, convergence, held constraints."""

from functools import cache

import numpy as np
import pytest
from tests.multibody.joints.cases import models, monolithic, starts, states, unit
from tests.multibody.joints.monolithic import T

import cosolve as cs
from cosolve.multibody.coupling.ends import fit
from cosolve.multibody.coupling.joint import triad
from cosolve.multibody.equations.coupling_loads import Attachment

AXIS = unit(0.2, 0.3, 1.0)
E, F, G = triad(AXIS)
NOTHING = np.zeros(3)
AT, PLANE = ("atpoint", NOTHING, NOTHING), "inplane"


def perpendicular(a, n):
    return ("perpendicular", a, n)


#: kind -> arguments, and the basic parts it stands for (Lu (2015), 2.2.2.4)
KINDS = {
    "spherical": ({}, [AT]),
    "universal": ({"axis": E, "second_axis": F}, [AT, perpendicular(E, F)]),
    "revolute": ({"axis": AXIS}, [AT, perpendicular(E, F), perpendicular(E, G)]),
    "cylindrical": (
        {"axis": AXIS},
        [(PLANE, NOTHING, F), (PLANE, NOTHING, G), perpendicular(E, F), perpendicular(E, G)],
    ),
    "translational": (
        {"axis": AXIS},
        [(PLANE, NOTHING, F), (PLANE, NOTHING, G), perpendicular(E, F), perpendicular(E, G), perpendicular(F, G)],
    ),
    "planar": ({"axis": AXIS}, [(PLANE, NOTHING, E), perpendicular(E, F), perpendicular(E, G)]),
    "inline": ({"axis": AXIS}, [(PLANE, NOTHING, F), (PLANE, NOTHING, G)]),
    "inplane": ({"axis": AXIS}, [(PLANE, NOTHING, E)]),
    "orientation": ({"axis": AXIS}, [perpendicular(E, F), perpendicular(E, G), perpendicular(F, G)]),
    "perpendicular": ({"axis": E, "second_axis": F}, [perpendicular(E, F)]),
    "fixed": ({"axis": AXIS}, [AT, perpendicular(E, F), perpendicular(E, G), perpendicular(F, G)]),
}
COUNTS = {"universal": 4, "revolute": 5, "translational": 5, "cylindrical": 4, "planar": 3, "inline": 2}
COUNTS |= {"orientation": 3, "spherical": 3, "inplane": 1, "perpendicular": 1, "fixed": 6}
T_END = 0.06


def joint(kind):
    return cs.multibody.Joint(kind, "one.at", "two.at", name="j", **KINDS[kind][0])


def run(kind, H, treatment, degree=0, correction=False):
    system = cs.multibody.assemble(models(), [joint(kind)], integrator="rk4", internal_step=H, correction=correction)
    method = cs.SemiImplicit(degree, final_update=False, constraints=treatment)
    return system, cs.simulate(system, t_end=T_END, step=H, method=method)


@cache
def reference(kind):
    model = monolithic([(name, a, n, None, 0.0) for name, a, n in KINDS[kind][1]])
    return model.run(np.linspace(0, T_END, 4))


@pytest.mark.covers("LU-15")
@pytest.mark.parametrize("kind", COUNTS)
def test_number_and_rank_of_the_conditions(kind):
    """Rank of the derivatives by velocities at a general pose of the bodies that satisfies nothing in particular."""
    z = starts()
    points = np.array([0.5, 0.1, 0.1]), np.array([-0.4, 0.1, -0.1])
    at = [Attachment("body", p, np.eye(3), s) for p, s in zip(points, z, strict=True)]
    fitted = fit(joint(kind), *at, correction=False)
    assert fitted.count == COUNTS[kind] == len(joint(kind).labels())
    full = [np.concatenate([s, np.zeros(6)]) for s in z]
    _, J = fitted.conditions(*full)
    rows = J[1][:, np.r_[7:13, 26:32]]
    assert np.linalg.matrix_rank(rows, tol=1e-9) == COUNTS[kind]


@pytest.mark.covers("LU-16")
@pytest.mark.parametrize(
    ("kind", "angles", "stabilised", "orientations"),
    [("spherical", 3, 6, 0), ("inplane", 10, 11, 2), ("perpendicular", 7, 8, 2), ("universal", 10, 14, 2)],
)
def test_number_of_coupling_variables(kind, angles, stabilised, orientations):
    """Lu (2015), 3.2.2, counts three angles per copied orientation; Euler parameters are four (App. C: 6, 13, 10)."""
    for correction, count in ((False, angles), (True, stabilised)):
        assert cs.multibody.assemble(models(), [joint(kind)], correction=correction).plan().n_z == count + orientations


@pytest.mark.sample(5)
@pytest.mark.parametrize("kind", COUNTS)
def test_index_1_with_linear_signals_converges_with_order_two(kind):
    """With fixed parameters, as in the source; beta = 2 H, gamma = H^2 would give order 4 for spherical."""
    errors = []
    for H in (2e-3, 1e-3):
        _, result = run(kind, H, cs.Baumgarte(beta=4e-3, gamma=4e-6), degree=1)
        errors.append(np.abs(states(result, "j")[:: round(0.02 / H)] - reference(kind)).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.25)
    assert errors[1] < 1e-6


@pytest.mark.sample(6)
@pytest.mark.parametrize("kind", ["spherical", "revolute", "translational", "fixed"])
@pytest.mark.parametrize(
    ("treatment", "bounds"),
    [
        (cs.Baumgarte(beta=2e-3, gamma=0.0), (1e-5, 1e-3)),
        (cs.WeightedMultipliers(1, 1), (1e-5, 1e-3)),
        (cs.StabilisedIndex2(), (1e-8, 1e-6)),
    ],
    ids=["M1", "M2", "M3"],
)
def test_all_methods_hold_the_joint(kind, treatment, bounds):
    """Residuals at position and velocity level stay near what one correction leaves; motion near the exact one."""
    system, result = run(kind, 1e-3, treatment, correction=True)
    g = np.abs(cs.multibody.constraint_residuals(system, result)["j"]).max(axis=(1, 2))
    assert g[0] < bounds[0]
    assert g[1] < bounds[1]
    assert np.abs(states(result, "j")[::20] - reference(kind)).max() < 1e-4


@pytest.mark.covers("LU-42")
def test_long_levers_need_the_corrected_sign_of_the_projection():
    """|c_i|^2 + |c_j|^2 = 2 m^2: the printed sign would make the interface Jacobian of method 3 singular."""
    made = {}
    for name, point, at in (("one", (1.0, 0, 0), (0.0, 0, 0)), ("two", (1.0, 0, 0), (0.0, 0, 0))):
        model = cs.multibody.MultibodyModel(gravity=(0, 0, -9.81))
        model.body(
            "body", 1.0 if name == "one" else 2.0, [0.1, 0.2, 0.3], position=at, angular_velocity=(0.3, 1.0, 0.5)
        )
        model.marker("at", "body", point)
        made[name] = model
    system = cs.multibody.assemble(
        made, [cs.multibody.Joint("spherical", "one.at", "two.at", name="j")], integrator="rk4", internal_step=1e-3
    )
    method = cs.SemiImplicit(0, final_update=False, constraints=cs.StabilisedIndex2())
    result = cs.simulate(system, t_end=0.1, step=1e-3, method=method)
    g = np.abs(cs.multibody.constraint_residuals(system, result)["j"]).max(axis=(1, 2))
    assert g[0] < 1e-9
    assert g[1] < 1e-6


def test_markers_axes_are_used_without_an_axis():
    """Turned markers: the revolute axis is the z axis of both markers."""
    turned = models()
    z = starts()
    for name, model, s in zip(("one", "two"), turned.values(), z, strict=True):
        axes = T(s[3:7]).T @ np.column_stack([F, G, E])
        model.marker("turned", "body", {"one": [0.5, 0.1, 0.1], "two": [-0.4, 0.1, -0.1]}[name], axes=axes)
    by_marker = cs.multibody.Joint("revolute", "one.turned", "two.turned", name="j")
    ends = []
    for made in (by_marker, joint("revolute")):
        system = cs.multibody.assemble(turned, [made], integrator="rk4", internal_step=2e-3)
        method = cs.SemiImplicit(1, constraints=cs.Baumgarte())
        ends.append(states(cs.simulate(system, t_end=0.02, step=2e-3, method=method), "j")[-1])
    np.testing.assert_allclose(*ends, atol=1e-9)


def test_several_joints_between_three_subsystems():
    """Three bodies in a row, a flexible joint at one end of the middle one and a rigid joint at the other."""
    made = {}
    for k, name in enumerate(("a", "b", "c")):
        model = cs.multibody.MultibodyModel(gravity=(0, 0, -9.81))
        model.body("rod", 1.0, [0.01, 0.1, 0.1], position=(k, 0, 0), angular_velocity=(0.1, 0, 0))
        model.marker("left", "rod", (-0.5, 0, 0))
        model.marker("right", "rod", (0.5, 0, 0))
        made[name] = model
    made["a"].bushing("wall", "left", "ground", stiffness=0.0, damping=0.0)
    joints = [
        cs.multibody.Joint("universal", "a.right", "b.left", axis=(0, 1, 0), second_axis=(0, 0, 1), name="stiff"),
        cs.multibody.Joint("spherical", "b.right", "c.left", stiffness=2e3, damping=5.0, name="soft"),
    ]
    system = cs.multibody.assemble(made, joints, integrator="rk4", internal_step=1e-3)
    assert system.plan().n_z == 4 + 4 + 8 + 3  # multipliers, corrections, two copied orientations; force
    result = cs.simulate(system, t_end=0.05, step=1e-3, method=cs.SemiImplicit(1, constraints=cs.Baumgarte()))
    momentum = sum(result[f"{name}_v"] for name in ("a.stiff", "b.stiff", "c.soft"))
    np.testing.assert_allclose(momentum[-1] - momentum[0], [0, 0, -3 * 9.81 * 0.05], atol=1e-12)
    assert np.abs(cs.multibody.constraint_residuals(system, result)["stiff"][0]).max() < 1e-9


@pytest.mark.covers("LU-32")
def test_approximate_jacobian_loses_stability_with_strong_damping():
    """Bodies joined in their centres, damped to the ground: three two-mass oscillators (docs/validation/lu.md)."""

    def radius(d, jacobian):
        made = {}
        for name, m in (("one", 1.0), ("two", 2.0)):
            model = cs.multibody.MultibodyModel(gravity=(0, 0, 0))
            model.body("body", m, [m, m, m])
            # about the axes the same frequencies as along them, so that free turning is not the largest eigenvalue
            model.bushing(
                "ground", "body", "ground", stiffness=[1e3] * 3 + [1e3 * m] * 3, damping=[d] * 3 + [30 * m] * 3
            )
            made[name] = model
        joint = cs.multibody.Joint("spherical", "one.body", "two.body", name="j")
        system = cs.multibody.assemble(
            made, [joint], correction=False, jacobian=jacobian, integrator="rk4", internal_step=1e-4
        )
        method = cs.SemiImplicit(1, final_update=False, constraints=cs.WeightedMultipliers(1, 1))
        return cs.analysis.spectral_radius(system, method, 1e-3)

    assert radius(1e3, "approximate") == pytest.approx(1.0901, abs=1e-3)
    assert radius(1e3, "auto") < 1.0


def test_fully_implicit_reaches_the_tolerance_with_all_treatments():
    for treatment, correction in ((cs.Baumgarte(), False), (cs.StabilisedIndex2(), True)):
        system = cs.multibody.assemble(
            models(), [joint("revolute")], integrator="rk4", internal_step=5e-3, correction=correction
        )
        method = cs.Implicit(0, tol=1e-11, constraints=treatment)
        result = cs.simulate(system, t_end=0.05, step=5e-3, method=method)
        assert result.stats.unconverged == 0
        if correction:
            g = np.abs(cs.multibody.constraint_residuals(system, result)["j"]).max(axis=(1, 2))
            assert g[:2].max() < 1e-11


def test_joint_to_a_driven_body():
    """A pendulum on a point that is driven in another subsystem, against the joint inside one model (order 2)."""

    def support(model):
        model.body("crank", 1.0, [1, 1, 1])
        model.drive("crank", position=lambda t: [0.1 * np.sin(20 * t), 0.05 * t * t, 0.0])
        model.marker("pin", "crank")
        model.body("idle", 1.0, [1, 1, 1])  # a model needs something to integrate

    def pendulum(model):
        model.body("bob", 0.5, [0.01, 0.02, 0.03], position=(0, 0, -0.4), velocity=(2.0, 0, 0))
        model.marker("top", "bob", (0, 0, 0.4))

    whole = cs.multibody.MultibodyModel()
    support(whole)
    pendulum(whole)
    whole.joint("pin", "spherical", "top", "pin")
    alone = cs.multibody.MultibodySubsystem(whole, ports=[("bob", [])], rtol=1e-11, atol=1e-13)
    exact = cs.simulate(cs.System({"all": alone}), t_end=0.1, step=0.02, method=cs.Jacobi(0))["all.bob_position"]
    errors = []
    for H in (2e-3, 1e-3):
        made = {"drive": cs.multibody.MultibodyModel(), "load": cs.multibody.MultibodyModel()}
        support(made["drive"])
        pendulum(made["load"])
        pin = cs.multibody.Joint("spherical", "load.top", "drive.pin", name="pin")
        system = cs.multibody.assemble(made, [pin], correction=False, integrator="rk4", internal_step=H)
        method = cs.SemiImplicit(1, final_update=False, constraints=cs.Baumgarte(beta=4e-3, gamma=4e-6))
        result = cs.simulate(system, t_end=0.1, step=H, method=method)
        errors.append(np.abs(result["load.pin_r"][:: round(0.02 / H)] - exact).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.3)
    assert errors[1] < 1e-5
