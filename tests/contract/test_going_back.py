"""Subsystems of users that lose something at a rollback: slowly, later, or in hidden states."""

import warnings

import numpy as np
import pytest

import cosolve as cs


class Rocket(cs.Subsystem):
    """A mass on a spring that burns its fuel; only its place is given out."""

    inputs, outputs = ["f"], ["x"]
    forgets, since = False, 0.0

    def start(self, t0):
        self.s, self.m, self.t = np.array([1.0, 0.0]), 1.0, t0
        return self.s[:1].copy()

    def advance(self, t0, t1, u):
        n, s = 5, self.s
        h = (t1 - t0) / n

        def slope(t, s):
            return np.array([s[1], (-40 * s[0] - 0.5 * s[1] + u(t)[0]) / self.m])

        for k in range(n):
            t = t0 + k * h
            k1 = slope(t, s)
            k2 = slope(t + h / 2, s + h / 2 * k1)
            k3 = slope(t + h / 2, s + h / 2 * k2)
            s = s + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(t + h, s + h * k3))
        self.s, self.t = s, t1
        self.m -= 0.1 * (t1 - t0) * (t1 > self.since)
        return s[:1].copy()

    def save(self):
        return self.s.copy() if self.forgets else (self.s.copy(), self.m)

    def restore(self, state):
        if self.forgets:
            self.s = state.copy()
        else:
            self.s, self.m = state[0].copy(), state[1]


class ForgetsFuel(Rocket):
    forgets = True


class ForgetsLater(Rocket):
    forgets, since = True, 0.5


class BurnsLater(Rocket):
    since = 0.5


class Warm(Rocket):
    """All of it comes back but for what a warm start leaves: the last digits of its solver."""

    calls = 0

    def advance(self, t0, t1, u):
        Warm.calls += 1
        return super().advance(t0, t1, u) * (1.0 + 1e-13 * (Warm.calls % 7))


class Engages(Rocket):
    """It gains mass at 0.4 s, and never does after it was set back once; every step repeats its bits."""

    lost = False

    def start(self, t0):
        self.on = self.lost = False
        return super().start(t0)

    def advance(self, t0, t1, u):
        self.on = self.on or (t1 > 0.4 and not self.lost)
        self.m = 4.0 if self.on else 1.0
        return super().advance(t0, t1, u)

    def save(self):
        return self.s.copy(), self.on

    def restore(self, state):
        self.s, self.on, self.lost = state[0].copy(), state[1], True


class Still(Rocket):
    """It burns nothing, so that its own steps are no error."""

    since = 10.0


class Once(ForgetsFuel):
    """It cannot be started a second time."""

    def __init__(self):
        self.started = False

    def start(self, t0):
        if self.started:
            raise RuntimeError("the licence is used up")
        self.started = True
        return super().start(t0)


def joined(part, k=20.0):
    good = cs.Linear([[0, 1.0], [-60, -0.5]], [[0], [1.0]], [[1.0, 0]], x0=[0.8, 0.0], inputs=["f"], outputs=["x"])
    system = cs.System({"good": good, "bad": part})
    system.law({"good.f": 1, "bad.f": -1}, lambda a, b: k * (b - a), of=["good.x", "bad.x"])
    return system


def rollback(result):
    return [note for note in result.notes if note.kind == "rollback"]


METHODS = [cs.SemiImplicit(1), cs.SemiImplicit(2), cs.Implicit(1), cs.Implicit(1, corrector=cs.IqnIls())]


@pytest.mark.parametrize("method", [cs.SemiImplicit(1), cs.Implicit(1, tol=1e-5)], ids=["semi-implicit", "implicit"])
def test_a_state_that_is_forgotten_slowly_is_told(method):
    """One step changes so little that no tolerance sees it; the run is off by half."""
    with pytest.warns(cs.errors.AccuracyWarning, match="'bad' loses something when it is set back"):
        result = cs.simulate(joined(ForgetsFuel()), t_end=1.2, method=method, step=1e-3)
    (note,) = rollback(result)
    assert note.level == "error"
    right = cs.simulate(joined(Rocket()), t_end=1.2, method=method, step=1e-3)
    assert not rollback(right)
    assert np.abs(result["bad.x"] - right["bad.x"]).max() > 0.1


