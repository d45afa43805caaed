"""Two springs in four decompositions: printed eigenvalues, best relaxation factors, one-corrector property (IJ 3.3)."""

import numpy as np
import pytest
from examples.two_springs.model import (
    KINDS,
    LOAD,
    best_factor,
    eigenvalues,
    gauss_seidel_eigenvalue,
    interface_matrix,
    radius,
    system,
)
from hypothesis import given
from hypothesis import strategies as st

import cosolve as cs

stiffness = st.floats(0.05, 20.0) | st.floats(-20.0, -0.05)
factor = st.floats(-2.0, 0.5)

# Prototype: (k1, k2) -> (alpha, rho) for D/D, D/N, N/D, N/N. The last two of (0.1, 1) are ours, see
# docs/validation/sicklinger.md.
BEST = {
    (1.0, 1.0): [(-0.5, 0.7071)] * 4,
    (1.0, 2.0): [(-0.5, 0.5), (-0.667, 0.5774), (-0.5, 0.5), (-0.667, 0.5774)],
    (2.0, 1.0): [(-0.333, 0.8165), (-0.333, 0.8165), (-0.5, 0.7906), (-0.5, 0.7906)],
    (10.0, 1.0): [(-0.091, 0.9535), (-0.091, 0.9535), (-0.5, 0.8515), (-0.5, 0.8515)],
    (0.1, 1.0): [(-0.909, 0.3015), (-0.909, 0.3015), (-0.182, 0.7977), (-0.182, 0.7977)],
}


@pytest.mark.covers("IJ-10")
@pytest.mark.parametrize("kind", KINDS)
@given(stiffness, stiffness, factor)
def test_printed_eigenvalues(kind: str, k1: float, k2: float, alpha: float) -> None:
    """Against H = I + alpha G to 1e-12; where the two meet they are ill-conditioned, but not their sum and product."""
    H = np.eye(2) + alpha * interface_matrix(kind, k1, k2)
    found = eigenvalues(kind, k1, k2, alpha)
    size = 1 + np.abs(H).max() ** 2
    if abs(found[0] - found[1]) > 0.1 * size**0.5:
        assert np.sort_complex(found) == pytest.approx(np.sort_complex(np.linalg.eigvals(H)), abs=1e-12 * size)
    assert found.sum() == pytest.approx(np.trace(H), abs=1e-12 * size)
    assert found.prod() == pytest.approx(np.linalg.det(H), abs=1e-12 * size)


@pytest.mark.sample(3)
@pytest.mark.covers("IJ-10")
@pytest.mark.parametrize("pair", BEST)
def test_best_constant_factors(pair: tuple[float, float]) -> None:
    """The prototype's table, to its digits; D/N also in closed form."""
    for kind, printed in zip(KINDS, BEST[pair], strict=True):
        alpha, rho = best_factor(kind, *pair)
        assert (alpha, rho) == (pytest.approx(printed[0], abs=6e-4), pytest.approx(printed[1], abs=6e-5))
    q = pair[0] / pair[1]
    assert best_factor("D/N", *pair) == pytest.approx((-1 / (1 + q), np.sqrt(q / (1 + q))), abs=1e-6)


@pytest.mark.covers("IJ-10")
@given(stiffness, stiffness)
def test_gauss_seidel_has_half_the_jacobi_iterations(k1: float, k2: float) -> None:
    """rho_JC^2 = |H_GS| for the unrelaxed iteration; the best factor makes Gauss-Seidel exact in one iteration."""
    H = gauss_seidel_eigenvalue("D/N", k1, k2, -1.0)
    assert radius("D/N", k1, k2, -1.0) ** 2 == pytest.approx(abs(H), rel=1e-12)
    if abs(1 + k1 / k2) > 1e-3:
        assert gauss_seidel_eigenvalue("D/N", k1, k2, -1 / (1 + k1 / k2)) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.covers("IJ-10")
@pytest.mark.parametrize(("alpha", "kind"), [(a, k) for a in (-1.0, -0.75, -0.5, -0.25, -0.1) for k in KINDS])
def test_map_is_what_an_iteration_does(alpha: float, kind: str) -> None:
    """On a grid of stiffnesses, negative ones too: 256 relaxed iterations shrink the error iff the map says so."""
    for k1 in np.linspace(-4.5, 4.5, 10):
        for k2 in np.linspace(-4.5, 4.5, 10):
            rho = float(radius(kind, k1, k2, alpha))
            if abs(rho - 1) < 0.03:
                continue
            H = np.eye(2) + alpha * interface_matrix(kind, float(k1), float(k2))
            with np.errstate(over="ignore", invalid="ignore"):
                grown = np.abs(np.linalg.matrix_power(H, 256)).max()
            assert (grown < 1) == (rho < 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("k1", "k2"), [(1.0, 1.0), (10.0, 1.0), (0.1, 1.0), (3.0, -1.0)])
def test_newton_needs_one_correction_in_every_decomposition(kind: str, k1: float, k2: float) -> None:
    result = cs.simulate(system(kind, k1, k2), t_end=1.0, method=cs.Implicit(degree=0, tol=1e-9), step=1.0)
    assert result.iterations.tolist() == [1]
    for name in ("one.u", "two.u"):
        assert result[name][-1] == pytest.approx(LOAD / (k1 + k2), rel=1e-9)
