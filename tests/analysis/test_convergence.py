"""Convergence studies: every measure against numbers worked out here, runs that fail, and what is printed."""

import numpy as np
import pytest

import cosolve as cs

STEPS = [0.1, 0.05, 0.025]
NAMES = ["one.h", "pair.y"]


def system() -> cs.System:
    """Two tanks, and a part with a port of two numbers, one of which is far larger than the other."""

    def tank(x0):
        return cs.Linear(A=[[-1.0]], B=[[1.0]], C=[[1.0]], x0=[x0], inputs=["q"], outputs=["h"])

    pair = cs.Linear(
        A=np.diag([-1.0, -3.0]), B=[[1.0], [100.0]], C=np.eye(2), x0=[1.0, 0.0], inputs=["u"], outputs=[cs.Port("y", 2)]
    )
    tanks = cs.System({"one": tank(1.0), "two": tank(0.0), "pair": pair})
    tanks.connect("one.h", "two.q")
    tanks.connect("two.h", "one.q")
    tanks.connect("two.h", "pair.u")
    return tanks


def exact(t):
    """`h2 = (1 - exp(-2 t)) / 2` drives both rows `y' = a y + b h2`."""

    def driven(a, b, y0):
        grown = (np.exp(a * t) - 1.0) / a - (np.exp(a * t) - np.exp(-2.0 * t)) / (a + 2.0)
        return y0 * np.exp(a * t) + 0.5 * b * grown

    return {
        "one.h": (1.0 + np.exp(-2.0 * t)) / 2.0,
        "pair.y": np.column_stack([driven(-1.0, 1.0, 1.0), driven(-3.0, 100.0, 0.0)]),
    }


def by_hand(measure, e, y):
    if measure == "max":
        return max(abs(e.ravel()))
    if measure == "nrmse":
        return np.sqrt(sum(np.sum(e[:, k] ** 2) / np.sum((y[:, k] - np.mean(y[:, k])) ** 2) for k in range(3)))
    larger = np.maximum(abs(y), abs(y + e))
    return np.sqrt(sum(np.mean((e[n] / (1.0 + larger[n])) ** 2) for n in range(len(e))) / len(e))


@pytest.mark.parametrize("measure", ["nrmse", "wrmse", "max"])
def test_measures(measure):
    methods = {"explicit": cs.Jacobi(1), "corrected": "semi-implicit:2"}
    study = cs.analysis.convergence(
        system(), methods, steps=STEPS, t_end=1.0, names=NAMES, reference=exact, measure=measure
    )
    for label, method in (("explicit", cs.Jacobi(1)), ("corrected", cs.SemiImplicit(2))):
        for k, step in enumerate(STEPS):
            run = cs.simulate(system(), t_end=1.0, method=method, step=step)
            found, y = (np.column_stack([of["one.h"], of["pair.y"]]) for of in (run, exact(run.t)))
            assert study.errors[label][k] == pytest.approx(by_hand(measure, found - y, y), rel=1e-9)
            assert study.calls[label][k] == run.stats.total_calls
    orders = study.orders()
    assert orders["explicit"] == pytest.approx(2.0, abs=0.2)
    assert orders["corrected"] == pytest.approx(3.0, abs=0.2)
    assert study.measure == {"nrmse": "NRMSE", "wrmse": "WRMSE", "max": "largest error"}[measure]


def test_without_a_reference_a_finer_run_is_one():
    """Its own error is a quarter of the smallest step to the order: orders come out as they are."""
    study = cs.analysis.convergence(system(), cs.Jacobi(1), steps=STEPS, t_end=1.0, names=NAMES)
    assert study.orders()["Jacobi(1)"] == pytest.approx(2.0, abs=0.3)


class Careful(cs.Subsystem):
    """`h' = -h` by steps of at most 0.06."""

    inputs, outputs = (), ("h",)

    def start(self, t0):
        self.h = 1.0
        return self.h

    def advance(self, t0, t1, u):
        if t1 - t0 > 0.06:
            raise ValueError(f"a step of {t1 - t0:g} is too long")
        self.h *= 1.0 - (t1 - t0)
        return self.h


def test_a_run_that_fails_has_no_error_and_the_others_do():
    reference = lambda t: {"a.h": np.exp(-t)}  # noqa: E731
    careful = cs.System({"a": Careful()})
    study = cs.analysis.convergence(careful, cs.Jacobi(), steps=STEPS, t_end=1.0, names=["a.h"], reference=reference)
    ((label, errors),) = study.errors.items()
    assert np.isnan(errors).tolist() == [True, False, False]
    assert len(study.failures[label]) == 1
    assert "a step of 0.1 is too long" in study.failures[label][0]
    assert study.orders()[label] == pytest.approx(1.0, abs=0.05)
    first, *rows, last = (line.split() for line in str(study).splitlines())
    assert first == ["H", label]
    assert [row[0] for row in rows] == ["0.1", "0.05", "0.025"]
    assert [row[1] for row in rows] == ["failed", f"{errors[1]:.3e}", f"{errors[2]:.3e}"]
    assert last == ["order", f"{study.orders()[label]:.2f}"]
