"""The recloser's contact spring between elastic bars: what it does undivided, and which steps coupling bears.

Reference: both sides in one system of equations, by a Runge-Kutta loop of the example that knows nothing of the engine.
The impact runs through the bars, so that explicit coupling is bounded for a few microseconds only. A run counts as
bounded when its error stays below a tenth of the ranges.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import cast

import numpy as np
import pytest
from examples.recloser.mechanism import SIGNALS, BarMechanism, BarMotion, _bar_rates, split, undivided
from scipy.integrate import solve_ivp

import cosolve as cs

#: the coupled runs end 3 ms after the touch, or before it
END, BEFORE = 14.759e-3, 11.758e-3
BOUNDED = 0.1


@cache
def motion() -> BarMotion:
    return undivided()


@cache
def reference(t_end: float) -> dict[str, np.ndarray]:
    """Every 0.1 us."""
    return undivided(t_end=t_end, interval=1e-7).signals()


@cache
def system() -> cs.System:
    return split()


def coupled(degree: int, H: float, t_end: float, **options) -> cs.Result:
    """A run of Jacobi with `H` in us, up to where it breaks."""
    settings = {"method": cs.Jacobi(degree), "step": H * 1e-6, "startup": cs.RisingDegree()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.StabilityWarning)  # runs beyond the limit are meant here
        try:
            return cs.simulate(system(), t_end=t_end, **settings, **options)
        except cs.errors.SimulationError as broken:
            return cast(cs.Result, broken.result)


def error(result: cs.Result, t_end: float) -> float:
    """Root mean square over the six signals and the macro points, relative to the ranges of the whole motion."""
    if not result.finished:
        return np.inf
    exact, places = reference(t_end), np.rint(result.t / 1e-7).astype(int)
    whole = motion().signals()
    shares = [(np.ravel(result[name]) - exact[name][places]) / np.ptp(whole[name]) for name in SIGNALS]
    return float(np.sqrt(np.mean(np.square(shares))))


# -- the mechanism by itself -----------------------------------------------------------------------------------------


def test_masses_on_both_sides() -> None:
    """What the bars weigh is taken from contact and armature."""
    assert BarMechanism().masses == pytest.approx((0.9053, 2.3767), abs=5e-5)


def test_a_bar_swings_as_a_chain_of_masses_does() -> None:
    """Clamped at a and free at the other end: `2 c/l sin((2k - 1) pi / 4n)`, from the rates of the rod alone."""
    given = BarMechanism()
    rod, tube = given.chains
    free = given.mechanism._replace(contact_preload=0.0, contact_spring=0.0, spring_stop_stiffness=0.0)
    n, total = rod.elements, given.nodes
    A = np.empty((n, n))
    for k in range(n):
        x = np.zeros(2 * total)
        x[k] = 1.0
        A[:, k] = _bar_rates(x, np.zeros(4), rod, tube, free)[total : total + n]
    found = np.sort(np.sqrt(-np.linalg.eigvals(A).real))
    c, length, k = np.sqrt(2.1e11 / 7850), 0.06 / n, np.arange(1, n + 1)
    assert found == pytest.approx(2 * c / length * np.sin((2 * k - 1) * np.pi / (4 * n)), rel=1e-9)


@pytest.mark.covers("AP-39")
def test_closing_through_elastic_bars() -> None:
    """Touch, end stop, contact force after 30 ms, and the forces at a: everything the bars do to the impact."""
    course = motion()
    moment, speed = course.touch()
    assert (moment, speed, course.stop()) == pytest.approx((11.759e-3, 2.998, 12.591e-3), rel=3e-3)
    assert course.contact()[-1] == pytest.approx(1989.5, rel=3e-3)
    force = course.signals()["fe.Fa"]
    assert (force.min(), force.max()) == pytest.approx((-604, 10439), rel=3e-3)


def test_nothing_moves_while_the_actuator_holds() -> None:
    """The position of rest is one: no drift in 5 ms."""
    still = undivided(BarMechanism(rise=0.0), t_end=5e-3, interval=1e-4)
    assert np.abs(still.x - still.x[0]).max() < 1e-9


@pytest.mark.slow
@pytest.mark.covers("AP-39")
def test_the_reference_against_another_integrator() -> None:
    """From rest over the touch by SciPy's Radau, on the equations of the two subsystems."""
    (f, out, _), (g, force, _) = (side.equations() for side in system().subsystems.values())

    def rhs(t, x):
        u = out(t, x[:4], np.zeros(2))[:4]
        return np.concatenate([f(t, x[:4], force(t, x[4:], u)), g(t, x[4:], u)])

    found = solve_ivp(rhs, (0, 12e-3), motion().x[0], "Radau", rtol=1e-9, atol=1e-12).y[:, -1]
    exact = motion().x[12000]
    assert found[:4] == pytest.approx(exact[:4], rel=1e-4)


