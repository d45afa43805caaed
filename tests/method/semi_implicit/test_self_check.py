"""A correction that corrects nothing: rollback and Jacobians are tried out, and who is wrong is named."""

import numba
import numpy as np
import pytest

import cosolve as cs
from cosolve.engine import corrections
from cosolve.engine.python import executor
from cosolve.engine.python.self_check import examine

WRONG = ["shared", "nothing", "half", "hidden", "counter", "random", "order"]


class Mass(cs.Subsystem):
    """A mass on a spring, by its exact solution under a held force; `wrong` spoils its rollback or its Jacobian."""

    inputs, outputs = ("f",), ("x",)

    def __init__(self, x0, wrong="", factor=1.0):
        self.x0, self.wrong, self.factor = x0, wrong, factor

    def start(self, t0):
        self.x, self.extra, self.count = np.array([self.x0, 0.0]), 0.0, 0
        self.random = np.random.default_rng(1)
        return [self.x0]

    def advance(self, t0, t1, u):
        H, f = t1 - t0, u.end[0]
        c, s = np.cos(3.0 * H), np.sin(3.0 * H)
        x, v = self.x[0] - f / 9.0, self.x[1]
        self.x = self.x if self.wrong == "shared" else np.empty(2)
        self.x[:] = x * c + v / 3.0 * s + f / 9.0, v * c - 3.0 * x * s
        self.count += 1
        self.extra += 0.1 * self.x[0] if self.wrong == "hidden" else 0.0
        self.extra = 0.01 * (self.count % 3) if self.wrong == "counter" else self.extra
        self.extra = 0.01 * self.random.random() if self.wrong == "random" else self.extra
        return [self.x[0] + self.extra]

    def save(self):
        if self.wrong == "shared":
            return self.x
        return self.x[::-1].copy() if self.wrong == "order" else self.x.copy()

    def restore(self, state):
        if self.wrong == "half":
            self.x[0] = state[0]
        elif self.wrong == "shared":
            self.x = state
        elif self.wrong != "nothing":
            self.x = state.copy()


class Called(Mass):
    """The same for the compiled loop."""

    native = cs.Subsystem.by_callback


class Derived(Mass):
    """The same with its derivative, times `factor`."""

    def jacobian(self, t0, t1, u, weight):
        return [[self.factor * (1.0 - np.cos(3.0 * (t1 - t0))) / 9.0]]


@numba.njit
def spring(a, b):
    return 60.0 * (b - a)


def pair(one, two, law=spring, jacobian=None):
    system = cs.System({"one": one, "two": two})
    system.law({"one.f": 1, "two.f": -1}, law, of=["one.x", "two.x"], name="F", jacobian=jacobian)
    return system


def run(system, method=None, step=0.1, **options):
    return cs.simulate(system, t_end=2.0, method=method or cs.SemiImplicit(degree=0), step=step, **options)


NO_WAY_BACK = r"'two'( does not come back to its saved state: the step from t = 0|: the state that save returned has)"


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("mass", [Mass, Called])
def test_wrong_rollback_is_named(wrong, mass):
    with pytest.raises(cs.errors.SubsystemError, match=NO_WAY_BACK):
        run(pair(mass(0.0), mass(1.0, wrong)), compiled=mass is Called)


@pytest.mark.sample(3)
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_rollback_is_named_by_check(wrong):
    advice = cs.check(pair(Mass(0.0), Mass(1.0, wrong)), cs.SemiImplicit(degree=0), step=0.1)
    assert "'two'" in str(advice), advice
    assert not advice.ok


def test_wrong_rollback_is_named_although_the_iteration_converges():
    """Always back to the same state, which is not the one that was saved: only the first call began in that."""
    with pytest.raises(cs.errors.SubsystemError, match=NO_WAY_BACK):
        run(pair(Mass(0.0), Mass(1.0, "order")), cs.Implicit(degree=0))


@pytest.mark.parametrize("wrong", sorted(set(WRONG) - {"shared"}))
def test_wrong_rollback_is_named_where_attempts_are_rejected(wrong):
    system, control = pair(Mass(0.0), Mass(1.0, wrong)), cs.Adaptive(rtol=1e-2, first_step=0.1)
    with pytest.raises(cs.errors.SubsystemError, match=NO_WAY_BACK):
        cs.simulate(system, t_end=2.0, method=cs.Jacobi(degree=1), step=control)


class Eventful(Mass):
    """The same with events that never come."""

    def advance_to_event(self, t0, t1, u):
        return t1, self.advance(t0, t1, u), False

    def handle_event(self, t, u):
        return [self.x[0]]


