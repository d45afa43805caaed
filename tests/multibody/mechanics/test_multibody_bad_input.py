"""Bad input to multibody models: one sentence that says what is wrong, where, and what would work."""

import warnings

import numpy as np
import pytest
from tests.multibody.mechanics.mechanisms import advance, slider_crank_model

import cosolve as cs


def model_with_ball(**body):
    model = cs.multibody.MultibodyModel()
    model.body("ball", **{"mass": 1.0, "inertia": [0.1, 0.1, 0.1], **body})
    return model


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"mass": 0.0}, "body 'ball': the mass must be positive, not 0"),
        ({"mass": -2.0}, "body 'ball': the mass must be positive, not -2"),
        ({"mass": "heavy"}, "body 'ball': mass must be one numbers, not 'heavy'"),
        ({"inertia": [0, 0, 0]}, "body 'ball': the inertia must be positive definite, but .* 0, 0, 0; give a thin rod"),
        ({"inertia": [0.1, 0.1, -0.1]}, "body 'ball': the inertia must be positive definite, but .* -0.1, 0.1, 0.1"),
        ({"inertia": [[1, 2, 0], [2, 1, 0], [0, 0, 1]]}, "body 'ball': the inertia must be positive definite"),
        ({"inertia": [[1, 0.2, 0], [0, 1, 0], [0, 0, 1]]}, "body 'ball': the inertia matrix must be symmetric"),
        (
            {"inertia": [0.1, 0.1, 0.3]},
            "body 'ball': no body has the principal moments 0.1, 0.1, 0.3, .* centre of mass",
        ),
        ({"inertia": [0.1, 0.1]}, "body 'ball': inertia must be 3 or 3x3 numbers, not an array of shape"),
        ({"inertia": [0.1, np.nan, 0.1]}, "body 'ball': inertia holds a NaN"),
        ({"position": [1, 2]}, "body 'ball': position must be 3 numbers"),
        ({"orientation": [1, 1, 0, 0]}, "body 'ball': Euler parameters must have length one, but these have 1.41421"),
        ({"orientation": np.diag([1.0, 1, -1])}, "body 'ball': orientation must be a right-handed rotation matrix"),
    ],
)
def test_bodies(body, message):
    with pytest.raises(cs.errors.SetupError, match=message):
        model_with_ball(**body)


def test_a_flat_disc_is_allowed_to_meet_the_triangle_limit():
    model_with_ball(inertia=[0.1, 0.1, 0.2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.body("ball", 1.0, [1, 1, 1]), "body 'ball': the name is taken"),
        (lambda m: m.body("ground", 1.0, [1, 1, 1]), "body 'ground': the name is taken"),
        (lambda m: m.body("a.b", 1.0, [1, 1, 1]), "a body needs a non-empty name without a dot"),
        (lambda m: m.marker("m", "bal"), "marker 'm': there is no body 'bal'; did you mean 'ball'"),
        (lambda m: m.marker("ball", "ball"), "marker 'ball' exists already"),
        (lambda m: m.marker("m", "ball", axes=np.ones((3, 3))), "marker 'm': axes must be a right-handed rotation"),
        (
            lambda m: m.joint("j", "spheric", "ball", "ground"),
            "joint 'j': unknown kind 'spheric'; choose one of spherical",
        ),
        (
            lambda m: m.joint("j", "spherical", "ball", "grund"),
            "joint 'j': there is no marker 'grund'; did you mean 'ground'",
        ),
        (lambda m: m.joint("j", "spherical", "ball", "ball"), "joint 'j': both markers belong to 'ball'"),
        (lambda m: m.spring_damper("s", "ball", "ground", -1.0), "force element 's': stiffness must not be negative"),
        (lambda m: m.spring_damper("s", "ball", "ball", 1.0), "force element 's': both markers belong to 'ball'"),
        (
            lambda m: m.bushing("s", "ball", "ground", [1, 2]),
            "force element 's': stiffness must be one or 3 or 6 numbers",
        ),
        (lambda m: m.load("ball"), "load on 'ball': give a force, a torque or both"),
        (lambda m: m.load("ground", force=[1, 0, 0]), "load on 'ground': the marker belongs to the ground"),
        (lambda m: m.load("ball", force=[1, 0, 0], frame="tip"), "load on 'ball': frame must be 'ground' or 'body'"),
        (lambda m: m.drive("ground", position=lambda t: [0, 0, 0]), "the ground does not move"),
        (lambda m: m.drive("ball", position=[0, 0, 0]), "drive of 'ball': a motion is given by functions of time"),
        (
            lambda m: m.drive("ball", velocity=lambda t: [0, 0, 0]),
            "drive of 'ball': a velocity .* without its position",
        ),
    ],
)
def test_parts(call, message):
    with pytest.raises(cs.errors.SetupError, match=message):
        call(model_with_ball())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "index_3"}, "MultibodySubsystem: unknown form 'index_3'; choose one of index_1"),
        ({"integrator": "euler"}, "MultibodySubsystem: unknown integrator 'euler'"),
        ({"coordinates": "cardan"}, "MultibodySubsystem: unknown coordinates 'cardan'"),
        (
            {"form": "ggl", "integrator": "rk4", "internal_step": 1e-3},
            "'ggl' is of index 2 and needs integrator='radau'",
        ),
        ({"integrator": "rk4"}, "integrator 'rk4' takes fixed steps and needs internal_step > 0; got None"),
        ({"form": "ggl"}, "integrator 'radau' takes fixed steps"),
        ({"internal_step": 1e-3}, "internal_step belongs to 'rk4' and 'radau'"),
        ({"rtol": 0.0}, "rtol must be a positive number"),
        ({"alpha": 1.0}, "alpha and beta belong to form='baumgarte'"),
        ({"form": "baumgarte", "alpha": -1.0}, "alpha must be a number of at least 0"),
        ({"integrator": "radau", "internal_step": 1e-3, "stages": 4}, "stages of Radau IIA must be 2 or 3"),
        ({"initial": "guess"}, "initial must be 'refuse' or 'find'"),
        ({"redundant": "ignore"}, "redundant must be 'refuse' or 'drop'"),
        ({"ports": ["tip"]}, "port 'tip' is not a marker of the model; there are ground, ball"),
        ({"ports": [("ball", ["push"])]}, r"a port is a marker or \(marker, list of inputs"),
        ({"ports": ["ball", "ball"]}, "the marker 'ball' is listed twice"),
        ({"monitors": ["speed"]}, "unknown monitor 'speed'"),
    ],
)
def test_options(options, message):
    with pytest.raises(cs.errors.SetupError, match=message):
        cs.multibody.MultibodySubsystem(model_with_ball(), **options)


