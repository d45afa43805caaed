"""Fields of 100 000 numbers: nothing n x n, little memory, few evaluations."""

import tracemalloc

import numpy as np
import pytest

import cosolve as cs
from cosolve.corrector import Aitken, Anderson, Broyden, IqnIls, IqnImvj, NewtonKrylov

N = 100_000
X = np.linspace(0, 1, N)
MODES = np.array([np.sin((k + 1) * np.pi * X) for k in range(8)]) * np.sqrt(2 / N)
GAIN = np.geomspace(6.0, 0.05, 8)


class Wall(cs.Subsystem):
    """Answers a displacement with a load whose long waves are amplified sixfold."""

    inputs, outputs = (("u", N),), (("p", N),)

    def start(self, t0):
        return self.at(t0, np.zeros(N))

    def at(self, t, u):
        return load(t, u)

    def advance(self, t0, t1, u):
        return self.at(t1, u.end)

    def save(self):
        return None

    def restore(self, state):
        pass


class Probe(Wall):
    """Hands the load back as a displacement."""

    inputs, outputs = (("p", N),), (("u", N),)

    def at(self, t, p):
        return p.copy()


def coupled():
    system = cs.System({"wall": Wall(), "probe": Probe()})
    system.connect("wall.p", "probe.p")
    system.connect("probe.u", "wall.u")
    return system


def load(t, u):
    return np.sin(7 * X + t) - (GAIN * (MODES @ u)) @ MODES - 0.01 * np.tanh(u)


class Step:
    """`r(u) = u - load(t, u)`; counts how often it is asked."""

    def __init__(self, t):
        self.t, self.evaluations = t, 0

    def residual(self, u):
        self.evaluations += 1
        return u - load(self.t, u)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "corrector",
    [Aitken(), Anderson(), IqnIls(), IqnImvj(), Broyden(), NewtonKrylov()],
    ids=lambda c: type(c).__name__,
)
def test_a_field_of_100_000_numbers_costs_little_memory_and_few_evaluations(corrector):
    labels = [f"u[{i}]" for i in range(N)]
    tracemalloc.start()
    corrector.start_run(labels)
    u = np.zeros(N)
    for t in (0.1, 0.2, 0.3):
        step = Step(t)
        r = step.residual(u)
        corrector.start_step()
        while np.abs(r).max() > 1e-8 and step.evaluations < 100:
            u = corrector.correct(u, r, step)
            r = step.residual(u)
        corrector.accept(u, r)
        assert np.abs(r).max() <= 1e-8
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 500e6  # some hundred fields; a matrix would take 80 GB


def test_iqn_ils_serves_two_fields_in_a_parallel_sweep():
    method = cs.Implicit(degree=0, tol=1e-8, max_iterations=60, corrector=IqnIls())
    result = cs.simulate(coupled(), t_end=0.3, method=method, step=0.1)
    u = result["probe.u"][-1]
    assert np.abs(u - load(0.3, u)).max() < 1e-7
    assert result.iterations[-1] < result.iterations[0]
