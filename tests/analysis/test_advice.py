"""`check` says in plain words what will work, what will not, and what to use instead."""

import numpy as np
import pytest
from examples.two_mass.model import force_displacement, lu, split
from tests.analysis.hidden import counted, hide

import cosolve as cs
from cosolve.accuracy import disturbed
from cosolve.analysis.advice import Advice, TrialProgress, examine
from cosolve.method.named import proposals


def test_stable_and_unstable_sides_of_the_limit():
    """Explicit F/F, degree 1: the limit is 0.03354 (docs/validation/schweizer-lu.md)."""
    system = split("F/F")
    good, bad = (cs.check(system, cs.Jacobi(1), H) for H in (0.97 * 0.03354, 1.03 * 0.03354))
    assert good.ok
    assert "stable" in good.codes()
    assert not bad.ok
    assert {"unstable", "critical-step", "alternatives"} <= bad.codes()
    assert "0.0335" in str(bad)
    assert "SemiImplicit(1)" in str(bad)


def test_families_are_compared_without_a_method():
    advice = cs.check(split("F/F", lu(1e5, 100.0)), step=5e-3)
    assert advice.ok
    stable = [f.text for f in advice.findings if f.code == "stable"]
    assert any("SemiImplicit(1)" in text for text in stable)
    assert not any("Jacobi" in text for text in stable)


def test_missing_capability_names_subsystem_and_way_out():
    class Forward(cs.Subsystem):
        inputs, outputs = ["u"], ["y"]

        def start(self, t0):
            return 0.0

        def advance(self, t0, t1, u):
            return 0.0

    system = cs.System({"tool": Forward()})
    system.set("tool.u", 0.0)
    advice = cs.check(system, cs.SemiImplicit(1), 0.1)
    assert not advice.ok
    assert "'tool' (Forward)" in str(advice)
    assert "Jacobi" in str(advice)


def test_incomplete_system_is_reported_not_raised():
    advice = cs.check(cs.System({"a": cs.Static(lambda t, u: u, inputs=["u"], outputs=["y"])}), cs.Jacobi(), 0.1)
    assert advice.codes() == {"incomplete-system"}
    assert "a.u" in str(advice)


def test_shared_state_is_found_out():
    """save() hands out the live array, which advance() changes in place: the step does not repeat."""

    class Careless(cs.Subsystem):
        inputs, outputs = ["u"], ["x"]

        def start(self, t0):
            self.x = np.array([1.0])
            return self.x.copy()

        def advance(self, t0, t1, u):
            self.x *= 0.5
            return self.x.copy()

        def save(self):
            return self.x

        def restore(self, state):
            self.x = state

    system = cs.System({"careless": Careless()})
    system.set("careless.u", 0.0)
    advice = cs.check(system, cs.SemiImplicit(1), 0.1)
    assert not advice.ok
    assert "failed-step" in advice.codes()
    assert "'careless': the state that save returned has changed since" in str(advice)


def test_state_that_is_only_half_restored_is_found_out():
    """A counter beside the state goes on counting, and the step does not repeat."""

    class Forgetful(cs.Subsystem):
        inputs, outputs = ["u"], ["x"]

        def start(self, t0):
            self.x, self.count = 1.0, 0
            return self.x

        def advance(self, t0, t1, u):
            self.count += 1
            self.x += 0.1 * self.count
            return self.x

        def save(self):
            return self.x

        def restore(self, state):
            self.x = state

    system = cs.System({"forgetful": Forgetful()})
    system.set("forgetful.u", 0.0)
    advice = cs.check(system, cs.SemiImplicit(1), 0.1)
    assert not advice.ok
    assert "inexact-rollback" in advice.codes()
    assert "'forgetful'" in str(advice)


