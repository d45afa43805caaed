"""`save` that hands out the live state is found out at the first step that is repeated, not by wrong numbers."""

import numpy as np
import pytest

import cosolve as cs


class Tank(cs.Subsystem):
    """A first-order lag; `keep` says how its state leaves it."""

    inputs, outputs = ["u"], ["x"]

    def __init__(self, keep):
        self.keep = keep

    def start(self, t0):
        self.x, self.count = np.array([1.0]), 0
        return self.x.copy()

    def advance(self, t0, t1, u):
        self.x += (t1 - t0) * (u(t0) - self.x)  # in place
        self.count += 1
        return self.x.copy()

    def save(self):
        return self.keep(self)

    def restore(self, state):
        x = state["x"] if isinstance(state, dict) else state[0] if isinstance(state, (tuple, list)) else state
        self.x = np.atleast_1d(np.array(x))


LIVE = {
    "array": lambda tank: tank.x,
    "tuple": lambda tank: (tank.x, tank.count),
    "dict": lambda tank: {"x": tank.x},
    "view": lambda tank: tank.x[:],
}
COPIES = {
    "array": lambda tank: tank.x.copy(),
    "tuple": lambda tank: (tank.x.copy(), tank.count),
    "dict": lambda tank: {"x": tank.x.copy()},
    "list": lambda tank: [float(tank.x[0])],
}
METHODS = [cs.SemiImplicit(1), cs.Implicit(1), cs.Implicit(1, corrector=cs.IqnIls())]


def loop(keep):
    system = cs.System({"one": Tank(COPIES["array"]), "two": Tank(keep)})
    system.law("two.u", lambda x: 0.5 * x, of=["one.x"])
    system.law("one.u", lambda x: -0.5 * x, of=["two.x"])
    return system


@pytest.mark.parametrize("method", METHODS, ids=["semi-implicit", "newton", "quasi-newton"])
@pytest.mark.parametrize("kind", LIVE)
def test_a_live_state_is_refused(kind, method):
    with pytest.raises(
        cs.errors.SubsystemError, match=r"'two': the state that save returned has changed since.*a copy"
    ):
        cs.simulate(loop(LIVE[kind]), t_end=1.0, method=method, step=0.1)


@pytest.mark.parametrize("kind", COPIES)
def test_copies_of_any_shape_are_fine(kind):
    runs = [cs.simulate(loop(COPIES[k]), t_end=1.0, method=METHODS[0], step=0.1)["two.x"] for k in ("array", kind)]
    np.testing.assert_array_equal(*runs)


def test_explicit_methods_do_not_ask():
    assert len(cs.simulate(loop(LIVE["array"]), t_end=1.0, method=cs.Jacobi(1), step=0.1).t) == 11
