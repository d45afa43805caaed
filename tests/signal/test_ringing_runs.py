"""A run that rings says so from its own values, whatever its subsystems show."""

import numpy as np
import pytest
from tests.signal.models import two_capacities, two_masses

import cosolve as cs
from cosolve.accuracy.ringing import Ringing

RINGING = [cs.SemiImplicit(1), cs.Implicit(1), cs.Implicit(1, predictor=0)]
DAMPED = [cs.SemiImplicit(0), cs.SemiImplicit(1, signal="bdf"), cs.SemiImplicit(2, signal="bdf"), cs.Implicit(0)]


class Tank(cs.Subsystem):
    """Shows nothing but its output: as a tool's FMU does."""

    inputs, outputs = ["q"], ["h"]

    def __init__(self, capacity, level):
        self.capacity, self.level = capacity, level

    def start(self, t0):
        self.h = self.level
        return self.h

    def advance(self, t0, t1, u):
        middle = u((t0 + t1) / 2)[0]
        self.h += (t1 - t0) * middle / self.capacity
        return self.h

    def save(self):
        return self.h

    def restore(self, state):
        self.h = state


def black_boxes():
    system = cs.System({"a": Tank(1.0, 1.0), "b": Tank(0.5, 0.0)})
    system.law({"a.q": -1, "b.q": 1}, lambda a, b: 1e4 * (a - b), of=["a.h", "b.h"], name="q")
    return system


@pytest.mark.parametrize("method", RINGING, ids=repr)
@pytest.mark.parametrize("build", [lambda: two_capacities(1e4).system, black_boxes], ids=["shown", "hidden"])
def test_a_run_that_rings_says_so(build, method):
    """53 % wrong after a second, and nothing was said."""
    result = cs.simulate(build(), t_end=2.0, method=method, step=0.02)
    (note,) = (n for n in result.notes if n.kind == "ringing")
    assert note.level == "warning"
    assert "'q' alternates by" in note.text
    assert len(note.sentence) < 300
    assert abs(np.diff(result["q"])[-1]) > 1e3


@pytest.mark.parametrize("method", DAMPED, ids=repr)
@pytest.mark.parametrize("build", [lambda: two_capacities(1e4).system, black_boxes], ids=["shown", "hidden"])
def test_a_damped_one_does_not(build, method):
    result = cs.simulate(build(), t_end=2.0, method=method, step=0.02)
    assert not [n for n in result.notes if n.kind == "ringing"]


@pytest.mark.parametrize("method", [cs.Jacobi(1), cs.SemiImplicit(1), cs.Implicit(2)], ids=lambda m: m.label)
@pytest.mark.parametrize("case", [two_capacities(1.0), two_masses(100.0, 1.0), two_masses(100.0, 0.0)])
def test_motions_that_are_resolved_do_not(case, method):
    result = cs.simulate(case.system, t_end=5.0, method=method, step=0.01)
    assert not [n for n in result.notes if n.kind == "ringing"]


def test_a_run_that_goes_on_elsewhere_knows_what_it_saw():
    """Taken in pieces of any length, and handed on."""
    plan = two_capacities(1e4).system.plan()
    z = np.random.default_rng(1).normal(size=(500, plan.n_z))
    z[-40:] = 3.0 + 0.5 * (-0.99) ** np.arange(40)[:, np.newaxis]
    whole, first, second = Ringing(plan), Ringing(plan), Ringing(plan)
    whole.note(z)
    for part in (z[:7], z[7:300], z[300:481]):
        first.note(part)
    second.memory = first.memory
    second.note(z[481:])
    assert "with a factor of -0.99 per step" in whole.sentence()
    assert second.sentence() == whole.sentence()


def test_machine_code_sees_the_same():
    notes = [
        [n.text for n in result.notes if n.kind == "ringing"]
        for result in (
            cs.simulate(jitted(), t_end=10.0, method=cs.SemiImplicit(1), step=0.02, compiled=compiled)
            for compiled in (False, True)
        )
    ]
    assert notes[0] == notes[1]
    assert len(notes[0]) == 1


def jitted():
    import numba

    def tank(capacity, level):
        return cs.Linear([[0.0]], [[1 / capacity]], [[1.0]], x0=[level], inputs=["q"], outputs=["h"])

    system = cs.System({"a": tank(1.0, 1.0), "b": tank(0.5, 0.0)})
    system.law({"a.q": -1, "b.q": 1}, numba.njit(lambda a, b: 1e4 * (a - b)), of=["a.h", "b.h"], name="q")
    return system


def test_a_run_that_rang_and_stopped_says_so():
    """RC networks with SemiImplicit(1): ringing that has died out before the end leaves errors, and was silent."""
    long = cs.simulate(two_capacities(2e3).system, t_end=12.0, method=cs.SemiImplicit(1), step=0.02)
    assert abs(np.diff(long["q"])[-1]) < 0.02 * np.abs(long["q"][-20:]).max()
    (note,) = (n for n in long.notes if n.kind == "ringing")
    assert note.level == "warning"
    assert "after 40 macro steps 'q' alternates by" in note.text
    assert len(note.sentence) < 300


def test_it_is_seen_however_the_steps_are_handed_on():
    plan = two_capacities(1e4).system.plan()
    z = 3.0 + 0.5 * (-0.97) ** np.arange(500)[:, np.newaxis] * np.ones(plan.n_z)
    whole, pieces = Ringing(plan), Ringing(plan)
    whole.note(z)
    for part in np.split(z, [3, 38, 41, 99, 300]):
        pieces.note(part)
    assert whole.sentence() == pieces.sentence()
    assert whole.sentence().startswith("after 40 macro steps")
