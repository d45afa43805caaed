"""A subsystem that keeps answers by time gives that of another iterate when a step is repeated: it is named."""

import functools

import numpy as np
import pytest

import cosolve as cs

METHODS = [cs.SemiImplicit(1), cs.Implicit(1), cs.Implicit(1, corrector=cs.IqnIls())]


class Mass(cs.Subsystem):
    """A mass on a spring by a Runge-Kutta step, which can go back."""

    inputs, outputs = ["f"], ["x", "v"]
    kept_from = np.inf

    def __init__(self, x0):
        self.x0 = x0

    def start(self, t0):
        self.s, self.kept = np.array([self.x0, 0.0]), {}
        return self.s.copy()

    def advance(self, t0, t1, u):
        if (t0, t1) in self.kept and t0 >= self.kept_from:
            self.s = self.kept[t0, t1].copy()
            return self.s.copy()

        def slope(t, s):
            return np.array([s[1], u(t)[0] - 40.0 * s[0]])

        h = t1 - t0
        k1 = slope(t0, self.s)
        k2 = slope(t0 + h / 2, self.s + h / 2 * k1)
        self.s = self.s + h * k2
        self.kept[t0, t1] = self.s.copy()
        return self.s.copy()

    def save(self):
        return self.s.copy()

    def restore(self, state):
        self.s = state.copy()


class KeepsAnswers(Mass):
    kept_from = 0.0


class KeepsAnswersLater(Mass):
    kept_from = 0.05


class PlaceOnly(Mass):
    """Explicit Euler: an input shows in the place one step later, so that equal outputs are right."""

    def __init__(self, x0):
        super().__init__(x0)
        self.outputs = ["x"]

    def start(self, t0):
        return super().start(t0)[:1]

    def advance(self, t0, t1, u):
        x, v = self.s
        h = t1 - t0
        self.s = np.array([x + h * v, v + h * (u(t0)[0] - 40.0 * x)])
        return self.s[:1].copy()


class Rounded(Mass):
    """A sensor of three digits: small changes of the input do not show."""

    def start(self, t0):
        return super().start(t0).round(3)

    def advance(self, t0, t1, u):
        return super().advance(t0, t1, u).round(3)


def build(kind, k=2000.0, d=20.0):
    other = cs.Linear(
        [[0, 1.0], [-60.0, -0.5]], [[0], [1.0]], np.eye(2), x0=[0.5, 0.0], inputs=["f"], outputs=["x", "v"]
    )
    system = cs.System({"part": kind(1.0), "other": other})
    of = ["part.x", "other.x"] if kind is PlaceOnly else ["part.x", "other.x", "part.v", "other.v"]
    system.law({"part.f": 1, "other.f": -1}, lambda x, y, v=0.0, w=0.0: k * (y - x) + d * (w - v), of=of)
    return system


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("kind", [KeepsAnswers, KeepsAnswersLater])
def test_answers_that_are_kept_by_time_are_found(kind, method):
    """A run was 20 % off and called converged."""
    with pytest.raises(cs.errors.SubsystemError, match="'part' gave the same outputs for other inputs") as caught:
        cs.simulate(build(kind), t_end=1.0, method=method, step=0.005)
    assert len(str(caught.value)) < 330
    assert caught.value.time < 0.2


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("kind", [Mass, PlaceOnly, Rounded])
def test_equal_outputs_that_are_right_are_not_blamed(kind, method):
    stiff = {} if kind is Mass else {"k": 20.0, "d": 0.0}
    cs.simulate(build(kind, **stiff), t_end=1.0, method=method, step=0.005)


def test_a_right_hand_side_with_a_cache_by_time_is_found():
    """The usual form: `functools.cache` over what is read at a time, the input among it."""
    now = [0.0]

    @functools.cache
    def drive(t):
        return now[0]

    def slope(t, s, u):
        now[0] = u[0]
        return [s[1], drive(t) - 40.0 * s[0]]

    part = cs.Ode(
        slope,
        lambda t, s, u: s,
        x0=[1.0, 0.0],
        inputs=["f"],
        outputs=["x", "v"],
        integrator="ode4",
        internal_step=0.005,
    )
    system = build(Mass)
    system = cs.System({"part": part, "other": system.subsystems["other"]})
    system.law(
        {"part.f": 1, "other.f": -1},
        lambda x, y, v, w: 2000.0 * (y - x) + 20.0 * (w - v),
        of=["part.x", "other.x", "part.v", "other.v"],
    )
    with pytest.raises(cs.errors.SubsystemError, match="keeps answers by time"):
        cs.simulate(system, t_end=1.0, method=cs.SemiImplicit(1), step=0.005)


def test_nothing_is_advanced_more_often_for_it():
    """Only outputs that stay the same to the bit are tried out."""
    counts = {}
    for kind in (Mass, PlaceOnly):
        system = build(kind, k=20.0, d=0.0)
        part, calls = system.subsystems["part"], [0]
        advance = part.advance

        def counted(t0, t1, u, advance=advance, calls=calls):
            calls[0] += 1
            return advance(t0, t1, u)

        part.advance = counted
        cs.simulate(system, t_end=0.05, method=cs.SemiImplicit(1), step=0.005)
        counts[kind] = calls[0]
    assert counts[PlaceOnly] == counts[Mass] + 3
