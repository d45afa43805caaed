"""NRMSE and WRMSE on arrays computed by hand (Schmoll (2015), 2.5.2), global and local references."""

import numpy as np
import pytest
from examples.two_mass.model import SCHMOLL, force_displacement
from examples.two_mass.study import COUPLING, STATES, Trajectory, coupling, local_error
from hypothesis import given
from hypothesis import strategies as st

import cosolve as cs


@pytest.mark.covers("SC-18")
def test_nrmse_by_hand() -> None:
    """Two variables: errors sqrt(1 / 2) and sqrt(4 / 8), so the root of their squared sum is 1."""
    reference = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]])  # variations 2 and 8
    values = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 4.0]])  # squared errors 1 and 4
    assert cs.analysis.nrmse(reference, values) == pytest.approx(1.0, rel=1e-15)
    assert cs.analysis.nrmse(reference[:, 0], values[:, 0]) == pytest.approx(np.sqrt(0.5), rel=1e-15)


@pytest.mark.covers("SC-18")
@given(st.integers(1, 6), st.integers(2, 40))
def test_the_mean_signal_has_the_root_of_the_number_of_variables(variables: int, times: int) -> None:
    """Predicting the mean is an error of 1 per variable; the sum (not the mean) over variables gives sqrt(N_y)."""
    reference = np.random.default_rng(variables * times).standard_normal((times, variables))
    mean = np.broadcast_to(reference.mean(axis=0), reference.shape)
    assert cs.analysis.nrmse(reference, mean) == pytest.approx(np.sqrt(variables), rel=1e-12)


@pytest.mark.covers("SC-18")
def test_nrmse_does_not_depend_on_units() -> None:
    """Scaling a variable, or shifting it together with its reference, changes nothing."""
    random = np.random.default_rng(1)
    reference, values = random.standard_normal((20, 3)), random.standard_normal((20, 3))
    scale, shift = np.array([1e6, 1.0, 1e-6]), np.array([3e6, 2.0, 0.0])
    moved = cs.analysis.nrmse(reference * scale + shift, values * scale + shift)
    assert moved == pytest.approx(cs.analysis.nrmse(reference, values), rel=1e-9)


@pytest.mark.covers("SC-18")
def test_wrmse_by_hand() -> None:
    """Eq. 2.29 per time with the larger magnitude in the weight, then the 2-norm over times, as printed."""
    reference, values = np.array([[1.0, 3.0], [0.0, -1.0]]), np.array([[0.0, 3.0], [4.0, 1.0]])
    first = 0.5 * ((1.0 / 2.0) ** 2 + 0.0)
    second = 0.5 * ((4.0 / 5.0) ** 2 + (2.0 / 2.0) ** 2)
    assert cs.analysis.wrmse(reference, values) == pytest.approx(np.sqrt(first + second), rel=1e-15)
    assert cs.analysis.wrmse(reference, values, mean=True) == pytest.approx(np.sqrt((first + second) / 2), rel=1e-15)
    assert cs.analysis.wrmse(reference, values, rho=0.0) == pytest.approx(np.sqrt(0.5 * 1.0 + 0.5 * 20.0), rel=1e-15)


@pytest.mark.covers("SC-18")
def test_only_the_mean_version_is_independent_of_the_number_of_samples() -> None:
    """As printed the sum grows like sqrt(N) (docs/validation/schmoll.md)."""
    reference = np.sin(np.linspace(0, 6, 50))[:, None]
    values = reference + 0.01
    twice = np.repeat(reference, 2, axis=0), np.repeat(values, 2, axis=0)
    assert cs.analysis.wrmse(*twice) == pytest.approx(np.sqrt(2) * cs.analysis.wrmse(reference, values), rel=1e-12)
    assert cs.analysis.wrmse(*twice, mean=True) == pytest.approx(
        cs.analysis.wrmse(reference, values, mean=True), rel=1e-12
    )


@pytest.mark.covers("SC-18")
def test_mismatched_arrays_are_refused() -> None:
    """A wrong shape or a reference without variation gets a sentence, not a broadcast or a division by zero."""
    with pytest.raises(cs.errors.SetupError, match="shape"):
        cs.analysis.nrmse(np.zeros((3, 2)), np.zeros((3, 1)))
    with pytest.raises(cs.errors.SetupError, match="never changes"):
        cs.analysis.nrmse(np.ones(4), np.zeros(4))


@pytest.mark.covers("SC-18")
def test_local_reference_restarts_at_every_macro_point() -> None:
    """`local_reference` with the exact flow, against the vectorised form used in the studies."""
    result = cs.simulate(force_displacement(), t_end=0.01, method=cs.Jacobi(1), step=1e-4)

    def flow(t0: float, t1: float, now) -> list[float]:
        state = SCHMOLL.flow(t1 - t0) @ [now[name] for name in STATES]
        return list(coupling(state[None])[0])

    reference = cs.analysis.local_reference(result, COUPLING, flow)
    values = np.column_stack([result[name] for name in COUPLING])
    states = np.column_stack([result[name] for name in STATES])
    path = Trajectory(result.t, result.H, values, states)
    assert np.array_equal(reference[0], values[0])
    assert cs.analysis.nrmse(reference[1:], values[1:]) == pytest.approx(local_error(path), rel=1e-9)


@pytest.mark.covers("SC-18")
def test_an_exact_run_has_no_local_error() -> None:
    """On the exact solution both errors vanish to rounding: the two references agree."""
    t = np.linspace(0, 0.1, 1001)
    states = SCHMOLL.exact(t)
    path = Trajectory(t, np.diff(t), coupling(states), states)
    assert local_error(path) < 1e-11
