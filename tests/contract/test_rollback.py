"""Going back is exact: after `restore` a subsystem repeats and continues its run bit for bit, whatever its kind."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cosolve as cs
from cosolve.signal import Polynomial

H = 0.1


def pendulum(t, x, u):
    return np.array([x[1], -9.81 * np.sin(x[0]) - 0.1 * x[1] + u[0] * np.cos(t) + u[1]])


def stiff_decay(t, x, u):
    return np.array([x[1], -1e5 * (x[0] - u[0]) - 100001.0 * x[1] + u[1]])


JITTED = numba.njit(pendulum)


def ode(solver, rhs=pendulum):
    fixed = {"internal_step": 0.03} if solver in ("ode1", "ode2", "ode3", "ode4", "ode5") else {}
    return cs.Ode(
        rhs,
        lambda t, x, u: [x[0], x[1] + 0.5 * u[0], t],
        x0=[0.3, -0.2],
        inputs=["a", "b"],
        outputs=["x", "v", "t"],
        integrator=solver,
        **fixed,
    )


def linear():
    A, B = [[0.0, 1.0], [-4.0, -0.3]], [[0.0, 0.2], [1.0, 0.0]]
    return cs.Linear(A, B, np.eye(2), [[0.0, 0.1], [0.0, 0.0]], x0=[1.0, 0.0], inputs=["a", "b"], outputs=["x", "v"])


def static():
    return cs.Static(lambda t, u: [u[0] * u[1], np.sin(t) + u[0]], inputs=["a", "b"], outputs=["p", "q"])


class Delay(cs.Subsystem):
    """A user's own solver with memory of several kinds: an array changed in place, a list that grows, a counter."""

    inputs, outputs = ["a", "b"], ["y", ("tail", 2)]

    def start(self, t0):
        self.x, self.log, self.count = np.zeros(2), [0.0], 0
        return {"y": 0.0, "tail": [0.0, 0.0]}

    def advance(self, t0, t1, u):
        self.x += (t1 - t0) * (u(0.5 * (t0 + t1)) - self.x)
        self.log.append(float(self.x[0]))
        self.count += 1
        return {"y": self.x[1] / self.count, "tail": [self.log[-1], self.log[len(self.log) // 2]]}

    def save(self):
        return self.x.copy(), list(self.log), self.count

    def restore(self, state):
        x, log, self.count = state
        self.x, self.log = x.copy(), list(log)


SOLVERS = ["auto", "dopri5", "ode1", "ode2", "ode3", "ode4", "ode5", "RK45", "DOP853", "Radau", "BDF", "LSODA", "cvode"]
KINDS = {
    "Linear": linear,
    "Static": static,
    "user": Delay,
    **{f"Ode {s}": (lambda s=s: ode(s)) for s in SOLVERS},
    **{f"Ode {s} jitted": (lambda s=s: ode(s, JITTED)) for s in SOLVERS},
    "Ode auto turning stiff": lambda: ode("auto", stiff_decay),
    **{f"InterpolatedOutputs {s}": (lambda s=s: cs.InterpolatedOutputs(ode(s))) for s in ("dopri5", "ode1", "ode4")},
    "InterpolatedOutputs jitted": lambda: cs.InterpolatedOutputs(ode("dopri5", JITTED)),
}
SLOW = {"Ode auto turning stiff", "Ode Radau", "Ode BDF", "Ode Radau jitted", "Ode BDF jitted"}

numbers = st.floats(-2.0, 2.0, allow_subnormal=False)
polynomials = st.integers(0, 3).flatmap(lambda d: st.lists(st.tuples(numbers, numbers), min_size=d + 1, max_size=d + 1))


def start(subsystem):
    first = subsystem.start(0.0)
    if first is None:
        first = subsystem.output(0.0, np.zeros(2))
    return first


def advance(subsystem, n, coefficients):
    u = Polynomial(n * H, H, np.array(coefficients))
    y = subsystem.advance(n * H, (n + 1) * H, u)
    flat = np.concatenate([np.ravel(v) for v in (y.values() if isinstance(y, dict) else np.atleast_1d(y))])
    return flat.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_what_follows_a_restore_is_bitwise_what_followed_the_save(kind):
    subsystem = KINDS[kind]()

    @settings(max_examples=2 if kind in SLOW else 6)
    @given(st.lists(polynomials, min_size=2, max_size=5), st.lists(polynomials, min_size=1, max_size=3), st.data())
    def check(inputs, detour, data):
        start(subsystem)
        states, outputs = [subsystem.save()], []
        for n, coefficients in enumerate(inputs):
            outputs.append(advance(subsystem, n, coefficients))
            states.append(subsystem.save())
        # interleaved: any saved state, used any number of times and in any order, with other inputs in between
        for k in data.draw(st.lists(st.integers(0, len(inputs) - 1), min_size=1, max_size=4)):
            subsystem.restore(states[k])
            for n, coefficients in enumerate(detour):
                advance(subsystem, k + n, coefficients)
            subsystem.restore(states[k])
            again = [advance(subsystem, n, inputs[n]) for n in range(k, len(inputs))]
            assert again == outputs[k:]

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_start_resets_completely(kind):
    subsystem = KINDS[kind]()
    inputs = [[[0.5, -0.2]], [[0.1, 1.0], [0.3, -0.7]], [[-1.0, 0.4]]]
    runs = []
    for detour in (1, 3, 2):
        start(subsystem)
        runs.append([advance(subsystem, n, c) for n, c in enumerate(inputs)])
        for n in range(detour):
            advance(subsystem, len(inputs) + n, [[float(n), 1.0]])
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.parametrize("solver", ["auto", "dopri5", "ode4", "RK45", "Radau", "BDF", "cvode"])
def test_a_right_hand_side_that_writes_into_its_arguments_or_reuses_its_result_changes_nothing(solver):
    buffer = np.empty(2)

    def careless(t, x, u):
        x[0] = -9.81 * np.sin(x[0]) - 0.1 * x[1] + u[0] * np.cos(t) + u[1]
        buffer[0], buffer[1] = x[1], x[0]
        u[:] = 7.0
        return buffer

    clean, dirty = ode(solver), ode(solver, careless)
    start(clean), start(dirty)
    for n in range(5):
        coefficients = [[0.3, -1.0], [2.0, 0.1 * n]]
        assert advance(clean, n, coefficients) == advance(dirty, n, coefficients)


def test_rollback_over_the_turn_to_the_stiff_solver_replays_the_whole_step():
    """The turn happens inside the step; the perturbed run must take the same step, not the part before the turn."""
    subsystem = ode("auto", stiff_decay)
    start(subsystem)
    state = subsystem.save()
    u = Polynomial(0.0, 2.0, np.array([[1.0, 0.0]]))
    x = np.array(subsystem.advance(0.0, 2.0, u))
    subsystem.restore(state)
    assert np.array(subsystem.replay(0.0, 2.0, u)) == pytest.approx(x, abs=1e-6)
