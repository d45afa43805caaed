"""Unknowns of `system.equations` at the start of a run: solved for where the instant determines them.

The reference of most tests is the same coupling written as a law, which needs nothing solved, or a closed form.
"""

from __future__ import annotations

import numpy as np
import pytest

import cosolve as cs
from cosolve.engine.python.subsystem_caller import SubsystemCaller

METHODS = (cs.SemiImplicit, cs.Implicit)


def lag(x0=1.0, rate=1.0, **names):
    """`x' = rate (u - x)`."""
    return cs.Linear([[-rate]], [[rate]], [[1.0]], x0=[x0], **{"inputs": ["u"], "outputs": ["x"], **names})


def halved(kind):
    """`x' = u - x` with `u = x / 2`, so that `x = exp(-t / 2)`."""
    system = cs.System({"a": lag()})
    if kind == "law":
        system.law("a.u", lambda x: x / 2, of="a.x")
    else:
        system.equations({"z": "a.u"}, lambda z, x: 2 * z - x, of="a.x")
    return system


def rooted(kind):
    """`x' = u - x` with `u^2 = x` and `u > 0`: `sqrt(x) = 1 + (sqrt(x0) - 1) exp(-t / 2)`."""
    system = cs.System({"a": lag(4.0)})
    if kind == "law":
        system.law("a.u", lambda x: x**0.5, of="a.x")
    else:
        system.equations({"z": "a.u"}, lambda z, x: z**2 - x, of="a.x", initial={"z": 1.0})
    return system


def through(kind):
    """`x' = u - x` with `u` such that a static `y = 3 u + 1` is as large as `x`: `u = (x - 1) / 3`."""
    parts = {"a": lag()}
    if kind == "law":
        system = cs.System(parts)
        system.law("a.u", lambda x: (x - 1) / 3, of="a.x")
        return system
    system = cs.System({**parts, "b": cs.Static(lambda t, u: 3 * u + 1, inputs=["u"], outputs=["y"])})
    system.equations({"z": ["a.u", "b.u"]}, lambda z, x, y: y - x, of=["a.x", "b.y"])
    return system


EXACT = {
    halved: np.exp(-0.5),
    rooted: (1.0 + np.exp(-0.5)) ** 2,
    through: -0.5 + 1.5 * np.exp(-2.0 / 3.0),
}


def errors(system, exact, method, steps, **options):
    return np.array(
        [abs(cs.simulate(system, t_end=1, method=method, step=H, **options)["a.x"][-1] - exact) for H in steps]
    )


def slopes(found):
    return np.log2(found[:-1] / found[1:])


