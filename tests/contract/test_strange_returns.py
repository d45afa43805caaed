"""What functions of users may return by mistake: the same array again, masked numbers, the last run's end."""

import numpy as np
import pytest

import cosolve as cs


class Mass(cs.Subsystem):
    """A mass on a spring under a force, in ten short steps."""

    inputs, outputs = ("f",), ("x", "v")

    def __init__(self, x0):
        self.x0 = x0

    def start(self, t0):
        self.x = np.array([self.x0, 0.0])
        return self.x.copy()

    def advance(self, t0, t1, u):
        x, v = self.x
        for t in np.linspace(t0, t1, 10, endpoint=False):
            v += (t1 - t0) / 10 * (u(t)[0] - 9.0 * x)
            x += (t1 - t0) / 10 * v
        self.x = np.array([x, v])
        return self.x.copy()

    def save(self):
        return self.x

    def restore(self, state):
        self.x = state


def pair(one, two, law):
    system = cs.System({"one": one, "two": two})
    system.law({"one.f": 1, "two.f": -1}, law, of=["one.x", "one.v", "two.x", "two.v"])
    return system


def spring(a, va, b, vb):
    return 60.0 * (b - a) + 2.0 * (vb - va)


def run(system, method=None):
    return cs.simulate(system, t_end=1.0, method=method or cs.SemiImplicit(1), step=0.1)


@pytest.mark.parametrize("method", [cs.SemiImplicit(1), cs.Implicit(1)])
def test_a_law_may_return_the_same_array_every_time(method):
    """Differences of it would be zero otherwise: two values in one array."""
    kept = np.zeros(1)

    def buffered(*arguments):
        kept[0] = spring(*arguments)
        return kept

    fresh, same = (run(pair(Mass(0.0), Mass(1.0), law), method) for law in (spring, buffered))
    assert np.array_equal(fresh["two.x"], same["two.x"])
    assert fresh.stats.iterations == same.stats.iterations


def test_equations_may_return_the_same_array_every_time():
    kept, found = np.zeros(1), []

    def buffered(f, x):
        kept[0] = f + 5.0 * x - 1.0
        return kept

    for equation in (lambda f, x: f + 5.0 * x - 1.0, buffered):
        system = cs.System({"one": Mass(0.0)})
        system.equations({"f": {"one.f": 1}}, equation, of="one.x")
        found.append(run(system)["one.x"])
    assert np.array_equal(*found)


class Masked(Mass):
    def advance(self, t0, t1, u):
        return np.ma.masked_array(super().advance(t0, t1, u), mask=[t1 > 0.5, False])


def test_masked_numbers_are_no_numbers():
    with pytest.raises(
        cs.errors.SubsystemError, match=r"'two' failed .* returned a masked array, expected plain numbers"
    ):
        run(pair(Mass(0.0), Masked(1.0), spring))
    with pytest.raises(cs.errors.SubsystemError, match=r"the law for one.f, two.f returned a masked array"):
        run(pair(Mass(0.0), Mass(1.0), lambda *_: np.ma.masked_array([1.0], mask=[True])))


class Continued(Mass):
    """Begins once and for all."""

    def start(self, t0):
        return [self.x0, 0.0] if hasattr(self, "x") else super().start(t0)


class ContinuedForward(Continued):
    """The same without a way back."""

    save = restore = None


def test_a_second_run_begins_anew():
    system = pair(Mass(0.0), Continued(1.0), spring)
    run(system)
    with pytest.raises(
        cs.errors.SubsystemError, match=r"'two' failed while starting .* it begins where its last run ended"
    ):
        run(system)


def test_other_initial_values_are_no_mistake():
    """Nor is a subsystem that has not moved since its last start."""
    masses = Mass(0.0), Mass(0.0)
    system = pair(*masses, spring)
    for _ in range(3):  # nothing moves
        assert not run(system)["two.x"].any()
    masses[1].x0 = 1.0
    assert run(system)["two.x"][0] == 1.0
    assert np.array_equal(run(system)["two.x"], run(system)["two.x"])


@pytest.mark.parametrize("kind", [Continued, ContinuedForward])
def test_check_begins_twice(kind):
    advice = cs.check(pair(Mass(0.0), kind(1.0), spring), cs.Jacobi(1), step=0.1)
    assert "no-second-run" in [finding.code for finding in advice.findings]
    assert "'two'" in str(advice)
