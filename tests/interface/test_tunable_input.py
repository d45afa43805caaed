"""A `TunableInput` is set while a run goes on; every run, and every `Stepper`, begins with its first value."""

import pytest

import cosolve as cs


@pytest.fixture
def tunable():
    """x' = u with u at 1, and the input."""
    q, tank = cs.TunableInput(1.0), cs.Linear([[0.0]], [[1.0]], [[1.0]], x0=[0.0], inputs=["q"], outputs=["h"])
    system = cs.System({"tank": tank})
    system.set("tank.q", q)
    return system, q


def test_a_run_begins_with_the_first_value(tunable):
    system, q = tunable
    q.set(0.5, 3.0)
    assert cs.simulate(system, t_end=1.0, method="jacobi:0", step=0.1)["tank.h"][-1] == pytest.approx(1.0)


def test_changes_hold_until_the_end_of_their_run(tunable):
    system, q = tunable
    for t in (0.5, 0.75):
        stepper = cs.Stepper(system, method="jacobi:0", step=0.125)
        stepper.run_until(t)
        q.set(t, 3.0)
        stepper.run_until(1.0)
        assert stepper["tank.h"] == pytest.approx(t + (1.0 - t) * 3.0)


def test_a_second_run_is_like_the_first():
    """`tank.q` is set from inside the run, as a watcher or a thread would."""
    q = cs.TunableInput(1.0)

    class Hand(cs.Subsystem):
        outputs = ("y",)

        def start(self, t0):
            return 0.0

        def advance(self, t0, t1, u):
            if t0 >= 0.5 and q.now == 1.0:
                q.set(t1, 3.0)
            return 0.0

    tank = cs.Linear([[0.0]], [[1.0]], [[1.0]], x0=[0.0], inputs=["q"], outputs=["h"])
    system = cs.System({"tank": tank, "hand": Hand()})
    system.set("tank.q", q)
    ends = [cs.simulate(system, t_end=1.0, method="jacobi:0", step=0.125)["tank.h"][-1] for _ in range(2)]
    assert ends == pytest.approx([0.625 + 0.375 * 3.0] * 2)
