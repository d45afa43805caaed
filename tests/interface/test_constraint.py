"""Constraints in the engine: declared once at three levels, solved under every treatment, bad ones refused."""

import numpy as np
import pytest

import cosolve as cs

OF = ["one.x", "one.v", "one.a", "two.x", "two.v", "two.a"]
TREATMENTS = [cs.Baumgarte(), cs.WeightedMultipliers(), cs.StabilisedIndex2()]


def mass(m: float = 1.0, c: float = 9.0, x0: float = 1.0, v0: float = 0.0) -> cs.Subsystem:
    A = [[0, 1], [-c / m, -0.2 / m]]
    return cs.Linear(
        A,
        [[0, 1], [1 / m, 0]],
        [[1, 0], [0, 1], A[1]],
        [[0, 0], [0, 0], [1 / m, 0]],
        x0=[x0, v0],
        inputs=["f", "shift"],
        outputs=["x", "v", "a"],
    )


def levels(x1, v1, a1, x2, v2, a2):
    return x2 - x1, v2 - v1, a2 - a1


def joined(function=levels, *, correction: bool = True, x2: float = 1.0, v2: float = 0.0, **options) -> cs.System:
    system = cs.System({"one": mass(), "two": mass(2.0, 40.0, x2, v2)})
    if correction:
        options["correction"] = {"mu": {"one.shift": 1, "two.shift": -1}}
    else:
        system.set("one.shift", 0.0)
        system.set("two.shift", 0.0)
    system.constraint({"lam": {"one.f": 1, "two.f": -1}}, function, of=OF, **options)
    return system


@pytest.mark.sample(2)
@pytest.mark.parametrize("treatment", TREATMENTS, ids=lambda t: type(t).__name__)
@pytest.mark.parametrize("method", [cs.SemiImplicit, cs.Implicit], ids=lambda m: m.__name__)
def test_every_treatment_follows_the_rigid_body(treatment, method) -> None:
    """One body of mass 3 on both springs, in closed form; the error falls as the order says."""
    errors = []
    for H in (4e-3, 2e-3):
        result = cs.simulate(joined(), t_end=1.0, step=H, method=method(0, constraints=treatment))
        w = np.sqrt(49 / 3 - (0.4 / 6) ** 2)
        exact = np.exp(-0.4 / 6 * result.t) * (np.cos(w * result.t) + 0.4 / 6 / w * np.sin(w * result.t))
        errors.append(np.abs(result["one.x"] - exact).max())
    assert errors[1] < 5e-3
    assert errors[0] / errors[1] > 1.8  # order 1 for index 1 with degree 0, order 2 for the others


def test_one_system_object_serves_all_treatments() -> None:
    """The constraint belongs to the system, its treatment to the method."""
    system = joined()
    ends = [
        cs.simulate(system, t_end=0.5, step=1e-3, method=cs.SemiImplicit(0, constraints=t))["one.x"][-1]
        for t in TREATMENTS
    ]
    np.testing.assert_allclose(ends, ends[0], rtol=2e-3)


def test_multipliers_start_where_the_accelerations_agree() -> None:
    """lambda_0 = m1 m2 / (m1 + m2) (c1 / m1 - c2 / m2) x0 (Eq. 91), unless the user gives a value."""
    method = cs.SemiImplicit(0)
    found = cs.simulate(joined(), t_end=0.01, step=0.01, method=method)
    assert found["lam"][0] == pytest.approx(2 / 3 * (9 - 20), rel=1e-9)
    assert found["mu"][0] == 0
    given = cs.simulate(joined(initial={"lam": 1.5}), t_end=0.01, step=0.01, method=method)
    assert given["lam"][0] == 1.5


def test_treatments_without_corrections_hold_mu_at_zero() -> None:
    result = cs.simulate(joined(), t_end=0.1, step=1e-2, method=cs.SemiImplicit(1))
    assert np.abs(result["mu"]).max() < 1e-14
    without = cs.simulate(joined(correction=False), t_end=0.1, step=1e-2, method=cs.SemiImplicit(1))
    np.testing.assert_allclose(without["one.x"], result["one.x"], rtol=1e-12)


def test_a_given_jacobian_is_used() -> None:
    calls = []

    def jacobian(*outputs):
        calls.append(outputs)
        return [[[-1, 0, 0, 1, 0, 0]], [[0, -1, 0, 0, 1, 0]], [[0, 0, -1, 0, 0, 1]]]

    for treatment in TREATMENTS:
        method = cs.SemiImplicit(0, constraints=treatment)
        differenced = cs.simulate(joined(), t_end=0.2, step=1e-2, method=method)
        calls.clear()
        exact = cs.simulate(joined(jacobian=jacobian), t_end=0.2, step=1e-2, method=method)
        assert calls
        np.testing.assert_allclose(exact["one.x"], differenced["one.x"], rtol=1e-9)
    wrong = joined(jacobian=lambda *outputs: np.ones((3, 2, 6)))
    with pytest.raises(cs.errors.SetupError, match=r"Jacobian of the constraint 'lam' has shape \(3, 2, 6\); expected"):
        cs.simulate(wrong, t_end=0.1, step=1e-2, method=cs.SemiImplicit(0))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"x2": 1.1}, "violate the constraint for one.f, two.f.* at the position level: .*0.1.* instead of 0"),
        ({"v2": -0.3}, "at the velocity level"),
    ],
)
def test_inconsistent_starts_are_refused(options, words) -> None:
    with pytest.raises(cs.errors.SetupError, match=words):
        cs.simulate(joined(**options), t_end=0.1, step=1e-2, method=cs.SemiImplicit(0))


