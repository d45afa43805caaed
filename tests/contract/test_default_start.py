"""The order of every method with the start it has by default, and what becomes of those that refuse short steps."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from examples.two_mass.model import lu, split
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import cosolve as cs
from cosolve.signal import Polynomial

METHODS = {
    "Jacobi": (cs.Jacobi, 5),
    "GaussSeidel": (cs.GaussSeidel, 5),
    "SemiImplicit": (cs.SemiImplicit, 4),
    "Implicit": (lambda degree: cs.Implicit(degree, tol=1e-12), 4),
}
CASES = [(name, degree) for name, (_, count) in METHODS.items() for degree in range(count)]
OSCILLATOR = lu()


def build(name: str, degree: int) -> cs.Method:
    return METHODS[name][0](degree)


def two_mass_error(method: cs.Method, count: int, kind: str = "F/F", **options) -> float:
    """The largest error of positions and velocities, each relative to its largest value."""
    run = cs.simulate(split(kind), t_end=0.5, method=method, step=0.5 / count, **options)
    exact = OSCILLATOR.exact(run.t)
    return max(
        np.abs(run[name] - exact[:, k]).max() / np.abs(exact[:, k]).max()
        for k, name in enumerate(("one.x", "one.v", "two.x", "two.v"))
    )


@pytest.mark.covers("TR-14")
@pytest.mark.sample(6)
@pytest.mark.parametrize(("name", "degree"), CASES)
def test_the_order_on_the_two_mass_pair(name: str, degree: int) -> None:
    """Degree + 1 within 0.25, without a note about the past."""
    kind = "F/D" if name == "GaussSeidel" else "F/F"  # the law of F/F reads both sides, which is Jacobi
    errors = [two_mass_error(build(name, degree), count, kind) for count in (256, 512)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(degree + 1, abs=0.25)


@pytest.mark.covers("TR-14")
@pytest.mark.parametrize(("degree", "largest"), [(2, 2.4e-4), (3, 2.6e-5)])
def test_a_graded_start_has_the_error_of_a_known_past(degree: int, largest: float) -> None:
    """Error at N = 256, orders between N = 128 and 512 within 0.15; 2.84e-3 with rising degree, order 2."""
    method = cs.Jacobi(degree)
    errors = [two_mass_error(method, count) for count in (128, 256, 512)]
    assert errors[1] <= largest
    assert np.log2(errors[0] / errors[2]) / 2 == pytest.approx(degree + 1, abs=0.15)
    assert two_mass_error(method, 256, startup=cs.RisingDegree()) == pytest.approx(2.84e-3, rel=0.01)


# -- a nonlinear pair: hardening springs to the ground and between the masses, a damper between them ---

T_END = 3.0


def force(x1, v1, x2, v2):
    return 2 * (x2 - x1) + 0.2 * (v2 - v1) + (x2 - x1) ** 3


def nonlinear() -> cs.System:
    """The force belongs to the second subsystem, so that Gauss-Seidel and feed-through have something to do."""
    one = cs.Ode(
        lambda t, s, u: [s[1], u[0] - s[0] - 0.5 * s[0] ** 3],
        lambda t, s, u: s,
        x0=[1.0, 0.0],
        inputs=["f"],
        outputs=["x", "v"],
        integrator="ode5",
        internal_step=0.1,
    )
    two = cs.Ode(
        lambda t, s, u: [s[1], 0.5 * (-force(*u, *s) - s[0] - 0.5 * s[0] ** 3)],
        lambda t, s, u: force(*u, *s),
        x0=[0.0, 0.5],
        inputs=["x", "v"],
        outputs=["f"],
        integrator="ode5",
        internal_step=0.1,
    )
    system = cs.System({"one": one, "two": two})
    for source, target in (("one.x", "two.x"), ("one.v", "two.v"), ("two.f", "one.f")):
        system.connect(source, target)
    return system


@cache
def reference():
    def rhs(t, s):
        f = force(*s)
        return [s[1], f - s[0] - 0.5 * s[0] ** 3, s[3], 0.5 * (-f - s[2] - 0.5 * s[2] ** 3)]

    return solve_ivp(rhs, (0, T_END), [1, 0, 0, 0.5], "DOP853", rtol=1e-13, atol=1e-13, dense_output=True).sol


def nonlinear_error(method: cs.Method, count: int, **options) -> float:
    run = cs.simulate(nonlinear(), t_end=T_END, method=method, step=T_END / count, **options)
    return float(np.abs(run["one.x"] - reference()(run.t)[0]).max())


@pytest.mark.sample(4)
@pytest.mark.parametrize(("name", "degree"), CASES)
def test_the_order_on_a_nonlinear_pair(name: str, degree: int) -> None:
    """Degree + 1 within 0.25; degree 4 is not in its asymptotic range with fewer steps."""
    counts = (192, 384) if degree == 4 else (96, 192)
    errors = [nonlinear_error(build(name, degree), count) for count in counts]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(degree + 1, abs=0.25)


# -- what stays as it was ---


def test_low_degrees_begin_as_before() -> None:
    """Nothing is lost there, so nothing is done: the bits are those of the rising degree."""
    for method in (cs.Jacobi(1), cs.GaussSeidel(1), cs.SemiImplicit(2), cs.Implicit(2)):
        runs = [
            cs.simulate(nonlinear(), t_end=0.5, method=method, step=0.05, startup=s) for s in (None, cs.RisingDegree())
        ]
        assert np.array_equal(runs[0].column("y"), runs[1].column("y"))


def test_the_result_holds_macro_points_only() -> None:
    """The pieces are counted as calls and leave no rows."""
    run = cs.simulate(nonlinear(), t_end=0.5, method=cs.Jacobi(2), step=0.05)
    assert run.t == pytest.approx(np.linspace(0, 0.5, 11))
    assert run.stats.steps == 10
    assert run.stats.calls == {"one": 16, "two": 16}  # H/64, H/64, H/32, ..., H/2 instead of H
    assert run.stats.note("startup-order") == ""


@pytest.mark.parametrize("method", [cs.Jacobi(2), cs.Jacobi(4), cs.SemiImplicit(3)], ids=repr)
def test_machine_code_and_a_saved_run_go_on_with_the_same_bits(method: cs.Method, tmp_path) -> None:
    """Saved after the first macro step, when pieces are all the past there is, and after the second."""
    run = {"method": method, "step": 0.5 / 256, "t_end": 0.5}
    whole = cs.simulate(split("F/F"), **run, compiled=False)
    for count in (1, 2, 5):
        with cs.Stepper(split("F/F"), **run) as stepper:
            for _ in range(count):
                stepper.step()
            stepper.save_file(tmp_path / "state")
        rest = cs.simulate(split("F/F"), **run, compiled=False, resume=tmp_path / "state")
        assert np.array_equal(rest.column("y"), whole.column("y")[count:])
    fast = cs.simulate(split("D/D"), **run, compiled=True)
    assert fast.stats.compiled_steps > 200
    assert np.array_equal(fast.column("y"), cs.simulate(split("D/D"), **run, compiled=False).column("y"))


# -- after events ---


class Kicked(cs.Linear):
    """`x' = u + c - x`, where `c` jumps at 1/3 and at 2/3: events for the others to see."""

    TIMES, LEVELS = (1 / 3, 2 / 3), (0.0, 3.0, -2.0)

    def __init__(self) -> None:
        # the level is a second state that stays, so that a subsystem step is exact
        super().__init__([[-1, 1], [0, 0]], [[1], [0]], [[1, 0]], x0=[1, 0], inputs=["u"], outputs=["x"])

    def start(self, t0):
        self.passed = 0
        return super().start(t0)

    def advance_to_event(self, t0, t1, u):
        t = self.TIMES[self.passed] if self.passed < 2 else np.inf
        if not t0 < t <= t1:
            return t1, self.advance(t0, t1, u), False
        # the same inputs over a shorter step: sum of c_j (r s)^j
        r = (t - t0) / (t1 - t0)
        shorter = u.coefficients * r ** np.arange(len(u.coefficients))[:, np.newaxis]
        return t, self.advance(t0, t, Polynomial(t0, t - t0, shorter)), True

    def handle_event(self, t, u):
        if self.passed < 2 and abs(t - self.TIMES[self.passed]) < 1e-9:
            self.passed += 1
            self.set_state(np.array([self.get_state()[0], self.LEVELS[self.passed]]))
        return self.get_state()[:1]

    def save(self):
        return super().save(), self.passed

    def restore(self, state):
        inner, self.passed = state
        super().restore(inner)


@pytest.mark.parametrize("degree", [2, 3])
def test_the_order_survives_events(degree: int) -> None:
    """The history begins anew at each of the two jumps, and the pieces with it; order 2 at most without them."""
    x, A = np.array([1.0, 0.0]), np.array([[-1.0, 1.0], [3.0, -2.0]])
    for level in Kicked.LEVELS:  # x' = A x + (c, 0) over a third each
        rest = np.linalg.solve(A, [-level, 0.0])
        x = rest + expm(A / 3) @ (x - rest)
    errors = []
    for count in (32, 64):
        other = cs.Linear([[-2]], [[3]], [[1]], x0=[0], inputs=["u"], outputs=["x"])
        system = cs.System({"kicked": Kicked(), "other": other})
        system.connect("kicked.x", "other.u")
        system.connect("other.x", "kicked.u")
        run = cs.simulate(system, t_end=1.0, method=cs.Jacobi(degree), step=1 / count, stop_at_events=True)
        assert run.stats.events == 2
        errors.append(np.abs([run["kicked.x"][-1] - x[0], run["other.x"][-1] - x[1]]).sum())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(degree + 1, abs=0.25)


# -- subsystems that cannot take short steps ---


class Refusing(cs.Subsystem):
    """A tank that takes steps of 0.1 only, and has no way back."""

    inputs, outputs = ("q",), ("h",)

    def start(self, t0):
        self.h = 1.0
        return self.h

    def advance(self, t0, t1, u):
        if t1 - t0 < 0.0999:
            raise ValueError(f"no steps of {t1 - t0:g}")
        self.h += (t1 - t0) * (u(t0 + 0.05)[0] - self.h)
        return self.h


class Uncut(Refusing):
    """One that says so before."""

    variable_step = False


class OwnSteps(Refusing):
    """One with steps of 0.025 inside, which has not moved where a macro step is shorter."""

    def start(self, t0):
        self.t = t0
        return super().start(t0)

    def advance(self, t0, t1, u):
        while self.t + 0.025 < t1 + 1e-9:
            self.h += 0.025 * (u(self.t)[0] - self.h)
            self.t += 0.025
        return self.h


def tanks(kind: type[cs.Subsystem]) -> cs.System:
    other = cs.Linear([[-1]], [[1]], [[1]], x0=[0], inputs=["q"], outputs=["h"])
    system = cs.System({"free": other, "odd": kind()})
    system.connect("free.h", "odd.q")
    system.connect("odd.h", "free.q")
    return system


@pytest.mark.parametrize("kind", [Refusing, Uncut])
def test_who_takes_no_short_steps_begins_with_rising_degree_and_it_is_said(kind) -> None:
    """Without rollback too: the run starts anew."""
    run = {"t_end": 2.0, "method": cs.Jacobi(3), "step": 0.1}
    found, rising = cs.simulate(tanks(kind), **run), cs.simulate(tanks(kind), **run, startup=cs.RisingDegree())
    assert np.array_equal(found.column("y"), rising.column("y"))
    for word in ("'odd'", "one piece", "order to 2"):
        assert word in found.stats.note("startup-order")
    assert found.stats.note("startup-order") in str(found.stats)
    assert rising.stats.note("startup-order") == ""


def test_steps_inside_that_are_longer_than_the_pieces_are_noticed() -> None:
    """A staircase is not extrapolated: values stay between those of the start, as with rising degree."""
    run = {"t_end": 2.0, "method": cs.Jacobi(3), "step": 0.1}
    found, rising = cs.simulate(tanks(OwnSteps), **run), cs.simulate(tanks(OwnSteps), **run, startup=cs.RisingDegree())
    assert "does not follow the short pieces" in found.stats.note("startup-order")
    assert np.abs(found["odd.h"] - rising["odd.h"]).max() < 0.02
    assert found["odd.h"].min() > 0.4


def test_constraints_begin_with_rising_degree() -> None:
    """Multipliers have no value at the start that short steps could be extrapolated from."""
    from tests.run.stepper.models import rigid

    method = cs.SemiImplicit(3, constraints=cs.Baumgarte(allow_unstable=True), final_update=False)
    found = cs.simulate(rigid(), t_end=0.04, method=method, step=0.01)
    assert "constraints" in found.stats.note("startup-order")


def test_a_time_that_cannot_resolve_short_pieces_takes_fewer() -> None:
    """At t = 1e9 steps of 1e-4 have about a thousand numbers inside."""
    tank = cs.Linear([[-1]], [[1]], [[1]], x0=[1], inputs=["q"], outputs=["h"])
    system = cs.System({"one": tank})
    system.connect("one.h", "one.q")
    run = cs.simulate(system, t_start=1e9, t_end=1e9 + 1e-3, method=cs.Jacobi(4), step=1e-4)
    assert run.stats.calls["one"] == 10


def test_error_controlled_steps_grade_themselves() -> None:
    """The start makes no difference to them."""
    run = {"t_end": 1.0, "method": cs.Jacobi(3), "step": cs.Adaptive(rtol=1e-4)}
    runs = [cs.simulate(nonlinear(), **run, startup=start) for start in (None, cs.RisingDegree())]
    assert np.array_equal(runs[0].column("y"), runs[1].column("y"))


@pytest.mark.parametrize("ratio", [1, 3, 2.0, True, "64"])
def test_a_ratio_is_a_power_of_two(ratio) -> None:
    with pytest.raises(cs.errors.SetupError, match=r"GradedStart: ratio must be a power of two .* not "):
        cs.GradedStart(ratio)
