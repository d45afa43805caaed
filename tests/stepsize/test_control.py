"""The macro-step controller by itself: Schmoll (2015), Eqs. 2.29-2.32."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cosolve as cs
from cosolve.stepsize.control import is_no_gain

positive = st.floats(1e-12, 1e12)


@pytest.mark.covers("SC-14")
@pytest.mark.parametrize("controller", ["I", "PI"])
@pytest.mark.parametrize("degree", range(6))
def test_an_estimate_on_target_gives_the_safety_factor(controller: str, degree: int) -> None:
    """Estimate = TOL, step after step: H * q exactly, whichever controller."""
    control = cs.Adaptive(rtol=1e-4, controller=controller)
    assert control.next_step(1e-3, 1.0, None, degree) == pytest.approx(0.95e-3, rel=1e-14)
    assert control.next_step(1e-3, 1.0, 1.0, degree) == pytest.approx(0.95e-3, rel=1e-14)


@pytest.mark.covers("SC-14")
@pytest.mark.parametrize("degree", range(6))
def test_integral_controller(degree: int) -> None:
    """Eq. 2.30: H (TOL / estimate)^(1 / (p + 1)), here with an estimate of 2 TOL and no limiter at work."""
    control = cs.Adaptive(rtol=1e-4, controller="I", q=1.0)
    assert control.next_step(1.0, 2.0, 5.0, degree) == pytest.approx(0.5 ** (1 / (degree + 1)), rel=1e-14)


@pytest.mark.covers("SC-14")
@pytest.mark.parametrize("degree", range(6))
def test_proportional_integral_controller(degree: int) -> None:
    """Eq. 2.31 with alpha = 0.7, beta = 0.4; without the second factor on the first step."""
    control = cs.Adaptive(rtol=1e-4, controller="PI", q=1.0)
    first = 0.5 ** (0.7 / (degree + 1))
    assert control.next_step(1.0, 2.0, None, degree) == pytest.approx(first, rel=1e-14)
    assert control.next_step(1.0, 2.0, 1.5, degree) == pytest.approx(first * 1.5 ** (0.4 / (degree + 1)), rel=1e-14)


@pytest.mark.parametrize("controller", ["I", "PI"])
@pytest.mark.parametrize("degree", range(6))
def test_a_rejected_step_is_repeated_with_the_length_that_its_error_asks_for(controller: str, degree: int) -> None:
    """An error of `C H^(p + 1)` is on target, times the safety factor, after one repetition, whichever controller."""
    control = cs.Adaptive(rtol=1e-4, controller=controller, min_step=1e-3)
    H, error = 0.02, 1.5
    repeated = control.shorter_step(H, error, degree)
    assert error * (repeated / H) ** (degree + 1) == pytest.approx(0.95 ** (degree + 1), rel=1e-14)
    assert control.shorter_step(H, 1e12, degree) == pytest.approx(0.25 * H, rel=1e-14)  # not below q_min H
    assert control.shorter_step(2e-3, 1e12, degree) == 1e-3  # nor below the smallest step


@pytest.mark.parametrize(
    ("H", "error", "stuck"),
    [(1.0, 1.5, True), (1.0, 1.3, False), (1.1, 1.9, False), (0.3, 1.41, True), (0.01, 0.5, False)],
)
def test_shorter_steps_that_do_not_help(H: float, error: float, stuck: bool) -> None:
    """Against an attempt of length 2 with an error of 2: at most half as long, and still more than 0.7 of the error."""
    assert is_no_gain(H, error, 2.0, 2.0) == stuck


@pytest.mark.covers("SC-14")
@given(positive, positive, st.none() | positive, st.integers(0, 5), st.sampled_from(["I", "PI"]))
def test_limiters(H: float, error: float, previous: float | None, degree: int, controller: str) -> None:
    """Growth at most q_max, shrinking at least q_min unless H_min is larger, always inside [H_min, H_max]."""
    control = cs.Adaptive(min_step=1e-4, max_step=1e-1, controller=controller)
    H = min(max(H, control.min_step), control.max_step)
    following = control.next_step(H, error, previous, degree)
    assert control.min_step <= following <= control.max_step
    assert following <= control.q_max * H * (1 + 1e-15)
    assert following >= min(control.q_min * H, control.max_step) * (1 - 1e-15)


@pytest.mark.covers("SC-14")
def test_order_of_the_limiters() -> None:
    """Eq. 2.32, min{H_max, q_max H, max{H_min, q_min H, q H~}}: where limits contradict each other the minimum wins."""
    control = cs.Adaptive(min_step=1e-3, max_step=1e-2)
    # H = 1e-4 < H_min: the inner maximum wants H_min = 1e-3, the outer minimum allows 4 H only
    assert control.next_step(1e-4, 1.0, None, 0) == pytest.approx(4e-4, rel=1e-14)
    # H = 1 > H_max: the inner maximum wants q_min H = 0.25, the outer minimum allows H_max only
    assert control.next_step(1.0, 1.0, None, 0) == 1e-2


@pytest.mark.covers("SC-14")
@pytest.mark.parametrize(("error", "factor"), [(0.0, 4.0), (1e-310, 4.0), (np.inf, 0.25)])
def test_extreme_estimates_hit_the_limiters(error: float, factor: float) -> None:
    """The guard of step 5: a vanishing estimate grows by q_max, an infinite one shrinks by q_min; nothing overflows."""
    assert cs.Adaptive().next_step(1.0, error, 0.0, 2) == factor


@pytest.mark.covers("SC-14")
def test_a_vanishing_estimate_grows_by_the_largest_factor() -> None:
    """A constant signal is extrapolated without error: every step is q_max times the last, up to H_max."""
    source = cs.Static(lambda t, u: 1.0, inputs=[], outputs=["y"])
    reader = cs.Static(lambda t, u: u[0], inputs=["u"], outputs=["y"])
    system = cs.System({"source": source, "reader": reader})
    system.connect("source.y", "reader.u")
    control = cs.Adaptive(rtol=1e-4, first_step=1e-3, max_step=0.1, controller="I")
    H = cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=control).H
    assert H[:5] == pytest.approx([1e-3, 4e-3, 16e-3, 64e-3, 0.1], rel=1e-9)


@pytest.mark.covers("SC-14")
def test_estimate() -> None:
    """Eq. 2.29 by hand: root mean square of (y - y~) / (1 + max(|y|, |y~|)), in units of the tolerance."""
    control = cs.Adaptive(rtol=1e-2)
    z, predicted = np.array([1.0, -3.0]), np.array([0.0, -1.0])
    expected = np.sqrt(0.5 * ((1.0 / 2.0) ** 2 + (2.0 / 4.0) ** 2)) / 1e-2
    assert control.estimate(z, predicted, np.ones(2)) == pytest.approx(expected, rel=1e-14)


@pytest.mark.covers("SC-14")
def test_estimate_with_nominal_values() -> None:
    """Eq. 2.29 depends on units; a nominal value makes the estimate independent of the unit."""
    control = cs.Adaptive(rtol=1e-3)
    in_metres = control.estimate(np.array([2e-6]), np.array([1e-6]), np.array([1e-6]))
    in_micrometres = control.estimate(np.array([2.0]), np.array([1.0]), np.array([1.0]))
    assert in_metres == pytest.approx(in_micrometres, rel=1e-12)
    assert control.estimate(np.array([2e-6]), np.array([1e-6]), np.array([1.0])) < 1e-2  # without: as good as zero


@pytest.mark.covers("SC-14")
def test_the_last_step_is_clipped() -> None:
    """The run ends exactly at `t_end`, whatever the controller proposes."""
    source = cs.Static(lambda t, u: np.sin(t), inputs=[], outputs=["y"])
    reader = cs.Static(lambda t, u: u[0], inputs=["u"], outputs=["y"])
    system = cs.System({"source": source, "reader": reader})
    system.connect("source.y", "reader.u")
    result = cs.simulate(system, t_end=np.pi, method=cs.Jacobi(2), step=cs.Adaptive(rtol=1e-4, first_step=0.01))
    assert result.t[-1] == np.pi
    assert np.all(result.H > 0)