# -- coupled ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.covers("AP-39")
def test_a_step_too_long_for_the_bars_explodes_long_before_the_touch() -> None:
    """The limit of degree 2 before the touch, from both sides: 10 us are quiet for 4 ms, 12 us break after 3.2 ms."""
    assert error(coupled(2, 10, 4e-3, compiled=False), 4e-3) < 1e-4
    with (
        pytest.warns(cs.errors.StabilityWarning, match=r"'fe\.F.' has reached .* take a step of about 6e-06"),
        pytest.raises(cs.errors.NonFiniteError, match=r"failed while advancing at t = 0\.003") as broken,
    ):
        cs.simulate(system(), t_end=4e-3, method=cs.Jacobi(2), step=12e-6, startup=cs.RisingDegree(), compiled=False)
    assert 2e-3 < broken.value.result.t[-1] < 4e-3


#: (degree, longest bounded step, next one that is not, error at 1 us) in us, over the impact and before it
OVER = [(1, 5, 6, 1.9e-2), (2, 6, 8, 6.8e-5), (3, 4, 5, 1.4e-5)]
QUIET = [(1, 10, 12, 7.7e-4), (2, 10, 12, 1.7e-7), (3, 6, 8, 1.3e-8)]


@pytest.mark.slow
@pytest.mark.parametrize(("degree", "longest", "next_one", "expected"), OVER)
@pytest.mark.covers("AP-39")
def test_limits_and_errors_over_the_impact(degree: int, longest: float, next_one: float, expected: float) -> None:
    """Until 3 ms after the touch."""
    assert error(coupled(degree, longest, END), END) < BOUNDED
    assert error(coupled(degree, next_one, END), END) > BOUNDED
    assert expected / 1.5 < error(coupled(degree, 1, END), END) < 1.5 * expected


@pytest.mark.slow
@pytest.mark.parametrize(("degree", "longest", "next_one", "expected"), QUIET)
@pytest.mark.covers("AP-39")
def test_limits_and_errors_before_the_touch(degree: int, longest: float, next_one: float, expected: float) -> None:
    """Longer steps are bounded, and errors smaller by orders of magnitude."""
    assert error(coupled(degree, longest, BEFORE), BEFORE) < BOUNDED
    assert error(coupled(degree, next_one, BEFORE), BEFORE) > BOUNDED
    assert error(coupled(degree, 1, BEFORE), BEFORE) < 1.5 * expected


@pytest.mark.slow
@pytest.mark.covers("AP-39")
def test_degree_0_is_useless() -> None:
    """Half the ranges wrong even with steps of 0.2 us."""
    assert error(coupled(0, 0.2, END), END) == pytest.approx(0.5, rel=0.1)


@pytest.mark.slow
def test_check_blames_the_coupling_although_very_short_steps_are_unstable_too() -> None:
    """At a hundredth of 8 us explicit coupling happens to have a band of unstable steps; the model grows nowhere."""
    assert not cs.check(split(), cs.Jacobi(3), step=8e-6).ok