def test_models_without_anything_to_integrate():
    with pytest.raises(cs.errors.SetupError, match="has no body"):
        cs.multibody.MultibodySubsystem(cs.multibody.MultibodyModel())
    model = model_with_ball()
    model.drive("ball", position=lambda t: [t, 0, 0])
    with pytest.raises(cs.errors.SetupError, match="all bodies of the multibody model are driven"):
        cs.multibody.MultibodySubsystem(model)
    with pytest.raises(cs.errors.SetupError, match="takes a MultibodyModel, not a str"):
        cs.multibody.MultibodySubsystem("model")


def test_an_end_of_an_unknown_body():
    class End:
        name, body, inputs, kind, constants = "E", "bell", (("force", 3),), 0, np.zeros(0)

    with pytest.raises(
        cs.errors.SetupError, match="joint end 'E' names the body 'bell', but the model has ball, ground"
    ):
        cs.multibody.MultibodySubsystem(model_with_ball(), ends=[End()])


@pytest.mark.covers("DR-03")
def test_baumgarte_warns_where_rk4_would_be_unstable():
    with pytest.warns(UserWarning, match=r"alpha h = 3; RK4 is unstable above 2.78: take alpha below 250"):
        crank = cs.multibody.MultibodySubsystem(
            slider_crank_model(), form="baumgarte", beta=300.0, integrator="rk4", internal_step=0.01
        )
    crank.start(0.0)
    with pytest.raises(cs.errors.SimulationError):
        advance(crank, 0.0, 1.0)  # the double eigenvalue -300 is outside RK4's region: 3 > 2.78
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fine = cs.multibody.MultibodySubsystem(
            slider_crank_model(), form="baumgarte", beta=200.0, integrator="rk4", internal_step=0.01
        )
    fine.start(0.0)
    advance(fine, 0.0, 5.0)
    assert max(abs(c) for c, _ in fine.constraint_residuals().values()) < 1e-2


def test_infinite_inputs_stop_with_the_body():
    ball = cs.multibody.MultibodySubsystem(model_with_ball(), ports=["ball"], integrator="rk4", internal_step=1e-2)
    ball.start(0.0)
    with pytest.raises(cs.errors.NonFiniteError, match="body 'ball' became infinite or not a number"):
        advance(ball, 0.0, 0.1, [np.nan, 0, 0, 0, 0, 0])


def test_a_load_function_that_returns_nonsense():
    model = model_with_ball()
    model.load("ball", force=lambda t: [1.0, 2.0])
    with pytest.raises(cs.errors.SubsystemError, match=r"the load on 'ball' gave .* expected 3 finite numbers"):
        cs.multibody.MultibodySubsystem(model).start(0.0)


def test_too_stiff_for_the_explicit_integrator():
    model = model_with_ball(position=(0, 0, -1))
    model.spring_damper("stiff", "ball", "ground", 1e14, 1e9)
    ball = cs.multibody.MultibodySubsystem(model)
    ball.start(0.0)
    with pytest.raises(cs.errors.SubsystemError, match="use integrator='radau' with a step"):
        advance(ball, 0.0, 1.0)
    stiff = cs.multibody.MultibodySubsystem(model, integrator="radau", internal_step=0.01)
    stiff.start(0.0)
    advance(stiff, 0.0, 1.0)
    assert stiff.state_of("ball")[2] == pytest.approx(-1.0, abs=1e-9)
