"""What is refused before a run, in one sentence that says what and where."""

import numpy as np
import pytest
from tests.multibody.joints.cases import models

import cosolve as cs


def assemble(*joints, **options):
    return cs.multibody.assemble(models(), joints, **options)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("hinge", "one.at", "two.at"), "unknown kind 'hinge'"),
        (("revolut", "one.at", "two.at"), "did you mean 'revolute'"),
        (("spherical", "one", "two.at"), "'one' is not an address of the form 'subsystem.marker'"),
        (("spherical", "one.at", "one.body"), "belong to the same subsystem 'one'; put this joint into its model"),
    ],
)
def test_joint_that_makes_no_sense(arguments, sentence):
    with pytest.raises(cs.errors.SetupError, match=sentence):
        cs.multibody.Joint(*arguments)


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"kind": "universal", "axis": (0, 0, 1)}, "joins two directions; give axis=.* and second_axis=.*, or none"),
        ({"kind": "revolute", "second_axis": (0, 0, 1)}, "has no second axis"),
        ({"kind": "revolute", "axis": (0, 0, 0)}, "axis must be three numbers, not all zero"),
        ({"kind": "revolute", "axis": (0, np.nan, 0)}, "axis must be three numbers"),
        ({"stiffness": -1.0}, "stiffness must be one number or three, each of at least 0"),
        ({"stiffness": "soft"}, "stiffness must be one number"),
        ({"damping": 1.0}, "damping belongs to a flexible joint; add stiffness"),
        ({"kind": "revolute", "stiffness": 1.0}, "needs rotational_stiffness"),
        ({"kind": "perpendicular", "stiffness": 1.0}, "needs rotational_stiffness"),
        ({"stiffness": 1.0, "law": lambda x, v: x}, "either a stiffness or a law"),
        ({"law": 3}, "law must be a function"),
        ({"stiffness": 1.0, "approach": "F/F"}, "approach must be 'force/force'"),
        ({"approach": "force/displacement"}, "is rigid, so both sides get its force"),
        ({"formulation": "alternative"}, "belongs to flexible joints"),
        ({"formulation": "other"}, "formulation must be one of"),
        ({"kind": "inline", "stiffness": 1.0, "formulation": "alternative"}, "has inplane parts"),
        ({"name": "a.b"}, "name without a dot"),
    ],
)
def test_joint_with_bad_arguments(keywords, sentence):
    with pytest.raises(cs.errors.SetupError, match=sentence):
        cs.multibody.Joint(**{"kind": "spherical", "first": "one.at", "second": "two.at", **keywords})


def test_unknown_names_come_with_a_suggestion():
    with pytest.raises(cs.errors.SetupError, match=r"no model 'on' for 'on\.at'; did you mean 'one'"):
        assemble(cs.multibody.Joint("spherical", "on.at", "two.at"))
    with pytest.raises(cs.errors.SetupError, match="'two' has no marker 'att'; did you mean 'at'"):
        assemble(cs.multibody.Joint("spherical", "one.at", "two.att"))
    with pytest.raises(
        cs.errors.SetupError, match=r"'one\.ground' belongs to the ground, .* into the model at its other end"
    ):
        assemble(cs.multibody.Joint("spherical", "one.ground", "two.at"))


def test_two_joints_of_one_name_and_things_that_are_no_models():
    twice = cs.multibody.Joint("spherical", "one.at", "two.at", name="j")
    with pytest.raises(cs.errors.SetupError, match="two joints are called 'j'"):
        assemble(twice, twice)
    with pytest.raises(cs.errors.SetupError, match="joints must be Joint objects, not 'hinge'"):
        assemble("hinge")
    with pytest.raises(cs.errors.SetupError, match="'two' is a dict; give a MultibodyModel"):
        cs.multibody.assemble({**models(), "two": {}}, [])
    valve = cs.Static(lambda t, u: u, inputs=["u"], outputs=["y"])
    with pytest.raises(cs.errors.SetupError, match="'valve' is a finished Static, which has no markers"):
        cs.multibody.assemble({**models(), "valve": valve}, [cs.multibody.Joint("spherical", "one.at", "valve.at")])


