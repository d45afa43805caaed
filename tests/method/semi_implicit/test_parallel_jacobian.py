"""Perturbed runs of different subsystems go side by side, with the same bits."""

import threading

import numpy as np
import pytest

import cosolve as cs


class Waiting(cs.Subsystem):
    """A mass without a Jacobian; notes how many of its kind were at work at the same time."""

    inputs, outputs = ["f", "g"], ["x"]
    noise = 0.0
    busy = most = 0
    patience = 0.05
    condition = threading.Condition()

    def start(self, t0):
        self.x = 1.0
        return self.x

    def advance(self, t0, t1, u):
        kind = Waiting
        with kind.condition:
            kind.busy += 1
            kind.most = max(kind.most, kind.busy)
            kind.condition.notify_all()
            kind.condition.wait_for(lambda: kind.most > 1, timeout=kind.patience)  # a partner, if there is one
        self.x += (t1 - t0) * (u(t0) @ [1.0, 0.5] - np.sin(self.x))
        with kind.condition:
            kind.busy -= 1
        return self.x

    def save(self):
        return self.x

    def restore(self, state):
        self.x = state


def pair() -> cs.System:
    system = cs.System({"a": Waiting(), "b": Waiting()})
    for one, two in (("a", "b"), ("b", "a")):
        system.connect(f"{one}.x", f"{two}.f")
        system.law(f"{one}.g", lambda x, y: 0.1 * x * y, of=["a.x", "b.x"])
    return system


@pytest.mark.covers("SC-25")
@pytest.mark.parametrize("method", [cs.SemiImplicit(1), cs.Implicit(1)], ids=lambda m: m.name)
def test_jacobian_columns_of_different_subsystems_run_at_the_same_time(method) -> None:
    results = []
    for workers in (1, 2):
        Waiting.most, Waiting.patience = 0, 0.05 if workers == 1 else 60.0  # where one must come, however late
        results.append(cs.simulate(pair(), t_end=0.3, step=0.1, method=method, workers=workers))
        assert Waiting.most == workers
    for name in ("y", "z", "residual", "calls"):
        np.testing.assert_array_equal(results[0].column(name), results[1].column(name))