def test_growing_model_is_not_blamed_on_the_coupling():
    """x' = y, y' = x grows like exp(t) by itself."""
    grow = lambda: cs.Linear([[0.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])  # noqa: E731
    system = cs.System({"a": grow(), "b": grow()})
    system.connect("a.x", "b.u")
    system.connect("b.x", "a.u")
    advice = cs.check(system, cs.SemiImplicit(1), 0.01)
    assert advice.ok
    assert "growing-system" in advice.codes()


def test_growth_on_the_way_is_not_blamed_on_the_coupling():
    """x' = 1000, y' = x y from x = 0: the longer the step, the faster y grows on it, with any coupling."""
    drive = cs.Ode(lambda t, x, u: [1000.0], lambda t, x, u: x, x0=[0.0], inputs=["y"], outputs=["x"])
    grown = cs.Ode(lambda t, y, u: [u[0] * y[0]], lambda t, y, u: y, x0=[1.0], inputs=["x"], outputs=["y"])
    system = cs.System({"drive": drive, "grown": grown})
    system.connect("drive.x", "grown.x")
    system.connect("grown.y", "drive.y")
    advice = cs.check(system, cs.SemiImplicit(1), 0.01)
    assert advice.ok
    assert advice.radius == pytest.approx(np.exp(1000 * 0.01**2 / 2), rel=1e-3)
    assert "growing-system" in advice.codes()


def test_what_the_coupling_makes_grow_is_blamed_on_it():
    """The same test on a nonlinear system that is at rest: x' = y - sin(x), fed back with a delay of one step."""
    one = lambda: cs.Ode(  # noqa: E731
        lambda t, x, u: [-30.0 * u[0] - np.sin(x[0])], lambda t, x, u: x, x0=[0.0], inputs=["u"], outputs=["x"]
    )
    two = cs.Static(lambda t, u: u, inputs=["u"], outputs=["x"])
    system = cs.System({"one": one(), "two": two})
    system.connect("one.x", "two.u")
    system.connect("two.x", "one.u")
    advice = cs.check(system, cs.Jacobi(0), 0.1)
    assert not advice.ok
    assert "growing-system" not in advice.codes()


@pytest.mark.parametrize("shown", [True, False])
def test_growth_by_step_is_blamed_on_the_coupling(shown):
    """An added mass against a lighter body, held torques: -10/9 per step, however short steps are."""

    def mass(t, H, x, u, new, y):  # the force of a mass of 1, by backward differences of its speed
        new[0] = u[0]
        y[0] = -(u[0] - x[0]) / H

    def body(t, H, x, u, new, y):
        new[0] = x[0] + H * u[0] / 0.9
        y[0] = new[0]

    class Hidden(cs.OneStep):
        get_state = set_state = None

    kind = cs.OneStep if shown else Hidden
    system = cs.System(
        {
            "mass": kind(mass, x0=[1.0], y0=[0.0], inputs=["v"], outputs=["f"]),
            "body": kind(body, x0=[1.0], y0=[1.0], inputs=["f"], outputs=["v"]),
        }
    )
    system.connect("mass.f", "body.f")
    system.connect("body.v", "mass.v")
    advice = cs.check(system, cs.GaussSeidel(0, order=["mass", "body"]), 1e-3)
    assert not advice.ok
    assert advice.radius == pytest.approx(10 / 9, rel=1e-3)
    assert "growing-system" not in advice.codes()
    assert ("at-every-step" in advice.codes()) == shown


def test_a_limit_within_a_range_takes_no_steps_far_beyond_it():
    """A step of a million seconds, to see the slowest rate, would last for ever with fixed internal steps."""
    lengths = []

    class Tank(cs.Linear):
        native = None

        def advance(self, t0, t1, u):
            lengths.append(t1 - t0)
            return super().advance(t0, t1, u)

    tank = lambda: Tank([[-1.0]], [[-0.5]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])  # noqa: E731
    system = cs.System({"a": tank(), "b": tank()})
    system.connect("a.x", "b.u")
    system.connect("b.x", "a.u")
    assert cs.analysis.critical_step(system, cs.Jacobi(0), step_range=(1e-3, 1e-2)) == np.inf
    assert max(lengths) <= 1.0  # the fastest rate is 1.5 per second


def test_dynamic_model_around_static_ones_is_recognised():
    dynamic = cs.Ode(lambda t, x, u: [x[1], u[0]], lambda t, x, u: x, x0=[1, 0], inputs=["f"], outputs=["x", "v"])
    film = cs.Static(lambda t, u: -u[0] - 0.1 * u[1], inputs=["x", "v"], outputs=["f"])
    system = cs.System({"rotor": dynamic, "film": film})
    system.connect("rotor.x", "film.x")
    system.connect("rotor.v", "film.v")
    system.connect("film.f", "rotor.f")
    assert "dynamic-static" in cs.check(system, cs.Jacobi(1)).codes()
    assert "dynamic-static" not in cs.check(system, cs.DynamicStatic("C")).codes()
    assert "dynamic-static" not in cs.check(split("F/F"), cs.Jacobi(1)).codes()


@pytest.mark.parametrize("method", [cs.Jacobi(1), None])
def test_nothing_is_analysed_without_a_step(method):
    assert cs.check(force_displacement(), method).radius is None


def test_a_method_that_grows_at_every_step_is_not_recommended_against_itself():
    """Parts whose loop determines only the mean of a signal: a parabola through the past doubles it in every step."""

    class Mean(cs.Subsystem):
        inputs, outputs = ["u"], ["y"]
        x = np.zeros(1)

        def start(self, t0):
            return np.zeros(1)

        def advance(self, t0, t1, u):
            mean = (u(t0) + 4.0 * u(0.5 * (t0 + t1)) + u(t1)) / 6.0
            return u(t1) - 100.0 * mean

        def output(self, t, u):
            return -99.0 * u

        def save(self):
            return None

        def restore(self, state):
            pass

        def get_state(self):
            return np.zeros(0)

        def set_state(self, state):
            pass

    system = cs.System({"part": Mean()})
    system.connect("part.y", "part.u")
    method = cs.Implicit(degree=2)
    advice = cs.check(system, method, step=0.01)
    assert "at-every-step" in advice.codes()
    assert advice.radius == pytest.approx((8 + np.sqrt(84)) / 10, rel=1e-6)  # 5 r^2 + 8 r = 1
    assert "Implicit instead" not in str(advice)
    (said,) = (finding.text for finding in advice.findings if finding.code == "alternatives")
    labels = [one.partition(" (")[0] for one in said.split(": ", 1)[1].split(", ")]
    assert labels
    for label in labels:
        kind, degree = label.rstrip(")").split("(")
        order = {"degree": int(degree)} if degree.isdigit() else {"degree": 1, "signal": degree}
        if "BDF" in degree:
            order = {"degree": int(degree[-1]) - 1, "signal": "bdf"}
        assert not cs.analysis.amplification_matrix(system, getattr(cs, kind)(**order), 0.01).unstable


def _chain(parts, kind=cs.Linear):
    """Masses in a row, each a subsystem, springs and dampers between them as laws."""
    A, B, C = [[0, 1], [-50, -0.5]], [[0, 0], [1, 1]], np.eye(2)
    system = cs.System({f"m{i}": kind(A, B, C, x0=[0, 0], inputs=["l", "r"], outputs=["x", "v"]) for i in range(parts)})
    for i in range(parts - 1):
        of = [f"m{i}.x", f"m{i}.v", f"m{i + 1}.x", f"m{i + 1}.v"]
        system.law({f"m{i}.r": 1, f"m{i + 1}.l": -1}, lambda a, b, c, d: 20 * (c - a) + 0.1 * (d - b), of=of)
    system.set("m0.l", 0.0)
    system.set(f"m{parts - 1}.r", 0.0)
    return system


def test_the_critical_step_of_many_parts_takes_few_steps(monkeypatch):
    """Columns share steps, steps that differ little are not all looked at, and each map is decomposed once."""
    decomposed, eigvals = [], np.linalg.eigvals
    monkeypatch.setattr("numpy.linalg.eigvals", lambda matrix: decomposed.append(len(matrix)) or eigvals(matrix))
    parts, plan = 16, _chain(16).plan()
    limit, calls = counted(lambda kind: cs.analysis.critical_step(_chain(parts, kind), cs.Jacobi(degree=1)))
    maps = calls / parts / (2 * parts + 2 * plan.n_z)
    assert len(decomposed) < 110  # 573 where every 2 % were looked at, and bisected
    assert maps < 25  # in units of a map that is found column by column
    whole = [
        cs.analysis.amplification_matrix(_chain(parts), cs.Jacobi(degree=1), limit * factor)
        for factor in (1 - 2e-8, 1 + 2e-8)
    ]
    assert [one.unstable for one in whole] == [False, True]


def test_the_critical_step_at_a_state_is_that_of_the_linearised_system():
    """A spring inside a subsystem hardens: where it rests, at x = 2, its stiffness is 12."""

    def limit(spring):
        motion = lambda t, s, u: [s[1], u[0] - spring(s[0]) - 0.5 * s[1]]  # noqa: E731
        body = cs.Ode(motion, lambda t, s, u: s, x0=[2, 0], inputs=["f"], outputs=["x", "v"])
        system = cs.System({"body": body, "other": cs.Static(lambda t, u: u, inputs=["x"], outputs=["y"])})
        system.connect("body.x", "other.x")
        system.law("body.f", lambda x: 2.0 - x, of="body.x")
        return cs.analysis.critical_step(system, cs.Jacobi(degree=1))

    assert limit(lambda x: x**3 - 8) == pytest.approx(limit(lambda x: 12 * (x - 2)), rel=1e-3)


def _stiff_pair(gain, hidden=False):
    """Two lags of 0.1 ms in a ring: it dies out for gains below 1."""
    one = cs.Linear([[-1e4]], [[1e4]], [[1]], x0=[1], inputs=["u"], outputs=["y"])
    two = cs.Linear([[-1e4]], [[gain * 1e4]], [[1]], x0=[0], inputs=["u"], outputs=["y"])
    system = cs.System({"one": one, "two": two})
    system.connect("one.y", "two.u")
    system.connect("two.y", "one.u")
    return hide(system) if hidden else system


@pytest.mark.parametrize(("step", "hidden"), [(0.3, False), (0.046, False), (2e-3, True)])
def test_a_stiff_coupling_is_not_called_a_growing_model(step, hidden):
    """The steps are up to 3000 times beyond the limit, so that steps a hundred times shorter grow as well."""
    method = cs.Jacobi(degree=1)
    advice = cs.check(_stiff_pair(-1.0, hidden), method, step)
    assert "unstable" in advice.codes()
    assert not {"growing-system", "at-every-step"} & advice.codes()
    if not hidden:
        limit = cs.analysis.critical_step(_stiff_pair(-1.0), method)
        assert f"becomes unstable at H = {limit:.4g}" in str(advice)


@pytest.mark.parametrize(("step", "hidden"), [(0.3, False), (1e-3, False), (4e-5, False), (1e-4, True)])
def test_a_stiff_model_that_grows_is_called_one(step, hidden):
    """With a gain of 2 the pair grows by exp(4142 t), whatever couples it."""
    assert "growing-system" in cs.check(_stiff_pair(2.0, hidden), cs.Jacobi(degree=1), step).codes()


def test_what_trials_do_not_tell_is_said_in_one_sentence(monkeypatch):
    """Also where a long run would tell no more: what is lost within some steps of 96 is lost in the same of 384."""
    lengths = []

    def attempt(trials, H, length):
        lengths.append(length)
        return disturbed.Estimate("cannot tell", np.nan, np.inf, 0, disturbed._LOST)

    monkeypatch.setattr(disturbed, "_attempt", attempt)
    advice = cs.check(_stiff_pair(-1.0, hidden=True), cs.Jacobi(degree=1), step=1.0)
    (said,) = (finding.text for finding in advice.findings if finding.code == "not-analysed")
    assert said.startswith("0 macro steps of trials do not tell whether it is stable at H = 1: a push is lost in noise")
    assert said.endswith("check a shorter step, 0.1 say")
    assert "stable" not in advice.codes()
    assert lengths == [96]


def test_advice_and_totals_are_shown_in_words():
    system = split("F/F")
    advice = cs.check(system, cs.Jacobi(1), 0.03)
    assert repr(advice) == str(advice)
    assert repr(advice).startswith("[ok] ")
    stats = cs.simulate(system, method=cs.Jacobi(1), step=0.03, t_end=0.3).stats
    assert repr(stats) == str(stats)
    assert repr(stats).startswith("10 macro steps")


def test_every_other_method_is_tried_once():
    labels = [method.label for method in proposals("check")]
    assert len(set(labels)) == len(labels)
    assert {method(degree).label for method in (cs.SemiImplicit, cs.Jacobi) for degree in (0, 1, 2)} < set(labels)


def test_the_search_for_other_methods_is_counted_and_told():
    """Each is tried for as many macro steps as one verdict takes, the method in question not again."""
    tried = {}

    def told(fraction, about):
        method, _, step = about.partition(", macro step ")
        tried[method] = max(tried.get(method, 0), int(step))
        assert 0.0 <= fraction < 1.0

    advice = Advice()
    examine(advice, hide(split("F/F")), cs.Jacobi(1), 0.05, told)
    assert not advice.ok
    assert "Jacobi(1) instead" not in tried
    others = {method: steps for method, steps in tried.items() if method.endswith(" instead")}
    assert len(others) >= 5
    assert max(others.values()) <= disturbed.LEAST == 3 * 96 + 7 * 16


def test_what_was_found_stays_where_a_check_is_ended():
    def ended(fraction, about):
        if "instead" in about:
            raise KeyboardInterrupt

    advice = Advice()
    with pytest.raises(KeyboardInterrupt):
        examine(advice, hide(split("F/F")), cs.Jacobi(1), 0.05, ended)
    assert {"unstable", "critical-step"} <= advice.codes()


def test_trials_move_the_bar():
    """By their share of the seconds that they may take, not only from method to method."""
    seen, now = [], iter(range(100))
    budget = TrialProgress(lambda fraction, about: seen.append(fraction), 8.0, lambda: next(now)).next("Jacobi(1)")
    for _ in range(4):
        budget.take()
    assert seen == [0.125, 0.25, 0.375, 0.5]


@pytest.mark.parametrize(
    ("steps", "codes", "missing"),
    [
        (100, {"not-analysed", "trials-ended"}, {"stable", "unstable", "critical-step", "alternatives"}),
        (1000, {"unstable", "trials-ended"}, {"stable", "critical-step", "alternatives"}),
        (10**6, {"unstable", "critical-step", "alternatives"}, {"trials-ended"}),
    ],
    ids=["during the first trial", "while the limit is searched", "never"],
)
def test_a_check_that_takes_too_long_says_what_it_found(monkeypatch, steps, codes, missing):
    """A clock that goes on by one second with every macro step of trials, and that many seconds for them."""
    seconds = iter(range(10**7))
    monkeypatch.setattr(TrialProgress.__init__, "__defaults__", (float("inf"), lambda: next(seconds)))
    advice = cs.check(hide(split("F/F")), cs.Jacobi(1), 0.05, seconds=steps)
    assert codes <= advice.codes()
    assert not missing & advice.codes()
    assert "; check a shorter step" not in str(advice)
    ended = f"not all was tried: the {steps} s for trials are over; seconds={2 * steps} (--seconds {2 * steps}"
    assert (ended in str(advice)) == ("trials-ended" in codes)
    if "not-analysed" in codes:
        assert "99 macro steps of trials do not tell whether it is stable at H = 0.05: the 100 s" in str(advice)


def test_families_that_were_not_tried_are_not_called_unstable(monkeypatch):
    seconds = iter(range(10**7))
    monkeypatch.setattr(TrialProgress.__init__, "__defaults__", (float("inf"), lambda: next(seconds)))
    advice = cs.check(hide(split("F/F")), step=0.01, seconds=100)
    assert advice.ok
    assert advice.codes() & {"stable", "unstable", "trials-ended"} == {"trials-ended"}


@pytest.mark.parametrize("wrong", [0, -1.0, "long", float("nan")])
def test_seconds_of_trials_are_a_positive_number(wrong):
    with pytest.raises(cs.errors.SetupError, match="seconds must be a positive number"):
        cs.check(split("F/F"), cs.Jacobi(1), 0.05, seconds=wrong)