def test_inconsistent_start_lists_the_violated_conditions():
    apart = models()
    apart["two"].marker("other", "body", (-0.4, 0.1, 0.4))
    with pytest.raises(
        cs.errors.SetupError, match=r"'j' x \(position\) by .*'j' y \(position\) by .*'j' z \(velocity\)"
    ):
        cs.multibody.assemble(apart, [cs.multibody.Joint("spherical", "one.at", "two.other", name="j")])
    slanted = cs.multibody.Joint("universal", "one.at", "two.at", axis=(1, 0, 0), second_axis=(1, 1, 0), name="j")
    with pytest.raises(cs.errors.SetupError, match=r"'j' angle \(position\) by 0\.707"):
        assemble(slanted)


def test_over_constrained_loop_is_refused_by_name():
    two_hinges = [
        cs.multibody.Joint("fixed", "one.at", "two.at", axis=(0, 0, 1), name=name) for name in ("top", "bottom")
    ]
    with pytest.raises(
        cs.errors.SetupError, match=r"the joints 'top', 'bottom' over-constrain .* of 12 conditions .* only 6"
    ):
        assemble(*two_hinges)


def test_redundant_with_the_joints_inside_a_subsystem():
    """A planar four-bar closed by a fixed joint: three of its six conditions hold already."""
    made = {}
    for name, x in (("one", 0.0), ("two", 2.0)):
        model = cs.multibody.MultibodyModel(gravity=(0, -9.81, 0))
        model.body("rod", 1.0, [0.1, 0.1, 0.1], position=(x, 0.5, 0))
        model.marker("foot", "rod", (0, -0.5, 0))
        model.marker("pivot", "ground", (x, 0, 0))
        model.marker("head", "rod", (1.0 - x, 0.5, 0))
        model.joint("pin", "revolute", "foot", "pivot")
        made[name] = model
    with pytest.raises(cs.errors.SetupError, match="the joint 'weld' over-constrains the mechanism at t = 0"):
        cs.multibody.assemble(made, [cs.multibody.Joint("fixed", "one.head", "two.head", axis=(0, 0, 1), name="weld")])


def test_stabilised_method_without_correction_inputs():
    system = assemble(cs.multibody.Joint("spherical", "one.at", "two.at"), correction=False)
    with pytest.raises(cs.errors.SetupError, match="StabilisedIndex2 needs"):
        cs.simulate(system, t_end=0.01, step=1e-3, method=cs.SemiImplicit(0, constraints=cs.StabilisedIndex2()))


def test_unstable_index_and_degree_are_refused_before_the_first_step():
    system = assemble(cs.multibody.Joint("spherical", "one.at", "two.at"))
    for treatment, degree in ((cs.Baumgarte(2e-3, 0.0), 1), (cs.WeightedMultipliers(1, 1), 2)):
        with pytest.raises(cs.errors.SetupError, match="errors of the constraint are multiplied by"):
            cs.simulate(system, t_end=0.01, step=1e-3, method=cs.SemiImplicit(degree, constraints=treatment))


def test_approximate_jacobian_needs_free_bodies():
    bound = models()
    start = bound["one"].bodies["body"].start
    bound["one"].body("twin", 1.0, [1, 1, 1], orientation=start[3:7], angular_velocity=start[10:])
    bound["one"].joint("hold", "orientation", "body", "twin")
    with pytest.raises(cs.errors.SetupError, match="'body' of 'one' has joints or a drive of its own"):
        cs.multibody.assemble(bound, [cs.multibody.Joint("inplane", "one.at", "two.at")], jacobian="approximate")
    with pytest.raises(cs.errors.SetupError, match="jacobian must be 'auto' or 'approximate'"):
        assemble(cs.multibody.Joint("inplane", "one.at", "two.at"), jacobian="exact")


@pytest.mark.parametrize("approach", ["force/force", "displacement/displacement"])
@pytest.mark.parametrize(
    ("law", "sentence"),
    [
        (lambda x, v: [1.0, 2.0], "'j': its law returned 2 numbers for 1 deflections"),
        (lambda x, v: "stiff", "'j': its law failed: could not convert"),
    ],
)
def test_law_that_returns_the_wrong_thing(law, sentence, approach):
    joint = cs.multibody.Joint("inplane", "one.at", "two.at", axis=(0, 0, 1), law=law, name="j", approach=approach)
    with pytest.raises(cs.CosolveError, match=sentence):
        cs.simulate(assemble(joint), t_end=0.01, step=1e-3, method=cs.SemiImplicit(0))


def test_held_inputs_must_exist():
    from cosolve.subsystem.held import HeldInputs

    valve = cs.Static(lambda t, u: u, inputs=["u"], outputs=["y"])
    with pytest.raises(cs.errors.SetupError, match="HeldInputs: there is no input 'w'"):
        HeldInputs(valve, {"w": 1.0})