def test_missing_levels_and_corrections_are_named() -> None:
    two_levels = joined(lambda *y: levels(*y)[:2])
    with pytest.raises(cs.errors.SetupError, match="asks for the acceleration level of the constraint 'lam'"):
        cs.simulate(two_levels, t_end=0.1, step=1e-2, method=cs.SemiImplicit(0))
    cs.simulate(two_levels, t_end=0.1, step=1e-2, method=cs.SemiImplicit(0, constraints=cs.Baumgarte(2e-2)))
    method = cs.SemiImplicit(0, constraints=cs.StabilisedIndex2())
    with pytest.raises(cs.errors.SetupError, match="'lam' has no correction inputs, which StabilisedIndex2 needs"):
        cs.simulate(joined(correction=False), t_end=0.1, step=1e-2, method=method)


@pytest.mark.parametrize("function", [lambda *y: 0.0, lambda *y: (0.0,), lambda *y: ([0, 0], [0, 0])])
def test_functions_that_return_the_wrong_thing(function) -> None:
    with pytest.raises(cs.errors.SetupError, match=r"it must return \(g, g'\) or \(g, g', g''\), each 1 number"):
        cs.simulate(joined(function), t_end=0.1, step=1e-2, method=cs.SemiImplicit(0))


def test_explicit_methods_refuse_constraints() -> None:
    with pytest.raises(cs.errors.SetupError, match="explicit and cannot solve the constraint"):
        cs.simulate(joined(), t_end=0.1, step=1e-2, method=cs.Jacobi(0))


def test_unstable_combinations_are_refused_and_marginal_ones_warned_about() -> None:
    """Index 2 with degree 1 grows by 1.18 per step (beta = 2 H) however small the step (docs/theory.md)."""
    unstable = cs.Baumgarte(beta=2e-2, gamma=0)
    with pytest.raises(
        cs.errors.SetupError, match=r"multiplied by 1.178 in every step .* use degree 0, or Baumgarte\(\)"
    ):
        cs.simulate(joined(), t_end=0.1, step=1e-2, method=cs.SemiImplicit(1, constraints=unstable))
    marginal = cs.StabilisedIndex2()
    with pytest.warns(cs.errors.StabilityWarning, match="use degree 0, or a smaller relaxation"):
        cs.simulate(joined(), t_end=0.1, step=1e-2, method=cs.SemiImplicit(1, constraints=marginal))
    allowed = cs.Baumgarte(beta=2e-2, gamma=0, allow_unstable=True)
    # told after 64 steps, as a mean over them that includes the start
    with pytest.warns(cs.errors.StabilityWarning, match=r"about times 1\.1\d in every macro step"):
        run = cs.simulate(joined(), t_end=1.5, step=1e-2, method=cs.SemiImplicit(1, constraints=allowed))
    assert np.abs(run["one.x"]).max() > 10  # and it does grow


def test_the_default_is_stable_for_degrees_0_to_3() -> None:
    for degree in range(4):
        assert cs.Baumgarte().limit_radius(degree) < 0.8
        result = cs.simulate(joined(), t_end=2.0, step=1e-2, method=cs.SemiImplicit(degree))
        assert np.abs(result["one.x"] - result["two.x"]).max() < 1e-2


@pytest.mark.parametrize(
    "make",
    [
        lambda: cs.Baumgarte(beta=-1),
        lambda: cs.WeightedMultipliers(a=np.nan),
        lambda: cs.StabilisedIndex2(relaxation=0),
        lambda: cs.StabilisedIndex2(relaxed="some"),
        lambda: cs.SemiImplicit(0, constraints="baumgarte"),
        lambda: cs.Implicit(0, constraints=2e-3),
    ],
)
def test_bad_treatments_are_refused(make) -> None:
    with pytest.raises(cs.errors.SetupError, match="must"):
        make()


def test_bad_declarations_are_refused() -> None:
    system = cs.System({"one": mass(), "two": mass(2.0, 40.0)})
    with pytest.raises(cs.errors.SetupError, match="no unknowns given"):
        system.constraint({}, levels, of=OF)
    with pytest.raises(cs.errors.SetupError, match="did you mean 'one'"):
        system.constraint({"lam": "oen.f"}, levels, of=OF)
    corrections = {"mu": "one.shift", "nu": "two.shift"}
    with pytest.raises(cs.errors.SetupError, match="1 multipliers need 1 corrections, not 2"):
        system.constraint({"lam": {"one.f": 1, "two.f": -1}}, levels, of=OF, correction=corrections)


def test_constraints_from_a_file(tmp_path) -> None:
    """The same run, described in TOML."""
    (tmp_path / "rigid_rod.py").write_text(
        "from tests.interface.test_constraint import levels, mass\n\n\ndef stiff():\n    return mass(2.0, 40.0)\n"
    )
    (tmp_path / "rod.toml").write_text(
        """
        [subsystems]
        one = {factory = "rigid_rod:mass"}
        two = {factory = "rigid_rod:stiff"}
        [[constraints]]
        multipliers = {lam = {"one.f" = 1, "two.f" = -1}}
        correction = {mu = {"one.shift" = 1, "two.shift" = -1}}
        levels = "rigid_rod:levels"
        of = ["one.x", "one.v", "one.a", "two.x", "two.v", "two.a"]
        [simulation]
        t_end = 0.2
        step = 0.01
        method = {name = "semi-implicit", degree = 0, constraints = {name = "stabilised-index2", relaxation = 0.9}}
        [output]
        record = ["one.x", "lam"]
        """
    )
    from cosolve.io import load_system

    read = load_system(tmp_path / "rod.toml").run()
    method = cs.SemiImplicit(0, constraints=cs.StabilisedIndex2(0.9))
    direct = cs.simulate(joined(), t_end=0.2, step=1e-2, method=method)
    np.testing.assert_array_equal(read["lam"], direct["lam"])
    assert read.names == ["one.x", "lam"]