def test_its_bar_is_not_given():
    with pytest.warns(cs.errors.AccuracyWarning, match="loses something"):
        result = cs.simulate(joined(ForgetsFuel()), t_end=0.6, method=cs.SemiImplicit(1), step=2e-3, error_bar=True)
    assert "loses something" in result.error_bar.reason
    assert not result.error_bar.bar
    sound = cs.simulate(joined(Rocket()), t_end=0.6, method=cs.SemiImplicit(1), step=2e-3, error_bar=True)
    assert "loses something" not in (sound.error_bar.reason or "")


@pytest.mark.parametrize(
    ("method", "sure"), [(cs.SemiImplicit(1), False), (cs.Implicit(1), False), (cs.SemiImplicit(1), True)]
)
def test_a_bar_that_is_asked_for_after_the_run_looks_for_what_is_lost(method, sure):
    """The run itself had no reason to look: no bar was asked for, and every step repeats its bits."""
    system = joined(Engages())
    result = cs.simulate(system, t_end=0.6, method=method, step=5e-3)
    assert not rollback(result)
    found = cs.error_bar(system, result, sure=sure)
    assert "'bad' loses something when it is set back" in found.reason
    assert not found.bar
    sound = joined(Still())
    assert cs.error_bar(sound, cs.simulate(sound, t_end=0.6, method=method, step=5e-3), sure=sure).bar


