"""BspK6: a cycle with direct feed-through and switches, solved with exact Jacobians (Sicklinger (2014), 4.7.3)."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from examples.bspk6 import run as example
from examples.bspk6.model import PRINTED, H, Plant, eliminated, outputs, simulate, system, triggers

import cosolve as cs
from cosolve.corrector import InterfaceProblem
from cosolve.signal import Polynomial

T = 0.5


@cache
def full(t_end: float = T) -> cs.Result:
    return simulate(t_end)


def switchings(t: np.ndarray) -> np.ndarray:
    """True for the steps at whose end a switch differs from what it was at their beginning."""
    states = np.array([triggers(now) for now in t])
    return (np.diff(states, axis=0) != 0).any(axis=1)


@pytest.mark.covers("IJ-27")
def test_two_evaluations_but_at_switchings() -> None:
    result = full()
    expected = np.where(switchings(result.t), 3, 2)
    assert expected.max() == 3
    assert np.array_equal(result.iterations + 1, expected)


@pytest.mark.covers("IJ-27")
def test_same_as_elimination_by_hand() -> None:
    assert np.abs(outputs(full()) - eliminated(full().t)).max() <= 1e-12


@pytest.mark.covers("IJ-27")
def test_outputs_of_the_reference_code_halfway() -> None:
    assert outputs(full())[-1] == pytest.approx(PRINTED[T], rel=0, abs=1e-8)


@pytest.mark.slow
@pytest.mark.covers("IJ-27")
def test_whole_run() -> None:
    """T = 5: 50 000 steps, 16 of which end behind a switching; each printed number to its relative 1e-8."""
    result = full(5.0)
    evaluations, found = result.iterations + 1, outputs(result)
    assert dict(zip(*np.unique(evaluations, return_counts=True), strict=True)) == {2: 49_984, 3: 16}
    assert evaluations.mean() == pytest.approx(2.00032, abs=1e-9)
    assert np.array_equal(evaluations == 3, switchings(result.t))
    assert np.abs(found - eliminated(result.t)).max() <= 1e-12
    for t, printed in PRINTED.items():
        assert found[round(t / H)] == pytest.approx(printed, rel=1e-8, abs=1e-12)


class Swapped(Plant):
    """S1 with the Jacobian entries as printed in Eqs. 4.144 and 4.145."""

    def jacobian(self, t0: float, t1: float, u: Polynomial, weight: np.ndarray) -> np.ndarray:
        J = super().jacobian(t0, t1, u, weight)
        J[1, :2] = J[1, 1::-1]
        return J


@pytest.mark.covers("IJ-27")
def test_printed_jacobian_diverges() -> None:
    """The slopes of Y12 in the order of the source, which is a misprint."""
    wrong = system(plant=Swapped())
    with pytest.raises(cs.errors.ConvergenceError, match="did not converge"):
        cs.simulate(wrong, t_end=T, method=cs.Implicit(degree=0, tol=1e-10, corrector=cs.Newton()), step=H)


# -- output-only subsystems and triggers -----------------------------------------------------------------------


@pytest.mark.covers("IJ-28")
def test_reduced_system_is_the_full_one() -> None:
    """S1 that reads the clock itself: three subsystems, four unknowns, no switching that needs finding."""
    reduced = simulate(T, reduced=True)
    assert np.abs(outputs(reduced) - outputs(full())).max() <= 1e-14
    assert (reduced.iterations == 1).all()


class Kept(cs.Newton):
    """Newton that keeps the interface Jacobians it works with."""

    def __init__(self) -> None:
        super().__init__("iteration")
        self.seen: list[np.ndarray] = []

    def __deepcopy__(self, memo: object) -> "Kept":
        return self

    def correct(self, z: np.ndarray, r: np.ndarray, problem: InterfaceProblem) -> np.ndarray:
        self.seen.append(problem.jacobian())
        return super().correct(z, r, problem)


@pytest.mark.covers("IJ-28")
def test_triggers_have_zero_columns_and_sources_no_jacobian() -> None:
    """The columns of U13 and U14 hold nothing but the 1 of their own equation; S4 is never differentiated."""
    coupled, kept = system(), Kept()
    assert "jacobian" not in cs.capabilities(coupled.subsystems["S4"])
    result = cs.simulate(coupled, t_end=5 * H, method=cs.Implicit(degree=0, tol=1e-10, corrector=kept), step=H)
    labels = coupled.plan().z_labels
    assert sorted(labels) == ["S1.Y11", "S1.Y12", "S2.Y2", "S3.Y3", "S4.Y41", "S4.Y42"]
    identity = np.eye(6)
    assert kept.seen
    for J in kept.seen:
        for name in ("S4.Y41", "S4.Y42"):
            m = labels.index(name)
            assert np.array_equal(J[:, m], identity[:, m])
            assert np.array_equal(J[m], identity[m])
    assert result.stats.calls["S4"] == (result.iterations + 1).sum()


# -- the example -----------------------------------------------------------------------------------------------


def test_table_and_picture(tmp_path: Path) -> None:
    lines = example.table(full()).splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["0.5", "proto"], ["0.5", "ours"]]
    assert lines[1].split()[2:] == lines[2].split()[2:]
    assert example.counts(full()).startswith("average 2.00020")
    example.draw(tmp_path / "outputs.png", full())
    assert (tmp_path / "outputs.png").stat().st_size > 10_000