@pytest.mark.parametrize("wrong", ["hidden", "order"])
@pytest.mark.parametrize("method", [cs.SemiImplicit(degree=0), cs.Implicit(degree=0, max_iterations=5)])
def test_wrong_rollback_is_named_where_steps_end_at_events(wrong, method):
    assert run(pair(Mass(0.0), Eventful(1.0)), method, stop_at_events=True).stats.events == 0
    with pytest.raises(cs.errors.SimulationError, match=NO_WAY_BACK):
        run(pair(Mass(0.0), Eventful(1.0, wrong)), method, stop_at_events=True)


@pytest.mark.parametrize("wrong", ["hidden", "order"])
def test_wrong_rollback_is_named_in_serial_sweeps(wrong):
    method = cs.Implicit(degree=0, sweep="gauss-seidel", corrector=cs.Aitken(), max_iterations=8)
    with pytest.raises(cs.errors.SimulationError, match=NO_WAY_BACK):
        run(pair(Mass(0.0), Mass(1.0, wrong)), method)


@pytest.mark.parametrize("factor", [-1.0, 0.0, 3.0])
def test_wrong_jacobian_is_named(factor):
    with pytest.warns(
        cs.errors.StabilityWarning, match=r"the jacobian of 'two' does not agree with differences"
    ) as caught:
        run(pair(Derived(0.0), Derived(1.0, factor=factor)))
    assert len(caught) == 1


@pytest.mark.parametrize("wrong", ["nothing", "half", "hidden"])
@pytest.mark.parametrize("corrector", [cs.Newton(), cs.Aitken()], ids=repr)
def test_wrong_rollback_is_named_in_iterations(wrong, corrector):
    with pytest.raises(cs.errors.SimulationError, match=r"'two' does not come back to its saved state"):
        run(pair(Mass(0.0), Mass(1.0, wrong)), cs.Implicit(degree=0, corrector=corrector))


class Later(Called):
    """Saves what it should until t = 1, and from then on somewhere else: at `elsewhere`, always the same."""

    elsewhere = np.zeros(2)

    def advance(self, t0, t1, u):
        self.t = t1
        return super().advance(t0, t1, u)

    def save(self):
        return self.elsewhere if getattr(self, "t", 0.0) > 0.95 else super().save()


@pytest.mark.parametrize(
    ("method", "compiled"),
    [
        (cs.SemiImplicit(degree=0), False),
        (cs.SemiImplicit(degree=0), True),
        (cs.Implicit(degree=0), False),
        (cs.Implicit(degree=0), True),
        (cs.Implicit(degree=0, corrector=cs.Aitken()), False),
    ],
)
def test_rollback_that_goes_wrong_later_is_named_in_that_step(method, compiled):
    """Every later subsystem step of the step begins at the same wrong state: only the first one tells."""
    with pytest.raises(cs.errors.SubsystemError, match=r"'two' does not come back .* the step from t = 1 ") as caught:
        run(pair(Mass(0.0) if not compiled else Called(0.0), Later(1.0)), method, compiled=compiled)
    right = run(pair(Mass(0.0), Mass(1.0)), method)
    rows = len(caught.value.result.t)
    assert rows == 11
    assert np.array_equal(caught.value.result["two.x"], right["two.x"][:rows])


def test_wrong_jacobian_is_named_where_an_iteration_fails():
    method = cs.Implicit(degree=0, max_iterations=5)
    with pytest.raises(
        cs.errors.ConvergenceError, match=r"did not converge .*; .* the jacobian of 'two' does not agree"
    ):
        run(pair(Derived(0.0), Derived(1.0, factor=-1.0)), method)


@pytest.mark.parametrize("factor", [-1.0, 0.0])
def test_wrong_jacobian_of_a_law_is_named(factor):
    def system():
        return pair(Mass(0.0), Mass(1.0), lambda a, b: 60.0 * (b - a), lambda a, b: [factor * -60.0, factor * 60.0])

    with pytest.warns(
        cs.errors.StabilityWarning, match=r"the jacobian of the law for one.f, two.f does not agree with differences"
    ):
        result = run(system())
    assert "the jacobian of the law for one.f, two.f" in result.stats.note("residual-left")
    assert f"ERROR: {result.stats.note('residual-left')}" in str(result)
    with pytest.raises(
        cs.errors.ConvergenceError, match=r"did not converge .* the jacobian of the law for one.f, two.f does not agree"
    ):
        run(system(), cs.Implicit(degree=0, max_iterations=5))