def test_what_is_lost_is_found_where_macro_steps_end_at_events():
    def with_a_bell(part):
        system = joined(part)
        ball = cs.HybridOde(
            *(lambda t, x, u: [x[1], -9.81 + 0.0 * u[0]], lambda t, x, u: x[:1]),
            x0=[1.0, 0.0],
            inputs=["x"],
            outputs=["h"],
            indicators=lambda t, x, u: x[:1],
            jump=lambda t, x, u, c: [0.0, -0.8 * x[1]] if x[1] < 0 else x,
        )
        whole = cs.System({**system.subsystems, "ball": ball})
        whole.law({"good.f": 1, "bad.f": -1}, lambda a, b: 20.0 * (b - a), of=["good.x", "bad.x"])
        whole.connect("good.x", "ball.x")
        return whole

    run = {"t_end": 0.6, "method": cs.SemiImplicit(1), "step": 5e-3, "stop_at_events": True}
    with pytest.warns(cs.errors.AccuracyWarning, match="'bad' loses something when it is set back"):
        result = cs.simulate(with_a_bell(Engages()), error_bar=True, **run)
    assert result.stats.events == 1
    assert not result.error_bar.bar
    sound = cs.simulate(with_a_bell(Still()), error_bar=True, **run)
    assert not rollback(sound)
    assert sound.error_bar.bar
    system = with_a_bell(Engages())
    assert "ask for the bar with the run" in cs.error_bar(system, cs.simulate(system, **run)).reason


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.Jacobi(2), cs.GaussSeidel(1)], ids=lambda method: method.label)
@pytest.mark.parametrize("part", [ForgetsFuel, ForgetsLater])
def test_under_error_controlled_steps_it_ends_the_run_or_is_told(method, part):
    """Rollback that works in the first step is tried out later on too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = cs.simulate(joined(part()), t_end=2.0, method=method, step=cs.Adaptive(rtol=1e-5))
        except cs.errors.SubsystemError as error:
            assert "does not come back to its saved state" in str(error)  # noqa: PT017
            return
    assert rollback(result)[0].level == "error"


@pytest.mark.sample(9)
@pytest.mark.parametrize("part", [Rocket, BurnsLater, Warm])
@pytest.mark.parametrize("step", [2e-3, cs.Adaptive(rtol=1e-5)], ids=["fixed", "adaptive"])
@pytest.mark.parametrize("method", [cs.SemiImplicit(1), cs.Implicit(1), cs.Jacobi(2)], ids=lambda method: method.label)
def test_sound_ones_are_not_blamed(part, step, method):
    result = cs.simulate(joined(part()), t_end=0.5, method=method, step=step, error_bar=True)
    assert all(note.level == "info" for note in rollback(result))


def test_one_that_repeats_its_bits_is_not_advanced_again():
    """Proof costs nothing where it is neither needed nor asked for."""

    class Counted(Rocket):
        started = 0

        def start(self, t0):
            Counted.started += 1
            return super().start(t0)

    cs.simulate(joined(Counted()), t_end=0.2, method=cs.SemiImplicit(1), step=2e-3)
    assert Counted.started == 1


def test_one_that_cannot_start_again_is_not_proven_and_that_is_said():
    result = cs.simulate(joined(Once()), t_end=0.2, method=cs.SemiImplicit(1), step=1e-3)
    (note,) = rollback(result)
    assert note.level == "info"
    assert "could not be started once more (RuntimeError: the licence is used up)" in note.text


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.GaussSeidel(1, order=["tank", "ball"])], ids=lambda m: m.label)
def test_restore_that_does_nothing_is_found_before_the_first_event(method):
    class Tank(cs.Subsystem):
        inputs, outputs = ["v"], ["q"]

        def start(self, t0):
            self.x = 0.1
            return self.x

        def advance(self, t0, t1, u):
            n = 10
            for k in range(n):
                self.x += (t1 - t0) / n * (u(t0 + (k + 0.5) * (t1 - t0) / n)[0] - self.x)
            return self.x

        def save(self):
            return self.x

        def restore(self, state):
            pass

    ball = cs.HybridOde(
        *(lambda t, x, u: [x[1], -9.81 + u[0]], lambda t, x, u: x),
        x0=[1.0, 0.0],
        inputs=["push"],
        outputs=["h", "v"],
        indicators=lambda t, x, u: x[0],
        jump=lambda t, x, u, c: [0.0, -0.8 * x[1]] if c[0] < 0 else x,
    )
    system = cs.System({"tank": Tank(), "ball": ball})
    system.connect("ball.v", "tank.v")
    system.connect("tank.q", "ball.push")
    with pytest.raises(cs.errors.SubsystemError, match="'tank' does not come back to its saved state") as caught:
        cs.simulate(system, t_end=2.0, method=method, step=0.02, stop_at_events=True)
    assert caught.value.time < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
@pytest.mark.parametrize("kind", [ForgetsFuel, ForgetsLater, Rocket, BurnsLater])
def test_random_runs_are_refused_told_or_right(kind, seed):
    rng = np.random.default_rng(seed)
    sound = {ForgetsFuel: Rocket, ForgetsLater: BurnsLater}.get(kind, kind)
    k, methods = float(rng.uniform(5, 60)), [*METHODS, cs.Jacobi(1), cs.Jacobi(2), cs.GaussSeidel(1)]
    chosen = int(rng.integers(len(methods)))
    explicit = chosen >= len(METHODS)
    step = cs.Adaptive(rtol=float(10 ** rng.uniform(-6, -3))) if explicit else float(10 ** rng.uniform(-3, -2))
    run = {"t_end": 1.2, "method": methods[chosen], "step": step, "error_bar": bool(rng.integers(2))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = cs.simulate(joined(sound(), k), **{**run, "error_bar": False})
        try:
            result = cs.simulate(joined(kind(), k), **run)
        except cs.CosolveError as error:
            assert kind is not sound
            assert "does not come back" in str(error) or "did not converge" in str(error)  # noqa: PT017
            return
    told = any(note.level == "error" for note in rollback(result))
    assert not (told and kind is sound)
    off = np.abs(np.interp(want.t, result.t, result["bad.x"]) - want["bad.x"]).max()
    assert told or off < 0.02
    assert not (told and result.error_bar is not None and result.error_bar.bar)