@pytest.mark.sample(3)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("build", EXACT)
def test_the_order_is_the_degree_plus_one_as_with_a_law(build, degree, method):
    steps = [0.05, 0.025, 0.0125]
    by_equations, by_law = (errors(build(kind), EXACT[build], method(degree), steps) for kind in ("equations", "law"))
    assert slopes(by_equations) == pytest.approx(degree + 1.0, abs=0.12)
    if build is not rooted or method is cs.Implicit:  # one Newton step for u^2 = x is not one for u = sqrt(x)
        assert by_equations == pytest.approx(by_law, rel=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_from_degree_3_on_the_rising_degree_of_the_first_steps_limits_the_order_to_3(method):
    """The first step has two points, hence degree 1 and a local error of order 3.

    A known past gives all four, and so does a first macro step in pieces, the default.
    """
    steps = [0.1, 0.05, 0.025]
    rising = errors(halved("equations"), EXACT[halved], method(3), steps, startup=cs.RisingDegree())
    assert slopes(rising) == pytest.approx(3.0, abs=0.05)
    past = cs.KnownHistory(lambda t: {"a.x": np.exp(-t / 2)})
    known = errors(halved("equations"), EXACT[halved], method(3), steps, startup=past)
    assert slopes(known) == pytest.approx(4.0, abs=0.1)
    assert slopes(errors(halved("equations"), EXACT[halved], method(3), steps)) == pytest.approx(4.0, abs=0.25)


@pytest.mark.parametrize("method", METHODS)
def test_adaptive_steps_leave_the_start(method):
    run = cs.simulate(halved("equations"), t_end=1, method=method(2), step=cs.Adaptive(rtol=1e-6))
    as_law = cs.simulate(halved("law"), t_end=1, method=method(2), step=cs.Adaptive(rtol=1e-6))
    assert run.stats.steps <= 1.5 * as_law.stats.steps
    assert run["a.x"][-1] == pytest.approx(np.exp(-0.5), abs=1e-6)


def test_explicit_methods_still_refuse_equations():
    with pytest.raises(cs.errors.CapabilityError, match="Jacobi is explicit and cannot solve the equations"):
        cs.simulate(halved("equations"), t_end=1, method=cs.Jacobi(1), step=0.1)


# -- which solution ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("near", "found"), [(0.7, 2.0), (-0.3, -2.0), (40.0, 2.0)])
def test_of_two_solutions_the_initial_value_chooses(near, found):
    system = cs.System({"a": lag(4.0)})
    system.equations({"z": "a.u"}, lambda z, x: z**2 - x, of="a.x", initial={"z": near})
    run = cs.simulate(system, t_end=0.1, method=cs.Implicit(1), step=0.01)
    assert run["z"][0] == pytest.approx(found, abs=1e-14)
    assert (np.sign(run["z"]) == np.sign(found)).all()


def test_functions_that_are_not_defined_on_one_side_of_their_start_value():
    system = cs.System({"a": lag(4.0)})
    system.equations({"z": "a.u"}, lambda z, x: z**0.5 - x + z, of="a.x", initial={"z": 0.0})  # complex below zero
    z = start(system)["z"]
    assert z**0.5 + z == pytest.approx(4.0, abs=1e-14)


def test_equations_without_solution_stop_at_the_start_with_a_sentence():
    system = cs.System({"a": lag()})
    system.equations({"z": "a.u"}, lambda z, x: z**2 + x, of="a.x", initial={"z": 1.0})
    words = r"the equations for a.u have no solution .* at t = 0 from z = 1 \(residual 2\).* give initial={'z': ...}"
    for method in METHODS:
        with pytest.raises(cs.errors.ConvergenceError, match=words):
            cs.simulate(system, t_end=1, method=method(1), step=0.1)
    advice = cs.check(system, cs.SemiImplicit(1))
    assert advice.codes() == {"start-failed"}
    assert "no solution" in str(advice)


def test_equations_whose_derivative_vanishes_at_the_start_ask_for_another_initial_value():
    system = cs.System({"a": lag()})
    system.equations({"z": "a.u"}, lambda z, x: z**2 - x, of="a.x")  # no initial value: dr/dz = 0
    for method in METHODS:
        with pytest.raises(cs.errors.ConvergenceError, match=r"no solution .* from z = 0 .* give initial={'z': ...}"):
            cs.simulate(system, t_end=1, method=method(1), step=0.1)


def test_a_cubic_without_slope_at_the_start_is_solved_all_the_same():
    system = cs.System({"a": lag(8.0)})
    system.equations({"z": "a.u"}, lambda z, x: z**3 - x, of="a.x")
    assert start(system)["z"] == pytest.approx(2.0, abs=1e-14)


def test_an_equation_that_reacts_to_nothing_is_named_before_and_stops_the_run():
    system = cs.System({"a": lag()})
    system.equations({"z": "a.u"}, lambda z, x: 1.0, of="a.x")
    for method in METHODS:
        with pytest.raises(cs.errors.SingularInterfaceError, match="'z' does not react"):
            cs.simulate(system, t_end=1, method=method(1), step=0.1)
    (finding,) = (f for f in cs.check(system, cs.SemiImplicit(1)).findings if f.code == "undetermined-start")
    assert finding.level == "warning"
    assert "residual is 1" in finding.text


# -- what the instant does not determine -------------------------------------------------------------------


def start(system, t=0.0):
    """Coupling variables by name at the start."""
    plan = system.plan()
    z = SubsystemCaller(plan).start(t)[1]
    return {name: float(z[part][0]) if scalar else z[part] for name, (part, scalar) in plan.z_ports.items()}


def mass(x0, v0, stiffness=0.0, m=1.0):
    """`m x'' + stiffness x = f`."""
    A, B = [[0, 1], [-stiffness / m, 0]], [[0], [1 / m]]
    return cs.Linear(A, B, [[1, 0], [0, 1]], x0=[x0, v0], inputs=["f"], outputs=["x", "v"])


def rod(initial=None, **parts):
    """Two masses at one speed, one of them on a spring: `lam` is half the spring's force."""
    system = cs.System({"one": mass(1.0, 0.0, stiffness=4.0), "two": mass(1.0, 0.0), **parts})
    pull = {"one.f": 1, "two.f": -1}
    system.equations({"lam": pull}, lambda lam, v1, v2: v2 - v1, of=["one.v", "two.v"], initial=initial)
    return system


def test_a_multiplier_of_velocities_keeps_its_initial_value_and_check_says_what_that_costs():
    assert start(rod())["lam"] == 0.0
    assert start(rod(initial={"lam": 2.0}))["lam"] == 2.0
    (finding,) = (f for f in cs.check(rod(), cs.SemiImplicit(1)).findings if f.code == "undetermined-start")
    assert finding.level == "warning"
    for words in ("'lam' cannot be determined at t = 0", "starts at the initial value 0", "initial={'lam': ...}"):
        assert words in finding.text
    assert "with degree 1 or more a wrong start value costs orders of accuracy" in finding.text
    (finding,) = (
        f for f in cs.check(rod(initial={"lam": 2.0}), cs.SemiImplicit(1)).findings if f.code == "undetermined-start"
    )
    assert finding.level == "note"
    assert "your initial value 2, which should be right" in finding.text


@pytest.mark.parametrize("method", METHODS)
def test_the_cost_is_as_check_says(method):
    """x'' = -2 x for both masses together, lam = 2 cos(sqrt(2) t).

    Only the mean of `lam` over a step matters for the velocities at its end, so the ramp alternates about the right
    values by as much as it was wrong at first, and states lose the two orders that they have beyond the degree.
    """

    def error(H, **options):
        run = cs.simulate(rod(**options), t_end=1, method=method(1), step=H)
        return abs(run["one.x"][-1] - np.cos(2.0**0.5)), abs(run["lam"][-1] - 2.0 * np.cos(2.0**0.5))

    wrong, right = (np.array([error(H, **o) for H in (0.02, 0.01, 0.005)]) for o in ({}, {"initial": {"lam": 2.0}}))
    assert slopes(wrong[:, 0]) == pytest.approx(2.0, abs=0.1)
    assert wrong[:, 1] == pytest.approx(2.0, rel=1e-3)
    assert slopes(right[:, 0]) == pytest.approx(4.0, abs=0.1)
    assert slopes(right[:, 1]) == pytest.approx(2.0, abs=0.1)


def test_the_determined_part_is_solved_with_the_kept_values():
    """`z` follows from `lam`, which nothing determines: `lam` is kept, whichever has the larger factor."""
    for factor in (0.01, 100.0):
        system = cs.System({"one": mass(0.0, 1.0), "two": mass(0.0, 1.0), "a": lag(3.0)})
        system.equations(
            {"lam": {"one.f": 1, "two.f": -1}}, lambda lam, v1, v2: v2 - v1, of=["one.v", "two.v"], initial={"lam": 5.0}
        )
        system.equations({"z": "a.u"}, lambda z, x: 2 * z - x, of="a.x")
        assert (start(system)["lam"], start(system)["z"]) == (5.0, 1.5)
        together = cs.System({"one": mass(0.0, 1.0), "two": mass(0.0, 1.0), "a": lag(3.0)})
        together.equations(
            {"lam": {"one.f": 1, "two.f": -1}, "z": "a.u"},
            lambda lam, z, v1, v2, x, factor=factor: (v2 - v1, z - x - factor * lam),
            of=["one.v", "two.v", "a.x"],
            initial={"lam": 5.0},
        )
        found = start(together)
        assert found["lam"] == 5.0
        assert found["z"] == pytest.approx(3.0 + 5.0 * factor, rel=1e-14)


def contradicting(**parts):
    system = cs.System({"a": lag(3.0), "b": lag(4.0), **parts})
    system.equations(
        {"p": "a.u", "q": "b.u"}, lambda p, q, x, y: (p + q - x, p + q - y), of=["a.x", "b.x"], initial={"p": 1.0}
    )
    return system


def test_equations_that_contradict_each_other_keep_their_values_and_leave_others_alone():
    system = contradicting(c=lag(6.0))
    system.equations({"z": "c.u"}, lambda z, x: 2 * z - x, of="c.x")
    assert start(system) == {"p": 1.0, "q": 0.0, "z": 3.0}
    named = [f.text for f in cs.check(system, cs.Implicit(1)).findings if f.code == "undetermined-start"]
    assert [text.split("'")[1] for text in named] == ["p", "q"]
    assert all("residual is 3" in text for text in named)


def test_an_equation_without_solution_is_not_excused_by_others_that_say_nothing():
    for system in (contradicting(c=lag(1.0)), rod(c=lag(1.0))):
        system.equations({"z": "c.u"}, lambda z, x: z**2 + x, of="c.x", initial={"z": 1.0})
        with pytest.raises(cs.errors.ConvergenceError, match=r"the equations for c\.u have no solution"):
            start(system)


# -- several at once ---------------------------------------------------------------------------------------


def test_two_sets_of_equations_that_read_what_the_other_drives():
    """p = y_q + x, q = 1 - y_p / 2 with static outputs y_p = 2 p and y_q = 3 q; x(0) = 4."""
    gains = {f"g{k}": cs.Static(lambda t, u, k=k: k * u, inputs=["u"], outputs=["y"]) for k in (2, 3)}
    system = cs.System({"a": lag(4.0), **gains})
    system.connect("a.x", "a.u")
    system.equations({"p": "g2.u"}, lambda p, y, x: p - y - x, of=["g3.y", "a.x"])
    system.equations({"q": "g3.u"}, lambda q, y: q - 1 + y / 2, of="g2.y")
    found = start(system)
    assert [found["p"], found["q"]] == pytest.approx(list(np.linalg.solve([[1, -3], [1, 1]], [4, 1])), rel=1e-14)


def test_a_loop_that_has_one_solution_only_together_with_its_equation():
    """Round the loop `y = y + w - 1` for any `y`; the equation `y = 7` determines `y`, the loop determines `w`."""
    adder = cs.Static(lambda t, u: u[0] + u[1] - 1.0, inputs=["y", "w"], outputs=["sum"])
    system = cs.System({"add": adder})
    system.connect("add.sum", "add.y")
    system.equations({"w": "add.w"}, lambda w, y: y - 7.0, of="add.sum")
    found = start(system)
    assert found["w"] == pytest.approx(1.0, abs=1e-12)
    assert found["add.sum"] == pytest.approx(7.0, abs=1e-12)


def test_an_unknown_inside_an_algebraic_loop():
    """`y = 0.5 y + w` in a loop of its own, and `w` such that `y = x^2`, x(0) = 3."""
    adder = cs.Static(lambda t, u: 0.5 * u[0] + u[1], inputs=["y", "w"], outputs=["sum"])
    system = cs.System({"add": adder, "a": lag(3.0)})
    system.set("a.u", 0.0)
    system.connect("add.sum", "add.y")
    system.equations({"w": "add.w"}, lambda w, y, x: y - x**2, of=["add.sum", "a.x"])
    found = start(system)
    assert [found["w"], found["add.sum"]] == pytest.approx([4.5, 9.0], rel=1e-12)


def test_multipliers_of_constraints_and_unknowns_of_equations_need_each_other():
    """Two masses joined; one feels `z = 0.5 a1 + 3` as well, so that 2 a = z - 4 x1, and the joint carries `a - 0`."""
    outputs, C, D = ["x", "v", "a"], [[1, 0], [0, 1]], [[0], [0], [1]]
    one = cs.Linear([[0, 1], [-4, 0]], [[0, 0], [1, 1]], [*C, [-4, 0]], [[0, 0], [0, 0], [1, 1]],
                    x0=[1, 0], inputs=["f", "z"], outputs=outputs)  # fmt: skip
    two = cs.Linear([[0, 1], [0, 0]], [[0], [1]], [*C, [0, 0]], D, x0=[1, 0], inputs=["f"], outputs=outputs)
    system = cs.System({"one": one, "two": two})
    system.constraint(
        {"lam": {"one.f": 1, "two.f": -1}},
        lambda x1, v1, a1, x2, v2, a2: (x2 - x1, v2 - v1, a2 - a1),
        of=["one.x", "one.v", "one.a", "two.x", "two.v", "two.a"],
    )
    system.equations({"z": "one.z"}, lambda z, a: z - 0.5 * a - 3.0, of="one.a")
    a = (3.0 - 4.0) / 1.5
    found = start(system)
    assert [found["z"], found["lam"]] == pytest.approx([0.5 * a + 3.0, -a], rel=1e-9)


def test_vector_unknowns():
    A = np.array([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [1.0, 0.0, 4.0]])
    field = cs.Static(lambda t, u: A @ u, inputs=[("u", 3)], outputs=[("y", 3)])
    system = cs.System({"field": field, "a": lag(2.0)})
    system.equations(
        {"w": "field.u", "s": "a.u"},
        lambda w, s, y, x: (y - x * np.array([1.0, 2.0, 3.0]), s - w[2]),
        of=["field.y", "a.x"],
    )
    found, exact = start(system), np.linalg.solve(A, [2.0, 4.0, 6.0])
    assert found["w"] == pytest.approx(exact, rel=1e-13)
    assert found["s"] == pytest.approx(exact[2], rel=1e-13)


@pytest.mark.parametrize("stiffness", [1e6, 1e12, 1e-12])
def test_sizes_far_from_one(stiffness):
    """A displacement of 1e-6 and a force of up to 1e6 without nominal values; and the other way round."""
    x0 = 1e-6 if stiffness > 1 else 1e6
    for residual in (lambda f, x: f / stiffness - x, lambda f, x: f - stiffness * x):
        system = cs.System({"a": lag(x0)})
        system.equations({"f": "a.u"}, residual, of="a.x")
        assert start(system)["f"] == pytest.approx(stiffness * x0, rel=1e-13)


def test_a_large_unknown_and_a_small_one_together():
    system = cs.System({"a": lag(1e-6), "b": lag(1e6)})
    system.equations(
        {"f": "a.u", "w": "b.u"},
        lambda f, w, x, y: (f - 1e12 * x - 1e9 * w, w - 1e-12 * y + 1e-15 * f),
        of=["a.x", "b.x"],
    )
    found = start(system)
    exact = np.linalg.solve([[1.0, -1e-3], [1e-3, 1.0]], [1.0, 1.0]) * [1e6, 1e-6]
    assert [found["f"], found["w"]] == pytest.approx(list(exact), rel=1e-12)


def test_more_unknowns_than_are_solved_for_keep_their_values_and_check_says_so():
    many = cs.Static(lambda t, u: 2 * u, inputs=[("u", 300)], outputs=[("y", 300)])
    system = cs.System({"many": many})
    system.equations({"w": "many.u"}, lambda w, y: y - 1.0, of="many.y")
    assert (start(system)["w"] == 0.0).all()
    (finding,) = (f for f in cs.check(system, cs.Implicit(1)).findings if f.code == "unsolved-start")
    assert "300 unknowns" in finding.text


def test_solving_at_the_start_can_be_left_out():
    """No call of the static solver but the one that gives its first outputs; `check` does not complain of a wish."""
    calls = []
    gain = cs.Static(lambda t, u: calls.append(u) or 2 * u, inputs=["u"], outputs=["y"])
    for solve_start, z, most in ((True, 3.5, 30), (False, 1.0, 3)):
        system = cs.System({"gain": gain})
        equations = {"z": "gain.u"}, lambda z, y: y - 7.0
        system.equations(*equations, of="gain.y", initial={"z": 1.0}, solve_start=solve_start)
        calls.clear()
        assert start(system)["z"] == pytest.approx(z, rel=1e-15)
        assert len(calls) <= most
        assert "undetermined-start" not in cs.check(system, cs.Implicit(1)).codes()


# -- all subsystems see the same start -------------------------------------------------------------------------


def test_stepper_sweep_and_the_choice_of_engine_see_the_same_start():
    exact = 2.0
    run = {"t_end": 0.05, "method": cs.SemiImplicit(2)}
    chosen, readable = (cs.simulate(rooted("eq"), step=0.01, **run, compiled=c) for c in (None, False))
    assert chosen["z"][0] == pytest.approx(exact, abs=1e-14)
    for name in ("z", "a.x"):
        assert np.array_equal(chosen[name], readable[name])
    with pytest.raises(cs.errors.SetupError, match="Python engine"):
        cs.simulate(rooted("eq"), step=0.01, **run, compiled=True)
    with cs.Stepper(rooted("eq"), method=cs.SemiImplicit(2), step=0.01) as stepper:
        assert stepper["z"] == chosen["z"][0]
        for k in range(1, 6):
            stepper.step()
            assert stepper["z"] == chosen["z"][k]
    swept = cs.sweep(
        lambda kind: rooted(kind),
        {"kind": ["eq"]},
        methods=cs.SemiImplicit(2),
        steps=0.01,
        t_end=0.05,
        record=["z"],
        reduce="trajectory",
        workers=1,
    )
    assert np.array_equal(np.ravel(swept["z"]), chosen["z"])


def test_analysis_at_another_state_solves_for_the_unknowns_there():
    """`u^2 = x` linearised at x = 4 and x = 9: x' = u - x has the slopes 1/4 - 1 and 1/6 - 1."""
    H = 1e-3
    for x, slope in ((4.0, -0.75), (9.0, -5.0 / 6.0)):
        found = cs.analysis.amplification_matrix(rooted("eq"), cs.SemiImplicit(0), H, state={"a": [x]})
        assert np.log(found.radius) / H == pytest.approx(slope, rel=2e-3)


def test_a_known_past_determines_the_unknowns_or_asks_for_them():
    def positions(t):
        return {"one.v": -(2.0**0.5) * np.sin(2.0**0.5 * t), "two.v": -(2.0**0.5) * np.sin(2.0**0.5 * t)}

    run = {"t_end": 0.5, "method": cs.SemiImplicit(2), "step": 0.05}
    with pytest.raises(cs.errors.SetupError, match="outputs alone do not determine the unknown 'lam'"):
        cs.simulate(rod(initial={"lam": 2.0}), **run, startup=cs.KnownHistory(positions))
    past = cs.KnownHistory(lambda t: {**positions(t), "lam": 2.0 * np.cos(2.0**0.5 * t)})
    found = cs.simulate(rod(initial={"lam": 2.0}), **run, startup=past)
    assert found["one.x"] == pytest.approx(np.cos(2.0**0.5 * found.t), abs=1e-4)


# -- more than one solution, in the run --------------------------------------------------------------------


def ring(gain):
    parts = {name: cs.Static(lambda t, u: gain * u, inputs=["u"], outputs=["y"]) for name in ("a", "b")}
    system = cs.System(parts)
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    return system


@pytest.mark.parametrize("method", METHODS)
def test_a_loop_of_gain_1_is_refused_and_check_names_it(method):
    with pytest.raises(cs.errors.SingularInterfaceError, match=r"do not determine '[ab]\.y', '[ab]\.y'"):
        cs.simulate(ring(1.0), t_end=1, method=method(0), step=0.1)
    (finding,) = (f for f in cs.check(ring(1.0), method(0)).findings if f.code == "undetermined-loop")
    assert "more than one solution" in finding.text
    assert "undetermined-loop" not in cs.check(ring(0.5), method(0)).codes()
    assert cs.simulate(ring(0.5), t_end=1, method=method(0), step=0.1)["a.y"][-1] == 0.0


def test_an_equation_that_says_nothing_any_more_stops_an_implicit_run():
    clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    system = cs.System({"clock": clock, "a": lag()})
    system.equations({"z": "a.u"}, lambda z, t: z - t if t < 0.45 else 0.0 * z, of="clock.t")
    with pytest.raises(cs.errors.SingularInterfaceError, match="'z' does not react") as stopped:
        cs.simulate(system, t_end=1, method=cs.Implicit(0), step=0.1)
    assert stopped.value.time == pytest.approx(0.4)


def test_steps_without_corrections_are_looked_at_once():
    """At rest: one subsystem step per step, and in the first step the Jacobian with one more subsystem step."""
    system = cs.System({"a": lag(0.0), "b": lag(0.0)})
    system.connect("a.x", "b.u")
    system.connect("b.x", "a.u")
    run = cs.simulate(system, t_end=1, method=cs.Implicit(1), step=0.1, compiled=False)
    assert run.stats.iterations == 0
    assert run.stats.calls == {"a": 11, "b": 11}
    assert run.stats.jacobians == {"a": 1, "b": 1}