def test_healthy_subsystems_pay_few_subsystem_steps():
    """Two calls in each step for the correction, one for each difference, one more to test the rollback.

    And one in step 18, in case something is not saved that matters later only. These two are not counted.
    """
    masses = Mass(0.0), Mass(1.0)
    result = run(pair(*masses))
    assert result.stats.calls == {"one": 60, "two": 60}
    assert [mass.count for mass in masses] == [62, 62]
    assert run(pair(Derived(0.0), Derived(1.0))).stats.calls == {"one": 40, "two": 40}


class Loop(cs.Subsystem):
    """A tank that fills up to 1, with its input added to its level: what reads it feeds it back at once."""

    inputs, outputs = ("u",), ("y",)
    native = cs.Subsystem.by_callback

    def start(self, t0):
        self.level = 0.0
        return 0.0

    def advance(self, t0, t1, u):
        self.level += (t1 - t0) * (1.0 - self.level)
        return self.level + u.end[0]

    def save(self):
        return self.level

    def restore(self, state):
        self.level = state


def looped():
    """`u = 0.3 (level + u)^2 + 0.3` has solutions up to a level of 8/15 only."""
    system = cs.System({"tank": Loop()})
    system.law("tank.u", numba.njit(lambda y: 0.3 * y * y + 0.3), of="tank.y")
    return system


def test_a_loop_without_solution_ends_the_run():
    """In both engines, in the same step and with the same bits before."""
    rows = []
    for compiled in (False, True):
        with pytest.raises(
            cs.errors.ConvergenceError, match=r"finds no values that agree in the step .*'tank.u' miss"
        ) as ended:
            run(looped(), compiled=compiled)
        rows.append(ended.value.result)
    assert rows[0].stats.compiled_steps == 0 < rows[1].stats.compiled_steps
    assert rows[0]["tank.y"].tobytes() == rows[1]["tank.y"].tobytes()
    assert 0.0 < rows[0].t[-1] < 1.5
    with pytest.raises(cs.errors.ConvergenceError, match="did not converge"):
        run(looped(), cs.Implicit(degree=0))


def test_an_equation_without_solution_ends_the_run():
    system = cs.System({"one": Mass(0.0)})
    system.equations({"f": {"one.f": 1}}, lambda f, x: f * f + 8.0 * x - 0.5, of="one.x", initial={"f": 0.7})
    with pytest.raises(cs.errors.ConvergenceError, match=r"finds no values that agree in the step .*'f' misses its"):
        run(system)


def kinked():
    def stop(a, b):
        return 400.0 * max(b - a - 0.3, 0.0)

    return pair(Derived(0.0), Derived(1.0), stop)


def test_many_kinks_are_no_matter():
    """Three steps per period of the contact: the answer is that of the iteration (1.29); one correction has 0.46."""
    iterated = run(kinked(), cs.Implicit(degree=0))["one.x"]
    assert run(kinked())["one.x"] == pytest.approx(iterated, abs=0.02)
    assert abs(run(kinked(), cs.SemiImplicit(degree=0, repeat=False))["one.x"][-1] - iterated[-1]) > 0.5


def test_a_kink_is_nobodys_fault(monkeypatch):
    """One correction cannot meet a kink: looked at, found good, and the run is what it would be without."""
    examined = []

    def counted(*arguments):
        examined.append(examine(*arguments))
        return examined[-1]

    monkeypatch.setattr(executor, "examine", counted)
    looked = run(kinked(), step=0.02)
    assert examined == [""] * len(examined) != []
    assert len(examined) <= 4
    monkeypatch.setattr(corrections, "EXAMINATIONS", 0)
    unlooked = run(kinked(), step=0.02)
    assert np.array_equal(looked["one.x"], unlooked["one.x"])
    assert looked.stats.calls == unlooked.stats.calls


def test_a_variable_read_before_and_after_its_source_is_no_broken_rollback():
    """In a serial sweep the first reader has the guess and the last one the value: both advanced with what they had."""

    def part(inputs, outputs):
        n = len(inputs)
        return cs.Linear([[-1.0]], [[1.0] * n], [[1.0]] * len(outputs), x0=[1.0], inputs=inputs, outputs=outputs)

    system = cs.System({"before": part(["w"], ["a"]), "plant": part(["a", "b"], ["w"]), "after": part(["w"], ["b"])})
    system.connect("plant.w", "before.w", "after.w")
    system.connect("before.a", "plant.a")
    system.connect("after.b", "plant.b")
    order = ["before", "plant", "after"]
    method = cs.Implicit(1, order=order, corrector=cs.Relaxation(1.0), sweep="gauss-seidel")
    flat = cs.simulate(system, t_end=1.0, method=cs.Implicit(1, tol=1e-12), step=0.1)
    run = cs.simulate(system, t_end=1.0, method=method, step=0.1)
    assert run["plant.w"] == pytest.approx(flat["plant.w"], rel=1e-6)
