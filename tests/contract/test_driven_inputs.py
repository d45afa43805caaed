"""Inputs driven by functions of time and tables: exact inside macro steps, whatever the method and its degree."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import cosolve as cs
from cosolve.interface.driven_inputs import Function, Piece, cubic, summary
from cosolve.signal.polynomial import horner

TIMES, VALUES = [0.0, 0.33, 0.5, 1.0], [0.0, 1.0, 0.2, 0.0]
INTEGRAL = float(np.trapezoid(VALUES, TIMES))  # 0.33/2 + 0.17 * 0.6 + 0.5 * 0.1 = 0.317


def integrator(**options):
    return cs.Ode(lambda t, x, u: u, lambda t, x, u: x, x0=[0.0], inputs=["u"], outputs=["x"], **options)


def driven(subsystem, by, name="u"):
    system = cs.System({"a": subsystem})
    system.set(f"a.{name}", by)
    return system


METHODS = [
    *(cs.Jacobi(0), cs.Jacobi(1), cs.Jacobi(1, outputs="exchanged"), cs.GaussSeidel(2), cs.SemiImplicit(1)),
    *(cs.SemiImplicit(1, jacobian="difference"), cs.Implicit(1), cs.LeaderFollower(1, leader="a")),
]


def linear():
    return cs.Linear(0, 1, 1, x0=[0.0], inputs=["u"], outputs=["x"])


@pytest.mark.parametrize(
    ("method", "kind"),
    [*((m, integrator) for m in METHODS), *((m, linear) for m in METHODS if not isinstance(m, cs.LeaderFollower))],
    ids=lambda value: getattr(value, "__name__", None) or repr(value),
)
def test_the_integral_of_a_table_is_exact(method, kind):
    """Knots at 0.33 lie inside a macro step; a Static of time would be extrapolated across them.

    A leader needs steps of its own, which a Linear does not have.
    """
    system = driven(kind(), cs.Table(TIMES, VALUES))
    run = cs.simulate(system, t_end=1.0, method=method, step=0.1)
    assert run["a.x"][-1] == pytest.approx(INTEGRAL, abs=1e-13)
    assert run["a.u"] == pytest.approx(np.interp(run.t, TIMES, VALUES), abs=1e-14)


def test_the_integral_under_step_control_and_dynamic_static():
    table = cs.Table(TIMES, VALUES)
    run = cs.simulate(driven(integrator(), table), t_end=1.0, method=cs.Jacobi(1), step=cs.Adaptive(rtol=1e-3))
    assert run["a.x"][-1] == pytest.approx(INTEGRAL, abs=1e-12)
    run = cs.simulate(driven(integrator(), table), t_end=1.0, method=cs.DynamicStatic(rtol=1e-8))
    assert run["a.x"][-1] == pytest.approx(INTEGRAL, abs=1e-6)
    assert {0.33, 0.5} <= set(run.t)  # its steps end at the knots


@pytest.mark.parametrize("H", [0.1, 0.5, 2.0])
def test_a_smooth_function_is_exact_at_any_step(H):
    decay = cs.Ode(
        lambda t, x, u: -x + u, lambda t, x, u: x, x0=[0.0], inputs=["u"], outputs=["x"], rtol=1e-11, atol=1e-13
    )
    run = cs.simulate(driven(decay, np.sin), t_end=4.0, method=cs.Jacobi(0), step=H)
    exact = 0.5 * (np.exp(-run.t) - np.cos(run.t) + np.sin(run.t))
    assert np.abs(run["a.x"] - exact).max() < 1e-10
    assert (run["a.u"] == np.sin(run.t)).all()


def test_coupled_systems_keep_their_order():
    """x' = -x + y + cos(3t), y' = -2y + x with both driven and coupled inputs: order 2 with Jacobi(1) as without."""

    def error(H):
        a = cs.Ode(lambda t, x, u: -x + u[0] + u[1], lambda t, x, u: x, x0=[1.0], inputs=["y", "d"], outputs=["x"])
        b = cs.Linear(-2, 1, 1, x0=[0.0], inputs=["x"], outputs=["y"])
        system = cs.System({"a": a, "b": b})
        system.connect("a.x", "b.x")
        system.connect("b.y", "a.y")
        system.set("a.d", lambda t: np.cos(3 * t))
        run = cs.simulate(system, t_end=2.0, method=cs.SemiImplicit(1), step=H)
        one = cs.Ode(
            *(lambda t, x, u: np.array([-x[0] + x[1] + np.cos(3 * t), -2 * x[1] + x[0]]), lambda t, x, u: x),
            x0=[1.0, 0.0],
            inputs=[],
            outputs=[("x", 2)],
            rtol=1e-12,
            atol=1e-13,
        )
        whole = cs.simulate(cs.System({"one": one}), t_end=2.0, method=cs.Jacobi(0), step=H)
        return np.abs(run["a.x"] - whole["one.x[0]"]).max()

    errors = [error(H) for H in (0.1, 0.05, 0.025)]
    assert np.log2(errors[0] / errors[1]) > 1.8
    assert np.log2(errors[1] / errors[2]) > 1.8


def test_a_jump_inside_a_step_and_at_a_macro_point():
    """1 until 0.25 (inside a step), 3 until 0.5 (a macro point), 0 after it."""
    table = cs.Table([0.0, 0.25, 0.5], [1.0, 3.0, 0.0], kind="step")
    run = cs.simulate(driven(integrator(), table), t_end=1.0, method=cs.Jacobi(1), step=0.1)
    assert run["a.x"][-1] == pytest.approx(0.25 + 0.75, abs=1e-13)
    at = {round(t, 9): u for t, u in zip(run.t, run["a.u"], strict=True)}
    assert (at[0.0], at[0.2], at[0.3], at[0.5], at[0.6]) == (1.0, 1.0, 3.0, 3.0, 0.0)  # a step ends before the jump


def test_a_function_with_a_jump_is_cut_there():
    run = cs.simulate(
        driven(integrator(), lambda t: 1.0 if t < 0.337 else -2.0), t_end=1.0, method=cs.Jacobi(0), step=0.25
    )
    assert run["a.x"][-1] == pytest.approx(0.337 - 2 * 0.663, abs=1e-9)


def test_own_subsystems_see_the_exact_function():
    class Sampler(cs.Subsystem):
        inputs, outputs = ["u"], ["y"]

        def start(self, t0):
            self.seen = []
            return 0.0

        def advance(self, t0, t1, u):
            self.seen += [(t, u(t)[0]) for t in np.linspace(t0, t1, 4)]
            assert u.end[0] == pytest.approx(u(t1)[0], abs=1e-12)
            return self.seen[-1][1]

    sampler = Sampler()
    run = cs.simulate(driven(sampler, lambda t: np.exp(np.sin(7 * t))), t_end=1.0, method=cs.Jacobi(2), step=0.2)
    assert all(value == np.exp(np.sin(7 * t)) for t, value in sampler.seen)
    assert run["a.y"][-1] == np.exp(np.sin(7.0))


def test_outputs_that_react_at_once_have_the_value_of_their_time():
    gain = cs.Static(lambda t, u: 2 * u, inputs=["u"], outputs=["y"])
    run = cs.simulate(driven(gain, cs.Table([0, 0.33, 1], [0, 1, 0])), t_end=1.0, method=cs.Jacobi(0), step=0.25)
    assert run["a.y"] == pytest.approx(2 * np.interp(run.t, [0, 0.33, 1], [0, 1, 0]), abs=1e-13)


def test_a_vector_by_one_function_and_its_elements_by_several():
    two = cs.Ode(lambda t, x, u: u, lambda t, x, u: x, x0=[0.0, 0.0], inputs=[("u", 2)], outputs=[("x", 2)])
    run = cs.simulate(driven(two, lambda t: [t, 1.0]), t_end=1.0, method=cs.Jacobi(0), step=0.5)
    assert run["a.x"][-1] == pytest.approx([0.5, 1.0], abs=1e-12)
    system = cs.System({"a": two})
    system.set("a.u[0]", cs.Table([0, 1], [0, 2]))
    system.set("a.u[1]", 3.0)
    run = cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.5)
    assert run["a.x"][-1] == pytest.approx([1.0, 3.0], abs=1e-12)
    assert run["a.u"].tolist() == [[0.0, 3.0], [1.0, 3.0], [2.0, 3.0]]


@pytest.mark.parametrize("kind", ["step", "linear", "cubic"])
def test_inside_one_piece_a_table_is_one_polynomial(kind):
    """The same for all macro steps of a piece, whichever piece it is; another process gets it as it is."""
    table = cs.Table(TIMES, VALUES, kind=kind)
    for k, (low, high) in enumerate([*pairwise(TIMES), (1.0, 3.0)]):
        found = [table.local(low + a * (high - low), low + b * (high - low)) for a, b in ((0.1, 0.2), (0.6, 0.9))]
        for (since, powers), a in zip(found, (0.1, 0.6), strict=True):
            t = low + (a + 0.1) * (high - low)
            assert horner(powers, t - since)[0] == pytest.approx(table(t), rel=1e-14), k
            assert since == low or kind == "step" or low == 1.0
    assert table.local(0.2, 0.4) is None


def test_those_that_cannot_stop_inside_get_the_right_mean():
    """A solver that takes whole macro steps and looks at the polynomial only, as FMUs with fixed steps do."""

    class Uncoupled(cs.Subsystem):
        inputs, outputs = ["u"], ["x"]
        variable_step = False

        def start(self, t0):
            self.x, self.steps = 0.0, 0
            return self.x

        def advance(self, t0, t1, u):
            self.steps += 1
            self.x += u.H * float(sum(c[0] / (j + 1) for j, c in enumerate(u.coefficients)))
            return self.x

    whole = Uncoupled()
    system = driven(whole, cs.Table(TIMES, VALUES))
    run = cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=0.1)
    assert whole.steps == 10
    assert run["a.x"][-1] == pytest.approx(INTEGRAL, abs=1e-13)
    assert "driven-inside" in cs.check(system, cs.Jacobi(1)).codes()
    assert "driven-inside" not in cs.check(driven(integrator(), cs.Table(TIMES, VALUES)), cs.Jacobi(1)).codes()


def test_the_smooth_stand_in_keeps_ends_mean_and_middle():
    pieces = Function(lambda t: 1.0 if t > 0.3 else 0.0, "a.u", 1).pieces(0.0, 1.0)
    c = summary(pieces).ravel()
    mean = (c / np.arange(1, 6)).sum()
    assert (c[0], c.sum()) == (0.0, pytest.approx(1.0))
    assert mean == pytest.approx(0.7, abs=1e-8)
    assert np.polynomial.polynomial.polyval(0.5, c) == pytest.approx(mean, abs=1e-12)


def test_a_stepper_workers_and_a_resumed_run_have_the_same_bits(tmp_path):
    def build():
        return driven(integrator(), lambda t: np.sin(5 * t))

    options = {"t_end": 1.0, "method": cs.SemiImplicit(1), "step": 0.1}
    whole = cs.simulate(build(), **options)
    with cs.Stepper(build(), **options) as stepper:
        stepper.run_until(0.5)
        assert stepper["a.u"] == np.sin(2.5)
        stepper.save_file(tmp_path / "half.state")
        with pytest.raises(cs.errors.SetupError, match="follows a function of time"):
            stepper.set("a.u", 1.0)
    rest = cs.simulate(build(), resume=tmp_path / "half.state", **options)
    assert rest["a.x"].tolist() == whole["a.x"][5:].tolist()
    assert cs.simulate(build(), workers=2, **options)["a.x"].tolist() == whole["a.x"].tolist()


def test_it_can_be_recorded_alone_and_saved(tmp_path):
    run = cs.simulate(
        driven(integrator(), np.cos), t_end=1.0, method=cs.Jacobi(0), step=0.5, record=["a.u"], save=tmp_path / "a.h5"
    )
    assert run.names == ["a.u"]
    assert cs.load_result(tmp_path / "a.h5")["a.u"].tolist() == np.cos([0.0, 0.5, 1.0]).tolist()


def test_an_isolated_subsystem_gets_the_same_signal():
    here = cs.simulate(driven(integrator(), cs.Table(TIMES, VALUES)), t_end=1.0, method=cs.Jacobi(1), step=0.2)
    apart = cs.remote.Isolated(integrator, timeout=60.0)
    there = cs.simulate(driven(apart, cs.Table(TIMES, VALUES)), t_end=1.0, method=cs.Jacobi(1), step=0.2)
    assert there["a.x"].tolist() == here["a.x"].tolist()


def test_compiled_engine_and_blocks_say_why_they_do_not_run_it():
    def build(k):
        a = cs.Linear(-k, [[1, 1]], 1, x0=[0.0], inputs=["u", "d"], outputs=["y"])
        system = cs.System({"a": a})
        system.connect("a.y", "a.u")
        system.set("a.d", np.sin)
        return system

    with pytest.raises(cs.errors.SetupError, match=r"'a\.d' follows a function of time"):
        cs.simulate(build(2.0), t_end=1.0, method=cs.Jacobi(1), step=0.1, compiled=True)
    swept = cs.sweep(build, {"k": [2.0, 3.0]}, methods=cs.Jacobi(1), steps=0.1, t_end=1.0, record="a.y", workers=1)
    one = cs.simulate(build(3.0), t_end=1.0, method=cs.Jacobi(1), step=0.1)
    assert swept["a.y"][1] == one["a.y"][-1]
    assert "driven by a function of time" in swept.how


def test_check_sees_through_driven_inputs():
    """The stability map is that of the system without them."""

    def build(drive):
        a = cs.Linear(-1, [[-3, 1]], 1, x0=[0.0], inputs=["u", "d"], outputs=["y"])
        system = cs.System({"a": a})
        system.connect("a.y", "a.u")
        system.set("a.d", drive)
        return system

    radii = [cs.check(build(d), cs.Jacobi(1), step=0.1).radius for d in (0.0, np.cos)]
    assert radii[0] == pytest.approx(radii[1], rel=1e-9)


# -- tables and files ------------------------------------------------------------------------------------------------


def test_tables_of_each_kind():
    cube = np.linspace(0, 1, 6)
    assert cs.Table(cube, cube**3, kind="cubic")(0.33) == pytest.approx(0.33**3, abs=1e-14)
    assert cs.Table([0, 1, 1, 2], [0, 1, 5, 5])(1.0) == 5.0  # a time twice is a jump
    assert cs.Table([1, 2], [3, 4])(-7.0) == 3.0
    assert cs.Table([1.0], [3.0])(2.0) == 3.0


BAD = {
    "no numbers": (lambda: cs.Table(["a"], [1]), "lists of numbers"),
    "lengths": (lambda: cs.Table([0, 1], [1]), "do not fit"),
    "not increasing": (lambda: cs.Table([0, 2, 1], [1, 1, 1]), "2 is followed by 1"),
    "twice": (lambda: cs.Table([0, 1, 1], [1, 1, 1], kind="step"), "only kind='linear'"),
    "nan": (lambda: cs.Table([0, 1], [1, np.nan]), "finite"),
    "kind": (lambda: cs.Table([0, 1], [1, 1], kind="spline"), "'linear', 'step' or 'cubic'"),
    "beyond": (lambda: cs.Table([0, 1], [1, 1], beyond="zero"), "'hold' or 'error'"),
    "missing file": (lambda: cs.Table.read("no.csv", "u"), "there is no file 'no.csv'"),
    "two arguments": (
        lambda: driven(integrator(), lambda t, u: t),
        r"takes \(t, u\), but it is called with 1 argument",
    ),
    "width": (lambda: driven(integrator(), cs.Table([0, 1], [[1, 2], [3, 4]])), "2 per time"),
    "not covered": (
        lambda: cs.simulate(
            driven(integrator(), cs.Table([0, 1], [1, 1], beyond="error")), t_end=2.0, method=cs.Jacobi(0), step=0.5
        ),
        "from t = 0 to 1, but the run goes from 0 to 2",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_and_functions_are_refused(case):
    call, words = BAD[case]
    with pytest.raises(cs.errors.SetupError, match=words):
        call()


def test_a_function_that_fails_says_where():
    system = driven(integrator(), lambda t: 1 / (0.5 - t) if t < 0.6 else float("nan"))
    with pytest.raises(cs.errors.SimulationError, match=r"drives 'a\.u'"):
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.5)


def test_columns_of_a_file(tmp_path):
    file = tmp_path / "drive.csv"
    file.write_text("time;a.u;other\n0;0;1\n\n1;2;1\n")
    assert cs.Table.read(file, "a.u")(0.25) == 0.5
    assert cs.Table.read(file, ["a.u", "other"])(0.5).tolist() == [1.0, 1.0]
    with pytest.raises(cs.errors.SetupError, match="did you mean 'other'"):
        cs.Table.read(file, "othr")
    with pytest.raises(cs.errors.SetupError, match="say which one"):
        cs.Table.read(file)
    system = cs.System({"a": integrator()})
    system.set_from_csv(file, {"a.u": "other"})
    system.set_from_csv(file, {"a.u": "a.u"})
    assert cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.5)["a.x"][-1] == pytest.approx(1.0)
    with pytest.raises(cs.errors.SetupError, match="other"):
        system.set_from_csv(file)
    file.write_text("t,u\n0,1\n1,x\n")
    with pytest.raises(cs.errors.SetupError, match="line 3"):
        cs.Table.read(file, "u")
    file.write_text("0,1\n1,2\n")
    with pytest.raises(cs.errors.SetupError, match="name the columns"):
        cs.Table.read(file)


def test_a_part_of_a_piece_is_the_same_polynomial():
    """`t^2` and `3 - t` from 1 to 3, over the part from 1.5 to 2 and over all of it."""
    s = np.polynomial.Polynomial([1.0, 2.0])  # t = 1 + 2 s
    piece = Piece(1.0, 3.0, np.column_stack([(s**2).coef, [*(3.0 - s).coef, 0.0]]))
    for a, b in ((1.5, 2.0), (1.0, 3.0), (2.0, 3.0)):
        part = piece.between(a, b)
        for x in (0.0, 0.3, 1.0):
            t = a + (b - a) * x
            assert [np.polyval(column[::-1], x) for column in part.T] == pytest.approx([t**2, 3.0 - t])


@pytest.mark.parametrize("turns", [0, 5, 5000, 500_000])
def test_a_function_that_passes_zero_late_in_a_run_is_cut_no_further_than_times_are_known(turns):
    """Beside a zero its values are small, and what rounding of a late time does to them is large in comparison.

    Such parts were cut into millions of pieces. `x' = -x + sin(t)` from whole turns on, with a jump in the second step.
    """
    t0, calls = 2 * np.pi * turns, []

    def wave(t):
        calls.append(t)
        assert len(calls) < 5000
        return np.sin(t) + (1.0 if t > t0 + 0.0123 else 0.0)

    system = cs.System({"tank": cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[0.2], inputs=["q"], outputs=["h"])})
    system.set("tank.q", wave)
    result = cs.simulate(system, t_start=t0, t_end=t0 + 1.0, method=cs.Jacobi(0), step=0.01, compiled=False)
    s = 1.0 - 0.0123
    exact = 0.7 * np.exp(-1.0) + (np.sin(1.0) - np.cos(1.0)) / 2 + 1.0 - np.exp(-s)
    assert result["tank.h"][-1] == pytest.approx(exact, abs=1e-9 + 64 * np.spacing(t0))


@pytest.mark.parametrize("degrees", [(1, 1), (0, 3, 2), (4, 0, 0, 5)], ids=str)
def test_one_polynomial_for_pieces_of_unlike_length_and_degree(degrees):
    """Of degree 4 and of degree 3: the ends of all pieces, and their mean; of two inputs at once."""
    random = np.random.default_rng(len(degrees))
    ends = 2.0 + np.cumsum([0.0, *random.uniform(0.1, 1.0, len(degrees))])
    pieces = [
        Piece(a, b, random.normal(size=(degree + 1, 2)))
        for a, b, degree in zip(ends[:-1], ends[1:], degrees, strict=True)
    ]
    s = np.linspace(0.0, 1.0, 20001)
    means = [np.trapezoid([horner(piece.coefficients, each) for each in s], s, axis=0) for piece in pieces]
    mean = np.average(means, axis=0, weights=np.diff(ends))
    for one, rows in ((summary(pieces), 5), (cubic(pieces), 3)):
        assert one.shape == (rows, 2)
        np.testing.assert_allclose(one[0], pieces[0].coefficients[0], rtol=1e-12)
        np.testing.assert_allclose(horner(one, 1.0), horner(pieces[-1].coefficients, 1.0), rtol=1e-11)
        np.testing.assert_allclose((one / np.arange(1, rows + 1)[:, None]).sum(axis=0), mean, rtol=1e-6)


def test_one_piece_is_left_as_it_is_up_to_degree_three_and_met_in_four_points_beyond():
    random = np.random.default_rng(3)
    for degree in (0, 1, 3):
        low = Piece(0.0, 0.5, random.normal(size=(degree + 1, 2)))
        assert cubic([low]) is low.coefficients
    high = Piece(0.0, 0.5, random.normal(size=(7, 2)))
    found = cubic([high])
    assert found.shape == (4, 2)
    for s in (0.0, 0.25, 0.75, 1.0):  # Chebyshev points of the second kind
        np.testing.assert_allclose(horner(found, s), horner(high.coefficients, s), rtol=1e-11)
    assert abs(horner(found, 0.5) - horner(high.coefficients, 0.5)).min() > 1e-3


def test_kinks_cost_no_call_where_nothing_is_differenced():
    """Jacobians by differences of the others; a part that reads no coupling variable has none."""

    def calls(drive):
        system = driven(cs.Ode(lambda t, x, u: u - x, lambda t, x, u: x, x0=[1.0], inputs=["u"], outputs=["x"]), drive)
        tank = lambda h: cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[h], inputs=["q"], outputs=["h"])  # noqa: E731
        both = cs.System({**system.subsystems, "one": tank(1.0), "two": tank(0.0)})
        both.set(f"{next(iter(system.subsystems))}.u", drive)
        both.connect("one.h", "two.q")
        both.connect("two.h", "one.q")
        method = cs.SemiImplicit(1, jacobian="difference")
        return cs.simulate(both, t_end=1.0, step=0.1, method=method, compiled=False).stats.calls

    smooth, kinked = (
        calls(cs.Table([-1.0, 3.0], [0.0, 1.0])),
        calls(cs.Table(np.linspace(-1, 2, 62), np.arange(62) % 5.0)),
    )
    assert kinked == smooth
    assert smooth["one"] == 30
