"""Exact Jacobians over a macro step against differences, which lose digits where steps are small."""

import numpy as np
import pytest
from tests.multibody.mechanics.mechanisms import Inputs

import cosolve as cs
from cosolve.multibody.equations.coupling_loads import INPLANE, LAW, PERPENDICULAR, STABILISED, End, part_constants

Q = np.array([0.8, 0.36, 0.48, 0.0]) / np.linalg.norm([0.8, 0.36, 0.48, 0.0])


def chain(**options):
    """Two bodies with a universal joint, one on a ball joint; a port and a joint end at the free one."""
    model = cs.multibody.MultibodyModel()
    model.body("a", 1.0, [0.1, 0.12, 0.05], position=(0, 0, -0.5), angular_velocity=(0.5, 0, 0), velocity=(0, 0.25, 0))
    model.body("b", 2.0, [0.2, 0.15, 0.3], position=(0, 0, -1.5), angular_velocity=(0.5, 0, 0), velocity=(0, 0.75, 0))
    model.marker("a0", "a", (0, 0, 0.5))
    model.marker("a1", "a", (0, 0, -0.5))
    model.marker("b0", "b", (0, 0, 0.5))
    model.marker("tip", "b", (0.1, 0.2, -0.5))
    model.joint("ball", "spherical", "a0", "ground")
    model.joint("advance", "universal", "b0", "a1")
    parts = [
        part_constants(INPLANE, [0.1, 0, -0.5], [0.2, 0, 0], e_j=[0, 0, 1], stiffness=50.0, damping=2.0),
        part_constants(PERPENDICULAR, [0, 0, 0], [0, 0, 0], e_i=[1, 0, 0], e_j=[0, 1, 0], stiffness=5.0),
    ]
    flags = [len(parts), 1, 1, 1, 1, 1]
    law = End("E", "b", (("r", 3), ("q", 4), ("v", 3), ("w", 3)), LAW, np.concatenate([flags, *parts]))
    flags = [1, 1, 0, 1, 0, 0]
    rigid = End("R", "b", (("force", 1), ("mu", 1), ("q", 4)), STABILISED, np.concatenate([flags, parts[0]]))
    return cs.multibody.MultibodySubsystem(model, ports=["tip"], ends=[law, rigid], **options)


U0 = np.concatenate([[1, 2, 3, 0.1, 0.2, -0.1], [0, 0, -2], Q, [0, 0.1, 0], [0, 0, 0.2], [4.0], [0.01], Q])


def jacobian_and_reference(H, eps, degree=1, **options):
    exact, plain = chain(sensitivities=True, **options), chain(**options)
    weight = np.array([0.0, 1.0]) if degree == 1 else np.array([1.0])
    coefficients = np.array([0.9 * U0, 0.1 * U0]) if degree == 1 else U0[np.newaxis]
    for system in (exact, plain):
        system.start(0.0)
    J = exact.jacobian(0.0, H, Inputs(0.0, H, coefficients), weight)
    saved = plain.save()
    plain.advance(0.0, H, Inputs(0.0, H, coefficients))
    columns = []
    for k in range(len(U0)):
        ends = []
        for sign in (1, -1):
            plain.restore(saved)
            step = np.zeros_like(coefficients)
            step[:, k] = sign * eps * weight
            ends.append(plain.replay(0.0, H, Inputs(0.0, H, coefficients + step)))
        columns.append((ends[0] - ends[1]) / (2 * eps))
    return J, np.array(columns).T


@pytest.mark.parametrize(
    "options",
    [
        {"integrator": "rk4", "internal_step": 0.01},
        {"form": "index_1", "integrator": "rk4", "internal_step": 0.01},
        {"form": "position_projection", "integrator": "rk4", "internal_step": 0.01},
        {"form": "baumgarte", "beta": 20.0, "integrator": "rk4", "internal_step": 0.01},
        {"rtol": 1e-8},
    ],
)
@pytest.mark.parametrize("degree", [0, 1])
def test_agrees_with_differences_over_a_long_step(options, degree):
    J, reference = jacobian_and_reference(0.1, 1e-4, degree, **options)
    assert J.shape == (3 * 19, len(U0))
    scale = np.abs(reference).max(axis=1, keepdims=True) + 1e-12
    assert np.abs((J - reference) / scale).max() < 2e-6


def test_keeps_its_digits_over_a_short_step():
    # With H = 1e-4 a force of 1 N moves the body by 5e-9 m: differences with the usual increment are noise.
    J, noisy = jacobian_and_reference(1e-4, 1e-5, integrator="rk4", internal_step=1e-4)
    _, better = jacobian_and_reference(1e-4, 1.0, integrator="rk4", internal_step=1e-4)
    force, position = slice(0, 3), slice(0, 3)
    size = np.abs(better[position, force]).max()
    assert np.abs(J - better)[position, force].max() / size < 1e-6
    assert np.abs(noisy - better)[position, force].max() / size > 1e-5


def test_semi_implicit_runs_use_it():
    def run(sensitivities):
        bodies = {}
        for name in ("one", "two"):
            model = cs.multibody.MultibodyModel()
            model.body("ball", 1.0, [0.1, 0.1, 0.1], position=(0.0 if name == "one" else 1.0, 0, 0))
            bodies[name] = cs.multibody.MultibodySubsystem(
                model, ports=[("ball", ["force"])], integrator="rk4", internal_step=1e-3, sensitivities=sensitivities
            )
        system = cs.System(bodies)
        system.law(
            {"one.ball_force": 1, "two.ball_force": -1},
            lambda a, b, va, vb: 1e3 * (b - a - np.array([0.9, 0, 0])) + 10 * (vb - va),
            of=["one.ball_position", "two.ball_position", "one.ball_velocity", "two.ball_velocity"],
        )
        return cs.simulate(system, t_end=0.05, step=1e-3, method=cs.SemiImplicit(degree=1))["one.ball_position"]

    assert run(True) == pytest.approx(run(False), abs=1e-10)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"integrator": "radau", "internal_step": 1e-3}, "integrator='radau'"),
        ({"monitors": ["energy"]}, "monitors"),
    ],
)
def test_what_it_does_not_go_with(options, reason):
    with pytest.raises(cs.errors.SetupError, match=f"sensitivities do not go with {reason}"):
        chain(sensitivities=True, **options)
